"""A question as a page shows it, and an answer as the store has it.

    presentation = Presentation(contents, problem.questions)
    presentation.question(row)              # plain values: id, kind, text, choices, labels, names, shown, ...
    presentation.understood(row, "yes")     # ("part", "yes"): the kind that it was answered as, and the answer

Pairs are shown in random order: outputs are turned round here, and the answer is turned back, so nobody else needs to.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError
from sparsezo.kernels.codes import NOT_SAID
from sparsezo.questions import Answer, Answers, Questions, answer_code, answer_name, reviewed, told_loss
from sparsezo.serve.errors import Refused
from sparsezo.serve.folder import Contents
from sparsezo.serve.store import EventRow, QuestionRow
from sparsezo.tasks.base import Json

if TYPE_CHECKING:
    from sparsezo.tasks.chunking.reviewing import Reviewing, Suggestion

GRADES = 5
_MOST_NAMES = 12  # of answers, in a message
_TURNED = {"first": "second", "second": "first"}
_SUGGESTIONS = ("tag", "class")  # what the model thinks: not shown where the person is asked what it is
RIGHT = "right"  # of all that a review shows
DECIDE = "Two people differ here. Who is right?"


def question_id(number: int) -> str:
    return f"q{number}"


def number_of(id: object) -> int:
    if isinstance(id, str) and id[:1] == "q" and id[1:].isascii() and id[1:].isdigit() and len(id) < 18:
        return int(id[1:])
    raise Refused(f"there is no question {str(id)[:20]!r}", "unknown-question")


class Presentation:
    """``offered``: the answers that the task's questions take. ``source``: what is shown beside each input.
    ``reviewing``: where whole outputs are reviewed."""

    def __init__(
        self,
        contents: Contents,
        offered: Questions,
        source: Sequence[str] | None = None,
        reviewing: Reviewing | None = None,
    ) -> None:
        self._contents, self.offered, self.source, self._reviewing = contents, offered, source, reviewing

    def question(self, row: QuestionRow, suggestion: Suggestion | None = None) -> Json:
        """``suggestion``: of a review, how likely the model takes what is shown."""
        contents, offered = self._contents, self.offered
        question = row.question().offering(self._choices(row))
        turned = replace(question, outputs=question.outputs[::-1]) if row.swapped else question
        shown = contents.kind.shown(contents.task, contents.data, turned)
        text = shown.pop("question")
        labels = list(offered.get(("label", row.about), ())) if row.kind in ("part", "span") else []
        if row.kind == "label":
            shown = {name: value for name, value in shown.items() if name not in _SUGGESTIONS}
        if row.kind == "rate":
            what = f"How well does {shown['classes'][0]} fit" if "classes" in shown else "How good is this"
            text = f"{what}, from 1 (not at all) to {GRADES} (right)?"
        if row.kind == "review":
            own = self._review_shown(row, suggestion)
            if row.decides is not None:
                own |= self._versions(row)
                text = DECIDE
            shown = {**{name: value for name, value in shown.items() if name not in ("tags", "marked")}, **own}
            labels = list(self.reviewing.labels)
        if self.source is not None:
            shown["source"] = self.source[row.x]
        return {
            "id": question_id(row.id),
            "kind": row.kind,
            "task": contents.kind.name,
            "input": row.x,
            "text": text,
            "choices": self._review_choices(row) if row.kind == "review" else list(question.choices),
            "labels": labels,
            "names": self.names([*labels, *(question.choices if row.kind == "label" else ())]),
            "shown": shown,
            "order": [1, 0] if row.swapped else [0, 1],
            "grades": GRADES,
        }

    def _choices(self, row: QuestionRow) -> Answers:
        """What a question may be answered: of the best of some, as many places as it shows."""
        choices = self.offered[row.kind, row.about]
        return dict(itertools.islice(choices.items(), len(row.question().outputs))) if row.kind == "best" else choices

    @property
    def reviewing(self) -> Reviewing:
        if self._reviewing is None:
            raise UsageError("this session has no reviews")
        return self._reviewing

    def _review_shown(self, row: QuestionRow, suggestion: Suggestion | None) -> Json:
        """``about``: the places that an answer speaks about beside those that it corrects; None: all."""
        output, how = row.question().outputs
        said = np.flatnonzero(how != NOT_SAID).tolist()
        return {
            "spans": self.reviewing.spans(output, None if suggestion is None else suggestion.chances),
            "unsure": [] if suggestion is None else suggestion.unsure,
            "about": None if len(said) == len(output) else said,
            "plain": self.reviewing.plain,
        }

    @staticmethod
    def _review_choices(row: QuestionRow) -> list[str]:
        return [RIGHT] if row.decides is None else list(_TURNED)

    def _versions(self, row: QuestionRow) -> Json:
        """Of a review that decides: the sentence as either leaves it, and the words of spans that only one of them
        has."""
        first, second = (self.reviewing.spans(each) for each in (row.question().outputs[0], _second(row)))
        alone = [span for span in [*first, *second] if span not in first or span not in second]
        places = {place for span in alone for place in range(span["first"], span["last"] + 1)}
        return {"versions": [first, second], "unsure": sorted(places)}

    def normal(self, output: NDArray[np.int32]) -> NDArray[np.int32]:
        """Labels of which each says what it is in one way: the same spans are the same labels."""
        return self.reviewing.output(self.reviewing.spans(output), len(output))

    def names(self, labels: Sequence[str]) -> dict[str, str]:
        """What people call the labels; where that is what they are, nothing is said."""
        words = self._contents.serving.choice_words(self._contents.task, labels)
        return {name: called for name, called in words.items() if called != name}

    def understood(self, row: QuestionRow, answer: object) -> tuple[str, Answer]:
        """(the kind that it was answered as, the answer as the store has it); ``Refused`` where it is none."""
        if row.kind == "rate":
            if type(answer) is not int or not 1 <= answer <= GRADES:
                raise Refused(f"an answer is a grade from 1 to {GRADES}", "bad-answer")
            return "rate", (GRADES - answer) / (GRADES - 1)
        if row.kind == "span":
            return self._span_understood(row, answer)
        if row.kind == "review":
            try:
                return "review", self._review_understood(row, answer)
            except UsageError as error:
                raise Refused(str(error).replace("`", ""), "bad-answer") from None
        choices = self._choices(row)
        if isinstance(answer, str) and answer in choices:
            return row.kind, _TURNED.get(answer, answer) if row.swapped else answer
        labels = self.offered.get(("label", row.about), {}) if row.kind == "part" else {}
        if isinstance(answer, str) and answer in labels:
            return "label", answer
        wanted = [*choices, *labels]
        more = ", ..." if len(wanted) > _MOST_NAMES else ""
        raise Refused(f"an answer is one of {', '.join(wanted[:_MOST_NAMES])}{more}", "bad-answer")

    def _span_understood(self, row: QuestionRow, answer: object) -> tuple[str, Answer]:
        """``no``: not this one, whatever else is there. All others say which span is there, or that none is."""
        if answer == "no":
            return "part", answer
        question = row.question().offering(self.offered["span", row.about])
        try:
            code = answer_code(question, answer)
            return "span", "yes" if told_loss(question, code) == 0 else answer_name(question, code)
        except UsageError as error:
            raise Refused(str(error).replace("`", ""), "bad-answer") from None

    def _review_understood(self, row: QuestionRow, answer: object) -> Answer:
        """All tags as they are left, by name, and the places that were set by hand."""
        names = list(self.offered["review", row.about])
        if answer == RIGHT or (row.decides is not None and answer == "first"):  # which is what it suggests
            return RIGHT
        if row.decides is not None and answer == "second":
            second = _second(row)
            changed = np.flatnonzero(second != row.question().outputs[0])
            return {"output": [names[k] for k in second.tolist()], "corrected": changed.tolist()}
        if not isinstance(answer, Mapping) or set(answer) != {"spans", "corrected"}:
            taken = " or ".join(self._review_choices(row))
            raise UsageError(f"an answer is {taken}, or the spans as they should be, and the places corrected by hand")
        suggested = row.question().outputs[0]
        n = len(suggested)
        output, corrected = self.reviewing.output(answer["spans"], n), answer["corrected"]
        places = corrected if isinstance(corrected, list | tuple) else [None]
        if not all(type(place) is int and 0 <= place < n for place in places):
            raise UsageError(f"corrected: the {n} words are 0 to {n - 1}")
        if not places and np.array_equal(output, suggested):
            return RIGHT
        if not places:
            raise UsageError("the spans are other than suggested, but no place was corrected by hand")
        return {"output": [names[k] for k in output.tolist()], "corrected": sorted({*places})}

    def left(self, row: QuestionRow, event: EventRow) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """(labels, what is said of each) that the answer to a review leaves."""
        return reviewed(row.question().offering(self.offered["review", row.about]), event.said())

    def as_left(self, row: QuestionRow, event: EventRow) -> Json:
        """The spans that the answer to a review leaves, and the places that were set by hand."""
        said = event.said()
        corrected = said["corrected"] if isinstance(said, dict) else []
        return {"spans": self.reviewing.spans(self.left(row, event)[0]), "corrected": corrected}

    def as_said(self, row: QuestionRow, event: EventRow) -> Answer:
        """An answer of the store as the person gave it."""
        if row.kind == "rate":
            return GRADES - round(float(event.answer or 0) * (GRADES - 1))
        said = event.said()
        if row.decides is not None:
            if said == RIGHT:
                return "first"
            if np.array_equal(self.left(row, event)[0], _second(row)):
                return "second"
        if row.kind == "review" and isinstance(said, dict):
            return self.as_left(row, event)
        return _TURNED.get(said, said) if row.swapped and isinstance(said, str) else said


def _second(row: QuestionRow) -> NDArray[np.int32]:
    """Of a review that decides: the labels that are shown second; the first are what it suggests."""
    return np.array(json.loads(row.decides or "{}")["second"], np.int32)
