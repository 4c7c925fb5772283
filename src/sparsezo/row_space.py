"""What a loss can see of the weights that reads them through C w alone: the row space of C, for ``score`` (design 2.3).

>>> C = np.array([[1.0, 2.0, 2.0], [2.0, 4.0, 4.0]])    # two scores of three weights, the second twice the first
>>> space = RowSpace(C)
>>> space.rank, (space.direction(np.ones(1)) * 3).tolist()
(1, [1.0, 2.0, 2.0])

``Optimizer.ask(active, C)`` makes one for each ask; whoever sees an input again keeps its ``RowSpace``, which is the
factor of C C', and asks with that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array, issparse
from scipy.sparse.linalg import norm as sparse_norm

from sparsezo import validation
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.validation import Array

Vector = NDArray[np.float64]

_DEPENDENT = 1e-10  # the square of a row's part outside of the rows before it, of its own: that and less is none


class RowSpace:
    """C factored: ``direction(z)`` of ``rank`` normals is the part of u ~ N(0, I) that C u shows, C' K^-T z.

    C: rows x weights, dense or a SciPy sparse table. active: the numbers of the weights that its columns are about;
    without it all weights, one after the other, and of a sparse C those in whose columns something stands.
    Rows that depend on earlier ones (to an angle of 1e-5) are left out, which changes nothing (design 2.1).
    """

    def __init__(self, C: ArrayLike, active: ArrayLike | None = None) -> None:
        rows: csr_array = csr_array(C, dtype=np.float64, copy=True) if issparse(C) else _dense(C)
        if active is not None:
            self.active = validation.distinct(active, np.iinfo(np.int64).max)
        elif issparse(rows):
            self.active = np.unique(rows.indices).astype(np.int64)
            rows = rows[:, self.active]
        else:
            self.active = np.arange(rows.shape[1])
        self.width = None if active is not None else np.shape(C)[1]  # None: said by active
        if rows.shape[1] != self.active.size:
            raise UsageError(f"C has shape {rows.shape}; make it rows x {self.active.size}, as active is long")
        if not validation.all_finite(rows.data if issparse(rows) else rows):
            raise SparsezoError("C is not finite")
        rows = _of_length_1(rows)
        if rows.shape[0] > rows.shape[1]:  # C = U S V': the rows of V' span the same
            _, sizes, rows = np.linalg.svd(rows.toarray() if issparse(rows) else rows, full_matrices=False)
            rows = rows[sizes > _DEPENDENT * sizes.max(initial=0)]
        G = rows @ rows.T
        kept, K = _factor(G.toarray() if issparse(G) else G)
        self._columns = rows[kept].T.tocsr() if issparse(rows) else rows[kept].T  # C', weights x rank
        self._solve = solve_triangular(K, np.eye(len(K)), lower=True).T  # K^-T
        self.rank = len(K)

    def direction(self, z: Vector) -> Vector:
        """C' K^-T z, one number for each active weight."""
        found: Vector = self._columns @ (self._solve @ z)
        return found


def _dense(C: object) -> Vector:
    wanted = "make it a table of numbers, rows x active weights"
    try:
        given = np.asarray(C)
    except (ValueError, TypeError):
        raise UsageError(f"C is no table of numbers; {wanted}") from None
    if given.dtype.kind not in "fiub" or given.ndim != 2:
        raise UsageError(f"C is {given.dtype} of shape {given.shape}; {wanted}")
    return given.astype(np.float64)


def _of_length_1(rows: csr_array) -> csr_array:
    """Rows as long as each other: what they span is the same, and small ones count as much as large ones."""
    if not rows.shape[1]:
        return rows
    for norm in (np.inf, 2):  # the first keeps the squares finite
        if issparse(rows):
            length = sparse_norm(rows, norm, axis=1)
            rows.data /= np.repeat(np.where(length > 0, length, 1.0), np.diff(rows.indptr))
        else:
            length = np.linalg.norm(rows, norm, axis=1)
            rows = rows / np.where(length > 0, length, 1.0)[:, None]
    return rows


def _factor(G: Array) -> tuple[NDArray[np.int64], Array]:
    """(rows kept, K): K K' = G of these, K lower triangular; the others depend on rows before them."""
    if G.size:
        try:
            K = np.linalg.cholesky(G)
            if K.diagonal().min() ** 2 > _DEPENDENT:
                return np.arange(len(G)), K
        except np.linalg.LinAlgError:
            pass
    kept: list[int] = []
    K = np.zeros_like(G)
    for i in range(len(G)):
        r = len(kept)
        k = solve_triangular(K[:r, :r], G[kept, i], lower=True) if r else np.zeros(0)
        left = float(G[i, i] - k @ k)
        if left > _DEPENDENT:
            K[r, :r], K[r, r] = k, np.sqrt(left)
            kept.append(i)
    return np.array(kept, np.int64), K[: len(kept), : len(kept)]
