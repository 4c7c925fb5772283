"""The theory as formulas to compute with: what the paper proves, and what can be proved beside it (docs/theory.md).

    paper        Sec. 3 and its appendix: Lemma 2, Theorem 1, Corollary 1
    lipschitz    how long a step is where F is Lipschitz, two-point and symmetric, and what follows
    bounded      any F in [0, 1], as under MAP: no Lipschitz constant is needed; an h from it
    complexity   all, active and score beside each other
    dimensions   n_bar and r_bar of a data set
    measured     E||s||^2 on a data set, beside the bounds (imported by itself: it compiles)

Symbols are the paper's; f_mu is f smoothed by mu u, m the dimension of the direction: n for perturbation all, n_bar for
active, r_bar for score.

>>> iterations(epsilon=0.1, alpha=0.5, R=1.0, n_bar=10.0, L0=1.0)
1567999
>>> case = Complexity(n=10_000, n_bar=100, r_bar=10, L0=1.0, R=1.0, alpha=0.5, epsilon=0.1)
>>> [(row.perturb, row.N) for row in case.rows()]
[('all', 800640127999999), ('active', 865279999), ('score', 1567999)]
>>> round(bounded_h(mu=0.1, m=213, N=4_000_000), 9)
6.96e-07
"""

from __future__ import annotations

from sparsezo.theory.bounded import (
    LARGEST_GRADIENT,
    bounded_h,
    bounded_iterations,
    bounded_L1,
    bounded_moment,
    bounded_rate,
    bounded_steps,
    scaled_bound,
)
from sparsezo.theory.complexity import BoundedRow, Complexity, Row, bounded_rows
from sparsezo.theory.dimensions import Dimension, n_bar_of, step_moments
from sparsezo.theory.lipschitz import annealed_L0, sharp_iterations, sharp_L1, step_moment, symmetric_moment
from sparsezo.theory.paper import (
    L1,
    bound_at_h,
    bound_at_h_star,
    gradient_norm_bound,
    h_star,
    iterations,
    moment,
    moment_bound,
    mu_tilde,
)

__all__ = [
    "L1",
    "LARGEST_GRADIENT",
    "BoundedRow",
    "Complexity",
    "Dimension",
    "Row",
    "annealed_L0",
    "bound_at_h",
    "bound_at_h_star",
    "bounded_L1",
    "bounded_h",
    "bounded_iterations",
    "bounded_moment",
    "bounded_rate",
    "bounded_rows",
    "bounded_steps",
    "gradient_norm_bound",
    "h_star",
    "iterations",
    "moment",
    "moment_bound",
    "mu_tilde",
    "n_bar_of",
    "scaled_bound",
    "sharp_L1",
    "sharp_iterations",
    "step_moment",
    "step_moments",
    "symmetric_moment",
]
