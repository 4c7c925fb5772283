"""Adagrad's step, one place for its formula (design 2.4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels.jit import kernel

_ONE = np.float32(1)


@kernel
def adagrad(c: Any, h: Any, direction: Any, w: Any, q: Any) -> None:
    """g = direction * c / h, q += g^2, w += h g / sqrt(1 + q): design 2.4."""
    scale = c / h
    for l in range(w.size):
        g = direction[l] * scale
        q[l] += g * g
        w[l] += h * g / np.sqrt(_ONE + q[l])
