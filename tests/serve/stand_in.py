"""A session in memory, for tests of what stands above one: every kind of question, and faults on request.

It follows the interface of sparsezo.serve.session.Session, learns nothing, and keeps all calls in ``calls``.
"""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass

from sparsezo.serve.errors import Refused

SCRIPT = "<script>window.hacked=1</script>"
IMAGE = '<img src=x onerror="window.hacked=1">'
TOKENS = {"ann": "token-of-ann", "bob": "token-of-bob", "boss": "token-of-boss"}
REPLACED = "old-token-of-ann"
TAGS = ["B-NP", "I-NP", "O"]
TOPICS = [f"topic {k:02d}" for k in range(1, 24)]
EARLIER = 1200  # answers of others
WORDS = ["Confidence", "in", "the", "pound", "is", "widely", "expected", "to", "take", "another", "sharp", "dive"]


@dataclass(frozen=True)
class Person:
    id: str
    name: str
    admin: bool


def part(number: int) -> dict:
    first = number % len(WORDS)
    shown = {"words": WORDS, "first": first, "last": first, "tag": "B-NP"}
    text = f"Does a noun phrase (NP) start at '{WORDS[first]}'?"
    return {"kind": "part", "task": "chunking", "text": text, "choices": ["yes", "no"], "labels": TAGS, "shown": shown}


def chunk(number: int) -> dict:
    words = ["The", "mayor", "of", "San", "Sebastián", "met", "Ana", "Botín", "in", "Madrid", "yesterday"]
    shown = {
        "words": words,
        "first": 3,
        "last": 4,
        "tag": "B-LOC",
        "tags": ["O", "O", "O", "B-LOC", "I-LOC", "O", "B-PER", "I-PER", "O", "B-LOC", "O"],
    }
    return {
        "kind": "part",
        "task": "chunking",
        "text": "Is 'San Sebastián' a LOC?",
        "choices": ["yes", "no"],
        "labels": ["PER", "LOC", "ORG", "O"],
        "shown": shown,
    }


def span(number: int) -> dict:
    """Of raw text: what stands between the tokens is given, and types have words of their own."""
    words = ["The", "mayor", "of", "San", "Sebastián", ",", "Ana", "Botín", ",", "left", "."]
    shown = {
        "words": words,
        "gaps": [" ", " ", " ", "  ", "", " ", " ", "", " ", "", ""],
        "first": 3,
        "last": 3,
        "part": "San",
        "tag": "B-LOC",
        "tags": ["O", "O", "O", "B-LOC", "O", "O", "B-PER", "I-PER", "O", "O", "O"],
        "where": {"document": f"{number}", "start": 0, "end": 50},
    }
    return {
        "kind": "span",
        "task": "chunking",
        "text": "Is 'San' a place (LOC)?",
        "choices": ["PER", "LOC", "O"],
        "labels": ["PER", "LOC", "O"],
        "names": {"PER": "person", "LOC": "place", "O": "none of these"},
        "shown": shown,
    }


def label(number: int) -> dict:
    document = f"Rates rose again {SCRIPT}\n\nThe bank said on Monday that it {IMAGE} expects more of the same. " * 3
    return {
        "kind": "label",
        "task": "text",
        "text": "What is this about?",
        "choices": TOPICS,
        "labels": [],
        "shown": {"document": document},
    }


def pair(number: int) -> dict:
    return {
        "kind": "pair",
        "task": "rerank",
        "text": "Which translation is better, the first or the second?",
        "choices": ["first", "second", "tie"],
        "labels": [],
        "order": [0, 1],
        "shown": {
            "hypotheses": [
                "the council has voted yesterday for the new budget , after a long debate",
                "yesterday the council voted for the new budget , after long debates",
            ],
            "source": "Der Rat hat gestern nach langer Debatte für den neuen Haushalt gestimmt",
        },
    }


def tagged_pair(number: int) -> dict:
    return {
        "kind": "pair",
        "task": "chunking",
        "text": "Which is better, the first or the second?",
        "choices": ["first", "second", "tie"],
        "labels": [],
        "order": [1, 0],
        "shown": {
            "words": WORDS,
            "outputs": [
                ["B-NP", "B-PP", "B-NP", "I-NP", "B-VP", "I-VP", "I-VP", "I-VP", "I-VP", "B-NP", "I-NP", "I-NP"],
                ["B-NP", "B-PP", "B-NP", "I-NP", "B-VP", "B-ADVP", "B-VP", "I-VP", "I-VP", "B-NP", "I-NP", "I-NP"],
            ],
        },
    }


def rate(number: int) -> dict:
    return {
        "kind": "rate",
        "task": "text",
        "text": "How well does 'science' fit?",
        "choices": [],
        "labels": [],
        "grades": 5,
        "shown": {"document": "The probe sent its first pictures home on Tuesday.", "classes": ["science"]},
    }


KINDS = {"part": part, "chunk": chunk, "span": span, "label": label, "pair": pair, "tagged": tagged_pair, "rate": rate}

AUDIT = {
    "asked": 57,
    "agreed": 52,
    "majority": {"label": "O", "agreed": 40, "name": "none of these"},
    "twice": {"asked": 12, "same": 11, "split": 1, "enough": 30},
    "corrected": False,
    "accuracy": 52 / 57,
    "low": 0.87,
    "high": 0.945,
    "spans": {
        "sentences": 6,
        "correct": 9,
        "predicted": 12,
        "gold": 11,
        "twice": 0,
        "precision": {"value": 0.75, "low": 0.4, "high": 0.95},
        "recall": {"value": 9 / 11, "low": 0.5, "high": 0.99},
        "f1": {"value": 18 / 23, "low": 0.45, "high": 0.9996},
    },
}


class StandIn:
    """Questions of the named kinds, one after the other."""

    def __init__(self, kinds: str = "part", delay: float = 0.0, sure: str = "", guidelines: str | None = None) -> None:
        self.kinds = kinds.split(",")
        self.delay = delay
        self.calls: list[tuple] = []
        self.questions: dict[str, dict] = {}
        self.told: dict[str, dict] = {}  # id -> {"person", "answer", "nonce"}
        self.retracted: list[str] = []
        self.skipped: list[tuple[str, str]] = []
        self.flags: list[tuple[str, str]] = []
        self.paused = False
        self.guidelines = guidelines
        self.fail: Exception | None = None  # the next call raises it
        self.sure = set(sure.split())  # held questions that the model has become sure of
        self._names = {"ann": f"Ann {SCRIPT}", "bob": "Bob", "boss": "Boss"}
        self._tokens = dict(TOKENS)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def person(self, token: str) -> Person | None:
        for who, known in self._tokens.items():
            if known == token:
                return Person(who, self._names[who], who == "boss")
        return None

    def was_replaced(self, token: str) -> bool:
        return token == REPLACED

    def identity(self, person: Person) -> dict:
        return {"session": "stand-in", "person": person.id, "name": person.name}

    def ask(self, person, n=1, holding=()):
        with self._lock:
            self._called("ask", person, n, holding)
            if self.paused:
                raise Refused("the administrator has paused it", "paused")
            kept = [self.questions[each] for each in holding if each in self.questions and each not in self.sure]
            return [*kept, *(self._new() for _ in range(n + len(holding) - len(kept)))]

    def _new(self) -> dict:
        number = next(self._numbers)
        question = {"id": f"q{number}", **KINDS[self.kinds[(number - 1) % len(self.kinds)]](number)}
        self.questions[question["id"]] = question
        return question

    def tell(self, person, id, answer, seconds=None, nonce=None):
        if self.delay:
            time.sleep(self.delay)
        with self._lock:
            self._called("tell", person, id, answer, seconds, nonce)
            question = self._known(id)
            if id in self.told and self.told[id] != {"person": person.id, "answer": answer, "nonce": nonce}:
                raise Refused("this question is answered already", "already-answered")
            allowed = [*question["choices"], *question["labels"]] or list(range(1, question.get("grades", 5) + 1))
            marked = question["kind"] == "span" and (isinstance(answer, dict) or answer in ("yes", "no"))
            if answer not in allowed and not marked:
                raise Refused(f"{answer!r} is no answer to it", "bad-answer")
            self.told[id] = {"person": person.id, "answer": answer, "nonce": nonce}
            return {
                "id": id,
                "saved": True,
                "answer": answer,
                "answers": len(self.told) + EARLIER,
                "mine": self._mine(person),
            }

    def skip(self, person, id, why="skip", nonce=None):
        with self._lock:
            self._called("skip", person, id, why)
            self._known(id)
            self.skipped.append((id, why))
            return {"id": id, "saved": True}

    def flag(self, person, id, note):
        with self._lock:
            self._called("flag", person, id, note)
            self._known(id)
            self.flags.append((id, note))
            return {"id": id, "saved": True}

    def undo(self, person, id=None):
        with self._lock:
            self._called("undo", person, id)
            mine = [each for each, told in self.told.items() if told["person"] == person.id]
            id = mine[-1] if id is None and mine else id
            skipped = [each for each, _ in self.skipped]
            if id not in mine and id not in skipped:
                raise Refused("there is no answer of yours to take back", "unknown-question")
            self.told.pop(id, None)
            self.retracted.append(id)
            return self.questions[id]

    def recent(self, person, n=20):
        with self._lock:
            self._called("recent", person, n)
            mine = [(each, told) for each, told in self.told.items() if told["person"] == person.id]
            return [
                {
                    "id": each,
                    "question": self.questions[each]["text"],
                    "answer": told["answer"],
                    "at": "2026-11-16T10:00:00Z",
                    "retracted": False,
                }
                for each, told in reversed(mine[-n:])
            ]

    def status(self, person=None):
        with self._lock:
            self._called("status", person)
            curve = [[100 * k, round(0.93 - 0.8 / (k + 1.6), 4)] for k in range(13)]
            return {
                "answers": len(self.told) + EARLIER,
                "questions": len(self.questions),
                "mine": self._mine(person),
                "today": self._mine(person),
                "per_minute": 18.5,
                "paused": self.paused,
                "curve": curve,
                "metric": "F1",
                "dev": curve[-1][1],
                "audit": AUDIT,
                "forecast": {"answers": 500, "value": 0.881, "low": 0.87, "high": 0.892},
                "labels": TAGS,
            }

    def people(self):
        with self._lock:
            self._called("people")
            alone = {"per_minute": 18.5, "link_made": "2026-11-16T09:00:00Z"}
            return [
                {
                    "id": who,
                    "name": name,
                    "answers": max(400 - 90 * k, 0),
                    **alone,
                    "agreement": {"ann": 0.94, "bob": 0.81}.get(who),
                }
                for k, (who, name) in enumerate(self._names.items())
            ]

    def add_person(self, name):
        with self._lock:
            self._called("add_person", name)
            who = f"p{len(self._tokens) + 1}"
            self._tokens[who], self._names[who] = f"secret-{who}", name
            return {"id": who, "name": name, "token": f"secret-{who}"}

    def flagged(self):
        with self._lock:
            self._called("flagged")
            about = {"worker": self._names["ann"], "at": 1_800_000_000.0, "input": " ".join(WORDS)}
            known = self.questions
            return [{**about, "question": id, "text": known[id]["text"], "note": note} for id, note in self.flags[::-1]]

    def pause(self, paused):
        with self._lock:
            self._called("pause", paused)
            self.paused = paused

    def export(self, what):
        with self._lock:
            self._called("export", what)
            return what, "application/octet-stream", iter([b"one\n", b"two\n"])

    def _mine(self, person) -> int:
        return 0 if person is None else sum(told["person"] == person.id for told in self.told.values())

    def _known(self, id: str) -> dict:
        if id not in self.questions:
            raise Refused(f"there is no question {id[:20]}", "unknown-question")
        return self.questions[id]

    def _called(self, *call) -> None:
        self.calls.append(call)
        if self.fail is not None:
            fail, self.fail = self.fail, None
            raise fail
