"""What an answer says of a tag path, against enumeration: likelihoods, gradients, truths, choice of questions."""

from __future__ import annotations

from collections import Counter

import counting
import numpy as np
import pytest
import twins
from question_calls import KEY, evidence, look, option, options, truth

from sparsezo.kernels import answering, codes
from sparsezo.kernels.jit import allocating_kernel as kernel
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.kernels import chains, events, questions
from sparsezo.tasks.chunking.kernels.expected_f1 import LANES, expected_f1, node_table, nodes_for
from sparsezo.tasks.chunking.kernels.task import ChunkGold, chunk_task

assert questions  # it says how chunking is asked about

# (kind, chunk type) as Chunking has them: B and I of each type, O last; and tags that are no chunks
BIO = ([1, 2, 0], [0, 0, -1], True)
TWO_TYPES = ([1, 2, 1, 2, 0], [0, 0, 1, 1, -1], True)
PLAIN = ([0, 0, 0, 0], [-1, -1, -1, -1], False)
TAG_SETS = {"B I O": BIO, "two types": TWO_TYPES, "plain": PLAIN}
CHUNKS = {name: tags for name, tags in TAG_SETS.items() if tags[2]}
FOUR_TYPES = ([1, 2] * 4 + [0], [0, 0, 1, 1, 2, 2, 3, 3, -1], True)  # of ratings alone
Q = np.zeros(4, np.int32)


@kernel
def simulated(task, params, x, step, right, q):
    return answering.said(task, params, x, step, right, q)


def made(tags, order, R, seed, size=1.5):
    """(task, S, all paths, their probabilities, d score / dS of each)."""
    kind, chunk_type, chunks = {**TAG_SETS, "four types": FOUR_TYPES}[tags]
    K = len(kind)
    kinds = np.array(kind, np.int8), np.array(chunk_type, np.int32)
    task = chunk_task(np.array([R]), *kinds, K - 1, order=order, risk=True, chunks=chunks, rates=True)
    rng = np.random.default_rng(seed)
    S = rng.normal(0, size, (R + K, K) if order == 1 else (R, K * K)).astype(np.float32)
    paths = twins.all_paths(R, K)
    phi = twins.score_features(paths, K, K - 1, order)
    return task, S, paths, twins.softmax(np.tensordot(phi, S.astype(float), 2)), phi


def seen(path, tags):
    """The tags that a person sees: an I that starts a chunk is a B."""
    kind, chunk_type, chunks = TAG_SETS[tags]
    out = []
    for i, tag in enumerate(path):
        goes_on = i > 0 and kind[path[i - 1]] != 0 and chunk_type[path[i - 1]] == chunk_type[tag]
        out.append(tag - 1 if chunks and kind[tag] == 2 and not goes_on else tag)
    return out


def checked(task, S, p, phi, happens, kind, about, q, y, other, answer, base, scale, e0, e1):
    """The likelihood is base + scale P(A); D is its gradient, exactly."""
    happens = np.array(happens)
    P = p[happens].sum()
    mean = np.tensordot(p, phi, 1)
    inside = np.tensordot(p * happens, phi, 1)  # P M_A
    D = np.full(S.shape, np.nan, np.float32)
    got = evidence(task, 0, S, kind, about, q, y, other, answer, e0, e1, D)
    assert got == pytest.approx(base + scale * P, rel=2e-4, abs=1e-6)
    np.testing.assert_allclose(D, scale * (inside - P * mean) / (base + scale * P), atol=2e-4)
    return got, D


ERRORS = [(0.0, 0.0), (0.1, 0.1), (0.05, 0.2)]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("tags", TAG_SETS)
def test_an_answer_about_a_token(tags, order):
    for R in (1, 2, 4):
        task, S, paths, p, phi = made(tags, order, R, seed=R)
        K = task.n_tags
        shown = np.array([seen(path, tags) for path in paths])
        for i in range(R):
            expected = np.zeros_like(S)
            for l in range(K):
                if not (shown[:, i] == l).any():
                    continue  # I at the first token
                q = np.array([i, l, i, 0], np.int32)
                for e0, e1 in ERRORS:
                    rest = (codes.PART, 0, q, Q, Q)
                    yes = checked(task, S, p, phi, shown[:, i] == l, *rest, codes.YES, e0, 1 - e0 - e1, e0, e1)
                    no = checked(task, S, p, phi, shown[:, i] != l, *rest, codes.NO, e1, 1 - e0 - e1, e0, e1)
                    assert yes[0] + no[0] == pytest.approx(1, abs=1e-5)
                    np.testing.assert_allclose(yes[0] * yes[1] + no[0] * no[1], 0, atol=1e-4)  # E[D] = 0
                e = 0.1
                rest = (codes.LABEL, 0, q, Q, Q)
                got, D = checked(task, S, p, phi, shown[:, i] == l, *rest, l, e / (K - 1), 1 - e * K / (K - 1), e, 0)
                expected += got * D
            if (np.unique(shown[:, i]).size) == K:
                np.testing.assert_allclose(expected, 0, atol=1e-4)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("tags", CHUNKS)
def test_an_answer_about_a_chunk(tags, order):
    R = 4
    task, S, paths, p, phi = made(tags, order, R, seed=5)
    kind, chunk_type, _ = TAG_SETS[tags]
    sets = [twins.chunks(path, kind, chunk_type) for path in paths]
    n_types = (task.n_tags - 1) // 2
    for first in range(R):
        for last in range(first, R):
            by_type = [np.array([(first, last, str(t)) in some for some in sets]) for t in range(n_types)]
            none = ~np.any(by_type, axis=0)
            e, expected = 0.1, np.zeros_like(S)
            n = n_types + 1
            base, scale = e / (n - 1), 1 - e * n / (n - 1)
            for t in range(n_types):
                q = np.array([first, 2 * t, last, 0], np.int32)
                for e0, e1 in ERRORS:
                    rest = (codes.PART, codes.ABOUT_CHUNK, q, Q, Q)
                    yes = checked(task, S, p, phi, by_type[t], *rest, codes.YES, e0, 1 - e0 - e1, e0, e1)
                    no = checked(task, S, p, phi, ~by_type[t], *rest, codes.NO, e1, 1 - e0 - e1, e0, e1)
                    np.testing.assert_allclose(yes[0] * yes[1] + no[0] * no[1], 0, atol=1e-4)
                rest = (codes.LABEL, codes.ABOUT_CHUNK, q, Q, Q)
                got, D = checked(task, S, p, phi, by_type[t], *rest, 2 * t, base, scale, e, 0)
                expected += got * D
            got, D = checked(task, S, p, phi, none, *rest, task.n_tags - 1, base, scale, e, 0)
            np.testing.assert_allclose(expected + got * D, 0, atol=1e-4)


def compared(y, other, z, tags):
    """What somebody says who knows that z is right, and counts."""
    kind, chunk_type, chunks = TAG_SETS[tags]
    loss = [twins.one_minus_f1(path, z, kind, chunk_type) if chunks else (path != z).sum() for path in (y, other)]
    return codes.FIRST if loss[0] < loss[1] else codes.SECOND if loss[1] < loss[0] else codes.TIE


def asked_pairs(paths, tags, n, apart):
    """Pairs that show something else, with ``apart(difference of their numbers of chunks)``."""
    kind, chunk_type, _ = TAG_SETS[tags]
    rng = np.random.default_rng(1)
    found = []
    while len(found) < n:
        y, other = (paths[k].astype(np.int32) for k in rng.integers(len(paths), size=2))
        size = [len(twins.chunks(path, kind, chunk_type)) if TAG_SETS[tags][2] else 0 for path in (y, other)]
        if seen(y, tags) != seen(other, tags) and apart(abs(size[0] - size[1])):
            found.append((y, other))
    return found


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("tags", TAG_SETS)
def test_an_answer_about_a_pair(tags, order):
    """The likelihood is that of somebody who compares F1 with a truth drawn from the model; its mean step is 0."""
    R = 4
    task, S, paths, p, phi = made(tags, order, R, seed=8)
    none, one = np.full(R, task.n_tags - 1, np.int32), np.array([0, *[task.n_tags - 1] * (R - 1)], np.int32)
    for y, other in [*asked_pairs(paths, tags, 25, lambda apart: apart <= 2), (none, one), (one, none)]:
        said = np.array([compared(y, other, z, tags) for z in paths])
        for e in (0.0, 0.1):
            total, likelihoods = np.zeros_like(S), 0.0
            for answer in (codes.FIRST, codes.SECOND, codes.TIE):
                if e == 0 and not (said == answer).any():
                    continue
                rest = (codes.PAIR, 0, Q, y, other, answer)
                got, D = checked(task, S, p, phi, said == answer, *rest, e / 2, 1 - 1.5 * e, e, e)
                total += got * D
                likelihoods += got
            assert likelihoods == pytest.approx(1, abs=1e-5)
            np.testing.assert_allclose(total, 0, atol=5e-4)  # E[D] = 0


def test_pairs_of_very_different_numbers_of_chunks_are_all_but_exact():
    """Where one has three chunks more, the fewer right ones of the other may be worth as much: docs/answers.md."""
    R, worst = 4, 0.0
    task, S, paths, p, _ = made("B I O", 2, R, seed=8)
    for y, other in asked_pairs(paths, "B I O", 12, lambda apart: apart > 2):
        said = np.array([compared(y, other, z, "B I O") for z in paths])
        mean = np.zeros_like(S)
        for answer in (codes.FIRST, codes.SECOND, codes.TIE):
            D = np.zeros_like(S)
            evidence(task, 0, S, codes.PAIR, 0, Q, y, other, answer, 0.0, 0.0, D)
            mean += p[said == answer].sum() * D
        worst = max(worst, np.abs(mean).max())
    assert 0.01 < worst < 0.15


@pytest.mark.parametrize("rule", ["pair", "label"])
def test_a_simulated_rater_who_errs_gives_any_of_the_other_answers(rule):
    """So that an answer has the likelihood that is believed of it: P (1 - e K / (K - 1)) + e / (K - 1)."""
    task = made("B I O", 2, 3, seed=1)[0]  # K = 3 answers to either
    params = Settings(rule, None, 0.1, None, "adagrad", feedback="flip:0.3").step_params()
    n = 4000
    for right in range(3):
        said = Counter(simulated(task, params, 0, step, float(right), Q) for step in range(n))
        for answer in range(3):
            share = 0.7 if answer == right else 0.15
            assert said[answer] / n == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / n))


def test_a_sure_tagger_learns_from_a_no():
    """P(A) rounds to 1 in float32; the step is still finite and points away from what was shown."""
    task, S, _, _, _ = made("B I O", 2, 3, seed=1)
    S[:] = 0
    S[1, 2::3] = 30  # O at token 1
    D = np.zeros_like(S)
    q = np.array([1, 2, 1, 0], np.int32)
    assert 0 < evidence(task, 0, S, codes.PART, 0, q, Q, Q, codes.NO, 0.0, 0.0, D) < 1e-8
    assert np.isfinite(D).all()
    assert D[1, 2::3].sum() == pytest.approx(-1, abs=1e-3)
    assert D[1].sum() == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("tags", TAG_SETS)
def test_truth(tags):
    R = 4
    task, _, paths, _, _ = made(tags, 2, R, seed=2)
    kind, chunk_type, chunks = TAG_SETS[tags]
    rng = np.random.default_rng(4)
    for z in paths[rng.permutation(len(paths))[:40]]:
        gold = ChunkGold(np.array([0, R]), z.astype(np.int16))
        right = seen(z, tags)
        for i in range(R):
            for l in range(task.n_tags):
                q = np.array([i, l, i, 0], np.int32)
                assert truth(gold, task, 0, codes.PART, 0, q, Q, Q) == (right[i] == l)
                assert truth(gold, task, 0, codes.LABEL, 0, q, Q, Q) == right[i]
        y, other = (paths[rng.integers(len(paths))].astype(np.int32) for _ in range(2))
        loss = [twins.one_minus_f1(some, z, kind, chunk_type) if chunks else (some != z).mean() for some in (y, other)]
        answer = truth(gold, task, 0, codes.PAIR, 0, Q, y, other)
        assert answer == (codes.FIRST if loss[0] < loss[1] else codes.SECOND if loss[1] < loss[0] else codes.TIE)
        if chunks:
            found = twins.chunks(z, kind, chunk_type)
            for first in range(R):
                for last in range(first, R):
                    types = [int(t) for a, b, t in found if (a, b) == (first, last)]
                    q = np.array([first, 0, last, 0], np.int32)
                    yes = truth(gold, task, 0, codes.PART, codes.ABOUT_CHUNK, q, Q, Q)
                    assert yes == (types == [0])
                    label = truth(gold, task, 0, codes.LABEL, codes.ABOUT_CHUNK, q, Q, Q)
                    assert label == (2 * types[0] if types else task.n_tags - 1)


def test_how_many_answers_there_are():
    task = made("two types", 2, 3, seed=1)[0]
    kinds = (codes.PART, 0), (codes.LABEL, 0), (codes.PAIR, 0), (codes.LABEL, codes.ABOUT_CHUNK)
    assert [options(task, 0, *kind) for kind in kinds] == [2, 5, 3, 3]
    answers = [[option(task, 0, *kind, k) for k in range(options(task, 0, *kind))] for kind in kinds]
    assert answers == [[0, 1], [0, 1, 2, 3, 4], [0, 1, 2], [0, 2, 4]]  # of a chunk: B of each type, and O


@pytest.mark.parametrize("mode", [codes.UNSURE, codes.AT_ONCE, codes.AT_RANDOM])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("tags", TAG_SETS)
def test_questions_are_chosen_where_the_tagger_is_unsure(tags, order, mode):
    """Each token as often as its share says, within 5 standard errors; the tag shown is the best one."""
    R, n = 4, 4000
    task, S, paths, p, _ = made(tags, order, R, seed=11, size=6.0)
    shown = np.array([seen(path, tags) for path in paths])
    marginal = np.array([[p[shown[:, i] == l].sum() for l in range(task.n_tags)] for i in range(R)])
    unsure = np.ones(R) if mode == codes.AT_RANDOM else (1 - marginal.max(axis=1)) ** 2
    asked = min(1, 4 * unsure.sum()) if mode == codes.UNSURE else 1
    count = np.zeros(R)
    y, other = np.zeros(R, np.int32), np.zeros(R, np.int32)
    for step in range(n):
        q = np.full(4, -1, np.int32)
        chance = look(task, 0, S, codes.PART, 0, mode, KEY, step, q, y, other)
        if chance == 0:
            continue
        count[q[0]] += 1
        assert q[1] == marginal[q[0]].argmax()
        assert chance == pytest.approx(asked * unsure[q[0]] / unsure.sum(), rel=1e-3)
    share = asked * unsure / unsure.sum()
    assert (np.abs(count / n - share) < 5 * np.sqrt(share * (1 - share) / n) + 1e-3).all()


def question_of(token, kind, tags, paths, p, shown):
    """What is asked where this token is drawn, by enumeration."""
    if kind == codes.PAIR:
        best = p.argmax()
        marginal = np.array([p[shown[:, token] == l].sum() for l in range(len(TAG_SETS[tags][0]))])
        marginal[shown[best, token]] = -1
        return tuple(paths[np.where(shown[:, token] == marginal.argmax(), p, 0).argmax()])
    outside = len(TAG_SETS[tags][0]) - 1
    best = paths[np.where(shown[:, token] != outside, p, 0).argmax()]
    found = twins.chunks(best, *TAG_SETS[tags][:2])
    return next((c[0], 2 * int(c[2]), c[1]) for c in found if c[0] <= token <= c[1])


@pytest.mark.parametrize("mode", [codes.UNSURE, codes.AT_ONCE, codes.AT_RANDOM])
@pytest.mark.parametrize(
    ("kind", "about"), [(codes.PART, codes.ABOUT_CHUNK), (codes.SPAN, codes.ABOUT_CHUNK), (codes.PAIR, 0)]
)
@pytest.mark.parametrize("tags", CHUNKS)
def test_the_chance_of_a_question_counts_all_ways_to_it(tags, kind, about, mode):
    """Several tokens lead to the same chunk, or the same pair."""
    R, several = 5 if tags == "B I O" else 4, 0
    for seed in range(6):
        task, S, paths, p, _ = made(tags, 2, R, seed=seed, size=3.0)
        shown = np.array([seen(path, tags) for path in paths])
        best = np.array([max(p[shown[:, i] == l].sum() for l in range(task.n_tags)) for i in range(R)])
        unsure = np.ones(R) if mode == codes.AT_RANDOM else (1 - best) ** 2
        asked = min(1, 4 * unsure.sum()) if mode == codes.UNSURE else 1
        chances = {}
        for i in range(R):
            question = question_of(i, kind, tags, paths, p, shown)
            several += question in chances
            chances[question] = chances.get(question, 0) + asked * unsure[i] / unsure.sum()
        for step in range(40):
            q, y, other = np.zeros(4, np.int32), np.zeros(R, np.int32), np.zeros(R, np.int32)
            chance = look(task, 0, S, kind, about, mode, KEY, step, q, y, other)
            if chance > 0:
                what = tuple(other.tolist()) if kind == codes.PAIR else tuple(q[:3].tolist())
                assert kind != codes.PAIR or (y == paths[p.argmax()]).all()
                assert chance == pytest.approx(chances[what], rel=1e-3)
    assert several > 0


THREE = [
    ([1, 2, 0], [0, 0, -1], True),  # I after O is shown as B
    ([2, 1, 0], [0, 0, -1], True),  # the other way round
    ([0, 1, 2], [-1, 0, 0], True),
    ([1, 2, 0], [0, 1, -1], True),  # an I without a B of its type
    ([0, 0, 0], [-1, -1, -1], False),
]


@pytest.mark.parametrize("tags", [*THREE, *TAG_SETS.values()])
def test_what_is_shown_is_added_up_pair_by_pair(tags):
    """The same bits as the plain loop, three tags in registers too; and what is likeliest of it."""
    kind, chunk_type, chunks = tags
    K = len(kind)
    shown = events.shown_pairs(np.array(kind, np.int8), np.array(chunk_type, np.int32), K, chunks)
    rng = np.random.default_rng(K)
    for R in (1, 2, 3, 9, 30):
        start = R % K
        E = chain_of(rng.normal(0, 2, (R, K * K)).astype(np.float32), R, K, start)
        expected, p = np.zeros((R, K), np.float32), E[R, :K]
        for i in range(R - 1, 0, -1):
            before = np.zeros(K, np.float32)
            for a in range(K):
                for b in range(K):
                    both = p[b] * E[i, a * K + b]
                    expected[i, shown[a * K + b]] += both
                    before[a] += both
            p = before
        for b in range(K):
            expected[0, shown[start * K + b]] += p[b]
        got, most = np.full((R, K), np.nan, np.float32), np.full(R, np.nan, np.float32)
        events.shown_marginals(E, R, K, start, shown, np.zeros((2, K), np.float32), got)
        np.testing.assert_array_equal(got, expected)
        events.likeliest(got, R, K, most)
        np.testing.assert_array_equal(most, expected.max(axis=1))


@pytest.mark.parametrize("tags", [2, 3, 4])
def test_the_best_path_of_a_chain(tags):
    """The same as the plain loop's in float32; the last tag wins a tie, and there are ties."""
    rng = np.random.default_rng(tags)
    for R in (1, 2, 3, 9, 40):
        for even in (False, True):
            P = rng.normal(0, 2, (R, tags * tags)).astype(np.float32)
            E = chain_of(np.round(P / 4) if even else P, R, tags, tags - 1)
            best, back = np.ones(tags, np.float32), []
            for i in range(1, R):
                p = best[:, None] * E[i].reshape(tags, tags)
                back.append(tags - 1 - p[::-1].argmax(axis=0))
                best = p.max(axis=0)
                best = best * (np.float32(1) / best.max())
            last = best * E[R, :tags]
            path = [int(tags - 1 - last[::-1].argmax())]
            for before in back[::-1]:
                path.append(int(before[path[-1]]))
            y = np.full(R, 77, np.int32)
            room = np.full((R, tags), np.nan, np.float32), np.full((R, tags), 77, np.int16)
            events.best_of_chain(E, R, tags, *room, y)
            assert y.tolist() == path[::-1]


# Expected F1


def chain_of(P, R, K, start):
    E = np.full((R + 1, K * K), np.nan, np.float32)
    chains.relative(P, R, K, start, np.zeros((R, K), np.float32), E)
    return E


@pytest.mark.parametrize("tags", CHUNKS)
def test_expected_f1_is_that_of_counting(tags):
    kind, chunk_type, _ = TAG_SETS[tags]
    kind, chunk_type = np.array(kind, np.int8), np.array(chunk_type, np.int32)
    K = kind.size
    rng = np.random.default_rng(6)
    nodes, weights = node_table(60)
    for trial in range(60):
        R = int(rng.integers(1, 61))
        P = rng.normal(0, [0.5, 2, 8][trial % 3], (R, K * K)).astype(np.float32)
        z = rng.integers(0, K, R).astype(np.int16) if trial % 4 else np.full(R, K - 1, np.int16)
        E, M = chain_of(P, R, K, K - 1), np.zeros((R, K * K), np.float32)
        chains.subtract_marginals(E, R, K, K - 1, np.zeros((2, K), np.float32), M)
        A, B = np.zeros((K, R + 2, R + 2, 2)), np.zeros((K, R + 2, R + 2, 2))
        counted = 1 - counting.expected_f1_loss(-M, R, K, K - 1, z, kind, chunk_type, A, B)
        now, after = np.full((3, K, LANES), np.nan, np.float32), np.full((3, K, LANES), np.nan, np.float32)
        edges = np.full(R, 7, np.int8)
        got = expected_f1(E, R, K, z, kind, chunk_type, nodes, weights, edges, now, after)
        assert got == pytest.approx(counted, abs=3e-6)


@pytest.mark.parametrize("degree", [1, 7, 30, 55, 124, 221, 346, 500, 2000, 8000])
def test_so_many_nodes_integrate_every_power(degree):
    nodes, weights = node_table(degree // 2 + 1)
    row = nodes_for(degree) // LANES - 1
    powers = np.array([*range(0, degree + 1, max(1, degree // 50)), degree])
    got = (weights[row][:, None] * nodes[row].astype(float)[:, None] ** powers).sum(axis=0)
    np.testing.assert_allclose(got, 1 / (powers + 1), rtol=2e-7 + 6e-8 * degree)  # the nodes are float32


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("tags", TAG_SETS)
def test_what_the_model_holds_all_but_impossible_leaves_no_nan(tags, order):
    """Probabilities down to float32's last: 1 / 1e-40 is not finite there."""
    R = 4
    for size in range(10, 80, 5):
        task, S, *_ = made(tags, order, R, seed=size, size=float(size))
        asked = [(codes.PART, 0, answer) for answer in (codes.YES, codes.NO)]
        asked += [(codes.LABEL, 0, answer) for answer in range(task.n_tags)]
        asked += [(codes.PAIR, 0, answer) for answer in (codes.FIRST, codes.SECOND, codes.TIE)]
        if TAG_SETS[tags][2]:
            asked += [(codes.PART, codes.ABOUT_CHUNK, answer) for answer in (codes.YES, codes.NO)]
        y, other = np.full(R, task.n_tags - 1, np.int32), np.zeros(R, np.int32)
        for first in range(R):
            for last in range(first, R):
                q = np.array([first, 0, last, 0], np.int32)
                for kind, about, answer in asked:
                    D = np.zeros(S.shape, np.float32)
                    got = evidence(task, 0, S, kind, about, q, y, other, answer, 0.0, 0.0, D)
                    assert np.isfinite(got), (size, kind, about, answer)
                    assert np.isfinite(D).all(), (size, kind, about, answer)
                    assert np.abs(D).max() <= R + 0.01, (size, kind, about, answer)
