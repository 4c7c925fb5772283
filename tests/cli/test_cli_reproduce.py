"""reproduce on the command line: every option arrives, the report is written, failures and signals are told."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from options_given import flags

from sparsezo.cli import reproduce, show
from sparsezo.cli.reproduce import run_reproduce
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.study.engines.base import Failure
from sparsezo.study.reports import scaling as scaling_report
from sparsezo.study.reproduce import Reproduced

pytestmark = pytest.mark.usefixtures("plain")


@pytest.fixture(autouse=True)
def no_minutes_of_scaling(monkeypatch):
    monkeypatch.setattr(scaling_report, "run_scaling", lambda *_, **__: pytest.fail("scaling was not asked for"))


def test_every_option_of_reproduce_arrives(program, commands, monkeypatch):
    seen = []
    monkeypatch.setattr(reproduce, "run_reproduce", lambda **given: seen.append(given))
    assert program("reproduce", "smt") == (0, "", "")
    words = "reproduce text --data D -o O --seeds 4 --iterations 9k --answers 2k --phases tuned --full-grid "
    words += "--processes 2 --engine ray --ray-address auto --quick"
    assert program(*words.split()) == (0, "", "")
    monkeypatch.setenv("SPARSEZO_DATA", "E")
    assert program("reproduce", "smt") == (0, "", "")
    default = dict.fromkeys(("seeds", "iterations", "answers", "phases", "processes", "ray_address", "out"))
    default |= {"name": "smt", "data": None, "full_grid": False, "engine": None, "quick": False}
    given = {"seeds": "4", "iterations": "9k", "answers": "2k", "phases": "tuned", "full_grid": True, "processes": 2}
    given |= {"engine": "ray", "ray_address": "auto", "out": Path("O"), "quick": True, "name": "text", "data": "D"}
    assert seen == [default, given, {**default, "data": "E"}]
    assert flags(commands["reproduce"]) - set(words.split()) == {"--output", "--insist"}


# The work, and the report on it


@pytest.fixture
def staged(monkeypatch):
    """run_reproduce without the runs: what the work was called with, and the report."""
    stage = SimpleNamespace(failures=[], folders=None, seen=[], report=[], page=Path("page.html"))

    def work(name, data, **keywords):
        stage.seen.append(((name, data), keywords))
        out = keywords["out"]
        several = [(out or Path("results")) / each for each in ("chunking", "smt")]
        folders = several if name == "all" else [out or Path("results") / name]
        return Reproduced(folders, list(stage.failures))

    def write_report(*args, **keywords):
        stage.report.append((args, keywords))
        if isinstance(stage.page, Exception):
            raise stage.page
        return stage.page

    monkeypatch.setattr(reproduce, "reproduce", work)
    monkeypatch.setattr(reproduce, "write_report", write_report)
    monkeypatch.setattr(sys, "argv", ["/bin/sparsezo", "reproduce", "smt", "--data", "my data"])
    return stage


COMMAND = "sparsezo reproduce smt --data 'my data'"


def test_every_value_reaches_the_work(staged, monkeypatch):
    monkeypatch.setattr("sparsezo.errors.find_spec", lambda name: True)
    at = {"chunking": (0.5, 0.25)}
    run_reproduce("smt", "D")
    run_reproduce(
        "smt",
        "D",
        out=Path("o"),
        seeds=5,
        iterations="2k",
        answers="3k",
        phases=" tuned, fixed,",
        full_grid=True,
        processes=3,
        engine="ray",
        ray_address="auto",
        at=at,
    )
    watches = [keywords.pop("watch") for _, keywords in staged.seen]
    given = {"out": Path("o"), "seeds": 5, "iterations": 2000, "full_grid": True, "processes": 3, "at": at}
    there = {"engine": "ray", "ray_address": "auto"}
    assert staged.seen == [
        (("smt", "D"), {"out": None, "engine": "local"}),
        (("smt", "D"), {**given, **there, "answers": 3000, "phases": ["tuned", "fixed"]}),
    ]
    for watch in watches:
        assert (watch.say, watch.follow, watch.before_work) == (show.note, show.following, show.note_compiling)


@pytest.mark.parametrize(
    ("name", "out", "folders", "report"),
    [
        ("smt", None, ["results/smt"], "results/smt/report"),
        ("smt", "o", ["o"], "o/report"),
        ("all", None, ["results/chunking", "results/smt"], "results/report"),
        ("all", "o", ["o/chunking", "o/smt"], "o/report"),
    ],
)
def test_the_report_stands_beside_the_runs(staged, capsys, name, out, folders, report):
    """One for all where there are several; what was typed is in it."""
    expected = [Path(folder) for folder in folders]
    assert run_reproduce(name, "D", out=Path(out) if out else None) == expected
    assert staged.report == [((expected, Path(report)), {"command": COMMAND})]
    assert capsys.readouterr().err == "the report is page.html\n"


def test_failures_are_listed_and_make_it_fail(staged, capsys):
    staged.failures = [Failure("first run", "it broke"), Failure("second run", "so did it")]
    with pytest.raises(SparsezoError) as caught:
        run_reproduce("all", "D")
    assert caught.value.exit_code == 1
    assert str(caught.value) == (
        "2 runs failed, for the reasons above; the same command tries them again, and only them"
    )
    lines = ["failed: first run: it broke", "failed: second run: so did it"]
    assert capsys.readouterr().err.splitlines() == [*lines, "the report is page.html"]
    staged.failures = staged.failures[:1]
    with pytest.raises(SparsezoError, match=r"^1 run failed, for the reasons above; "):
        run_reproduce("smt", "D")


def test_where_nothing_was_finished_there_is_no_report(staged, capsys):
    staged.page = UsageError("no finished runs")
    with pytest.raises(UsageError, match=r"^no finished runs$"):
        run_reproduce("smt", "D")
    staged.failures = [Failure("first run", "it broke")]
    with pytest.raises(SparsezoError, match=r"^1 run failed"):
        run_reproduce("smt", "D")
    assert capsys.readouterr().err == "failed: first run: it broke\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["smt", "--quick"], "--quick belongs to reproduce scaling; use fewer --iterations"),
        (["smt", "--iterations", "few"], "--iterations few: must be a whole number of at least 1, such as 4M, 300k, "
            "1e6 or 250000"),
        (["smt", "--seeds", "0"], "--seeds 0: must be at least 1"),
        (["parsing"], "experiment parsing: choose from chunking, text, smt, noise, answers-chunking, answers-words, "
            "answers-clusters, answers-names, answers-names-clusters, answers-text, answers-rerank, all, answers, or "
            "name a .toml file"),
    ],
)  # fmt: skip
def test_calls_that_are_refused(program, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    assert program("reproduce", *words, "--data", "D") == (2, "", f"sparsezo: {message}\n")
    assert list(tmp_path.iterdir()) == []


def test_scaling_is_measured_not_run(monkeypatch, tmp_path, capsys, staged):
    seen = []

    def run_scaling(*args, say, **keywords):
        say("measuring")
        seen.append((args, keywords))
        return Path("scaling.html")

    monkeypatch.setattr(scaling_report, "run_scaling", run_scaling)
    monkeypatch.chdir(tmp_path)
    assert run_reproduce("scaling", None) == [Path("results/scaling")]
    assert Path("results/scaling").is_dir()
    assert run_reproduce("scaling", None, seeds=5, quick=True, out=Path("a/b")) == [Path("a/b")]
    run_reproduce("scaling", None, seeds=0, out=Path("a/b"))
    assert seen == [
        ((Path("results/scaling"),), {"quick": False, "seeds": 3, "command": COMMAND}),
        ((Path("a/b"),), {"quick": True, "seeds": 5, "command": COMMAND}),
        ((Path("a/b"),), {"quick": False, "seeds": 0, "command": COMMAND}),
    ]
    assert staged.seen == []
    assert capsys.readouterr().err == "measuring\nthe report is scaling.html\n" * 3
