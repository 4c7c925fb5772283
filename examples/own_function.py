"""Lower a function without a gradient: 1 - F1 of a rare class, by the weights of a linear model. No step to choose.

python examples/own_function.py
"""

import numpy as np

from sparsezo import minimize

rng = np.random.default_rng(0)
X = rng.standard_normal((500, 20))
rare = X @ rng.standard_normal(20) > 6  # about one in eleven


def F(w: dict[str, np.ndarray]) -> float:
    said = X @ w["weights"] + w["bias"] > 0
    return 1 - 2 * float((said & rare).sum()) / float(said.sum() + rare.sum())


result = minimize(F, {"weights": np.zeros(20), "bias": 0.1}, budget=3_000)
print(f"1 - F1 is {result.fun:.3f} after {result.nfev:,} evaluations: {result.message}")
