"""A question as a page shows it, and an answer as the log has it.

Pairs are shown in random order: outputs are turned round here, and the answer is turned back, so nobody else needs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sparsezo.errors import UsageError
from sparsezo.questions import Question, Questions, answer_code, answer_name, told_loss
from sparsezo.serve.errors import Refused
from sparsezo.serve.folder import Contents
from sparsezo.serve.log import QuestionRow

GRADES = 5
_TURNED = {"first": "second", "second": "first"}
_SUGGESTIONS = ("tag", "class")  # what the model thinks: not shown where the person is asked what it is


def question_id(number: int) -> str:
    return f"q{number}"


def number_of(id: object) -> int:
    """Of a question by its id, as a page has it."""
    if isinstance(id, str) and id[:1] == "q" and id[1:].isascii() and id[1:].isdigit() and len(id) < 18:
        return int(id[1:])
    raise Refused(f"there is no question {str(id)[:20]!r}", "unknown-question")


def worded(
    contents: Contents, offered: Questions, row: QuestionRow, source: Sequence[str] | None = None
) -> dict[str, Any]:
    """All that a page needs."""
    question = row.question().offering(offered[row.kind, row.about])
    shown = contents.kind.shown(contents.task, contents.data, turned(question) if row.swapped else question)
    text = shown.pop("question")
    labels = list(offered.get(("label", row.about), ())) if row.kind in ("part", "span") else []
    if row.kind == "label":
        shown = {name: value for name, value in shown.items() if name not in _SUGGESTIONS}
    if row.kind == "rate":
        what = f"How well does {shown['classes'][0]} fit" if "classes" in shown else "How good is this"
        text = f"{what}, from 1 (not at all) to {GRADES} (right)?"
    if source is not None:
        shown["source"] = source[row.x]
    return {
        "id": question_id(row.id),
        "kind": row.kind,
        "task": contents.kind.name,
        "text": text,
        "choices": list(question.choices),
        "labels": labels,
        "names": _names(contents, [*labels, *(question.choices if row.kind == "label" else ())]),
        "shown": shown,
        "order": [1, 0] if row.swapped else [0, 1],
        "grades": GRADES,
    }


def _names(contents: Contents, labels: Sequence[str]) -> dict[str, str]:
    """What people call the labels; where that is what they are, nothing is said."""
    if not hasattr(contents.serving, "choice_words"):
        return {}
    return {
        name: words for name, words in contents.serving.choice_words(contents.task, labels).items() if words != name
    }


def turned(question: Question) -> Question:
    return replace(question, outputs=question.outputs[::-1])


def understood(row: QuestionRow, offered: Questions, answer: Any) -> tuple[str, Any]:
    """(the kind it was answered as, the answer as it teaches), or refused."""
    if row.kind == "rate":
        if type(answer) is not int or not 1 <= answer <= GRADES:
            raise Refused(f"an answer is a grade from 1 to {GRADES}", "bad-answer")
        return "rate", (GRADES - answer) / (GRADES - 1)
    if row.kind == "span":
        return _span_understood(row, offered, answer)
    choices = offered[row.kind, row.about]
    if isinstance(answer, str) and answer in choices:
        return row.kind, _TURNED.get(answer, answer) if row.swapped else answer
    labels = offered.get(("label", row.about), {}) if row.kind == "part" else {}
    if isinstance(answer, str) and answer in labels:
        return "label", answer
    wanted = ", ".join([*choices, *labels][:12])
    raise Refused(f"an answer is one of {wanted}{', ...' if len(choices) + len(labels) > 12 else ''}", "bad-answer")


def _span_understood(row: QuestionRow, offered: Questions, answer: Any) -> tuple[str, Any]:
    """``no``: not this one, whatever else is there. All others say which span is there, or that none is."""
    if answer == "no":
        return "part", answer
    question = row.question().offering(offered["span", row.about])
    try:
        code = answer_code(question, answer)
        return "span", "yes" if told_loss(question, code) == 0 else answer_name(question, code)
    except UsageError as error:
        raise Refused(str(error).replace("`", ""), "bad-answer") from None


def as_said(row: QuestionRow, answer: Any) -> Any:
    """An answer of the log as the person gave it."""
    if row.kind == "rate":
        return GRADES - round(answer * (GRADES - 1))
    return _TURNED.get(answer, answer) if row.swapped else answer
