"""What holds for every task with its own defaults: ask and tell end where run ends, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from sparsezo.kernels import loop
from sparsezo.learner import Learner
from sparsezo.rules import PERTURBATIONS, RULES
from sparsezo.settings import Settings

TOLD = [
    (rule, perturb, step)
    for rule in RULES
    if rule != "supervised" and not RULES[rule].asks  # test_asking.py has the others
    for perturb in (PERTURBATIONS if RULES[rule].zeroth_order else [None])
    for step in ("constant", "adagrad")
    if (perturb, step) != ("all", "adagrad")
]
USUAL = {"text": (1.0, 1e-3, 1.0), "rerank": (0.01, 1e-5, 0.1)}  # mu; the least and the largest h


@pytest.mark.parametrize("name", USUAL)  # test_learner.py has chunking
@pytest.mark.parametrize(("rule", "perturb", "step"), TOLD)
def test_ask_and_tell_is_run(small_tasks, name, rule, perturb, step):
    task, data = small_tasks[name]
    problem, gold = task.problem(data), task.gold(data)
    h, mu = task.defaults(rule, step, perturb)
    usual_mu, least, most = USUAL[name]
    assert mu == usual_mu
    assert h == "auto" or least <= h <= most
    settings = Settings(rule, perturb, h, mu if perturb else None, step, seed=4)
    run, told = Learner(problem, settings), Learner(problem, settings)
    run.run(gold, answers=60)  # nobody is asked about two equal outputs
    for _ in range(60):
        proposal = told.ask()
        outputs = [output for output in (proposal.candidate, proposal.incumbent) if output is not None]
        losses = [loop.loss(gold, problem.task, proposal.x, output) for output in outputs]
        told.tell(proposal, tuple(losses) if len(losses) == 2 else losses[0])
    assert run.updates == told.updates > 0
    assert run.step == told.step
    np.testing.assert_array_equal(run.weights(), told.weights())
    np.testing.assert_array_equal(run.state.q, told.state.q)
    assert np.isfinite(run.weights()).all()
