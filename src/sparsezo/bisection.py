"""Where an increasing function passes through 0, by halving."""

from __future__ import annotations

from collections.abc import Callable

_HALVINGS = 60  # of an interval that holds it: beyond float64's last bit


def root(function: Callable[[float], float], low: float = 0.0, high: float = 1.0) -> float:
    """Between low and high."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if function(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def root_above_0(function: Callable[[float], float]) -> float:
    """However far it is."""
    high = 1.0
    while function(high) < 0:
        high *= 2
    return root(function, 0.0, high)
