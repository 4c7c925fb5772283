"""What may enter compiled code, which checks nothing: each array is looked at once, where it comes in.

>>> offsets("row_start", np.array([0, 2, 2, 5]), n=3, end=5)
>>> below("columns", np.array([0, 7]), 5)
Traceback (most recent call last):
    ...
sparsezo.errors.UsageError: columns has 7; it must be from 0 to 4
>>> weights("the weights", [1, 2, 3], (3, 1), np.float32).shape
(3, 1)

A wrong one is a ``UsageError``; whoever reads a file makes that a ``DamagedError``. Inputs, tasks and gold that know
their own bounds have ``check`` (``kernels.protocol``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from sparsezo.errors import UsageError

Array = NDArray[Any]  # of numbers of any type


def array(name: str, given: object, kinds: str, shape: tuple[int | None, ...]) -> None:
    """An array in C order of this shape (None: any length) whose type is of these kinds, as in ``dtype.kind``."""
    fits = (
        isinstance(given, np.ndarray)
        and given.dtype.kind in kinds
        and given.dtype.isnative
        and given.flags.c_contiguous
        and given.ndim == len(shape)
        and all(want in (None, have) for want, have in zip(shape, given.shape, strict=True))
    )
    if not fits:
        wanted = " x ".join("any" if want is None else str(want) for want in shape)
        have = f"{given.dtype} of shape {given.shape}" if isinstance(given, np.ndarray) else f"a {type(given).__name__}"
        sort = "whole numbers" if kinds == "iu" else "numbers"
        raise UsageError(f"{name} is {have}; it must be an array of {sort}, {wanted}, in C order")


def offsets(name: str, given: Array, *, n: int | None = None, end: int | None = None) -> None:
    """Where each of n things begins, and the end of the last: from 0, never falling."""
    array(name, given, "iu", (None if n is None else n + 1,))
    if not given.size or given[0] != 0 or (given[1:] < given[:-1]).any() or (end is not None and given[-1] != end):
        raise UsageError(f"{name} must go from 0 to {'the end' if end is None else end} and never fall")


def below(name: str, given: Array, limit: int) -> None:
    """Numbers of things of which there are ``limit``."""
    if given.size and not (given.min() >= 0 and given.max() < limit):
        wrong = given.min() if given.min() < 0 else given.max()
        raise UsageError(f"{name} has {wrong}; it must be from 0 to {limit - 1}")


def at_least(name: str, given: int, least: int) -> None:
    """UsageError where there is less room than will be needed."""
    if given < least:
        raise UsageError(f"{name} is {given}, and {least} is needed")


def all_finite(given: Array) -> bool:
    """Whether all numbers are finite, without a table of answers as large as what is asked about."""
    return not given.size or (math.isfinite(given.min()) and math.isfinite(given.max()))


def finite(name: str, given: Array) -> None:
    """UsageError where a number is infinite or none."""
    if not all_finite(given):
        raise UsageError(f"{name} must all be finite")


def weights(name: str, given: ArrayLike, shape: tuple[int, int], dtype: DTypeLike) -> Array:
    """Weights as the loop reads them: of this shape and type, in C order; a copy only where they are not."""
    try:
        table = np.asarray(given)
    except (ValueError, TypeError):
        raise UsageError(f"{name} are no table of numbers; make it {shape}") from None
    if table.dtype.kind not in "fiub":
        raise UsageError(f"{name} are {table.dtype}, no table of real numbers; make it {shape}")
    if table.shape != shape and not (shape[1] == 1 and table.shape == shape[:1]):
        raise UsageError(f"{name} have shape {table.shape}; make it {shape}")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(table, dtype).reshape(shape)


def distinct(given: ArrayLike, n: int, scratch: NDArray[np.int32] | None = None) -> NDArray[np.int64]:
    """The numbers of active weights, of which there are n in all; each once. With ``scratch``, room for n numbers,
    nothing has to be sorted."""
    try:
        a = np.asarray(given)
    except (ValueError, TypeError):
        raise UsageError("active must be one row of whole numbers") from None
    if a.ndim != 1 or (a.size and a.dtype.kind not in "iu"):
        raise UsageError(f"active must be one row of whole numbers, not {a.dtype} of shape {a.shape}")
    a = a.astype(np.int64)
    if a.size:
        ascending = bool((a[1:] > a[:-1]).all())
        least, most = (a[0], a[-1]) if ascending else (a.min(), a.max())
        if least < 0 or most >= n:
            raise UsageError(f"active has {least if least < 0 else most}; the {n} weights are 0 to {n - 1}")
        if not ascending and _twice(a, scratch):
            raise UsageError("active names a weight twice; np.unique makes them distinct")
    return a


def _twice(a: NDArray[np.int64], scratch: NDArray[np.int32] | None) -> bool:
    if scratch is None:
        ordered = np.sort(a)
        return bool((ordered[1:] == ordered[:-1]).any())
    places = np.arange(a.size, dtype=np.int32)
    scratch[a] = places  # of a weight that is named twice the last place remains
    return bool((scratch[a] != places).any())
