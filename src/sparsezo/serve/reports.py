"""What a session tells of itself: to a person, and to whoever runs it."""

from __future__ import annotations

import datetime
import functools
import itertools
import json
import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.decoding import Decoder
from sparsezo.serve.audit import SpanCounts, span_counts, span_shares
from sparsezo.serve.core import Core
from sparsezo.serve.estimates import Estimated, audited, estimated, forecast_of
from sparsezo.serve.log import ANSWER, EventRow, QuestionRow
from sparsezo.serve.tokens import Person
from sparsezo.serve.wording import as_said, question_id, worded

_AUDIT_SECONDS = 2.0  # between two looks at the audit set
_LEAST_AHEAD = 100  # answers that a forecast looks ahead
_LEAST_AUDITS = 10  # before the curve has the audit's accuracy
_LEAST_TAUGHT, _LOOKED_AT = 100, 500  # answers before a model that tags nothing is remarkable; inputs to say so
_WINDOW, _LEAST = 600.0, 60.0  # seconds that answers a minute are counted over


class Reports(Core):
    _audit_seen: tuple[float, dict[str, Any] | None] = (-_AUDIT_SECONDS, None)
    _estimated = Estimated()
    _warning: str | None = None  # for whoever runs the session
    _foreseen: tuple[Any, dict[str, Any] | None] = (None, None)

    def _start(self, dev: Any) -> None:
        self._read: list[tuple[EventRow, QuestionRow]] = []  # answers that were estimated from
        self._auditing = threading.Lock()
        super()._start(dev)

    def recent(self, person: Person, n: int = 20) -> list[dict[str, Any]]:
        """The person's last answers, newest first, those taken back included."""
        with self.lock:
            events = (event for event in reversed(self.desk.history[person.id]) if event.what == ANSWER)
            return [self._told(event) for event in itertools.islice(events, max(0, n))]

    def _told(self, event: EventRow) -> dict[str, Any]:
        row = self.desk.row(event.question or 0)
        shown = worded(self.contents, self.offered, row)
        return {
            "id": question_id(row.id),
            "question": shown["text"],
            "names": shown["names"],
            "answer": as_said(row, json.loads(event.answer or "null")),
            "at": _iso(event.at),
            "retracted": event.seq in self.desk.undone,
        }

    def status(self, person: Person | None = None) -> dict[str, Any]:
        audit = self._audited()
        with self.lock:
            number = None if person is None else person.id
            today, per_minute = self._speed(number)
            return {
                "answers": self.desk.answers,
                "questions": len(self.desk.entries),
                "mine": self.desk.answers_by[person.id] if person is not None else None,
                "today": today,
                "per_minute": per_minute,
                "paused": self.paused,
                "curve": self.watch.curve(),
                "metric": self.watch.metric,
                "dev": self.watch.newest(),
                "audit": audit,
                "forecast": self._forecast(),
                "alpha": self._estimated.alpha,
                "warning": self._warning,
                "labels": list(self.offered.get(("label", self.contents.settings.about), ())),
            }

    def _forecast(self) -> dict[str, Any] | None:
        """Made anew when the curve is."""
        curve = self.watch.curve()
        key = len(curve), curve[-1][0] if curve else 0
        if self._foreseen[0] != key:
            self._foreseen = key, forecast_of(curve, max(_LEAST_AHEAD, self.desk.answers // 2))
        return self._foreseen[1]

    def people(self) -> list[dict[str, Any]]:
        """For the admin page."""
        with self.lock:
            return [self._about(person) for person in self.persons.values()]

    def _about(self, person: Person) -> dict[str, Any]:
        today, per_minute = self._speed(person.id)
        made = self._tokens.get(person.id)
        return {
            "id": person.id,
            "name": person.name,
            "admin": person.admin,
            "answers": self.desk.answers_by[person.id],
            "today": today,
            "per_minute": per_minute,
            "open": len(self.desk.open_of(person.id)),
            "link_made": _iso(made.at) if made is not None else None,
            "agreement": self._estimated.agreement.get(person.id),
            **self._errors(person.id),
        }

    def _errors(self, person: int) -> dict[str, Any]:
        """How often the person errs, where that is known: e0 (a wrong yes), e1 (a wrong no), with their intervals."""
        rates = self._estimated.rates.get(person) if self._estimated.known else None
        if rates is None:
            return {"e0": None, "e1": None}
        values = {"e0": rates.e0, "e1": rates.e1}
        intervals = {f"{name}_interval": [each.low, each.high] for name, each in values.items()}
        return {name: each.value for name, each in values.items()} | intervals

    def _estimate(self) -> float | None:
        """In the watching thread. What learning believes of people changes by events, so a replay knows of it."""
        self._read += self.log.answers(self._read[-1][0].seq if self._read else 0)  # the lock is for those who answer
        with self.lock:
            undone, believed = set(self.desk.undone), dict(self.beliefs)
        self._read = [pair for pair in self._read if pair[0].seq not in undone]
        self._estimated = estimated([pair for pair in self._read if pair[1].audit is None])
        for person, (e0, e1) in self._estimated.beliefs(believed).items():
            self.believe(person, e0, e1)
        self._audit_seen = -_AUDIT_SECONDS, None
        self._warning = self._nothing_tagged()
        found = self._audited()
        if found is None or found["asked"] < _LEAST_AUDITS:
            return None
        return float(found["agreed"] / found["asked"])  # as counted: a correction that sets in would be no progress

    def _nothing_tagged(self) -> str | None:
        """What to say where the model of many answers finds no span in any input that is looked at."""
        contents = self.contents
        answers, W = self._weights()
        if not contents.has_chunks or answers < _LEAST_TAUGHT:
            return None
        n = len(contents.data)
        for x in range(0, n, max(1, n // _LOOKED_AT)):
            with self._auditing:
                if (self._auditor.one(W, x) != len(contents.task.tags) - 1).any():
                    return None
        return (
            f"After {answers:,} answers the model finds nothing in {min(n, _LOOKED_AT):,} {contents.kind.inputs}. "
            "Export the answers: was anything said to be there? If hardly anything was, the texts may have little of "
            "these types: give texts that have more, a list of known names with --gazetteer, or labelled examples with "
            "--init-labels. If much was, see whether people mark whole names, and what --tags calls the types."
        )

    def _speed(self, person: int | None) -> tuple[int, float]:
        """(answers since midnight, answers a minute lately)."""
        now = self.clock()
        midnight = datetime.datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        times = self.desk.times_since(person, min(midnight, now - _WINDOW))
        lately = [at for at in times if at >= now - _WINDOW]
        spread = max(_LEAST, now - min(lately, default=now))
        return sum(at >= midnight for at in times), round(60 * len(lately) / spread, 1)

    # The audit set

    def audit_table(self) -> list[dict[str, Any]]:
        """Every answer to an audit question beside what the present model says of the same part."""
        with self.lock:
            answers = [(event, self.desk.row(event.question or 0)) for event in self.desk.audit_answers()]
        with self._auditing:
            return list(self._audit_rows(answers))

    @functools.cached_property
    def _auditor(self) -> Decoder:
        """With scratch of its own: others decode meanwhile."""
        return Decoder(self.learner.problem)

    def _audit_rows(self, answers: Sequence[tuple[EventRow, QuestionRow]]) -> Iterator[dict[str, Any]]:
        """Without the session's lock: those who answer need not wait for it."""
        W = self._weights()[1] if answers else None
        outputs: dict[int, NDArray[np.int32]] = {}  # of a sentence that is audited whole every token is asked about
        for event, row in answers:
            question, answer = row.question(), json.loads(event.answer or "null")
            given = {"id": question_id(row.id), "x": row.x, "person": event.person, "at": event.at, "answer": answer}
            given["kind"] = row.kind
            if row.kind == "label" and W is not None:
                if row.x not in outputs:
                    outputs[row.x] = self._auditor.one(W, row.x)
                model = self.contents.serving.label_in(self.contents.task, question, outputs[row.x])
            else:
                first, second = (self.learner.probability(question, each) for each in ("first", "second"))
                model = "first" if first >= second else "second"
            place = {"place": row.audit, "first": question.numbers[0], "last": question.numbers[2]}
            yield {**given, **place, "model": model}

    def _audited(self) -> dict[str, Any] | None:
        """Ties say nothing of which is better, so they are left out. Worth a few milliseconds every other second."""
        if not (self.log.meta["audit"] or self.log.meta.get("audit_whole")):
            return None
        at, found = self._audit_seen
        if self.clock() - at < _AUDIT_SECONDS:
            return found
        rows = [row for row in self.audit_table() if row["answer"] != "tie"]
        parts = [row for row in rows if row["place"] < self.log.meta.get("audit_parts", math.inf)]
        about = self.contents.settings.about
        labels = len(self.offered.get(("label", about), ())) or 2
        found = audited(parts, labels)
        if found["majority"] is not None:
            found["majority"]["name"] = self._called(found["majority"]["label"])
        found["spans"] = self._audited_whole(rows)
        self._audit_seen = self.clock(), found
        return found

    def _called(self, label: str) -> str:
        """A label as people read it."""
        words = getattr(self.contents.serving, "choice_words", None)
        return label if words is None else str(words(self.contents.task, [label]).get(label, label))

    def _audited_whole(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
        """Spans of the sentences that people have said everything of, against the present model's: what was counted,
        then precision, recall and F1 with their intervals."""
        said: dict[int, dict[int, list[dict[str, Any]]]] = {x: {} for x in self.log.meta.get("audit_inputs", ())}
        for row in rows:
            if row["x"] in said:
                said[row["x"]].setdefault(row["first"], []).append(row)
        lengths = self.learner.problem.output_start
        found = [
            self._audited_sentence([each[i] for i in range(len(each))])
            for x, each in said.items()
            if len(each) == lengths[x + 1] - lengths[x]
        ]
        if not found:
            return None
        counted = {name: sum(getattr(each, name) for each in found) for name in ("correct", "predicted", "gold")}
        counted |= {"sentences": len(found), "twice": sum(each.second is not None for each in found)}
        return {**counted, **{name: each.as_dict() for name, each in span_shares(found).items()}}

    def _audited_sentence(self, tokens: Sequence[Sequence[dict[str, Any]]]) -> SpanCounts:
        """``tokens``: of each what one person or two said of it, and what the model says."""
        spans = self.contents.serving.chunks_in
        theirs, ours = (set(spans([each[0][name] for each in tokens])) for name in ("answer", "model"))
        twice = all(len(each) > 1 for each in tokens)
        return span_counts(theirs, ours, set(spans([each[1]["answer"] for each in tokens])) if twice else None)


def _iso(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
