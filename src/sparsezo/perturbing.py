"""What ``sparsezo.torch`` does to weights on a CPU, compiled: normals added where they stand, and numbers of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from sparsezo.kernels.jit import standalone_kernel
from sparsezo.kernels.random import GAMMA, mix, place

_SPREAD = np.int64(0x9E3779B1)
_F, _I = np.float32, np.int32


@intrinsic  # type: ignore[untyped-decorator]
def _fma(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once."""
    return types.float32(types.float32, types.float32, types.float32), lambda _, builder, __, args: builder.fma(*args)


@standalone_kernel
def _normal_pair(word: Any) -> Any:
    """As ``random.normal_pair``, to the last few bits, by a shorter chain of operations, which is what it costs."""
    a = _fma(_F(_I(word >> np.uint64(33))), _F(2.0**-31), _F(2.0**-32))  # in (0, 1]
    bits = _I(word & np.uint64(0xFFFFFFFF))
    # ln a = exponent * ln 2 + log1p(f), f in [-1/3, 1/3]
    i = np.float32(a).view(np.int32)
    e = _I((i - _I(0x3F2AAAAB)) & _I(-8388608))
    f = np.int32(i - e).view(np.float32) - _F(1.0)
    f2 = f * f
    low = _fma(_fma(_F(0.20007323), f, _F(-0.24999839)), f2, _fma(_F(0.33333272), f, _F(-0.5)))
    high = _fma(_fma(_F(0.13756539), f, _F(-0.122196175)), f2, _fma(_F(0.14054218), f, _F(-0.16678093)))
    high = _fma(_F(-0.12734152) * f2, f2, high)
    log_a = _fma(_F(_I(e >> _I(23))), _F(0.6931471805599453), _fma(f2, _fma(high, f2 * f2, low), f))
    r = np.sqrt(max(_F(-2.0) * log_a, _F(0.0)))
    # t in [-pi/4, pi/4) from 30 bits; the other two turn it into the four quadrants
    t = _F(_I(bits >> _I(2))) * _F(np.pi / 4 * 2.0**-29)
    s = t * t
    s2 = s * s
    cos = _fma(s2, _fma(s, _fma(s, _F(2.437988e-05), _F(-0.0013886619)), _F(0.041666616)), _fma(s, _F(-0.5), _F(1.0)))
    sin = t * _fma(s2, _fma(s, _F(-0.00019503963), _F(0.008332036)), _fma(s, _F(-0.16666651), _F(1.0)))
    swap = _I(bits & _I(1)) != _I(0)
    r = _F(_I((bits & _I(2)) - _I(1))) * r
    return r * (sin if swap else cos), r * (cos if swap else sin)


@standalone_kernel
def add_normals(key: Any, scale: Any, w: Any) -> None:
    """w += scale u, u ~ N(0, I) by the key: word j is about w[j] and w[half + j]."""
    half = w.size // 2
    word = place(key, 0)
    lower, upper = w[:half], w[half : 2 * half]
    for j in range(half):
        x, y = _normal_pair(mix(word))
        word += GAMMA
        lower[j] += scale * x
        upper[j] += scale * y
    if w.size % 2:
        w[w.size - 1] += scale * _normal_pair(mix(word))[0]


@standalone_kernel
def distinct(indices: Any, slots: Any, rows: Any, count: Any, places: Any) -> Any:
    """places[i]: where indices[i] stands in rows[:count], to which new ones are appended; the count after that.

    slots: a hash table, a power of 2 long, larger than the count will be; -1 where it is empty.
    """
    mask = slots.size - 1
    for i in range(indices.size):
        row = np.int64(indices[i])
        slot = (row * _SPREAD >> 8) & mask
        while slots[slot] >= 0 and rows[slots[slot]] != row:
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = count
            rows[count] = row
            count += 1
        places[i] = slots[slot]
    return count
