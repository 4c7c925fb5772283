"""Chunking for the training loop: scores of tag bigrams to a tag path, its 1 - F1, its gradient (paper Sec. 5).

Tags that are no chunks have 1 - accuracy as their loss.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo import validation
from sparsezo.errors import UsageError
from sparsezo.kernels import protocol
from sparsezo.kernels.jit import kernel
from sparsezo.kernels.protocol import implements
from sparsezo.kernels.simd import LANES
from sparsezo.tasks.chunking.kernels import chains
from sparsezo.tasks.chunking.kernels.better_of_two import STATES
from sparsezo.tasks.chunking.kernels.events import ANYTHING, constrain, given_event, other_than, shown_pairs
from sparsezo.tasks.chunking.kernels.expected_accuracy import expected_accuracy_gradient
from sparsezo.tasks.chunking.kernels.expected_f1 import expected_f1, expected_f1_gradient, node_table

MISSING = -1  # the tag of a token that nobody has said anything of


class ChunkScratch(NamedTuple):
    """Room to work in, each learner's own."""

    P: NDArray[np.float32]  # order 1: bigram potentials
    M: NDArray[np.float32]  # annealed criterion: the potentials times gamma
    best: NDArray[np.float32]  # tokens x tags
    back: NDArray[np.int16]
    E: NDArray[np.float32]  # tokens + 1 x tags^2
    p: NDArray[np.float32]  # 2 x tags
    edges: NDArray[np.int8]  # expected F1: tokens
    now: NDArray[np.float32]  # ... 3 x tags x lanes
    after: NDArray[np.float32]
    forward: NDArray[np.float32]  # its gradient: tokens x 3 x tags x lanes
    E2: NDArray[np.float32]  # as E, given an event
    Q: NDArray[np.float32]  # tokens x tags: how likely each is shown
    unsure: NDArray[np.float32]  # tokens
    wanted: NDArray[np.int16]  # tokens: an event
    paths: NDArray[np.int16]  # a review: 2 x tokens
    edges2: NDArray[np.int8]  # which of two is better: tokens
    counted: NDArray[np.float32]  # ... tokens x tags x states
    worth: NDArray[np.float32]  # ... 2 x tags x states


class ChunkTask(NamedTuple):
    """A tag set and how to decode it. ``tokens[x]`` is the length of input x."""

    n_tags: int
    order: int  # 2: S scores tag bigrams; 1: S scores tags, and its rows behind the tokens' score bigrams
    bigram_attributes: bool  # order 1: whether there are rows for each token after each tag, too (chains.expand)
    start: int  # the tag before the first token: O; of plain tags any fixed one
    chunks: bool  # the tags are of chunks: the loss is 1 - F1, else 1 - accuracy
    tokens: NDArray[np.int64]
    kind: NDArray[np.int8]  # of each tag, also of those that only gold has: 0 outside, 1 begins, 2 inside
    chunk_type: NDArray[np.int32]  # of each tag; -1 for O
    shown: NDArray[np.int16]  # tags^2: the tag that a person sees of each pair (events)
    nodes: NDArray[np.float32]  # of the expected F1, a row for each number of them
    weights: NDArray[np.float64]
    scratch: ChunkScratch

    def check(self, problem: Any) -> None:
        K = self.n_tags
        validation.array("tokens", self.tokens, "iu", (len(problem),))
        if not np.array_equal(self.tokens, np.diff(problem.output_start)):
            raise UsageError("tokens must be as output_start says")
        validation.array("kind", self.kind, "iu", (None,))
        validation.array("chunk_type", self.chunk_type, "iu", (self.kind.size,))
        validation.at_least("the number of kinds", self.kind.size, K)
        validation.below("start", np.array([self.start]), K)
        if problem.n_labels != (K * K if self.order == 2 else K):
            raise UsageError(f"n_labels is {problem.n_labels}, and there are {K} tags of order {self.order}")
        most = problem.max_outputs if problem.output_start[-1] else 0
        behind = 0 if self.order == 2 or not most else K + (most * K if self.bigram_attributes else 0)
        validation.at_least("max_rows", problem.max_rows, most + behind)
        validation.at_least("the scratch", len(self.scratch.best), most)

    def most(self, x: int) -> int:
        """An output of x is of numbers below this."""
        return self.n_tags


class ChunkGold(NamedTuple):
    """The correct tags: only the feedback sees them."""

    offsets: NDArray[np.int64]
    tags: NDArray[np.int16]  # MISSING where nobody has said what it is: for rule supervised alone

    def check(self, problem: Any, supervised: bool) -> None:
        """Gold of these inputs; ``supervised`` learns from its tags, so they must be tags that can be predicted."""
        validation.array("the gold's offsets", self.offsets, "iu", (None,))
        if not isinstance(problem.task, ChunkTask) or not np.array_equal(self.offsets, problem.output_start):
            raise UsageError("this gold is of other inputs; make it by task.gold of the problem's own data")
        validation.array("the gold's tags", self.tags, "iu", (int(self.offsets[-1]),))
        known = self.tags[self.tags != MISSING] if supervised else self.tags
        validation.below("the gold's tags", known, problem.task.n_tags if supervised else problem.task.kind.size)


@kernel
def expand(task: Any, x: Any, S: Any) -> None:
    """Order 1: the bigram potentials in task.scratch.P. Order 2 has them in S as it is."""
    if task.order == 1:
        chains.expand(S, task.tokens[x], task.n_tags, task.bigram_attributes, task.scratch.P)


@implements(protocol.outputs, ChunkTask)
def _outputs(task: Any, x: Any) -> Any:
    return task.tokens[x]


@implements(protocol.decode, ChunkTask)
def _decode(task: Any, x: Any, S: Any, y: Any) -> Any:
    expand(task, x, S)
    P = S if task.order == 2 else task.scratch.P
    return chains.viterbi(P, task.tokens[x], task.n_tags, task.start, task.scratch.best, task.scratch.back, y)


@implements(protocol.sample, ChunkTask)
def _sample(task: Any, x: Any, S: Any, key: Any, step: Any, y: Any) -> Any:
    expand(task, x, S)
    P = S if task.order == 2 else task.scratch.P
    R, K = task.tokens[x], task.n_tags
    chains.relative(P, R, K, task.start, task.scratch.best, task.scratch.E)
    chains.sample_path(task.scratch.E, R, K, key, step, y)
    return task.scratch.E[R, 0]  # a probability: not finite exactly when the scores are not


@implements(protocol.confidence, ChunkTask)
def _confidence(task: Any, x: Any, S: Any, y: Any) -> Any:
    expand(task, x, S)
    P = S if task.order == 2 else task.scratch.P
    R, K, E = task.tokens[x], task.n_tags, task.scratch.E
    chains.viterbi(P, R, K, task.start, task.scratch.best, task.scratch.back, y)
    chains.relative(P, R, K, task.start, task.scratch.best, E)
    total = np.log(np.float64(E[R, y[R - 1]]))
    for i in range(R - 1, 0, -1):
        total += np.log(np.float64(E[i, y[i - 1] * K + y[i]]))
    return total


@implements(protocol.span_chances, ChunkTask)
def _span_chances(task: Any, x: Any, S: Any, fixed: Any, y: Any, out: Any) -> Any:
    """y = the best path with the tags that are fixed, if any; out[i] = the probability that a span with the ends and
    type of the one that begins at token i is there, whatever the rest of the sentence is; 0 where none begins.
    Returns the path's score."""
    expand(task, x, S)
    P = S if task.order == 2 else task.scratch.P
    R, K, room = task.tokens[x], task.n_tags, task.scratch
    if fixed.size > 0:
        constrain(P, R, K, fixed)
    score = chains.viterbi(P, R, K, task.start, room.best, room.back, y)
    found = False
    for i in range(R):
        out[i] = 0
        found = found or task.kind[y[i]] != 0
    if not found or not task.chunks:
        return score
    chains.relative(P, R, K, task.start, room.best, room.E)
    i, before = 0, task.start
    while i < R:
        tag = task.shown[before * K + y[i]]
        before = y[i]
        if task.kind[tag] != 1:
            i += 1
            continue
        last = i
        while last + 1 < R and task.shown[y[last] * K + y[last + 1]] == tag + 1:
            last += 1
        for j in range(R):
            room.wanted[j] = ANYTHING
        room.wanted[i] = tag
        for j in range(i + 1, last + 1):
            room.wanted[j] = tag + 1
        if last + 1 < R:
            room.wanted[last + 1] = other_than(tag + 1)
        chance = given_event(room.E, R, K, task.start, task.shown, room.wanted, room.p, room.E2)
        out[i] = min(max(chance, np.float32(1e-37)), np.float32(1))  # a span begins here, however unlikely
        i, before = last + 1, y[last]
    return score


@implements(protocol.score_gradient, ChunkTask)
def _score_gradient(task: Any, x: Any, S: Any, y: Any, D: Any) -> None:
    _path_minus_marginals(task, x, y, D)


@implements(protocol.log_probability, ChunkTask)
def _log_probability(task: Any, x: Any, S: Any, y: Any) -> Any:
    return chains.log_path_probability(task.scratch.E, task.tokens[x], task.n_tags, y)


@implements(protocol.supervise, ChunkGold)
def _supervise(gold: Any, task: Any, x: Any, S: Any, D: Any) -> None:
    expand(task, x, S)
    P = S if task.order == 2 else task.scratch.P
    chains.relative(P, task.tokens[x], task.n_tags, task.start, task.scratch.best, task.scratch.E)
    z = gold.tags[gold.offsets[x] : gold.offsets[x + 1]]
    missing = 0
    for i in range(task.tokens[x]):
        missing += z[i] < 0
    if missing > 0:
        _known_minus_marginals(task, x, z, D)
    else:
        _path_minus_marginals(task, x, z, D)


@kernel
def _known_minus_marginals(task: Any, x: Any, z: Any, D: Any) -> None:
    """D = marginals given the tags that are known, those of z that are not negative, - marginals.

    What is known are whole spans: the token behind one does not continue it.
    """
    R, K, room = task.tokens[x], task.n_tags, task.scratch
    DP = D if task.order == 2 else room.P
    DP[:R] = 0
    for i in range(R):
        room.wanted[i] = z[i] if z[i] >= 0 else ANYTHING
        if z[i] < 0 and i > 0 and z[i - 1] >= 0 and task.chunks and task.kind[z[i - 1]] != 0:
            room.wanted[i] = other_than(z[i - 1] + 2 - task.kind[z[i - 1]])  # its I stands behind its B
    given_event(room.E, R, K, task.start, task.shown, room.wanted, room.p, room.E2)
    total = np.float32(0)
    for b in range(K):
        total += room.E2[R, b]
    if total > 0:  # else the model takes what is known to be impossible
        chains.add_marginals(room.E2, R, K, task.start, room.p, np.float32(1), DP)
        chains.subtract_marginals(room.E, R, K, task.start, room.p, DP)
    if task.order == 1:
        chains.contract(DP, R, K, task.bigram_attributes, D)


@kernel
def _path_minus_marginals(task: Any, x: Any, y: Any, D: Any) -> None:
    """D = onehot(y) - marginals, from what ``relative`` left in scratch."""
    R, K = task.tokens[x], task.n_tags
    DP = D if task.order == 2 else task.scratch.P
    DP[:R] = 0
    chains.add_path(y, R, K, task.start, DP)
    chains.subtract_marginals(task.scratch.E, R, K, task.start, task.scratch.p, DP)
    if task.order == 1:
        chains.contract(DP, R, K, task.bigram_attributes, D)


@implements(protocol.delta, ChunkGold)
def _delta(gold: Any, task: Any, x: Any, y: Any) -> Any:
    z = gold.tags[gold.offsets[x] : gold.offsets[x + 1]]
    if not task.chunks:
        return _one_minus_accuracy(y, z, task.tokens[x])
    n_y, n_z, both = chains.chunk_counts(y, z, task.tokens[x], task.kind, task.chunk_type)
    return chains.one_minus_f1(n_y, n_z, both)


@kernel
def _one_minus_accuracy(y: Any, z: Any, R: Any) -> Any:
    wrong = 0
    for i in range(R):
        if y[i] != z[i]:
            wrong += 1
    return wrong / R


@kernel
def _annealed_chain(task: Any, x: Any, S: Any, gamma: Any) -> None:
    """The chain of p_{w,gamma} in scratch.E."""
    expand(task, x, S)
    P = S if task.order == 2 else task.scratch.P
    R, K = task.tokens[x], task.n_tags
    gamma = P.dtype.type(gamma)
    M = task.scratch.M
    for i in range(R):
        for j in range(K * K):
            M[i, j] = gamma * P[i, j]
    chains.relative(M, R, K, task.start, task.scratch.best, task.scratch.E)


@kernel
def expected_quality_gradient(task: Any, R: Any, z: Any, DP: Any) -> Any:
    """DP += d E[F1(y, z)] / dP for y from the chain in scratch.E, of plain tags that of the accuracy; returns E."""
    K, room = task.n_tags, task.scratch
    if task.chunks:
        rooms = (room.edges, room.forward, room.now, room.after, room.p, DP)
        args = (z, task.kind, task.chunk_type, task.nodes, task.weights, *rooms)
        return expected_f1_gradient(room.E, R, K, task.start, *args)
    return expected_accuracy_gradient(room.E, R, K, task.start, z, room.Q, room.now, room.after, room.p, DP)


@implements(protocol.risk_gradient, ChunkGold)
def _risk_gradient(gold: Any, task: Any, x: Any, S: Any, gamma: Any, D: Any) -> Any:
    _annealed_chain(task, x, S, gamma)
    R, K, room = task.tokens[x], task.n_tags, task.scratch
    z = gold.tags[gold.offsets[x] : gold.offsets[x + 1]]
    DP = D if task.order == 2 else room.P
    DP[:R] = 0
    good = expected_quality_gradient(task, R, z, DP)
    for i in range(R):
        for j in range(K * K):
            DP[i, j] *= DP.dtype.type(gamma)
    if task.order == 1:
        chains.contract(DP, R, K, task.bigram_attributes, D)
    return 1.0 - good


@implements(protocol.risk, ChunkGold)
def _risk(gold: Any, task: Any, x: Any, S: Any, gamma: Any) -> Any:
    _annealed_chain(task, x, S, gamma)
    R, K, room = task.tokens[x], task.n_tags, task.scratch
    M = room.M
    z = gold.tags[gold.offsets[x] : gold.offsets[x + 1]]
    if not task.chunks:
        M[:R] = 0
        chains.subtract_marginals(room.E, R, K, task.start, room.p, M)
        return _expected_error(M, R, K, z)
    args = (z, task.kind, task.chunk_type, task.nodes, task.weights, room.edges, room.now, room.after)
    return 1.0 - expected_f1(room.E, R, K, *args)


@kernel
def _expected_error(M: Any, R: Any, K: Any, z: Any) -> Any:
    """E[1 - accuracy(y, z)] for y with pair marginals -M[i, a * K + b]: by its linearity, of each token alone."""
    right = 0.0
    for i in range(R):
        if z[i] < K:  # a tag that only gold has is never found
            for a in range(K):
                right -= M[i, a * K + z[i]]
    return 1.0 - right / R


@kernel
def corpus_counts(gold: Any, task: Any, outputs: Any) -> Any:
    """(chunks in outputs, chunks in gold, chunks in both) over all inputs; outputs stand as gold.tags do."""
    n_y, n_z, both = 0, 0, 0
    for x in range(task.tokens.size):
        begin, end = gold.offsets[x], gold.offsets[x + 1]
        counts = chains.chunk_counts(outputs[begin:end], gold.tags[begin:end], end - begin, task.kind, task.chunk_type)
        n_y += counts[0]
        n_z += counts[1]
        both += counts[2]
    return n_y, n_z, both


def chunk_task(
    tokens: NDArray[np.int64],
    kind: NDArray[np.int8],
    chunk_type: NDArray[np.int32],
    start: int,
    order: int,
    risk: bool = False,
    n_tags: int | None = None,
    bigram_attributes: bool = False,
    chunks: bool = True,
    rates: bool = False,
) -> ChunkTask:
    """A task with room for its longest input; ``risk``: the annealed criterion's too, ``rates``: ratings' and pairs'.

    n_tags: how many of the tags in kind may be predicted, the first ones; all of them by default. chunks: the loss is
    1 - F1 of chunks; else it is 1 - accuracy, and kind and chunk_type are not looked at.
    """
    K = kind.size if n_tags is None else n_tags
    most = max(int(tokens.max(initial=0)), 1)

    def room(*shape: int) -> NDArray[np.float32]:
        return np.zeros(shape, np.float32)

    nodes, weights = node_table(most if (risk or rates) and chunks else 0)
    scratch = ChunkScratch(
        P=room(most if order == 1 else 0, K * K),
        M=room(most if risk else 0, K * K),
        best=room(most, K),
        back=np.zeros((most, K), np.int16),
        E=room(most + 1, K * K),
        p=room(2, K),
        edges=np.zeros(most, np.int8),
        now=room(3, K, LANES),
        after=room(3, K, LANES),
        forward=room(most if (risk or rates) and chunks else 0, 3, K, LANES),
        E2=room(most + 1, K * K),
        Q=room(most, K),
        unsure=room(most),
        wanted=np.zeros(most, np.int16),
        paths=np.zeros((2, most), np.int16),
        edges2=np.zeros(most, np.int8),
        counted=room(most if rates else 0, K, STATES),
        worth=room(2, K, STATES),
    )
    return ChunkTask(
        n_tags=K,
        order=order,
        bigram_attributes=bigram_attributes,
        start=start,
        chunks=chunks,
        tokens=tokens,
        kind=kind,
        chunk_type=chunk_type,
        shown=shown_pairs(kind, chunk_type, K, chunks),
        nodes=nodes,
        weights=weights,
        scratch=scratch,
    )
