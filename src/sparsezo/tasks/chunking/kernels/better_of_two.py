"""Which of two tag paths has the higher F1, if the truth is a path z of the chain: probabilities, exactly (design 4).

With n chunks in a path, n_z in z and b in both, F1 = 2 b / (n + n_z). Of two paths the one with more chunks right has
the higher F1; where both have as many right, and any, the one with fewer chunks; where none is right, neither, but that
a path without chunks is right where z has none, too. This holds exactly for paths whose numbers of chunks differ by 2
at most, as those of the two paths of a question all but always do: then b1 > b2 and F1(1) <= F1(2) cannot both be. Tags
that are no chunks: the path with more tags right.

So it is enough to go over the chain with three more numbers beside the tag: which of the two paths' open chunks z's
open chunk has matched so far (``open``: bit 0, the first path; bit 1, the second), how many more the first has found
than the second (``lead``), and one bit that a tie is decided by (``other``: a chunk was found; where a path has no
chunks, z has one). A pass forward gives the probability of each outcome, one backward its gradient: sums of positive
numbers, which lose no digits however small they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels.codes import FIRST, SECOND, TIE
from sparsezo.kernels.jit import kernel
from sparsezo.tasks.chunking.kernels import chains
from sparsezo.tasks.chunking.kernels.expected_f1 import BEGINS, GOES_ON, mark_edges

MOST_LEAD = 4  # a lead of more is kept at this: it counts as one that the other path does not make up
STATES = 4 * (2 * MOST_LEAD + 1) * 2  # beside the tag: open x lead x other
_F = np.float32
_FOUND, _ANY_CHUNK = range(2)  # what ``other`` notes


@kernel
def _state(open_: Any, lead: Any, other: Any) -> Any:
    return (open_ * (2 * MOST_LEAD + 1) + min(max(lead, -MOST_LEAD), MOST_LEAD) + MOST_LEAD) * 2 + other


@kernel
def _parts(state: Any) -> Any:
    """(open, lead, other)"""
    rest = state // 2
    return rest // (2 * MOST_LEAD + 1), rest % (2 * MOST_LEAD + 1) - MOST_LEAD, state % 2


@kernel
def _outcome(state: Any, n1: Any, n2: Any, chunks: Any) -> Any:
    """FIRST, SECOND or TIE, once all tokens have been gone over: what is open has been found."""
    open_, lead, other = _parts(state)
    lead += (open_ & 1) - (open_ >> 1)
    if lead != 0:
        return FIRST if lead > 0 else SECOND
    if not chunks or n1 == n2:
        return TIE
    fewer = FIRST if n1 < n2 else SECOND
    if n1 == 0 or n2 == 0:  # then other is whether z has a chunk
        return TIE if other else fewer
    return fewer if other or open_ > 0 else TIE


@kernel
def _begin(b: Any, y1: Any, y2: Any, notes: Any, kind: Any, chunk_type: Any, chunks: Any) -> Any:
    """The state after the first token, where z has tag b."""
    if not chunks:
        return _state(0, (b == y1) - (b == y2), 0)
    if kind[b] == 0:
        return _state(0, 0, 0)
    open_ = 0
    if kind[y1] != 0 and chunk_type[y1] == chunk_type[b]:
        open_ |= 1
    if kind[y2] != 0 and chunk_type[y2] == chunk_type[b]:
        open_ |= 2
    return _state(open_, 0, 1 if notes == _ANY_CHUNK else 0)


@kernel
def _next(
    state: Any,
    a: Any,
    b: Any,
    y1: Any,
    y2: Any,
    edge1: Any,
    edge2: Any,
    notes: Any,
    kind: Any,
    chunk_type: Any,
    chunks: Any,
) -> Any:
    """The state one token on, where z goes from tag a to tag b."""
    open_, lead, other = _parts(state)
    if not chunks:
        return _state(0, lead + (b == y1) - (b == y2), 0)
    if kind[b] == 2 and kind[a] != 0 and chunk_type[a] == chunk_type[b]:  # z's chunk goes on
        if edge1 != GOES_ON:
            open_ &= 2
        if edge2 != GOES_ON:
            open_ &= 1
        return _state(open_, lead, other)
    found1 = open_ & 1 if edge1 != GOES_ON else 0
    found2 = open_ >> 1 if edge2 != GOES_ON else 0
    if notes == _FOUND and found1 + found2 > 0:
        other = 1
    open_ = 0
    if kind[b] != 0:
        if notes == _ANY_CHUNK:
            other = 1
        if edge1 == BEGINS and chunk_type[y1] == chunk_type[b]:
            open_ |= 1
        if edge2 == BEGINS and chunk_type[y2] == chunk_type[b]:
            open_ |= 2
    return _state(open_, lead + found1 - found2, other)


@kernel
def better_gradient(
    E: Any,
    R: Any,
    K: Any,
    start: Any,
    y1: Any,
    y2: Any,
    answer: Any,
    kind: Any,
    chunk_type: Any,
    chunks: Any,
    edges1: Any,
    edges2: Any,
    forward: Any,
    now: Any,
    before: Any,
    p: Any,
    DP: Any,
) -> Any:
    """P = Pr(answer), of FIRST, SECOND and TIE, for z from the chain that ``chains.relative`` left in E; DP = d P / dP.

    Room: edges1 and edges2, tokens; forward, tokens x tags x STATES; now, before, tags x STATES; p, 2 x tags.
    """
    n1, n2, notes = 0, 0, _FOUND
    if chunks:
        n1 = mark_edges(y1, R, kind, chunk_type, edges1)
        n2 = mark_edges(y2, R, kind, chunk_type, edges2)
        notes = _ANY_CHUNK if n1 == 0 or n2 == 0 else _FOUND
    forward[:R] = 0
    for b in range(K):
        forward[0, b, _begin(b, y1[0], y2[0], notes, kind, chunk_type, chunks)] = 1
    for i in range(1, R):
        at = (y1[i], y2[i], edges1[i], edges2[i], notes, kind, chunk_type, chunks)
        for a in range(K):
            for s in range(STATES):
                sum_ = forward[i - 1, a, s]
                if sum_ > 0:
                    for b in range(K):
                        forward[i, b, _next(s, a, b, *at)] += E[i, a * K + b] * sum_
    P = 0.0
    for b in range(K):
        for s in range(STATES):
            now[b, s] = E[R, b] if _outcome(s, n1, n2, chunks) == answer else 0
            P += np.float64(now[b, s]) * np.float64(forward[R - 1, b, s])
    for i in range(R - 1, 0, -1):  # now: what each sum at token i is worth
        at = (y1[i], y2[i], edges1[i], edges2[i], notes, kind, chunk_type, chunks)
        before[:] = 0
        for a in range(K):
            for s in range(STATES):
                sum_ = forward[i - 1, a, s]
                if sum_ > 0:
                    for b in range(K):
                        worth = E[i, a * K + b] * now[b, _next(s, a, b, *at)]
                        before[a, s] += worth
                        DP[i, a * K + b] += worth * sum_
        now, before = before, now
    for b in range(K):
        for s in range(STATES):
            DP[0, start * K + b] += now[b, s] * forward[0, b, s]
    chains.add_marginals(E, R, K, start, p, _F(-P), DP)
    return P
