"""reproduce on the command line: every option arrives, the report is written, failures and signals are told."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from sparsezo import extras
from sparsezo.cli import Terminated, follow, reproduce, show
from sparsezo.cli.reproduce import run_reproduce
from sparsezo.engines.base import Failure
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.experiments.reproduce import Reproduced
from sparsezo.reports import scaling as scaling_report

pytestmark = pytest.mark.usefixtures("plain")


@pytest.fixture(autouse=True)
def no_minutes_of_scaling(monkeypatch):
    monkeypatch.setattr(scaling_report, "run_scaling", lambda *_, **__: pytest.fail("scaling was not asked for"))


def test_every_option_of_reproduce_arrives(program, commands, monkeypatch):
    seen = []
    monkeypatch.setattr(reproduce, "run_reproduce", lambda *args, **keywords: seen.append((args, keywords)))
    assert program("reproduce", "smt") == (0, "", "")
    words = "reproduce text --data D -o O --seeds 4 --iterations 9k --answers 2k --phases tuned --full-grid "
    words += "--processes 2 --engine ray --ray-address auto --quick"
    assert program(*words.split()) == (0, "", "")
    monkeypatch.setenv("SPARSEZO_DATA", "E")
    assert program("reproduce", "smt") == (0, "", "")
    default = {
        "seeds": None,
        "iterations": None,
        "answers": None,
        "phases": None,
        "full_grid": False,
        "processes": None,
        "engine": "local",
        "ray_address": None,
        "out": None,
        "quick": False,
    }
    given = {
        "seeds": "4",
        "iterations": "9k",
        "answers": "2k",
        "phases": "tuned",
        "full_grid": True,
        "processes": 2,
        "engine": "ray",
        "ray_address": "auto",
        "out": Path("O"),
        "quick": True,
    }
    assert seen == [(("smt", None), default), (("text", "D"), given), (("smt", "E"), default)]
    flags = {flag for param in commands["reproduce"].params for flag in param.opts if flag.startswith("--")}
    assert flags - set(words.split()) == {"--output", "--insist"}


def test_no_less_than_one_process(program, monkeypatch):
    monkeypatch.setattr(reproduce, "reproduce", lambda *_, **__: pytest.fail("it was called"))
    wrong = "sparsezo: --processes 0: must be a whole number, 1 or more\n"
    assert program("reproduce", "smt", "--processes", "0") == (2, "", wrong)


# The work, and the report on it


@pytest.fixture
def staged(monkeypatch):
    """run_reproduce without the runs: what the work was called with, and the report."""
    stage = SimpleNamespace(failures=[], folders=None, seen=[], report=[], page=Path("page.html"), stop=None)

    def work(name, data, **keywords):
        stage.seen.append(((name, data), keywords))
        if stage.stop is not None:
            raise stage.stop
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
    monkeypatch.setattr(extras, "need", lambda *_: None)
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
    default = {"out": None, "seeds": None, "iterations": None, "full_grid": False, "processes": None, "at": None}
    given = {"out": Path("o"), "seeds": 5, "iterations": 2000, "full_grid": True, "processes": 3, "at": at}
    here, there = {"engine": "local", "ray_address": None}, {"engine": "ray", "ray_address": "auto"}
    assert staged.seen == [
        (("smt", "D"), {**default, **here, "answers": None, "phases": None}),
        (("smt", "D"), {**given, **there, "answers": 3000, "phases": ["tuned", "fixed"]}),
    ]
    for watch in watches:
        assert (watch.say, watch.follow, watch.before_work) == (show.note, follow.following, show.note_compiling)


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
    ("options", "message"),
    [
        ({"quick": True}, "--quick belongs to reproduce scaling; use fewer --iterations"),
        (
            {"iterations": "few"},
            "--iterations few: must be a whole number of at least 1, such as 4M, 300k, 1e6 or 250000",
        ),
    ],
)
def test_calls_that_are_refused(staged, options, message):
    with pytest.raises(UsageError) as caught:
        run_reproduce("smt", "D", **options)
    assert str(caught.value) == message
    assert staged.seen == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["smt", "--seeds", "0"], "--seeds 0: must be at least 1"),
        (["smt", "--phases", "fixed,warm"], "--phases fixed,warm: choose from fixed, tuned, or both with a comma"),
        (["smt", "--phases", " ,"], "--phases: name at least one of fixed, tuned"),
        (["parsing"], "experiment parsing: choose from chunking, text, smt, noise, answers-chunking, answers-text, "
            "answers-rerank, all, answers, or name a .toml file"),
    ],
)  # fmt: skip
def test_what_the_library_refuses_is_said_in_flags(program, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    assert program("reproduce", *words, "--data", "D") == (2, "", f"sparsezo: {message}\n")
    assert list(tmp_path.iterdir()) == []


def test_without_data_it_says_where_to_get_it(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = program("reproduce", "smt")
    assert (code, out, err.count("\n")) == (2, "", 1)
    for words in ("sparsezo data get conll2000", "--data DIR", "SPARSEZO_DATA", "--data generated"):
        assert words in err


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


# Stopping


@pytest.mark.parametrize(("stop", "code"), [(KeyboardInterrupt(), 130), (Terminated(), 143)])
def test_stopped_it_says_how_to_go_on(staged, capsys, stop, code):
    staged.stop = stop
    with pytest.raises((typer.Exit, KeyboardInterrupt)) as caught:
        run_reproduce("smt", "D")
    assert isinstance(caught.value, typer.Exit)
    assert caught.value.exit_code == code
    assert capsys.readouterr().err == "stopped; the same command goes on from there\n"
    assert staged.report == []


PLAN = """
name = "small"
task = "rerank"
iterations = 20
seeds = [4]
[data]
train = "train.nbest"
dev = "train.nbest"
[[learner]]
rule = "two-point"
perturb = "active"
h = 0.01
mu = 0.01
"""


def test_ctrl_c_and_sigterm_are_told_apart_on_the_whole_way(program, tmp_path, monkeypatch):
    """The real signals, at the first report of a run; SIGINT as at a terminal, whatever the shell has made of it."""
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "train.nbest").write_text("0 ||| a b ||| LM=1 ||| 0\n0 ||| b a ||| LM=2 ||| 0\n")
    (tmp_path / "train.ref").write_text("a b\n")
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: pytest.fail("SIGTERM went past the program"))
    try:
        for number, expected in [(signal.SIGINT, 130), (signal.SIGTERM, 143)]:
            monkeypatch.setattr(
                follow, "_log_lines", lambda title, number=number: lambda now: os.kill(os.getpid(), number)
            )
            words = ["reproduce", tmp_path / "plan.toml", "--data", tmp_path, "--processes", 1, "-o", tmp_path / "out"]
            code, _, err = program(*words)
            assert code == expected
            assert err.splitlines()[-1] == "stopped; the same command goes on from there"
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
