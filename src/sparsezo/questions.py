"""What a learner asks, and what it takes for an answer: losses and preferences of proposals, answers to questions.

    proposal = learner.ask()                    # Learner, Optimizer: one or two outputs, or weights
    learner.tell(proposal, "candidate")         # losses_of: (0.0, 1.0)
    question = learner.ask()                    # QueryLearner (docs/answers.md)
    question.choices                            # ('yes', 'no'): part; names of labels; first, second, tie; () for rate
    learner.tell(question, "yes")

Both go to JSON and back (``as_json``, ``from_json``), for people who answer tomorrow.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import SparsezoError, UsageError, quoted, shown
from sparsezo.kernels.codes import (
    CANDIDATES,
    CORRECTED,
    FIRST,
    NO,
    NO_SPAN,
    NOT_SAID,
    SECOND,
    SPAN_BASE,
    STANDING,
    TIE,
    YES,
)
from sparsezo.options import Json as Json
from sparsezo.rules import RULES
from sparsezo.validation import Array

Feedback = float | tuple[float, float] | list[float] | NDArray[np.float64] | bool | str  # what is told of a proposal
Answer = str | bool | float | Mapping[str, object]  # what is told of a question
Answers = Mapping[str, int]  # name -> its number in compiled code; empty: a number from 0 to 1
Questions = Mapping[tuple[str, str], Answers]  # what a task offers, by (rule, what a question is about)

YES_NO: Answers = {"yes": YES, "no": NO}
WHICH: Answers = {"first": FIRST, "second": SECOND, "tie": TIE}
PLACES: Answers = {str(place + 1): place for place in range(CANDIDATES)}
A_LOSS: Answers = {}
_MOST_NAMES = 8  # of labels in a message
_MALFORMED = (KeyError, TypeError, ValueError, OverflowError)


@dataclass(frozen=True, eq=False)
class Proposal:
    """Which of two is better, or how good is the one? ``candidate`` and ``incumbent`` are outputs of a task's input
    (``Learner``), or values of the weights ``x`` (``Optimizer``)."""

    owner: str  # the id of the optimizer or learner that asks
    step: int  # with x it rebuilds the perturbation
    x: Any  # what it is about: an input's number (Learner), or the numbers of the active weights (Optimizer)
    candidate: Array  # Learner: the output decoded at w + mu u, first-order rules: sampled; Optimizer: w + mu u
    incumbent: Array | None  # at w (symmetric: w - mu u; pairwise: -w); None where the rule compares nothing
    log_chance: float | None = None  # first-order rules: log of the probability with which the outputs were drawn
    others: tuple[Array, ...] = ()  # at the points of somebody's own rule from the third on

    def as_json(self) -> Json:
        """As JSON has it: numbers, texts and lists."""
        lists = {name: np.asarray(getattr(self, name)).tolist() for name in ("x", "candidate", "incumbent")}
        found = {**vars(self), **lists, "others": [each.tolist() for each in self.others]}
        return {name: value for name, value in found.items() if name not in ("log_chance", "others") or value}

    @classmethod
    def from_json(cls, given: Json) -> Proposal:
        """The proposal that ``as_json`` made ``given`` of; UsageError where it is none."""
        try:
            x, candidate, incumbent = given["x"], given["candidate"], given["incumbent"]
            chance = given.get("log_chance")
            return cls(
                str(given["owner"]),
                operator.index(given["step"]),
                operator.index(x) if not isinstance(x, list) else _row(x).astype(np.int64, casting="safe"),
                _row(candidate),
                None if incumbent is None else _row(incumbent),
                None if chance is None else float(chance),
                tuple(_row(each) for each in given.get("others", ())),
            )
        except _MALFORMED as error:
            raise UsageError(f"not a proposal: {error!r}") from None

    def frozen(self) -> Proposal:
        """Its arrays read-only: what was asked stays what was asked."""
        for part in (self.x, self.candidate, self.incumbent, *self.others):
            if isinstance(part, np.ndarray):
                part.flags.writeable = False
        return self

    @property
    def outputs(self) -> tuple[Array, ...]:
        """What is shown: the candidate and, where the rule compares, the incumbent, and any others."""
        return (self.candidate,) if self.incumbent is None else (self.candidate, self.incumbent, *self.others)

    def same(self, other: object) -> bool:
        """Whether both ask the same."""
        if not isinstance(other, Proposal):
            return False
        mine, its = ((each.x, each.candidate, each.incumbent, *each.others) for each in (self, other))
        alike = self.step == other.step and len(mine) == len(its)
        return alike and all(np.array_equal(a, b) for a, b in zip(mine, its, strict=True))


def _row(given: list[float]) -> Array:
    row = np.array(given)
    if row.ndim != 1 or (row.size and row.dtype.kind not in "if"):
        raise ValueError(f"{shown(given)} is no row of numbers")
    return row if row.size else row.astype(np.int64)


@dataclass(frozen=True)
class Info:
    """What a step did, for logs; nothing of it is needed to go on."""

    step: int
    c: float
    average_loss: float


_PREFERRED = {"candidate": (0.0, 1.0), "incumbent": (1.0, 0.0), "tie": (0.0, 0.0)}


def losses_of(rule: str, feedback: object) -> tuple[float, ...]:
    """(F_plus, F_incumbent) of an answer, and any further losses that somebody's own rule asks for; a bare preference
    is the loss 0 of the better one and 1 of the other.

    >>> losses_of("preference", "candidate"), losses_of("two-point", (0.25, 0.5)), losses_of("baseline", 0.25)
    ((0.0, 1.0), (0.25, 0.5), (0.25, 0.0))
    """
    pair, wanted = RULES[rule].incumbent is not None, RULES[rule].losses
    losses: tuple[float, ...] | None = None
    if isinstance(feedback, np.ndarray) and feedback.ndim == 1 and feedback.dtype.kind in "fiu":
        feedback = feedback.tolist()
    if isinstance(feedback, str | bool | np.bool_):
        word = feedback if isinstance(feedback, str) else ("candidate" if feedback else "incumbent")
        losses = _PREFERRED.get(word) if RULES[rule].chooses else None
    elif isinstance(feedback, tuple | list):
        losses = _numbers(feedback) if pair and len(feedback) == wanted else None
    elif not pair:
        losses = _numbers((feedback, 0.0))
    if losses is None:
        raise UsageError(f"feedback {shown(feedback, repr)}: rule {rule} takes {RULES[rule].feedback}")
    if not all(math.isfinite(loss) for loss in losses):
        raise SparsezoError(f"feedback {shown(feedback, repr)}: a loss must be finite")
    return losses


def _numbers(given: Iterable[object]) -> tuple[float, ...] | None:
    try:
        return tuple(map(_number, given))
    except (TypeError, ValueError, OverflowError):
        return None


def _number(given: Any) -> float:
    """A real number of anybody's, Python's or NumPy's; text and arrays are none, though float() would take them."""
    if isinstance(given, float):
        return given
    if not hasattr(given, "__float__") or getattr(given, "ndim", 0) != 0 or np.iscomplexobj(given):
        raise TypeError
    return float(given)


def as_json(feedback: Feedback) -> Feedback:
    """Feedback as JSON has it: NumPy's numbers and truth values as Python's."""
    if isinstance(feedback, tuple | list | np.ndarray) and np.ndim(feedback) == 1:
        return [float(each) for each in feedback]
    if isinstance(feedback, bool | np.bool_):
        return bool(feedback)
    return str(feedback) if isinstance(feedback, str) else float(feedback)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Question:
    """A question that a person can answer; how it is put in words is the task's to say (``tasks.*.questions``)."""

    owner: str  # the id of the learner that asks
    step: int
    x: int  # the input's number
    kind: str  # the rule: part, label, span, review, pair, best or rate
    about: str  # token or chunk
    numbers: tuple[int, ...]  # part, label, span: first place, label shown, last; best: second, the model's own choice
    outputs: tuple[NDArray[np.int32], ...]  # of pair, best, rate; review: one, and what it is about (codes.STANDING)
    chance: float  # the probability with which it was chosen, once the input was looked at
    choices: tuple[str, ...]  # the answers' names; none for rate
    codes: tuple[int, ...]  # their numbers

    def as_json(self) -> Json:
        """As JSON has it: numbers, texts and lists."""
        lists = {"numbers": list(self.numbers), "outputs": [each.tolist() for each in self.outputs]}
        return {**vars(self), **lists, "choices": list(self.choices), "codes": list(self.codes)}

    @classmethod
    def from_json(cls, given: Json) -> Question:
        """The question that ``as_json`` made ``given`` of; UsageError where it is none."""
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
        except _MALFORMED as error:
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


def _output(given: Iterable[SupportsIndex]) -> NDArray[np.int32]:
    row = np.array([operator.index(each) for each in given], np.int64)
    if row.size and not 0 <= row.min() <= row.max() < 2**31:
        raise ValueError(f"{given!r} is no output")
    return row.astype(np.int32)


def answer_code(question: Question, answer: object) -> float:
    """The number of an answer; UsageError where it is none.

    >>> question = Question("me", 0, 7, "part", "token", (3, 1, 3, 0), (), 0.5, ("yes", "no"), (1, 0))
    >>> answer_code(question, "yes"), answer_code(question, False)
    (1.0, 0.0)
    """
    if question.kind == "review":
        return float(NO if CORRECTED in reviewed(question, answer)[1] else YES)
    if question.kind == "rate":
        loss = isinstance(answer, int | float | np.integer | np.floating) and not isinstance(answer, bool)
        code = float(answer) if loss and 0 <= answer <= 1 else None  # type: ignore[arg-type, operator]
    else:
        code = _span(question, answer) if question.kind == "span" else _choice(question, answer)
    if code is None:
        raise UsageError(f"answer {shown(answer, repr)}: a question of kind {question.kind} takes {_wanted(question)}")
    return code


def answer_name(question: Question, code: float) -> Answer:
    """The answer that a number stands for, as logs have it; a span is {"first": 3, "last": 4, "label": "LOC"}."""
    if question.kind == "rate":
        return code
    if question.kind == "review":
        output, how = question.outputs
        return {"output": output.tolist(), "corrected": np.flatnonzero(how == CORRECTED).tolist()}
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


def reviewed(question: Question, answer: object) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(output, what is said of each of its parts) of an answer to a review; UsageError where it is none.

    The answer: "right"; or the output as it should be, labels by name or number, whose differences were set by hand; or
    {"output": [...], "corrected": [3, 4]} where the model itself has changed others when these were set, with
    "corrections" where it is known how many it took to set them.
    """
    suggested, asked = question.outputs
    output, corrected, known = answer, None, dict(zip(question.choices, question.codes, strict=True))
    if isinstance(answer, Mapping) and {"output", "corrected"} <= set(answer) <= {"output", "corrected", "corrections"}:
        output, corrected = answer["output"], answer["corrected"]
    try:
        if isinstance(answer, Mapping) and operator.index(answer.get("corrections", 0)) < 0:
            raise ValueError
        if output is True or output == "right":
            output = suggested
        labels = [known[each] if isinstance(each, str) else operator.index(each) for each in output]  # type: ignore[attr-defined]
        made = np.array(labels, np.int32)
        if len(labels) != suggested.size or not {*labels} <= {*known.values()}:
            raise ValueError
        by_hand = made != suggested
        if corrected is not None:
            by_hand = np.zeros(suggested.size, bool)
            by_hand[[operator.index(each) for each in corrected]] = True
    except (TypeError, ValueError, KeyError, IndexError, OverflowError):
        raise UsageError(
            f"answer {shown(answer, repr)}: a review takes right, or its {suggested.size} labels as they should be"
        ) from None
    return made, np.where(by_hand, CORRECTED, np.where(asked == NOT_SAID, NOT_SAID, STANDING)).astype(np.int32)


class Effort(NamedTuple):
    """What an answer has taken, beside reading the input."""

    looked: int  # parts that whoever answered was to look at
    corrections: int  # made by hand


def effort_of(question: Question, answer: Answer, code: float) -> Effort:
    """Of an answer, whose number is ``code``. Corrections of a review that does not say how many it took are counted by
    what it leaves: each span that was set, and each run of tokens of which it was said that they are in none."""
    if question.kind == "review":
        asked = question.outputs[1]
        output, how = reviewed(question, answer)
        if isinstance(answer, Mapping) and "corrections" in answer:
            made = operator.index(answer["corrections"])  # type: ignore[arg-type]
        else:
            by_hand = how == CORRECTED
            made = int(by_hand.sum() - (by_hand[1:] & by_hand[:-1] & _goes_on(question, output)).sum())
        return Effort(int((asked != NOT_SAID).sum()), made)
    first, tag, last, _ = question.numbers
    named = question.kind == "span" and code not in (NO_SPAN, span_code(first, last, tag))
    return Effort(1, int(named))


def _goes_on(question: Question, output: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which labels, from the second on, are of the same span as the one before, or like it of none."""
    names = dict(zip(question.codes, question.choices, strict=True))
    if not all(name == "O" or name.startswith(("B-", "I-")) for name in names.values()):
        return np.zeros(max(output.size - 1, 0), bool)
    shown = [names[code] for code in output.tolist()]
    return np.array([b.startswith("I-") or a == b == "O" for a, b in itertools.pairwise(shown)], bool)


def check_offered(offered: Questions, rule: str, about: str) -> None:
    """Whether a task asks such questions."""
    if (rule, about) in offered:
        return
    rules = list(dict.fromkeys(each for each, _ in offered))
    if rule in rules:
        raise UsageError(f"`about` {about}: there are no chunks here to ask about; use `about` token")
    here = f"it asks {', '.join(rules)}" if rules else "it asks no questions"
    made = "; was it made by task.problem(data, asks=True)?" if rule in ("pair", "best", "rate") else ""
    raise UsageError(f"rule {rule} is not offered by this problem; {here}{made}")


def told_loss(question: Question, code: float) -> float:
    """Of what was shown, by the answer; of two outputs a worse one has lost."""
    if question.kind == "rate":
        return code
    if question.kind == "review":
        return float(code != YES)
    first, tag, last, _ = question.numbers
    right = {"part": YES, "label": tag, "best": tag, "span": span_code(first, last, tag)}.get(question.kind)
    return float(code == SECOND if right is None else code != right)


def _choice(question: Question, answer: object) -> float | None:
    if isinstance(answer, bool | np.bool_):
        return float(YES if answer else NO) if question.kind == "part" else None
    if question.kind == "best" and isinstance(answer, int | np.integer):
        answer = str(answer)
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


def _wanted(question: Question) -> str:
    some = ", ".join(map(quoted, question.choices[:_MOST_NAMES]))
    if question.kind == "rate":
        return "a loss, a number from 0 (right) to 1"
    if question.kind == "span":
        return f"yes, one of {some}, or a span that touches the one shown: first, last (tokens) and label"
    if question.kind != "label":
        return " or ".join(question.choices)
    return f"a label's name or number: {some}{', ...' if len(question.choices) > _MOST_NAMES else ''}"
