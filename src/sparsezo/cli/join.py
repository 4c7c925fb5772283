"""join: a program answers the questions of a running ``sparsezo serve``, as one more annotator, watched by people."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sparsezo.cli import show
from sparsezo.errors import UsageError, shown
from sparsezo.messages import Once, counted
from sparsezo.options import Values
from sparsezo.rules import RULES
from sparsezo.scorers import Request, Scorer, ScorerError, open_scorer, read_reply
from sparsezo.serve.client import Question, RemoteError, RemoteLearner

SKIPS = ("skip", "cannot-tell")  # what a scorer says that has no answer
_FIRST_WAIT, _MOST_WAIT = 1.0, 30.0  # seconds between tries to reach a service that is away
_NO_ANSWER = (409, 404)  # late, or somebody else's by now: the next question is another
T = TypeVar("T")


@dataclass
class Told:
    """What became of the questions so far."""

    answered: int = 0
    skipped: int = 0
    late: int = 0

    def __str__(self) -> str:
        late = f", {self.late:,} too late" if self.late else ""
        return f"{counted(self.answered, 'question')} answered, {self.skipped:,} skipped{late}"


def run_join(values: Values) -> None:
    """Until Ctrl-C, or until the scorer fails."""
    rate = values["rate"]
    if rate is not None and not rate > 0:
        raise UsageError(f"`rate` {rate:g}: give more than 0 answers a minute")
    told = Told()
    with RemoteLearner(values["link"]) as remote:
        scorer = open_scorer(values["scorer"], **({"seconds": s} if (s := values["scorer_seconds"]) else {}))
        name = remote.be_program()["name"]
        with scorer:
            show.note(f"{name} answers by {scorer.text}; Ctrl-C stops")
            try:
                join(remote, scorer, told, 0.0 if rate is None else 60 / rate)
            finally:
                show.note(f"stopped: {told}")


def join(remote: RemoteLearner, scorer: Scorer, told: Told, seconds: float = 0.0) -> None:
    """Answer one question after the other, ``seconds`` apart at least, and count them in ``told``; it has no end."""
    for step in itertools.count():
        question = patiently(remote.ask)
        began = time.monotonic()
        try:
            said = answer_of(question, scorer(request_of(question, step)))
        except UsageError as error:
            raise ScorerError(f"scorer '{scorer.text}': {error}") from None
        took = time.monotonic() - began
        try:
            if isinstance(said, str) and said in SKIPS and said not in question["choices"]:
                patiently(functools.partial(remote.skip, question, said))
                told.skipped += 1
            else:
                patiently(functools.partial(remote.tell, question, said, took))
                told.answered += 1
        except RemoteError as error:
            if error.status == 422:
                raise ScorerError(f"scorer '{scorer.text}': said {shown(said, repr)}; {error.reason}") from None
            if error.status not in _NO_ANSWER:
                raise
            told.late += 1
        time.sleep(max(0.0, began + seconds - time.monotonic()))


def patiently(call: Callable[[], T]) -> T:
    """What ``call`` gives, however long the service is paused, has nothing to ask, or is away."""
    say, wait = Once(show.note), _FIRST_WAIT
    while True:
        try:
            return call()
        except RemoteError as error:
            if 0 < error.status < 500 and error.status not in (408, 429):
                raise
            say(f"waiting: {error.reason}")
            pause = error.retry_after
        time.sleep(pause or wait)
        wait = min(2 * wait, _MOST_WAIT)


def request_of(question: Question, step: int) -> Request:
    """A question as a scorer has it in ``train --scorer``; ``step``: how many it was asked before."""
    given = {name: question[name] for name in ("choices", "names") if question.get(name)}
    if question["kind"] == "review":
        tags, said = tags_of(question["shown"]), question["shown"]["about"]
        plain, labels = question["shown"]["plain"], question["labels"]
        choices = labels if plain else [*(f"{place}-{label}" for label in labels for place in "BI"), "O"]
        given |= {"tags": tags, "marked": list(range(len(tags))) if said is None else said, "choices": choices}
    return {
        "task": question["task"],
        "rule": question["kind"],
        "step": step,
        "input": question["input"],
        **question["shown"],
        "question": question["text"],
        "wanted": RULES[question["kind"]].feedback,
        **given,
    }


def answer_of(question: Question, said: object) -> str | int | dict[str, object]:
    """What the service takes, of what a scorer said: JSON in a text is read, true and false are yes and no, and a loss
    is the nearest grade."""
    value = said.tolist() if hasattr(said, "tolist") else said  # a function's NumPy numbers
    if isinstance(value, str) and value not in question["choices"]:
        value = read_reply(value.encode("utf-8", "replace"))
    if question["kind"] == "review":
        return reviewed(question["shown"], value)
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if question["kind"] == "rate" and isinstance(value, int | float):
        if not 0 <= value <= 1:
            raise UsageError(f"said {value:g}, and a loss lies between 0 (right) and 1")
        return int(question["grades"] - round(value * (question["grades"] - 1)))
    return value if isinstance(value, str | int | dict) else str(value)


def tags_of(shown: Request) -> list[str]:
    """The tags of a sentence that is to be reviewed, of its spans as the service has them."""
    tags = ["O"] * len(shown["words"])
    for span in shown["spans"]:
        first, last, label = span["first"], span["last"], span["label"]
        inside = [label] if shown["plain"] else [f"I-{label}"]
        tags[first : last + 1] = [label if shown["plain"] else f"B-{label}", *inside * (last - first)]
    return tags


def reviewed(shown: Request, said: object) -> str | dict[str, object]:
    """What the service takes as a review, of "right" or the tags as they should be, which are set by hand where they
    differ."""
    if said is True or said == "right":
        return "right"
    if not isinstance(said, list | tuple):
        return said if isinstance(said, str | dict) else str(said)
    before = tags_of(shown)
    if len(said) != len(before):
        raise UsageError(f"said {len(said)} tags, and the sentence has {len(before)} words")
    corrected = [i for i, (one, other) in enumerate(zip(before, said, strict=True)) if one != other]
    spans: list[dict[str, object]] = []
    for i, tag in enumerate(map(str, said)):
        place, _, label = ("B", "", tag) if shown["plain"] else tag.partition("-")
        if place == "I" and spans and spans[-1]["last"] == i - 1 and spans[-1]["label"] == label:
            spans[-1]["last"] = i
        elif tag != "O" or shown["plain"]:
            spans.append({"first": i, "last": i, "label": label})
    return {"spans": spans, "corrected": corrected} if corrected else "right"
