"""What an answer says of a tag path: events, their probabilities and the marginals that they leave (design 4).

A person sees chunks, not tags: an I after O or after another type starts a chunk, as B does. So a pair of tags, a then
b, is shown as one tag, ``shown[a * K + b]``, and a question about token i is about that. An event is one condition on
what is shown at each token, ``wanted[i]``: a tag, or ``other_than(tag)``, or ``ANYTHING``.

``chains.relative`` leaves the chain as probabilities of the tag before, given the tag here. An event only multiplies
these by 0 or 1 and makes them sum to 1 again: no exponential, nothing that overflows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.kernels.jit import kernel

ANYTHING = -1
NEVER = np.float32(-1e30)  # the logarithm of 0: finite, so that no difference of two of them is a nan
_LEAST = np.float32(1e-37)  # a probability below it is none: its inverse would not be finite
_SMALL = np.float32(1e-9)  # below it what was kept so far is made relative to its largest


@kernel
def other_than(tag: Any) -> Any:
    """The condition that a token is shown as any other tag."""
    return -2 - tag


@kernel
def _allows(wanted: Any, tag: Any) -> Any:
    if wanted >= 0:
        return wanted == tag
    return wanted == ANYTHING or tag != -2 - wanted


def shown_pairs(kind: NDArray[np.int8], chunk_type: NDArray[np.int32], n_tags: int, chunks: bool) -> NDArray[np.int16]:
    """What the pair a, b shows at b's token, at a * K + b; tags that are no chunks show themselves."""
    shown = np.tile(np.arange(n_tags, dtype=np.int16), (n_tags, 1))
    if chunks:
        begins = {int(chunk_type[b]): b for b in range(n_tags) if kind[b] == 1}
        for b in np.flatnonzero(kind[:n_tags] == 2).tolist():
            goes_on = (kind[:n_tags] != 0) & (chunk_type[:n_tags] == chunk_type[b])
            shown[~goes_on, b] = begins.get(int(chunk_type[b]), b)
    return shown.reshape(-1)


@kernel
def given_event(E: Any, R: Any, K: Any, start: Any, shown: Any, wanted: Any, g: Any, out: Any) -> Any:
    """out = E's chain given the event; returns its probability. g: 2 x K room. out may hold anything where it is 0.

    g is kept relative to its largest, so that the chain is right even where the probability itself is too small for a
    number: all tags of a long sentence that nothing was learned of.
    """
    here, before = 0, 1
    chance = 1.0
    for b in range(K):
        g[here, b] = 1 if _allows(wanted[0], shown[start * K + b]) else 0
    for i in range(1, R):
        here, before = before, here
        top = np.float32(0)
        for b in range(K):
            total = np.float32(0)
            for a in range(K):
                p = E[i, a * K + b] * g[before, a]
                if not _allows(wanted[i], shown[a * K + b]):
                    p = np.float32(0)
                out[i, a * K + b] = p
                total += p
            if total < _LEAST:
                total = np.float32(0)
            inverse = np.float32(1) / total if total > 0 else np.float32(0)
            for a in range(K):
                out[i, a * K + b] *= inverse
            g[here, b] = total
            top = max(top, total)
        if 0 < top < _SMALL:
            inverse = np.float32(1) / top
            for b in range(K):
                g[here, b] *= inverse
            chance *= np.float64(top)
    total = np.float32(0)
    for b in range(K):
        out[R, b] = E[R, b] * g[here, b]
        total += out[R, b]
    if total < _LEAST:
        total = np.float32(0)
    inverse = np.float32(1) / total if total > 0 else np.float32(0)
    for b in range(K):
        out[R, b] *= inverse
    return np.float32(chance * total)


@kernel
def constrain(P: Any, R: Any, K: Any, fixed: Any) -> None:
    """P += log of 0 or 1: what is fixed of each token's tag, as ``wanted`` is of what it shows."""
    for i in range(R):
        for b in range(K):
            if not _allows(fixed[i], b):
                for a in range(K):
                    P[i, a * K + b] += NEVER


@kernel
def shown_marginals(E: Any, R: Any, K: Any, start: Any, shown: Any, p: Any, out: Any) -> None:
    """out[i, l] = p(token i is shown as tag l). p: 2 x K room."""
    if K == 3 and (shown[7] == 0 or shown[7] == 1) and _show_themselves(shown):
        _shown_marginals3(E, R, start, shown, out)
        return
    here, before = 0, 1
    for b in range(K):
        p[here, b] = E[R, b]
    for i in range(R - 1, -1, -1):
        for l in range(K):
            out[i, l] = 0
        if i == 0:
            break
        for a in range(K):
            p[before, a] = 0
            for b in range(K):
                both = p[here, b] * E[i, a * K + b]
                out[i, shown[a * K + b]] += both
                p[before, a] += both
        here, before = before, here
    for b in range(K):
        out[0, shown[start * K + b]] += p[here, b]


@kernel
def _show_themselves(shown: Any) -> Any:
    """Whether each of three tags shows itself, but for I after O (number 7)."""
    n = 0
    for a in range(3):
        for b in range(3):
            n += shown[a * 3 + b] == b
    return n - (shown[7] == 1) == 8


@kernel
def _shown_marginals3(E: Any, R: Any, start: Any, shown: Any, out: Any) -> None:
    """``shown_marginals`` for three tags of which at most the second after the third shows another, the first: all sums
    stay in registers; the same bits."""
    begins = shown[7] == 0
    none = np.float32(0)
    p0, p1, p2 = E[R, 0], E[R, 1], E[R, 2]
    for i in range(R - 1, 0, -1):
        e, o = E[i], out[i]
        s00, s01, s02 = p0 * e[0], p1 * e[1], p2 * e[2]
        s10, s11, s12 = p0 * e[3], p1 * e[4], p2 * e[5]
        s20, s21, s22 = p0 * e[6], p1 * e[7], p2 * e[8]
        o[0] = s00 + s10 + s20 + (s21 if begins else none)
        o[1] = s01 + s11 + (none if begins else s21)
        o[2] = s02 + s12 + s22
        p0, p1, p2 = s00 + s01 + s02, s10 + s11 + s12, s20 + s21 + s22
    o = out[0]
    o[0], o[1], o[2] = none, none, none
    o[shown[start * 3]] += p0
    o[shown[start * 3 + 1]] += p1
    o[shown[start * 3 + 2]] += p2


@kernel
def likeliest(p: Any, R: Any, K: Any, out: Any) -> None:
    """out[i] = the largest of p[i, :K]."""
    if K == 3:  # a loop over tokens that becomes vector code
        for i in range(R):
            out[i] = max(max(p[i, 0], p[i, 1]), p[i, 2])
        return
    for i in range(R):
        top = p[i, 0]
        for l in range(1, K):
            top = max(top, p[i, l])
        out[i] = top


@kernel
def show_path(y: Any, R: Any, K: Any, start: Any, shown: Any, out: Any) -> None:
    """out = what a path of tags shows."""
    before = start
    for i in range(R):
        out[i] = shown[before * K + y[i]]
        before = y[i]


@kernel
def best_of_chain(E: Any, R: Any, K: Any, best: Any, back: Any, y: Any) -> None:
    """y = the most probable path of the chain E; the last tag wins a tie. best, back: room, tokens x tags."""
    if K == 3:
        _best_of_chain3(E, R, back, y)
        return
    for b in range(K):
        best[0, b] = 1
    for i in range(1, R):
        top = np.float32(0)
        for b in range(K):
            best[i, b], back[i, b] = -1, 0
            for a in range(K):
                p = best[i - 1, a] * E[i, a * K + b]
                if p >= best[i, b]:
                    best[i, b], back[i, b] = p, a
            top = max(top, best[i, b])
        scale = np.float32(1) / top if top > 0 else np.float32(1)  # or a long path would end in 0
        for b in range(K):
            best[i, b] *= scale
    tag, top = 0, np.float32(-1)
    for b in range(K):
        if best[R - 1, b] * E[R, b] >= top:
            tag, top = b, best[R - 1, b] * E[R, b]
    for i in range(R - 1, -1, -1):
        y[i] = tag
        tag = back[i, tag] if i > 0 else 0


@kernel
def _best_of_chain3(E: Any, R: Any, back: Any, y: Any) -> None:
    """``best_of_chain`` for three tags, all in registers and without branches; the same bits."""
    one, zero = np.float32(1), np.float32(0)
    m0, m1, m2 = one, one, one
    for i in range(1, R):
        e, arg = E[i], back[i]
        s0, b0 = _last_of_3(m0 * e[0], m1 * e[3], m2 * e[6])
        s1, b1 = _last_of_3(m0 * e[1], m1 * e[4], m2 * e[7])
        s2, b2 = _last_of_3(m0 * e[2], m1 * e[5], m2 * e[8])
        arg[0], arg[1], arg[2] = b0, b1, b2
        top = max(max(max(zero, s0), s1), s2)
        scale = one / top if top > 0 else one
        m0, m1, m2 = s0 * scale, s1 * scale, s2 * scale
    tag = _last_of_3(m0 * E[R, 0], m1 * E[R, 1], m2 * E[R, 2])[1]
    for i in range(R - 1, 0, -1):
        y[i] = tag
        tag = back[i, tag]
    y[0] = tag


@kernel
def _last_of_3(p0: Any, p1: Any, p2: Any) -> Any:
    """(value, place) of the largest, the last of equals; -1 where none is a number."""
    top = p0 if p0 >= -1 else np.float32(-1)
    place = 1 if p1 >= top else 0
    top = p1 if p1 >= top else top
    place = 2 if p2 >= top else place
    top = p2 if p2 >= top else top
    return top, place
