"""Quality against the minutes that people spent, of a session's own log.

spent = Minutes()
spent.take(event)                       # every event, in the log's order
spent.at(time)                          # minutes until then, of all people together
looks = session_minutes("np.serve")     # [Look(minutes, answers, metric, value), ...] that the session made
looks = session_minutes("np.serve", dev)    # the same on held-out data, by learning from the log anew
write_minutes(looks, Path("minutes.png"))   # and minutes.csv beside it
"""

from __future__ import annotations

import contextlib
import copy
import csv
import io
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sparsezo.errors import DataError, UsageError
from sparsezo.query_learner import QueryLearner
from sparsezo.serve.folder import open_store, read
from sparsezo.serve.online_model import FINISH, Lessons
from sparsezo.serve.seconds import measured
from sparsezo.serve.stopping import AT_LEAST
from sparsezo.serve.store import ANSWER, EventRow, LookRow
from sparsezo.storage.files import atomic_write
from sparsezo.training import HeldOut

AXIS = "minutes that people spent, as measured"
_LOOKS = 20  # at held-out data, further and further apart
_GROWTH = 1.25
_FORMATS = (".png", ".svg", ".pdf")


class Look(NamedTuple):
    """How good the model was after so much of people's time."""

    minutes: float
    answers: int
    metric: str
    value: float


class Minutes:
    """What all people together have spent on answers, those taken back and audits included."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._spent: list[float] = [0.0]

    def take(self, event: EventRow) -> None:
        """One more event; of answers without seconds nothing is known, and nothing is added."""
        if event.what == ANSWER and (seconds := measured(event)):
            self._times.append(max(event.at, self._times[-1]) if self._times else event.at)  # a clock may go back
            self._spent.append(self._spent[-1] + seconds / 60)

    def at(self, time: float) -> float:
        """Minutes spent until then."""
        return self._spent[bisect_right(self._times, time)]

    @property
    def total(self) -> float:
        return self._spent[-1]


def session_minutes(folder: Path, dev: str | None = None, **options: str | None) -> list[Look]:
    """What the session saw of its own model while people answered; of ``dev``, a labelled file, what the models of its
    log show on that (``options``: how it is read)."""
    with contextlib.closing(open_store(folder)) as store:
        spent = Minutes()
        for event in store.events():
            spent.take(event)
        if not spent.total:
            raise DataError(str(store.path), "no answer says how many seconds it took, so there are no minutes to draw")
        if dev is None:
            looks = [look for look in store.rows(LookRow) if not look.metric.endswith(AT_LEAST)]
            if not looks:
                raise DataError(
                    str(store.path), "nothing has been measured yet; give labelled data with `dev`, or audit more"
                )
            metric = looks[-1].metric
            return [
                Look(spent.at(each.at), each.answers, metric, each.value) for each in looks if each.metric == metric
            ]
        contents = read(folder)
        held = HeldOut(contents.task, contents.kind.read(contents.task, dev, dict(options)))
        problem = contents.task.problem(contents.data, asks=True)
        answers = list(store.answers_to_learn())
        wanted = _places(len(answers))
        learner = QueryLearner(problem, contents.settings, contents.W)
        found = [Look(0.0, 0, contents.task.metric, held.value(learner.weights()))]
        lessons = Lessons(learner)
        for k, (event, row) in enumerate(answers, start=1):
            lessons.learn(event, row)
            if k in wanted:
                shown = learner
                if contents.settings.rule == "review":  # as it would be exported then
                    shown = copy.copy(learner)
                    shown.finish(FINISH)
                found.append(Look(spent.at(event.at), k, contents.task.metric, held.value(shown.weights())))
        return found


def _places(n: int) -> set[int]:
    """Numbers of answers to look at, the last among them."""
    found, at = {n}, float(n)
    while at > 1 and len(found) < _LOOKS:
        at /= _GROWTH
        found.add(max(1, round(at)))
    return found


def write_minutes(looks: Sequence[Look], path: Path) -> None:
    """A figure, and the numbers as CSV beside it."""
    from sparsezo.study.reports.figures import drawing_style, new_sheet

    if path.suffix.lower() not in _FORMATS:
        raise UsageError(f"{path}: a figure ends in {', '.join(_FORMATS)}")
    x, y = [look.minutes for look in looks], [look.value for look in looks]
    with drawing_style():
        last = looks[-1]
        mark = f"session's own log|answers:{last.answers}|minutes:{last.minutes:.1f}"
        drawing, axes = new_sheet(3.2, 0, mark)
        axes.plot(x, y, marker="o", markersize=3, color="#0b5cad")
        axes.set_xlabel(AXIS)
        axes.set_ylabel(last.metric)
        made = io.BytesIO()
        drawing.savefig(made, format=path.suffix[1:].lower(), dpi=150)
    table = io.StringIO(newline="")
    rows = csv.writer(table)
    rows.writerow(Look._fields)
    rows.writerows((f"{look.minutes:.4f}", look.answers, look.metric, f"{look.value:.6f}") for look in looks)
    for place, content in ((path, made.getvalue()), (path.with_suffix(".csv"), table.getvalue().encode("utf-8"))):
        with atomic_write(place) as out:
            out.write(content)
