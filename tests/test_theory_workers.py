"""The model of N workers against a play of its messages by events, enumeration and cases done by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsezo.errors import UsageError
from sparsezo.theory.schedule import Busy, Post, Times, Wait, play, simulate, tree
from sparsezo.theory.workers import (
    Link,
    Table,
    Work,
    balanced_batch,
    batch_seconds,
    best_workers,
    computing_seconds,
    largest_of,
    least_bandwidth,
    least_batch,
    run_seconds,
    speedup,
)

WORK = Work(evaluate=4e-6, apply=6e-6, moves=0.125)
LINK = Link(message=2e-5, latency=5e-5, bandwidth=1e9)

seconds = st.floats(1e-7, 1e-3)
works = st.builds(Work, evaluate=seconds, apply=seconds, moves=st.floats(0, 1), turn=st.floats(0, 1e-3))
links = st.builds(Link, message=seconds, latency=st.floats(0, 1e-2), bandwidth=st.floats(1e5, 1e11))


def played(work: Work, link: Link, batch: int, shares: list[float], parents: tuple[int, ...] | list[int] = ()) -> float:
    """A batch in the middle of a run; a message is what it costs by the definition of ``Link``, spelt out."""
    moves = [work.moves * batch / len(shares)] * len(shares)
    times = Times(
        apply=work.apply * work.moves * batch,
        shares=shares,
        send=link.message + (link.head + link.step * sum(moves)) / link.bandwidth,
        take=link.message + link.head / link.bandwidth,
        carry=[link.step * each / link.bandwidth for each in moves],
        latency=link.latency,
        turn=work.turn,
    )
    return simulate(times, 3, parents) - simulate(times, 2, parents)


@settings(max_examples=150, deadline=None)
@given(works, links, st.integers(2, 48), st.integers(1, 300))
def test_with_equal_shares_the_formula_is_what_the_events_give(work, link, workers, each):
    batch = workers * each
    expected = played(work, link, batch, [each * work.evaluate] * workers)
    assert batch_seconds(work, link, batch, workers) == pytest.approx(expected, rel=1e-6)


def unequal(work: Work, link: Link, workers: int, each: int, batches: int) -> float:
    """The mean batch where steps are as sentences: some are four times as long as others."""
    variance = work.spread**2
    shares = work.evaluate * np.random.default_rng(0).gamma(each / variance, variance, size=(batches, workers))
    return float(np.mean([played(work, link, workers * each, list(row)) for row in shares]))


@settings(max_examples=50, deadline=None)
@given(works, links, st.integers(2, 48), st.integers(64, 300))
def test_with_steps_of_unequal_length_the_formula_is_close(work, link, workers, each):
    """A little above: shares that come in one after the other need not all be there at once."""
    work = replace(work, spread=0.5)
    expected = unequal(work, link, workers, each, 16)
    assert batch_seconds(work, link, workers * each, workers) == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(("workers", "each"), [(2, 32), (16, 64), (64, 128)])
def test_all_wait_for_the_longest_share(workers, each):
    work, link = replace(WORK, moves=0.01, spread=0.6), Link(1e-9, 1e-9, 1e12)
    expected = unequal(work, link, workers, each, 200)
    assert batch_seconds(work, link, workers * each, workers) == pytest.approx(expected, rel=0.015)
    assert batch_seconds(replace(work, spread=0.0), link, workers * each, workers) < 0.96 * expected


@settings(max_examples=60, deadline=None)
@given(works, links, st.integers(2, 48), st.integers(20, 400), st.integers(0, 47))
def test_a_batch_that_cannot_be_shared_equally_is_as_its_largest_share(work, link, workers, each, more):
    from sparsezo.workers.shares import deal

    batch = workers * each + more % workers
    expected = played(
        work, link, batch, [work.evaluate * (end - begin) for begin, end in deal(batch, [None] * workers)]
    )
    assert batch_seconds(work, link, batch, workers) == pytest.approx(expected, rel=0.05)
    assert batch_seconds(work, link, batch, workers) >= expected * (1 - 1e-9)


@pytest.mark.parametrize(("workers", "batch"), [(256, 16_384), (1024, 262_144)])
def test_it_holds_for_as_many_as_there_may_be(workers, batch):
    share = batch / workers * WORK.evaluate
    assert batch_seconds(WORK, LINK, batch, workers) == pytest.approx(played(WORK, LINK, batch, [share] * workers))


def test_a_case_by_hand():
    """Two workers: 8 steps of 1 s, each moves (1 s), a message 1 s and 1 byte/s; 0.5 s on the way."""
    work = Work(evaluate=1.0, apply=1.0, moves=1.0, turn=0.25)
    link = Link(message=1.0, latency=0.5, bandwidth=16.0, head=0)
    # out 1 + 8, way .5, turn .25, apply 8, evaluate 4, way .5, in 1 + 4
    assert batch_seconds(work, link, 8, 2) == 9 + 0.5 + 0.25 + 8 + 4 + 0.5 + 5
    assert batch_seconds(work, link, 8, 1) == 16.0  # one process: no messages, no turns


def test_one_is_1_and_free_messages_give_the_bound():
    assert speedup(WORK, LINK, 64, 1) == 1.0
    free = Link(0.0, 0.0, 1e30)
    assert speedup(WORK, free, 1024, 1024) == pytest.approx((4 + 0.75) / (4 / 1024 + 0.75))
    assert WORK.bound == pytest.approx(4.75 / 0.75)
    assert Work(1.0, 1.0, 0.0).bound == math.inf


@pytest.mark.parametrize(("inputs", "batch"), [(1, 5), (40, 8), (40, 40), (40, 700)])
def test_what_steps_of_one_input_share_is_counted_once(inputs, batch):
    work = Work(evaluate=5.0, apply=1.0, moves=0.25, saved=3.0, inputs=inputs)
    draws = np.random.default_rng(0).integers(0, inputs, (4000, batch))
    seen = np.mean([len(np.unique(row)) for row in draws])
    assert work.at(batch).evaluate == pytest.approx(2.0 + 3.0 * seen / batch, rel=0.01)
    assert work.at(batch).at(batch) == work.at(batch)
    free = Link(0.0, 0.0, 1e30)
    each = work.at(batch).evaluate
    assert speedup(work, free, batch, 1) == pytest.approx(1.0)
    assert batch_seconds(work, free, batch, 1) == pytest.approx(batch * (each + 0.25))
    assert speedup(work, free, 8 * batch, 4) == pytest.approx(speedup(work.at(8 * batch), free, 8 * batch, 4))


@pytest.mark.parametrize("workers", [0, 65])
def test_more_workers_than_steps_are_refused(workers):
    with pytest.raises(UsageError, match=rf"`workers` {workers}: .* `batch`, which has 64"):
        batch_seconds(WORK, LINK, 64, workers)


@pytest.mark.parametrize("batch", [16, 500, 4096])
def test_the_best_number_of_workers_is_that_of_a_search(batch):
    rates = [speedup(WORK, LINK, batch, workers) for workers in range(1, min(batch, 1024) + 1)]
    assert best_workers(WORK, LINK, batch) == 1 + int(np.argmax(rates))


def test_for_large_batches_it_goes_as_the_root_of_bandwidth():
    """docs/scaling.md: sqrt(evaluate * bandwidth / (16 p))."""
    link = Link(1e-6, 0.0, 1e9)
    assert best_workers(WORK, link, 2**26) == pytest.approx(math.sqrt(4e-6 * 1e9 / (16 * 0.125)), rel=0.03)


@pytest.mark.parametrize("workers", [2, 3, 16])
def test_the_smallest_batches_are_those_of_a_search(workers):
    batches = range(workers, 6000)
    pays = [speedup(WORK, LINK, batch, workers) > 1 for batch in batches]
    assert least_batch(WORK, LINK, workers) == batches[pays.index(True)]
    half = [batch_seconds(WORK, LINK, b, workers) <= 2 * computing_seconds(WORK, b, workers) for b in batches]
    assert balanced_batch(WORK, LINK, workers) == batches[half.index(True)]


def test_no_batch_pays_on_a_slow_link():
    slow = replace(LINK, bandwidth=1e5)  # 16 bytes take longer than to evaluate the step
    assert least_batch(WORK, slow, 2) is None
    assert balanced_batch(WORK, slow, 2) is None


@pytest.mark.parametrize(("batch", "workers"), [(1024, 2), (16_384, 16), (262_144, 512)])
def test_at_the_least_bandwidth_workers_are_as_fast_as_one(batch, workers):
    least = least_bandwidth(WORK, LINK, batch, workers)
    assert speedup(WORK, replace(LINK, bandwidth=least), batch, workers) == pytest.approx(1.0)
    assert speedup(WORK, replace(LINK, bandwidth=1.1 * least), batch, workers) > 1
    assert least_bandwidth(WORK, LINK, 16, 16) is None  # 30 messages for 16 steps


def test_the_mean_of_the_largest_normal():
    draws = np.random.default_rng(0).standard_normal((20_000, 64))
    for count in (2, 8, 64):
        assert largest_of(count) == pytest.approx(draws[:, :count].max(axis=1).mean(), abs=0.03)
    assert largest_of(1) == 0.0


def test_what_grows_with_n():
    link = Link(message=1.0, latency=0.0, bandwidth=100.0)
    small, large = Table(n=1000, data=40, hashing=1e-9), Table(n=10**9, hashing=1e-9)
    assert small.joining(link, 3) == 2 * (1.0 + 4040 / 100)
    assert small.checking == pytest.approx(1000 * 1e-9 / 200_000)
    assert large.checking == pytest.approx(8e-9)  # as every 125M steps
    assert run_seconds(WORK, link, 64, 1, 6400, large) == pytest.approx(100 * batch_seconds(WORK, link, 64, 1))
    expected = 100 * batch_seconds(WORK, link, 64, 3) + small.joining(link, 3) + 6400 * small.checking
    assert run_seconds(WORK, link, 64, 3, 6400, small) == pytest.approx(expected)


def test_the_models_facts_are_the_programs():
    from sparsezo.kernels.batching import MOVES, room_for
    from sparsezo.workers import crew, messages

    batch = room_for(8)
    assert len(messages.pack(messages.Head(messages.SHARE), batch)) == LINK.head
    batch.tally[MOVES] = 5
    assert len(messages.pack(messages.Head(messages.SHARE), batch)) == LINK.head + 5 * LINK.step
    assert (Table(1).checked, Table(1).checked_weights) == (crew._CHECKED_STEPS, crew._CHECKED_WEIGHTS)


# The events


def test_messages_wait_for_their_reader_and_readers_for_messages():
    def early():
        yield Post((0, 1), 2.0)
        yield Busy(1.0)
        yield Post((0, 1), 0.0)
        yield Wait((1, 0))

    def late():
        yield Wait((0, 1))  # at 2
        yield Busy(5.0)  # to 7
        yield Wait((0, 1))  # there since 1
        yield Post((1, 0), 0.5)
        yield Busy(1.0)

    assert play([early(), late()]) == [7.5, 8.0]


def test_whoever_waits_in_vain_is_told():
    with pytest.raises(RuntimeError, match="1 wait for ever"):
        play([iter([Wait((1, 0))])])


def test_a_tree_of_one_level_is_the_star_and_a_deeper_one_frees_the_programs_link():
    shares = [16 * WORK.evaluate] * 64
    star = played(WORK, LINK, 1024, shares)
    assert played(WORK, LINK, 1024, shares, tree(64, 63)) == star
    assert played(WORK, LINK, 1024, shares, tree(64, 4)) < star / 2
    assert tree(8, 2) == [0, 0, 1, 1, 2, 2, 3]


def test_a_chain_by_hand():
    """0 - 1 - 2, nothing on the way: each sends (1 s) before it works (apply 2 s, evaluate 4 s)."""
    times = Times(apply=2.0, shares=[4.0] * 3, send=1.0, take=0.5, carry=[0.25] * 3, latency=0.0)
    # 1 has it at 1, 2 at 2; 2 is done at 8, 1 at 8; 1 takes in one share to 8.75, 0 two shares to 9.75
    assert simulate(times, 1, [0, 1]) == 9.75
