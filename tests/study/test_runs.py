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
from sparsezo.kernels import loop
from sparsezo.learner import Learner
from sparsezo.model import load_model
from sparsezo.settings import Settings
from sparsezo.storage.checksummed import read_checksummed
from sparsezo.storage.container import read_container
from sparsezo.storage.fingerprint import fingerprint
from sparsezo.study.prepared import PreparedTask
from sparsezo.study.records import read_counts
from sparsezo.study.runs import Run, drop_damaged_checkpoint, execute, find
from sparsezo.tasks.chunking.kernels.expected_f1 import node_table
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data
from sparsezo.tasks.metrics import METRICS
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
    }
    others += [replace(run, settings=replace(run.settings, **{name: value})) for name, value in changed.items()]
    plain = Settings("first-order", None, 0.1, None)
    others += [replace(run, settings=plain), replace(run, settings=replace(plain, baseline=True))]
    asking = Settings("part", None, 0.1, None)
    of_questions = {"about": "chunk", "ask": "random", "rater_error": "0.1", "rehearse": 1}
    others += [replace(run, settings=replace(asking, **{name: value})) for name, value in of_questions.items()]
    others += [replace(run, settings=asking), replace(run, answers=50)]
    others += [replace(run, settings=Settings("review", None, 0.1, None, review=how)) for how in ("all", "marked")]
    others += [replace(run, settings=Settings("review", None, 0.1, None, seconds="slow"))]
    assert {*changed, *of_questions, "baseline", "review", "seconds"} == {field.name for field in fields(Settings)}
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
    record = execute(RUN, tmp_path, PreparedTask(loaded))
    folder = RUN.folder(tmp_path)
    assert names(folder) == ["curve.csv", "model.szo", "run.json", "test.counts"]
    assert read_checksummed(folder / "run.json") == record
    assert find(RUN, tmp_path) == record
    outcome = Training(loaded.task, loaded.data, LIVELY, 500, evaluate_every=200, dev_losses=True).go()
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
        "files": {name: fingerprint((folder / name).read_bytes()) for name in ("curve.csv", "test.counts")},
    }
    assert set(record["result"]) == set(outcome.result)
    np.testing.assert_array_equal(load_model(folder / "model.szo", "chunking").W, outcome.model.W)
    lines = (folder / "curve.csv").read_bytes().decode().split("\n")
    names_of = ("iterations", "average_loss", "dev", "answers", "tokens", "looked", "corrections", "whole", "dev_loss")
    assert lines[0] == ",".join(names_of)
    points = list(zip(*(outcome.model.curve[name].tolist() for name in names_of), strict=True))
    assert lines[1:] == [*(",".join(map(repr, point)) for point in points), ""]  # to the last bit
    assert [point[0] for point in points] == [0, 200, 400, 500]


def test_without_dev_and_test_there_is_nothing_of_them(loaded, tmp_path):
    prepared = PreparedTask(SimpleNamespace(task=loaded.task, data=Data(loaded.data.train), W=None))
    run = replace(RUN, keep_model=False, paper=None)
    record = execute(run, tmp_path, prepared)
    assert names(run.folder(tmp_path)) == ["curve.csv", "run.json"]
    assert (record["test_report"], record["result"]["test"], record["result"]["dev"]) == (None, None, None)
    lines = (run.folder(tmp_path) / "curve.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == ["0", "200", "400", "500"]
    assert all(line.split(",")[2] == "" for line in lines[1:])


class Crash(BaseException):
    """The machine goes down."""


@pytest.mark.parametrize("name", ["curve.csv", "model.szo", "run.json", "test.counts"])
def test_a_crash_while_results_are_written_loses_nothing(loaded, tmp_path, monkeypatch, name):
    whole = execute(RUN, tmp_path / "whole", PreparedTask(loaded))
    really = os.replace

    def replaced(temporary, path):
        if path.name == name:
            raise Crash
        really(temporary, path)

    with monkeypatch.context() as patch:
        patch.setattr("sparsezo.storage.files.os.replace", replaced)
        with pytest.raises(Crash):
            execute(RUN, tmp_path, PreparedTask(loaded), checkpoint_seconds=0.0)
    assert find(RUN, tmp_path) is None
    assert "checkpoint" in names(RUN.folder(tmp_path))
    steps = []
    run = Learner.run
    monkeypatch.setattr(Learner, "run", lambda learner, gold, n: (steps.append(n), run(learner, gold, n)))
    record = execute(RUN, tmp_path, PreparedTask(loaded))
    assert sum(steps) == 0  # all was learned
    assert untimed(record) == untimed(whole)
    assert names(RUN.folder(tmp_path)) == ["curve.csv", "model.szo", "run.json", "test.counts"]
    curves = [(RUN.folder(out) / "curve.csv").read_bytes() for out in (tmp_path, tmp_path / "whole")]
    assert curves[0] == curves[1]


def test_a_run_that_was_stopped_goes_on(loaded, tmp_path):
    whole = execute(RUN, tmp_path / "whole", PreparedTask(loaded))

    def stop(now):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(RUN, tmp_path, PreparedTask(loaded), stop)
    assert names(RUN.folder(tmp_path)) == ["checkpoint"]
    _, arrays = read_container(RUN.folder(tmp_path) / "checkpoint", "checkpoint")
    assert arrays["counts"][loop.STEP] == 200
    seen = []
    record = execute(RUN, tmp_path, PreparedTask(loaded), seen.append)
    assert (seen[0].step > 200, seen[-1].step) == (True, 500)
    assert untimed(record) == untimed(whole)


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
    """Whatever has happened to it: tests/faults tries more."""
    record, folder = execute(RUN, tmp_path, PreparedTask(loaded)), RUN.folder(tmp_path)
    for name, damage in (
        ("run.json", lambda raw: raw.replace(b'"dev": 0.', b'"dev": 1.', 1)),
        ("curve.csv", lambda raw: raw.replace(b"\n500,", b"\n501,", 1)),
        ("test.counts", lambda raw: raw[:-1]),
        ("curve.csv", None),
        ("test.counts", None),
    ):
        path, said = folder / name, []
        whole = path.read_bytes()
        path.unlink()
        if damage is not None:
            path.write_bytes(damage(whole))
        assert find(RUN, tmp_path, said.append) is None
        assert len(said) == 1
        assert said[0].startswith(f"{path}: is damaged (")
        assert said[0].endswith("; the command that made it does the run again")
        path.write_bytes(whole)
        assert find(RUN, tmp_path, said.append) == record


def test_a_record_of_another_run_is_not_taken_for_it(tmp_path):
    finished(replace(RUN, data="other"), tmp_path)
    os.rename(replace(RUN, data="other").folder(tmp_path), RUN.folder(tmp_path))
    said = []
    assert find(RUN, tmp_path, said.append) is None
    assert "(it is of another run)" in said[0]


def test_a_checkpoint_that_is_damaged_is_dropped_and_said(loaded, tmp_path):
    def stop(now):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(RUN, tmp_path, PreparedTask(loaded), stop)
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
    assert record == {**old, **own, "files": {"curve.csv": fingerprint(CURVE.encode())}}
    folder = run.folder(tmp_path)
    assert read_checksummed(folder / "run.json") == record
    assert ((folder / "curve.csv").read_text(), (folder / "model.szo").read_text()) == (CURVE, "a model")
    assert json.loads((twin.folder(tmp_path) / "run.json").read_text()) == old
    (twin.folder(tmp_path) / "model.szo").unlink()  # each has its own
    assert (folder / "model.szo").exists()
    assert find(run, tmp_path) == record


def test_taking_over_works_without_links(tmp_path, monkeypatch):
    def link(_source, _target):
        raise OSError("no links here")

    monkeypatch.setattr("sparsezo.study.runs.os.link", link)
    finished(replace(RUN, phase="tune"), tmp_path)
    assert find(RUN, tmp_path)["result"] == {"dev": 0.25}
    folder = RUN.folder(tmp_path)
    assert ((folder / "curve.csv").read_text(), (folder / "model.szo").read_text()) == (CURVE, "a model")


def test_a_twin_that_lacks_what_is_needed_is_passed_by(tmp_path):
    for phase, lost in (("tune", "model.szo"), ("tuned", "curve.csv")):
        twin = replace(RUN, phase=phase)
        finished(twin, tmp_path)
        (twin.folder(tmp_path) / lost).unlink()
    assert find(RUN, tmp_path) is None
    light = replace(RUN, keep_model=False)
    assert find(light, tmp_path)["phase"] == "fixed"
    assert names(light.folder(tmp_path)) == ["curve.csv", "run.json"]


# What runs share


def test_an_annealed_run_after_a_map_run_has_its_room(loaded, tmp_path):
    prepared = PreparedTask(loaded)
    annealed = replace(RUN, settings=replace(LIVELY, criterion="annealed"))
    execute(RUN, tmp_path, prepared)
    problem = Training(prepared.task, prepared.data, annealed.settings, 1).problem
    longest = int(np.diff(prepared.data.train.offsets).max())
    assert problem.task.nodes.shape == node_table(longest)[0].shape
    after, alone = execute(annealed, tmp_path, prepared), execute(annealed, tmp_path / "alone", PreparedTask(loaded))
    assert untimed(after) == untimed(alone)


def test_runs_on_one_bench_start_from_the_same_weights(loaded, tmp_path):
    W = np.random.default_rng(7).standard_normal((loaded.task.n_features, loaded.task.n_labels)).astype(np.float32)
    given = W.copy()
    prepared = PreparedTask(SimpleNamespace(task=loaded.task, data=loaded.data, W=W))
    records = [execute(RUN, tmp_path / name, prepared) for name in ("first", "second")]
    np.testing.assert_array_equal(prepared.W, given)
    assert untimed(records[0]) == untimed(records[1])
    models = [load_model(RUN.folder(tmp_path / name) / "model.szo").W for name in ("first", "second")]
    np.testing.assert_array_equal(models[0], models[1])
    from_zero = execute(RUN, tmp_path / "zero", PreparedTask(loaded))
    assert untimed(from_zero) != untimed(records[0])


# What test is made of


def test_a_run_leaves_what_its_test_result_is_made_of(loaded, tmp_path):
    record = execute(RUN, tmp_path, PreparedTask(loaded))
    counts = read_counts(RUN.folder(tmp_path), record)
    assert counts.shape == (len(loaded.data.test), 3)
    assert METRICS["f1"](counts.sum(axis=0)) == pytest.approx(record["result"]["test"])
    execute(replace(RUN, keep_model=False, settings=replace(LIVELY, seed=9)), tmp_path, PreparedTask(loaded))
    assert len(list(tmp_path.glob("runs/*/test.counts"))) == 1  # trials of tuning leave none


def test_the_same_work_of_another_phase_brings_its_counts(loaded, tmp_path):
    record = execute(RUN, tmp_path, PreparedTask(loaded))
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
