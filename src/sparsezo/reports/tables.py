"""Table 1 of the paper from an experiment's runs: rows, their text and their figures, and the signatures.

table = make_table(experiment)
table.markdown()                       # for people; the best zeroth-order row in bold
table.records()                        # for programs: full precision, one dict for each row
signature(experiment, "tuned")         # task:chunking|data:conll2000|h:tuned|mu:tuned|seeds:0,1,2|...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sparsezo.reports.results import FEWEST, LearnerRuns, ReportedExperiment, ReportedRun, Spread

BOUNDS = {"out-of-domain": 0.257, "in-domain": 0.284, "oracle": None}  # BLEU in the paper's Sec. 5
BOUND_GROUP = "bounds"
RETUNED = "h tuned on dev for this rater"
NOTHING = "-"


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
    h: float | None = None
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
            yield "paper", lambda row: NOTHING if row.paper is None else f"{row.paper:.3f}"
            yield "difference", lambda row: NOTHING if row.difference is None else f"{row.difference:+.4f}"
        yield "h", lambda row: NOTHING if row.h is None else f"{row.h:g}"
        yield "mu", lambda row: NOTHING if row.mu is None else f"{row.mu:g}"
        if self._has("gamma"):
            yield "gamma", lambda row: NOTHING if row.gamma is None else f"{row.gamma:g}"
        yield "average loss", lambda row: spread_text(row.average_loss)
        if self._has("map_average_loss"):
            yield "of best outputs", lambda row: spread_text(row.map_average_loss)
        yield "best iteration", lambda row: NOTHING if (b := row.best_iteration) is None else about_text(b.mean)
        yield "µs a step", lambda row: NOTHING if row.us is None else time_text(row.us)

    def _has(self, name: str) -> bool:
        return any(getattr(row, name) is not None for row in self.rows)

    def markdown(self) -> str:
        lines = [f"## {self.title}", ""]
        lines += ["| " + " | ".join(self.columns) + " |", "|---" + "|--:" * (len(self.columns) - 1) + "|"]
        for group, rows in self.groups:
            lines.append("| *" + _markdown(group) + "* |" + " |" * (len(self.columns) - 1))
            for row in rows:
                cells = [_markdown(cell) for cell in self.cells(row)]
                if row.best:
                    cells[:2] = [f"**{cell}**" for cell in cells[:2]]
                lines.append("| " + " | ".join(cells) + " |")
        lines += ["", *(f"{_markdown(note)}  " for note in self.notes), f"`{self.signature}`", ""]
        return "\n".join(lines)

    def records(self) -> list[dict[str, Any]]:
        records = []
        for row in self.rows:
            record: dict[str, Any] = {"experiment": self.experiment, "task": self.task, "metric": self.metric}
            record |= {"group": row.group, "learner": row.learner, "feedback": row.feedback, "phase": row.phase}
            record |= {"seeds": " ".join(map(str, row.seeds)), "iterations": row.iterations}
            for name in ("test", "dev", "average_loss", "length_ratio"):
                spread = getattr(row, name)
                record |= {f"{name}_mean": spread.mean if spread else None, f"{name}_sd": spread.sd if spread else None}
            record |= {"paper": row.paper, "difference": row.difference, "h": row.h, "mu": row.mu, "gamma": row.gamma}
            for name in ("map_average_loss", "best_iteration", "update_fraction"):
                spread = getattr(row, name)
                record[name] = spread.mean if spread else None
            record["us"] = row.us
            records.append(record | {"best_zeroth_order": int(row.best), "signature": self.signature})
        return records


def make_table(experiment: ReportedExperiment) -> Table:
    if experiment.retuned:
        phase, rows = "fixed", [_row(learner, "fixed") for learner in experiment.learners if learner.runs("fixed")]
        tuned = [_row(learner, "tuned") for learner in experiment.learners if learner.runs("tuned")]
        rows += [replace(row, group=RETUNED) for row in tuned]
    else:
        rows = [_row(learner) for learner in experiment.learners]
        phase = "tuned" if any(row.phase == "tuned" for row in rows) else "fixed"
        rows = _mark(rows, phase)
    rows += _bound_rows(experiment, compare=any(row.paper is not None for row in rows))
    rows = _with_best(rows)
    return Table(
        experiment.name,
        experiment.task,
        experiment.metric_name or "metric",
        experiment.title,
        phase,
        tuple(rows),
        tuple(_notes(experiment, rows, phase)),
        signature(experiment, phase),
        tuple(
            (title, tuple(row for row in rows if row.group == group)) for group, title in _headings(experiment, rows)
        ),
    )


def _with_best(rows: Sequence[TableRow]) -> list[TableRow]:
    """The best zeroth-order row by test, or by dev where nothing was tested."""
    quantity = "test" if any(row.test for row in rows) else "dev"
    ranked = [(spread.mean, row) for row in rows if row.zeroth_order and (spread := getattr(row, quantity))]
    best = max(ranked, key=lambda each: each[0], default=(0.0, None))[1]
    return [replace(row, best=row is best) for row in rows]


def _headings(experiment: ReportedExperiment, rows: Iterable[TableRow]) -> list[tuple[str, str]]:
    return [(group, experiment.group_title(group)) for group in dict.fromkeys(row.group for row in rows)]


def _row(learner: LearnerRuns, phase: str | None = None) -> TableRow:
    phase = phase or learner.best_phase() or "fixed"
    run = learner.runs(phase)[0]
    losses = ("average_loss", "map_average_loss")
    quantities = ("test", "dev", *losses, "best_iteration", "length_ratio", "update_fraction")
    times = learner.spread(phase, "us_per_iteration")
    spreads: dict[str, Any] = {name: learner.spread(phase, name) for name in quantities}
    return TableRow(
        group=learner.group,
        learner=learner.name,
        phase=phase,
        feedback=learner.feedback,
        seeds=tuple(run.seed for run in learner.runs(phase)),
        iterations=run.iterations,
        paper=learner.paper,
        h=_number(run.settings.get("h")),
        mu=_number(run.settings.get("mu")),
        gamma=_number(run.settings.get("gamma")) if learner.annealed else None,
        us=min(times.values) if times else None,
        zeroth_order=learner.zeroth_order,
        **spreads,
    )


def _bound_rows(experiment: ReportedExperiment, compare: bool) -> list[TableRow]:
    rows = []
    for name in experiment.bounds:
        value, length = experiment.bound(name, experiment.metric or "bleu"), experiment.bound(name, "length_ratio")
        rows.append(
            TableRow(
                BOUND_GROUP,
                name,
                None,
                test=Spread((value,), exact=True) if value is not None else None,
                length_ratio=Spread((length,), exact=True) if length is not None else None,
                paper=BOUNDS.get(name) if compare else None,
            )
        )
    return rows


def _mark(rows: Sequence[TableRow], phase: str) -> list[TableRow]:
    """† another phase than the table's."""
    return [replace(row, marks="†" if row.phase != phase else "") for row in rows]


def _widened(experiment: ReportedExperiment) -> list[str]:
    """Learners; (twice) where a decade was not enough."""
    tuning = {name: entry for name, entry in experiment.tuning.items() if isinstance(entry, Mapping)}
    times = {name: entry.get("widened") or 0 for name, entry in tuning.items()}
    return [f"{name} (twice)" if count > 1 else name for name, count in times.items() if count]


def _notes(experiment: ReportedExperiment, rows: Sequence[TableRow], phase: str) -> Iterable[str]:
    how = _tuned_words(experiment, rows) if phase == "tuned" else _fixed_words(rows)
    most = max((len(row.seeds) for row in rows), default=0)
    spread = "Figures are means ± standard deviations over seeds"
    if most < FEWEST:
        seeds = "of one seed" if most < 2 else "means over two seeds"
        spread = f"Figures are {seeds}; a standard deviation takes three"
    of = "test and dev are of the model that is best on dev" if any(row.dev for row in rows) else "there is no dev set"
    yield f"{spread}; {of}; {how}. Higher is better; the best zeroth-order result is in bold."
    if any("†" in row.marks for row in rows):
        yield "† No tuned result: the fixed settings."
    if phase == "tuned" and (widened := _widened(experiment)):
        yield f"The best lay on an edge of the grid, which was then widened by a decade, for {', '.join(widened)}."
    if any(row.paper is not None for row in rows):
        yield "Difference: here minus the paper's, which was measured on the paper's data; what it is here is below."
    if experiment.about is not None and experiment.about.zero_one_loss and _has_twins(experiment):
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
    scores = {str(run.test_report["signature"]) for run in experiment.runs if run.test_report.get("signature")}
    if scores:
        yield f"Score: {'; '.join(sorted(scores))}."


def _tuned_words(experiment: ReportedExperiment, rows: Sequence[TableRow]) -> str:
    """With which seeds h and mu were chosen, which must not be the table's."""
    chosen = experiment.tuning_seeds
    if chosen is None:
        return "h and mu tuned on dev for each learner, with seeds that were not recorded and may be the table's own"
    both = chosen & {seed for row in rows if row.phase == "tuned" for seed in row.seeds}
    seeds = ", ".join(map(str, sorted(chosen)))
    if len(chosen) == 1:
        whose = f"seed {seeds}, which is {'also' if both else 'not'} one of the table's"
    elif both:
        whose = f"seeds {seeds}, of which {', '.join(map(str, sorted(both)))} are the table's own"
    else:
        whose = f"seeds {seeds}, none of them the table's"
    return f"h and mu tuned on dev for each learner, with {whose}"


def _has_twins(experiment: ReportedExperiment) -> bool:
    """Both rules, with one perturbation."""
    return any(item.rule == "preference" and experiment.find("two-point", item.perturb) for item in experiment.learners)


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
        "h": "tuned" if phase == "tuned" else _settings(runs, "h"),
        "mu": "tuned" if phase == "tuned" else _settings(runs, "mu"),
        "seeds": ",".join(map(str, sorted({run.seed for run in runs}))) or "none",
        **_length(experiment, runs),
        "version": ",".join(sorted({_version(run) for run in runs})) or "none",
    }
    if models not in ([], ["exact"]):
        fields["feedback"] = ";".join(models)
    return "|".join(f"{name}:{value}" for name, value in fields.items())


def _length(experiment: ReportedExperiment, runs: Sequence[ReportedRun]) -> dict[str, str]:
    """Of the runs: in answers where these end them, else in iterations."""
    if isinstance(answers := experiment.declared.get("answers"), int):
        return {"answers": count_text(answers)}
    counts = sorted({run.iterations for run in runs})
    return {"iterations": ",".join(map(count_text, counts)) or "none"}


def _settings(runs: Sequence[ReportedRun], name: str) -> str:
    values = sorted({value for run in runs if (value := _number(run.settings.get(name))) is not None})
    if len(values) > 3:
        return f"{values[0]:g}..{values[-1]:g}"
    return ",".join(f"{value:g}" for value in values) or "none"


def _version(run: ReportedRun) -> str:
    return str(run.versions.get("sparsezo") or run.result.get("version") or "unknown")


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def spread_text(spread: Spread | None, digits: int = 4, *, told: bool = False) -> str:
    """``told``: where there are too few seeds for a standard deviation, how many there are."""
    if spread is None:
        return NOTHING
    if spread.sd is not None:
        return f"{spread.mean:.{digits}f} ± {spread.sd:.{digits}f}"
    few = {1: " (one run)", 2: " (two runs)"}.get(len(spread.values), "") if told and not spread.exact else ""
    return f"{spread.mean:.{digits}f}{few}"


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
