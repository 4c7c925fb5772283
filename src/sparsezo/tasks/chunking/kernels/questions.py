"""Chunking's questions for the training loop: where the tagger is unsure, and what an answer says (design 4).

A question is four numbers: about a token (its place, the tag shown), or about a chunk (first and last token, the tag
that begins it). Of a pair or a rating it is the outputs themselves, in y and other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels import protocol
from sparsezo.kernels.codes import (
    ABOUT_CHUNK,
    ABOUT_EITHER,
    ABOUT_MARKED,
    AT_RANDOM,
    FIRST,
    LABEL,
    NO,
    NO_SPAN,
    NOT_SAID,
    PAIR,
    PART,
    RATE,
    REVIEW,
    SECOND,
    SPAN,
    SPAN_BASE,
    STANDING,
    TIE,
    UNSURE,
    YES,
)
from sparsezo.kernels.jit import kernel
from sparsezo.kernels.protocol import implements
from sparsezo.kernels.random import uniform
from sparsezo.tasks.chunking.kernels import chains, events
from sparsezo.tasks.chunking.kernels.better_of_two import better_gradient
from sparsezo.tasks.chunking.kernels.review import of_review, review_by_gold
from sparsezo.tasks.chunking.kernels.task import ChunkGold, ChunkTask, expand, expected_quality_gradient

_F = np.float32
_SHARE = 4.0  # of a sentence's unsureness: above 1 / 4 in sum it is always asked about
_NEARLY_ONE = 1 - 1e-6
_MARKED = _F(0.05)  # a token whose tag is wrong with at least this probability is marked in a review
_LEAST_LOSS = 1e-4  # that is expected: float32 knows 1 - E[F1] and its gradient to some 1e-7, divided by it
_LEAST_CHANCE = 1e-30  # of an answer about a pair: below it float32's sums have no digits left, and it counts as 0
_LEAST_GOOD = 1e-20  # ... but E[F1] to its last bits, however small


@kernel
def _chain(task: Any, x: Any, S: Any) -> None:
    """p(y given x) in task.scratch.E."""
    expand(task, x, S)
    P = S if task.order == 2 else task.scratch.P
    chains.relative(P, task.tokens[x], task.n_tags, task.start, task.scratch.best, task.scratch.E)


@implements(protocol.look, ChunkTask)
def _look(
    task: Any,
    x: Any,
    S: Any,
    kind: Any,
    about: Any,
    mode: Any,
    seconds: Any,
    key: Any,
    step: Any,
    q: Any,
    y: Any,
    other: Any,
) -> Any:
    """Token i is unsure by v_i = (1 - P(best tag))^2; a sentence is passed over but with probability 4 sum v.

    The chance of a question about a chunk or a pair is that of all tokens that lead to it.
    """
    _chain(task, x, S)
    R, K, room = task.tokens[x], task.n_tags, task.scratch
    events.shown_marginals(room.E, R, K, task.start, task.shown, room.p, room.Q)
    if kind == REVIEW:
        q[0], q[1], q[2], q[3] = 0, 0, 0, 0
        return _look_at_whole(task, R, about, mode, seconds, y, other)
    events.likeliest(room.Q, R, K, room.unsure)
    total = _F(0)
    for i in range(R):
        wrong = 1 - room.unsure[i]
        room.unsure[i] = wrong * wrong if mode != AT_RANDOM else _F(1)  # at random: every token alike
        total += room.unsure[i]
    asked: Any = min(1.0, _SHARE * total) if mode == UNSURE else 1.0
    if uniform(key, step, 0) >= asked or total <= 0:
        return 0.0
    rest = uniform(key, step, 1) * total
    i = 0
    while i < R - 1 and rest >= room.unsure[i]:
        rest -= room.unsure[i]
        i += 1
    best = 0
    for l in range(1, K):
        if room.Q[i, l] > room.Q[i, best]:
            best = l
    q[0], q[1], q[2], q[3] = i, best, i, 0
    ways = np.float64(room.unsure[i])  # to this question: of all tokens that lead to it
    if kind == PAIR:
        events.best_of_chain(room.E, R, K, room.best, room.back, y)
        _second_path(task, R, i, y, other)
        ways = _ways_to_pair(task, R, i, y, other)
    elif kind == RATE:  # whichever token it was
        events.best_of_chain(room.E, R, K, room.best, room.back, y)
        return asked
    elif about == ABOUT_CHUNK or kind == SPAN:
        _chunk_at(task, R, i, q, y)
        ways = _ways_to_chunk(task, R, i, q, y)
    share = ways / total
    return asked * (1.0 if share > 1 else share)


@kernel
def _look_at_whole(task: Any, R: Any, about: Any, mode: Any, seconds: Any, y: Any, how: Any) -> Any:
    """The gain of a review, the tags that it is expected to set right, by the seconds that it takes.

    y is the best path as it is shown, and how says what the review would speak about: all of it, or what is marked,
    or (ABOUT_EITHER) that of the two which gains more by the second.
    """
    K, room = task.n_tags, task.scratch
    events.best_of_chain(room.E, R, K, room.best, room.back, room.paths[0])
    events.show_path(room.paths[0], R, K, task.start, task.shown, y)
    gain, gain_of_marked, marked = 0.0, 0.0, 0
    for i in range(R):
        top = room.Q[i, 0]
        for l in range(1, K):
            top = max(top, room.Q[i, l])
        unsure = np.float64(1 - top)
        gain += unsure
        how[i] = NOT_SAID
        if 1 - top >= _MARKED:
            how[i] = STANDING
            gain_of_marked += unsure
            marked += 1
    each, token, part, correction = seconds
    whole = gain / (each + token * R + correction * gain)
    of_marked = whole
    if marked < R:
        of_marked = gain_of_marked / (each + part * marked + correction * gain_of_marked)
    if mode != AT_RANDOM and (about == ABOUT_MARKED or (about == ABOUT_EITHER and of_marked > whole)):
        return of_marked
    for i in range(R):
        how[i] = STANDING
    return whole if mode != AT_RANDOM else 1.0


@kernel
def _second_path(task: Any, R: Any, i: Any, y: Any, other: Any) -> None:
    """other: the best path with another tag at token i than y, the best path, has there."""
    K, room = task.n_tags, task.scratch
    before = y[i - 1] if i > 0 else task.start
    now = task.shown[before * K + y[i]]  # the best path's own tag there, which need not be the token's best
    second = -1
    for l in range(K):
        if l != now and (second < 0 or room.Q[i, l] > room.Q[i, second]):
            second = l
    for j in range(R):
        room.wanted[j] = events.ANYTHING
    room.wanted[i] = second
    if events.given_event(room.E, R, K, task.start, task.shown, room.wanted, room.p, room.E2) <= 0:
        for j in range(R):
            other[j] = y[j]
        return
    events.best_of_chain(room.E2, R, K, room.best, room.back, other)


@kernel
def _ways_to_pair(task: Any, R: Any, i: Any, y: Any, other: Any) -> Any:
    """The unsureness of all tokens whose second path is ``other``, which token i's is: it differs from y there."""
    K, room = task.n_tags, task.scratch
    ways = 0.0
    mine, its = task.start, task.start
    for j in range(R):
        differs = task.shown[mine * K + y[j]] != task.shown[its * K + other[j]]
        mine, its = y[j], other[j]
        if j == i:
            ways += room.unsure[j]
        elif differs and room.unsure[j] > 0:
            _second_path(task, R, j, y, room.wanted)
            same = True
            for k in range(R):
                same = same and room.wanted[k] == other[k]
            ways += room.unsure[j] if same else 0.0
    return ways


@kernel
def _chunk_at(task: Any, R: Any, i: Any, q: Any, y: Any) -> None:
    """The chunk over token i in the best path that has one there."""
    K, room = task.n_tags, task.scratch
    for j in range(R):
        room.wanted[j] = events.ANYTHING
    room.wanted[i] = events.other_than(task.start)
    if events.given_event(room.E, R, K, task.start, task.shown, room.wanted, room.p, room.E2) <= 0:
        q[0], q[2], q[1] = i, i, 0
        return
    events.best_of_chain(room.E2, R, K, room.best, room.back, y)
    events.show_path(y, R, K, task.start, task.shown, room.wanted)  # what it shows, token by token
    first = i
    while first > 0 and task.kind[room.wanted[first]] == 2:
        first -= 1
    last = i
    while last + 1 < R and task.kind[room.wanted[last + 1]] == 2:
        last += 1
    q[0], q[1], q[2] = first, room.wanted[first], last


@kernel
def _ways_to_chunk(task: Any, R: Any, i: Any, q: Any, y: Any) -> Any:
    """The unsureness of all tokens whose chunk is the one in q, which token i's is: they are in it."""
    room = task.scratch
    first, tag, last = q[0], q[1], q[2]
    ways = 0.0
    for j in range(first, last + 1):
        if j == i:
            ways += room.unsure[j]
        elif room.unsure[j] > 0:
            _chunk_at(task, R, j, q, y)
            ways += room.unsure[j] if q[0] == first and q[1] == tag and q[2] == last else 0.0
    q[0], q[1], q[2] = first, tag, last
    return ways


@kernel
def _want(task: Any, R: Any, about: Any, q: Any, tag: Any, wanted: Any) -> None:
    """The event "the part is as shown", with ``tag`` for the one shown."""
    for j in range(R):
        wanted[j] = events.ANYTHING
    wanted[q[0]] = tag
    if about == ABOUT_CHUNK:
        for j in range(q[0] + 1, q[2] + 1):
            wanted[j] = tag + 1  # I stands behind its B
        if q[2] + 1 < R:
            wanted[q[2] + 1] = events.other_than(tag + 1)


@implements(protocol.evidence, ChunkTask)
def _evidence(
    task: Any, x: Any, S: Any, kind: Any, about: Any, q: Any, y: Any, other: Any, answer: Any, e0: Any, e1: Any, D: Any
) -> Any:
    _chain(task, x, S)
    R, K = task.tokens[x], task.n_tags
    DP = D if task.order == 2 else task.scratch.P
    if kind == REVIEW:
        likelihood = of_review(task, R, S if task.order == 2 else task.scratch.P, y, other, e0, e1, DP)
        if task.order == 1:
            chains.contract(DP, R, K, task.bigram_attributes, D)
        return likelihood
    DP[:R] = 0
    if kind == PAIR:
        likelihood = _of_pair(task, R, y, other, answer, e0, DP)
    elif kind == RATE:
        likelihood = _of_rating(task, R, y, answer, DP)
    elif kind == SPAN:
        likelihood = _of_span(task, R, q, answer, e0, DP)
    elif about == ABOUT_CHUNK:
        likelihood = _of_chunk(task, R, kind, q, answer, e0, e1, DP)
    else:
        likelihood = _of_token(task, R, kind, q, answer, e0, e1, DP)
    if task.order == 1:
        chains.contract(DP, R, K, task.bigram_attributes, D)
    return likelihood


@kernel
def _learn(task: Any, R: Any, weight: Any, DP: Any) -> None:
    """DP += weight (M_A - M), the event's chain being in E2."""
    room, K = task.scratch, task.n_tags
    chains.add_marginals(room.E2, R, K, task.start, room.p, _F(weight), DP)
    chains.add_marginals(room.E, R, K, task.start, room.p, _F(-weight), DP)


@kernel
def _climb(task: Any, R: Any, base: Any, scale: Any, P: Any, DP: Any) -> Any:
    """The likelihood base + scale P of the event whose chain is in E2, and DP its logarithm's gradient."""
    likelihood = base + scale * P
    if likelihood > 0:
        _learn(task, R, scale * P / likelihood, DP)
    return likelihood


@kernel
def _of_token(task: Any, R: Any, kind: Any, q: Any, answer: Any, e0: Any, e1: Any, DP: Any) -> Any:
    K, room = task.n_tags, task.scratch
    if kind == LABEL:
        _want(task, R, 0, q, int(answer), room.wanted)
        base, scale = e0 / (K - 1), 1 - e0 * K / (K - 1)
    else:
        _want(task, R, 0, q, q[1] if answer == YES else events.other_than(q[1]), room.wanted)
        base, scale = (e0 if answer == YES else e1), 1 - e0 - e1
    P = events.given_event(room.E, R, K, task.start, task.shown, room.wanted, room.p, room.E2)
    return _climb(task, R, base, scale, P, DP)


@kernel
def _of_chunk(task: Any, R: Any, kind: Any, q: Any, answer: Any, e0: Any, e1: Any, DP: Any) -> Any:
    """label: the tag that begins the chunk of the type named, or O: no chunk of any type."""
    K, room = task.n_tags, task.scratch
    if kind == PART or answer != task.start:
        n = (K - 1) // 2 + 1  # answers: the types, and none
        _want(task, R, ABOUT_CHUNK, q, q[1] if kind == PART else int(answer), room.wanted)
        P = events.given_event(room.E, R, K, task.start, task.shown, room.wanted, room.p, room.E2)
        if kind == LABEL:
            base, scale = e0 / (n - 1), 1 - e0 * n / (n - 1)
        else:
            base, scale = (e0 if answer == YES else e1), 1 - e0 - e1
        if kind == PART and answer == NO:  # (M - P M_A) / (1 - P) - M = P / (1 - P) (M - M_A)
            P = min(P, _F(_NEARLY_ONE))
            likelihood = base + scale * (1 - P)
            _learn(task, R, -scale * P / likelihood, DP)
            return likelihood
        return _climb(task, R, base, scale, P, DP)
    return _of_no_chunk(task, R, q, e0, DP)


@kernel
def _of_no_chunk(task: Any, R: Any, q: Any, e0: Any, DP: Any) -> Any:
    """The answer to label that there is no chunk with these ends."""
    K, room = task.n_tags, task.scratch
    n = (K - 1) // 2 + 1
    total = 0.0
    for tag in range(0, K - 1, 2):  # B of each type
        _want(task, R, ABOUT_CHUNK, q, tag, room.wanted)
        total += events.given_event(room.E, R, K, task.start, task.shown, room.wanted, room.p, room.E2)
    total = min(total, _NEARLY_ONE)
    likelihood = e0 / (n - 1) + (1 - e0 * n / (n - 1)) * (1 - total)
    weight = (1 - e0 * n / (n - 1)) / likelihood
    for tag in range(0, K - 1, 2):
        _want(task, R, ABOUT_CHUNK, q, tag, room.wanted)
        P = events.given_event(room.E, R, K, task.start, task.shown, room.wanted, room.p, room.E2)
        _learn(task, R, -weight * P, DP)
    return likelihood


@kernel
def _want_span(task: Any, R: Any, q: Any, answer: Any, wanted: Any) -> Any:
    """The event that the first span touching what was shown is the one named, or that none does.

    Returns whether the answer is one of those at hand: the ends shown with any type, or none.
    """
    for j in range(R):
        wanted[j] = events.ANYTHING
    code = int(answer)
    if code == NO_SPAN:
        for j in range(q[0], q[2] + 1):
            wanted[j] = task.start
        return True
    code -= 1
    tag, ends = code % SPAN_BASE, code // SPAN_BASE
    last, first = ends % SPAN_BASE, ends // SPAN_BASE
    for j in range(q[0], first):  # the first one that touches it: nothing stands there before it
        wanted[j] = task.start
    wanted[first] = tag
    for j in range(first + 1, last + 1):
        wanted[j] = tag + 1  # I stands behind its B
    if last + 1 < R:
        wanted[last + 1] = events.other_than(tag + 1)
    return first == q[0] and last == q[2]


@kernel
def _of_span(task: Any, R: Any, q: Any, answer: Any, e: Any, DP: Any) -> Any:
    """A rater who errs picks one of the answers at hand; a span that was marked by hand is no slip."""
    K, room = task.n_tags, task.scratch
    n = (K - 1) // 2 + 1  # answers at hand: the types, and none
    at_hand = _want_span(task, R, q, answer, room.wanted)
    P = events.given_event(room.E, R, K, task.start, task.shown, room.wanted, room.p, room.E2)
    base = e / (n - 1) if at_hand else 0.0
    return _climb(task, R, base, 1 - e * n / (n - 1), P, DP)


@kernel
def _of_pair(task: Any, R: Any, y: Any, other: Any, answer: Any, e: Any, DP: Any) -> Any:
    """A rater who errs gives one of the other two answers."""
    K, room = task.n_tags, task.scratch
    tags = (y, other, answer, task.kind, task.chunk_type, task.chunks, room.edges, room.edges2)
    P = better_gradient(room.E, R, K, task.start, *tags, room.counted, room.worth[0], room.worth[1], room.p, DP)
    if not np.isfinite(P):
        return P
    P = P if P >= _LEAST_CHANCE else 0.0
    likelihood = e / 2 + (1 - 1.5 * e) * P
    slope = _F((1 - 1.5 * e) / likelihood) if P > 0 else _F(0)
    for i in range(R):
        for j in range(K * K):
            DP[i, j] *= slope
    return likelihood


@kernel
def _of_rating(task: Any, R: Any, y: Any, loss: Any, DP: Any) -> Any:
    """(1 - loss) log(1 - rho) + loss log rho, rho the loss that the model itself expects of y."""
    K = task.n_tags
    good = expected_quality_gradient(task, R, y, DP)
    if not np.isfinite(good):
        return good
    good = min(max(good, _LEAST_GOOD), 1 - _LEAST_LOSS)
    rho = 1 - good
    slope = _F((rho - loss) / (rho * good))  # d rho = - d E[F1]
    for i in range(R):
        for j in range(K * K):
            DP[i, j] *= slope
    return np.exp((1 - loss) * np.log(good) + loss * np.log(rho))


@implements(protocol.options, ChunkTask)
def _options(task: Any, x: Any, kind: Any, about: Any) -> Any:
    """How many answers there are to choose from."""
    if kind == PART:
        return 2
    if kind == PAIR:
        return 3
    if kind == SPAN:
        return (task.n_tags - 1) // 2 + 1
    return task.n_tags if about != ABOUT_CHUNK else (task.n_tags - 1) // 2 + 1


@implements(protocol.option, ChunkTask)
def _option(task: Any, x: Any, kind: Any, about: Any, k: Any) -> Any:
    """Labels of a chunk are B of each type, and O: every other tag."""
    return 2 * k if kind == LABEL and about == ABOUT_CHUNK else k


@implements(protocol.truth, ChunkGold)
def _truth(gold: Any, task: Any, x: Any, kind: Any, about: Any, q: Any, y: Any, other: Any) -> Any:
    """What somebody who knows the correct tags answers."""
    z = gold.tags[gold.offsets[x] : gold.offsets[x + 1]]
    if kind == PAIR:
        first, second = protocol.delta(gold, task, x, y), protocol.delta(gold, task, x, other)
        return FIRST if first < second else (SECOND if second < first else TIE)
    if kind == SPAN:
        return _first_span(task, z, q)
    right = _shown_gold(task, z, q[0])
    if about == ABOUT_CHUNK:
        begins = right < task.n_tags and task.kind[right] == 1
        for j in range(q[0] + 1, q[2] + 1):
            begins = begins and _shown_gold(task, z, j) == right + 1
        if q[2] + 1 < task.tokens[x]:
            begins = begins and _shown_gold(task, z, q[2] + 1) != right + 1
        if kind == LABEL:
            return right if begins else task.start
        return YES if begins and right == q[1] else NO
    if kind == LABEL:
        return right
    return YES if right == q[1] else NO


@implements(protocol.review, ChunkGold)
def _review(gold: Any, task: Any, x: Any, S: Any, overlooks: Any, key: Any, step: Any, y: Any, how: Any) -> Any:
    expand(task, x, S)
    z, right = gold.tags[gold.offsets[x] : gold.offsets[x + 1]], task.scratch.paths[1]
    for i in range(z.size):
        right[i] = _shown_gold(task, z, i)
    P = S if task.order == 2 else task.scratch.P
    return review_by_gold(task, task.tokens[x], P, right, overlooks, key, step, y, how)


@kernel
def _first_span(task: Any, z: Any, q: Any) -> Any:
    """The first correct span that touches what is shown; of a type that no output has: none."""
    i = q[0]
    while i <= q[2] and (z[i] >= task.n_tags or task.kind[z[i]] == 0):
        i += 1
    if i > q[2]:
        return NO_SPAN
    first = i
    while first > 0 and task.kind[_shown_gold(task, z, first)] == 2:
        first -= 1
    tag = _shown_gold(task, z, first)
    last = i
    while last + 1 < z.size and _shown_gold(task, z, last + 1) == tag + 1:
        last += 1
    return 1 + (first * SPAN_BASE + last) * SPAN_BASE + tag


@kernel
def _shown_gold(task: Any, z: Any, i: Any) -> Any:
    """What gold shows at token i; a tag that no output has stays what it is."""
    if not task.chunks or z[i] >= task.n_tags or task.kind[z[i]] != 2:
        return np.int64(z[i])
    goes_on = i > 0 and task.kind[z[i - 1]] != 0 and task.chunk_type[z[i - 1]] == task.chunk_type[z[i]]
    return np.int64(z[i]) if goes_on else np.int64(z[i] - 1)  # B-X stands right before I-X
