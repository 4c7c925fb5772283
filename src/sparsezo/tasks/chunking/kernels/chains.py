"""Chains of tags: best path, marginals, sampling (paper Sec. 5, chunking; Sha & Pereira's second-order states).

Everything works on potentials P, one row a token and one column a tag bigram: P[i, a * K + b] scores tag b at token i
after tag a. Order 2 has P = S. Order 1 adds label bigrams to label scores (``expand``, and ``contract`` for the way
back). Before the first token stands ``start`` (the tag O), so row 0 is read at a = start alone.

The sums stay finite, whatever the weights: forward sums are kept relative to the best path's score (``relative``), so
every exponent is at most 0 and each sum has a term that is exactly 1. They are float32: a tag at the end of 1e38 times
fewer paths than another counts as having none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels.exponential import exp_nonpositive
from sparsezo.kernels.jit import inlined_kernel, kernel
from sparsezo.kernels.random import uniform
from sparsezo.kernels.simd import add_two, best_two, by_width, forward_two

_F = np.float32


@kernel
def viterbi(P: Any, R: Any, K: Any, start: Any, best: Any, back: Any, y: Any) -> Any:
    """y = the best path; returns its score. best, back: room, tokens x tags.

    The last tag wins a tie. It is O: where nothing was learned, nothing is tagged.
    """
    if K == 3:
        return _viterbi3(P, R, start, back, y)
    for b in range(K):
        best[0, b] = P[0, start * K + b]
    for i in range(1, R):
        by_width(_best, K, (P, K, best, back, i))
    arg = 0
    for b in range(1, K):
        if best[R - 1, b] >= best[R - 1, arg]:
            arg = b
    score = best[R - 1, arg]
    for i in range(R - 1, -1, -1):
        y[i] = arg
        arg = back[i, arg]
    return score


@inlined_kernel
def _best(width: Any, low: Any, high: Any, args: Any) -> None:
    """best[i] = the score of the best path up to token i for each of its tags, back[i] = the tag before it there, where
    that is asked for."""
    P, K, best, back, i = args
    best_two(width, P, i * K * K, K, low, high, best, back, i - 1)


@inlined_kernel
def _forward(width: Any, low: Any, high: Any, args: Any) -> None:
    """E[i] as probabilities of the tag before, given the tag here; best[i] = alpha."""
    E, K, best, i = args
    forward_two(width, E, i * K * K, K, low, high, best, i - 1)


@kernel
def _viterbi3(P: Any, R: Any, start: Any, back: Any, y: Any) -> Any:
    """``viterbi`` for three tags (B, I, O): all in registers and without branches, three times as fast."""
    m0, m1, m2 = P[0, start * 3], P[0, start * 3 + 1], P[0, start * 3 + 2]
    for i in range(1, R):
        s0, b0 = _best_of_3(m0 + P[i, 0], m1 + P[i, 3], m2 + P[i, 6])
        s1, b1 = _best_of_3(m0 + P[i, 1], m1 + P[i, 4], m2 + P[i, 7])
        s2, b2 = _best_of_3(m0 + P[i, 2], m1 + P[i, 5], m2 + P[i, 8])
        m0, m1, m2 = s0, s1, s2
        back[i, 0], back[i, 1], back[i, 2] = b0, b1, b2
    score, tag = _best_of_3(m0, m1, m2)
    for i in range(R - 1, 0, -1):
        y[i] = tag
        tag = back[i, tag]
    y[0] = tag
    return score


@kernel
def _best_of_3(s0: Any, s1: Any, s2: Any) -> Any:
    top = s1 if s1 >= s0 else s0
    arg = 1 if s1 >= s0 else 0
    arg = 2 if s2 >= top else arg
    top = s2 if s2 >= top else top
    return top, arg


@kernel
def relative(P: Any, R: Any, K: Any, start: Any, best: Any, E: Any) -> None:
    """E[i, a * K + b] = p(tag a at i - 1, given tag b at i and the tokens up to i); E[R] = p(tag b at R - 1)."""
    if K == 3:
        _relative3(P, R, start, E)
        return
    for b in range(K):
        best[0, b] = P[0, start * K + b]
    for i in range(1, R):
        by_width(_best, K, (P, K, best, None, i))
        for a in range(K):
            for b in range(K):
                E[i, a * K + b] = best[i - 1, a] + P[i, a * K + b] - best[i, b]
    top = best[R - 1, 0]
    for b in range(1, K):
        top = max(top, best[R - 1, b])
    for b in range(K):
        E[R, b] = best[R - 1, b] - top
    flat = E.reshape(-1)[K * K : R * K * K + K]
    for j in range(flat.size):
        flat[j] = exp_nonpositive(flat[j])
    # alpha[b]: the sum over all paths that end in b, relative to the best of them; kept in best's rows from here on
    for b in range(K):
        best[0, b] = 1
    for i in range(1, R):
        by_width(_forward, K, (E, K, best, i))
        largest = _F(0)
        for b in range(K):
            largest = max(largest, best[i, b])
        inverse = _F(1) / largest
        for b in range(K):
            best[i, b] *= inverse
    total = _F(0)
    for b in range(K):
        E[R, b] *= best[R - 1, b]
        total += E[R, b]
    for b in range(K):
        E[R, b] /= total


@kernel
def _relative3(P: Any, R: Any, start: Any, E: Any) -> None:
    """``relative`` for three tags (B, I, O), whose sums stay in registers; the same bits."""
    m0, m1, m2 = P[0, start * 3], P[0, start * 3 + 1], P[0, start * 3 + 2]
    for i in range(1, R):
        p, e = P[i], E[i]
        s0, s3, s6 = m0 + p[0], m1 + p[3], m2 + p[6]
        s1, s4, s7 = m0 + p[1], m1 + p[4], m2 + p[7]
        s2, s5, s8 = m0 + p[2], m1 + p[5], m2 + p[8]
        m0, m1, m2 = max(max(s0, s3), s6), max(max(s1, s4), s7), max(max(s2, s5), s8)
        e[0], e[3], e[6] = s0 - m0, s3 - m0, s6 - m0
        e[1], e[4], e[7] = s1 - m1, s4 - m1, s7 - m1
        e[2], e[5], e[8] = s2 - m2, s5 - m2, s8 - m2
    top = max(max(m0, m1), m2)
    E[R, 0], E[R, 1], E[R, 2] = m0 - top, m1 - top, m2 - top
    flat = E.reshape(-1)[9 : R * 9 + 3]
    for j in range(flat.size):
        flat[j] = exp_nonpositive(flat[j])
    one = _F(1)
    m0, m1, m2 = one, one, one
    for i in range(1, R):
        e = E[i]
        s0, s3, s6 = e[0] * m0, e[3] * m1, e[6] * m2
        s1, s4, s7 = e[1] * m0, e[4] * m1, e[7] * m2
        s2, s5, s8 = e[2] * m0, e[5] * m1, e[8] * m2
        m0, m1, m2 = s0 + s3 + s6, s1 + s4 + s7, s2 + s5 + s8
        v0, v1, v2 = one / m0, one / m1, one / m2
        e[0], e[3], e[6] = s0 * v0, s3 * v0, s6 * v0
        e[1], e[4], e[7] = s1 * v1, s4 * v1, s7 * v1
        e[2], e[5], e[8] = s2 * v2, s5 * v2, s8 * v2
        inverse = one / max(max(m0, m1), m2)
        m0, m1, m2 = m0 * inverse, m1 * inverse, m2 * inverse
    p0, p1, p2 = E[R, 0] * m0, E[R, 1] * m1, E[R, 2] * m2
    total = p0 + p1 + p2
    E[R, 0], E[R, 1], E[R, 2] = p0 / total, p1 / total, p2 / total


@kernel
def subtract_marginals(E: Any, R: Any, K: Any, start: Any, p: Any, D: Any) -> None:
    """D[i, a * K + b] -= p(a at i - 1, b at i), from what ``relative`` left in E. p: 2 x K room."""
    add_marginals(E, R, K, start, p, _F(-1), D)


@kernel
def add_marginals(E: Any, R: Any, K: Any, start: Any, p: Any, weight: Any, D: Any) -> None:
    """D[i, a * K + b] += weight * p(a at i - 1, b at i) in the chain E. p: 2 x K room."""
    here, before = 0, 1
    for b in range(K):
        p[here, b] = E[R, b]
    for i in range(R - 1, 0, -1):
        if K < 4:
            _pair_by_pair(E, i, 0, K, p, here, before, weight, D)
        else:
            _four_by_four(E, i, K // 4 * 4, K, p, here, before, weight, D)
            _pair_by_pair(E, i, K // 4 * 4, K, p, here, before, weight, D)
        here, before = before, here
    for b in range(K):
        D[0, start * K + b] += weight * p[here, b]


@inlined_kernel
def _pair_by_pair(E: Any, i: Any, first: Any, K: Any, p: Any, here: Any, before: Any, weight: Any, D: Any) -> None:
    """D[i] += weight * the marginals of token i's pairs, p[before] = their sums, for the tags before from first on."""
    for a in range(first, K):
        p[before, a] = 0
        for b in range(K):
            both = p[here, b] * E[i, a * K + b]
            D[i, a * K + b] += weight * both
            p[before, a] += both


@inlined_kernel
def _four_by_four(E: Any, i: Any, last: Any, K: Any, p: Any, here: Any, before: Any, weight: Any, D: Any) -> None:
    """Likewise for the tags before last, a multiple of 4: four sums side by side, each in its own order."""
    for a in range(last):
        for b in range(K):
            D[i, a * K + b] += weight * (p[here, b] * E[i, a * K + b])
    for a in range(0, last, 4):
        s, t, u, v = _F(0), _F(0), _F(0), _F(0)
        for b in range(K):
            s += p[here, b] * E[i, a * K + b]
            t += p[here, b] * E[i, (a + 1) * K + b]
            u += p[here, b] * E[i, (a + 2) * K + b]
            v += p[here, b] * E[i, (a + 3) * K + b]
        p[before, a], p[before, a + 1], p[before, a + 2], p[before, a + 3] = s, t, u, v


@kernel
def sample_path(E: Any, R: Any, K: Any, key: Any, step: Any, y: Any) -> None:
    """y ~ p(path), from the last token backwards, from what ``relative`` left in E."""
    y[R - 1] = _pick(E, R, 0, 1, K, uniform(key, step, R - 1))
    for i in range(R - 1, 0, -1):
        y[i - 1] = _pick(E, i, y[i], K, K, uniform(key, step, i - 1))


@kernel
def _pick(E: Any, row: Any, offset: Any, stride: Any, K: Any, u: Any) -> Any:
    total = 0.0
    for a in range(K - 1):
        total += E[row, offset + a * stride]
        if u < total:
            return a
    return K - 1


@kernel
def log_path_probability(E: Any, R: Any, K: Any, y: Any) -> Any:
    """log p(y), from what ``relative`` left in E; a logarithm only now and then, before the product is too small."""
    total, p = 0.0, np.float64(E[R, y[R - 1]])
    for i in range(1, R):
        p *= np.float64(E[i, y[i - 1] * K + y[i]])
        if p < 1e-200:
            total += np.log(p)
            p = np.float64(1)
    return total + np.log(p)


@kernel
def add_path(y: Any, R: Any, K: Any, start: Any, D: Any) -> None:
    """D[i, y_{i-1} y_i] += 1."""
    before = start
    for i in range(R):
        D[i, before * K + y[i]] += 1
        before = y[i]


@inlined_kernel
def _expand(width: Any, low: Any, high: Any, args: Any) -> None:
    S, R, K, with_attributes, P = args
    for i in range(R):
        for a in range(K):
            at = (i * K + a) * K
            add_two(width, S, i * K, S, (R + a) * K, low, high, P, at)
            if with_attributes:
                add_two(width, P, at, S, (R + K + a * R + i) * K, low, high, P, at)


@kernel
def expand(S: Any, R: Any, K: Any, with_attributes: Any, P: Any) -> None:
    """Order 1: P[i, a * K + b] = S[i, b] + S[R + a, b]; rows R to R + K of S are the label bigrams.

    with_attributes: bigrams have attributes of their own, and row R + K + a * R + i is added, token i after tag a.
    """
    by_width(_expand, K, (S, R, K, with_attributes, P))


@kernel
def contract(DP: Any, R: Any, K: Any, with_attributes: Any, D: Any) -> None:
    """The gradient in S from that in P (order 1)."""
    D[: R + K] = 0
    for i in range(R):
        for a in range(K):
            for b in range(K):
                D[i, b] += DP[i, a * K + b]
                D[R + a, b] += DP[i, a * K + b]
    if with_attributes:
        for a in range(K):
            for i in range(R):
                for b in range(K):
                    D[R + K + a * R + i, b] = DP[i, a * K + b]


@kernel
def chunk_counts(y: Any, z: Any, R: Any, kind: Any, chunk_type: Any) -> Any:
    """(chunks in y, chunks in z, chunks in both), as conlleval counts them.

    kind: 0 outside, 1 begins, 2 inside. A chunk starts at a B, or at an I after another type or outside; it ends
    before the next start or outside.
    """
    n_y, n_z, both = 0, 0, 0
    matching = False  # a chunk is open in y and in z, and started at the same token with the same type
    last_y, last_z = 0, 0  # kinds
    type_y, type_z = -1, -1
    for i in range(R):
        k_y, k_z = kind[y[i]], kind[z[i]]
        t_y, t_z = chunk_type[y[i]], chunk_type[z[i]]
        begins_y = k_y == 1 or (k_y == 2 and (last_y == 0 or t_y != type_y))
        begins_z = k_z == 1 or (k_z == 2 and (last_z == 0 or t_z != type_z))
        if matching:
            ends_y = begins_y or k_y == 0
            ends_z = begins_z or k_z == 0
            if ends_y and ends_z:
                both += 1
            if ends_y or ends_z:
                matching = False
        if begins_y:
            n_y += 1
        if begins_z:
            n_z += 1
        if begins_y and begins_z and t_y == t_z:
            matching = True
        last_y, last_z, type_y, type_z = k_y, k_z, t_y, t_z
    if matching:
        both += 1
    return n_y, n_z, both


@kernel
def one_minus_f1(n_y: Any, n_z: Any, both: Any) -> Any:
    """1 - F1; where neither has a chunk there is nothing to find and nothing wrong: 0."""
    if n_y + n_z == 0:
        return 0.0
    return 1.0 - 2.0 * both / (n_y + n_z)
