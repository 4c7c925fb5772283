"""Signals wait until the work's state is whole, and then do what they would have done."""

from __future__ import annotations

import contextlib
import signal
import threading

import pytest

from sparsezo.interrupts import DeferredSignals

BOTH = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def _as_they_were():
    """Whatever a test sets, and whatever this process was started with."""
    before = {number: signal.getsignal(number) for number in BOTH}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def came():
    """What came, by a handler for both signals."""
    came: list[tuple[int, object]] = []
    for number in BOTH:
        signal.signal(number, lambda number, frame: came.append((number, frame)))
    return came


@pytest.mark.parametrize("number", BOTH)
def test_a_signal_waits_for_deliver(came, number):
    before = {each: signal.getsignal(each) for each in BOTH}
    with DeferredSignals() as signals:
        signals.deliver()
        assert came == []
        signal.raise_signal(number)
        assert came == []
        signals.deliver()
        assert came == [(number, None)]
        signals.deliver()
        assert came == [(number, None)]  # once
        signal.raise_signal(number)
        assert came == [(number, None)]
    assert came == [(number, None)] * 2  # the end delivers, too
    assert {each: signal.getsignal(each) for each in BOTH} == before
    signal.raise_signal(number)
    assert len(came) == 3
    assert came[-1][1] is not None  # at once, with its frame


@pytest.mark.parametrize("number", BOTH)
def test_work_that_failed_says_so_whatever_came(came, number):
    before = signal.getsignal(number)
    with contextlib.suppress(ZeroDivisionError), DeferredSignals():
        signal.raise_signal(number)
        raise ZeroDivisionError
    assert came == []
    assert signal.getsignal(number) is before


def test_ctrl_c_is_a_keyboard_interrupt():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with DeferredSignals() as signals:
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signals.deliver()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("number", BOTH)
def test_a_signal_that_would_end_the_process_is_a_keyboard_interrupt(number):
    signal.signal(number, signal.SIG_DFL)
    with DeferredSignals() as signals:
        signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):
            signals.deliver()
    assert signal.getsignal(number) == signal.SIG_DFL


@pytest.mark.parametrize("number", BOTH)
def test_a_signal_that_was_ignored_stays_ignored(number):
    signal.signal(number, signal.SIG_IGN)
    try:
        with DeferredSignals() as signals:
            signal.raise_signal(number)
            signals.deliver()
    except KeyboardInterrupt:
        pytest.fail("it was not ignored")
    assert signal.getsignal(number) == signal.SIG_IGN


def test_one_within_another_hands_the_signal_on(came):
    with DeferredSignals() as outer:
        with DeferredSignals() as inner:
            signal.raise_signal(signal.SIGTERM)
            inner.deliver()
            assert came == []
        assert came == []
        outer.deliver()
        assert came == [(signal.SIGTERM, None)]


def test_other_threads_have_no_signals_to_defer(came):
    before = {number: signal.getsignal(number) for number in BOTH}
    within, errors = [], []

    def work():
        try:
            with DeferredSignals() as signals:
                within.append({number: signal.getsignal(number) for number in BOTH})
                signals.deliver()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert errors == []
    assert within == [before]
    assert came == []


@pytest.mark.parametrize("first", BOTH)
def test_the_first_signal_counts(came, first):
    """Both are one wish: to stop. It has one exit code, and it is not wished again when it is granted."""
    (second,) = set(BOTH) - {first}
    with DeferredSignals() as signals:
        for number in (first, second, first, second):
            signal.raise_signal(number)
        signals.deliver()
        signals.deliver()
    assert came == [(first, None)]
