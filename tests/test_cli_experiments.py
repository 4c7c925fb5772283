"""tune and reproduce: every option arrives where it counts, given weights are started from, and what people read."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer
from rich.console import Console
from sparsezo.cli.experiments import TuneCall, run_reproduce, run_tune

from sparsezo.cli import Terminated, experiments, show
from sparsezo.engines.progress import Failure, Overview
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.experiments import sources
from sparsezo.experiments.plan import LearnerSpec, builtin, parse_experiment, read_experiment
from sparsezo.experiments.sources import Source
from sparsezo.experiments.tuning import Trial, Tuned
from sparsezo.model import load_model
from sparsezo.reports import scaling as scaling_report
from sparsezo.tasks.chunking.generate import chunking_columns, generate_chunking
from sparsezo.tasks.loading import Files
from sparsezo.tasks.rerank.metric import corpus_bleu


@pytest.fixture(autouse=True)
def plain(monkeypatch, tmp_path):
    """No terminal, whatever the environment says; no data and no cache but the test's own; no minutes of scaling."""
    monkeypatch.setattr(show, "errors", Console(stderr=True, highlight=False, force_terminal=False, width=300))
    monkeypatch.setattr(show, "output", Console(highlight=False, force_terminal=False, width=120))
    monkeypatch.setattr(show, "note_compiling", lambda: None)
    monkeypatch.setattr(sources, "_SIZES", {"chunking": (60, 20, 30), "text": (60, 20, 30), "rerank": (12, 6, 8)})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARSEZO_DATA", raising=False)
    monkeypatch.setattr(scaling_report, "run_scaling", lambda *_, **__: pytest.fail("scaling was not asked for"))


@pytest.fixture
def calls(monkeypatch):
    """Put a recorder in the place of a function: its calls as (arguments, keywords)."""

    def record(name: str, answer: object = None) -> list[tuple[tuple, dict]]:
        seen: list[tuple[tuple, dict]] = []

        def recorder(*args, **keywords):
            seen.append((args, keywords))
            return answer(*args, **keywords) if callable(answer) else answer

        monkeypatch.setattr(experiments, name, recorder)
        return seen

    return record


# From the command line to the call

TUNE = TuneCall(
    task="text",
    files=Files(("a",), "d", None, {}),
    rule="two-point",
    perturb=None,
    criterion="map",
    gamma=1.0,
    step="constant",
    baseline=False,
    feedback="exact",
    grid_h=None,
    grid_mu=None,
    iterations="1M",
    seeds=(0,),
    full_grid=False,
    processes=None,
    output=None,
    as_json=False,
)


def test_tune_has_the_documented_defaults(program, calls):
    seen = calls("run_tune")
    assert program("tune", "text", "--train", "a", "--dev", "d") == (0, "", "")
    assert seen == [((TUNE,), {})]
    assert TuneCall("text", Files(("a",), "d", None, {})) == TUNE


def test_every_option_of_tune_arrives(program, calls):
    """Each with a value of its own, so that none can stand in for another."""
    seen = calls("run_tune")
    words = """tune rerank --train a --train b --dev 12 --rule symmetric --perturb active --criterion annealed
        --gamma 0.7 --step adagrad --baseline --feedback binary --grid-h 0.1,0.2 --grid-mu 0.3 --full-grid
        --iterations 7k --seed 5 --seeds 3 --only VP --order 1 --template tpl --min-count 4 --format svmlight --topics q
        --raw-tf --train-ref r1 --train-ref r2 --dev-ref r3 --init w --store s --processes 2 -o out --json"""
    assert program(*words.split()) == (0, "", "")
    options = {
        "only": "VP",
        "order": 1,
        "template": "tpl",
        "min_count": 4,
        "format": "svmlight",
        "topics": "q",
        "raw_tf": True,
        "train_ref": ["r1", "r2"],
        "dev_ref": ["r3"],
        "init": "w",
        "store": "s",
    }
    given = TuneCall(
        task="rerank",
        files=Files(("a", "b"), "12", None, options),
        rule="symmetric",
        perturb="active",
        criterion="annealed",
        gamma=0.7,
        step="adagrad",
        baseline=True,
        feedback="binary",
        grid_h="0.1,0.2",
        grid_mu="0.3",
        iterations="7k",
        seeds=(5, 6, 7),
        full_grid=True,
        processes=2,
        output=Path("out"),
        as_json=True,
    )
    assert seen == [((given,), {})]
    for field in fields(TuneCall):
        assert getattr(given, field.name) != getattr(TUNE, field.name), f"{field.name} is not told from a default"


def test_every_option_of_reproduce_arrives(program, calls, monkeypatch):
    seen = calls("run_reproduce")
    assert program("reproduce", "smt") == (0, "", "")
    words = "reproduce text --data D -o O --seeds 4 --iterations 9k --phases tuned --full-grid --processes 2 --quick"
    assert program(*words.split()) == (0, "", "")
    monkeypatch.setenv("SPARSEZO_DATA", "E")
    assert program("reproduce", "smt") == (0, "", "")
    default = {
        "seeds": None,
        "iterations": None,
        "phases": "fixed,tuned",
        "full_grid": False,
        "processes": None,
        "out": None,
        "quick": False,
    }
    given = {
        "seeds": 4,
        "iterations": "9k",
        "phases": "tuned",
        "full_grid": True,
        "processes": 2,
        "out": Path("O"),
        "quick": True,
    }
    assert seen == [(("smt", None), default), (("text", "D"), given), (("smt", "E"), default)]


@pytest.mark.parametrize(
    "words",
    [
        ["tune", "text", "--train", "a", "--dev", "d", "--seeds", "0"],
        ["tune", "text", "--train", "a", "--dev", "d", "--processes", "0"],
        ["reproduce", "smt", "--processes", "0"],
    ],
)
def test_no_less_than_one(program, calls, words):
    seen = [calls("run_tune"), calls("run_reproduce")]
    code, _, err = program(*words)
    assert (code, f"Invalid value for '{words[-2]}'" in err, seen) == (2, True, [[], []])


# reproduce: which plans, where to, and the report on them


@pytest.fixture
def staged(calls, monkeypatch):
    """run_reproduce without the runs: what each experiment was called with, and the report."""
    stage = SimpleNamespace(failures=[], seen=None, sources=None, report=None)
    stage.seen = calls("_reproduce", lambda *_args, **_keywords: list(stage.failures))
    stage.sources = calls("_source", lambda plan, folder, data: f"source of {plan.name} in {folder} from {data}")
    stage.report = calls("write_report", Path("page.html"))
    monkeypatch.setattr(sys, "argv", ["/bin/sparsezo", "reproduce", "smt", "--data", "my data"])
    return stage


COMMAND = "sparsezo reproduce smt --data 'my data'"


def test_one_experiment_goes_into_its_folder_with_the_report_beside(staged, capsys):
    assert run_reproduce("smt", "D") == [Path("results/smt")]
    assert staged.seen == [
        (
            (builtin("smt"), Path("results/smt"), "source of smt in results/smt from D", ("fixed", "tuned")),
            {"full_grid": False, "processes": None},
        )
    ]
    assert staged.report == [(([Path("results/smt")], Path("results/smt/report")), {"command": COMMAND})]
    assert capsys.readouterr().err == "the report is page.html\n"
    assert run_reproduce("smt", "D", out=Path("o"), full_grid=True, processes=3, phases="tuned") == [Path("o")]
    assert staged.seen[1][0][1:] == (Path("o"), "source of smt in o from D", ("tuned",))
    assert staged.seen[1][1] == {"full_grid": True, "processes": 3}
    assert staged.report[1][0] == ([Path("o")], Path("o/report"))


def test_all_are_the_papers_three_in_folders_of_their_own_with_one_report(staged):
    folders = [Path("results") / name for name in ("chunking", "smt", "text")]
    assert run_reproduce("all", "D") == folders
    assert [args[0].name for args, _ in staged.seen] == ["chunking", "smt", "text"]
    assert staged.report[0][0] == (folders, Path("results/report"))
    folders = [Path("o") / name for name in ("chunking", "smt", "text")]
    assert run_reproduce("all", "D", out=Path("o")) == folders
    assert staged.report[1][0] == (folders, Path("o/report"))


def test_seeds_iterations_and_settings_are_overridden(staged):
    run_reproduce("chunking", "D", seeds=5, iterations="2k", at={"chunking": (0.5, 0.25), "text": (7.0, 8.0)})
    plan = staged.seen[0][0][0]
    assert plan.seeds == (0, 1, 2, 3, 4)
    assert (plan.iterations, plan.evaluate_every, plan.interval) == (2000, None, 20)
    before = builtin("chunking")
    for spec, was in zip(plan.learners, before.learners, strict=True):
        assert spec == (replace(was, h=0.5, mu=0.25) if was.perturb else was)
    assert replace(plan, seeds=before.seeds, iterations=before.iterations, learners=before.learners) == before


def test_iterations_bring_their_own_looks_at_dev(staged, tmp_path):
    (tmp_path / "mine.toml").write_text(PLAN.replace("iterations = 40", "iterations = 400\nevaluate_every = 7"))
    run_reproduce(str(tmp_path / "mine.toml"), "D")
    run_reproduce(str(tmp_path / "mine.toml"), "D", iterations="500")
    run_reproduce(str(tmp_path / "mine.toml"), "D", seeds=1)
    plans = [args[0] for args, _ in staged.seen]
    assert [(plan.iterations, plan.evaluate_every) for plan in plans] == [(400, 7), (500, None), (400, 7)]
    assert [plan.seeds for plan in plans] == [(3, 1), (3, 1), (0,)]


def test_settings_of_other_experiments_are_left_alone(staged):
    run_reproduce("smt", "D", at={"chunking": (0.5, 0.25)})
    assert staged.seen[0][0][0] == builtin("smt")


def test_the_papers_figures_say_nothing_about_generated_data(staged):
    run_reproduce("smt", "generated")
    run_reproduce("smt", "D")
    generated, real = (args[0] for args, _ in staged.seen)
    assert {spec.paper for spec in generated.learners} == {None}
    assert [replace(spec, paper=None) for spec in real.learners] == list(generated.learners)
    assert real.learners[0].paper == 0.273


def test_failures_are_listed_and_make_it_fail(staged, capsys):
    staged.failures = [Failure("first run", "it broke"), Failure("second run", "so did it")]
    with pytest.raises(SparsezoError) as caught:
        run_reproduce("all", "D")
    assert caught.value.exit_code == 1
    assert str(caught.value) == (
        "6 runs failed, for the reasons above; the same command tries them again, and only them"
    )
    lines = ["failed: first run: it broke", "failed: second run: so did it"]
    assert capsys.readouterr().err.splitlines() == [*lines * 3, "the report is page.html"]
    staged.failures = staged.failures[:1]
    with pytest.raises(SparsezoError, match=r"^1 run failed, for the reasons above; "):
        run_reproduce("smt", "D")


def test_where_nothing_was_finished_there_is_no_report(staged, calls, capsys):
    def no_report(*_args, **_keywords):
        raise UsageError("no finished runs")

    calls("write_report", no_report)
    with pytest.raises(UsageError, match=r"^no finished runs$"):
        run_reproduce("smt", "D")
    staged.failures = [Failure("first run", "it broke")]
    with pytest.raises(SparsezoError, match=r"^1 run failed"):
        run_reproduce("smt", "D")
    assert capsys.readouterr().err == "failed: first run: it broke\n"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("parsing", {}, "experiment parsing: choose from chunking, smt, text, noise, all, or name a .toml file"),
        ("smt", {"quick": True}, "--quick belongs to reproduce scaling; use fewer --iterations"),
        ("smt", {"seeds": 0}, "--seeds 0: must be at least 1"),
        ("smt", {"phases": "fixed,warm"}, "--phases fixed,warm: choose from fixed, tuned, or both with a comma"),
        ("smt", {"phases": " ,"}, "--phases: name at least one of fixed, tuned"),
        ("noise", {"phases": "tuned"}, "noise: no learner has a grid, so there is nothing to tune; use --phases fixed"),
    ],
)  # fmt: skip
def test_calls_that_are_refused(staged, name, options, message):
    with pytest.raises(UsageError) as caught:
        run_reproduce(name, "D", **options)
    assert str(caught.value) == message
    assert staged.seen == []


def test_iterations_that_are_no_number_are_refused(staged):
    with pytest.raises(UsageError, match=r"^--iterations few: must be a whole number"):
        run_reproduce("smt", "D", iterations="few")


def test_phases_are_told_by_their_names(staged):
    for phases, expected in [
        ("fixed", ("fixed",)),
        ("tuned, fixed", ("tuned", "fixed")),
        (",fixed,", ("fixed",)),
    ]:
        run_reproduce("smt", "D", phases=phases)
        assert staged.seen[-1][0][3] == expected
    run_reproduce("noise", "D", phases="fixed,tuned")
    assert staged.seen[-1][0][3] == ("fixed", "tuned")


def test_a_plan_of_ones_own_is_a_file(staged, tmp_path, monkeypatch):
    (tmp_path / "mine.toml").write_text(PLAN)
    (tmp_path / "plan").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    for name in ("mine.toml", "./plan"):
        run_reproduce(name, "D")
        assert staged.seen[-1][0][0] == parse_experiment(PLAN, "")
        assert staged.seen[-1][0][1] == Path("results/mine")


def test_without_a_folder_of_data_the_cache_is_looked_at(staged, calls, tmp_path):
    for answer in (False, True):
        seen = calls("present", answer)
        if answer:
            run_reproduce("smt", None)
        else:
            with pytest.raises(UsageError) as caught:
                run_reproduce("smt", None)
            assert str(caught.value) == experiments._NO_DATA
            assert "sparsezo data get conll2000" in experiments._NO_DATA
        cache = str(tmp_path / "cache/sparsezo/data")
        assert seen == [((builtin("smt"), cache), {})]
    assert staged.sources == [((builtin("smt"), Path("results/smt"), cache), {})]


def test_one_experiment_without_data_is_enough_to_refuse(staged, calls):
    calls("present", lambda plan, _folder: plan.name == "chunking")
    with pytest.raises(UsageError, match=r"^reproduce needs data"):
        run_reproduce("all", None)
    assert staged.seen == []


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
    assert capsys.readouterr().err == "measuring\nthe report is scaling.html\n" * 3


def test_generated_data_is_said_to_be_generated(calls, tmp_path, capsys):
    plan = builtin("smt")
    there, made = calls("in_folder", "there"), calls("generated", "made")
    assert experiments._source(plan, tmp_path, "D") == "there"
    assert capsys.readouterr().err == ""
    assert experiments._source(plan, tmp_path, "generated") == "made"
    assert (there, made) == ([((plan, "D"), {})], [((plan, tmp_path / "data"), {})])
    assert capsys.readouterr().err == f"smt: on GENERATED data, in {tmp_path / 'data'}\n"


# reproduce: one experiment

PLAN = """
name = "mine"
task = "chunking"
iterations = 40
seeds = [3, 1]
[data]
train = "train.txt"
dev = 5
test = "test.txt"
options = { only = "NP" }
[fixed]
h = 0.01
mu = 0.1
[[learner]]
rule = "two-point"
perturb = "score"
grid = { h = [0.01], mu = [0.1] }
[[learner]]
rule = "supervised"
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = tmp_path / "sentences"
    folder.mkdir()
    for name, n, seed in [("train.txt", 25, 1), ("test.txt", 8, 3)]:
        (folder / name).write_text(chunking_columns(generate_chunking(n, seed)))
    return folder


@pytest.fixture
def machinery(calls, monkeypatch):
    """A Runner and a search that only write down what they are asked, in order."""
    told: list[tuple] = []

    class Runner:
        def __init__(self, out, load, processes):
            told.append(("runner", out, load.func, load.args, load.keywords, processes))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            told.append(("home",))

        def run(self, runs, progress):
            progress(NOW)
            told.append(("run", runs))
            return SimpleNamespace(failures=(Failure(str(runs), "broke"),))

    def tune(plan, runner, identity, *, full_grid, progress, say):
        progress(NOW)
        say("searching")
        told.append(("tune", plan, identity, full_grid))
        return {spec.name: FOUND for spec in plan.learners if spec.grid_h}

    monkeypatch.setattr(experiments, "Runner", Runner)
    monkeypatch.setattr(experiments, "tune", tune)
    monkeypatch.setattr(experiments, "fixed_runs", lambda plan, identity: ("fixed", plan.name, identity))
    monkeypatch.setattr(experiments, "tuned_runs", lambda plan, identity, tuned: ("tuned", plan.name, identity, tuned))
    monkeypatch.setattr(experiments, "_LOG_SECONDS", 0.0)
    return told


NOW = Overview(runs=4, done=1, failed=0, steps=2_000_000, steps_done=500_000, seconds_left=None, now=())
FOUND = Tuned("two-point score", (0.02, 0.3), 0.75, (Trial(0.02, 0.3, 40, 0.75, 0.5),), 0, "")


def source_of(folder: Path) -> Source:
    paths = [str(folder / name) for name in ("train.txt", "test.txt")]
    return Source("chunking", (paths[0],), "5", paths[1], {"only": "NP"})


def reproduce(plan, out, source, phases, *, full_grid=False, processes=None):
    return experiments._reproduce(plan, out, source, phases, full_grid=full_grid, processes=processes)


def test_an_experiment_is_its_fixed_runs_its_search_and_its_tuned_runs(machinery, folder, tmp_path, capsys):
    plan, source, out = parse_experiment(PLAN, ""), source_of(folder), tmp_path / "out"
    known = source.identity
    failures = reproduce(plan, out, source, ("fixed", "tuned"), full_grid=True, processes=3)
    claimed = replace(plan, origin="files", identity=known)
    found = {"two-point score": FOUND}
    files = Files(source.train, "5", source.test, {"only": "NP"})
    assert machinery == [
        ("runner", out, experiments.load, ("chunking", files), {}, 3),
        ("run", ("fixed", "mine", known)),
        ("tune", claimed, known, True),
        ("run", ("tuned", "mine", known, found)),
        ("home",),
    ]
    assert [failure.run for failure in failures] == [
        str(("fixed", "mine", known)),
        str(("tuned", "mine", known, found)),
    ]
    assert read_experiment(out / "experiment.toml") == claimed
    assert json.loads((out / "tuning.json").read_text()) == {
        "two-point score": {
            "trials": [{"h": 0.02, "mu": 0.3, "dev": 0.75, "iterations": 40, "seeds": 1}],
            "chosen": {"h": 0.02, "mu": 0.3},
            "dev": 0.75,
            "widened": 0,
            "note": "",
        }
    }
    assert not (out / "bounds.json").exists()
    how_far = "1 of 4 runs, 25% of 2M steps"
    assert capsys.readouterr().err.splitlines() == [
        f"mine, fixed settings: {how_far}",
        f"mine, tuning: {how_far}",
        "searching",
        f"mine, tuned settings: {how_far}",
        f"mine: results are in {out}",
    ]


@pytest.mark.parametrize(("phase", "expected"), [("fixed", ["run"]), ("tuned", ["tune", "run"])])
def test_one_phase_alone(machinery, folder, tmp_path, phase, expected):
    plan = parse_experiment(PLAN, "")
    failures = reproduce(plan, tmp_path / "out", source_of(folder), (phase,))
    assert [each[0] for each in machinery] == ["runner", *expected, "home"]
    assert machinery[0][-1] is None
    assert len(failures) == 1
    if phase == "tuned":
        assert machinery[1][-1] is False
    else:
        assert not (tmp_path / "out/tuning.json").exists()


def test_without_a_grid_there_is_no_tuned_phase(machinery, folder, tmp_path, capsys):
    plan = parse_experiment(PLAN.replace("grid = { h = [0.01], mu = [0.1] }", ""), "")
    for phases in (("fixed", "tuned"), ("fixed",)):
        machinery.clear()
        reproduce(plan, tmp_path / "out", source_of(folder), phases)
        assert [each[0] for each in machinery] == ["runner", "run", "home"]
        said = "mine: no learner has a grid, so there is no tuned phase" in capsys.readouterr().err.splitlines()
        assert said == ("tuned" in phases)


def test_data_under_the_results_is_generated(machinery, folder, tmp_path):
    out = folder.parent / "out"
    (out / "data").mkdir(parents=True)
    for name in ("train.txt", "test.txt"):
        (out / "data" / name).write_bytes((folder / name).read_bytes())
    reproduce(parse_experiment(PLAN, ""), out, source_of(out / "data"), ("fixed",))
    assert read_experiment(out / "experiment.toml").origin == "generated"


def test_a_folder_of_another_plan_is_left_alone(machinery, folder, tmp_path):
    out, source = tmp_path / "out", source_of(folder)
    plan = parse_experiment(PLAN, "")
    reproduce(plan, out, source, ("fixed",))
    reproduce(replace(plan, seeds=(9,)), out, source, ("fixed",))  # more of the same
    before = (out / "experiment.toml").read_bytes()
    machinery.clear()
    with pytest.raises(UsageError) as caught:
        reproduce(replace(plan, iterations=41), out, source, ("fixed",))
    assert str(caught.value) == (f"{out}: holds runs of another plan (iterations differs); name another folder with -o")
    (folder / "train.txt").write_text((folder / "train.txt").read_text() + "\nx NN O\n")
    with pytest.raises(UsageError, match=r"holds runs of another plan \(identity differs\)"):
        reproduce(plan, out, source, ("fixed",))
    assert machinery == []
    assert (out / "experiment.toml").read_bytes() == before


def test_a_folder_that_cannot_be_made_is_said(machinery, folder, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SparsezoError) as caught:
        reproduce(parse_experiment(PLAN, ""), tmp_path / "file/a/b", source_of(folder), ("fixed",))
    assert str(caught.value) == (
        f"{tmp_path / 'file/a/b'}: cannot be made (Not a directory); name another folder with -o"
    )
    reproduce(parse_experiment(PLAN, ""), tmp_path / "new/a/b", source_of(folder), ("fixed",))
    assert (tmp_path / "new/a/b/experiment.toml").exists()


@pytest.mark.parametrize(("stop", "code"), [(KeyboardInterrupt(), 130), (Terminated(), 143)])
def test_stopped_it_says_how_to_go_on(machinery, folder, tmp_path, monkeypatch, capsys, stop, code):
    def stopped(*_args, **_keywords):
        raise stop

    monkeypatch.setattr(experiments, "fixed_runs", stopped)
    with pytest.raises(typer.Exit) as caught:
        reproduce(parse_experiment(PLAN, ""), tmp_path / "out", source_of(folder), ("fixed",))
    assert caught.value.exit_code == code
    assert capsys.readouterr().err == "stopped; the same command goes on from there\n"
    monkeypatch.setattr(experiments, "tune", stopped)
    with pytest.raises(typer.Exit) as caught:
        run_tune(replace(TUNE, task="chunking", files=files_of(folder), output=tmp_path / "t"))
    assert caught.value.exit_code == code


# reproduce, for real: the weights that are started from, and the bounds

SMT = """
name = "small"
task = "rerank"
iterations = 20
seeds = [4]
init = "w.out"
[data]
train = "train.nbest"
dev = "dev.nbest"
test = "test.nbest"
[bounds]
out-of-domain = "w.out"
in-domain = "w.in"
[[learner]]
rule = "two-point"
perturb = "active"
h = 1e-12
mu = 1e-6
grid = { h = [1e-12], mu = [1e-6] }
[[learner]]
rule = "supervised"
h = 1e-12
"""
LISTS = """\
0 ||| the small house is old ||| LM=1 TM=1 ||| 0
0 ||| a small house is old ||| LM=2 ||| 0
0 ||| a tiny house is gold ||| LM=3 TM=-1 Odd=5 ||| 0
1 ||| we all go home right now ||| LM=-1 TM=2 ||| 0
1 ||| now we all go home ||| TM=1 ||| 0
"""
REFERENCES = "the small house is old\nnow we all go home\n"


@pytest.fixture
def decoder(tmp_path) -> Path:
    """Lists and two sets of weights: by w.out the third and the second candidate are best, by w.in the first ones."""
    folder = tmp_path / "decoder"
    folder.mkdir()
    for name, lines, references in (("train", 5, 2), ("dev", 3, 1), ("test", 5, 2)):
        (folder / f"{name}.nbest").write_text("".join(LISTS.splitlines(keepends=True)[:lines]))
        (folder / f"{name}.ref").write_text("".join(REFERENCES.splitlines(keepends=True)[:references]))
    (folder / "w.out").write_text("LM 1.0\nTM 0.25\nRare 3\n")
    (folder / "w.in").write_text("TM 2.0\nLM 0.5\n")
    (folder / "plan.toml").write_text(SMT)
    return folder


START = {"LM": 1.0, "TM": 0.25, "Odd": 0.0, "Rare": 3.0}


def weights(path: Path) -> dict[str, float]:
    model = load_model(path)
    return dict(zip(model.task.names, model.W[:, 0].tolist(), strict=True))


def test_reproduce_starts_from_the_initial_weights(decoder, tmp_path, calls):
    """h is so small that the weights that come out are those that went in, in both phases and for every rule."""
    out = tmp_path / "out"
    calls("write_report")
    run_reproduce(str(decoder / "plan.toml"), str(decoder), out=out, processes=1)
    models = sorted(out.glob("runs/*/model.szo"))
    records = [json.loads((model.parent / "run.json").read_text()) for model in models]
    assert {(record["phase"], record["learner"]) for record in records} >= {
        ("fixed", "two-point active"),
        ("fixed", "supervised"),
        ("tuned", "two-point active"),
    }
    for model in models:
        assert weights(model) == pytest.approx(START, abs=1e-6)


def test_tune_starts_from_the_initial_weights(program, decoder, tmp_path):
    out = tmp_path / "out"
    data = ["--train", decoder / "train.nbest", "--dev", decoder / "dev.nbest", "--init", decoder / "w.out"]
    grid = ["--grid-h", "1e-12", "--grid-mu", "1e-6", "--iterations", "20", "--processes", 1, "-o", out]
    code, _, err = program("tune", "rerank", *data, *grid, "--json")
    assert code == 0, err
    models = list(out.glob("runs/*/model.szo"))
    assert models
    for model in models:
        assert weights(model) == pytest.approx(START, abs=1e-6)


def test_bounds_are_the_test_lists_by_the_weights_as_they_are(decoder, tmp_path, calls):
    """By w.out, LM + TM / 4: the third candidate and the second. By w.in, LM / 2 + 2 TM: the first and the first.

    The oracle has the first and the second. A feature without a weight counts as 0: Odd decides nothing.
    """
    out = tmp_path / "out"
    calls("write_report")
    run_reproduce(str(decoder / "plan.toml"), str(decoder), out=out, processes=1, phases="fixed")
    bounds = json.loads((out / "bounds.json").read_text())
    references = [REFERENCES.splitlines()]
    chosen = {
        "out-of-domain": ["a tiny house is gold", "now we all go home"],
        "in-domain": ["the small house is old", "we all go home right now"],
        "oracle": ["the small house is old", "now we all go home"],
    }
    assert list(bounds) == list(chosen)
    for name, texts in chosen.items():
        assert bounds[name]["bleu"] == pytest.approx(corpus_bleu(texts, references).bleu), name
        assert bounds[name]["sentences"] == 2
    assert len({bound["bleu"] for bound in bounds.values()}) == 3
    assert bounds["oracle"]["bleu"] == pytest.approx(1)


def test_bounds_need_test_lists(decoder):
    loaded = experiments.load("rerank", Files((str(decoder / "train.nbest"),)))
    with pytest.raises(UsageError, match=r"^bounds are of the test lists; give data\.test$"):
        experiments.bounds(loaded, Source("rerank", ()))


# tune


def files_of(folder: Path, **options: object) -> Files:
    return Files((str(folder / "train.txt"),), "5", None, options)


@pytest.mark.parametrize(
    ("task", "h", "mu"),
    [
        ("chunking", (0.01, 0.003162, 0.001), (0.1, 0.01)),
        ("rerank", (1.0, 0.1, 0.01, 0.001, 1e-4, 1e-5), (0.01, 0.001, 1e-4, 1e-5, 1e-6)),
        ("text", (10.0, 1.0, 0.1, 0.01, 0.001, 1e-4, 1e-5), (10.0, 1.0, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6)),
    ],
)
def test_grids_are_the_papers_where_none_are_given(task, h, mu):
    call = replace(TUNE, task=task)
    assert call.learner() == LearnerSpec("two-point", "score", h[0], mu[0], grid_h=h, grid_mu=mu)
    first_order = replace(call, rule="first-order").learner()
    assert first_order == LearnerSpec("first-order", None, h[0], None, grid_h=h, grid_mu=())


def test_every_setting_of_tune_reaches_its_learner():
    call = replace(
        TUNE, rule="comparison", perturb="active", criterion="annealed", gamma=0.7, step="adagrad",
        feedback="flip:0.1", grid_h="0.5,2e-1", grid_mu="3",
    )  # fmt: skip
    assert call.learner() == LearnerSpec(
        "comparison", "active", 0.5, 3.0, "adagrad", "annealed", 0.7, False, "flip:0.1", (0.5, 0.2), (3.0,)
    )
    call = replace(TUNE, rule="first-order", baseline=True, grid_h="0.5")
    assert call.learner() == LearnerSpec("first-order", None, 0.5, None, baseline=True, grid_h=(0.5,))
    with pytest.raises(UsageError, match="rule first-order perturbs nothing"):
        replace(call, grid_mu="1").learner()
    with pytest.raises(UsageError, match="--rule best: choose from"):
        replace(TUNE, rule="best").learner()


@pytest.mark.parametrize("option", ["grid_h", "grid_mu"])
def test_a_grid_is_numbers_with_commas(option):
    name = "--" + option.replace("_", "-")
    for typed in ("0.1;0.2", "", "0.1,"):
        with pytest.raises(UsageError) as caught:
            replace(TUNE, **{option: typed}).learner()
        assert str(caught.value) == f"{name} {typed}: give numbers with commas between them, such as 0.01,0.001"


def test_every_value_reaches_the_search(machinery, folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = {"only": "NP"}
    call = replace(
        TUNE, task="chunking", files=files_of(folder, **options), grid_h="0.01", grid_mu="0.1", iterations="3k",
        seeds=(5, 6), full_grid=True, processes=2, output=tmp_path / "a/b", as_json=True,
    )  # fmt: skip
    run_tune(call)
    runner, (_, plan, identity, full_grid), home = machinery
    assert runner == ("runner", tmp_path / "a/b", experiments.load, ("chunking", call.files), {}, 2)
    assert home == ("home",)
    assert (plan.name, plan.task, plan.learners) == ("tune-chunking", "chunking", (call.learner(),))
    assert (plan.iterations, plan.seeds, plan.evaluate_every) == (3000, (5, 6), None)
    assert (plan.data.train, plan.data.dev, plan.data.test, plan.data.options) == (
        call.files.train,
        "5",
        None,
        options,
    )
    assert identity == Source("chunking", call.files.train, "5", None, options).identity
    assert full_grid is True
    assert json.loads((tmp_path / "a/b/tuning.json").read_text()) == {"two-point score": FOUND.as_dict()}
    out, err = capsys.readouterr()
    assert err.splitlines() == ["tuning two-point score: 1 of 4 runs, 25% of 2M steps", "searching"]
    assert json.loads(out) == {
        "task": "chunking",
        "learner": "two-point score",
        "h": 0.02,
        "mu": 0.3,
        **FOUND.as_dict(),
        "command": shlex.join(command(call, (0.02, 0.3), 3000)),
    }
    run_tune(call)  # into the same folder: it goes on
    run_tune(replace(call, output=None, full_grid=False, processes=None))
    assert (machinery[6][1], machinery[6][-1], machinery[7][-1]) == (Path("tune-chunking"), None, False)
    assert Path("tune-chunking/tuning.json").exists()


def test_tune_needs_a_task_and_dev(machinery):
    with pytest.raises(UsageError) as caught:
        run_tune(replace(TUNE, files=Files(("a",))))
    assert str(caught.value) == "tune looks at dev: give --dev, a file or a number of inputs to hold out"
    with pytest.raises(UsageError, match=r"^task parsing: choose from"):
        run_tune(replace(TUNE, task="parsing"))
    with pytest.raises(UsageError, match=r"^--iterations many: must be"):
        run_tune(replace(TUNE, iterations="many"))
    assert machinery == []


def command(call: TuneCall, point: tuple[float, float | None], iterations: int = 7000) -> list[str]:
    found = replace(FOUND, chosen=point)
    return shlex.split(experiments._train_command(call, call.learner(), found, iterations))


def test_the_command_for_train_has_every_option(program, monkeypatch):
    """What it prints is what train understands: the call that comes out has all that went in."""
    from sparsezo.cli import commands

    seen = []
    monkeypatch.setattr(commands, "run_train", seen.append)
    options = {
        "only": "VP",
        "order": 1,
        "template": "my tpl",
        "min_count": 4,
        "format": "svmlight",
        "topics": "q",
        "raw_tf": True,
        "train_ref": ["r1", "r2"],
        "dev_ref": ["r3"],
        "init": "w",
        "store": "s",
    }
    call = replace(
        TUNE, task="rerank", files=Files(("a b", "c"), "12", None, options), rule="comparison", perturb="active",
        criterion="annealed", gamma=0.7, step="adagrad", feedback="flip:0.1", grid_h="1", grid_mu="1", seeds=(5, 6),
    )  # fmt: skip
    words = command(call, (0.00325, 0.125))
    assert words[0] == "sparsezo"
    assert program(*words[1:]) == (0, "", "")
    assert seen[0] == commands.TrainCall(
        task="rerank",
        files=call.files,
        output=Path("model.szo"),
        rule="comparison",
        perturb="active",
        criterion="annealed",
        gamma=0.7,
        h=0.00325,
        mu=0.125,
        step="adagrad",
        baseline=False,
        feedback="flip:0.1",
        iterations="7000",
        seed=5,
        evaluate_every=None,
        checkpoint_seconds=30.0,
        resume=False,
        as_json=False,
    )


def test_the_command_for_train_leaves_out_what_is_the_default():
    assert " ".join(command(TUNE, (0.5, 0.25))) == (
        "sparsezo train text --train a --dev d --rule two-point --perturb score --h 0.5 --mu 0.25 --iterations 7000 "
        "--seed 0 -o model.szo"
    )
    call = replace(TUNE, rule="first-order", baseline=True, gamma=3.0, seeds=(2, 3))
    assert " ".join(command(call, (0.5, None))) == (
        "sparsezo train text --train a --dev d --rule first-order --h 0.5 --baseline --iterations 7000 --seed 2 "
        "-o model.szo"
    )


def test_people_see_the_trials_from_short_to_long_best_first(capsys, monkeypatch):
    """Nothing is cut where a window is narrow, and nothing is taken for markup."""
    monkeypatch.setattr(show, "output", Console(highlight=False, force_terminal=False, width=30))
    call = replace(TUNE, files=Files(("[b]a",), "d"))
    trials = (
        Trial(0.1, 0.5, 2000, 0.5, 0.3),
        Trial(0.01, 0.5, 2000, 0.75, 0.2, seeds=2),
        Trial(10.0, 0.5, 500, None),
        Trial(0.001, 0.5, 2000, 0.5, 0.25),
        Trial(1.0, 0.5, 500, 0.625, 0.4),
    )
    found = Tuned("two-point score", (0.01, 0.5), 0.75, trials, 1, "the grid has grown")
    experiments._show_tuned(call, call.learner(), found, 2000)
    out, err = capsys.readouterr()
    assert err.splitlines() == [
        "         500 iterations  h 1        mu 0.5      dev 0.6250",
        "         500 iterations  h 10       mu 0.5      failed",
        "       2,000 iterations, 2 seeds  h 0.01     mu 0.5      dev 0.7500",
        "       2,000 iterations  h 0.001    mu 0.5      dev 0.5000",
        "       2,000 iterations  h 0.1      mu 0.5      dev 0.5000",
        "the grid has grown",
    ]
    assert out.splitlines() == [
        "two-point score: h 0.01  mu 0.5      dev 0.7500",
        "sparsezo train text --train '[b]a' --dev d --rule two-point --perturb score --h 0.01 --mu 0.5 "
        "--iterations 2000 --seed 0 -o model.szo",
    ]


def test_people_see_no_mu_where_nothing_is_perturbed(capsys):
    call = replace(TUNE, rule="first-order")
    found = Tuned("first-order", (0.01, None), 0.75, (Trial(0.01, None, 2000, 0.75),), 0, "")
    experiments._show_tuned(call, call.learner(), found, 2000)
    out, err = capsys.readouterr()
    assert err == "       2,000 iterations  h 0.01     dev 0.7500\n"
    assert out.splitlines()[0] == "first-order: h 0.01  dev 0.7500"


# What a person sees


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 s"),
        (89.4, "89 s"),
        (89.9, "90 s"),
        (90, "2 min"),
        (200, "3 min"),
        (89.4 * 60, "89 min"),
        (90 * 60, "1 h 30 min"),
        (125 * 60, "2 h 05 min"),
        (1440 * 60, "24 h 00 min"),
    ],
)
def test_durations(seconds, words):
    assert experiments._duration(seconds) == words


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (NOW, "1 of 4 runs, 25% of 2M steps"),
        (replace(NOW, failed=2), "1 of 4 runs, 2 failed, 25% of 2M steps"),
        (replace(NOW, seconds_left=125.0), "1 of 4 runs, 25% of 2M steps, 2 min left"),
        (replace(NOW, steps=0, steps_done=0), "1 of 4 runs, 0% of 0M steps"),
        (replace(NOW, steps=1, steps_done=1), "1 of 4 runs, 100% of 1e-06M steps"),
        (replace(NOW, steps=192_123_456, steps_done=0, seconds_left=0.0), "1 of 4 runs, 0% of 192M steps, 0 s left"),
    ],
)  # fmt: skip
def test_how_far_a_sweep_is(now, words):
    assert experiments._text(now) == words


def test_a_log_has_a_line_every_ten_seconds(monkeypatch, capsys):
    time = SimpleNamespace(now=100.0)
    monkeypatch.setattr(experiments, "time", SimpleNamespace(monotonic=lambda: time.now))
    with experiments._following("smt, tuning") as progress:
        for seconds, done in [(9.9, 1), (10.0, 2), (19.9, 3), (20.5, 4), (30.0, 5), (30.5, 6)]:
            time.now = 100 + seconds
            progress(replace(NOW, runs=9, done=done))
    assert capsys.readouterr().err.splitlines() == [
        f"smt, tuning: {done} of 9 runs, 25% of 2M steps" for done in (2, 4, 6)
    ]


def test_a_terminal_has_a_live_line(monkeypatch):
    seen = []

    class Bar:
        def __init__(self, *_columns, console, transient):
            seen.append((console, transient))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def add_task(self, title, **values):
            seen.append((title, values))
            return 7

        def update(self, line, **values):
            seen.append((line, values))

    console = SimpleNamespace(is_terminal=True)
    monkeypatch.setattr(show, "errors", console)
    monkeypatch.setattr(experiments, "Progress", Bar)
    with experiments._following("smt, tuning") as progress:
        progress(NOW)
        progress(replace(NOW, steps=0, steps_done=0))
    assert seen == [
        (console, True),
        ("smt, tuning", {"total": None, "text": "loading"}),
        (7, {"total": 2_000_000, "completed": 500_000, "text": "1 of 4 runs, 25% of 2M steps"}),
        (7, {"total": 1, "completed": 0, "text": "1 of 4 runs, 0% of 0M steps"}),
    ]


def test_ctrl_c_and_sigterm_are_told_apart_on_the_whole_way(program, decoder, tmp_path, monkeypatch):
    """The real signals, at the first report of a run; SIGINT as at a terminal, whatever the shell has made of it."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: pytest.fail("SIGTERM went past the program"))
    try:
        for number, expected in [(signal.SIGINT, 130), (signal.SIGTERM, 143)]:
            monkeypatch.setattr(
                experiments, "_log_lines", lambda title, number=number: lambda now: os.kill(os.getpid(), number)
            )
            words = ["reproduce", decoder / "plan.toml", "--data", decoder, "--processes", 1, "-o", tmp_path / "out"]
            code, _, err = program(*words)
            assert code == expected
            assert err.splitlines()[-1] == "stopped; the same command goes on from there"
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_loading_is_by_the_task(decoder):
    loaded = partial(experiments.load, "rerank", Files((str(decoder / "train.nbest"),)))()
    np.testing.assert_array_equal(loaded.W, np.zeros((3, 1)))
    with pytest.raises(UsageError, match=r"^task parsing"):
        experiments.load("parsing", Files())
