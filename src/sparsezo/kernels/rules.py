"""The coefficient c of a step, W += c * direction, from its feedback: paper Sec. 4 and DESIGN 2. The only place."""

from __future__ import annotations

from typing import Any

from sparsezo.kernels.jit import kernel

TWO_POINT, SYMMETRIC, COMPARISON, PREFERENCE, BASELINE, FIRST_ORDER, SUPERVISED = range(7)


@kernel
def coefficient(rule: Any, h: Any, mu: Any, F_plus: Any, F_other: Any, mean: Any) -> Any:
    """F_plus: loss of the candidate; F_other: of what it is compared with; mean: of the candidates so far."""
    if rule == TWO_POINT:  # eq. (2-point)
        return -h * (F_plus - F_other) / mu
    if rule == SYMMETRIC:
        return -h * (F_plus - F_other) / (2 * mu)
    if rule == COMPARISON:  # Sec. 4, function comparison
        return h / mu if F_plus < F_other else 0.0
    if rule == PREFERENCE:
        return h / mu if F_plus < F_other else (-h / mu if F_plus > F_other else 0.0)
    if rule == BASELINE:  # Sec. 4, baseline comparison
        return -h * (F_plus - mean) / mu
    if rule == FIRST_ORDER:  # Sec. 4, stochastic first-order; mean is 0 without --baseline
        return -h * (F_plus - mean)
    return h  # supervised
