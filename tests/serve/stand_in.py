"""A session in memory, for tests of what stands above one: every kind of question, and faults on request.

It follows the interface of sparsezo.serve.session.Session, learns nothing, and keeps all calls in ``calls``.
"""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass

from sparsezo.serve.errors import Refused
from sparsezo.serve.presentation import DECIDE

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


def asked(kind: str, task: str, text: str, choices: list, labels: list, shown: dict, **rest) -> dict:
    about = {"kind": kind, "task": task, "input": 0, "text": text}
    return {**about, "choices": choices, "labels": labels, "shown": shown, **rest}


def part(number: int) -> dict:
    first = number % len(WORDS)
    shown = {"words": WORDS, "first": first, "last": first, "tag": "B-NP"}
    return asked("part", "chunking", f"Does a noun phrase (NP) start at '{WORDS[first]}'?", ["yes", "no"], TAGS, shown)


def chunk(number: int) -> dict:
    words = ["The", "mayor", "of", "San", "Sebastián", "met", "Ana", "Botín", "in", "Madrid", "yesterday"]
    tags = ["O", "O", "O", "B-LOC", "I-LOC", "O", "B-PER", "I-PER", "O", "B-LOC", "O"]
    shown = {"words": words, "first": 3, "last": 4, "tag": "B-LOC", "tags": tags}
    return asked("part", "chunking", "Is 'San Sebastián' a LOC?", ["yes", "no"], ["PER", "LOC", "ORG", "O"], shown)


def span(number: int) -> dict:
    """Of raw text: what stands between the tokens is given, and types have words of their own."""
    shown = {
        "words": ["The", "mayor", "of", "San", "Sebastián", ",", "Ana", "Botín", ",", "left", "."],
        "gaps": [" ", " ", " ", "  ", "", " ", " ", "", " ", "", ""],
        "tags": ["O", "O", "O", "B-LOC", "O", "O", "B-PER", "I-PER", "O", "O", "O"],
        "where": {"document": f"{number}", "start": 0, "end": 50},
        "first": 3,
        "last": 3,
        "part": "San",
        "tag": "B-LOC",
    }
    names = {"PER": "person", "LOC": "place", "O": "none of these"}
    return asked("span", "chunking", "Is 'San' a place (LOC)?", list(names), list(names), shown, names=names)


def label(number: int) -> dict:
    document = f"Rates rose again {SCRIPT}\n\nThe bank said on Monday that it {IMAGE} expects more of the same. " * 3
    return asked("label", "text", "What is this about?", TOPICS, [], {"document": document})


def pair(number: int) -> dict:
    hypotheses = [
        "the council has voted yesterday for the new budget , after a long debate",
        "yesterday the council voted for the new budget , after long debates",
    ]
    source = "Der Rat hat gestern nach langer Debatte für den neuen Haushalt gestimmt"
    text, shown = "Which translation is better, the first or the second?", {"hypotheses": hypotheses, "source": source}
    return asked("pair", "rerank", text, ["first", "second", "tie"], [], shown, order=[0, 1])


def best(number: int) -> dict:
    hypotheses = [
        "the council has voted yesterday for the new budget , after a long debate",
        "the council voted yesterday for the new budget , after a long debate",
        "the council has voted for the new budget yesterday , after a long debate",
        "the council has voted yesterday for new household , after a long debate",
    ]
    shown = {"hypotheses": hypotheses, "source": pair(number)["shown"]["source"]}
    return asked("best", "rerank", "Which of these translations is the best?", ["1", "2", "3", "4"], [], shown)


def tagged_pair(number: int) -> dict:
    outputs = [
        ["B-NP", "B-PP", "B-NP", "I-NP", "B-VP", "I-VP", "I-VP", "I-VP", "I-VP", "B-NP", "I-NP", "I-NP"],
        ["B-NP", "B-PP", "B-NP", "I-NP", "B-VP", "B-ADVP", "B-VP", "I-VP", "I-VP", "B-NP", "I-NP", "I-NP"],
    ]
    text, shown = "Which is better, the first or the second?", {"words": WORDS, "outputs": outputs}
    return asked("pair", "chunking", text, ["first", "second", "tie"], [], shown, order=[1, 0])


def rate(number: int) -> dict:
    shown = {"document": "The probe sent its first pictures home on Tuesday.", "classes": ["science"]}
    return asked("rate", "text", "How well does 'science' fit?", [], [], shown, grades=5)


REVIEWS = [  # (text, spans that the model has, those that are right, what it is unsure of)
    (
        "The mayor of San Sebastián , Ana Botín , left Madrid on Monday .",
        [(3, 3, "LOC"), (6, 7, "PER"), (10, 10, "LOC")],
        [(3, 4, "LOC"), (6, 7, "PER"), (10, 10, "LOC")],
        [3, 4],
    ),
    (
        "Acme Steel buys Borealis Foods from Ruth Okafor .",
        [(0, 1, "ORG"), (3, 4, "PER"), (6, 7, "ORG")],
        [(0, 1, "ORG"), (3, 4, "ORG"), (6, 7, "PER")],
        [3, 4, 6],
    ),
    (
        "On Friday Jonas Lind flew to Oslo and Bergen .",
        [(1, 1, "PER"), (2, 3, "PER"), (6, 8, "LOC")],
        [(2, 3, "PER"), (6, 6, "LOC"), (8, 8, "LOC")],
        [1, 7],
    ),
    (
        "Harbour United beat Northfield 3 - 1 in Leeds .",
        [(0, 1, "ORG"), (8, 8, "LOC")],
        [(0, 1, "ORG"), (3, 3, "ORG"), (8, 8, "LOC")],
        [3],
    ),
    (
        "Nobody expected rain , said Maria Sol .",
        [(5, 6, "PER")],
        [(5, 6, "PER")],
        [],
    ),
]
TYPES = {"PER": "person", "LOC": "place", "ORG": "organisation"}


def spans_of(rows: list[tuple[int, int, str]]) -> list[dict]:
    return [{"first": first, "last": last, "label": label} for first, last, label in rows]


def review(number: int) -> dict:
    text, spans, _, unsure = REVIEWS[(number - 1) % len(REVIEWS)]
    words = text.split()
    gaps = ["" if after in ",." else " " for after in [*words[1:], "."]]
    sure = [{**each, "p": 0.61 if each["first"] in unsure else 0.97} for each in spans_of(spans)]
    shown = {"words": words, "gaps": gaps, "spans": sure, "unsure": unsure, "about": None, "plain": False}
    where = {"document": f"{number}", "start": 0, "end": len(text)}
    text = "Is everything marked right?"
    return asked("review", "chunking", text, ["right"], list(TYPES), {**shown, "where": where}, names=TYPES)


def decision(number: int) -> dict:
    """A sentence that two people have left differently: the first as the model has it, the second as it is right."""
    question = review((number - 1) % 4 + 1)
    _, *both, _ = REVIEWS[(number - 1) % 4]
    tags = []
    for spans in both:
        tags.append({at: (first, last, label) for first, last, label in spans for at in range(first, last + 1)})
    differ = [at for at in range(len(question["shown"]["words"])) if tags[0].get(at) != tags[1].get(at)]
    shown = {**question["shown"], "versions": [spans_of(spans) for spans in both], "unsure": differ}
    return {**question, "text": DECIDE, "choices": ["first", "second"], "shown": shown}


def marked_review(number: int) -> dict:
    """Of one type; the answer speaks only about what is marked."""
    question = review(number)
    shown = question["shown"]
    spans = [{**each, "label": "NAME"} for each in shown["spans"]]
    return {**question, "labels": ["NAME"], "names": {}, "shown": {**shown, "spans": spans, "about": shown["unsure"]}}


def plain_review(number: int) -> dict:
    words, tags = ["They", "refuse", "to", "permit", "it"], ["PRON", "NOUN", "PART", "VERB", "PRON"]
    spans = spans_of([(at, at, tag) for at, tag in enumerate(tags)])
    shown = {"words": words, "spans": spans, "unsure": [1], "about": None, "plain": True}
    return asked("review", "chunking", "Are all tags right?", ["right"], ["PRON", "NOUN", "VERB", "PART"], shown)


def right_to_left(number: int) -> dict:
    shown = {"words": ["דנה", "לוי", "גרה", "בחיפה"], "spans": spans_of([(0, 1, "PER")]), "unsure": [3], "about": None}
    return asked("review", "chunking", "Right?", ["right"], list(TYPES), {**shown, "plain": False}, names=TYPES)


def many_types(number: int) -> dict:
    """More types than there are digits, and names that are HTML."""
    question = review(number)
    words = [SCRIPT, *question["shown"]["words"][1:]]
    names = dict.fromkeys(TOPICS[:1], f"type {IMAGE}")
    return {**question, "labels": TOPICS, "names": names, "shown": {**question["shown"], "words": words, "spans": []}}


def audit(number: int) -> dict:
    """A single question about a word of the same sentences, without the model's own output."""
    words = REVIEWS[0][0].split()
    shown = {"words": words, "first": 10, "last": 10, "part": words[10]}
    choices = [*TYPES, "O"]
    names = {**TYPES, "O": "none of these"}
    text = (
        f"What is '{words[10]}': a word of a person (PER), a place (LOC), an organisation (ORG), or of none of these?"
    )
    return asked("label", "chunking", text, choices, [], shown, names=names)


KINDS = {
    "review": review,
    "marked": marked_review,
    "decision": decision,
    "tags": plain_review,
    "audit": audit,
    "right-to-left": right_to_left,
    "many": many_types,
    "part": part,
    "chunk": chunk,
    "span": span,
    "label": label,
    "pair": pair,
    "best": best,
    "tagged": tagged_pair,
    "rate": rate,
}

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
        self.programs: set[str] = set()
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
        return {"session": "stand-in", "person": person.id, "name": person.name, "program": person.id in self.programs}

    def mark_program(self, person: str) -> None:
        self.programs.add(person)

    def ask(self, person, n=1, holding=(), *, decide=False):
        with self._lock:
            self._called("ask", person, n, holding, decide)
            if self.paused:
                raise Refused("the administrator has paused it", "paused")
            kept = [self.questions[each] for each in holding if each in self.questions and each not in self.sure]
            return [*kept, *(self._new() for _ in range(n + len(holding) - len(kept)))]

    def _new(self) -> dict:
        number = next(self._numbers)
        question = {"id": f"q{number}", **KINDS[self.kinds[(number - 1) % len(self.kinds)]](number)}
        self.questions[question["id"]] = question
        return question

    def tell(self, person, id, answer, seconds=None, nonce=None, away=None):
        if self.delay:
            time.sleep(self.delay)
        with self._lock:
            self._called("tell", person, id, answer, seconds, nonce, away)
            question = self._known(id)
            if id in self.told and self.told[id] != {"person": person.id, "answer": answer, "nonce": nonce}:
                raise Refused("this question is answered already", "already-answered")
            allowed = [*question["choices"], *question["labels"]] or list(range(1, question.get("grades", 5) + 1))
            marked = question["kind"] == "span" and (isinstance(answer, dict) or answer in ("yes", "no"))
            reviewed = question["kind"] == "review" and isinstance(answer, dict)
            if answer not in allowed and not marked and not reviewed:
                raise Refused(f"{answer!r} is no answer to it", "bad-answer")
            self.told[id] = {"person": person.id, "answer": answer, "nonce": nonce}
            mine = self._mine(person)
            return {"id": id, "saved": True, "answer": answer, "answers": len(self.told) + EARLIER, "mine": mine}

    def decode(self, person, id, fixed):
        """Around what is fixed: the next span to its right as it is right, the others as they were."""
        with self._lock:
            self._called("decode", person, id, fixed)
            shown = self._known(id)["shown"]
            text, _, right, _ = REVIEWS[(int(id[1:]) - 1) % len(REVIEWS)]
            known = spans_of(right) if shown["words"] == text.split() and not shown["about"] else []
            end = max(each["last"] for each in fixed)
            better = [each for each in known if each["first"] > end][:1]
            taken = {at for each in [*fixed, *better] for at in range(each["first"], each["last"] + 1)}
            made = [each for each in [*fixed, *better] if each["label"] is not None]
            made += [each for each in shown["spans"] if taken.isdisjoint(range(each["first"], each["last"] + 1))]
            unsure = [at for at in shown["unsure"] if at not in taken]
            return {"spans": sorted(made, key=lambda each: each["first"]), "unsure": unsure}

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
            when = {"at": "2026-11-16T10:00:00Z", "retracted": False}
            return [
                {"id": each, "question": self.questions[each]["text"], "answer": told["answer"], **when}
                for each, told in reversed(mine[-n:])
            ]

    def status(self, person=None):
        with self._lock:
            self._called("status", person)
            curve = [[100 * k, round(0.93 - 0.8 / (k + 1.6), 4), 7.5 * k] for k in range(13)]
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
                "adjudication": {"waiting": 3, "decided": 14, "agreement": 0.87},
                "labels": TAGS,
            }

    def people(self):
        with self._lock:
            self._called("people")
            alone = {"per_minute": 18.5, "link_made": "2026-11-16T09:00:00Z"}
            agree = {"ann": 0.94, "bob": 0.81}
            points = [[3 + 0.31 * k, 3 + 0.31 * k + (k * 37 % 11 - 5) * 0.35] for k in range(40)]
            seconds = {"ann": {"fit": [0.9, 0.143, 0.7, 2.25], "points": points, "n": 212}}
            return [
                {
                    "id": who,
                    "name": name,
                    "answers": max(400 - 90 * k, 0),
                    **alone,
                    "agreement": agree.get(who),
                    "seconds": seconds.get(who),
                    "overlooked": {"value": 0.12, "low": 0.03, "high": 0.3} if who == "ann" else None,
                    "e0": 0.01 if who == "ann" else None,
                }
                for k, (who, name) in enumerate(self._names.items())
            ]

    def add_person(self, name, program=False):
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
