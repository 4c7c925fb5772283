"""Tables: of texts, as in Markdown and on pages, and Table 1 of the paper from an experiment's runs; and signatures.

table = make_table(experiment)
table.markdown()                       # for people; the best zeroth-order row in bold
table.records()                        # for programs: full precision, one dict for each row
signature(experiment, "tuned")         # task:chunking|data:conll2000|h:tuned|mu:tuned|seeds:0,1,2|...
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import cast

import numpy as np

from sparsezo.rules import RULES
from sparsezo.settings import AUTO
from sparsezo.study.reports.results import (
    BEST_FIRST,
    FEWEST,
    Fields,
    LearnerRuns,
    Record,
    ReportedExperiment,
    ReportedRun,
    Spread,
    finite,
)

BOUNDS = {"out-of-domain": 0.257, "in-domain": 0.284, "oracle": None}  # BLEU in the paper's Sec. 5
NOTHING = "-"
_TUNED = {"tuned": "tuned", "speed": "tuned for speed"}
_SPREADS = ("test", "dev", "average_loss", "map_average_loss", "best_iteration", "length_ratio", "update_fraction")


@dataclass(frozen=True)
class PlainTable:
    """A table of texts under one row of headings."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: tuple[int, ...] = ()  # columns to set flush left
    chosen: frozenset[int] = frozenset()  # rows in bold

    def markdown(self) -> Iterator[str]:
        """Its lines in Markdown, the first column flush left."""
        yield from _markdown_head(self.head)
        for row in self.rows:
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def _markdown_head(head: Sequence[str]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]


@dataclass(frozen=True)
class TableRow:
    group: str
    learner: str
    phase: str | None
    feedback: str | None = None
    seeds: tuple[int, ...] = ()
    iterations: int | None = None
    test: Spread | None = None
    dev: Spread | None = None
    paper: float | None = None
    h: float | str | None = None  # or auto
    mu: float | None = None
    gamma: float | None = None  # of the annealed criterion
    average_loss: Spread | None = None
    map_average_loss: Spread | None = None  # where average_loss is of risks: of the best outputs
    best_iteration: Spread | None = None
    us: float | None = None  # a step, of the fastest seed: the others shared the machine
    length_ratio: Spread | None = None
    update_fraction: Spread | None = None
    zeroth_order: bool = False
    best: bool = False  # of the zeroth-order rows
    marks: str = ""

    @property
    def difference(self) -> float | None:
        return self.test.mean - self.paper if self.test is not None and self.paper is not None else None


@dataclass(frozen=True)
class Table:
    experiment: str
    task: str
    metric: str
    title: str
    phase: str  # of most rows; others carry a mark
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...]
    signature: str
    groups: tuple[tuple[str, tuple[TableRow, ...]], ...]  # the rows under their headings

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(title for title, _ in self._columns())

    def cells(self, row: TableRow) -> tuple[str, ...]:
        return tuple(cell(row) for _, cell in self._columns())

    @property
    def ranked_by(self) -> str:
        """What the best is the best in: test, or dev where nothing was tested."""
        return "test" if self._has("test") or not self._has("dev") else "dev"

    def _columns(self) -> Iterator[tuple[str, Callable[[TableRow], str]]]:
        """Headings with what stands under them; what no row has gets no column."""
        yield "learner", lambda row: row.learner + row.marks
        if self.ranked_by == "test":
            yield f"test {self.metric}", lambda row: spread_text(row.test, told=True)
        if self._has("length_ratio"):
            yield "length ratio", lambda row: spread_text(row.length_ratio, 3)
        if self._has("dev"):
            yield f"dev {self.metric}", lambda row: spread_text(row.dev, told=self.ranked_by == "dev")
        if self._has("paper"):
            yield "paper", lambda row: number_text(row.paper, ".3f")
            yield "difference", lambda row: number_text(row.difference, "+.4f")
        yield "h", lambda row: row.h if isinstance(row.h, str) else number_text(row.h)
        yield "mu", lambda row: number_text(row.mu)
        if self._has("gamma"):
            yield "gamma", lambda row: number_text(row.gamma)
        yield "average loss", lambda row: spread_text(row.average_loss)
        if self._has("map_average_loss"):
            yield "of best outputs", lambda row: spread_text(row.map_average_loss)
        yield "best iteration", lambda row: NOTHING if (b := row.best_iteration) is None else about_text(b.mean)
        yield "µs a step", lambda row: NOTHING if row.us is None else time_text(row.us)

    def _has(self, name: str) -> bool:
        return any(getattr(row, name) is not None for row in self.rows)

    def markdown(self) -> str:
        lines = [f"## {self.title}", "", *_markdown_head(self.columns)]
        for group, rows in self.groups:
            lines.append("| *" + _markdown(group) + "* |" + " |" * (len(self.columns) - 1))
            for row in rows:
                cells = [_markdown(cell) for cell in self.cells(row)]
                if row.best:
                    cells[:2] = [f"**{cell}**" for cell in cells[:2]]
                lines.append("| " + " | ".join(cells) + " |")
        lines += ["", *(f"{_markdown(note)}  " for note in self.notes), f"`{self.signature}`", ""]
        return "\n".join(lines)

    def records(self) -> list[Record]:
        return [self._record(row) for row in self.rows]

    def _record(self, row: TableRow) -> Record:
        def plain(*names: str) -> Record:
            return {name: getattr(row, name) for name in names}

        spreads: dict[str, Spread | None] = {name: getattr(row, name) for name in _SPREADS}
        means = {name: spread.mean if spread else None for name, spread in spreads.items()}
        record: Record = {"experiment": self.experiment, "task": self.task, "metric": self.metric}
        record |= plain("group", "learner", "feedback", "phase")
        record |= {"seeds": " ".join(map(str, row.seeds)), "iterations": row.iterations}
        for name in ("test", "dev", "average_loss", "length_ratio"):
            record |= {f"{name}_mean": means[name], f"{name}_sd": spread.sd if (spread := spreads[name]) else None}
        record |= plain("paper", "difference", "h", "mu", "gamma")
        record |= {name: means[name] for name in ("map_average_loss", "best_iteration", "update_fraction")}
        return record | {"us": row.us, "best_zeroth_order": int(row.best), "signature": self.signature}


def make_table(experiment: ReportedExperiment) -> Table:
    if experiment.retuned:
        phase, rows = "fixed", [_row(learner, "fixed") for learner in experiment.learners if learner.runs("fixed")]
        tuned = [_row(learner, "tuned") for learner in experiment.learners if learner.runs("tuned")]
        rows += [replace(row, group="h tuned on dev for this rater") for row in tuned]
    else:
        rows = [_row(learner, learner.best()[0]) for learner in experiment.learners]
        there = {row.phase for row in rows}
        phase = next((each for each in BEST_FIRST if each in there), "fixed")
        rows = [replace(row, marks="†" if row.phase != phase else "") for row in rows]  # of another phase
    rows += _bound_rows(experiment, compare=any(row.paper is not None for row in rows))
    quantity = "test" if any(row.test for row in rows) else "dev"  # that the best is the best in
    ranked = [(spread.mean, row) for row in rows if row.zeroth_order and (spread := getattr(row, quantity))]
    best = max(ranked, key=lambda each: each[0], default=(0.0, None))[1]
    rows = [replace(row, best=row is best) for row in rows]
    groups = dict.fromkeys(row.group for row in rows)
    return Table(
        experiment.name,
        experiment.task,
        experiment.metric_name or "metric",
        experiment.title,
        phase,
        tuple(rows),
        tuple(_notes(experiment, rows, phase)),
        signature(experiment, phase),
        tuple((experiment.group_title(group), tuple(row for row in rows if row.group == group)) for group in groups),
    )


def _row(learner: LearnerRuns, phase: str) -> TableRow:
    run = learner.runs(phase)[0]
    times = learner.spread(phase, "us_per_iteration")
    spreads: Fields = {name: learner.spread(phase, name) for name in _SPREADS}
    return TableRow(
        group=learner.group,
        learner=learner.name,
        phase=phase,
        feedback=learner.feedback,
        seeds=tuple(run.seed for run in learner.runs(phase)),
        iterations=run.iterations,
        paper=learner.paper,
        h=AUTO if run.settings.get("h") == AUTO else finite(run.settings.get("h")),
        mu=finite(run.settings.get("mu")),
        gamma=finite(run.settings.get("gamma")) if learner.annealed else None,
        us=min(times.values) if times else None,
        zeroth_order=learner.zeroth_order,
        **spreads,
    )


def _bound_rows(experiment: ReportedExperiment, compare: bool) -> Iterator[TableRow]:
    for name in experiment.bounds:
        values = (experiment.bound(name, quantity) for quantity in (experiment.metric or "bleu", "length_ratio"))
        test, length = (None if value is None else Spread((value,), exact=True) for value in values)
        paper = BOUNDS.get(name) if compare else None
        yield TableRow("bounds", name, None, test=test, length_ratio=length, paper=paper)


def _notes(experiment: ReportedExperiment, rows: Sequence[TableRow], phase: str) -> Iterable[str]:
    how = _tuned_words(experiment, rows) if phase == "tuned" else _fixed_words(rows)
    most = max((len(row.seeds) for row in rows), default=0)
    spread = "Figures are means ± standard deviations over seeds"
    if most < FEWEST:
        seeds = "of one seed" if most < 2 else "means over two seeds"
        spread = f"Figures are {seeds}; a standard deviation takes three"
    of = "test and dev are of the model that is best on dev" if any(row.dev for row in rows) else "there is no dev set"
    yield f"{spread}; {of}; {how}. Higher is better; the best zeroth-order result is in bold."
    if any(row.marks for row in rows):
        yield "† No tuned result: the fixed settings."
    times = {name: entry.get("widened") or 0 for name, entry in experiment.tuned.items()}
    widened = [f"{name} (twice)" if count > 1 else name for name, count in times.items() if count]
    if phase == "tuned" and widened:
        yield f"The best lay on an edge of the grid, which was then widened by a decade, for {', '.join(widened)}."
    if any(row.paper is not None for row in rows):
        yield "Difference: here minus the paper's, which was measured on the paper's data; what it is here is below."
    preferring = [item for item in experiment.learners if item.rule == "preference"]
    if experiment.paper.zero_one_loss and any(experiment.find("two-point", item.perturb) for item in preferring):
        yield (
            "With a loss of 0 or 1 preference's step is two-point's: at the same settings and seeds both rows are of "
            "the same runs, and no difference between them says anything about the rules."
        )
    if experiment.retuned:
        yield (
            "The last group has h tuned on dev, for exact answers and for one noise each: what noise costs there is "
            "not that h was chosen for exact answers. In all other rows h is the same along a line."
        )
    if experiment.noisy:
        yield (
            "Feedback that is not exact stands at the end of a learner's name. flip:P: a comparison answered wrongly "
            "with probability P; rating:K,NOISE,BIAS: K grades, with the standard deviations of their noise and of "
            "raters' biases; binary: a thumb up or down. Test results and average losses are of the true loss."
        )
    if scores := {str(run.test_report["signature"]) for run in experiment.runs if run.test_report.get("signature")}:
        yield f"Score: {'; '.join(sorted(scores))}."


def _tuned_words(experiment: ReportedExperiment, rows: Sequence[TableRow]) -> str:
    """With which seeds h and mu were chosen, which must not be the table's."""
    chosen = experiment.tuning_seeds
    if chosen is None:
        return "h and mu tuned on dev for each learner, with seeds that were not recorded and may be the table's own"
    both = chosen & {seed for row in rows if row.phase == "tuned" for seed in row.seeds}
    whose = f", of which {_listed(both)} are the table's own" if both else ", none of them the table's"
    if len(chosen) == 1:
        whose = f", which is {'also' if both else 'not'} one of the table's"
    return f"h and mu tuned on dev for each learner, with seed{'s' * (len(chosen) != 1)} {_listed(chosen)}{whose}"


def _listed(seeds: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(seeds)))


def _fixed_words(rows: Sequence[TableRow]) -> str:
    learned = [row for row in rows if row.h is not None]
    alike = len({row.h for row in learned}) <= 1 and len({row.mu for row in learned if row.mu is not None}) <= 1
    return "the same fixed settings for all learners" if alike else "fixed settings, those in the table"


def signature(experiment: ReportedExperiment, phase: str, learners: Iterable[LearnerRuns] | None = None) -> str:
    """What was measured, as sacrebleu's signatures say it: enough to tell two results apart."""
    chosen = tuple(experiment.learners if learners is None else learners)
    runs = [run for item in chosen for run in (item.runs(phase) or item.runs("fixed") or item.runs("tuned"))]
    models = sorted({item.feedback for item in chosen})
    fields = {
        "task": experiment.task,
        "data": experiment.data,
        "learners": str(len(chosen)),
        "h": _TUNED.get(phase) or _settings(runs, "h"),
        "mu": _TUNED.get(phase) or _settings(runs, "mu"),
        "seeds": ",".join(map(str, sorted({run.seed for run in runs}))),
    }
    if isinstance(answers := experiment.declared.get("answers"), int):  # these end runs
        fields["answers"] = count_text(answers)
    else:
        fields["iterations"] = ",".join(map(count_text, sorted({run.iterations for run in runs})))
    versions = {str(run.versions.get("sparsezo") or run.result.get("version") or "unknown") for run in runs}
    fields["version"] = ",".join(sorted(versions))
    if models not in ([], ["exact"]):
        fields["feedback"] = ";".join(models)
    return "|".join(f"{name}:{value or 'none'}" for name, value in fields.items())


def _settings(runs: Sequence[ReportedRun], name: str) -> str:
    values = sorted({value for run in runs if (value := finite(run.settings.get(name))) is not None})
    auto = [AUTO] if any(run.settings.get(name) == AUTO for run in runs) else []
    some = [f"{value:g}" for value in values] if len(values) <= 3 else [f"{values[0]:g}..{values[-1]:g}"]
    return ",".join(some + auto)


def losses_a_step(rule: str) -> int | None:
    """How many losses, or outputs in a comparison, a step asks for; None where it asks for none."""
    known = RULES.get(rule)
    if known is None or known.asks or rule == "supervised":
        return None
    return known.losses


SPEED_NOTE = (
    "Loss: of the best outputs at w, the mean over dev; its mean over the run is the area under its curve, by which h "
    "and mu are chosen here. Iterations until it is first at or below a loss, by the line between looks: the mean over "
    "seeds, in brackets the losses asked for; -: some seed never is."
)


def make_speed_table(experiment: ReportedExperiment) -> PlainTable | None:
    """How fast the learners are, at settings tuned for that; None where no run has them."""
    learners = [item for item in experiment.learners if item.runs("speed") and item.spread("speed", "dev_loss_area")]
    if not learners:
        return None
    declared = experiment.declared.get("losses")
    losses = [loss for loss in declared if isinstance(loss, float)] if isinstance(declared, list) else []
    head = ["learner", "mean loss over the run", *(f"to {loss:g}" for loss in losses), "h", "mu"]
    rows = []
    for item in sorted(learners, key=lambda item: fmean(cast(Spread, item.spread("speed", "dev_loss_area")).values)):
        settings = item.runs("speed")[0].settings
        h, mu = (number_text(finite(settings.get(name))) for name in ("h", "mu"))
        area = spread_text(item.spread("speed", "dev_loss_area"))
        rows.append(
            [item.name, area, *(_until_text(item, loss) for loss in losses), h, mu if item.perturb else NOTHING]
        )
    return PlainTable(head, rows)


def iterations_until(learner: LearnerRuns, phase: str, loss: float) -> list[float | None]:
    """Of each seed; None where it never comes to this loss on dev."""
    found: list[float | None] = []
    for run in learner.runs(phase):
        at, losses = (run.curve[name] for name in ("iterations", "dev_loss")) if run.curve else (np.zeros(0),) * 2
        below = np.flatnonzero(losses <= loss)
        if not below.size:
            found.append(None)
        elif (k := int(below[0])) == 0:
            found.append(float(at[0]))
        else:
            share = (losses[k - 1] - loss) / (losses[k - 1] - losses[k])
            found.append(float(at[k - 1] + share * (at[k] - at[k - 1])))
    return found


def _until_text(learner: LearnerRuns, loss: float) -> str:
    steps = iterations_until(learner, "speed", loss)
    known = [each for each in steps if each is not None]
    if not known or len(known) < len(steps):
        return NOTHING
    asked = losses_a_step(learner.rule)
    mean = fmean(known)
    return about_text(mean) + (f" ({about_text(asked * mean)})" if asked else "")


def csv_text(records: Iterable[Record], columns: Sequence[str] | None = None) -> str:
    """The records as CSV; its columns are those of the first, where none are given."""
    rows, stream = list(records), io.StringIO()
    writer = csv.DictWriter(stream, columns or list(rows[0] if rows else {}), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def number_text(value: float | None, form: str = "g") -> str:
    return NOTHING if value is None else f"{value:{form}}"


def spread_text(spread: Spread | None, digits: int = 4, *, told: bool = False) -> str:
    """``told``: where there are too few seeds for a standard deviation, how many there are."""
    if spread is None:
        return NOTHING
    if spread.sd is not None:
        return f"{spread.mean:.{digits}f} ± {spread.sd:.{digits}f}"
    few = {1: " (one run)", 2: " (two runs)"}.get(len(spread.values), "") if told and not spread.exact else ""
    return f"{spread.mean:.{digits}f}{few}"


def range_text(interval: tuple[float, float], digits: int) -> str:
    return f"{interval[0]:+.{digits}f} to {interval[1]:+.{digits}f}"


def time_text(us: float) -> str:
    """12.3, 1,234: microseconds in three digits or so."""
    return f"{us:.3g}" if us < 1000 else f"{us:,.0f}"


def count_text(count: float) -> str:
    """4M, 300k, 1,234: as --iterations takes them."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size and count % (size // 100) == 0:
            return f"{count / size:g}{unit}"
    return f"{count:,.0f}"


def about_text(count: float) -> str:
    """3.81M, 120k, 950: a mean of counts, in three digits or so."""
    if count >= 1e6:
        return f"{count / 1e6:.2f}M"
    return f"{count / 1e3:.0f}k" if count >= 1e4 else f"{count:,.0f}"


def _markdown(text: str) -> str:
    """One line, and no cell of it ends early."""
    return " ".join(text.split()).replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
