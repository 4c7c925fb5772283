"""Random numbers: bits against plain Python, and (make torture) the laws they are meant to have."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import twins
from scipy import stats

from sparsezo.kernels import random

KEY = np.uint64(random.stream_key(7, random.PERTURBATION))


def key_of(seed, stream):
    return np.uint64(random.stream_key(seed, stream))


def normals(key, step, n, dtype=np.float32):
    out = np.full(n, np.nan, dtype)
    random.fill_normals(key, step, out)
    return out


@pytest.fixture(scope="module")
def by_step():
    """5,000 steps of 200 normals each: a million, as training reads them."""
    return np.stack([normals(KEY, step, 200) for step in range(5000)]).astype(float)


def test_words_are_splitmix64():
    for z in [0, 1, 2**63, 2**64 - 1, 0x0123456789ABCDEF]:
        assert random.mix(np.uint64(z)) == twins.mix(z)
    for seed in [0, 1, 2**31, 2**63 - 1, 2**64 - 1]:
        for stream in range(6):
            assert random.stream_key(np.uint64(seed), stream) == twins.stream_key(seed, stream)
    for step in [0, 1, 4_000_000, 2**36 - 1]:
        assert random.place(KEY, step) == twins.place(int(KEY), step)


def test_uniform_and_below_equal_their_twins():
    for step in [0, 1, 2, 3_999_999, 2**36 - 1]:
        for j in [0, 1, 213, 2**28 - 1]:
            assert random.uniform(KEY, step, j) == twins.uniform(int(KEY), step, j)
        for n in [1, 2, 3, 8936, 804_414, 2**31]:
            assert random.below(KEY, step, n) == twins.below(int(KEY), step, n)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 8, 9, 16, 17, 213, 1001])
def test_normals_equal_their_twin(n):
    for step in [0, 1, 12345678]:
        # float32 of values up to 6.7 and polynomials good to 2e-7 of the value
        np.testing.assert_allclose(normals(KEY, step, n), twins.normals(int(KEY), step, n), rtol=0, atol=3e-6)
        np.testing.assert_array_equal(normals(KEY, step, n, np.float64), normals(KEY, step, n))


@pytest.mark.parametrize("a", [0, 1, 2**30, 2**31 - 1, 2**31 - 2, 0x55555555])
@pytest.mark.parametrize("low", [0, 1, 2, 3, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1])
def test_normal_pair_at_the_edges(a, low):
    bits = a << 33 | low
    pair = random.normal_pair(np.uint64(bits))
    assert np.isfinite(pair).all()
    np.testing.assert_allclose(pair, twins.normal_pair(bits), rtol=0, atol=3e-6)


def test_streams_keep_their_numbers():
    """Saved runs and feedback logs rely on them."""
    names = ["INPUTS", "PERTURBATION", "COMPLEMENT", "DEBT", "OUTPUT", "FEEDBACK", "CHOICE", "MODE", "REHEARSAL"]
    names += ["OPPOSITE"]
    assert [getattr(random, name) for name in names] == list(random.STREAMS) == list(range(10))


@pytest.mark.torture
def test_moments(by_step):
    x = by_step.ravel()
    n = x.size
    # 6 standard errors each (two-sided 2e-9); Var of x, x^2, x^3, x^4 under N(0, 1): 1, 2, 15, 96
    for power, mean, variance in [(1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)]:
        assert abs((x**power).mean() - mean) < 6 * np.sqrt(variance / n)
    assert abs(stats.skew(x)) < 6 * np.sqrt(6 / n)
    assert abs(stats.kurtosis(x)) < 6 * np.sqrt(24 / n)


@pytest.mark.torture
def test_distribution_by_kolmogorov_smirnov(by_step):
    assert stats.kstest(by_step.ravel(), "norm").pvalue > 1e-7


@pytest.mark.torture
def test_tails():
    x = normals(KEY, 9, 2**22)
    for limit in [3.0, 4.0, 4.5]:
        p = stats.norm.sf(limit)
        for count in [(x > limit).sum(), (x < -limit).sum()]:
            # the count is Poisson; 1e-8 on either side
            assert stats.poisson.ppf(1e-8, p * x.size) <= count <= stats.poisson.ppf(1 - 1e-8, p * x.size)
    assert np.abs(x).max() < 6.67  # sqrt(2 * 32 ln 2)


def uncorrelated(x, y):
    """Values and squares, each within 6 standard errors of 0 (2e-9)."""
    limit = 6 / np.sqrt(x.size)
    assert abs((x * y).mean()) < limit
    assert abs(((x**2 - 1) * (y**2 - 1)).mean() / 2) < limit
    assert abs((x * (y**2 - 1)).mean()) < limit * np.sqrt(2)


@pytest.mark.torture
def test_streams_and_seeds_are_independent():
    draws = [normals(key_of(3, stream), 0, 100_000) for stream in range(6)]
    draws += [normals(key_of(seed, 1), 0, 100_000) for seed in range(4, 8)]
    for x, y in combinations(draws, 2):
        uncorrelated(x.astype(float), y.astype(float))
