"""How likely each tag of each token is, whatever the others are; and the best tags around those that are known.

marginals(problem, W)                           # tokens x tags, as they stand at Problem.output_start
marginals(problem, W, known)                    # given the tags that are known, ANYTHING (-1) elsewhere
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo import validation
from sparsezo.errors import DivergedError
from sparsezo.kernels.inputs.products import gather
from sparsezo.kernels.jit import standalone_kernel
from sparsezo.learner import workspace_of
from sparsezo.tasks.base import AnyArray, Problem
from sparsezo.tasks.chunking.kernels.chains import relative
from sparsezo.tasks.chunking.kernels.events import constrain
from sparsezo.tasks.chunking.kernels.task import expand


@standalone_kernel
def _marginals(inputs: Any, task: Any, W: Any, S: Any, offsets: Any, known: Any, out: Any) -> Any:
    K, E = task.n_tags, task.scratch.E
    for x in range(offsets.size - 1):
        gather(inputs, x, inputs.columns, inputs.dense_column, W, S)
        expand(task, x, S)
        P = S if task.order == 2 else task.scratch.P
        begin, R = offsets[x], offsets[x + 1] - offsets[x]
        if known.size > 0:
            constrain(P, R, K, known[begin : begin + R])
        relative(P, R, K, task.start, task.scratch.best, E)
        for b in range(K):
            out[begin + R - 1, b] = E[R, b]
        for i in range(R - 1, 0, -1):
            for a in range(K):
                total = np.float32(0)
                for b in range(K):
                    total += out[begin + i, b] * E[i, a * K + b]
                out[begin + i - 1, a] = total
    return True


def marginals(problem: Problem, W: AnyArray, known: NDArray[np.int16] | None = None) -> NDArray[np.float32]:
    """p_w(token i has tag b) of every token of a problem of chunking, tokens x tags."""
    W = validation.weights("the weights", W, (problem.n_features, problem.n_labels), problem.dtype)
    known = np.zeros(0, np.int16) if known is None else known
    inputs, task = problem.private()
    out = np.empty((int(problem.output_start[-1]), task.n_tags), np.float32)
    _marginals(inputs, task, W, workspace_of(problem).S, problem.output_start, known, out)
    if not validation.all_finite(out):
        raise DivergedError("the model's weights give scores that are not finite; train it again with a smaller `h`")
    return out
