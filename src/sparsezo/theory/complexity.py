"""all, active and score beside each other: Corollary 1, its sharper forms, and what holds for any loss in [0, 1]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparsezo.errors import UsageError
from sparsezo.theory.bounded import bounded_h, bounded_rate, bounded_steps, scaled_bound
from sparsezo.theory.checks import positive
from sparsezo.theory.lipschitz import sharp_iterations, step_moment, symmetric_moment
from sparsezo.theory.paper import h_star, iterations, mu_tilde

PERTURBS = ("all", "active", "score")


@dataclass(frozen=True)
class Row:
    perturb: str
    dimension: float  # n, n_bar or r_bar
    mu_tilde: float
    h_star: float  # for a run of N + 1 steps
    N: int  # steps k = 0 ... N reach epsilon, by the paper's bound
    N_two_point: int  # by E||s||^2 <= L0^2 E[r(x) (m(x) + 2)] and a sharper L1
    N_symmetric: int  # likewise, by E||s||^2 <= L0^2 (m + 2 r^(1/2))


@dataclass(frozen=True)
class Complexity:
    """Corollary 1 for all, active and score: what it takes until the average squared gradient norm is <= epsilon.

    ``moments``: E[r(x) (m(x) + 2)] of each, as ``step_moments`` has it; without, all inputs are taken to be alike.
    """

    n: float
    n_bar: float
    r_bar: float
    L0: float
    R: float
    alpha: float
    epsilon: float
    moments: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        positive(**{name: value for name, value in vars(self).items() if name != "moments"})
        _check_order(self.n, self.n_bar, self.r_bar)
        if self.moments is not None:
            if set(self.moments) != set(PERTURBS):
                raise UsageError(f"moments: give one for each of {', '.join(PERTURBS)}")
            positive(**self.moments)

    def row(self, perturb: str) -> Row:
        dimensions = {"all": self.n, "active": self.n_bar, "score": self.r_bar}
        if perturb not in dimensions:
            raise UsageError(f"perturb {perturb}: choose from {', '.join(dimensions)}")
        m, r = dimensions[perturb], self.r_bar
        N = iterations(self.epsilon, self.alpha, self.R, m, self.L0)
        moment = step_moment(m, r) if self.moments is None else self.moments[perturb]
        sharp = [
            sharp_iterations(self.epsilon, self.alpha, self.R, self.L0, r, each)
            for each in (moment, symmetric_moment(m, r))
        ]
        h = h_star(self.alpha, self.R, m, self.L0, N)
        return Row(perturb, m, mu_tilde(self.alpha, m, self.L0), h, N, *sharp)

    def rows(self) -> list[Row]:
        return [self.row(perturb) for perturb in PERTURBS]


@dataclass(frozen=True)
class BoundedRow:
    """Any loss in [0, 1], two-point and baseline; symmetric has twice the h, half the bound and a quarter of says."""

    perturb: str
    m: float  # the mean of n, n(x) or r(x)
    rate: float  # h / mu^2
    h: float  # at mu
    bound: float  # of mu^2 times the average squared gradient norm
    says: int  # N from which the bound is below what no gradient can exceed


def bounded_rows(n: float, n_bar: float, r_bar: float, mu: float, N: int) -> list[BoundedRow]:
    positive(n=n, n_bar=n_bar, r_bar=r_bar)
    _check_order(n, n_bar, r_bar)
    rows = []
    for perturb, m in zip(PERTURBS, (n, n_bar, r_bar), strict=True):
        rate = bounded_rate(m, N)
        rows.append(BoundedRow(perturb, m, rate, bounded_h(mu, m, N), scaled_bound(rate, m, N), bounded_steps(m)))
    return rows


def _check_order(n: float, n_bar: float, r_bar: float) -> None:
    if not r_bar <= n_bar <= n:
        raise UsageError(
            f"n {n:g}, n_bar {n_bar:g}, r_bar {r_bar:g}: must be r_bar <= n_bar <= n, "
            "for scores are made of active weights and these are some of all"
        )
