"""Group commit: what is acknowledged is written and applied; where the log fails, nobody waits for ever."""

from __future__ import annotations

import threading

import pytest

from sparsezo.errors import SparsezoError
from sparsezo.serve.log import LookRow
from sparsezo.serve.writer import Writer

SECONDS = 30  # after which somebody who waits is taken to wait for ever


class Held:
    """A log whose first transaction takes until it is let go, and then fails or not."""

    def __init__(self, failure: BaseException | None = None) -> None:
        self.failure = failure
        self.begun, self.go = threading.Event(), threading.Event()
        self.added: list[LookRow] = []

    def add(self, rows) -> None:
        self.begun.set()
        assert self.go.wait(SECONDS)
        if self.failure is not None:
            raise self.failure
        self.added += rows


def row(number):
    return LookRow(number, 0.0, 0, "f1", 0.5)


def test_what_waits_is_written_in_one_transaction_and_applied_before_it_is_acknowledged():
    log, applied = Held(), []
    writer = Writer(log, applied.append)
    first = writer.put([row(1)])
    assert log.begun.wait(SECONDS)
    others = [writer.put([row(2)]), writer.put([row(3), row(4)])]
    assert not first.done()
    log.go.set()
    for done in (first, *others):
        done.result(SECONDS)
    assert log.added == [row(1), row(2), row(3), row(4)]
    assert applied == [[row(1)], [row(2), row(3), row(4)]]
    writer.stop()
    with pytest.raises(SparsezoError, match="the session has ended; start it again"):
        writer.put([row(5)])


@pytest.mark.parametrize("where", ["log", "model"])
def test_when_the_log_or_the_model_fails_whoever_is_queued_is_told(where):
    failure = SparsezoError("the disk is full")
    log = Held(failure if where == "log" else None)

    def apply(rows):
        raise failure

    writer = Writer(log, apply)
    first = writer.put([row(1)])
    assert log.begun.wait(SECONDS)
    queued = [writer.put([row(number)]) for number in (2, 3)]  # while the first is being written
    log.go.set()
    for done in (first, *queued):
        with pytest.raises(SparsezoError, match=r"^not saved: the disk is full$"):
            done.result(SECONDS)
    assert log.added == ([] if where == "log" else [row(1)])
    with pytest.raises(SparsezoError, match="the session has ended: the disk is full; start it again"):
        writer.put([row(4)])
    writer.stop()  # which has nothing to wait for
