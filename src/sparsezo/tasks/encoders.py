"""A function of anybody's as a frozen encoder: n texts in, n vectors out, for dense columns beside sparse ones.

    encoder = Encoder("my_encoder:encode")          # by name: a model that is saved finds it again
    encoder = Encoder(lambda texts: ...)            # or any function: whoever loads the model gives it again
    encoder(["In", "Madrid"], columns=None)         # float32, texts x columns; checked

What goes in is a list of texts: of chunking the tokens of a sentence, of text documents. What comes out is an array, or
anything that NumPy makes one of, with a row for each text and always the same number of columns. Columns are used as
``to_length`` leaves them: without their mean over the training texts, and all of one length beside features of value 1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsezo import validation
from sparsezo.errors import DataError, UsageError, quoted, shown
from sparsezo.options import in_one_line, named_function, names_function
from sparsezo.tasks.base import AnyArray

Encode = Callable[[list[str]], ArrayLike]
MOST_COLUMNS = 1 << 14
_ROWS = 4096  # whose lengths are computed at a time, in float64


class Encoder:
    """``given``: a function, or its name as ``module:function``, which is imported when it is first called."""

    def __init__(self, given: str | Encode) -> None:
        if isinstance(given, str):
            if not names_function(given):
                raise UsageError(f"`vectors` {quoted(given)}: name a function as module:function")
            if given.partition(":")[0].partition(".")[0] in sys.stdlib_module_names:  # a model may have come from afar
                raise UsageError(f"`vectors` {quoted(given)}: a module of Python's own has no encoder; name another")
        self.name = given if isinstance(given, str) else _name_of(given)
        self._given = given

    def __str__(self) -> str:
        return self.name or "a function without a name"

    @cached_property
    def function(self) -> Callable[..., object]:
        if not isinstance(self._given, str):
            return self._given
        try:
            return named_function(self._given)
        except UsageError as error:
            raise UsageError(f"`vectors` {self._given}: {error}; install it, or start where it is") from error

    def __call__(self, texts: Sequence[str], columns: int | None, where: str) -> NDArray[np.float32]:
        """A row for each text. ``columns``: how many there must be, where that is known; ``where``: for messages."""
        function = self.function
        try:
            found = np.asarray(function(list(texts)))
        except (Exception, SystemExit) as error:
            raise UsageError(f"`vectors` {self}: raised {in_one_line(error)}, at {where}") from error
        return checked_rows(found, len(texts), columns, f"`vectors` {self}", where)


def _name_of(function: Encode) -> str | None:
    """``module:function`` where that leads to the function again, in another process, too."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    found = getattr(sys.modules.get(module or ""), name, None) if module != "__main__" else None
    text = f"{module}:{name}"
    return text if found is function and names_function(text) else None


def checked_rows(found: AnyArray, n: int, columns: int | None, what: str, where: str) -> NDArray[np.float32]:
    """An array of n rows as float32; DataError where it is another, or not finite."""
    if found.ndim != 2 or found.dtype.kind not in "fiub" or len(found) != n or not found.shape[1]:
        shape = " x ".join(map(str, found.shape)) or "one value"
        raise DataError(where, f"{what} gave {shape} of {found.dtype}; give numbers, {n:,} x the columns")
    if columns is not None and found.shape[1] != columns:
        raise DataError(where, f"{what} gave {found.shape[1]:,} columns, not {columns:,}; is it another encoder?")
    if found.shape[1] > MOST_COLUMNS:
        raise DataError(where, f"{what} gave {found.shape[1]:,} columns; at most {MOST_COLUMNS:,} are meant")
    with np.errstate(over="ignore"):
        rows = found.astype(np.float32)
    if not validation.all_finite(rows):
        wrong = found[~np.isfinite(rows)].reshape(-1)[0]
        raise DataError(where, f"{what} gave {shown(wrong)}; numbers must be finite, and fit float32")
    return rows


def known_rows(rows: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which texts have a vector: one of zeros says that nothing is known."""
    return np.asarray(rows.any(axis=1))


def to_length(rows: NDArray[np.float32], centre: NDArray[np.float32], known: NDArray[np.bool_], length: float) -> None:
    """Subtract the centre and give each row that is ``known`` the length; the others are 0. In place."""
    rows -= centre
    rows[~known] = 0
    for begin in range(0, len(rows), _ROWS):
        some = rows[begin : begin + _ROWS]
        now = np.sqrt(np.square(some, dtype=np.float64).sum(axis=1))
        factor = np.divide(length, now, out=np.zeros_like(now), where=now > 0)
        some *= factor.astype(np.float32)[:, None]


def centre_of(rows: NDArray[np.float32], known: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The mean of the rows that are known."""
    total = rows.sum(axis=0, dtype=np.float64, where=known[:, None])
    centre: NDArray[np.float32] = (total / max(int(known.sum()), 1)).astype(np.float32)
    return centre
