"""The coefficient c of a step, W += c * direction, from its feedback: paper Sec. 4 and DESIGN 2. The only place."""

from __future__ import annotations

from typing import Any

from sparsezo.kernels.codes import BASELINE, COMPARISON, FIRST_ORDER, PREFERENCE, SUPERVISED, SYMMETRIC, TWO_POINT
from sparsezo.kernels.jit import inlined_kernel, kernel


@inlined_kernel
def perturbs(rule: Any) -> Any:
    """Whether the rule is zeroth-order: it learns from what perturbed weights do."""
    return rule != FIRST_ORDER and rule != SUPERVISED


@inlined_kernel
def compares(rule: Any) -> Any:
    """Whether the rule asks about two outputs, the candidate and the incumbent."""
    return rule in (TWO_POINT, SYMMETRIC, COMPARISON, PREFERENCE)


@kernel
def coefficient(rule: Any, h: Any, mu: Any, F_plus: Any, F_incumbent: Any, mean: Any) -> Any:
    """F_plus: loss of the candidate; F_incumbent: of what it is compared with; mean: of the candidates so far."""
    if rule == TWO_POINT:  # eq. (2-point)
        return -h * (F_plus - F_incumbent) / mu
    if rule == SYMMETRIC:
        return -h * (F_plus - F_incumbent) / (2 * mu)
    if rule == COMPARISON:  # Sec. 4, function comparison
        return h / mu if F_plus < F_incumbent else 0.0
    if rule == PREFERENCE:
        return h / mu if F_plus < F_incumbent else (-h / mu if F_plus > F_incumbent else 0.0)
    if rule == BASELINE:  # Sec. 4, baseline comparison
        return -h * (F_plus - mean) / mu
    if rule == FIRST_ORDER:  # Sec. 4, stochastic first-order; mean is 0 without --baseline
        return -h * (F_plus - mean)
    return h  # supervised
