"""Off-policy evaluation: what people would say of a model's outputs, by a log of another system's (docs/logged.md).

    weights = matches / propensities        # 0 where the model would have shown something else
    ips(weights, rewards)                   # Estimate(value, low, high)
    snips(weights, rewards)                 # self-normalised (Swaminathan and Joachims 2015)
    doubly_robust(weights, rewards, of_shown, of_chosen)        # with predictions of the rewards (Dudik et al. 2011)
    effective_size(weights)                 # how many equally weighted rows would say as much

Rewards are from 0 to 1. Intervals are of 95%, by the scatter of the rows: they know nothing of propensities that are
wrong, which ``misfit`` can tell: weights are 1 in the mean, whatever the model.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError

Numbers = NDArray[np.float64]
Z = 1.959963984540054  # of 95%, both sides


class Estimate(NamedTuple):
    """An estimate with its interval of 95%."""

    value: float
    low: float
    high: float


def _checked(weights: Numbers, *others: Numbers) -> None:
    if not weights.size or any(each.shape != weights.shape for each in others):
        raise UsageError("an estimate is of one row or more, with a weight and a reward each")
    if not all(np.isfinite(each).all() for each in (weights, *others)) or (weights < 0).any():
        raise UsageError("weights and rewards must be finite, and no weight below 0")


def _of_mean(values: Numbers) -> Estimate:
    mean, spread = float(values.mean()), Z * standard_error(values)
    return Estimate(mean, mean - spread, mean + spread)


def standard_error(values: Numbers) -> float:
    """Of the mean of these."""
    return float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else math.inf


def ips(weights: Numbers, rewards: Numbers) -> Estimate:
    """Inverse propensity scores: unbiased, if propensities are right and whatever the model shows may be in the log.

    >>> ips(np.array([2.0, 0.0, 2.0, 0.0]), np.array([1.0, 1.0, 0.0, 0.0])).value
    0.5
    """
    _checked(weights, rewards)
    return _of_mean(weights * rewards)


def snips(weights: Numbers, rewards: Numbers) -> Estimate:
    """Self-normalised: a mean of rewards, so never outside of them, and the same if all weights are multiplied.

    The interval is Wilson's, of as many rows as have the variance of the ratio by its linearisation, so that it is not
    of width 0 where all rewards seen are alike.
    """
    _checked(weights, rewards)
    total = float(weights.sum())
    if total <= 0:
        return Estimate(math.nan, 0.0, 1.0)
    value = float((weights * rewards).sum() / total)
    variance = float(((weights * (rewards - value)) ** 2).sum()) / total**2
    n = effective_size(weights)
    if 0 < value < 1 and variance > 0:
        n = min(
            value * (1 - value) / variance, float(weights.size)
        )  # of rewards that hardly differ, no more than there are
    return wilson(value, n)


def wilson(share: float, n: float) -> Estimate:
    """A share of n rows, with Wilson's interval.

    >>> wilson(1.0, 10.0)
    Estimate(value=1.0, low=0.722..., high=1.0)
    """
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return Estimate(share, max(middle - half, 0.0), min(middle + half, 1.0))


def doubly_robust(weights: Numbers, rewards: Numbers, of_shown: Numbers, of_chosen: Numbers) -> Estimate:
    """As ``ips``, with predictions of the reward as control variates: of what was shown, and of what the model chooses.

    Unbiased where ``ips`` is, if no prediction has seen the reward of its own row; the better they are, the less it
    scatters.
    """
    _checked(weights, rewards, of_shown, of_chosen)
    return _of_mean(of_chosen + weights * (rewards - of_shown))


def predicted_rewards(rewards: Numbers, of_shown: Numbers, of_chosen: Numbers) -> tuple[Numbers, Numbers]:
    """(of what was shown, of what the model chooses): least squares on one number that is known of both, such as the
    model's own probability; each half of the rows by what the other half says."""
    shown, chosen = np.empty_like(rewards), np.empty_like(rewards)
    odd = np.arange(rewards.size) % 2 == 1
    for mine in (odd, ~odd):
        other = ~mine
        x = of_shown[other] - of_shown[other].mean() if other.any() else np.zeros(0)
        slope = float((x @ rewards[other]) / (x @ x)) if x @ x > 1e-12 else 0.0
        level = float(rewards[other].mean() - slope * of_shown[other].mean()) if other.any() else 0.5
        for made, known in ((shown, of_shown), (chosen, of_chosen)):
            made[mine] = np.clip(level + slope * known[mine], 0, 1)
    return shown, chosen


def effective_size(weights: Numbers) -> float:
    """(sum of weights)^2 / sum of their squares.

    >>> effective_size(np.array([1.0, 1.0, 0.0])), effective_size(np.array([1000.0, 1.0]))
    (2.0, 1.00...)
    """
    squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def misfit(weights: Numbers) -> float:
    """By how many standard errors the mean of the weights is not 1, which it is where propensities are right."""
    error = standard_error(weights)
    return (float(weights.mean()) - 1) / error if 0 < error < math.inf else 0.0
