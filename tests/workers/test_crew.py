"""One run on many workers: the same bits as by one process, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from sparsezo import notes
from sparsezo.errors import DivergedError, SparsezoError, UsageError
from sparsezo.kernels import batching, loop
from sparsezo.learner import Learner
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data
from sparsezo.training import Training
from sparsezo.workers import messages
from sparsezo.workers.channel import Gone, nothing
from sparsezo.workers.crew import Crew
from sparsezo.workers.local import LocalAgency
from sparsezo.workers.messages import Head
from sparsezo.workers.replica import Replica, serve

SETTINGS = [
    Settings("two-point", "score", 0.01, 0.1, batch=16, seed=2),
    Settings("baseline", "active", 0.05, 0.2, step="adagrad", batch=10),
    Settings("two-point", "active", 0.04, 0.1, batch=20, samples=4, antithetic=True),
]


@pytest.fixture(scope="module")
def data():
    task, train = Chunking.fit(chunking_corpus(40, seed=1), only="NP")
    return task, Data(train, task.seen(chunking_corpus(20, seed=2)))


@pytest.fixture(scope="module")
def chunking(data):
    task, parts = data
    return task.problem(parts.train), task.gold(parts.train)


class Idle:
    """A worker of this very thread: it does its work when it is asked for the outcome. Dies when it is told to."""

    name = "an idle worker"

    def __init__(self, lives=10**9):
        self.lives, self.inbox, self.received, self.turns = lives, [], 0, 0
        self.outbox, self.ended = [messages.plain(messages.JOIN)], False
        self.replica = None
        self.shares = []

    def send(self, message):
        if self.lives <= 0:
            raise Gone
        self.inbox.append(bytes(message))
        self.received += len(message)

    def waiting(self):
        return True

    def receive(self, pause=nothing):
        while self.inbox and self.lives > 0:
            self.lives -= 1
            self._work(self.inbox.pop(0))
        if self.lives <= 0:
            raise Gone
        return self.outbox.pop(0)

    def _work(self, message):
        from sparsezo.workers import replica

        head = messages.head_of(message)
        self.turns += head.kind == messages.TURN
        self.shares += [(head.begin, head.end)] if head.begin < head.end else []
        if messages.head_of(message).kind == messages.JOIN:
            self.replica = replica.restored(messages.content_of(message), self.data)
            self.outbox.append(messages.plain(messages.JOIN))
        elif messages.head_of(message).kind == messages.DIGEST:
            self.outbox.append(messages.plain(messages.DIGEST, self.replica.digest()))
        elif (share := replica._turn(self.replica, messages.head_of(message), message)) is not None:
            self.outbox.append(share)

    def end(self):
        self.ended = True


class Idlers:
    """An agency for idle workers, as ``make`` makes them."""

    def __init__(self, make=Idle):
        self.make, self.closed = make, False

    def share(self, data):
        self.data = data
        return data

    def hire(self):
        worker = self.make()
        worker.data = self.data
        return worker

    def close(self):
        self.closed = True


def alone(chunking, settings, *steps):
    learner = Learner(chunking[0], settings)
    for each in steps:
        learner.run(chunking[1], each)
    return learner


def assert_equal(state, other):
    for name, mine, its in zip(state._fields, state, other, strict=True):
        np.testing.assert_array_equal(mine, its, err_msg=name)


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_any_number_of_workers_ends_at_the_bits_of_one_process(chunking, settings, workers):
    hired = []
    learner = Learner(chunking[0], settings)
    with Crew(learner, chunking[1], workers, Idlers(lambda: hired.append(Idle()) or hired[-1])) as crew:
        crew.gather()
        assert crew.present == workers
        for steps in (160, 0, 320, 83):
            crew.run(steps)
        crew.check()
    assert_equal(learner.state, alone(chunking, settings, 563).state)
    assert len(hired) == workers - 1
    for worker in hired:
        assert_equal(worker.replica.learner.state, learner.state)
        assert worker.ended
        assert all(begin % settings.samples == 0 for begin, _ in worker.shares)  # F(w) is asked for once


def test_a_run_by_answers_ends_where_that_of_one_process_does(chunking):
    one, learner = Learner(chunking[0], SETTINGS[0]), Learner(chunking[0], SETTINGS[0])
    one.run(chunking[1], answers=100)
    with Crew(learner, chunking[1], 3, Idlers()) as crew:
        crew.gather()
        crew.run(answers=100)
    assert_equal(learner.state, one.state)
    assert learner.answers >= 100


@pytest.mark.parametrize("lives", range(1, 8))
def test_a_worker_that_dies_at_any_word_changes_nothing(chunking, lives):
    """While it joins, while it evaluates, or while it is being told what the others have."""
    hired, remarks = [], []
    learner = Learner(chunking[0], SETTINGS[0])

    def hire():
        hired.append(Idle(lives if len(hired) == 1 else 10**9))
        return hired[-1]

    before = notes.say_with(remarks.append)
    try:
        with Crew(learner, chunking[1], 3, Idlers(hire)) as crew:
            crew.gather()
            for _ in range(8):
                crew.run(32)
            crew.check()
            assert crew.present == 3
    finally:
        notes.say_with(before)
    assert_equal(learner.state, alone(chunking, SETTINGS[0], 256).state)
    assert len(hired) == 3
    assert crew.lost == len(remarks) == 1
    assert "a worker is gone (an idle worker); another takes its place" in remarks[0]
    assert_equal(hired[2].replica.learner.state, learner.state)  # by snapshot and log


def test_a_newcomer_is_told_what_was_applied_since_its_snapshot(chunking):
    learner = Learner(chunking[0], SETTINGS[0])
    late = Idle()
    with Crew(learner, chunking[1], 2, Idlers(lambda: late)) as crew:
        crew.run(32)  # it has only started: it gets the snapshot
        assert (crew.present, late.turns) == (1, 0)
        late.waiting = lambda: False  # ... and reads it for a while
        crew.run(64)
        assert (crew.present, late.turns) == (1, 0)
        del late.waiting
        crew.run(160)
        assert crew.present == 2
        crew.check()
    assert late.turns == (32 + 64) // 16 + 1 + 160 // 16  # the log, then an opening one and those of its own
    assert_equal(late.replica.learner.state, learner.state)
    assert_equal(learner.state, alone(chunking, SETTINGS[0], 256).state)


def test_workers_that_always_die_are_given_up(chunking):
    learner = Learner(chunking[0], SETTINGS[0])
    with Crew(learner, chunking[1], 2, Idlers(lambda: Idle(0))) as crew:
        crew.gather()
        crew.run(64)
    assert crew.lost == 10
    assert_equal(learner.state, alone(chunking, SETTINGS[0], 64).state)


def test_replicas_that_differ_are_found_out(chunking):
    learner, worker = Learner(chunking[0], SETTINGS[0]), Idle()
    crew = Crew(learner, chunking[1], 2, Idlers(lambda: worker))
    crew.gather()
    crew.run(32)
    worker.replica.learner.state.W[0, 0] += 1
    said = r"^step 32: the weights of a worker \(an idle worker\) are not those"
    with pytest.raises(SparsezoError, match=said):
        crew.check()
    with pytest.raises(SparsezoError, match=said), crew:  # also at the end
        pass
    assert worker.ended


def test_a_run_that_was_stopped_in_a_batch_goes_on_with_new_workers(chunking):
    hired = []
    learner = Learner(chunking[0], SETTINGS[0])
    with Crew(learner, chunking[1], 2, Idlers(lambda: hired.append(Idle()) or hired[-1])) as crew:
        crew.gather()
        crew.run(32)

        def stop(pause=nothing):
            raise KeyboardInterrupt

        hired[0].receive = stop
        with pytest.raises(KeyboardInterrupt):
            crew.run(32)
        assert learner.step == 32
        crew.run(32)
        crew.gather()
        crew.run(64)
    assert len(hired) == 2
    assert_equal(learner.state, alone(chunking, SETTINGS[0], 128).state)


class Noting:
    """A replica that says when it is asked for its digest."""

    def __init__(self, replica, note):
        self._replica, self._note = replica, note

    def digest(self):
        self._note()
        return self._replica.digest()

    def __getattr__(self, name):
        return getattr(self._replica, name)


def test_replicas_are_compared_at_intervals(chunking, monkeypatch):
    from sparsezo.workers import crew as module

    monkeypatch.setattr(module, "_CHECKED_STEPS", 96)
    learner, worker = Learner(chunking[0], SETTINGS[0]), Idle()
    checked = []
    with Crew(learner, chunking[1], 2, Idlers(lambda: worker)) as crew:
        monkeypatch.setattr(module, "_CHECKED_WEIGHTS", learner.state.W.size)
        crew.gather()
        monkeypatch.setattr(worker, "replica", Noting(worker.replica, lambda: checked.append(learner.step)))
        for _ in range(12):
            crew.run(32)
    assert checked == [96, 192, 288, 384, 384]  # and at the end


def test_a_step_that_moves_costs_16_bytes_and_others_nothing(chunking):
    learner, worker = Learner(chunking[0], SETTINGS[0]), Idle()
    with Crew(learner, chunking[1], 2, Idlers(lambda: worker)) as crew:
        crew.gather()
        before, updates = worker.received, learner.updates
        crew.run(160)
        received = worker.received - before
    head = len(messages.pack(Head(messages.TURN), batching.room_for(1)))
    assert head < 128
    assert received == 11 * head + 16 * (learner.updates - updates)
    assert 0 < learner.updates - updates < 160


def test_scores_that_are_not_finite_stop_all_with_the_words_of_one_process(chunking):
    said = []
    for workers in (1, 3):
        learner = Learner(chunking[0], SETTINGS[0])
        with Crew(learner, chunking[1], workers, Idlers()) as crew:
            crew.run(32)
            learner.state.W[...] = 3e38
            crew.gather()
            with pytest.raises(DivergedError) as error:
                crew.run(32)
        said.append(str(error.value))
        assert learner.step == 32
    assert said[0] == said[1]
    assert said[0].startswith("step 32: the scores or the loss are not finite; ")


@pytest.mark.parametrize("spoil", [lambda m: m[:-1], lambda m: m[:50], lambda m: m[:20]])
def test_a_torn_message_is_refused(chunking, spoil):
    replica = Replica(Learner(*chunking[:1], SETTINGS[0]), chunking[1])
    replica.begin(0, 16)
    replica.evaluate(0, 16)
    message = bytes(messages.pack(Head(messages.SHARE), replica.batch))
    with pytest.raises(SparsezoError, match="not as it was sent"):
        messages.add(spoil(message), batching.room_for(16), 16)


def test_what_is_of_no_step_of_the_run_is_refused_before_anything_moves(chunking):
    learner = Learner(chunking[0], SETTINGS[0])
    replica = Replica(learner, chunking[1])
    for spoil in (
        lambda batch: batch.at[0].put(0, 16),  # after the last step
        lambda batch: batch.at[0].put(0, -1),
        lambda batch: batch.at[0].put(1, (batch.at[0, 1] + 1) % 40),  # another input
        lambda batch: batch.at[1].put([0, 1], batch.at[0]),  # twice
        lambda batch: batch.c.put(0, np.inf),
    ):
        replica.begin(0, 16)
        replica.evaluate(0, 16)
        spoil(replica.batch)
        with pytest.raises(SparsezoError, match="what is of no step of this run"):
            replica.commit(0, 16)
    assert not learner.state.W.any()
    assert learner.step == 0


def test_workers_that_have_nothing_to_share_are_refused(data, chunking):
    with pytest.raises(UsageError, match="give a larger one, such as 1024"):
        Crew(Learner(chunking[0], replace(SETTINGS[0], batch=1)), chunking[1], 2)
    with pytest.raises(UsageError, match="`workers` 17: share the steps of a `batch`, which has 16"):
        Training(*data, SETTINGS[0], 100, workers=17)
    said = "`workers` 6: share the inputs of a `batch`, which has 5 of 4 `samples` each; give a larger one"
    with pytest.raises(UsageError, match=said):
        Training(*data, SETTINGS[2], 100, workers=6)


# ---- processes ----


def test_a_killed_process_changes_nothing_and_is_replaced(data, tmp_path):
    """A whole run with dev, cut by Ctrl-C and resumed by another number of workers, beside one by one process."""
    task, parts = data
    settings, hired = SETTINGS[0], []

    class Noted(LocalAgency):
        def hire(self):
            channel = super().hire()
            hired.append(channel.process.pid)
            return channel

    learner = Learner(task.problem(parts.train), settings)
    gold = task.gold(parts.train)
    with Crew(learner, gold, 2, Noted()) as crew, notes.gathered() as remarks:
        crew.gather()
        crew.run(320)
        os.kill(hired[0], signal.SIGKILL)
        crew.run(320)
        assert (crew.present, crew.lost) == (1, 1)
        crew.gather()
        assert crew.present == 2
        crew.run(320)
        crew.check()
    assert len(hired) == 2
    assert f"(process {hired[0]}); another takes its place" in remarks[0]
    assert_equal(learner.state, alone((learner.problem, gold), settings, 960).state)


@pytest.mark.parametrize(("settings", "batch"), [(SETTINGS[0], 16), (SETTINGS[2], 20)], ids=["steps", "samples"])
def test_a_run_on_two_workers_is_cut_and_resumed_by_one_process(data, tmp_path, settings, batch):
    whole = Training(*data, settings, 1003, evaluate_every=100).go()
    place = tmp_path / "checkpoint"

    def stop(now):
        if now.step >= 300:
            raise KeyboardInterrupt

    cut = Training(*data, settings, 1003, evaluate_every=100, checkpoint=place, workers=2)
    with pytest.raises(KeyboardInterrupt):
        cut.go(stop)
    resumed = Training(*data, settings, 1003, evaluate_every=100, checkpoint=place, resume=True)
    assert 300 <= resumed.learner.step < 1003
    end = resumed.go()
    np.testing.assert_array_equal(end.model.W, whole.model.W)
    for name, its in whole.model.curve.items():
        np.testing.assert_array_equal(end.model.curve[name], its)
    looks = end.model.curve["iterations"].tolist()
    assert looks == sorted({0, *(min(-(-k // batch) * batch, 1003) for k in range(100, 1001, 100)), 1003})
    assert resumed.learner.state.counts[loop.STEP] == 1003


def test_serving_ends_when_the_other_end_is_gone():
    class Deaf(Idle):
        def receive(self, pause=nothing):
            raise Gone

    deaf = Deaf()
    serve(deaf, (None, None))
    assert messages.head_of(deaf.inbox[0]).kind == messages.JOIN
