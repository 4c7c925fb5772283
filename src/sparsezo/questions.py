"""Questions that a person can answer, and what counts as an answer (rules part, label, pair and rate; docs/answers.md).

question = learner.ask()
question.choices                                # ('yes', 'no'): part; names of labels; first, second, tie; () for rate
question.as_json()                              # and Question.from_json: for people who answer tomorrow
learner.tell(question, "yes")
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError, quoted, shown
from sparsezo.kernels.codes import FIRST, NO, NO_SPAN, SECOND, SPAN_BASE, TIE, YES
from sparsezo.rules import RULES

Answers = Mapping[str, int]  # name -> its number in compiled code; empty: a number from 0 to 1
Questions = Mapping[tuple[str, str], Answers]  # what a task offers, by (rule, what a question is about)

YES_NO: Answers = {"yes": YES, "no": NO}
WHICH: Answers = {"first": FIRST, "second": SECOND, "tie": TIE}
A_LOSS: Answers = {}

_MOST_NAMES = 8  # of labels in a message
_NUMBERS = 4  # that compiled code knows a question by


@dataclass(frozen=True, eq=False)
class Question:
    """What is shown in words is the task's to say: ``tasks.*.show``."""

    owner: str  # the id of the learner that asks
    step: int
    x: int  # the input's number
    kind: str  # the rule: part, label, span, pair or rate
    about: str  # token or chunk
    numbers: tuple[int, ...]  # part, label, span: first place, label shown, last place
    outputs: tuple[NDArray[np.int32], ...]  # pair: two, rate: one; none otherwise
    chance: float  # the probability with which it was chosen, once the input was looked at
    choices: tuple[str, ...]  # the answers' names; none for rate
    codes: tuple[int, ...]  # their numbers

    def as_json(self) -> dict[str, Any]:
        lists = {"numbers": list(self.numbers), "outputs": [each.tolist() for each in self.outputs]}
        return {**vars(self), **lists, "choices": list(self.choices), "codes": list(self.codes)}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Question:
        try:
            kind, chance = given["kind"], float(given["chance"])
            if kind not in RULES or not RULES[kind].asks or not 0 < chance <= 1:
                raise ValueError(f"kind {kind!r} or chance {chance!r}")
            return cls(
                str(given["owner"]),
                operator.index(given["step"]),
                operator.index(given["x"]),
                kind,
                str(given["about"]),
                tuple(operator.index(each) for each in given["numbers"]),
                tuple(_output(each) for each in given["outputs"]),
                chance,
                tuple(str(each) for each in given["choices"]),
                tuple(operator.index(each) for each in given["codes"]),
            ).frozen()
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise UsageError(f"not a question: {error!r}") from None

    def frozen(self) -> Question:
        """Its outputs read-only: what was asked stays what was asked."""
        for output in self.outputs:
            output.flags.writeable = False
        return self

    def offering(self, answers: Answers) -> Question:
        """With these to choose from."""
        return replace(self, choices=tuple(answers), codes=tuple(answers.values()))

    def same(self, other: object) -> bool:
        """Whether both ask the same."""
        return isinstance(other, Question) and self.as_json() == {**other.as_json(), "owner": self.owner}


def _output(given: Any) -> NDArray[np.int32]:
    row = np.array([operator.index(each) for each in given], np.int64)
    if row.size and not 0 <= row.min() <= row.max() < 2**31:
        raise ValueError(f"{given!r} is no output")
    return row.astype(np.int32)


def answer_code(question: Question, answer: object) -> float:
    """The number of an answer; UsageError where it is none."""
    read = {"rate": lambda: _loss(answer), "span": lambda: _span(question, answer)}
    code = read.get(question.kind, lambda: _choice(question, answer))()
    if code is None:
        raise UsageError(f"answer {shown(answer, repr)}: a question of kind {question.kind} takes {_wanted(question)}")
    return code


def answer_name(question: Question, code: float) -> Any:
    """The other way round, as logs have it: a span is {"first": 3, "last": 4, "label": "LOC"}, or the last choice."""
    if question.kind == "rate":
        return code
    if question.kind != "span":
        return question.choices[question.codes.index(int(code))]
    if code == NO_SPAN:
        return question.choices[-1]
    first, last, tag = span_of(code)
    return {"first": first, "last": last, "label": question.choices[question.codes.index(tag)]}


def span_code(first: int, last: int, tag: int) -> float:
    """The number that stands for a span: its first and last token, and the tag that begins it."""
    return float(1 + (first * SPAN_BASE + last) * SPAN_BASE + tag)


def span_of(code: float) -> tuple[int, int, int]:
    """The other way round."""
    ends, tag = divmod(int(code) - 1, SPAN_BASE)
    return ends // SPAN_BASE, ends % SPAN_BASE, tag


def check_offered(offered: Questions, rule: str, about: str) -> None:
    """Whether a task asks such questions."""
    if (rule, about) in offered:
        return
    rules = list(dict.fromkeys(each for each, _ in offered))
    if rule in rules:
        raise UsageError(f"`about` {about}: there are no chunks here to ask about; use `about` token")
    here = f"it asks {', '.join(rules)}" if rules else "it asks no questions"
    made = "; was it made by task.problem(data, asks=True)?" if rule in ("pair", "rate") else ""
    raise UsageError(f"rule {rule} is not offered by this problem; {here}{made}")


def told_loss(question: Question, code: float) -> float:
    """Of what was shown, by the answer; of two outputs a worse one has lost."""
    if question.kind == "rate":
        return code
    first, tag, last, _ = question.numbers
    right = {"part": YES, "label": tag, "span": span_code(first, last, tag)}.get(question.kind)
    return float(code == SECOND if right is None else code != right)


def _choice(question: Question, answer: object) -> float | None:
    if isinstance(answer, bool | np.bool_):
        return float(YES if answer else NO) if question.kind == "part" else None
    if isinstance(answer, str):
        known = dict(zip(question.choices, question.codes, strict=True))
        return float(known[answer]) if answer in known else None
    if question.kind != "label":
        return None
    try:
        number = operator.index(answer)  # type: ignore[arg-type]
    except TypeError:
        return None
    return float(number) if number in question.codes else None


def _span(question: Question, answer: object) -> float | None:
    """yes, the name of a type (the ends are as shown), the last choice (nothing is there), or a span of its own."""
    first, tag, last, _ = question.numbers
    known = dict(zip(question.choices, question.codes, strict=True))
    nothing = question.choices[-1] if question.choices else ""
    if isinstance(answer, Mapping):
        if set(answer) != {"first", "last", "label"}:
            return None
        ends, answer = (answer["first"], answer["last"]), answer["label"]
        if not all(type(end) is int for end in ends) or answer == nothing:
            return None
        first, last = ends
        if not (0 <= first <= last < SPAN_BASE and first <= question.numbers[2] and last >= question.numbers[0]):
            return None
    elif answer is True or answer == "yes":
        return span_code(first, last, tag)
    if not isinstance(answer, str) or answer not in known:
        return None
    return float(NO_SPAN) if answer == nothing else span_code(first, last, known[answer])


def _loss(answer: object) -> float | None:
    if isinstance(answer, bool | np.bool_) or not isinstance(answer, int | float | np.integer | np.floating):
        return None
    return float(answer) if 0 <= answer <= 1 else None  # nan is neither


def _wanted(question: Question) -> str:
    if question.kind == "rate":
        return "a loss, a number from 0 (right) to 1"
    if question.kind == "span":
        names = ", ".join(map(quoted, question.choices[:_MOST_NAMES]))
        return f"yes, one of {names}, or a span that touches the one shown: first, last (tokens) and label"
    if question.kind != "label":
        return " or ".join(question.choices)
    some = ", ".join(map(quoted, question.choices[:_MOST_NAMES]))
    return f"a label's name or number: {some}{', ...' if len(question.choices) > _MOST_NAMES else ''}"
