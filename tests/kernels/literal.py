"""One step of every rule on every task, taken literally from design 2 and 3, for the tests to compare the loop with.

Float64 throughout; the best output, its probability and its risk by enumeration of all outputs; u from V by the
pseudo-inverse of C. Only the normals are those of ``random.fill_normals``, which has a twin of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import twins
from scipy.sparse import csr_array

from sparsezo.kernels import codes, loop, random
from sparsezo.kernels.inputs.dense import dense_inputs
from sparsezo.kernels.inputs.rows import row_inputs
from sparsezo.kernels.inputs.sparse import sparse_inputs
from sparsezo.optimizer import workspace
from sparsezo.rules import BUILT_IN
from sparsezo.tasks.chunking.kernels.task import ChunkGold, chunk_task
from sparsezo.tasks.rerank.kernels.task import RankGold, rank_task
from sparsezo.tasks.text.kernels.task import ClassGold, class_task

KEYS = 6
LEAST = 0.1  # cross-entropy's least probability
SAMPLED = (codes.FIRST_ORDER, codes.PAIRWISE, codes.CROSS_ENTROPY)
NO_QUESTIONS = (0, 0, 0.0, 0.0, 0)
CLEAR = 2e-3  # scores nearer than this are not told apart: float32 may see them the other way round


class UnclearError(Exception):
    """What this step does hangs on rounding."""


@dataclass
class Problem:
    """Inputs, task and gold as the loop takes them, and the same in plain words.

    Of input x: C[x] (rows x all columns), cols[x] (the active ones in the order in which the kernels draw for them),
    outputs[x] (all there are, in order of preference on a tie), phi[x] (d score / dS of each), losses[x] (of each),
    right[x] (the place of gold among them; None where there is no single one).
    """

    inputs: Any
    task: Any
    gold: Any
    n_cols: int
    L: int
    dtype: type = np.float32
    dense: bool = False
    C: list = field(default_factory=list)
    cols: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    phi: list = field(default_factory=list)
    losses: list = field(default_factory=list)
    right: list = field(default_factory=list)

    @property
    def N(self):
        return len(self.C)

    def room(self, fill=3):
        """Scratch that holds what it will: nothing in it may matter."""
        R, M = max(len(C) for C in self.C), self.n_cols if self.dense else max(len(cols) for cols in self.cols)

        room = workspace(R, M, self.L, max(len(outputs[0]) for outputs in self.outputs), self.dtype)
        for name, array in room._asdict().items():
            array.fill(1 if name in ("y", "incumbent") else fill)
        return room


# ---- three tasks, small enough to enumerate ----

# of each token its attributes: one sentence has two equal tokens (G is singular), one names an attribute twice
SENTENCES = [
    [[0, 1, 9], [1, 2]],
    [[0, 3], [2, 3], [0, 3]],
    [[4, 4, 1], [5, 10]],
    [[0, 6], [7, 8, 2], [6, 11]],
    [[5, 6]],
]
TAG_SETS = {
    2: ([1, 2, 0], [0, 0, -1], 2, [[0, 2], [0, 1, 2], [2, 0], [0, 1, 0], [1]]),  # B I O
    1: ([0, 2, 1, 2, 1], [-1, 0, 0, 1, 1], 0, [[2, 1], [4, 0, 2], [1, 3], [0, 4, 3], [0]]),  # O and two types of chunk
}


def chunking(order=2, chunks=True, attributes=False, start=None):
    """Order 2: tag bigrams of B, I, O. Order 1: five tags, and five more rows for what stands before a tag.

    chunks False: tags that are what they are, and lose their share of errors. attributes: order 1 with rows for every
    token after the first tag, after the second, ... start: the tag that stands for the start, if it is not O.
    """
    kind, chunk_type, outside, gold = TAG_SETS[order]
    start = outside if start is None else start
    K = len(kind)
    L = K * K if order == 2 else K
    bigrams = [] if order == 2 else [[12 + a] for a in range(K)]
    n_cols = 12 + len(bigrams) + 4 * attributes + 2  # the last two are of no sentence
    matrices = []
    for sentence in SENTENCES:
        after = [[12 + K + (a + i) % 4] for a in range(K) for i in range(len(sentence))]
        matrices.append(sentence + bigrams + (after if attributes else []))
    rows = [row for matrix in matrices for row in matrix]
    inputs = sparse_inputs(
        np.concatenate([[0], np.cumsum([len(m) for m in matrices])]).astype(np.int64),
        np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64),
        np.concatenate(rows).astype(np.int32),
        None,
        n_cols,
        L,
    ).ready(factors=True, places=True)
    tokens = np.array([len(s) for s in SENTENCES], np.int64)
    kinds = np.array(kind, np.int8) * chunks, np.array(chunk_type, np.int32)
    task = chunk_task(tokens, *kinds, start, order, risk=True, chunks=chunks, bigram_attributes=attributes)
    offsets = np.concatenate([[0], np.cumsum(tokens)])
    problem = Problem(inputs, task, ChunkGold(offsets, np.concatenate(gold).astype(np.int16)), n_cols, L)
    for x, z in enumerate(gold):
        paths = twins.all_paths(len(z), K)
        problem.C.append(twins.dense(inputs, x, n_cols))
        problem.cols.append(twins.active(inputs, x))
        problem.outputs.append(paths)
        problem.phi.append(twins.score_features(paths, K, start, order, attributes))
        f1_losses = np.array([twins.one_minus_f1(y, z, kind, chunk_type) for y in paths])
        problem.losses.append(f1_losses if chunks else (paths != z).mean(axis=1))
        problem.right.append(int(np.flatnonzero((paths == z).all(axis=1))[0]))
    return problem


def text(L=4):
    """Documents of one row; one is empty, one has but a zero, and columns are in no order."""
    rng = np.random.default_rng(L)
    n_cols = 16
    words = [[3, 1, 7, 0], [5], [], [2, 9, 4, 1, 11, 6], [8, 0], [10], [13, 12, 2]]
    values = [rng.normal(0, 1.5, len(row)) for row in words]
    values[5][:] = 0
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in words])]).astype(np.int32)
    columns = np.array([w for row in words for w in row], np.int32)
    X = csr_array((np.concatenate(values).astype(np.float32), columns, indptr), shape=(len(words), n_cols))
    labels = np.arange(len(words), dtype=np.int32) % L
    problem = Problem(row_inputs(X), class_task(L), ClassGold(labels), n_cols, L)
    for x, row in enumerate(words):
        problem.C.append(X.toarray()[[x]].astype(float))
        problem.cols.append(row)
        problem.outputs.append(np.arange(L)[:, None])
        problem.phi.append(np.eye(L)[:, None, :])
        problem.losses.append((np.arange(L) != labels[x]).astype(float))
        problem.right.append(int(labels[x]))
    return problem


def rerank(M=14):
    """Lists with fewer candidates than features and with more; equal candidates, and a feature that is always 0."""
    rng = np.random.default_rng(M)
    sizes = [1, 3, 8, 21, 12]
    lists = [rng.normal(0, 1, (R, M)).astype(np.float32) for R in sizes]
    lists[2][5] = lists[2][1]  # equal candidates, whose losses differ: the first is taken
    lists[3][:, 1] = 0
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    losses = rng.uniform(0, 1, offsets[-1])
    gold = rank_gold(offsets, losses)
    inputs = dense_inputs(np.concatenate(lists), offsets)
    problem = Problem(inputs, rank_task(offsets), gold, M, 1, np.float64, dense=True)
    for x, C in enumerate(lists):
        problem.C.append(C.astype(float))
        problem.cols.append(np.flatnonzero((C != 0).any(axis=0)).tolist())
        problem.outputs.append(np.arange(len(C))[:, None])
        problem.phi.append(np.eye(len(C))[:, :, None])
        problem.losses.append(losses[offsets[x] : offsets[x + 1]])
        problem.right.append(None)
    return problem


def rank_gold(offsets, losses):
    """As a store has it, in arrays that cannot be written: for others the loop would be compiled once more."""
    losses, statistics = losses.copy(), np.zeros((len(losses), 10), np.int16)
    losses.flags.writeable = statistics.flags.writeable = False
    return RankGold(offsets, losses, statistics)


# ---- a state to start from ----


def some_law(rng, rule, perturbation, criterion=codes.MAP, control=0, model=codes.EXACT, **numbers):
    """Settings of the kind asked for, with numbers of their own."""
    seeds = [int(rng.integers(2**40)) for _ in range(KEYS)]
    keys = np.array([random.stream_key(seeds[stream % KEYS], stream) for stream in random.STREAMS], np.uint64)
    h, mu, gamma = (float(rng.uniform(*ends)) for ends in [(0.1, 0.5), (0.5, 2.5), (0.3, 3.0)])
    noise, bias, levels = float(rng.uniform(0.1, 0.4)), float(rng.uniform(0.1, 0.4)), int(rng.integers(2, 8))
    numbered = (rule, perturbation, criterion, control, h, mu, gamma, model, noise, bias, levels)
    points = np.array(next((each.points for each in BUILT_IN.values() if each.code == rule), ()), np.float64)
    law = loop.StepParams(*numbered, *NO_QUESTIONS, keys, points, *points[:2].tolist())
    return law._replace(**numbers)


def some_memory(rng, problem, lazy=False, adagrad=False):
    """Weights, debts, sums and counts as they may stand in the middle of a run; no two counts are alike."""
    n, L = problem.n_cols, problem.L
    step = int(rng.integers(1, 1000))
    Q = float(rng.uniform(0.5, 3))
    Q_row = Q * np.minimum(rng.uniform(0, 1.3, n), 1)  # some rows are owed nothing
    return loop.State(
        W=rng.normal(0, 0.6, (n, L)).astype(problem.dtype),
        q=rng.uniform(0, 2, (n if adagrad else 0, L)).astype(problem.dtype),
        Q_row=Q_row if lazy else np.zeros(0),
        counts=np.array(
            [step + rng.integers(1, 50), step, 2000 + rng.integers(500), 4000 + rng.integers(500), *range(5000, 5009)]
        ),
        sums=np.array([step * rng.uniform(0.2, 0.4), step * rng.uniform(0.4, 0.6), Q, step * 0.7, 300.0 + step]),
        **twins.no_questions(),
    )


def copied(memory):
    return loop.State(*(array.copy() for array in memory))


# ---- the step ----


def normals(key, step, rows, L):
    out = np.empty(rows * L, np.float32)
    random.fill_normals(key, step, out)
    return out.astype(float).reshape(rows, L)


def product(C, W):
    """C W added up in one order for every row, so that equal rows have equal scores."""
    return (C[:, :, None] * W[None]).sum(axis=1)


def cholesky(G):
    """K with K K' = G, lower; a row that follows from earlier ones has no column of its own."""
    K, rest = np.zeros_like(G), G.copy()
    for j in range(len(G)):
        if rest[j, j] > 1e-9:
            K[:, j] = rest[:, j] / np.sqrt(rest[j, j])
            rest -= np.outer(K[:, j], K[:, j])
    return K


def output_scores(problem, x, S):
    return (problem.phi[x] * S).sum(axis=(1, 2))


def best(problem, x, S):
    scores = output_scores(problem, x, S)
    behind = scores[scores < scores.max()]
    if behind.size and scores.max() - behind.max() < CLEAR:
        raise UnclearError
    return int(scores.argmax())


def probabilities(problem, x, S, gamma=1.0):
    return twins.softmax(gamma * output_scores(problem, x, S))


def sampled(problem, x, S, key, step):
    """From the last place of an output to its first, each given those behind it, by one uniform number each."""
    p, outputs = probabilities(problem, x, S), problem.outputs[x]
    left = np.ones(len(outputs), bool)
    for i in range(outputs.shape[1] - 1, -1, -1):
        choices = range(outputs[:, i].max() + 1)
        ends = np.cumsum([p[left & (outputs[:, i] == a)].sum() for a in choices]) / p[left].sum()
        at = twins.uniform(int(key), step, i)
        if len(ends) > 1 and np.abs(ends[:-1] - at).min() < 1e-5:
            raise UnclearError
        left &= outputs[:, i] == int((at >= ends[:-1]).sum())
    return int(np.flatnonzero(left)[0])


def score_direction(problem, x, S, y):
    """d log p(y) / dS."""
    return problem.phi[x][y] - np.tensordot(probabilities(problem, x, S), problem.phi[x], 1)


def sampled_direction(problem, x, S, rule, y, other):
    """d log p(y) / dS, of a pair that of log p_w(y) + log p_{-w}(other); cross-entropy's over max(p(y), LEAST)."""
    D = score_direction(problem, x, S, y)
    if rule == codes.PAIRWISE:
        return D - score_direction(problem, x, -S, other)
    return D / max(probabilities(problem, x, S)[y], LEAST) if rule == codes.CROSS_ENTROPY else D


def supervised_direction(problem, law, x, S):
    """d log p(gold) / dS; minus the gradient of the expected loss if annealed, or where several may be right."""
    if problem.right[x] is not None and law.criterion == codes.MAP:
        return score_direction(problem, x, S, problem.right[x])
    gamma = law.gamma if law.criterion == codes.ANNEALED else 1.0
    p, losses = probabilities(problem, x, S, gamma), problem.losses[x]
    return -gamma * np.tensordot(p * (losses - p @ losses), problem.phi[x], 1)


def fold(problem, law, x, m):
    """design 2.2: what the rows of x missed asleep."""
    cols = problem.cols[x]
    if law.perturbation != codes.ALL or not m.Q_row.size:
        return
    owed = m.sums[loop.Q_TOTAL] - m.Q_row[cols]
    if owed.any():
        drawn = normals(law.keys[random.DEBT], m.counts[loop.SETTLEMENTS], len(cols), problem.L)
        m.W[cols] += np.sqrt(owed)[:, None] * drawn
        m.Q_row[cols] = m.sums[loop.Q_TOTAL]
        m.counts[loop.SETTLEMENTS] += 1


def perturb(problem, law, x, step):
    """(V, Z): what the scores see of u, and what it was made from."""
    C = problem.C[x]
    if problem.dense:
        u = normals(law.keys[random.PERTURBATION], step, problem.n_cols, 1)
        return product(C, u), u
    Z = normals(law.keys[random.PERTURBATION], step, len(C), problem.L)
    return cholesky(C @ C.T) @ Z, Z


def direction(problem, law, x, step):
    """u as it is added to W: E[u given V] for SCORE, else a u that has these V, 0 where x is not active."""
    C, cols = problem.C[x], problem.cols[x]
    V, Z = perturb(problem, law, x, step)
    inverse = np.linalg.pinv(C, rcond=1e-9)
    if law.perturbation == codes.SCORE:
        return inverse @ V
    if problem.dense:
        active = np.zeros((problem.n_cols, 1))
        active[cols] = 1
        return active * Z
    U0 = np.zeros((problem.n_cols, problem.L))
    U0[cols] = normals(law.keys[random.COMPLEMENT], step, len(cols), problem.L)
    return U0 + inverse @ (V - C @ U0)


def move(law, m, x, problem, c, towards):
    """W += c * direction, or Adagrad's form; and ALL's books."""
    if m.q.size:
        g = towards * c / law.h
        m.q[:] += g**2
        m.W[:] += law.h * g / np.sqrt(1 + m.q)
    else:
        m.W[:] += c * towards
    m.counts[loop.UPDATES] += 1
    if law.perturbation == codes.ALL and m.Q_row.size:
        m.sums[loop.Q_TOTAL] += c * c
        m.Q_row[problem.cols[x]] = m.sums[loop.Q_TOTAL]


def told(law, step, F, other):
    """What a rater says of the loss F: kernels/raters.py's first lines, from words of the stream FEEDBACK."""
    key = int(law.keys[random.FEEDBACK])
    if law.feedback == codes.BINARY:
        return float(twins.uniform(key, step, 4 if other else 3) < F)
    if law.feedback == codes.RATING:
        rater = int(20 * twins.uniform(key, step, 0))
        own = law.bias * twins.normal_pair(twins.word(key, 0, rater))[0]
        blur = law.noise * twins.normal_pair(twins.word(key, step, 2 if other else 1))[0]
        exact = (F + own + blur) * (law.levels - 1)
        if abs(exact % 1 - 0.5) < 1e-4:
            raise UnclearError
        return float(np.clip(round(exact) / (law.levels - 1), 0, 1))
    return F


def wrong_way_round(law, step):
    return law.feedback == codes.FLIP and twins.uniform(int(law.keys[random.FEEDBACK]), step, 5) < law.noise


def coefficient(law, F_plus, F_other, mean):
    """design 2's table."""
    h, mu = law.h, law.mu
    F_other = np.nan if F_other is None else F_other  # of the rules that have no rival, none looks at it
    return {
        codes.TWO_POINT: -h / mu * (F_plus - F_other),
        codes.SYMMETRIC: -h / (2 * mu) * (F_plus - F_other),
        codes.COMPARISON: h / mu * (F_plus < F_other),
        codes.PREFERENCE: h / mu * (int(F_plus < F_other) - int(F_plus > F_other)),
        codes.BASELINE: -h / mu * (F_plus - mean),
        codes.FIRST_ORDER: -h * (F_plus - (mean if law.control else 0)),
        codes.SUPERVISED: h,
        codes.PAIRWISE: -h * np.maximum(F_plus - F_other, 0),
        codes.CROSS_ENTROPY: h * (1 - F_plus),
    }[law.rule]


def automatic(law, F_plus, F_other, mean, m):
    """steps.py: h * unit * d / rms(d), over the moves so far and this one."""
    d = coefficient(law._replace(h=1.0, mu=1.0), F_plus, F_other, mean)
    if d == 0:
        return 0.0
    m.sums[loop.SQUARES] += d**2
    rms = (m.sums[loop.SQUARES] / (m.counts[loop.UPDATES] + 1)) ** 0.5
    return law.h * law.unit * d / rms


def look(problem, law, x, step, S):
    """(outputs, losses) of the candidate and of its rival; the rival of a rule that has none is None.

    Under the annealed criterion the losses are expected ones, and the output is the best one beside it.
    """
    losses = problem.losses[x]
    if law.rule == codes.SUPERVISED:
        y = best(problem, x, S)
        F = losses[y] if law.criterion == codes.MAP else probabilities(problem, x, S, law.gamma) @ losses
        return (y, None), (F, None)
    if law.rule in SAMPLED:
        y, other = sampled(problem, x, S, law.keys[random.OUTPUT], step), None
        if law.rule == codes.PAIRWISE:
            other = sampled(problem, x, -S, law.keys[random.OPPOSITE], step)
        return (y, other), (losses[y], None if other is None else losses[other])
    V, _ = perturb(problem, law, x, step)
    places = [S + law.mu * V]
    if law.rule == codes.SYMMETRIC:
        places.append(S - law.mu * V)
    elif law.rule != codes.BASELINE:
        places.append(S)
    if law.criterion == codes.ANNEALED:
        ys = [best(problem, x, places[0]), None][: len(places)]
        Fs = [probabilities(problem, x, T, law.gamma) @ losses for T in places]
    else:
        ys = [best(problem, x, T) for T in places]
        Fs = [losses[y] for y in ys]
    return (*ys, None)[:2], (*Fs, None)[:2]


def count_answer(law, m, same, tokens):
    """Somebody is asked where a person can say anything, and where two outputs are not the same."""
    m.counts[loop.PASSED] += 1
    if law.rule != codes.SUPERVISED and law.criterion == codes.MAP and not same:
        m.counts[loop.PASSED] = 0
        m.counts[loop.QUESTIONS] += 1
        m.counts[loop.ANSWERS] += 1
        m.counts[loop.TOKENS] += tokens
        m.counts[loop.LOOKED] += 1


def exactly(memory):
    return loop.State(*(array.astype(float if array.dtype.kind == "f" else array.dtype) for array in memory))


def step(problem, law, memory):
    """(what memory becomes, what happened) by one step of the run."""
    m = exactly(memory)
    number = int(m.counts[loop.ASKED])
    x = twins.below(int(law.keys[random.INPUTS]), number, problem.N)
    fold(problem, law, x, m)
    S = product(problem.C[x], m.W)
    what = feedback(problem, law, x, number, S, m)
    if what.c != 0:
        if law.rule in SAMPLED:
            towards = problem.C[x].T @ sampled_direction(problem, x, S, law.rule, what.y, what.incumbent)
        elif law.rule == codes.SUPERVISED:
            towards = problem.C[x].T @ supervised_direction(problem, law, x, S)
        else:
            towards = direction(problem, law, x, number)
        move(law, m, x, problem, what.c, towards)
    return m, what


def feedback(problem, law, x, number, S, m):
    """What happens in a step before anything moves; counted in m."""
    (y, rival), (F_plus, F_other) = look(problem, law, x, number, S)
    loss = F_plus
    if law.rule != codes.SUPERVISED:
        F_plus = told(law, number, F_plus, other=False)
        if F_other is not None:
            same = law.criterion == codes.MAP and y == rival
            F_other = F_plus if same else told(law, number, F_other, other=True)
        if wrong_way_round(law, number):
            F_plus, F_other = F_other, F_plus
    m.counts[loop.ASKED] += 1
    m.counts[loop.STEP] += 1
    count_answer(law, m, same=y is not None and y == rival, tokens=problem.outputs[x].shape[1])
    m.sums[loop.LOSS] += loss
    if law.criterion == codes.ANNEALED and law.rule not in SAMPLED:
        m.sums[loop.MAP_LOSS] += problem.losses[x][y]
    m.sums[loop.TOLD] += F_plus
    mean = m.sums[loop.TOLD] / m.counts[loop.STEP]
    c = automatic(law, F_plus, F_other, mean, m) if law.unit else coefficient(law, F_plus, F_other, mean)
    # float32 sums of a risk may differ where these do not; the sign of a rounding error says nothing
    if law.rule in (codes.COMPARISON, codes.PREFERENCE) and 0 < abs(F_plus - F_other) < 1e-4:
        raise UnclearError
    return SimpleNamespace(x=x, y=y, incumbent=rival, F_plus=F_plus, F_other=F_other, loss=loss, c=c)
