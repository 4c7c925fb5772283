"""What is shown to somebody who reviews a sentence: the tags, how likely each span is, how sure each token."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels import protocol
from sparsezo.kernels.jit import kernel
from sparsezo.tasks.chunking.kernels import chains, events
from sparsezo.tasks.chunking.kernels.task import expand


@kernel
def suggest(
    inputs: Any, task: Any, W: Any, S: Any, x: Any, fixed: Any, decodes: Any, y: Any, chances: Any, sure: Any
) -> Any:
    """chances[i]: the probability of the span of y that begins at token i, 0 where none does; of plain tags, that of
    the tag. sure[i]: the probability of the token's best tag. Both given what is ``fixed`` (a tag,
    ``events.other_than(tag)`` or ``ANYTHING`` at each token). ``decodes``: y becomes the best path with that, as it is
    shown. Returns whether the scores are finite.
    """
    protocol.scores(inputs, x, W, S)
    expand(task, x, S)
    P = S if task.order == 2 else task.scratch.P
    R, K, room = task.tokens[x], task.n_tags, task.scratch
    events.constrain(P, R, K, fixed)
    if decodes:
        score = chains.viterbi(P, R, K, task.start, room.best, room.back, room.paths[0])
        if not np.isfinite(np.float64(score)):
            return False
        events.show_path(room.paths[0], R, K, task.start, task.shown, y)
    chains.relative(P, R, K, task.start, room.best, room.E)
    events.shown_marginals(room.E, R, K, task.start, task.shown, room.p, room.Q)
    for i in range(R):
        top = room.Q[i, 0]
        for l in range(1, K):
            top = max(top, room.Q[i, l])
        sure[i], chances[i] = top, room.Q[i, y[i]]
        if not np.isfinite(top):
            return False
    if not task.chunks:
        return True
    i = 0
    while i < R:
        tag, last = y[i], i
        if task.kind[tag] == 0:
            chances[i] = 0
            i += 1
            continue
        for j in range(R):
            room.wanted[j] = events.ANYTHING
        room.wanted[i] = tag
        while last + 1 < R and task.kind[y[last + 1]] == 2:
            last += 1
            room.wanted[last] = y[last]
            chances[last] = 0
        if last + 1 < R:
            room.wanted[last + 1] = events.other_than(tag + 1)  # I stands behind its B
        found = events.given_event(room.E, R, K, task.start, task.shown, room.wanted, room.p, room.E2)
        chances[i] = min(max(found, np.float32(0)), np.float32(1))
        i = last + 1
    return True
