"""The part of a direction that an input's scores see, without factoring C C': for inputs of many rows (sparse.py)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo.kernels.inputs.products import gather, scatter
from sparsezo.kernels.jit import kernel

_FIRST = np.int64(0)  # no literal, for which the products would be compiled once more
_TOLERANCE = 1e-5  # of the residual: about what float32 can give


class SparseScratch(NamedTuple):
    """Room, each learner's own: for a row of scores, and for conjugate gradients on inputs without factors, one row a
    column or a row of C; None where all inputs have factors, so that these are not compiled in vain."""

    row: NDArray[np.float32]  # L
    residual: NDArray[np.float32] | None  # of u, columns x L
    image: NDArray[np.float32] | None  # columns x L
    slope: NDArray[np.float32] | None  # rows x L
    direction: NDArray[np.float32] | None  # rows x L


@kernel
def project_onto_rows(residual: Any, inputs: Any, x: Any, u: Any, D: Any) -> None:
    """D with C' D = the projection of u onto C's row space: least squares by conjugate gradients (CGLS).

    residual: the scratch's; None where there is no such input.

    The residual u - C' D is carried itself, so accuracy goes with the condition of C, not with its square, and
    a singular C does no harm: the directions that it cannot see never enter.
    """
    if residual is None:
        return
    R, M, L = inputs.row_start[x + 1] - inputs.row_start[x], inputs.col_start[x + 1] - inputs.col_start[x], u.shape[1]
    image, slope, direction = inputs.scratch.image, inputs.scratch.slope, inputs.scratch.direction
    for m in range(M):
        for l in range(L):
            residual[m, l] = u[m, l]
    D[:R] = 0
    direction[:R] = 0
    gather(inputs, x, inputs.slots, _FIRST, residual, slope)
    now = _square(slope, R)
    small, share = _TOLERANCE * _TOLERANCE * now, np.float32(0)
    for _ in range(R + M):  # far more than are ever needed: rounding aside, R would be exact
        if now <= small:
            break
        for i in range(R):
            for l in range(L):
                direction[i, l] = slope[i, l] + share * direction[i, l]
        image[:M] = 0
        scatter(inputs, x, inputs.slots, _FIRST, np.float32(1), direction, image)
        length = _square(image, M)
        if length <= 0:
            break
        alpha = np.float32(now / length)
        for i in range(R):
            for l in range(L):
                D[i, l] += alpha * direction[i, l]
        for m in range(M):
            for l in range(L):
                residual[m, l] -= alpha * image[m, l]
        gather(inputs, x, inputs.slots, _FIRST, residual, slope)
        before, now = now, _square(slope, R)
        share = np.float32(now / before)


@kernel
def _square(a: Any, n: Any) -> Any:
    """The squared length of a's first n rows."""
    total = 0.0
    for i in range(n):
        for l in range(a.shape[1]):
            total += np.float64(a[i, l]) * np.float64(a[i, l])
    return total
