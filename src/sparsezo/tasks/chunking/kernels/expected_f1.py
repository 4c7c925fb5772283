"""The expected F1 of a chain's tag paths, exactly, and its gradient (design 2.5).

With n_z chunks in z, n_y in the path y and b in both, F1 = 2 b / (n_y + n_z), and 1 / n is the integral of t^(n - 1)
over t from 0 to 1. So E[F1] is an integral over t of a polynomial, E[b t^(n_y)] t^(n_z - 1), which Gauss and Legendre's
nodes integrate exactly. At one t the expectation is a forward pass that carries, for each tag, three sums over the
paths that end there, each path with its probability times t to the number of its chunks:

    all        of 1
    open       of 1 where the chunk now open matches z's so far
    found      of the number of chunks finished in both

The nodes are independent of each other: they are the lanes of the processor's registers.

The gradient in the scores P is d E[F1] / dP[i, ab] = E[F1 1{a, b at i}] - E[F1] p(a, b at i). A path has each E[i, ab]
that it goes through as a factor once, so the first term is E[i, ab] times the derivative of the sums in E[i, ab]: the
sums before token i, kept from the pass forward, times what a pass backward says each sum at token i is worth.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.kernels.jit import kernel
from sparsezo.kernels.simd import LANES, add, fill, load, store, sum_lanes, times, weighted
from sparsezo.tasks.chunking.kernels import chains

_F = np.float32
GOES_ON, ENDS, BEGINS = range(3)  # what z does at a token; where a chunk begins, another one ends


@kernel
def nodes_for(degree: Any) -> Any:
    """Nodes for a polynomial of this degree, a multiple of ``LANES``: as many as are exact, or as are enough.

    t^degree changes near 1 only, where the nodes lie as the square of their number: with 2.15 times the degree's root
    every power up to it is integrated to some 1e-7 of its value, which is float32's own error.
    """
    enough = min(degree // 2 + 1, int(2.15 * np.sqrt(degree)) + 1)
    return (enough + LANES - 1) // LANES * LANES


_gauss = cache(np.polynomial.legendre.leggauss)  # a task is made for each batch of texts


def node_table(most: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """(nodes, weights) on [0, 1], one row a number of nodes: LANES, 2 LANES, ...; for sentences of up to ``most``."""
    rows = nodes_for(2 * most) // LANES
    nodes, weights = np.zeros((rows, rows * LANES), np.float32), np.zeros((rows, rows * LANES))
    for k in range(rows):
        size = (k + 1) * LANES
        at, weight = _gauss(size)
        nodes[k, :size], weights[k, :size] = (at + 1) / 2, weight / 2
    return nodes, weights


@kernel
def expected_f1(
    E: Any,
    R: Any,
    K: Any,
    z: Any,
    kind: Any,
    chunk_type: Any,
    nodes: Any,
    weights: Any,
    edges: Any,
    now: Any,
    after: Any,
) -> Any:
    """E[F1(y, z)] for y from the chain that ``chains.relative`` left in E.

    Room: edges, tokens; now, after, 3 x tags x LANES.
    """
    n_z = mark_edges(z, R, kind, chunk_type, edges)
    if n_z == 0:
        return _no_chunk(E, R, K, kind, chunk_type, now[0, :, 0], after[0, :, 0])
    row = nodes_for(R + n_z) // LANES - 1
    bio = K == 3 and kind[0] == 1 and kind[1] == 2 and kind[2] == 0 and chunk_type[0] == chunk_type[1]
    total = 0.0
    for first in range(0, (row + 1) * LANES, LANES):
        t = load(nodes, row * nodes.shape[1] + first)
        if bio:
            both = _pass_of_bio(E, R, z, chunk_type, edges, t)
        else:
            both = _pass(E, R, K, z, kind, chunk_type, edges, t, now, after)
        store(now, 0, both)
        for j in range(LANES):
            total += weights[row, first + j] * np.float64(now[0, 0, j])
    return 2 * total


@kernel
def mark_edges(z: Any, R: Any, kind: Any, chunk_type: Any, edges: Any) -> Any:
    """edges[i]: what z does at token i, of BEGINS, ENDS (what was open before), and nothing; returns its chunks."""
    n_z, before = 0, -1
    for i in range(R):
        k, own = kind[z[i]], chunk_type[z[i]]
        begins = k == 1 or (k == 2 and own != before)
        edges[i] = BEGINS if begins else (ENDS if k == 0 else GOES_ON)
        n_z += begins
        before = own if k != 0 else -1
    return n_z


@kernel
def _pass(E: Any, R: Any, K: Any, z: Any, kind: Any, chunk_type: Any, edges: Any, t: Any, now: Any, after: Any) -> Any:
    """t^(n_z - 1) E[b t^(n_y)] at eight nodes t."""
    _first(K, z[0], kind, chunk_type, t, now)
    power, chunks = fill(_F(1)), edges[0] == BEGINS
    for i in range(1, R):
        _forward(E[i], K, edges[i], chunk_type[z[i]], kind, chunk_type, t, now, after)
        now, after = after, now
        if edges[i] == BEGINS:
            power = times(power, t) if chunks else power
            chunks = True
    both = fill(_F(0))
    for b in range(K):
        both = add(both, weighted(E[R, b], add(load(now, (K + b) * LANES), load(now, (2 * K + b) * LANES))))
    return times(power, both)


@kernel
def _pass_of_bio(E: Any, R: Any, z: Any, chunk_type: Any, edges: Any, t: Any) -> Any:
    """``_pass`` for the tags B, I, O of one type, all in registers: the same sums in the same order."""
    zero = fill(_F(0))
    opens = edges[0] == BEGINS and chunk_type[z[0]] == chunk_type[0]
    all_b, all_i, all_o = t, t, fill(_F(1))
    open_b, open_i = (t, t) if opens else (zero, zero)
    found_b, found_i, found_o = zero, zero, zero
    power, chunks = fill(_F(1)), edges[0] == BEGINS
    for i in range(1, R):
        begins_z, ends_z = edges[i] == BEGINS, edges[i] != GOES_ON
        e = E[i]
        ended_b = add(found_b, open_b) if ends_z else found_b
        ended_i = add(found_i, open_i) if ends_z else found_i
        b = times(t, _mix(e[0], all_b, e[3], all_i, e[6], all_o))
        o = _mix(e[2], all_b, e[5], all_i, e[8], all_o)
        i_new = times(t, weighted(e[7], all_o))
        opens = begins_z and chunk_type[z[i]] == chunk_type[0]
        next_open_i = i_new if opens else zero
        if not ends_z:
            next_open_i = add(add(next_open_i, weighted(e[1], open_b)), weighted(e[4], open_i))
        open_b, open_i = b if opens else zero, next_open_i
        next_b = times(t, _mix(e[0], ended_b, e[3], ended_i, e[6], found_o))
        next_o = _mix(e[2], ended_b, e[5], ended_i, e[8], found_o)
        next_i = times(t, weighted(e[7], found_o))
        found_i = add(add(next_i, weighted(e[1], found_b)), weighted(e[4], found_i))
        found_b, found_o = next_b, next_o
        all_i = add(add(i_new, weighted(e[1], all_b)), weighted(e[4], all_i))
        all_b, all_o = b, o
        if begins_z:
            power = times(power, t) if chunks else power
            chunks = True
    return times(power, _mix(E[R, 0], add(open_b, found_b), E[R, 1], add(open_i, found_i), E[R, 2], found_o))


@kernel
def _mix(p: Any, x: Any, q: Any, y: Any, r: Any, z: Any) -> Any:
    return add(add(weighted(p, x), weighted(q, y)), weighted(r, z))


@kernel
def _first(K: Any, z: Any, kind: Any, chunk_type: Any, t: Any, now: Any) -> None:
    """The sums after the first token; before it there is no chunk, whatever tag stands for the start."""
    one, zero = fill(_F(1)), fill(_F(0))
    for b in range(K):
        opens = kind[b] != 0 and kind[z] != 0 and chunk_type[b] == chunk_type[z]
        store(now, b * LANES, t if kind[b] != 0 else one)
        store(now, (K + b) * LANES, t if opens else zero)
        store(now, (2 * K + b) * LANES, zero)


@kernel
def _forward(e: Any, K: Any, edge: Any, t_z: Any, kind: Any, chunk_type: Any, t: Any, now: Any, after: Any) -> None:
    """One token on. A chunk of the path ends before every tag but an I that goes on with it; one of z by ``edge``."""
    begins_z, ends_z = edge == BEGINS, edge != GOES_ON
    zero = fill(_F(0))
    for b in range(K):
        every, found = zero, zero
        for a in range(K):  # the pairs that begin a chunk, or are outside: whatever was open ends
            if kind[b] == 2 and kind[a] != 0 and chunk_type[a] == chunk_type[b]:
                continue
            p = e[a * K + b]
            every = add(every, weighted(p, load(now, a * LANES)))
            ended = load(now, (2 * K + a) * LANES)
            found = add(found, weighted(p, add(ended, load(now, (K + a) * LANES)) if ends_z else ended))
        still = zero
        if kind[b] != 0:
            every, found = times(every, t), times(found, t)
            still = every if begins_z and chunk_type[b] == t_z else zero
        if kind[b] == 2:
            for a in range(K):  # the pairs that go on with a chunk
                if kind[a] != 0 and chunk_type[a] == chunk_type[b]:
                    p = e[a * K + b]
                    every = add(every, weighted(p, load(now, a * LANES)))
                    still = still if ends_z else add(still, weighted(p, load(now, (K + a) * LANES)))
                    found = add(found, weighted(p, load(now, (2 * K + a) * LANES)))
        store(after, b * LANES, every)
        store(after, (K + b) * LANES, still)
        store(after, (2 * K + b) * LANES, found)


@kernel
def expected_f1_gradient(
    E: Any,
    R: Any,
    K: Any,
    start: Any,
    z: Any,
    kind: Any,
    chunk_type: Any,
    nodes: Any,
    weights: Any,
    edges: Any,
    forward: Any,
    now: Any,
    after: Any,
    p: Any,
    DP: Any,
) -> Any:
    """DP += d E[F1(y, z)] / dP for y from E's chain, any z; returns E[F1].

    Room: edges, tokens; forward, tokens x 3 x tags x LANES; now, after, 3 x tags x LANES; p, 2 x tags.
    """
    n_z = mark_edges(z, R, kind, chunk_type, edges)
    if n_z == 0:
        value = _no_chunk_gradient(E, R, K, start, kind, forward, now[0, :, 0], after[0, :, 0], DP)
    else:
        tags, rooms = (z, n_z, kind, chunk_type, edges), (forward, now, after, DP)
        value = _chunks_gradient(E, R, K, start, *tags, nodes, weights, *rooms)
    chains.add_marginals(E, R, K, start, p, _F(-value), DP)
    return value


@kernel
def _chunks_gradient(
    E: Any,
    R: Any,
    K: Any,
    start: Any,
    z: Any,
    n_z: Any,
    kind: Any,
    chunk_type: Any,
    edges: Any,
    nodes: Any,
    weights: Any,
    forward: Any,
    now: Any,
    after: Any,
    DP: Any,
) -> Any:
    """DP[i, ab] += E[F1 1{a, b at i}]; returns E[F1]."""
    row = nodes_for(R + n_z) // LANES - 1
    total = 0.0
    for first in range(0, (row + 1) * LANES, LANES):
        t = nodes[row, first : first + LANES]
        lanes = load(t, 0)
        _first(K, z[0], kind, chunk_type, lanes, forward[0])
        for i in range(1, R):
            _forward(E[i], K, edges[i], chunk_type[z[i]], kind, chunk_type, lanes, forward[i - 1], forward[i])
        for j in range(LANES):  # what each sum at the last token is worth
            share = 2 * weights[row, first + j] * np.float64(t[j]) ** (n_z - 1)
            for b in range(K):
                worth = _F(share * E[R, b])
                now[0, b, j], now[1, b, j], now[2, b, j] = _F(0), worth, worth
                total += np.float64(worth) * (forward[R - 1, 1, b, j] + forward[R - 1, 2, b, j])
        for i in range(R - 1, 0, -1):
            sums, t_z = forward[i - 1], chunk_type[z[i]]
            _backward(E[i], K, edges[i], t_z, kind, chunk_type, lanes, sums, now, after, DP[i])
            now, after = after, now
        for b in range(K):
            worth = _F(0)
            for j in range(LANES):
                worth += now[0, b, j] * forward[0, 0, b, j] + now[1, b, j] * forward[0, 1, b, j]
            DP[0, start * K + b] += worth
    return total


@kernel
def _backward(
    e: Any,
    K: Any,
    edge: Any,
    t_z: Any,
    kind: Any,
    chunk_type: Any,
    t: Any,
    sums: Any,
    now: Any,
    before: Any,
    d: Any,
) -> None:
    """``_forward`` the other way: of what the sums at a token are worth (now), the worth of those before it.

    sums: those before it; d[ab] += what the paths through a, b are worth, all nodes together.
    """
    begins_z, ends_z = edge == BEGINS, edge != GOES_ON
    zero = fill(_F(0))
    for a in range(K):
        every, still, found = zero, zero, zero
        for b in range(K):
            p, next_every, next_found = e[a * K + b], load(now, b * LANES), load(now, (2 * K + b) * LANES)
            if kind[b] == 2 and kind[a] != 0 and chunk_type[a] == chunk_type[b]:
                w0, w2 = weighted(p, next_every), weighted(p, next_found)
                w1 = zero if ends_z else weighted(p, load(now, (K + b) * LANES))
            else:
                q = weighted(p, t) if kind[b] != 0 else fill(p)
                opens = kind[b] != 0 and begins_z and chunk_type[b] == t_z
                w0 = times(q, add(next_every, load(now, (K + b) * LANES)) if opens else next_every)
                w2 = times(q, next_found)
                w1 = w2 if ends_z else zero
            every, still, found = add(every, w0), add(still, w1), add(found, w2)
            worth = add(times(w0, load(sums, a * LANES)), times(w1, load(sums, (K + a) * LANES)))
            d[a * K + b] += sum_lanes(add(worth, times(w2, load(sums, (2 * K + a) * LANES))))
        store(before, a * LANES, every)
        store(before, (K + a) * LANES, still)
        store(before, (2 * K + a) * LANES, found)


@kernel
def _no_chunk_gradient(
    E: Any, R: Any, K: Any, start: Any, kind: Any, forward: Any, now: Any, before: Any, DP: Any
) -> Any:
    """Likewise where z has no chunk: DP[i, ab] += P(no chunk, and a, b at i); returns P(no chunk)."""
    for b in range(K):
        forward[0, 0, b, 0] = 1 if kind[b] == 0 else 0
    for i in range(1, R):
        for b in range(K):
            forward[i, 0, b, 0] = 0
            if kind[b] == 0:
                for a in range(K):
                    forward[i, 0, b, 0] += E[i, a * K + b] * forward[i - 1, 0, a, 0]
    total = 0.0
    for b in range(K):
        now[b] = E[R, b] if kind[b] == 0 else 0
        total += now[b] * forward[R - 1, 0, b, 0]
    for i in range(R - 1, 0, -1):
        for a in range(K):
            before[a] = 0
            for b in range(K):
                worth = now[b] * E[i, a * K + b]
                before[a] += worth
                DP[i, a * K + b] += worth * forward[i - 1, 0, a, 0]
        for a in range(K):
            now[a] = before[a] if kind[a] == 0 else 0
    for b in range(K):
        DP[0, start * K + b] += now[b] * forward[0, 0, b, 0]
    return total


@kernel
def _no_chunk(E: Any, R: Any, K: Any, kind: Any, chunk_type: Any, now: Any, after: Any) -> Any:
    """P(the path has no chunk), which is what F1 is 1 for where z has none."""
    for b in range(K):
        now[b] = 1 if kind[b] == 0 else 0
    for i in range(1, R):
        for b in range(K):
            after[b] = 0
            if kind[b] == 0:
                for a in range(K):
                    after[b] += E[i, a * K + b] * now[a]
        now, after = after, now
    total = 0.0
    for b in range(K):
        total += E[R, b] * now[b]
    return total
