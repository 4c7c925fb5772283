"""``h = "auto"``: how long a learner's steps are where nobody has said so (docs/steps.md).

Rules that perturb the weights measure a step by the perturbation. d is the difference that a rule moves by (F+ - F0, a
sign), rms(d) its root mean square over the steps so far that moved the weights, A the mean of n_bar(x) (active), of
r_bar(x) (score) or n (all). Constant steps are W += c u with

    c = k mu d / (rms(d) sqrt(A)),    so that a step has the length k mu in the mean, whatever the losses' scale;

Adagrad's have h = k mu and begin with c / h = d / (rms(d) sqrt(A / 8)): a first step is sqrt(8) k mu long, and the
steps of a weight fall as the root of the moves it has made once these are more than A / 8. From weights of 0 mu is a
unit of measurement: twice the mu gives twice the weights, and the same outputs.

Rules that do not perturb know the size of an input alone: Adagrad's steps have h = K / mean |x|_1, |x|_1 being the sum
of what a part of an output (a token, a document) reads, so that a first step changes its scores by at most K; constant
ones h = K / mean |x|^2, which does so by K D at the input itself. d is divided by rms(d) here, too; an answer has no d.

>>> from sparsezo.settings import Settings
>>> from sparsezo.tasks.chunking.synthetic import chunking_corpus
>>> from sparsezo.tasks.chunking.task import Chunking
>>> task, corpus = Chunking.fit(chunking_corpus(20, 1))
>>> h, unit = automatic(Settings("two-point", "score", h="auto", mu=0.1), task.problem(corpus))
"""

from __future__ import annotations

import math

from sparsezo.rules import RULES
from sparsezo.settings import AUTO_ADAGRAD, Settings
from sparsezo.tasks.base import Problem

_LENGTH = {"constant": 0.6, "adagrad": AUTO_ADAGRAD}  # k: of a step, in perturbations
_CHOSEN = 1.2  # k of constant steps by comparison, which moves only where the candidate was better
_DAMPING = {"constant": 1.0, "adagrad": 1 / 8}  # of A
_ANSWER = 8.0  # K of rules that learn from answers
_ANSWER_ABOUT_MANY = {"span": 3.0, "review": 3.0}  # ... where one speaks of several parts, and moves them all
_REACH = {  # K of the others: of Adagrad's steps, of constant ones
    "first-order": (2.0, 0.2),
    "pairwise": (0.5, 0.05),
    "cross-entropy": (0.5, 0.03),
    "supervised": (2.0, 0.2),
}


def from_size(size: float, rule: str = "part") -> float:
    """h of Adagrad's steps from answers, where the inputs are of this size, mean |x|_1.

    >>> from_size(40.0), from_size(40.0, "review")
    (0.2, 0.075)
    """
    return _over(_ANSWER_ABOUT_MANY.get(rule, _ANSWER), size)


def _over(reach: float, size: float) -> float:
    return reach / size if size > 0 else 1.0


def automatic(settings: Settings, problem: Problem) -> tuple[float, float]:
    """(h, unit) of ``StepParams``, for a learner on this problem."""
    rule = RULES[settings.rule]
    if rule.zeroth_order:
        dims = {"score": problem.n_score, "active": problem.n_active}.get(settings.perturb or "")
        A = float(dims.mean()) if dims is not None else float(problem.n_features * problem.n_labels)
        chosen = settings.rule == "comparison" and settings.step == "constant"
        k = _CHOSEN if chosen else _LENGTH[settings.step]
        return k * float(settings.mu or 0), 1 / math.sqrt(_DAMPING[settings.step] * max(A, 1.0))
    absolute, square = problem.sizes
    if rule.asks:
        return from_size(absolute, rule.name), 0.0
    K, K_constant = _REACH[settings.rule]
    return (_over(K, absolute) if settings.step == "adagrad" else _over(K_constant, square)), 1.0
