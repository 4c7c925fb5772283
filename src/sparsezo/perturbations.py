"""Laws of the direction u in w + mu u (DESIGN 2).

All three cost about what the active features cost:

all     u ~ N(0, I) on all n weights. Sleeping weights are owed their share and get it when they wake: lazily, and
        exactly in law (2.2).
active  u ~ N(0, I) on the weights active in the input, the paper's SPARSE (eq. sparse-gaussian). Drawn in score
        space; u itself only when the weights move (2.1).
score   the part of active's u that the loss can see, E[u given C u]: the same mean step, less variance (2.3).
"""

from __future__ import annotations

from dataclasses import dataclass

from sparsezo.kernels import codes


@dataclass(frozen=True)
class Perturbation:
    name: str
    code: int
    summary: str


PERTURBATIONS = {
    perturbation.name: perturbation
    for perturbation in (
        Perturbation("all", codes.ALL, "every weight, as in the paper's ALL"),
        Perturbation("active", codes.ACTIVE, "the weights active in the input, the paper's SPARSE"),
        Perturbation("score", codes.SCORE, "what the scores can see of active: same mean step, less variance"),
    )
}
