"""A run: the best model on dev, its curve and result, checkpoints, and going on after being stopped, bit for bit."""

from __future__ import annotations

import math
import re
import signal
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from sparsezo import __version__, training
from sparsezo.errors import DamagedError, UsageError
from sparsezo.kernels import loop
from sparsezo.learner import Learner, predict
from sparsezo.settings import Settings
from sparsezo.storage.container import read_container, write_container
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data
from sparsezo.tasks.metrics import f1
from sparsezo.training import Progress, Training, default_interval

SETTINGS = [
    Settings("two-point", "score", 0.01, 0.1),
    Settings("two-point", "all", 0.003, 0.1),
    Settings("baseline", "active", 0.01, 0.1, step="adagrad"),
    Settings("first-order", None, 0.05, None, baseline=True),
]
LIVELY = Settings("two-point", "score", 0.05, 0.5, seed=3)  # dev goes up and down


@pytest.fixture(scope="module")
def data():
    task, train = Chunking.fit(chunking_corpus(60, seed=1), only="NP")
    return task, Data(train, task.seen(chunking_corpus(40, seed=2)), task.seen(chunking_corpus(40, seed=3)))


@pytest.fixture(scope="module")
def task(data):
    return data[0]


@pytest.fixture(scope="module")
def parts(data):
    return data[1]


class Changed:
    """A task with some things of its own, else as it was."""

    def __init__(self, task, **own):
        self.__dict__ |= {"_task": task, **own}

    def __getattr__(self, name):
        return getattr(self._task, name)


def scripted(task, values):
    """A task whose looks at dev give these values, one after the other."""
    left = iter(values)
    return Changed(task, quality=lambda _problem, _gold, _outputs: next(left))


def weights_after(task, parts, settings, steps, W=None):
    """By a learner of its own, that nobody looks at."""
    learner = Learner(task.problem(parts.train), settings, W)
    learner.run(task.gold(parts.train), steps)
    return learner.weights().copy()


def value_on_test(task, parts, W):
    return task.scores(parts.test, predict(task.problem(parts.test, learn=False), W)).value


class Stop:
    """Interrupt a run as Ctrl-C would: at its n-th look at the clock, and not before a step."""

    def __init__(self, looks: int, step: int) -> None:
        self.left, self.step = looks, step

    def __call__(self, now: Progress) -> None:
        self.left -= 1
        if self.left <= 0 and now.step >= self.step:
            raise KeyboardInterrupt


def stopped(run: Training, looks: int = 1, step: int = 0) -> Training:
    with pytest.raises(KeyboardInterrupt):
        run.go(Stop(looks, step))
    return run


class Clock:
    """Time passes where it is said to: so many seconds a step of learning, and whatever a look at dev takes."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pace = 2.0**-10
        self.ran: list[int] = []

    def perf_counter(self) -> float:
        return self.now


def forward(run):
    """Learning as it is, but calls that do not go forward are few: a run that never ends fails, it does not hang."""
    calls = []

    def checked(learner, gold, steps, answers=None):
        assert answers is None
        assert steps == int(steps) >= 0
        calls.append(steps)
        assert calls.count(0) < 20, "it never ends"
        run(learner, gold, steps)

    return checked


@pytest.fixture(autouse=True)
def _it_ends(monkeypatch):
    monkeypatch.setattr(Learner, "run", forward(Learner.run))


@pytest.fixture
def clock(monkeypatch):
    """Learning that only counts its steps, by a clock of its own."""
    clock = Clock()

    def run(learner, _gold, steps):
        clock.ran.append(steps)
        clock.now += steps * clock.pace
        learner.state.counts[loop.STEP] += steps

    monkeypatch.setattr(training, "time", clock)
    monkeypatch.setattr(Learner, "run", forward(run))
    return clock


@pytest.fixture
def ctrl_c():
    """SIGINT as in a terminal, whatever this process was started with."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# Which weights are kept


def test_the_best_on_dev_is_kept_the_first_of_equals(task, parts):
    values = [0.125, 0.5, 0.25, 0.75, 0.25, 0.75, 0.5]  # at 0, 150, ..., 900
    outcome = Training(scripted(task, values), parts, LIVELY, 900, evaluate_every=150).go()
    best, last = weights_after(task, parts, LIVELY, 450), weights_after(task, parts, LIVELY, 900)
    assert (best != last).any()
    np.testing.assert_array_equal(outcome.model.W, best)
    assert (outcome.result["dev"], outcome.result["best_iteration"]) == (0.75, 450)
    scored, other = (value_on_test(task, parts, W) for W in (best, last))
    assert scored != other
    assert outcome.result["test"] == outcome.test.value == outcome.test.report["f1"] == scored
    np.testing.assert_array_equal(outcome.model.curve["dev"], values)


def test_dev_is_valued_at_the_weights_of_its_step(task, parts):
    curve = Training(task, parts, LIVELY, 900, evaluate_every=300).go().model.curve
    problem, gold = task.problem(parts.dev, learn=False), task.gold(parts.dev)
    outputs = [predict(problem, weights_after(task, parts, LIVELY, steps)) for steps in (0, 300, 600, 900)]
    values = [task.scores(parts.dev, each).value for each in outputs]
    assert len(set(values)) > 2
    assert curve["dev"].tolist() == values == [task.quality(problem, gold, each) for each in outputs]


def test_dev_has_the_loss_that_is_learned_by_where_that_is_asked_for(task, parts):
    """1 - F1 of each sentence, in the mean; and the mean of that over the run."""
    outcome = Training(task, parts, LIVELY, 800, evaluate_every=300, dev_losses=True).go()
    problem = task.problem(parts.dev, learn=False)
    losses = []
    for steps in (0, 300, 600, 800):
        outputs = predict(problem, weights_after(task, parts, LIVELY, steps))
        counts = task.scores(parts.dev, outputs).counts
        losses.append(np.mean([1 - (f1(each) if each[1:].any() else 1.0) for each in counts]))
    np.testing.assert_allclose(outcome.model.curve["dev_loss"], losses)
    area = (300 * (losses[0] + losses[1]) + 300 * (losses[1] + losses[2]) + 200 * (losses[2] + losses[3])) / 2 / 800
    assert outcome.result["dev_loss_area"] == pytest.approx(area)
    plain = Training(task, parts, LIVELY, 800, evaluate_every=300).go()
    assert np.isnan(plain.model.curve["dev_loss"]).all()
    assert "dev_loss_area" not in plain.result


def test_without_dev_the_last_weights_are_kept(task, parts):
    run = Training(task, Data(parts.train, None, parts.test), LIVELY, 700, evaluate_every=300)
    seen = []
    outcome = run.go(seen.append)
    np.testing.assert_array_equal(outcome.model.W, weights_after(task, parts, LIVELY, 700))
    assert outcome.result["dev"] is None
    assert outcome.result["best_iteration"] == 700
    assert outcome.result["test"] == value_on_test(task, parts, outcome.model.W)
    assert outcome.model.curve["iterations"].tolist() == [0, 300, 600, 700]
    assert np.isnan(outcome.model.curve["dev"]).all()
    assert {(now.dev, now.best) for now in seen} == {(None, None)}


# When dev is looked at


def test_dev_is_looked_at_at_the_start_at_intervals_and_at_the_end(task, parts, clock):
    run = Training(scripted(task, [0.5] * 5), parts, LIVELY, 1000, evaluate_every=300)
    curve = run.go().model.curve
    assert curve["iterations"].tolist() == [0, 300, 600, 900, 1000]
    assert curve["iterations"].dtype == np.int64
    whole = Training(scripted(task, [0.5] * 3), parts, LIVELY, 600, evaluate_every=300)
    assert whole.go().model.curve["iterations"].tolist() == [0, 300, 600]  # once at the end, not twice
    rare = Training(scripted(task, [0.5] * 2), parts, LIVELY, 40, evaluate_every=300)
    assert rare.go().model.curve["iterations"].tolist() == [0, 40]


def test_by_default_dev_is_looked_at_a_hundred_times(task, parts):
    iterations = (1, 99, 100, 101, 200, 201, 4_000_000)
    assert [default_interval(n) for n in iterations] == [1, 1, 1, 2, 2, 3, 40_000]
    assert Training(task, parts, LIVELY, 201).evaluate_every == 3
    assert Training(task, parts, LIVELY, 201, evaluate_every=7).evaluate_every == 7


def test_lengths_must_be_positive(task, parts):
    with pytest.raises(UsageError, match=r"^`iterations` 0: must be at least 1$"):
        Training(task, parts, LIVELY, 0)
    with pytest.raises(UsageError, match=r"^`evaluate_every` 0: must be at least 1$"):
        Training(task, parts, LIVELY, 10, evaluate_every=0)
    assert Training(task, parts, LIVELY, 1, evaluate_every=1).go().model.curve["iterations"].tolist() == [0, 1]


# What is reported


def test_the_result_in_figures(task, parts):
    n, labels = 400, task.n_labels
    outcome = Training(task, parts, LIVELY, n, evaluate_every=150).go()
    learner = Learner(task.problem(parts.train), LIVELY)
    gold, losses, moved = task.gold(parts.train), [], 0
    for _ in range(n):
        W, total = learner.state.W.copy(), learner.state.sums[loop.LOSS]
        learner.run(gold, 1)
        losses.append(learner.state.sums[loop.LOSS] - total)
        moved += bool((W != learner.state.W).any())
    assert 0 < moved < n
    ids, offsets = task.index.transform(parts.train), parts.train.offsets
    active, rank = [], []
    for begin, end in pairwise(offsets):
        counts = np.zeros((end - begin, task.n_features))
        for i, row in enumerate(ids[begin:end]):
            np.add.at(counts[i], row[row >= 0], 1)
        counts = counts[:, counts.any(axis=0)]
        active.append(counts.shape[1])
        rank.append(np.linalg.matrix_rank(counts))
    assert np.mean(active) != np.median(active)
    result = dict(outcome.result)
    assert result.pop("seconds") > 0
    assert result.pop("us_per_iteration") == 1e6 * outcome.result["seconds"] / n
    assert result.pop("average_loss") == pytest.approx(np.mean(losses), rel=1e-6)
    assert outcome.model.curve["average_loss"] == pytest.approx([0, *(np.mean(losses[:k]) for k in (150, 300, 400))])
    assert result == {
        "task": "chunking",
        **LIVELY.as_dict(),
        "metric": "f1",
        "iterations": n,
        "questions": n,
        "answers": n,
        "losses": 2 * n,
        "tokens": learner.tokens,
        "looked": n,
        "corrections": 0,
        "whole": 0,
        "n": task.n_features * labels,
        "n_active": pytest.approx(labels * np.mean(active)),
        "n_score": pytest.approx(labels * np.mean(rank)),
        "best_iteration": outcome.model.curve["iterations"][outcome.model.curve["dev"].argmax()],
        "dev": outcome.model.curve["dev"].max(),
        "test": value_on_test(task, parts, outcome.model.W),
        "update_fraction": moved / n,
        "version": __version__,
    }
    assert outcome.model.settings == LIVELY.as_dict()
    assert outcome.model.result == outcome.result
    assert outcome.model.task is task


def test_seconds_are_those_of_learning(task, parts, clock):

    def slow_look(_problem, _gold, _outputs):
        clock.now += 64.0
        return 0.5

    result = Training(Changed(task, quality=slow_look), parts, LIVELY, 1000, evaluate_every=300).go().result
    assert result["seconds"] == 1000 / 1024
    assert result["us_per_iteration"] == 1e6 / 1024


def test_progress_says_how_far_it_is(task, parts, clock):
    seen = []
    run = Training(scripted(task, [0.25, 0.75, 0.5]), parts, LIVELY, 600, evaluate_every=400)
    run.learner.state.sums[loop.LOSS] = 90.0
    run.go(seen.append)
    tenth = 102  # steps in a tenth of a second
    assert seen == [
        Progress(400, 600, 90 / 400, 0.75, 0.75, 400, 400 / 1024, 1024.0),
        Progress(400 + tenth, 600, 90 / 502, 0.75, 0.75, 400, 502 / 1024, 1024.0),
        Progress(600, 600, 90 / 600, 0.5, 0.75, 400, 600 / 1024, 1024.0),
    ]


@pytest.mark.parametrize(
    ("pace", "iterations", "slices"),
    [
        (2.0**-10, 1300, [1000, 102, 102, 96]),
        (2.0**-20, 120_000, [1000, 2000, 4000, 8000, 16_000, 32_000, 57_000]),
        (2.0**-16, 30_000, [1000, 2000, 4000, 6553, 6553, 6553, 3341]),
        (1.0, 1003, [1000, 1, 1, 1]),
        (0.0, 7000, [1000, 2000, 4000]),
    ],
)
def test_it_looks_at_the_clock_ten_times_a_second(task, parts, clock, pace, iterations, slices):
    clock.pace = pace
    Training(task, Data(parts.train), LIVELY, iterations, evaluate_every=iterations).go()
    assert clock.ran == [0, *slices]  # first none at all: compiling is not learning


# Being stopped, and going on


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_stopped_and_resumed_is_the_same_run_bit_for_bit(task, parts, settings, tmp_path):
    whole = Training(task, parts, settings, 6000, evaluate_every=700).go()
    checkpoint = tmp_path / "run.checkpoint"
    for stops in (3, 2):
        run = Training(task, parts, settings, 6000, evaluate_every=700, checkpoint=checkpoint, resume=True)
        stopped(run, stops)
        assert 0 < run.learner.step < 6000
    last = Training(task, parts, settings, 6000, evaluate_every=700, checkpoint=checkpoint, resume=True)
    assert last.learner.step == run.learner.step
    resumed = last.go()
    np.testing.assert_array_equal(whole.model.W, resumed.model.W)
    for name, values in whole.model.curve.items():
        np.testing.assert_array_equal(values, resumed.model.curve[name])
    timings = {"seconds", "us_per_iteration"}
    assert {k: v for k, v in whole.result.items() if k not in timings} == {
        k: v for k, v in resumed.result.items() if k not in timings
    }
    last.finish()
    assert not checkpoint.exists()


def test_time_and_intervals_go_on_from_where_it_was_stopped(task, parts, clock, tmp_path):

    def half(resume):
        where = tmp_path / "checkpoint"
        return Training(task, Data(parts.train), LIVELY, 1000, evaluate_every=300, checkpoint=where, resume=resume)

    assert stopped(half(False), 2).learner.step == 402  # between two looks
    clock.now = 7.0  # another process, another clock
    outcome = half(True).go()
    assert outcome.model.curve["iterations"].tolist() == [0, 300, 600, 900, 1000]
    assert outcome.result["seconds"] == 1000 / 1024


def test_a_run_stopped_before_its_first_step_looks_at_the_start_once(task, parts, clock, monkeypatch, tmp_path):
    options = {"evaluate_every": 50, "checkpoint": tmp_path / "checkpoint"}

    def run(_learner, _gold, steps, _answers=None):
        if steps:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "run", run)
        with pytest.raises(KeyboardInterrupt):
            Training(task, parts, LIVELY, 100, **options).go()
    outcome = Training(task, parts, LIVELY, 100, **options, resume=True).go()
    assert outcome.model.curve["iterations"].tolist() == [0, 50, 100]


def test_a_run_that_was_stopped_at_its_very_end_has_nothing_more_to_do(task, parts, clock, tmp_path):
    options = {"evaluate_every": 50, "checkpoint": tmp_path / "checkpoint"}
    stopped(Training(scripted(task, [0.25, 0.75, 0.5]), parts, LIVELY, 100, **options), 2)
    clock.ran.clear()
    outcome = Training(scripted(task, []), parts, LIVELY, 100, **options, resume=True).go()
    assert sum(clock.ran) == 0
    assert (outcome.result["best_iteration"], outcome.result["dev"]) == (50, 0.75)
    assert outcome.model.curve["dev"].tolist() == [0.25, 0.75, 0.5]


@pytest.mark.parametrize("where", ["while it looks at dev", "while it reports"])
def test_ctrl_c_waits_until_the_state_is_whole(task, parts, ctrl_c, tmp_path, where):
    checkpoint = tmp_path / "checkpoint"
    looks, reports = [], []

    def quality(problem, gold, outputs):
        looks.append(task.quality(problem, gold, outputs))
        if len(looks) == 3 and where == "while it looks at dev":
            signal.raise_signal(signal.SIGINT)
        return looks[-1]

    def progress(now):
        if now.step == 200 and where == "while it reports":
            signal.raise_signal(signal.SIGINT)
        reports.append(now.step)

    run = Training(Changed(task, quality=quality), parts, LIVELY, 300, evaluate_every=100, checkpoint=checkpoint)
    with pytest.raises(KeyboardInterrupt):
        run.go(progress)
    assert reports[-1] == 200
    assert len(looks) == 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    resumed = Training(task, parts, LIVELY, 300, evaluate_every=100, checkpoint=checkpoint, resume=True)
    assert (resumed.learner.step, len(resumed.curve)) == (200, 3)
    whole = Training(task, parts, LIVELY, 300, evaluate_every=100).go()
    assert resumed.go().model.curve["dev"].tolist() == whole.model.curve["dev"].tolist()


def test_a_run_without_a_checkpoint_is_stopped_too(task, parts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = stopped(Training(task, parts, LIVELY, 300, evaluate_every=100, resume=True))
    assert run.learner.step == 100
    run.finish()
    assert not list(tmp_path.iterdir())


# Checkpoints


def test_a_checkpoint_is_written_whenever_so_many_seconds_have_passed(task, parts, clock, monkeypatch, tmp_path):
    saved = []

    def write_container(path, kind, meta, arrays):
        clock.now += 32.0  # writing takes its time, which does not count
        saved.append((path, kind, int(arrays["counts"][loop.STEP]), meta["seconds"]))

    monkeypatch.setattr(training, "write_container", write_container)
    path = str(tmp_path / "checkpoint")
    options = {"evaluate_every": 64, "checkpoint": path, "checkpoint_seconds": 0.25}
    clock.now -= 0.125
    Training(task, Data(parts.train), LIVELY, 1000, **options).go()
    # a slice of 64 steps takes 1/16 s: after five of them it is more than 1/4 s
    assert saved == [(tmp_path / "checkpoint", "checkpoint", steps, steps / 1024) for steps in (320, 640, 960)]
    saved.clear()
    Training(task, Data(parts.train), LIVELY, 1000, **options | {"checkpoint_seconds": 2.0}).go()
    assert not saved
    Training(task, Data(parts.train), LIVELY, 1000, **options | {"checkpoint": None}).go()
    assert not saved


def test_only_resume_goes_on_from_a_checkpoint(task, parts, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    assert Training(task, parts, LIVELY, 300, checkpoint=checkpoint, resume=True).learner.step == 0  # there is none
    stopped(Training(task, parts, LIVELY, 300, evaluate_every=100, checkpoint=checkpoint))
    meta, _ = read_container(checkpoint, "checkpoint")
    assert meta["best_iteration"] in (0, 100)
    assert (
        Training(task, parts, LIVELY, 300, evaluate_every=100, checkpoint=checkpoint, resume=True).learner.step == 100
    )
    anew = Training(task, parts, LIVELY, 300, evaluate_every=100, checkpoint=checkpoint)
    assert (anew.learner.step, anew.curve) == (0, [])


# What a checkpoint belongs to


def other_tag(corpus):
    """The same words, with one tag changed."""
    tags = list(corpus.tags)
    place = tags.index("O")
    tags[place] = "B-NP"
    return replace(corpus, tags=tags)


def other_word(corpus):
    """The same tags, with the first word changed into the last."""
    words, *rest = corpus.columns
    return replace(corpus, columns=([words[-1], *words[1:]], *rest))


def no_data(_corpus):
    return None


FIRST = {"settings": LIVELY, "iterations": 300, "evaluate_every": 100}


@pytest.fixture(scope="module")
def checkpoint(task, parts, tmp_path_factory):
    """Of a run that was stopped, from weights of its own."""
    path = tmp_path_factory.mktemp("identity") / "checkpoint"
    W = np.zeros((task.n_features, task.n_labels), np.float32)
    stopped(Training(task, parts, **FIRST, checkpoint=path, W=W))
    return path


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"task": "other"}, "task"),
        ({"settings": replace(LIVELY, h=0.02)}, "settings"),
        ({"settings": replace(LIVELY, seed=4)}, "settings"),
        ({"iterations": 301}, "iterations"),
        ({"evaluate_every": 101}, "evaluate_every"),
        ({"iterations": 301, "evaluate_every": 101}, "iterations, evaluate_every"),
        ({"train": other_tag}, "train"),
        ({"train": other_word}, "train"),
        ({"dev": other_tag}, "dev"),
        ({"dev": other_word}, "dev"),
        ({"dev": no_data}, "dev"),
        ({"order": 1}, "features"),
        ({"W": None}, "initial weights"),
        ({"W": 0.5}, "initial weights"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_a_checkpoint_of_another_run_is_refused(task, parts, checkpoint, change, named):
    change = dict(change)
    for part in {"train", "dev"} & set(change):
        parts = replace(parts, **{part: change.pop(part)(getattr(parts, part))})
    W = change.pop("W", 0.0)
    if W is not None:
        W = np.full((task.n_features, task.n_labels), W, np.float32)
    own, arrays = task.to_arrays()
    own["order"] = change.pop("order", own["order"])  # a setting of the task that shows in no array of its problems
    task = Changed(task, name=change.pop("task", task.name), to_arrays=lambda: (own, arrays))
    with pytest.raises(UsageError) as caught:
        Training(task, parts, **FIRST | change, checkpoint=checkpoint, resume=True, W=W)
    assert str(caught.value) == (
        f"{checkpoint}: is of a run with other {named}; resume with the same command, or remove the file to start anew"
    )


def rewritten(checkpoint, to, arrays=None, **meta):
    """The checkpoint with something else in it, as a file of its own that is whole."""
    head, parts = read_container(checkpoint, "checkpoint")
    write_container(to, "checkpoint", head | meta, parts | (arrays or {}))
    return to


def test_a_checkpoint_of_an_older_version_is_refused_and_says_so(data, checkpoint, tmp_path):
    """It knew less about its data, so nobody can say whether it is of this run."""
    task, parts = data
    older = dict.fromkeys(("task", "settings", "iterations", "evaluate_every", "data"))
    W = np.zeros((task.n_features, task.n_labels))
    path = rewritten(checkpoint, tmp_path / "older", identity=older)
    with pytest.raises(UsageError) as caught:
        Training(task, parts, **FIRST, checkpoint=path, resume=True, W=W)
    assert str(caught.value) == (
        f"{path}: was written by another version of sparsezo, which noted other things about its run; "
        "go on with that version, or remove the file to start anew"
    )


def wrong(task):
    W = np.zeros((task.n_features, task.n_labels), np.float32)
    broken = W.copy()
    broken[2, 2] = np.inf
    return {
        "W is float32 of shape (1, 1)": {"W": W[:1, :1]},  # which would be spread over all of it
        "best is float64": {"best": W.astype(np.float64)},
        "counts is float64": {"counts": np.zeros(loop.N_COUNTS)},
        "best is not finite": {"best": broken},
        "dev": {"dev": np.zeros(1)},
        "answers has 4611686018427387904": {"answers": np.full(2, 2**62)},
        "tokens has 4611686018427387904": {"tokens": np.full(2, 2**62)},
    }


@pytest.mark.parametrize("why", wrong(SimpleNamespace(n_features=3, n_labels=3)))
def test_a_checkpoint_that_holds_something_else_is_damaged(task, parts, checkpoint, tmp_path, why):
    W = np.zeros((task.n_features, task.n_labels))
    path = rewritten(checkpoint, tmp_path / "wrong", wrong(task)[why])
    with pytest.raises(
        DamagedError, match=r"wrong: is damaged \(.*" + re.escape(why) + r".*\); remove it to start anew$"
    ):
        Training(task, parts, **FIRST, checkpoint=path, resume=True, W=W)


def test_what_a_run_is_known_by_is_found_out_once(data, tmp_path, monkeypatch):
    """All of the data goes into it: not at every checkpoint, and not at all where there is none."""
    task, parts = data
    seen = []
    monkeypatch.setattr(training, "known_by", lambda *what: seen.append(len(what)) or "hash")
    Training(task, parts, LIVELY, 300, evaluate_every=100).go()
    assert seen == []
    Training(
        task, parts, LIVELY, 300, evaluate_every=50, checkpoint=tmp_path / "checkpoint", checkpoint_seconds=0.0
    ).go()
    assert len(seen) == 3


def test_a_checkpoint_of_the_same_run_is_taken(task, parts, checkpoint):
    """Whatever the test set, which no run learns from; and from equal weights, not from the same array."""
    W = np.zeros((task.n_features, task.n_labels))
    run = Training(task, Data(parts.train, parts.dev), **FIRST, checkpoint=checkpoint, resume=True, W=W)
    assert run.learner.step == 100
    assert not math.isnan(run.curve[-1][2])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_does_not_disturb_the_checkpoint(task, parts, ctrl_c, tmp_path, monkeypatch, number):
    """It comes while the first one's checkpoint is being written."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)

    def write(*args):
        signal.raise_signal(number)
        write_container(*args)

    monkeypatch.setattr(training, "write_container", write)
    checkpoint = tmp_path / "checkpoint"
    try:
        with pytest.raises(KeyboardInterrupt):
            Training(task, parts, LIVELY, 300, evaluate_every=100, checkpoint=checkpoint).go(
                lambda now: signal.raise_signal(signal.SIGINT)
            )
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (
        Training(task, parts, LIVELY, 300, evaluate_every=100, checkpoint=checkpoint, resume=True).learner.step == 100
    )
