"""One run and its folder: what it is known by, what it leaves behind, in which order, and what runs share."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import fields, replace
from types import SimpleNamespace

import numba
import numpy as np
import pytest

import sparsezo
from sparsezo.experiments import runs
from sparsezo.experiments.records import read_counts
from sparsezo.experiments.runs import Bench, Run, drop_damaged_checkpoint, execute, find
from sparsezo.kernels import loop
from sparsezo.learner import Learner
from sparsezo.model import load_model
from sparsezo.settings import Settings
from sparsezo.storage.container import read_container
from sparsezo.storage.sealed import read_sealed, sum_of
from sparsezo.tasks.chunking.expected_f1 import node_table
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.counts import METRICS
from sparsezo.tasks.loading import Data
from sparsezo.training import Training

LIVELY = Settings("two-point", "score", 0.05, 0.5, seed=3)
RUN = Run("an experiment", "chunking", "two-point score", "fixed", LIVELY, 500, 200, "the data", paper=0.5)
TIMINGS = {"seconds", "us_per_iteration"}


@pytest.fixture(scope="module")
def loaded():
    task, train = Chunking.fit(chunking_corpus(30, seed=1), only="NP")
    data = Data(train, task.seen(chunking_corpus(20, seed=2)), task.seen(chunking_corpus(20, seed=3)))
    return SimpleNamespace(task=task, data=data, W=None)


def untimed(record):
    return {**record, "result": {k: v for k, v in record["result"].items() if k not in TIMINGS}}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# What it is known by


def test_a_run_is_known_by_what_it_does():
    run = Run("a", "chunking", "x", "fixed", Settings(), 100, 1, "data")
    assert run.hash == "875eb0c1ff661d4454d0"  # for ever: or finished work would be done again
    others = [
        replace(run, task="text"),
        replace(run, phase="tune"),
        replace(run, phase="tuned"),
        replace(run, iterations=101),
        replace(run, evaluate_every=2),
        replace(run, data="other"),
    ]
    changed = {
        "rule": "comparison",
        "perturb": "all",
        "h": 1.0,
        "mu": 0.2,
        "step": "adagrad",
        "criterion": "annealed",
        "gamma": 2.0,
        "seed": 1,
        "feedback": "binary",
        "batch": 64,
    }
    others += [replace(run, settings=replace(run.settings, **{name: value})) for name, value in changed.items()]
    of_samples = {"samples": 2, "antithetic": True}  # batch 2 without, then these
    others += [
        replace(run, settings=replace(run.settings, batch=2, **dict([*of_samples.items()][:n]))) for n in range(3)
    ]
    plain = Settings("first-order", None, 0.1, None)
    others += [replace(run, settings=plain), replace(run, settings=replace(plain, baseline=True))]
    asking = Settings("part", None, 0.1, None)
    of_questions = {"about": "chunk", "ask": "random", "rater_error": "0.1", "rehearse": 1}
    others += [replace(run, settings=replace(asking, **{name: value})) for name, value in of_questions.items()]
    others += [replace(run, settings=asking), replace(run, answers=50)]
    assert {*changed, *of_questions, *of_samples, "baseline"} == {field.name for field in fields(Settings)}
    assert len({run.hash, *(other.hash for other in others)}) == 1 + len(others)


def test_a_run_is_not_known_by_its_names():
    run = Run("a", "chunking", "x", "fixed", Settings(), 100, 1, "data")
    assert replace(run, experiment="b").hash == run.hash
    assert replace(run, learner="y").hash == run.hash
    assert replace(run, paper=1.0).hash == run.hash
    assert replace(run, keep_model=False).hash == run.hash


def test_a_run_has_a_folder_and_a_line(tmp_path):
    assert RUN.folder(tmp_path) == tmp_path / "runs" / RUN.hash
    assert str(RUN) == "two-point score, fixed, h 0.05, mu 0.5, seed 3"
    plain = replace(RUN, settings=Settings("first-order", None, 1e-5, None), learner="first-order", phase="tuned")
    assert str(plain) == "first-order, tuned, h 1e-05, seed 0"


# What it leaves behind


def test_a_finished_run_in_its_folder(loaded, tmp_path):
    record = execute(RUN, tmp_path, Bench(loaded))
    folder = RUN.folder(tmp_path)
    assert names(folder) == ["curve.csv", "model.szo", "run.json", "test.counts"]
    assert read_sealed(folder / "run.json") == record
    assert find(RUN, tmp_path) == record
    outcome = Training(loaded.task, loaded.data, LIVELY, 500, evaluate_every=200).go()
    assert untimed(record) == {
        "experiment": "an experiment",
        "task": "chunking",
        "learner": "two-point score",
        "phase": "fixed",
        "seed": 3,
        "settings": LIVELY.as_dict(),
        "iterations": 500,
        "evaluate_every": 200,
        "data": "the data",
        "result": untimed({"result": outcome.result})["result"],
        "test_report": outcome.test.report,
        "versions": {
            "sparsezo": sparsezo.__version__,
            "numpy": np.__version__,
            "numba": numba.__version__,
            "python": platform.python_version(),
        },
        "hash": RUN.hash,
        "paper": 0.5,
        "files": {name: sum_of((folder / name).read_bytes()) for name in ("curve.csv", "test.counts")},
    }
    assert set(record["result"]) == set(outcome.result)
    np.testing.assert_array_equal(load_model(folder / "model.szo", "chunking").W, outcome.model.W)
    lines = (folder / "curve.csv").read_bytes().decode().split("\n")
    assert lines[0] == "iterations,average_loss,dev,answers"
    columns = (outcome.model.curve[name].tolist() for name in ("iterations", "average_loss", "dev", "answers"))
    points = list(zip(*columns, strict=True))
    assert lines[1:] == [
        *(f"{step},{loss!r},{dev!r},{told}" for step, loss, dev, told in points),
        "",
    ]  # to the last bit
    assert [point[0] for point in points] == [0, 200, 400, 500]


def test_without_dev_and_test_there_is_nothing_of_them(loaded, tmp_path):
    bench = Bench(SimpleNamespace(task=loaded.task, data=Data(loaded.data.train), W=None))
    run = replace(RUN, keep_model=False, paper=None)
    record = execute(run, tmp_path, bench)
    assert names(run.folder(tmp_path)) == ["curve.csv", "run.json"]
    assert (record["test_report"], record["result"]["test"], record["result"]["dev"]) == (None, None, None)
    lines = (run.folder(tmp_path) / "curve.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == ["0", "200", "400", "500"]
    assert all(line.split(",")[2] == "" for line in lines[1:])


class Crash(BaseException):
    """The machine goes down."""


def test_the_record_comes_last_and_the_checkpoint_goes_after_it(loaded, tmp_path, monkeypatch):
    written, at_the_end = [], []
    really = os.replace

    def replaced(temporary, path):
        written.append(path.name)
        really(temporary, path)

    finish = Training.finish

    def finishing(training):
        at_the_end.append(names(training.checkpoint.parent))
        finish(training)

    monkeypatch.setattr("sparsezo.storage.files.os.replace", replaced)
    monkeypatch.setattr(Training, "finish", finishing)
    execute(RUN, tmp_path, Bench(loaded), checkpoint_seconds=0.0)
    while written[0] == "checkpoint":
        written.pop(0)
    assert sorted(written[:-1]) == ["curve.csv", "model.szo", "test.counts"]
    assert written[-1] == "run.json"
    assert at_the_end == [["checkpoint", "curve.csv", "model.szo", "run.json", "test.counts"]]
    assert names(RUN.folder(tmp_path)) == ["curve.csv", "model.szo", "run.json", "test.counts"]


@pytest.mark.parametrize("name", ["curve.csv", "model.szo", "run.json", "test.counts"])
def test_a_crash_while_results_are_written_loses_nothing(loaded, tmp_path, monkeypatch, name):
    whole = execute(RUN, tmp_path / "whole", Bench(loaded))
    really = os.replace

    def replaced(temporary, path):
        if path.name == name:
            raise Crash
        really(temporary, path)

    with monkeypatch.context() as patch:
        patch.setattr("sparsezo.storage.files.os.replace", replaced)
        with pytest.raises(Crash):
            execute(RUN, tmp_path, Bench(loaded), checkpoint_seconds=0.0)
    assert find(RUN, tmp_path) is None
    assert "checkpoint" in names(RUN.folder(tmp_path))
    steps = []
    run = Learner.run
    monkeypatch.setattr(Learner, "run", lambda learner, gold, n: (steps.append(n), run(learner, gold, n)))
    record = execute(RUN, tmp_path, Bench(loaded))
    assert sum(steps) == 0  # all was learned
    assert untimed(record) == untimed(whole)
    assert names(RUN.folder(tmp_path)) == ["curve.csv", "model.szo", "run.json", "test.counts"]
    curves = [(RUN.folder(out) / "curve.csv").read_bytes() for out in (tmp_path, tmp_path / "whole")]
    assert curves[0] == curves[1]


def test_a_run_that_was_stopped_goes_on(loaded, tmp_path):
    whole = execute(RUN, tmp_path / "whole", Bench(loaded))

    def stop(now):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(RUN, tmp_path, Bench(loaded), stop)
    assert names(RUN.folder(tmp_path)) == ["checkpoint"]
    _, arrays = read_container(RUN.folder(tmp_path) / "checkpoint", "checkpoint")
    assert arrays["counts"][loop.STEP] == 200
    seen = []
    record = execute(RUN, tmp_path, Bench(loaded), seen.append)
    assert (seen[0].step > 200, seen[-1].step) == (True, 500)
    assert untimed(record) == untimed(whole)


def test_what_a_run_hands_to_its_training(loaded, tmp_path, monkeypatch):
    W = np.ones((loaded.task.n_features, loaded.task.n_labels), np.float32)
    bench = Bench(SimpleNamespace(task=loaded.task, data=loaded.data, W=W))
    handed = []

    class Watched(Training):
        def __init__(self, *args, **options):
            handed.append((args, options))
            super().__init__(*args, **options)

    monkeypatch.setattr(runs, "Training", Watched)
    execute(RUN, tmp_path, bench, checkpoint_seconds=12.5)
    execute(replace(RUN, data="other"), tmp_path, bench)
    (args, options), (_, second) = handed
    assert args == (bench.task, bench.data, LIVELY, 500)
    assert options.pop("W") is W
    expected = {
        "evaluate_at": (),
        "test_looks": False,
        "evaluate_every": 200,
        "checkpoint": RUN.folder(tmp_path) / "checkpoint",
        "resume": True,
    }
    assert options == {**expected, "checkpoint_seconds": 12.5, "answers": None}
    assert second["checkpoint_seconds"] == 30.0


# Finding it again


CURVE = "iterations,average_loss,dev\n0,1.0,0.25\n500,0.5,\n"


def finished(run, out, text=CURVE, model="a model"):
    """A folder as a finished run left it before there were sums."""
    folder = run.folder(out)
    folder.mkdir(parents=True)
    (folder / "curve.csv").write_text(text)
    (folder / "model.szo").write_text(model)
    record = {
        "experiment": "before",
        "task": run.task,
        "learner": "older name",
        "phase": run.phase,
        "seed": 3,
        "settings": run.settings.as_dict(),
        "iterations": 500,
        "evaluate_every": 200,
        "data": run.data,
        "result": {"dev": 0.25},
        "test_report": {"f1": 0.125},
        "versions": {"sparsezo": "0"},
        "hash": run.hash,
        "paper": 0.9,
    }
    (folder / "run.json").write_text(json.dumps(record))
    return record


def test_what_is_not_there_is_not_found(tmp_path):
    assert find(RUN, tmp_path) is None
    RUN.folder(tmp_path).mkdir(parents=True)
    assert find(RUN, tmp_path) is None
    finished(replace(RUN, data="other"), tmp_path)
    finished(replace(RUN, phase="tune", iterations=501), tmp_path)
    assert find(RUN, tmp_path) is None


def test_what_is_damaged_is_said_and_counts_as_not_done(loaded, tmp_path):
    """Whatever of it: one letter of the record, its name for another, the curve, the folder that should be a file."""
    record, folder = execute(RUN, tmp_path, Bench(loaded)), RUN.folder(tmp_path)
    whole = {name: (folder / name).read_bytes() for name in ("run.json", "curve.csv")}
    no_sum = "it does not have the sum that it was written with"
    for name, before, after, why in (
        ("run.json", b'"dev": 0.', b'"dev": 1.', no_sum),
        ("run.json", b'"sealed": "blake2b"', b'"sealer": "blake2b"', no_sum),
        ("run.json", b'"sum"', b'"sun"', no_sum),
        ("run.json", b"{", b"", "Extra data: line 2 column 10 (char 10)"),
        ("curve.csv", b"\n500,", b"\n501,", no_sum),
        ("curve.csv", whole["curve.csv"], b"", no_sum),
    ):
        (folder / name).write_bytes(whole[name].replace(before, after, 1))
        said = []
        assert find(RUN, tmp_path, said.append) is None
        assert said == [f"{folder / name}: is damaged ({why}); the command that made it does the run again"]
        (folder / name).write_bytes(whole[name])
        assert find(RUN, tmp_path, said.append) == record
        assert len(said) == 1
    (folder / "curve.csv").unlink()
    said = []
    assert find(RUN, tmp_path, said.append) is None
    assert said == [f"{folder / 'curve.csv'}: is damaged (it is missing); the command that made it does the run again"]
    (folder / "run.json").unlink()
    (folder / "run.json").mkdir()
    assert find(RUN, tmp_path, said.append) is None
    assert said[1].startswith(f"{folder / 'run.json'}: is damaged (Is a directory);")


def test_a_record_of_another_run_is_not_taken_for_it(tmp_path):
    finished(replace(RUN, data="other"), tmp_path)
    os.rename(replace(RUN, data="other").folder(tmp_path), RUN.folder(tmp_path))
    said = []
    assert find(RUN, tmp_path, said.append) is None
    assert "(it is of another run)" in said[0]


def test_a_damaged_twin_is_not_taken_over(tmp_path):
    twin = replace(RUN, phase="tune")
    finished(twin, tmp_path)
    (twin.folder(tmp_path) / "curve.csv").write_text("iterations,average_loss,dev\n0,x,1\n")
    said = []
    assert find(RUN, tmp_path, said.append) is None
    assert said == [
        f"{twin.folder(tmp_path) / 'curve.csv'}: is damaged (could not convert string to float: 'x'); "
        "the command that made it does the run again"
    ]


def test_a_checkpoint_that_is_damaged_is_dropped_and_said(loaded, tmp_path):
    def stop(now):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(RUN, tmp_path, Bench(loaded), stop)
    path, said = RUN.folder(tmp_path) / "checkpoint", []
    drop_damaged_checkpoint(RUN, tmp_path, said.append)
    assert (path.exists(), said) == (True, [])
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    drop_damaged_checkpoint(RUN, tmp_path, said.append)
    assert not path.exists()
    assert (len(said), said[0].startswith(f"{path}: is damaged (")) == (1, True)
    assert said[0].endswith("; its run starts anew")
    drop_damaged_checkpoint(RUN, tmp_path, said.append)  # nothing to do
    assert len(said) == 1


@pytest.mark.parametrize(
    ("phase", "before"), [(a, b) for a in ("fixed", "tune", "tuned") for b in ("fixed", "tune", "tuned") if a != b]
)
def test_the_same_work_of_another_phase_is_taken_over(tmp_path, phase, before):
    run, twin = replace(RUN, phase=phase), replace(RUN, phase=before)
    old = finished(twin, tmp_path)
    run.folder(tmp_path).mkdir()
    (run.folder(tmp_path) / "curve.csv").write_text("half a curve")  # left by a crash
    record = find(run, tmp_path)
    own = {"experiment": "an experiment", "learner": "two-point score", "phase": phase, "paper": 0.5, "hash": run.hash}
    assert record == {**old, **own, "files": {"curve.csv": sum_of(CURVE.encode())}}
    folder = run.folder(tmp_path)
    assert read_sealed(folder / "run.json") == record
    assert ((folder / "curve.csv").read_text(), (folder / "model.szo").read_text()) == (CURVE, "a model")
    assert json.loads((twin.folder(tmp_path) / "run.json").read_text()) == old
    (twin.folder(tmp_path) / "model.szo").unlink()  # each has its own
    assert (folder / "model.szo").exists()
    assert find(run, tmp_path) == record


def test_taking_over_works_without_links(tmp_path, monkeypatch):
    def link(_source, _target):
        raise OSError("no links here")

    monkeypatch.setattr("sparsezo.experiments.runs.os.link", link)
    finished(replace(RUN, phase="tune"), tmp_path)
    assert find(RUN, tmp_path)["result"] == {"dev": 0.25}
    folder = RUN.folder(tmp_path)
    assert ((folder / "curve.csv").read_text(), (folder / "model.szo").read_text()) == (CURVE, "a model")


def test_its_own_record_is_taken_before_another_phases(tmp_path):
    finished(replace(RUN, phase="tune"), tmp_path, CURVE.replace("0.25", "0.75"))
    own = finished(RUN, tmp_path)
    assert find(RUN, tmp_path) == own
    assert (RUN.folder(tmp_path) / "curve.csv").read_text() == CURVE


def test_a_twin_that_lacks_what_is_needed_is_passed_by(tmp_path):
    for phase, lost in (("tune", "model.szo"), ("tuned", "curve.csv")):
        twin = replace(RUN, phase=phase)
        finished(twin, tmp_path)
        (twin.folder(tmp_path) / lost).unlink()
    assert find(RUN, tmp_path) is None
    light = replace(RUN, keep_model=False)
    assert find(light, tmp_path)["phase"] == "fixed"
    assert names(light.folder(tmp_path)) == ["curve.csv", "run.json"]


def test_a_crash_while_taking_over_leaves_no_record(tmp_path, monkeypatch):
    finished(replace(RUN, phase="tune"), tmp_path)

    def link(source, target):
        if target.name == "model.szo":
            raise Crash
        os.symlink(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("sparsezo.experiments.runs.os.link", link)
        with pytest.raises(Crash):
            find(RUN, tmp_path)
    assert names(RUN.folder(tmp_path)) == ["curve.csv"]
    assert find(RUN, tmp_path)["hash"] == RUN.hash


# What runs share


def test_arrays_are_made_once_for_each_use(loaded):
    asked = []

    class Counting:
        name = "counting"

        def problem(self, data, *, learn, risk):
            asked.append(("problem", data, learn, risk))
            return object()

        def gold(self, data):
            asked.append(("gold", data))
            return object()

    train, dev = ["train"], ["dev"]
    task = Bench(SimpleNamespace(task=Counting(), data=Data(train, dev), W=None)).task
    uses = [
        lambda: task.problem(train),
        lambda: task.problem(train, learn=False),
        lambda: task.problem(train, risk=True),
        lambda: task.problem(dev, learn=False),
        lambda: task.gold(train),
        lambda: task.gold(dev),
    ]
    first, second = [use() for use in uses], [use() for use in uses]
    assert all(a is b for a, b in zip(first, second, strict=True))
    assert len({id(each) for each in first}) == len(uses)
    assert asked == [
        ("problem", train, True, False),
        ("problem", train, False, False),
        ("problem", train, True, True),
        ("problem", dev, False, False),
        ("gold", train),
        ("gold", dev),
    ]
    assert task.name == "counting"


def test_an_annealed_run_after_a_map_run_has_its_room(loaded, tmp_path):
    bench = Bench(loaded)
    annealed = replace(RUN, settings=replace(LIVELY, criterion="annealed"))
    execute(RUN, tmp_path, bench)
    problem = Training(bench.task, bench.data, annealed.settings, 1).problem
    longest = int(np.diff(bench.data.train.offsets).max())
    assert problem.task.nodes.shape == node_table(longest)[0].shape
    after, alone = execute(annealed, tmp_path, bench), execute(annealed, tmp_path / "alone", Bench(loaded))
    assert untimed(after) == untimed(alone)


def test_runs_on_one_bench_start_from_the_same_weights(loaded, tmp_path):
    W = np.random.default_rng(7).standard_normal((loaded.task.n_features, loaded.task.n_labels)).astype(np.float32)
    given = W.copy()
    bench = Bench(SimpleNamespace(task=loaded.task, data=loaded.data, W=W))
    records = [execute(RUN, tmp_path / name, bench) for name in ("first", "second")]
    np.testing.assert_array_equal(bench.W, given)
    assert untimed(records[0]) == untimed(records[1])
    models = [load_model(RUN.folder(tmp_path / name) / "model.szo").W for name in ("first", "second")]
    np.testing.assert_array_equal(models[0], models[1])
    from_zero = execute(RUN, tmp_path / "zero", Bench(loaded))
    assert untimed(from_zero) != untimed(records[0])


def test_compiling_is_one_step_of_all_and_of_looking_at_dev(loaded, monkeypatch):
    W = np.ones((loaded.task.n_features, loaded.task.n_labels), np.float32)
    bench = Bench(SimpleNamespace(task=loaded.task, data=loaded.data, W=W))
    made = []

    class Watched(Training):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            made.append(self)

    monkeypatch.setattr(runs, "Training", Watched)
    bench.compile()
    (training,) = made
    assert (training.learner.step, training.iterations, len(training.curve)) == (1, 1, 2)
    assert training.settings == Settings("two-point", "all", 1e-6, 1e-6)  # whatever the data, no harm
    assert (training.data.train, training.data.dev, training.data.test) == (loaded.data.train, loaded.data.dev, None)
    assert training.problem is bench.task.problem(loaded.data.train)  # kept for the runs that follow
    assert training._start is not None
    np.testing.assert_array_equal(bench.W, 1)


# What test is made of


def test_a_run_leaves_what_its_test_result_is_made_of(loaded, tmp_path):
    record = execute(RUN, tmp_path, Bench(loaded))
    counts = read_counts(RUN.folder(tmp_path), record)
    assert counts.shape == (len(loaded.data.test), 3)
    assert METRICS["f1"](counts.sum(axis=0)) == pytest.approx(record["result"]["test"])
    execute(replace(RUN, keep_model=False, settings=replace(LIVELY, seed=9)), tmp_path, Bench(loaded))
    assert len(list(tmp_path.glob("runs/*/test.counts"))) == 1  # trials of tuning leave none


def test_a_run_whose_counts_are_damaged_is_done_again(loaded, tmp_path):
    execute(RUN, tmp_path, Bench(loaded))
    path, said = RUN.folder(tmp_path) / "test.counts", []
    for broken in (path.read_bytes()[:-1], None):
        path.unlink()
        if broken is not None:
            path.write_bytes(broken)
        assert find(RUN, tmp_path, said.append) is None
        assert "test.counts" in said[-1]


def test_the_same_work_of_another_phase_brings_its_counts(loaded, tmp_path):
    record = execute(RUN, tmp_path, Bench(loaded))
    tuned = replace(RUN, phase="tuned")
    assert find(tuned, tmp_path)["files"] == record["files"]
    assert (read_counts(tuned.folder(tmp_path), record) == read_counts(RUN.folder(tmp_path), record)).all()


# What runs of one seed have in common


def test_runs_of_one_seed_see_the_same_inputs_whatever_the_rule(loaded):
    """And draw the same directions with the same perturbation: so their differences are taken seed by seed."""
    problem = loaded.task.problem(loaded.data.train)
    seen = {}
    for rule in ("two-point", "baseline", "comparison"):
        for seed in (3, 4):
            learner = Learner(problem, replace(LIVELY, rule=rule, seed=seed))
            proposals = [learner.ask() for _ in range(30)]
            seen[rule, seed] = [(proposal.x, tuple(proposal.candidate)) for proposal in proposals]
    assert seen["two-point", 3] == seen["baseline", 3] == seen["comparison", 3]
    assert seen["two-point", 3] != seen["two-point", 4]
