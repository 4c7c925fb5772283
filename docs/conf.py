"""The site: README, docs and what they lead to, as they stand in the repository (`make site`).

Pages are CommonMark to Sphinx (MyST) as to any viewer of the repository, and their links are followed as they are
written. Two things are added here: where a page stands in the navigation, and the docstrings of docs/reference.md.
"""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))

project = "sparsezo"
extensions = ["myst_parser"]
myst_heading_anchors = 4
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "docs/**/*.md", "examples/README.md"]
exclude_patterns = [".*", "site", "results", "build", "dist", "src", "tests", "benchmarks"]
html_theme = "furo"
html_title = "sparsezo"
html_copy_source = False
html_use_index = False
html_show_copyright = False
html_show_search_summary = False  # it would be fetched, which files on a disk refuse
smartquotes = False

NAVIGATION = {
    "Begin": ["first-tagger", "choosing", "faq"],
    "Guides": [f"guides/{name}" for name in ("teach", "use", "rerank", "model", "paper", "extend")],
    "People": ["serve", "serve-page", "answers", "logged"],
    "Training and tagging": ["training", "features", "steps", "tagging", "scaling", "data"],
    "Python": ["reference", "minimize", "torch", "sklearn", "tasks", "rules", "/examples/README"],
    "How it works inside": ["design", "theory", "speed"],
    "The paper and results": [
        *("results/README", "experiments", "deviations"),
        *(f"results/{name}/table" for name in ("chunking", "smt", "text", "noise", "answers")),
        *("results/scaling/scaling", "results/theory/rates"),
    ],
    "The project": ["/CHANGELOG", "/CONTRIBUTING", "/SECURITY", "licences"],
}
PUBLIC = ("sparsezo", "sparsezo.sklearn", "sparsezo.torch")


def tables_of_contents() -> str:
    return "".join(
        f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n"
        + "\n".join(page if page.startswith("/") else f"/docs/{page}" for page in pages)
        + "\n```\n"
        for caption, pages in NAVIGATION.items()
    )


def docstrings() -> Iterator[str]:
    """Public names, and the public methods of classes, with what is said of them."""
    for name in PUBLIC:
        module = importlib.import_module(name)
        yield f"\n## {name}\n"
        for each in sorted(set(module.__all__) - {"__version__"}, key=str.lower):
            yield from described(each, getattr(module, each), "###")


def described(name: str, value: Any, level: str) -> Iterator[str]:
    yield f"\n{level} {name}\n"
    if callable(value):
        yield f"\n```python\n{name}{signature(value)}\n```\n"
    yield f"\n{text(value)}\n"
    for method, raw in members(value).items():
        found = attribute_of(raw) or getattr(value, method)
        if not method.startswith("_") and inspect.isroutine(found) and inspect.getdoc(found):
            shown = "" if attribute_of(raw) else signature(found)
            yield f"\n- `{method}{shown}`\n\n{textwrap.indent(text(found), '  ')}\n"


def members(value: Any) -> dict[str, Any]:
    """Of a class and of those of this package that it is made of."""
    bases = [base for base in reversed(getattr(value, "__mro__", ())) if base.__module__.startswith("sparsezo")]
    return {name: raw for base in bases for name, raw in vars(base).items()}


def attribute_of(raw: Any) -> Any:
    """The function of a property, cached or not; None of what is called."""
    return raw.func if isinstance(raw, cached_property) else getattr(raw, "fget", None)


def signature(value: Any) -> str:
    """Names and defaults; types are what the docstring says in words."""
    found = inspect.signature(value)
    bare = [each.replace(annotation=each.empty) for each in found.parameters.values() if each.name != "self"]
    shown = str(found.replace(parameters=bare, return_annotation=found.empty)).replace("<factory>", "...")
    return re.sub(r"<class '([\w.]+)'>", r"\1", shown)


def text(value: Any) -> str:
    """A docstring as Markdown: lines of Python in blocks, as everything else in it already is."""
    if isinstance(value, Mapping):
        return ", ".join(f"`{key}`" for key in value)
    found = inspect.getdoc(value) or ""
    if inspect.isclass(value) and found.startswith(f"{value.__name__}("):
        return ""  # a dataclass's own
    return re.sub(r"(?:^(?:>>>|\.\.\.).*\n?(?:(?!>>>)\S.*\n?)*)+", r"```pycon\n\g<0>\n```\n", found, flags=re.MULTILINE)


def completed(app: Any, name: str, source: list[str]) -> None:
    if name == root_doc:
        source[0] += tables_of_contents()
    if name == "docs/reference":
        source[0] += "\n".join(docstrings())


def begin_at_index(app: Any, failed: Exception | None) -> None:
    if not failed:
        shutil.copy(Path(app.outdir, f"{root_doc}.html"), Path(app.outdir, "index.html"))


def setup(app: Any) -> None:
    app.connect("source-read", completed)
    app.connect("build-finished", begin_at_index)
