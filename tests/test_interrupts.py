"""Signals wait until the work's state is whole, and then do what they would have done."""

from __future__ import annotations

import contextlib
import signal
import threading

import pytest

from sparsezo.signals import DeferredSignals, Unbroken

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


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.default_int_handler])
@pytest.mark.parametrize("number", BOTH)
def test_what_would_end_the_process_is_a_keyboard_interrupt(number, handler):
    signal.signal(number, handler)
    with DeferredSignals() as signals:
        signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):
            signals.deliver()
    assert signal.getsignal(number) == handler


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


@pytest.mark.parametrize("number", BOTH)
def test_what_others_begin_and_end_is_unbroken(came, number):
    before = {each: signal.getsignal(each) for each in BOTH}
    unbroken = Unbroken()
    for _ in range(2):  # again and again
        unbroken.begin()
        unbroken.begin()
        signal.raise_signal(number)
        assert came == []
        unbroken.end()  # the inner one's end is early enough
        assert came == [(number, None)]
        signal.raise_signal(number)
        assert came == [(number, None)]
        unbroken.end()
        assert came == [(number, None)] * 2
        assert {each: signal.getsignal(each) for each in BOTH} == before
        came.clear()


def test_an_exception_at_an_end_leaves_nothing_behind():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unbroken = Unbroken()
    unbroken.begin()
    unbroken.begin()
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        unbroken.end()
    unbroken.end()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN])
@pytest.mark.parametrize("number", BOTH)
def test_what_is_no_exception_is_left_alone_by_unbroken(number, handler):
    """A process that a signal ends at once is ended at once, while it compiles, too."""
    signal.signal(number, handler)
    unbroken = Unbroken()
    unbroken.begin()
    assert signal.getsignal(number) == handler
    unbroken.end()
    assert signal.getsignal(number) == handler


def test_another_thread_breaks_nothing_of_unbroken(came):
    unbroken = Unbroken()
    unbroken.begin()
    signal.raise_signal(signal.SIGINT)
    for call in (unbroken.begin, unbroken.end):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    assert came == []
    unbroken.end()
    assert came == [(signal.SIGINT, None)]
