"""How a batch is dealt out: by how fast workers are, and no result depends on it."""

from __future__ import annotations

import time

import numpy as np
import pytest

from sparsezo.kernels import batching
from sparsezo.learner import Learner
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.workers import messages
from sparsezo.workers import shares as dealing
from sparsezo.workers.crew import Crew
from sparsezo.workers.replica import Answering, snapshot
from sparsezo.workers.shares import Known, Pace, deal


def test_shares_follow_each_other_and_are_as_equal_as_can_be():
    for turns, workers in ((16, 1), (16, 3), (3, 7), (0, 2)):
        shares = deal(turns, [None] * workers)
        assert [turn for begin, end in shares for turn in range(begin, end)] == list(range(turns))
        sizes = [end - begin for begin, end in shares]
        assert len(sizes) == workers
        assert max(sizes) - min(sizes) <= 1


def test_all_samples_of_an_input_are_in_one_share():
    for turns, workers in ((16, 3), (20, 7), (15, 2), (3, 2), (0, 2)):
        shares = deal(turns, [Known(7.0, 3.0)] * workers, 4)
        assert [turn for begin, end in shares for turn in range(begin, end)] == list(range(turns))
        assert len(shares) == workers
        assert all(begin % 4 == 0 or begin == turns for begin, _ in shares)
        inputs = [-(-(end - begin) // 4) for begin, end in shares]
        assert max(inputs) - min(inputs) <= 1


def test_shares_go_by_speed():
    assert deal(100, [Known(10.0), Known(30.0)]) == [(0, 75), (75, 100)]
    assert deal(40, [Known(20.0), Known(10.0), None]) == [(0, 9), (9, 28), (28, 40)]  # 15 where nothing is known
    assert deal(80, [Known(10.0), Known(30.0)], 4) == [(0, 60), (60, 80)]


@pytest.mark.parametrize(
    "paces", [[Known(10.0, 100.0), Known(10.0, 300.0)], [Known(5.0, 50.0), Known(10.0, 90.0), Known(8.0, 60.0)]]
)
def test_all_are_done_at_the_same_time(paces):
    """Who begins later has less to do."""
    shares = deal(1000, paces)
    ends = [pace.before + pace.step * (end - begin) for pace, (begin, end) in zip(paces, shares, strict=True)]
    assert max(ends) - min(ends) <= 2 * max(pace.step for pace in paces)


def test_nobody_is_believed_to_be_much_slower_or_faster_than_usual():
    (_, first), (_, second) = deal(1000, [Known(1.0), Known(1e9)])
    assert 1000 - first == pytest.approx(1000 * (1 / 2) / (4 + 1 / 2), abs=1)  # 1e9 is twice the mean
    assert second == 1000
    sizes = [end - begin for begin, end in deal(1700, [Known(1e9)] * 8 + [Known(1.0)])]
    assert sizes[-1] == pytest.approx(4 * sizes[0], rel=0.2)
    (_, first), _ = deal(1600, [Known(1.0, 1e12), Known(1.0)])
    assert 0 < first <= 100  # not much, but something is heard of it


@pytest.mark.parametrize("n", [0, 1, 2, 5, 16, 1001])
def test_all_steps_are_dealt_out_whatever_the_paces(n):
    random = np.random.default_rng(n)
    for _ in range(50):
        paces = [None if random.random() < 0.2 else Known(*(random.gamma(0.5, size=2) + 1e-9)) for _ in range(5)]
        for samples in (1, 4):
            shares = deal(n, paces, samples)
            assert [turn for begin, end in shares for turn in range(begin, end)] == list(range(n))
            assert len(shares) == 5


def test_a_pace_follows_what_is_seen():
    pace = Pace()
    assert pace.known is None
    pace.note(10, 1000, 50)
    assert pace.known == (100, 50)
    for spent in (1100, 900, 1000, 10**9):
        pace.note(10, spent, spent)
        assert 90 <= pace.known.step <= 110  # held up once
    assert pace.known.before <= 1000
    for _ in range(3):
        pace.note(10, 5000, 70)
    assert pace.known == (500, 70)
    pace.note(0, 0, 0)
    assert pace.known is None


# In a crew

SETTINGS = Settings("two-point", "score", 0.01, 0.1, batch=64, seed=2)


@pytest.fixture(scope="module")
def chunking():
    task, train = Chunking.fit(chunking_corpus(40, seed=1), only="NP")
    return task.problem(train), task.gold(train)


class Timed:
    """An agency whose workers answer in this process, and say that a step took them ``nanoseconds(turn)``."""

    name = "a timed worker"

    def __init__(self, nanoseconds):
        self.nanoseconds, self.shares, self._said = nanoseconds, [], [messages.plain(messages.JOIN)]

    def share(self, data):
        self._worker = Answering(data)
        return data

    def hire(self):
        return self

    def close(self):
        pass

    end = close

    def waiting(self):
        return True

    def receive(self, pause=None):
        return self._said.pop(0)

    def send(self, message):
        head = messages.head_of(message)
        if (answer := self._worker.answer(bytes(message))) is None:
            if head.kind == messages.TURN:
                self.shares.append(0)
            return
        if head.kind == messages.TURN:
            steps = head.end - head.begin
            answer = bytearray(answer)
            its = messages.head_of(answer)
            messages.address(answer, its._replace(spent=int(self.nanoseconds(len(self.shares)) * steps), before=0))
            self.shares.append(steps)
        self._said.append(bytes(answer))


def crewed(chunking, agency, turns, monkeypatch):
    """This process takes 1,000 ns for a step."""
    learner = Learner(chunking[0], SETTINGS)
    with Crew(learner, chunking[1], 2, agency) as crew:
        crew.gather()
        note = crew._pace.note
        monkeypatch.setattr(crew._pace, "note", lambda steps, spent, before: note(steps, 1000 * steps, 0))
        crew.run(64 * turns)
    alone = Learner(chunking[0], SETTINGS)
    alone.run(chunking[1], 64 * turns)
    np.testing.assert_array_equal(learner.state.W, alone.state.W)
    return agency.shares


def test_who_takes_longer_gets_less_and_the_bits_stay(chunking, monkeypatch):
    shares = crewed(chunking, Timed(lambda turn: 3000), 6, monkeypatch)
    assert shares == [32, 16, 16, 16, 16, 16, 0]  # the last turn is the end
    assert crewed(chunking, Timed(lambda turn: 1000), 3, monkeypatch) == [32, 32, 32, 0]


def test_a_worker_that_was_held_up_has_a_share_again(chunking, monkeypatch):
    """Also where its share became nothing, so that nothing more is heard of it."""
    agency = Timed(lambda turn: 1e9 if turn == 0 else 1000)
    shares = crewed(chunking, agency, 8, monkeypatch)
    assert shares == [32, 7, 32, 32, 32, 32, 32, 32, 0]

    monkeypatch.setattr(dealing, "_MOST", 1e6)  # no bound to what is believed
    shares = crewed(chunking, Timed(lambda turn: 1e12 if turn == 0 else 1000), 6, monkeypatch)
    assert shares == [32, 0, 32, 32, 32, 32, 0]


def test_a_worker_says_how_long_it_took(chunking, monkeypatch):
    def slow(*args):
        time.sleep(0.01)
        return True

    def slower(*args):
        time.sleep(0.02)

    worker = Answering(chunking)
    learner = Learner(chunking[0], SETTINGS)
    with Crew(learner, chunking[1], 1) as crew:
        worker.answer(snapshot(crew._replica))
    monkeypatch.setattr(worker.replica, "evaluate", slow)
    monkeypatch.setattr(worker.replica, "commit", slower)
    opening, later = (messages.head_of(worker.answer(turn(0, last, last + 16))) for last in (0, 1))
    assert min(opening.spent, later.spent) >= 10_000_000
    assert opening.before < later.before
    assert later.before >= 20_000_000


def turn(first, last, until):
    head = messages.Head(messages.TURN, first, last, until, 0, until - last)
    return bytes(messages.pack(head, batching.room_for(1)))
