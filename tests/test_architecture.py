"""What may import what, that the sections of docs/design.md which the code cites are there, and how rare `Any` is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "sparsezo"

LAYERS = (  # each may import what stands above it, and its own; docs/design.md, 5
    ("errors", "entry_points", "messages", "options", "signals", "validation"),
    ("storage",),
    ("kernels",),
    ("questions", "raters", "rules", "settings", "automatic", "directions", "off_policy", "row_space"),
    ("optimizer",),
    ("tasks",),  # what all tasks share: the folders of tasks/ are below
    ("steps", "learner", "query_learner", "algorithm", "minimization"),
    ("tasks.chunking", "tasks.own", "tasks.rerank", "tasks.text"),
    ("datasets", "diagnosis", "logged", "model", "perturbing", "scorers", "sklearn", "torch", "training"),
    ("study",),
    ("serve",),
    ("cli",),
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def layer_of(parts: list[str]) -> str | None:
    """The layer of a module by its dotted parts behind ``sparsezo``; None for the package itself."""
    longest = ".".join(parts[:2])
    return longest if longest in RANK else parts[0] if parts and parts[0] in RANK else None


def imported(tree: ast.Module) -> Iterator[tuple[int, list[str]]]:
    """(line, parts behind sparsezo) of all imports, wherever they stand, but for those of type checkers alone."""
    unseen = {
        id(each)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for each in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sparsezo":
            for name in node.names:
                yield node.lineno, [*(node.module or "").split(".")[1:], name.name]
        elif isinstance(node, ast.Import):
            for name in node.names:
                if name.name.startswith("sparsezo."):
                    yield node.lineno, name.name.split(".")[1:]


def test_nothing_imports_what_stands_below_it():
    wrong = []
    for path in sorted(SOURCES.rglob("*.py")):
        own = layer_of(list(path.relative_to(SOURCES).with_suffix("").parts))
        if own is None:
            continue
        for line, parts in imported(ast.parse(path.read_text("utf-8"))):
            other = layer_of(parts)
            if other is not None and RANK[other] > RANK[own]:
                wrong.append(f"{path.relative_to(SOURCES)}:{line} imports {'.'.join(parts)}")
    assert not wrong


def test_every_module_of_the_root_has_its_layer():
    modules = {path.stem for path in SOURCES.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert modules - set(RANK) == {"__init__", "__main__"}


def test_every_section_that_is_cited_exists():
    page = (ROOT / "docs" / "design.md").read_text("utf-8")
    sections = set(re.findall(r"^#+ (\d+(?:\.\d+)?)\.? ", page, re.M))
    cited: dict[str, str] = {}
    for path in [*SOURCES.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        text = path.read_text("utf-8")
        for found in re.finditer(r"\bdesign\s+(\d+(?:\.\d+)?)(?:\s+and\s+(\d+(?:\.\d+)?))?", text):
            cited |= {number: path.name for number in found.groups() if number}
    assert len(cited) > 5
    assert set(cited) <= sections, {number: name for number, name in cited.items() if number not in sections}


def lines_of_kernels(tree: ast.Module) -> set[int]:
    """Those of compiled functions, which stand beside what they serve where they are no part of the loop."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            marks = {getattr(mark, "id", "") for mark in node.decorator_list}
            if any(mark.endswith("kernel") or mark == "intrinsic" for mark in marks):
                found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def test_values_of_any_type_are_rare_outside_of_compiled_code():
    count = 0
    for path in SOURCES.rglob("*.py"):
        if "kernels" not in path.parts:
            text = path.read_text("utf-8")
            compiled = lines_of_kernels(ast.parse(text))
            lines = enumerate(text.splitlines(), start=1)
            others = (line for number, line in lines if number not in compiled and " import " not in line)
            count += sum(bool(re.search(r"\bAny\b", line)) for line in others)
    assert count <= 38
