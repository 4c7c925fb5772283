"""The best outputs of a problem's inputs under given weights; nothing is learned."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo import bounds
from sparsezo.errors import DivergedError
from sparsezo.kernels import loop
from sparsezo.optimizer import workspace
from sparsezo.tasks.base import Problem


def predict(problem: Problem, W: NDArray[Any]) -> NDArray[np.int32]:
    """The best output of every input, one after the other, as Problem.output_start says."""
    W = bounds.weights("the weights", W, (problem.n_features, problem.n_labels), problem.dtype)
    if not bounds.all_finite(W):
        raise _not_finite()
    out = np.empty(int(problem.output_start[-1]), np.int32)
    Decoder(problem).decode(W, 0, len(problem), out)
    return out


class Decoder:
    """With scratch of its own, for whoever decodes a part at a time."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._parts, self._work = problem.private(), workspace_of(problem)

    def decode(self, W: NDArray[Any], first: int, last: int, out: NDArray[np.int32]) -> None:
        """The best outputs of inputs first to last (exclusive), at their places in ``out``."""
        inputs, task = self._parts
        work, start = self._work, self.problem.output_start
        if not loop.decode_all(inputs, task, W, work.S, work.y, first, last, start, out):
            raise _not_finite()

    def one(self, W: NDArray[Any], x: int) -> NDArray[np.int32]:
        """The best output of input x."""
        begin, end = self.problem.output_start[x : x + 2].tolist()
        out = np.empty(end, np.int32)  # not touched before x: no memory is taken for it
        self.decode(W, x, x + 1, out)
        return out[begin:].copy()


def confidence(problem: Problem, W: NDArray[Any]) -> NDArray[np.float64]:
    """log p_w of the best output of every input: how sure a model is of it, at most 0."""
    W = bounds.weights("the weights", W, (problem.n_features, problem.n_labels), problem.dtype)
    inputs, task = problem.private()
    work, out = workspace_of(problem), np.empty(len(problem))
    if not loop.confidences(inputs, task, W, work.S, work.y, len(problem), out):
        raise _not_finite()
    return out


def span_chances(problem: Problem, W: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The best outputs of all inputs, and where a span of one begins how likely that span is; both as they stand at
    Problem.output_start."""
    W = bounds.weights("the weights", W, (problem.n_features, problem.n_labels), problem.dtype)
    inputs, task = problem.private()
    work, size = workspace_of(problem), int(problem.output_start[-1])
    out, chances = np.empty(size, np.int32), np.zeros(size, np.float32)
    if not loop.span_chances(inputs, task, W, work.S, work.y, len(problem), problem.output_start, out, chances):
        raise _not_finite()
    return out, chances


def workspace_of(problem: Problem) -> loop.Workspace:
    return workspace(problem.max_rows, problem.max_columns, problem.n_labels, problem.max_outputs, problem.dtype)


def _not_finite() -> DivergedError:
    return DivergedError("the model's weights give scores that are not finite; train it again with a smaller h")
