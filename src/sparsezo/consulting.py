"""Learning by asking a scorer: ask and tell, one after the other, with the words that a person would be shown.

    with open_scorer("python metric.py") as scorer:
        consult(learner, Answers(task, train, scorer, learner.settings.rule), steps=1000)

The same as ``Learner.run`` with gold, bit for bit, where the scorer says what gold would. A question that gets no
answer is taken back: what has been learned is whole, and the question is the next one again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.learner import NO_END, Learner
from sparsezo.proposals import Proposal, losses_of
from sparsezo.questions import WHICH, Question, answer_code
from sparsezo.rules import RULES
from sparsezo.scorers import Scorer, ScorerError, read_reply
from sparsezo.tasks.base import Task
from sparsezo.tasks.registry import kind

_OUTPUTS = {"first": "candidate", "second": "incumbent", "tie": "tie"}  # as scorers name them


def consult(learner: Learner, answer: Callable[[Any], Any], steps: int, answers: int | None = None) -> None:
    """``steps`` steps at most; ``answers``: the end is when so many have been given in all, also before.

    ``answer`` gives what ``tell`` takes, or raises.
    """
    stop, end = learner.step + steps, NO_END if answers is None else answers
    while learner.step < stop and learner.answers < end:
        asked = learner.ask(within=stop - learner.step)
        if asked is None:
            continue
        try:
            feedback = answer(asked)
        except BaseException:
            learner.unask(asked)
            raise
        learner.tell(asked, feedback)


class Answers:
    """A scorer's answers to a learner's questions about the inputs of ``data``."""

    def __init__(self, task: Task, data: Any, scorer: Scorer, rule: str) -> None:
        self._task, self._data, self._scorer, self._rule = task, data, scorer, rule
        self.pause: Callable[[], None] = lambda: None  # called now and then while an answer is waited for

    def __call__(self, asked: Proposal | Question) -> Any:
        said = self._scorer(self.request(asked), self.pause)
        try:
            return feedback_of(self._rule, asked, said)
        except SparsezoError as error:
            raise ScorerError(f"scorer '{self._scorer.text}', step {asked.step:,}: {error}") from None

    def request(self, asked: Proposal | Question) -> dict[str, Any]:
        """What a scorer is told."""
        of_question = tuple(asked.choices) if isinstance(asked, Question) else ()
        choices = tuple(_OUTPUTS) if RULES[self._rule].chooses else of_question
        return {
            "task": self._task.name,
            "rule": self._rule,
            "step": asked.step,
            "input": asked.x,
            **kind(self._task.name).shown(self._task, self._data, asked),
            "wanted": RULES[self._rule].feedback,
            **({"choices": list(choices)} if choices else {}),
        }


def feedback_of(rule: str, asked: Proposal | Question, said: Any) -> Any:
    """What ``tell`` takes, of what a scorer said; UsageError or SparsezoError where that is no answer."""
    value = said.tolist() if hasattr(said, "tolist") else said  # a function's NumPy numbers
    choices: Any = asked.choices if isinstance(asked, Question) else (*WHICH, *_OUTPUTS.values())
    if isinstance(value, str) and value not in choices:
        value = read_reply(value.encode("utf-8", "replace"))
    one = rule == "rate" if isinstance(asked, Question) else RULES[rule].incumbent is None
    if one and isinstance(value, tuple | list) and len(value) == 1:
        value = value[0]
    if isinstance(asked, Question):
        answer_code(asked, value)
        return value
    if isinstance(value, str):
        value = _OUTPUTS.get(value, value)
    losses_of(rule, value)
    return value


def check_rule(rule: str, criterion: str, feedback: str) -> None:
    """What cannot be learned from a scorer."""
    if rule == "supervised":
        raise UsageError(
            "rule supervised learns from correct outputs, which a `scorer` does not tell; use another rule"
        )
    if criterion != "map":
        raise UsageError("the annealed criterion needs the losses of all outputs; with a `scorer` use criterion map")
    if feedback != "exact":
        raise UsageError(f"`feedback` {feedback} simulates raters; with a `scorer` leave it out")
