"""What a caller of a formula gave: numbers, positive ones, whole ones; anything else is refused in one line."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError

P = ParamSpec("P")


def formula(formula: Callable[P, float]) -> Callable[P, float]:
    """Takes NumPy's numbers as Python's, for their integers wrap around; refuses a value past what a float holds."""

    @functools.wraps(formula)
    def checked(*args: P.args, **kwargs: P.kwargs) -> float:
        plain: Any = [_plain(value) for value in args]
        named: Any = {name: _plain(value) for name, value in kwargs.items()}
        try:
            value = float(formula(*plain, **named))
        except (OverflowError, ZeroDivisionError):
            value = math.inf
        if not math.isfinite(value):
            raise UsageError(f"{formula.__name__}: the result does not fit a float; give less extreme values")
        return value

    return checked


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _number(name: str, value: object) -> float:
    try:
        if isinstance(value, Real):
            return float(value)
    except OverflowError:
        pass
    raise UsageError(f"{name}: must be a number, and fit a float")


def positive(**values: object) -> None:
    for name, value in values.items():
        if not 0 < _number(name, value) < math.inf:
            raise UsageError(f"{name} {value}: must be positive and finite")


def not_negative(**values: object) -> None:
    for name, value in values.items():
        if not 0 <= _number(name, value) < math.inf:
            raise UsageError(f"{name} {value}: must be finite and not negative")


def whole(**values: object) -> None:
    for name, value in values.items():
        if not isinstance(value, Integral) or int(value) < 0:
            raise UsageError(f"{name} {value}: must be a whole number, 0 or more")


def numbers(name: str, values: object) -> NDArray[np.float64]:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{name}: must be a number or numbers") from None
