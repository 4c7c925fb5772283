"""What is known of how good the model and the annotators are, without gold.

    quality = Quality(contents, store, queue, model, presentation)
    quality.audit()                     # the model's accuracy by the audit set, with intervals: plain values
    quality.estimate(believe)           # who errs how often, from all answers so far; slow, without the session's lock
    quality.error_of(person, "part")    # (a yes that is wrong, a no that is wrong), as learning believes
    Evaluator(...)                      # looks at the model now and then, in a thread of its own that nobody waits for

The model is measured by an audit set that is drawn first, asked blind and never learned from. All audited parts so far
are scored again with the present model, so n of them are n independent throws with its agreement with people as the
chance. How often people err there is known only of parts that two were asked about: the errors found from other answers
are those of yes and no to questions that the model is unsure of.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import random
import secrets
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.kernels.codes import NOT_SAID
from sparsezo.learner import Decoder
from sparsezo.raters import parse_error
from sparsezo.serve import statistics
from sparsezo.serve.folder import Contents
from sparsezo.serve.lease_queue import LeaseQueue
from sparsezo.serve.online_model import OnlineModel
from sparsezo.serve.presentation import Presentation, question_id
from sparsezo.serve.statistics import ENOUGH_TWICE, ErrorRates, ReviewCounts, Share, SpanCounts
from sparsezo.serve.stopping import MINUTES, Stopping, pace
from sparsezo.serve.store import BELIEF, RETRACTION, AuditRow, EventRow, LookRow, QuestionRow, Store
from sparsezo.tasks.base import AnyArray, Json
from sparsezo.tasks.serving import Part
from sparsezo.training import HeldOut

LEAST_PEOPLE = 3  # two who differ do not say who errs
LEAST_TWICE = 30  # questions that more than one person answered, before any rate is believed
_LEAST_RATE, _MOST_RATE = 0.005, 0.45  # that is believed of anybody
AUDITED = "accuracy (audit)"  # what the curve is of where there is no dev
_FIRST, _GROWTH = 25, 1.1  # answers between looks: 25 at first, then a tenth more each time
FIRST_REVIEWS = 5  # likewise, of whole sentences
_SHARE = 0.1  # of the time that looking may take, since it takes it from those who answer
_MOST_REST = 10.0  # seconds between looks: one may have waited for a compiler
_MOVED = 0.01  # a rate that has changed by less is not worth an event
_AUDIT_SECONDS = 2.0  # between two looks at the audit set
_LEAST_AHEAD = 100  # answers that a forecast looks ahead
_LEAST_AUDITS = 10  # before the curve has the audit's accuracy
_LEAST_TAUGHT, _LOOKED_AT = 100, 500  # answers before a model that tags nothing is remarkable; inputs to say so


class Quality:
    """Measures a session's model and annotators. The model's lock is held where the queue is read."""

    def __init__(
        self,
        contents: Contents,
        store: Store,
        queue: LeaseQueue,
        model: OnlineModel,
        presentation: Presentation,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._contents, self._store, self._queue, self._model = contents, store, queue, model
        self._presentation, self._clock = presentation, clock
        self.beliefs: dict[int, tuple[float, float]] = {}
        self.grades = Grades()
        self.estimated = Estimated()
        self.warning: str | None = None  # for whoever runs the session
        self._read: list[tuple[EventRow, QuestionRow]] = []  # answers that were estimated from
        self._auditing = threading.Lock()
        self._decoder = Decoder(model.learner.problem)  # with scratch of its own: others decode meanwhile
        self._audit_seen: tuple[float, Json | None] = (-_AUDIT_SECONDS, None)
        self._foreseen: tuple[object, Json | None, Json | None] = (None, None, None)
        self.stopping = Stopping(store.rows(LookRow))
        self.sentences: list[SpanCounts] = []  # those that people have said everything of, as the last audit found them

    # Annotators

    def take(self, event: EventRow) -> None:
        """One more event, in the order of the store: a belief about an annotator, or a grade that they gave."""
        if event.kind == "rate":
            said, by = event, 1
            if event.what == RETRACTION:
                history = reversed(self._queue.history[event.person])
                said, by = next(each for each in history if each.seq == event.undoes), -1
            self.grades.add(event.person, float(said.answer or 0), by)
        elif event.what == BELIEF and event.e0 is not None and event.e1 is not None:
            self.beliefs[event.person] = event.e0, event.e1

    def error_of(self, person: int, kind: str) -> tuple[float, float]:
        return error_for(kind, self.beliefs.get(person, parse_error(self._contents.settings.rater_error)))

    def about(self, person: int) -> Json:
        """How a person does, where that is known: their agreement with others, e0 (a wrong yes; of reviews, a wrong tag
        left standing) and e1 (a wrong no; of reviews, a wrong tag set by hand), with their intervals; of reviews also
        the share of what is wrong that they overlook."""
        agreement: Json = {"agreement": self.estimated.agreement.get(person)}
        if (missed := self.estimated.overlooked.get(person)) is not None:
            agreement["overlooked"] = missed.as_dict()
        rates = self.estimated.rates.get(person) if self.estimated.known else None
        if rates is None:
            return {**agreement, "e0": None, "e1": None}
        intervals = {"e0_interval": [rates.e0.low, rates.e0.high], "e1_interval": [rates.e1.low, rates.e1.high]}
        return {**agreement, "e0": rates.e0.value, "e1": rates.e1.value, **intervals}

    def estimate(self, believe: Callable[[int, float, float], object]) -> float | None:
        """Estimate from all answers so far, and tell ``believe(person, e0, e1)`` what learning should believe of whom.

        Returns the model's agreement with the audit, None where hardly anything was audited. What is believed changes
        by events, so that a replay knows of it.
        """
        self._read += self._store.answers(self._read[-1][0].seq if self._read else 0)
        with self._model.lock:
            undone, believed = set(self._queue.undone), dict(self.beliefs)
        self._read = [pair for pair in self._read if pair[0].seq not in undone]
        counted = [pair for pair in self._read if pair[1].audit is None]
        if self._contents.settings.rule == "review":
            self.estimated = self._of_reviews(counted)
        else:
            self.estimated = estimated(counted)
        for person, (e0, e1) in self.estimated.beliefs(believed).items():
            believe(person, e0, e1)
        self._audit_seen = -_AUDIT_SECONDS, None
        self.warning = self.nothing_tagged()
        found = self.audit()
        if found is None or found["asked"] < _LEAST_AUDITS:
            return None
        return float(found["agreed"] / found["asked"])  # as counted: a correction that sets in would be no progress

    def _of_reviews(self, answers: Sequence[tuple[EventRow, QuestionRow]]) -> Estimated:
        reviews = []
        for event, row in answers:
            if row.decides is not None:  # who decides has seen both
                continue
            output, how = self._presentation.left(row, event)
            number = row.id if row.again is None else row.again
            suggested = row.question().outputs[0]
            reviews.append(Review(number, event.person, suggested, output, how != NOT_SAID, bool(row.twice)))
        tags = list(self._contents.serving.answer_labels(self._contents.task))
        return estimated_reviews(reviews, lambda output: self._spans(tags, output))

    def _spans(self, tags: Sequence[str], output: NDArray[np.int32]) -> set[tuple[int, int, str]]:
        """Of an output; where there are none, of each token its tag."""
        named = [tags[k] for k in output.tolist()]
        if not self._contents.has_chunks:
            return {(i, i + 1, tag) for i, tag in enumerate(named)}
        return set(self._contents.serving.chunks_in(named))

    # The model

    def forecast(self, curve: Sequence[Sequence[float]]) -> Json | None:
        """What half as many answers more would bring; made anew when the curve is."""
        return self._forecasts(curve)[1]

    def stop(self, curve: Sequence[Sequence[float]], metric: str) -> Json | None:
        """How good the model is at least, and what half an hour more would bring to the ``metric`` of the curve."""
        return self.stopping.status(self._forecasts(curve)[2], metric)

    def _forecasts(self, curve: Sequence[Sequence[float]]) -> tuple[object, Json | None, Json | None]:
        key = len(curve), curve[-1][0] if curve else 0
        if self._foreseen[0] != key:
            n, values = [point[0] for point in curve], [point[1] for point in curve]
            made = statistics.forecast(n, values, max(_LEAST_AHEAD, self._queue.answers // 2))
            speed = pace(sorted(self._queue.times_since(None, -math.inf)))
            soon = None if speed is None else statistics.forecast(n, values, max(1, round(MINUTES * speed)))
            self._foreseen = key, made, soon
        return self._foreseen

    def look(self) -> list[tuple[str, float]]:
        """A look at the audit that counts, where one is due: what the store should have of it (see ``stopping``)."""
        audit = self.audit()
        return self.stopping.look(self._queue.answers, audit, self.sentences)

    def nothing_tagged(self) -> str | None:
        """What to say where the model of many answers finds no span in any input that is looked at."""
        contents, n = self._contents, len(self._contents.data)
        answers, W = self._model.weights()
        if not contents.has_chunks or answers < _LEAST_TAUGHT:
            return None
        outside = len(contents.serving.answer_labels(contents.task)) - 1
        for x in range(0, n, max(1, n // _LOOKED_AT)):
            with self._auditing:
                if (self._decoder.one(W, x) != outside).any():
                    return None
        return (
            f"After {answers:,} answers the model finds nothing in {min(n, _LOOKED_AT):,} {contents.kind.inputs}. "
            "Export the answers: was anything said to be there? If hardly anything was, the texts may have little of "
            "these types: give texts that have more, a list of known names with --gazetteer, or labelled examples with "
            "--init-labels. If much was, see whether people mark whole names, and what --tags calls the types."
        )

    def audit_table(self) -> list[Json]:
        """Every answer to an audit question beside what the present model says of the same part."""
        with self._model.lock:
            answers = [(event, self._queue.row(event.question or 0)) for event in self._queue.audit_answers()]
        if not answers:
            return []
        with self._auditing:  # and without the lock: those who answer need not wait for it
            W = self._model.weights()[1]
            decoded = functools.cache(lambda x: self._decoder.one(W, x))  # of some sentences every token is asked about
            return [self._audit_row(event, row, decoded) for event, row in answers]

    def _audit_row(self, event: EventRow, row: QuestionRow, decoded: Callable[[int], NDArray[np.int32]]) -> Json:
        contents, learner, question = self._contents, self._model.learner, row.question()
        if row.kind == "label":
            model = contents.serving.label_in(contents.task, question, decoded(row.x))
        else:
            first, second = (learner.probability(question, each) for each in ("first", "second"))
            model = "first" if first >= second else "second"
        given = {"id": question_id(row.id), "x": row.x, "person": event.person, "at": event.at}
        place = {"place": row.audit, "first": question.numbers[0], "last": question.numbers[2]}
        return {**given, "answer": event.said(), "kind": row.kind, **place, "model": model}

    def audit(self) -> Json | None:
        """The audit's figures, at most some seconds old; None where there is no audit set.

        Ties say nothing of which is better, so they are left out.
        """
        meta = self._store.meta
        if not (meta["audit"] or meta.get("audit_whole")):
            return None
        at, found = self._audit_seen
        if self._clock() - at < _AUDIT_SECONDS:
            return found
        rows = [row for row in self.audit_table() if row["answer"] != "tie"]
        parts = [row for row in rows if row["place"] < meta.get("audit_parts", math.inf)]
        labels = self._presentation.offered.get(("label", self._contents.settings.about), ())
        found = audited(parts, len(labels) or 2)
        if (most := found["majority"]) is not None:
            most["name"] = self._presentation.names([most["label"]]).get(most["label"], most["label"])
        found["spans"] = self._audited_whole(rows)
        self._audit_seen = self._clock(), found
        return found

    def _audited_whole(self, rows: Sequence[Json]) -> Json | None:
        """Spans of the sentences that people have said everything of, against the present model's: what was counted,
        then precision, recall and F1 with their intervals."""
        said: dict[int, dict[int, list[Json]]] = {x: {} for x in self._store.meta.get("audit_inputs", ())}
        for row in rows:
            if row["x"] in said:
                said[row["x"]].setdefault(row["first"], []).append(row)
        start = self._model.learner.problem.output_start
        found = [
            self._audited_sentence([each[i] for i in range(len(each))])
            for x, each in said.items()
            if len(each) == start[x + 1] - start[x]
        ]
        self.sentences = found
        if not found:
            return None
        counted = {name: sum(getattr(each, name) for each in found) for name in ("correct", "predicted", "gold")}
        counted |= {"sentences": len(found), "twice": sum(each.second is not None for each in found)}
        return {**counted, **{name: each.as_dict() for name, each in statistics.span_shares(found).items()}}

    def _audited_sentence(self, tokens: Sequence[Sequence[Json]]) -> SpanCounts:
        """``tokens``: of each what one person or two said of it, and what the model says."""
        spans = self._contents.serving.chunks_in
        theirs, ours = (set(spans([each[0][name] for each in tokens])) for name in ("answer", "model"))
        twice = all(len(each) > 1 for each in tokens)
        again = set(spans([each[1]["answer"] for each in tokens])) if twice else None
        return statistics.span_counts(theirs, ours, again)


def audited(rows: Sequence[Json], labels: int) -> Json:
    """The figures of an audit set: each row is an answer (``place``, ``answer``) beside what the ``model`` says now.

    labels: how many there are to name. ``agreed``: where the model says what the person said who answered first.
    ``twice``: the parts that a second person answered, in how many the two said the ``same``, in how many just one
    agreed with the model (``split``). The accuracy and its interval: see ``statistics.accuracy``.
    """
    said: dict[int, list[Json]] = defaultdict(list)
    for row in rows:
        said[row["place"]].append(row)
    first = [each[0] for each in said.values()]
    pairs = [each[:2] for each in said.values() if len(each) > 1]
    n, agreed = len(first), sum(row["answer"] == row["model"] for row in first)
    same = sum(one["answer"] == other["answer"] for one, other in pairs)
    split = sum((one["answer"] == one["model"]) != (other["answer"] == other["model"]) for one, other in pairs)
    known = (agreed, n, len(pairs), split, labels)
    once, always = statistics.accuracy(*known), statistics.accuracy(*known, always=True)
    usual = Counter(row["answer"] for row in first if row.get("kind") == "label").most_common(1)
    return {
        "asked": n,
        "agreed": agreed,
        "majority": {"label": usual[0][0], "agreed": usual[0][1]} if usual else None,
        "twice": {"asked": len(pairs), "same": same, "split": split, "enough": ENOUGH_TWICE},
        "corrected": len(pairs) >= ENOUGH_TWICE,
        "accuracy": once.value if n else None,
        "low": once.low,
        "high": once.high,
        "always_low": always.low,
        "always_high": always.high,
    }


# Annotators


def error_for(kind: str, error: tuple[float, float]) -> tuple[float, float]:
    """What (e0, e1) mean for answers of a kind: only yes and no, and reviews, have two rates, and a grade none."""
    mean = sum(error) / 2
    return error if kind in ("part", "review") else (0.0, 0.0) if kind == "rate" else (mean, mean)


@dataclass(frozen=True)
class Estimated:
    """rates: by person; agreement: the share of questions asked of others, too, on which all others agree."""

    rates: dict[int, ErrorRates] = field(default_factory=dict)
    agreement: dict[int, float] = field(default_factory=dict)
    alpha: float | None = None
    twice: int = 0  # questions that more than one person answered
    overlooked: dict[int, Share] = field(default_factory=dict)  # by person, of reviews: of what is wrong
    least_people: int = LEAST_PEOPLE
    of_spans: float | None = None  # of reviews: F1 of one person's spans to another's, over all sentences of two

    @property
    def known(self) -> bool:
        """Whether there is enough to say who errs how often."""
        return len(self.rates) >= self.least_people and self.twice >= LEAST_TWICE

    def beliefs(self, believed: dict[int, tuple[float, float]]) -> dict[int, tuple[float, float]]:
        """What learning should believe from now on, of those about whom it changes."""
        if not self.known:
            return {}
        found = {}
        for person, each in self.rates.items():
            e0, e1 = (round(min(max(rate.value, _LEAST_RATE), _MOST_RATE), 4) for rate in (each.e0, each.e1))
            before = believed.get(person)
            if before is None or max(abs(e0 - before[0]), abs(e1 - before[1])) >= _MOVED:
                found[person] = e0, e1
        return found


def estimated(answers: Sequence[tuple[EventRow, QuestionRow]]) -> Estimated:
    """How far people agree and how often each errs. ``answers``: those that count, audits left out."""
    said: dict[int, dict[int, bool]] = defaultdict(dict)  # question -> person -> whether what is shown is right
    believed: dict[int, float] = {}
    drawn: set[int] = set()  # to be asked twice; others were because a program's answer was doubted
    for event, row in answers:
        yes = agrees(event, row)
        if yes is not None and row.believed is not None:
            number = row.id if row.again is None else row.again
            said[number][event.person] = yes
            believed.setdefault(number, row.believed)
            if row.twice:
                drawn.add(number)
    people = sorted({person for each in said.values() for person in each})
    several = sum(len(each) > 1 for each in said.values())
    rates: list[ErrorRates] = []
    if len(people) >= LEAST_PEOPLE and several >= LEAST_TWICE:
        place = {person: k for k, person in enumerate(people)}
        rows = [(place[person], k, yes) for k, each in enumerate(said.values()) for person, yes in each.items()]
        person, question, yeses = (np.array(column) for column in zip(*rows, strict=True))
        rates = statistics.error_rates(person, question, yeses, np.array(list(believed.values())), len(people))
    # rates are right however questions were chosen by what is known; how often people agree is so only of a sample
    twice = [each for number, each in said.items() if len(each) > 1 and number in drawn]
    same: Counter[int] = Counter()
    asked: Counter[int] = Counter()
    for each in twice:
        for who, yes in each.items():
            asked[who] += 1
            same[who] += all(other == yes for another, other in each.items() if another != who)
    agreement = {who: same[who] / n for who, n in asked.items()}
    shared = statistics.alpha([list(each.values()) for each in twice])
    return Estimated(dict(zip(people, rates, strict=False)), agreement, shared, several)


class Review(NamedTuple):
    """One person's, of one sentence."""

    question: int  # asked of two people it is the same
    person: int
    suggested: NDArray[np.int32]
    output: NDArray[np.int32]  # as it was left
    said: NDArray[np.bool_]  # whether anything is said of each token
    drawn: bool = False  # to be asked of a second person, whatever was answered


def estimated_reviews(
    reviews: Sequence[Review], spans: Callable[[NDArray[np.int32]], Set[tuple[int, int, str]]]
) -> Estimated:
    """How far people agree, span by span, and what each overlooks, from sentences drawn for two to review: those that
    a person was shown because a program's review was doubted are no sample.

    Two people are enough: what is changed by hand is seldom wrong, so where only one has changed something, it is the
    other who has overlooked it.
    """
    by_question: dict[int, dict[int, Review]] = defaultdict(dict)
    changed: Counter[int] = Counter()
    tokens: Counter[int] = Counter()
    for each in reviews:
        by_question[each.question][each.person] = each
        changed[each.person] += int(((each.output != each.suggested) & each.said).sum())
        tokens[each.person] += int(each.said.sum())
    pairs = [list(each.values()) for each in by_question.values() if len(each) > 1]
    twice = [pair for pair in pairs if any(each.drawn for each in pair)]
    counts: dict[int, ReviewCounts] = defaultdict(ReviewCounts)
    same: Counter[int] = Counter()
    all_spans: Counter[int] = Counter()
    units: list[list[int]] = []
    for pair in twice:
        units += np.stack([each.output for each in pair], axis=1)[np.all([each.said for each in pair], axis=0)].tolist()
        for mine, other in itertools.permutations(pair, 2):
            found = _review_counts(mine, other)
            counts[mine.person] = ReviewCounts(*(a + b for a, b in zip(counts[mine.person], found, strict=True)))
            ours, theirs = spans(mine.output), spans(other.output)
            same[mine.person] += 2 * len(ours & theirs)
            all_spans[mine.person] += len(ours) + len(theirs)
    rates = {who: statistics.review_rates(each, changed[who] / max(tokens[who], 1)) for who, each in counts.items()}
    missed = {who: statistics.overlooked(each) for who, each in counts.items()}
    agreement = {who: same[who] / n for who, n in all_spans.items() if n}
    both = sum(all_spans.values())
    of_spans = sum(same.values()) / both if both else None
    return Estimated(rates, agreement, statistics.alpha(units), len(twice), missed, least_people=2, of_spans=of_spans)


def _review_counts(mine: Review, other: Review) -> ReviewCounts:
    both_say = mine.said & other.said
    theirs = (other.output != other.suggested) & both_say
    found = different = runs = 0
    edges = np.flatnonzero(np.diff(np.concatenate([[False], theirs, [False]]).astype(np.int8)))
    for first, end in edges.reshape(-1, 2).tolist():
        runs += 1
        changed = mine.output[first:end] != mine.suggested[first:end]
        if changed.any():
            found += 1
            different += bool((mine.output[first:end] != other.output[first:end])[changed].any())
    return ReviewCounts(runs, found, different)


def agrees(event: EventRow, row: QuestionRow) -> bool | None:
    """Whether the answer says that what is shown is right; None where it says nothing of the kind."""
    if row.kind == "pair":
        return {"first": True, "second": False}.get(str(event.said()))
    if row.kind == "best":  # what is shown to be right is the model's own best: one of two that differ may be no error
        return bool(event.said() == str(row.question().numbers[1] + 1))
    if row.kind in ("part", "span"):
        return bool(event.said() == "yes")  # a label or another span was named instead: what is shown is not right
    return None


_AS_EVERYBODY = 10.0  # grades like everybody's that each person begins with
_LEAST_GRADES = 20  # in all, before anything is changed
_LEAST_SPREAD = 0.05


class Grades:
    """Grades on one scale: some people never give a 5, some give little else.

    A person's losses are moved and stretched to the mean and the spread of all. Of somebody who has said little, little
    is believed: as if some grades like everybody's had come first.
    """

    def __init__(self) -> None:
        self._of: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])  # count, sum, sum of squares

    def add(self, person: int, loss: float, by: int = 1) -> None:
        """One more grade, as a loss; ``by`` -1: one that was taken back."""
        mine = self._of[person]
        for k, value in enumerate((1.0, loss, loss * loss)):
            mine[k] += by * value

    def standard(self, person: int, loss: float) -> float:
        """A person's loss as everybody together would have it."""
        total = [sum(each[k] for each in self._of.values()) for k in range(3)]
        people = sum(each[0] > 0 for each in self._of.values())
        if total[0] < _LEAST_GRADES or people < 2:
            return loss
        mean, spread = _moments(total)
        usual = [_AS_EVERYBODY * value for value in (1.0, mean, spread * spread + mean * mean)]
        mine = self._of.get(person, [0.0, 0.0, 0.0])
        my_mean, my_spread = _moments([a + b for a, b in zip(mine, usual, strict=True)])
        return min(1.0, max(0.0, mean + (loss - my_mean) * spread / my_spread))


def _moments(sums: list[float]) -> tuple[float, float]:
    """(mean, standard deviation)"""
    mean = sums[1] / sums[0]
    return mean, max(_LEAST_SPREAD, math.sqrt(max(0.0, sums[2] / sums[0] - mean * mean)))


# The audit set


def drawn_audit_set(
    contents: Contents, audit: int, whole: int = 0, answered: Collection[int] = ()
) -> tuple[Json, list[AuditRow]]:
    """(what the store says of it, the audit set): ``audit`` parts at random, and all parts of ``whole`` sentences.

    ``answered``: inputs that the model has learned from already, which are left out.
    """
    seed = secrets.randbits(32)
    chance = random.Random(seed)
    n, wanted = len(contents.data), audit
    while True:  # more are drawn until there are enough, or no more
        drawn: list[Part] = contents.serving.audit_parts(contents.task, contents.data, wanted, chance)
        parts = [part for part in drawn if part[0] not in answered]
        if not answered or len(parts) >= audit or len(drawn) < wanted:
            break
        wanted *= 2
    if answered:
        parts = parts[:audit]
    inputs: list[int] = []
    if whole:
        if not contents.has_chunks:
            raise UsageError(f"`audit_whole` {whole}: only chunks are counted in whole sentences; leave it out")
        there = [x for x in range(n) if x not in answered]
        inputs = sorted(chance.sample(there, min(whole, len(there))))
    known = {(x, *numbers) for x, numbers, _ in parts}  # they are asked about anyway
    more = [part for part in contents.serving.parts_of(contents.data, inputs) if (part[0], *part[1]) not in known]
    set_aside = {x for x, _, _ in parts} | {*inputs}
    if len(set_aside) > n // 2:
        named = f"`audit` {audit}" + (f" and `audit_whole` {whole}" if whole else "")
        raise UsageError(
            f"{named}: {len(set_aside):,} of {n:,} inputs would be set aside; half must be left to learn from"
        )
    rows = [
        AuditRow(place, x, json.dumps(numbers), json.dumps(outputs))
        for place, (x, numbers, outputs) in enumerate([*parts, *more])
    ]
    meta = {"audit": audit, "audit_whole": whole, "audit_parts": len(parts), "audit_inputs": inputs}
    return {**meta, "audit_seed": seed}, rows


# The learning curve


class Evaluator:
    """Draws the learning curve, in a thread of its own that nobody waits for.

    looks: the curve so far. weights: gives (answers, a copy of the weights). keep: puts a look, (answers, metric,
    value), into the store, and says of what time. estimate: a value that the curve has where there is no dev; None
    where nothing is known. minutes: of people's time until a moment. first: answers between the first looks.
    """

    def __init__(
        self,
        metric: str,
        dev: HeldOut | None,
        looks: list[LookRow],
        weights: Callable[[], tuple[int, AnyArray]],
        keep: Callable[[int, str, float], float],
        estimate: Callable[[], float | None],
        minutes: Callable[[float], float],
        first: int = _FIRST,
    ) -> None:
        self._weights, self._keep, self._estimate, self._first = weights, keep, estimate, first
        self.metric, self._dev = metric, dev
        self._minutes = minutes
        # [answers, value, minutes] of each look
        self.curve: list[list[float]] = [
            [look.answers, look.value, minutes(look.at)] for look in looks if look.metric == metric
        ]
        self._wake, self._stopped = threading.Event(), threading.Event()
        self._looked = -1  # how many answers there were at the last look
        self._thread = threading.Thread(target=self._work, name="sparsezo evaluation", daemon=True)
        self._thread.start()
        self._wake.set()

    def newest(self) -> float | None:
        return self.curve[-1][1] if self.curve and self._dev is not None else None

    def answered(self, answers: int) -> None:
        """There are so many answers now: look again, where that is due."""
        if self._due(answers):
            self._wake.set()

    def _due(self, answers: int) -> bool:
        last = self._looked
        return last < 0 or answers >= max(last + self._first, _GROWTH * last) or answers < last

    def _work(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stopped.is_set():
                return
            answers, W = self._weights()
            if not self._due(answers):
                continue
            began = time.monotonic()
            try:
                value = None if self._dev is None else self._dev.value(W)
                estimated = self._estimate()
                self._looked = answers
                value = estimated if self.metric == AUDITED else value
                if value is not None and not self._stopped.is_set():
                    spent = self._minutes(self._keep(answers, self.metric, value))
                    self.curve = [*(each for each in self.curve if each[0] < answers), [answers, value, spent]]
            except SparsezoError:
                return  # the session has ended
            self._stopped.wait(min(_MOST_REST, (time.monotonic() - began) * (1 - _SHARE) / _SHARE))

    def stop(self) -> None:
        """End the thread, after the look that is being made."""
        self._stopped.set()
        self._wake.set()
        self._thread.join()
