"""What a rater says of a loss: raters are not exact. Models for simulation, drawn from the stream FEEDBACK.

    EXACT    the loss itself
    FLIP     which of two is better, wrong with probability ``noise``
    RATING   one of ``levels`` grades: the loss plus the rater's own bias plus noise, rounded, within [0, 1]
    BINARY   a thumb up or down: 1 with probability equal to the loss, else 0

The learner sees only these; average losses are of the true ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels.codes import BINARY, FLIP, RATING
from sparsezo.kernels.jit import inlined_kernel, kernel
from sparsezo.kernels.random import FEEDBACK, GAMMA, mix, normal_pair, place, uniform

RATERS = 20  # of RATING; which of them answers is drawn at each step


@kernel
def perceived(model: Any, noise: Any, bias: Any, levels: Any, key: Any, step: Any, F: Any, other: Any) -> Any:
    """The loss F as it is told; ``other``: 0 for the candidate, 1 for what it is compared with."""
    if model == RATING:
        rater = np.int64(uniform(key, step, 0) * RATERS)
        own = bias * normal_pair(mix(key + GAMMA * np.uint64(rater)))[0]  # the same whenever this rater is asked
        blur = noise * normal_pair(mix(place(key, step) + np.uint64(1 + other) * GAMMA))[0]
        grade = np.rint((F + own + blur) * (levels - 1)) / (levels - 1)
        return min(max(grade, 0.0), 1.0)
    if model == BINARY:
        return 1.0 if uniform(key, step, 3 + other) < F else 0.0
    return F


@kernel
def flipped(model: Any, noise: Any, key: Any, step: Any) -> Any:
    """Whether this comparison is answered the wrong way round."""
    return model == FLIP and uniform(key, step, 5) < noise


@inlined_kernel
def told(params: Any, step: Any, F_plus: Any, F_incumbent: Any, same: Any) -> Any:
    """The two losses as a rater that is not exact tells them."""
    key = params.keys[FEEDBACK]
    rater = (params.feedback, params.noise, params.bias, params.levels)
    F_plus = perceived(*rater, key, step, F_plus, 0)
    # shown the same output twice, a rater says the same
    F_incumbent = F_plus if same else perceived(*rater, key, step, F_incumbent, 1)
    if flipped(params.feedback, params.noise, key, step):
        return F_incumbent, F_plus
    return F_plus, F_incumbent
