"""e^x for sums of probabilities, without a library call, so that loops of it become vector code."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels.jit import kernel

_F = np.float32
_I = np.int32


@kernel
def exp_nonpositive(x: Any) -> Any:
    """e^x for x <= 0, float32, to 3e-7 + 7e-8 |x| of its value; below -87 it is as good as 0."""
    t = max(x, _F(-87.0)) * _F(1.4426950408889634)
    n = _I(t - _F(0.5))
    f = t - _F(n)
    p = _F(0.00015469732)
    p = p * f + _F(0.0013400433)
    p = p * f + _F(0.009618025)
    p = p * f + _F(0.05550327)
    p = p * f + _F(0.2402265)
    p = p * f + _F(0.6931472)
    p = p * f + _F(1.0)
    return np.int32(np.float32(p).view(np.int32) + _I(n << _I(23))).view(np.float32)


_LOG2_E = 1.4426950408889634
_LN_2_HIGH, _LN_2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # times n the first is exact
_ROUNDER = 1.5 * 2.0**52  # added to a number of at most 2^51 it leaves no bits behind the point
_LEAST = -708.0  # e^-708 is about the least number with all its bits


@kernel
def exp_or_zero(x: Any) -> Any:
    """e^x for x <= 0, float64, to its last bit or two, and 0 below -708; NaN stays NaN.

    e^x = 2^n e^f with |f| <= ln 2 / 2: Taylor's twelfth polynomial, and n added to the exponent's bits.
    """
    t = _LEAST if x < _LEAST else x
    shifted = t * _LOG2_E + _ROUNDER
    n = shifted - _ROUNDER
    f = (t - n * _LN_2_HIGH) - n * _LN_2_LOW
    p = 1 / 479001600.0
    p = p * f + 1 / 39916800.0
    p = p * f + 1 / 3628800.0
    p = p * f + 1 / 362880.0
    p = p * f + 1 / 40320.0
    p = p * f + 1 / 5040.0
    p = p * f + 1 / 720.0
    p = p * f + 1 / 120.0
    p = p * f + 1 / 24.0
    p = p * f + 1 / 6.0
    p = p * f + 0.5
    p = p * f + 1.0
    p = p * f + 1.0
    bits = np.float64(p).view(np.int64) + (np.float64(shifted).view(np.int64) << np.int64(52))
    return 0.0 if x < _LEAST else np.int64(bits).view(np.float64)
