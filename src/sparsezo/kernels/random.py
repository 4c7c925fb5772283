"""Random numbers as pure functions of (run seed, stream, step): design 3.

A stream is SplitMix64 read at any place: word j of step k is mix(key + (k * 2^28 + j) * GAMMA), with the key made from
the run's seed and the stream's number. GAMMA is odd, so within a stream no place is read twice (2^28 words a step,
2^36 steps). Normals are Box-Muller on the two halves of a word, with polynomials instead of library calls: the loop
becomes vector code, and the numbers are the same on every machine.

    key = stream_key(seed, PERTURBATION)
    fill_normals(key, step, out)            # out[:] ~ N(0, 1), float32
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import overload

from sparsezo.kernels.jit import OPTIONS, kernel

# Streams. A number, once given, keeps its meaning: saved runs and feedback logs rely on it.
INPUTS = 0  # which input a step looks at
PERTURBATION = 1  # Z, the part of u that the loss sees
COMPLEMENT = 2  # U0, the part of u that it does not see
DEBT = 3  # what ALL owes to sleeping rows
OUTPUT = 4  # first-order: the sampled output
FEEDBACK = 5  # noise of a simulated rater
CHOICE = 6  # what a question is about
MODE = 7  # which questions are about anything at random
REHEARSAL = 8  # which answers are gone over again
OPPOSITE = 9  # pairwise: the output sampled at -w
STREAMS = range(10)

GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_STEP_BITS = np.uint64(28)
_F = np.float32
_I = np.int32  # Numba widens int32 arithmetic to int64; narrowing again keeps the lanes full


@kernel
def mix(z: Any) -> Any:
    """SplitMix64's finaliser: a bijection of 64 bits that passes the usual test batteries in counter mode."""
    z = (z ^ (z >> np.uint64(30))) * _MIX1
    z = (z ^ (z >> np.uint64(27))) * _MIX2
    return z ^ (z >> np.uint64(31))


def stream_key(seed: int, stream: int) -> np.uint64:
    """Always uint64: as a plain int it would reach compiled code as int64 when it is small enough."""
    return np.uint64(_stream_key(seed, stream))


@kernel
def _stream_key(seed: Any, stream: Any) -> Any:
    return mix(mix(np.uint64(seed) + GAMMA) + np.uint64(stream + 1) * GAMMA)


@kernel
def place(key: Any, step: Any) -> Any:
    """Where step's words begin in the stream."""
    return key + (np.uint64(step) << _STEP_BITS) * GAMMA


@kernel
def uniform(key: Any, step: Any, j: Any) -> Any:
    """Word j of a step as a float64 in [0, 1)."""
    word = mix(place(key, step) + np.uint64(j) * GAMMA)
    return np.float64(word >> np.uint64(11)) * 2.0**-53


@kernel
def below(key: Any, step: Any, n: Any) -> Any:
    """A whole number in 0..n-1. The bias of the multiply-shift is under n / 2^32."""
    word = mix(place(key, step)) >> np.uint64(32)
    return np.int64((word * np.uint64(n)) >> np.uint64(32))


@kernel
def permuted(key: Any, step: Any, n: Any) -> Any:
    """A whole number in 0..n-1; every n steps, each of them once, in an order of its own.

    A Feistel cipher on as many bits as n needs (an even number), walked on until it is below n.
    """
    half = np.uint64(1)
    while (np.uint64(1) << (half + half)) < np.uint64(n):
        half += np.uint64(1)
    mask = (np.uint64(1) << half) - np.uint64(1)
    turn, value = np.uint64(step) // np.uint64(n), np.uint64(step) % np.uint64(n)
    while True:
        left, right = value >> half, value & mask
        for k in range(4):
            word = mix(key + (turn * np.uint64(4) + np.uint64(k)) * GAMMA + right * _MIX1)
            left, right = right, left ^ (word >> np.uint64(40)) & mask
        value = (left << half) | right
        if value < np.uint64(n):
            return np.int64(value)


@kernel
def input_at(key: Any, shift: Any, step: Any, n: Any) -> Any:
    """The input that a step looks at: drawn at random; or, where there is a shift, each once in n steps.

    A turn begins where step + shift is a multiple of n.
    """
    if shift > 0:
        return permuted(key, step + shift, n)
    return below(key, step, n)


@kernel
def _halves(word: Any) -> Any:
    """(31 bits, 32 bits) of a word."""
    return _I(word >> np.uint64(33)), _I(word & np.uint64(0xFFFFFFFF))


@kernel
def _box_muller(high: Any, bits: Any) -> Any:
    """Two independent N(0, 1) from 31 and 32 random bits: sqrt(-2 ln a) * (cos t, sin t)."""
    a = _F(high) * _F(2.0**-31) + _F(2.0**-32)  # in (0, 1], fine near 0
    # ln a = exponent * ln 2 + log1p(f), f in [-1/3, 1/3]
    i = np.float32(a).view(np.int32)
    e = _I((i - _I(0x3F2AAAAB)) & _I(-8388608))
    f = np.int32(i - e).view(np.float32) - _F(1.0)
    p = _F(-0.12734152)
    p = p * f + _F(0.13756539)
    p = p * f + _F(-0.122196175)
    p = p * f + _F(0.14054218)
    p = p * f + _F(-0.16678093)
    p = p * f + _F(0.20007323)
    p = p * f + _F(-0.24999839)
    p = p * f + _F(0.33333272)
    p = p * f + _F(-0.5)
    log_a = _F(_I(e >> _I(23))) * _F(0.6931471805599453) + (f + f * f * p)
    r = np.sqrt(max(_F(-2.0) * log_a, _F(0.0)))
    # t in [-pi/4, pi/4) from 30 bits; the other two turn it into the four quadrants
    t = _F(_I(bits >> _I(2))) * _F(np.pi / 4 * 2.0**-29)
    s = t * t
    cos = (((_F(2.437988e-05) * s + _F(-0.0013886619)) * s + _F(0.041666616)) * s + _F(-0.5)) * s + _F(1.0)
    sin = t * (((_F(-0.00019503963) * s + _F(0.008332036)) * s + _F(-0.16666651)) * s + _F(1.0))
    swap = _I(bits & _I(1)) != _I(0)
    r = _F(_I((bits & _I(2)) - _I(1))) * r
    return r * (sin if swap else cos), r * (cos if swap else sin)


@kernel
def normal_pair(word: Any) -> Any:
    """Two independent N(0, 1) from 64 random bits."""
    return _box_muller(*_halves(word))


@kernel
def fill_normals(key: Any, step: Any, out: Any) -> None:
    """out[:] ~ N(0, 1): word j of the step gives out[j] and out[half + j]."""
    _fill(key, step, out)


def _fill(key: Any, step: Any, out: Any) -> None:
    raise NotImplementedError("called from compiled code only")


@overload(_fill, strict=False, jit_options=OPTIONS)
def _fill_by_type(_key: Any, _step: Any, out: Any) -> Callable[..., None]:
    """``fill_normals`` in two loops, of which the second has 32 bits a number throughout: with 64-bit words beside them
    its registers would be half empty. Between the two the halves of the words stand in ``out``."""
    kind = np.int32 if out.dtype == types.float32 else np.int64

    def fill(key: Any, step: Any, out: Any) -> None:
        n = out.size
        half = n // 2
        lower, upper = out[:half], out[half : 2 * half]
        high, low = lower.view(kind), upper.view(kind)
        word = place(key, step)
        for j in range(half):
            high[j], low[j] = _halves(mix(word))
            word += GAMMA
        for j in range(half):
            lower[j], upper[j] = _box_muller(_I(high[j]), _I(low[j]))
        if n % 2:
            out[n - 1] = normal_pair(mix(word))[0]

    return fill
