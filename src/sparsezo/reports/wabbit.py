"""Our learner beside Vowpal Wabbit on the same documents: average loss on the way, accuracy on test in the end.

part = wabbit_part(experiment, lines(experiment))
part.table, part.findings, part.gaps                # no table, and a gap that says why, where it was not run
part.records                                        # for programs: a row for each of its ways and each look
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sparsezo.errors import DamagedError
from sparsezo.experiments.wabbit import read_wabbit
from sparsezo.reports.answers import Line
from sparsezo.reports.render import PlainTable
from sparsezo.reports.results import ReportedExperiment, Spread
from sparsezo.reports.tables import spread_text

RIVAL = "Vowpal Wabbit:"  # what titles of its records begin with
_COLUMNS = 3  # looks that the table shows, the last ones


@dataclass(frozen=True)
class WabbitPart:
    table: PlainTable | None = None
    findings: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class _Row:
    name: str
    losses: list[Spread | None]  # at every look
    test: Spread | None

    @property
    def last(self) -> Spread | None:
        return self.losses[-1]


def wabbit_part(experiment: ReportedExperiment, shown: Sequence[Line]) -> WabbitPart:
    if not experiment.declared.get("rivals"):
        return WabbitPart()
    try:
        found = read_wabbit(experiment.folder)
    except DamagedError as error:
        return WabbitPart(gaps=[f"{error}."])
    if found is None:
        return WabbitPart(
            gaps=["There is nothing of Vowpal Wabbit: it was not installed (pip install vowpalwabbit), or failed."]
        )
    looks: list[int] = found["looks"]
    rates: dict[str, float] = found["rates"]
    theirs = [
        _Row(
            f"{name}, -l {rates[name]:g}" if name in rates else name,
            [Spread(tuple(run["average_loss"][k] for run in runs)) for k in range(len(looks))],
            Spread(tuple(run["test"] for run in runs)) if runs[0]["test"] is not None else None,
        )
        for name, runs in found["rivals"].items()
    ]
    theirs.sort(key=lambda row: row.last.mean if row.last else 1.0)
    ours = [
        _Row(line.title, [line.at("average_loss", look) for look in looks], line.at("test", looks[-1]))
        for line in _comparable(shown)
    ]
    head = ("learner", *(f"average loss at {look:,}" for look in looks[-_COLUMNS:]), "test accuracy at the end")
    rows = [*_texts("sparsezo", ours), *_texts(f"Vowpal Wabbit {found['version']}", theirs)]
    return WabbitPart(
        PlainTable(head, rows),
        _findings(ours, theirs, looks[-1], found["documents"], bool(rates)),
        records=[_record(row, look, k, len(looks)) for row in theirs for k, look in enumerate(looks)],
    )


def _record(row: _Row, look: int, k: int, looks: int) -> dict[str, Any]:
    """Test is known at the last look alone."""
    loss, test = row.losses[k], row.test if k == looks - 1 else None
    return {
        "learner": f"vowpalwabbit {row.name}",
        "title": f"{RIVAL} {row.name}",
        "answers": look,
        "test_mean": test.mean if test else None,
        "test_sd": test.sd if test else None,
        "average_loss_mean": loss.mean if loss else None,
        "average_loss_sd": loss.sd if loss else None,
        "seeds": len(loss.values) if loss else None,
    }


def _comparable(shown: Sequence[Line]) -> list[Line]:
    """Our learners that pass no document over and hear a right or wrong of each; part first."""
    cold = [line for line in shown if line.start is None and line.wrong == 0]
    part = [line for line in cold if line.learner.rule == "part" and line.variant == {"ask": "random"}]
    return part + [line for line in cold if line.learner.rule == "first-order"]


def _texts(whose: str, rows: Sequence[_Row]) -> list[tuple[str, ...]]:
    return [
        (f"{whose}: {row.name}", *(spread_text(each) for each in row.losses[-_COLUMNS:]), spread_text(row.test))
        for row in rows
    ]


def _findings(ours: Sequence[_Row], theirs: Sequence[_Row], shown: int, documents: int, tuned: bool) -> list[str]:
    mine, best = (rows[0].last if rows else None for rows in (ours, theirs))
    if mine is None or best is None or not best.mean:
        return []
    which = f"In one pass over {documents:,} documents" if shown == documents else f"Over the first {shown:,} documents"
    how = ", each with its best learning rate in other orders of them" if tuned else ""
    return [
        f"{which}, each shown once, a right or wrong for each and none passed over, {ours[0].name} has an average loss "
        f"of {spread_text(mine)}; of {len(theirs)} ways of Vowpal Wabbit{how}, the best on these ({theirs[0].name}) "
        f"has {spread_text(best)}: {mine.mean / best.mean:.2f} times."
    ]
