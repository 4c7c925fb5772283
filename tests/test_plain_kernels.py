"""Numba's private corners: plain twins give the same bits, and take over where the fast forms cannot be compiled."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
from packaging.requirements import Requirement

from sparsezo.kernels import intrinsics, jit, simd
from sparsezo.kernels.jit import allocating_kernel

ROOT = Path(__file__).parent.parent
fast = pytest.mark.skipif(not simd.FAST, reason="the fast kernels are not in use here")


@allocating_kernel
def both_products(features, first, n, w, u, S, V):
    intrinsics.dot_eights(features, first, n, w, S[0])
    simd.plain_dot_eights(features, first, n, w, S[1])
    intrinsics.dot_eights_twice(features, first, n, w, u, S[2], V[0])
    simd.plain_dot_eights_twice(features, first, n, w, u, S[3], V[1])


@fast
@pytest.mark.parametrize("columns", [8, 11, 14, 16])
def test_products_are_the_same_bits(columns):
    rng = np.random.default_rng(columns)
    features = rng.standard_normal((40, columns)).astype(np.float32)
    features[5] *= 1e20  # sums that round differently in another order
    w, u = rng.standard_normal(simd.PADDED), rng.standard_normal(simd.PADDED)
    S, V = np.full((4, 32, 1), np.nan), np.full((2, 32, 1), np.nan)
    both_products(features, 3, 32, w, u, S, V)
    for other in S[1:]:
        np.testing.assert_array_equal(other, S[0])
    np.testing.assert_array_equal(V[1], V[0])
    g = features[3:35, -8:].astype(float)
    literal = features[3:35, :8].astype(float) @ w[:8] + g @ w[8:]
    np.testing.assert_allclose(S[0][:, 0], literal, rtol=1e-6)


@allocating_kernel
def both_kinds_of_lanes(x, y, number, out):
    """x + y, x y, a number in every lane and x's sum, from the second place of each; fast and plain."""
    a, b = intrinsics.load(x, 1), intrinsics.load(y, 1)
    intrinsics.store(out[0], 1, intrinsics.add(a, b))
    intrinsics.store(out[1], 1, intrinsics.times(a, b))
    intrinsics.store(out[2], 1, intrinsics.fill(number))
    out[3, 1] = intrinsics.sum_lanes(a)
    c, d = simd.plain_load(x, 1), simd.plain_load(y, 1)
    simd.plain_store(out[4], 1, simd.plain_add(c, d))
    simd.plain_store(out[5], 1, simd.plain_times(c, d))
    simd.plain_store(out[6], 1, simd.plain_fill(number))
    out[7, 1] = simd.plain_sum_lanes(c)


@fast
def test_eight_numbers_as_one_are_the_same_bits_as_eight():
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal((3, 4)).astype(np.float32) * 10.0 ** rng.integers(-3, 4, (3, 4)) for _ in range(2))
    x, y = x.astype(np.float32), y.astype(np.float32)
    out = np.full((8, 10), 7, np.float32)
    both_kinds_of_lanes(x, y, np.float32(0.3), out)
    np.testing.assert_array_equal(out[:4], out[4:])
    a, b = x.ravel()[1:9], y.ravel()[1:9]
    for row, wanted in zip(out, (a + b, a * b, np.full(8, np.float32(0.3))), strict=False):
        np.testing.assert_array_equal(row, [7, *wanted, 7])
    assert out[3, 1] == pytest.approx(a.astype(float).sum(), rel=1e-5)


@allocating_kernel
def both_leaders(S, n, value, place):
    intrinsics.lane_leaders(S, n, value[0], place[0])
    simd.plain_lane_leaders(S, n, value[1], place[1])


@fast
def test_leaders_are_the_same_with_ties_and_nan():
    S = np.random.default_rng(0).integers(0, 5, (64, 1)).astype(float)
    S[[3, 20], 0] = np.nan
    for n in (0, 8, 64):
        value, place = np.zeros((2, 8)), np.zeros((2, 8), np.int64)
        both_leaders(S, n, value, place)
        np.testing.assert_array_equal(value[0], value[1])
        np.testing.assert_array_equal(place[0], place[1])


RUN = """
import hashlib
from sparsezo import Learner, Settings, TextClassification
from sparsezo.kernels import jit, simd
from sparsezo.tasks.text.synthetic import generate_text
task, train = TextClassification.fit(generate_text(60, 3).documents())
learner = Learner(task.problem(train), Settings(h=0.1, mu=1.0, seed=4))
for _ in range(100):  # ask and tell: a third of what the whole loop takes to compile
    learner.tell(learner.ask(), (0.25, 0.75))
print(simd.FAST, "_nrt" in jit.OPTIONS, hashlib.sha256(learner.weights().tobytes()).hexdigest())
"""


def test_plain_kernels_can_be_asked_for_and_learn_the_same_weights():
    words = []
    for plain in ("", "1"):
        env = {**os.environ, "SPARSEZO_PLAIN_KERNELS": plain}
        done = subprocess.run([sys.executable, "-c", RUN], env=env, capture_output=True, text=True, check=True)
        words.append(done.stdout.split())
    (_, _, weights), (is_fast, private, plain_weights) = words
    assert (is_fast, private) == ("False", "False")
    assert plain_weights == weights


def test_where_the_fast_forms_cannot_be_compiled_one_warning_says_so(monkeypatch):
    def refuse(function):
        raise TypeError("typed pointers have gone")

    monkeypatch.setattr(jit, "PLAIN", False)
    monkeypatch.setattr(simd, "standalone_kernel", refuse)
    with pytest.warns(UserWarning, match=r"cannot be compiled with Numba .* \(TypeError\); plain ones") as said:
        assert simd._fast() is False
    assert len(said) == 1
    monkeypatch.setattr(jit, "PLAIN", True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert simd._fast() is False  # asked for: nothing to warn of


def test_numba_has_a_ceiling_that_was_tried():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (wanted,) = (Requirement(each) for each in project["dependencies"] if each.startswith("numba"))
    assert wanted.specifier.contains(numba.__version__)
    assert not wanted.specifier.contains("0.99")


def test_the_loops_cache_knows_every_file_that_is_compiled_into_it(tmp_path):
    sources = {path.relative_to(Path(jit.__file__).parent.parent).as_posix() for path in jit._sources()}
    assert {
        "kernels/loop.py",
        "kernels/inputs/sparse.py",
        "tasks/chunking/kernels/task.py",
        "tasks/chunking/kernels/chains.py",
    } <= sources
    assert not any("svmlight" in name or "bleu" in name for name in sources)
    one = tmp_path / "kernel.py"
    one.write_text("a")
    before = jit._fingerprint([one])
    one.write_text("b")
    assert jit._fingerprint([one]) != before
    assert hashlib.blake2b(digest_size=10).digest_size * 2 == len(before)
