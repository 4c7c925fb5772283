"""The coefficient c of a step, W += c * direction, from its feedback: paper Sec. 4 and design 2. The only place.

Two more first-order rules are those of Sokolov et al. 2016 (docs/theory.md): ``pairwise``, along the gradient of a
pair's log-probability, and ``cross-entropy``, along that of y's over max(p_w(y), LEAST_PROBABILITY).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels.codes import (
    BASELINE,
    COMPARISON,
    CROSS_ENTROPY,
    FIRST_ORDER,
    PAIRWISE,
    PREFERENCE,
    SYMMETRIC,
    TWO_POINT,
)
from sparsezo.kernels.jit import inlined_kernel, kernel

LEAST_PROBABILITY = 0.1  # of an output, as cross-entropy has it: a step is at most ten times as long as first-order's
MOST_LATE = 10.0  # times a prompt answer's step that a late answer's may be


@inlined_kernel
def compares(params: Any) -> Any:
    """Whether the rule asks about two outputs, the candidate and the incumbent, or more."""
    return params.points.size > 1 or params.rule == PAIRWISE


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
    if rule == PAIRWISE:  # the pair's loss: by how much the candidate, which is to be the better one, is worse
        return -h * max(F_plus - F_incumbent, 0.0)
    if rule == CROSS_ENTROPY:  # its gain
        return h * (1 - F_plus)
    return h  # supervised


@kernel
def late_factor(now: Any, then: Any) -> Any:
    """What the step of a late answer is multiplied by: its output was drawn from the weights of then.

    now, then: the logarithms of its probability. E over then of (p_now / p_then) g(y) is that of g(y) over now, so the
    step is that of a prompt answer in the mean, but for ratios above MOST_LATE, which are cut: no step is longer than
    so many prompt ones.
    """
    if now == then:
        return 1.0
    return min(np.exp(min(now - then, MOST_LATE)), MOST_LATE)
