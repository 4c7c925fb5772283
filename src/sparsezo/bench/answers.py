"""bench chunking, learning from answers: choosing a question and learning from its answer, from cold to well trained.

Of each question the shortest of some rounds counts, each from a copy of the same learner, in the processor's time: what
else the machine does is not in it. A model that is sure of most sentences looks at more of them for a question.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from rich.table import Table

from sparsezo.cli import show
from sparsezo.kernels import answering
from sparsezo.learner import Learner
from sparsezo.questions import answer_name
from sparsezo.settings import Settings
from sparsezo.tasks.base import Problem

_STAGES = (0, 5_000, 50_000)  # answers
_QUESTIONS = 500  # that are timed at each


def measure(problem: Problem, gold: Any, settings: Settings, rounds: int) -> dict[str, Any]:
    """problem: made for rules that ask."""
    learner, run_seconds, stages = Learner(problem, settings), 0.0, {}
    learner.run(gold, 0)  # compiles, the first time on a machine
    _timed(Learner(problem, settings), gold, 1)  # likewise
    for stage in _STAGES:
        show.note(f"{settings.rule}: learning from {stage:,} answers")
        began = time.thread_time()
        learner.run(gold, answers=stage)
        run_seconds += time.thread_time() - began
        raw = learner.to_bytes()
        copies = [Learner.from_bytes(raw, problem) for _ in range(rounds)]
        best = np.min([_timed(copy, gold, _QUESTIONS) for copy in copies], axis=0)
        looks = (copies[0].step - learner.step) / _QUESTIONS
        stages[str(stage)] = {"ms": 1e3 * best.mean(), "ms_worst": 1e3 * best.max(), "looks": looks}
    return {"settings": str(settings), "stages": stages, "answers": _STAGES[-1], "run_seconds": run_seconds}


def _timed(learner: Learner, gold: Any, questions: int) -> list[float]:
    """Seconds that asking and telling took, question by question."""
    took = []
    for _ in range(questions):
        began = time.thread_time()
        question = learner.ask()
        asked = time.thread_time() - began
        said = simulated(learner, gold, question)
        began = time.thread_time()
        learner.tell(question, said)
        took.append(asked + time.thread_time() - began)
    return took


def simulated(learner: Learner, gold: Any, question: Any) -> Any:
    """What somebody who knows says."""
    work, params = learner.workspace, learner.settings.step_params()
    work.q[:] = question.numbers
    for room, output in zip((work.y, work.incumbent), question.outputs, strict=False):
        room[: output.size] = output
    return answer_name(question, answering.truth(gold, learner.problem.task, params, question.x, work))


def table(fields: dict[str, Any]) -> Table:
    out = Table(
        title=f"a question and its answer: {fields['settings']}",
        caption=f"{fields['answers']:,} simulated answers in {fields['run_seconds']:.1f} s",
    )
    for column in ("after so many answers", "ms", "worst ms", "inputs looked at"):
        out.add_column(column, justify="right")
    for stage, row in fields["stages"].items():
        out.add_row(f"{int(stage):,}", f"{row['ms']:.3f}", f"{row['ms_worst']:.3f}", f"{row['looks']:.1f}")
    return out
