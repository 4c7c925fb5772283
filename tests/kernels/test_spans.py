"""Questions about spans, spans' probabilities and supervision with tags that are not known, against enumeration."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import twins
from kernel_calls import supervise
from question_calls import evidence, options, truth
from test_questions import CHUNKS, TAG_SETS, Q, made, seen, simulated

from sparsezo.kernels import codes, protocol, random
from sparsezo.kernels.jit import allocating_kernel as kernel
from sparsezo.questions import span_code, span_of
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.kernels.task import MISSING, ChunkGold, chunk_task


@kernel
def span_chances(task, x, S, y, out):
    return protocol.span_chances(task, x, S, y[:0], y, out)


def spans(path, tags):
    kind, chunk_type, _ = TAG_SETS[tags]
    return sorted((a, b, 2 * int(t)) for a, b, t in twins.chunks(path, kind, chunk_type))


def answer_of(path, tags, first, last):
    """What somebody says who knows that the path is right: the first span that touches first to last, or none."""
    return next((span_code(*span) for span in spans(path, tags) if span[0] <= last and span[1] >= first), codes.NO_SPAN)


def test_a_span_is_one_number_and_back():
    for span in [(0, 0, 0), (3, 4, 2), (9_999, 9_999, 31_000), (0, 2**17 - 1, 5)]:
        assert span_of(span_code(*span)) == span
        assert float(int(span_code(*span))) == span_code(*span)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("tags", CHUNKS)
def test_an_answer_about_a_span(tags, order):
    """Every answer that anybody may give: its likelihood, its gradient, and in the mean nothing is learned."""
    R = 4
    task, S, paths, p, phi = made(tags, order, R, seed=3)
    n = (task.n_tags - 1) // 2 + 1
    mean = np.tensordot(p, phi, 1)
    for first in range(R):
        for last in range(first, R):
            said_by = np.array([answer_of(path, tags, first, last) for path in paths])
            at_hand = {codes.NO_SPAN, *(span_code(first, last, 2 * t) for t in range(n - 1))}
            for e in (0.0, 0.1):
                random_answer = e * n / (n - 1)  # then one of those at hand, whatever is right
                total, step = 0.0, np.zeros_like(S)
                for answer in {*said_by.tolist(), *at_hand}:
                    happens = said_by == answer
                    base = random_answer / n if answer in at_hand else 0.0
                    likelihood = base + (1 - random_answer) * p[happens].sum()
                    D = np.full(S.shape, np.nan, np.float32)
                    q = np.array([first, 0, last, 0], np.int32)
                    args = (codes.SPAN, codes.ABOUT_CHUNK, q, Q, Q, answer, e, e, D)
                    assert evidence(task, 0, S, *args) == pytest.approx(likelihood, rel=2e-4, abs=1e-6)
                    inside = np.tensordot(p * happens, phi, 1)
                    slope = (1 - random_answer) * (inside - p[happens].sum() * mean) / likelihood
                    np.testing.assert_allclose(D, slope, atol=2e-4)
                    total, step = total + likelihood, step + likelihood * D
                assert total == pytest.approx(1, abs=1e-6)
                np.testing.assert_allclose(step, 0, atol=1e-4)  # E[D] = 0


@pytest.mark.parametrize("tags", CHUNKS)
def test_truth_of_a_span(tags):
    R = 4
    task, _, paths, _, _ = made(tags, 2, R, seed=2)
    for z in paths[np.random.default_rng(1).permutation(len(paths))[:60]]:
        gold = ChunkGold(np.array([0, R]), z.astype(np.int16))
        for first in range(R):
            for last in range(first, R):
                q = np.array([first, 0, last, 0], np.int32)
                assert truth(gold, task, 0, codes.SPAN, codes.ABOUT_CHUNK, q, Q, Q) == answer_of(z, tags, first, last)


def test_a_span_of_a_type_that_no_output_has_is_none():
    task = made("B I O", 2, 3, seed=1)[0]
    gold = ChunkGold(np.array([0, 3]), np.array([3, 4, 0], np.int16))  # B and I of another type, then B
    for last, expected in ((1, codes.NO_SPAN), (2, span_code(2, 2, 0))):
        q = np.array([0, 0, last, 0], np.int32)
        assert truth(gold, task, 0, codes.SPAN, codes.ABOUT_CHUNK, q, Q, Q) == expected


def test_a_rater_who_errs_picks_an_answer_at_hand():
    task = made("two types", 2, 4, seed=1)[0]
    keys = np.array([random.stream_key(1, stream) for stream in random.STREAMS], np.uint64)
    settings = {"rule": codes.SPAN, "about": codes.ABOUT_CHUNK, "feedback": codes.FLIP, "noise": 0.2, "keys": keys}
    params = Settings("span", None, 0.1, None, "adagrad").step_params()._replace(**settings)
    q, n = np.array([1, 2, 2, 0], np.int32), 6000
    at_hand = [span_code(1, 2, 0), span_code(1, 2, 2), float(codes.NO_SPAN)]
    assert options(task, 0, codes.SPAN, codes.ABOUT_CHUNK) == len(at_hand)
    for right, wrong in ((at_hand[0], at_hand[1:]), (span_code(0, 3, 2), at_hand)):
        found = Counter(simulated(task, params, 0, step, right, q) for step in range(n))
        share = 0.3 / len(at_hand)  # one answer in ten at hand is right by chance
        for answer in wrong:
            assert found.pop(answer) / n == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / n))
        assert set(found) == {right}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("tags", CHUNKS)
def test_probabilities_of_spans(tags, order):
    for R, seed in ((1, 0), (3, 1), (5, 2)):
        task, S, paths, p, _ = made(tags, order, R, seed=seed, size=2.0)
        y, out = np.zeros(R, np.int32), np.full(R, np.nan, np.float32)
        span_chances(task, 0, S, y, out)
        assert (y == paths[p.argmax()]).all()
        expected = np.zeros(R)
        for span in spans(y, tags):
            expected[span[0]] = sum(p[k] for k, path in enumerate(paths) if span in spans(path, tags))
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("tags", TAG_SETS)
def test_supervision_with_tags_that_are_not_known(tags, order):
    """The gradient of log P(what is known); with all of it known, what full supervision gives."""
    R = 4
    task, S, paths, p, phi = made(tags, order, R, seed=9)
    shown = np.array([seen(path, tags) for path in paths])
    rng = np.random.default_rng(2)
    for _ in range(20):
        z = np.array(seen(paths[rng.integers(len(paths))], tags))
        known = rng.random(R) < 0.6
        gold = ChunkGold(np.array([0, R]), np.where(known, z, MISSING).astype(np.int16))
        D = np.full(S.shape, np.nan, np.float32)
        supervise(gold, task, 0, S, D)
        happens = (shown[:, known] == z[known]).all(axis=1)
        for i in range(1, R):  # a span that is known ends before what is not
            if TAG_SETS[tags][2] and known[i - 1] and not known[i] and z[i - 1] != task.n_tags - 1:
                happens &= shown[:, i] != z[i - 1] + (z[i - 1] % 2 == 0)
        if not happens.any():
            continue
        given = np.tensordot(p * happens / p[happens].sum(), phi, 1)
        if not known.all():
            np.testing.assert_allclose(D, given - np.tensordot(p, phi, 1), atol=2e-4)


def test_what_is_known_of_a_long_sentence_does_not_underflow():
    """From zero weights the tags of 400 tokens have probability 5^-399: no number of float32, or of float64 here."""
    R = 400
    kind, chunk_type, _ = TAG_SETS["two types"]
    task = chunk_task(np.array([R]), np.array(kind, np.int8), np.array(chunk_type, np.int32), 4, order=2)
    S = np.zeros((R, 25), np.float32)
    z = np.full(R, 4, np.int16)
    z[10:13] = 0, 1, 1
    whole, partly = np.zeros_like(S), np.zeros_like(S)
    supervise(ChunkGold(np.array([0, R]), z), task, 0, S, whole)
    z[300] = MISSING
    supervise(ChunkGold(np.array([0, R]), z), task, 0, S, partly)
    assert np.isfinite(partly).all()
    as_shown = np.zeros((25, 5))  # an I that starts a span is its B: what is known of tags is what people see
    as_shown[np.arange(25), task.shown] = 1
    np.testing.assert_allclose(partly[:299] @ as_shown, whole[:299] @ as_shown, atol=1e-4)
    assert (partly[300] @ as_shown).max() < 0.5
