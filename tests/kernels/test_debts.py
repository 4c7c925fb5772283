"""What ALL owes to sleeping rows, sqrt(Q - Q_row) N(0, 1) (DESIGN 2.2): many rows pooled to a few strong checks."""

from __future__ import annotations

import kernel_calls
import literal
import numpy as np
import pytest
from scipy import stats

from sparsezo.kernels import codes, loop, random
from sparsezo.kernels.lazy import settle_all


def assert_standard_normal(x):
    """Mean, variance, fourth moment (6 standard errors each: 2e-9) and the distribution as a whole."""
    n = x.size
    assert n > 40_000  # a variance 5% too large is then 7 standard errors away
    for power, mean, variance in [(1, 0, 1), (2, 1, 2), (4, 3, 96)]:
        assert abs((x**power).mean() - mean) < 6 * np.sqrt(variance / n)
    assert stats.kstest(x, "norm").pvalue > 1e-7


@pytest.mark.parametrize("task", ["text", "chunking"])
def test_debts_paid_on_a_visit_are_standard_normals(task):
    problem = literal.text(4) if task == "text" else literal.chunking(2)
    rng = np.random.default_rng(1)
    paid = []
    U = problem.room().U
    for time in range(6000 if task == "text" else 2000):
        memory = literal.some_memory(rng, problem, lazy=True)
        x, Q = time % problem.N, memory.sums[loop.Q_TOTAL]
        key, count = random.stream_key(time // 50, random.DEBT), time % 50
        cols, before, owed = problem.cols[x], memory.W.copy(), Q - memory.Q_row
        kernel_calls.fold(problem.inputs, x, key, count, Q, memory.Q_row, U, memory.W)
        asleep = [col for col in cols if owed[col] > 0.05]
        paid.append(((memory.W - before)[asleep] / np.sqrt(owed[asleep])[:, None]).ravel())
        untouched = np.setdiff1d(np.arange(problem.n_cols), cols)
        np.testing.assert_array_equal(memory.W[untouched], before[untouched])
    assert_standard_normal(np.concatenate(paid).astype(float))


def test_debts_of_rows_that_never_wake_are_standard_normals():
    """preference moves by h / mu or not at all, so Q is known from the number of moves alone."""
    problem = literal.text(4)
    rng = np.random.default_rng(2)
    paid, rows = [], 60
    for _ in range(300):
        law = literal.some_law(rng, codes.PREFERENCE, codes.ALL)
        memory = literal.some_memory(rng, problem, lazy=True)
        memory = memory._replace(W=rng.normal(0, 0.6, (rows, 4)).astype(np.float32), Q_row=np.zeros(rows))
        memory.counts[:] = 0
        memory.sums[:] = 0
        before = memory.W.copy()
        assert loop.run(problem.inputs, problem.task, problem.gold, law, problem.N, 80, 2**62, memory, problem.room())
        moves = memory.counts[loop.UPDATES]
        np.testing.assert_array_equal(memory.W[problem.n_cols :], before[problem.n_cols :])
        if moves == 0:
            continue
        folds = memory.counts[loop.SETTLEMENTS]
        U = np.empty((7, 4), np.float32)
        settle_all(law.keys[random.DEBT], folds, memory.sums[loop.Q_TOTAL], memory.Q_row, U, memory.W)
        owed = moves * (law.h / law.mu) ** 2
        paid.append((memory.W - before)[problem.n_cols :].ravel() / np.sqrt(owed))
    assert_standard_normal(np.concatenate(paid).astype(float))


def test_no_two_folds_of_a_run_draw_the_same_numbers():
    """Every fold has a number of its own, also across visits and folding everything."""
    problem = literal.text(4)
    rng = np.random.default_rng(3)
    law = literal.some_law(rng, codes.PREFERENCE, codes.ALL)
    U, drawn = problem.room().U, []
    count = 5
    for x in (0, 3, 4, 6, 0):
        memory = literal.some_memory(rng, problem, lazy=True)
        memory.Q_row[:] = 0
        memory.W[:] = 0
        used = count
        count = kernel_calls.fold(problem.inputs, x, law.keys[random.DEBT], count, 1.0, memory.Q_row, U, memory.W)
        assert count == used + 1
        drawn.append(memory.W[problem.cols[x]].ravel())
    memory.Q_row[:] = 0
    memory.W[:] = 0
    last = settle_all(law.keys[random.DEBT], count, 1.0, memory.Q_row, np.empty((5, 4), np.float32), memory.W)
    assert last == count + 4  # 16 rows, five at a time
    numbers = np.concatenate([*drawn, memory.W.ravel()])
    assert len(np.unique(numbers)) == numbers.size
