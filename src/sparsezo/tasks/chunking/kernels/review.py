"""A person reviews a whole tag path: what the answer says of it, and decoding around what is fixed (design 4).

A review is a path of tags, ``y``, and for each token ``how`` it came about: nothing is said of it (NOT_SAID), the tag
was left standing (STANDING), or it was set by hand (CORRECTED). Evidence is soft: a token's tag is the one given but
for the error rate of its kind, and any other as likely then.

Evidence and constraints are added to the potentials, so that the chain of what is left is computed as any other is:
exactly, and without underflow at any length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels.codes import CORRECTED, NOT_SAID, STANDING
from sparsezo.kernels.jit import kernel
from sparsezo.kernels.random import uniform
from sparsezo.tasks.chunking.kernels import chains, events

_F = np.float32
_LEAST = 1e-300  # of a likelihood that is not 0
_OVERLOOKED = 3  # while a review is simulated: wrong, and left standing


@kernel
def given_tags(task: Any, R: Any, P: Any, y: Any, how: Any, e_standing: Any, e_corrected: Any) -> Any:
    """task.scratch.E2 = the chain given a review; returns log Pr(review), the chain without it being in scratch.E."""
    K, room = task.n_tags, task.scratch
    for i in range(R):
        e = e_corrected if how[i] == CORRECTED else e_standing
        right, wrong = _F(np.log(1 - e)), events.NEVER
        if e > 0:
            wrong = _F(np.log(e / (K - 1)))
        for a in range(K):
            for b in range(K):
                said = _F(0)
                if how[i] != NOT_SAID:
                    said = right if b == y[i] else wrong
                room.E2[i, a * K + b] = P[i, a * K + b] + said
    chains.relative(room.E2, R, K, task.start, room.best, room.E2)
    return _log_probability(room.E, R, K, y, how, e_standing, e_corrected, room.p)


@kernel
def _log_probability(E: Any, R: Any, K: Any, y: Any, how: Any, e_standing: Any, e_corrected: Any, g: Any) -> Any:
    """log of the sum over all paths of their probability in the chain E times that of the review. g: 2 x K room."""
    here, before = 0, 1
    total = 0.0
    for b in range(K):
        g[before, b] = 1
    for i in range(R):
        e = e_corrected if how[i] == CORRECTED else e_standing
        top = _F(0)
        for b in range(K):
            g[here, b] = 1
            if i > 0:
                g[here, b] = 0
                for a in range(K):
                    g[here, b] += E[i, a * K + b] * g[before, a]
            if how[i] != NOT_SAID:
                g[here, b] *= _F(1 - e) if b == y[i] else _F(e / max(K - 1, 1))
            top = max(top, g[here, b])
        if top > 0:
            total += np.log(np.float64(top))
            for b in range(K):
                g[here, b] /= top
        here, before = before, here
    last = 0.0
    for b in range(K):
        last += np.float64(E[R, b] * g[before, b])
    return total + np.log(max(last, _LEAST))


@kernel
def of_review(task: Any, R: Any, P: Any, y: Any, how: Any, e_standing: Any, e_corrected: Any, DP: Any) -> Any:
    """The likelihood of a review, and DP += its logarithm's gradient; DP may be P."""
    K, room = task.n_tags, task.scratch
    found = given_tags(task, R, P, y, how, e_standing, e_corrected)
    DP[:R] = 0
    chains.add_marginals(room.E2, R, K, task.start, room.p, _F(1), DP)
    chains.subtract_marginals(room.E, R, K, task.start, room.p, DP)
    return max(np.exp(found), _LEAST) if np.isfinite(found) else found


@kernel
def decode_around(task: Any, R: Any, P: Any, fixed: Any, y: Any) -> Any:
    """y = the best path with what is fixed: at each token a tag, ``events.other_than(tag)``, or ``ANYTHING``."""
    K, room = task.n_tags, task.scratch
    for i in range(R):
        for j in range(K * K):
            room.E2[i, j] = P[i, j]
    events.constrain(room.E2, R, K, fixed)
    return chains.viterbi(room.E2, R, K, task.start, room.best, room.back, y)


@kernel
def _span_over(task: Any, tags: Any, R: Any, i: Any) -> Any:
    """(first, last) of the span over token i of a path as it is shown; (i, i) where none is."""
    if not task.chunks or tags[i] < 0 or tags[i] >= task.n_tags or task.kind[tags[i]] == 0:
        return i, i
    first, last = i, i
    while first > 0 and task.kind[tags[first]] == 2:
        first -= 1
    while last + 1 < R and task.kind[tags[last + 1]] == 2:
        last += 1
    return first, last


@kernel
def review_by_gold(task: Any, R: Any, P: Any, gold: Any, overlooks: Any, key: Any, step: Any, y: Any, how: Any) -> Any:
    """What somebody who knows makes of the path y; how: the tokens that they look at are
    STANDING, and CORRECTED afterwards where they set them.

    Of what is wrong the first is set right, and the rest is decoded again around it. ``gold`` is as it is shown. What
    is wrong is overlooked with probability ``overlooks``. Returns the number of corrections.
    """
    K, room = task.n_tags, task.scratch
    fixed, shown = room.wanted, room.paths[0]
    corrections = 0
    for i in range(R):
        fixed[i] = events.ANYTHING
    while True:
        events.show_path(y, R, K, task.start, task.shown, shown)
        i = 0
        while i < R and (how[i] != STANDING or shown[i] == gold[i]):
            i += 1
        if i == R:
            break
        known = 0 <= gold[i] < K
        first, last = _span_over(task, gold, R, i)
        removed = known and task.chunks and task.kind[gold[i]] == 0
        if removed:
            first, last = _span_over(task, shown, R, i)
        if not known or uniform(key, step, 16 + i) < overlooks:  # a tag that nobody can give is left as it is
            for j in range(first, last + 1):
                if how[j] == STANDING and shown[j] != gold[j] and (not removed or gold[j] == gold[i]):
                    how[j] = _OVERLOOKED if known else NOT_SAID
            continue
        corrections += 1
        for j in range(first, last + 1):
            if not removed or gold[j] == gold[i]:
                fixed[j], how[j] = gold[j], CORRECTED
        if not removed and task.chunks and last + 1 < R and fixed[last + 1] == events.ANYTHING:
            fixed[last + 1] = events.other_than(gold[first] + 1)  # I stands behind its B
        decode_around(task, R, P, fixed, y)
    for i in range(R):
        y[i] = shown[i]
        if how[i] == _OVERLOOKED:
            how[i] = STANDING
    return corrections
