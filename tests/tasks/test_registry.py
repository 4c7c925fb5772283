"""Tasks of other packages, which register by entry point: a distribution on sys.path, as pip would install it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sparsezo import messages
from sparsezo.entry_points import EntryPoints
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.tasks import registry

TASK = """
from dataclasses import dataclass
from sparsezo.options import option
from sparsezo.tasks.spec import TaskSpec

@dataclass(frozen=True)
class Options:
    purse: int = option(20, "How many coins there are.", least=1)

SPEC = TaskSpec(name="coins", title="Coins", inputs="tables", metric="accuracy", metric_name="share", loss_name="error",
    io_module="coins_task", train_options=Options, read_options=Options, predict_options=Options,
    defaults=lambda rule, step, perturb: (0.1, 1.0))
OTHER = SPEC.name

def load(files): return files
"""
BROKEN = "raise RuntimeError('no such\\nlibrary')"
ENTRIES = """[sparsezo.tasks]
coins = coins_task:SPEC
dice = broken_task:SPEC
cards = coins_task:OTHER
chips = coins_task:SPEC
chunking = broken_task:SPEC
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a good task, three broken ones, and one that would replace a built-in task."""
    (tmp_path / "coins_task.py").write_text(TASK)
    (tmp_path / "broken_task.py").write_text(BROKEN)
    info = tmp_path / "gambling-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gambling\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "_registered", {})
    found = registry._installed
    monkeypatch.setattr(registry, "_installed", EntryPoints(found.group, found.what, found.kind, found.built_in))
    yield tmp_path
    for name in ("coins_task", "broken_task"):
        sys.modules.pop(name, None)


def test_a_task_of_another_package(installed):
    assert registry.names() == ["chunking", "text", "rerank", "coins", "dice", "cards", "chips"]
    assert "coins_task" not in sys.modules  # imported when it is asked for
    spec = registry.task_spec("coins")
    assert (spec.name, list(spec.options)) == ("coins", ["purse"])
    assert spec.load("files") == "files"
    assert registry.task_spec("coins") is spec
    assert registry.task_spec("chunking").io_module.startswith("sparsezo.")
    with pytest.raises(SparsezoError, match=r"^task coins asks no questions, so there is nothing to serve$"):
        spec.serving()
    with pytest.raises(UsageError, match=r"^task coins has no generator; give files$"):
        spec.synthetic()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dice", "broken_task:SPEC RuntimeError: no such\\nlibrary"),
        ("cards", "coins_task:OTHER is a str, not the TaskSpec of that name"),
        ("chips", "coins_task:SPEC is a task 'coins', not the TaskSpec of that name"),
    ],
)
def test_a_broken_one_is_named_in_one_line(installed, name, message):
    for _ in range(2):
        with pytest.raises(SparsezoError) as error:
            registry.task_spec(name)
        assert str(error.value) == f"task {name} of gambling cannot be used: {message}"


def test_a_broken_one_does_not_break_the_others(installed):
    with messages.gathered() as remarks:
        assert [spec.name for spec in registry.task_specs()] == ["chunking", "text", "rerank", "coins"]
        assert [spec.name for spec in registry.task_specs()] == registry.names()
    assert [remark.split(" cannot")[0] for remark in remarks] == [
        f"task {name} of gambling" for name in ("dice", "cards", "chips")
    ]


def test_the_command_line_knows_it(installed):
    command = [
        sys.executable,
        "-c",
        "import sys; sys.path.insert(0, sys.argv.pop(1)); from sparsezo.cli import main; main()",
    ]
    done = subprocess.run(
        [*command, str(installed), "train", "coins", "--help"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "How many coins there are." in done.stdout) == (0, True)
    assert done.stderr.count("\n") == 3  # a line for each that is broken
    assert "task dice of gambling cannot be used" in done.stderr


def test_a_task_that_nobody_has():
    with pytest.raises(UsageError, match=r"^task poker: choose from chunking, text, rerank"):
        registry.task_spec("poker")
