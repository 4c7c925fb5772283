"""What README.md and docs/results/README.md say of the results, written from the results that stand beside them.

    python benchmarks/findings.py                       # in the repository: rewrites the blocks between their marks
    blocks(Path("docs/results"))["chunking-claims"]     # the text of one

A block stands between ``<!-- NAME: written by make findings -->`` and ``<!-- end of NAME -->``. Its text is made from
table.csv, verdicts.json, scaling.csv and words.csv in docs/results, which the reports and benchmarks/words.py write, so
that no sentence can say what the tables do not. A test compares them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError
from sparsezo.storage.checksummed import read_checksummed
from sparsezo.storage.files import write_text
from sparsezo.study.reports.answers import needed, times_faster
from sparsezo.study.reports.results import RULE_ORDER, MeanCurve

VERDICTS = "verdicts.json"
PAGES = ("README.md", "docs/results/README.md")
EXPERIMENTS = {"chunking": 3, "text": 3, "smt": 4, "noise": 0}  # with the digits of their tables; 0: it has none
_GRID = {"all": "all", "active": "active", "score": "score (not in the paper)"}
_FLAT = 0.1  # an exponent below which nothing grows
_MARK = "<!-- {}: written by make findings -->"
_END = "<!-- end of {} -->"

Row = Mapping[str, str]


def blocks(results: Path) -> dict[str, str]:
    """By name, all that there are results for."""
    found: dict[str, str] = {}
    for name, digits in EXPERIMENTS.items():
        if (results / name / "table.csv").exists() and digits:
            rows = _rows(results / name / "table.csv")
            found[f"{name}-table"], found[f"{name}-beside-paper"] = table(rows, digits), beside_paper(rows, digits)
        if (verdicts := read_checksummed(results / name / VERDICTS)) is not None:
            found[f"{name}-claims"] = "\n".join([" ".join(verdicts["summary"]), "", *_claims(verdicts["claims"])])
    if (results / "scaling" / "scaling.csv").exists():
        found["scaling"] = scaling(_rows(results / "scaling" / "scaling.csv"))
    if (results / "answers" / "table.csv").exists():
        answers = _rows(results / "answers" / "table.csv")
        found["answers-cost"] = answers_cost(answers)
        found["answers-minutes"] = answers_minutes(answers)
        found["answers-one-pass"] = one_pass(answers)
        if (results / "words" / "words.csv").exists():
            found["answers-words"] = from_words(answers, _rows(results / "words" / "words.csv"))
    tables = {name: results / name / "table.csv" for name, digits in EXPERIMENTS.items() if digits}
    return found | {"seeds": seeds({name: _rows(path) for name, path in tables.items() if path.exists()})}


def update(page: str, made: Mapping[str, str], where: str = "page") -> str:
    """The page with every block that it has written anew; a block that nothing is known of is an error."""
    for name in re.findall(r"<!-- ([\w-]+): written by make findings -->", page):
        if name not in made:
            raise DataError(where, f"has a block '{name}', which there are no results for")
        mark, end = _MARK.format(name), _END.format(name)
        if page.count(mark) != 1 or page.count(end) != 1:
            raise DataError(where, f"must have one '{mark}' and one '{end}'")
        before, rest = page.split(mark)
        page = f"{before}{mark}\n{made[name]}\n{end}{rest.split(end)[1]}"
    return page


# Tables


def table(rows: Sequence[Row], digits: int) -> str:
    """A row for each rule and criterion, a column for each perturbation; what is of no such kind has its own row."""
    found = {row["learner"]: row for row in rows if row["learner"] != "oracle"}
    names = {  # of a row's learners, by perturbation
        rule + criterion: {perturb: f"{rule} {perturb}{criterion}" for perturb in _GRID}
        for criterion in ("", " annealed")
        for rule in RULE_ORDER
    }
    grid = {row: cells for row, cells in names.items() if any(name in found for name in cells.values())}
    shown = [perturb for perturb in _GRID if any(cells[perturb] in found for cells in grid.values())]
    taken = {cells[perturb] for cells in grid.values() for perturb in shown}
    lines = [_line("learner", [*(_GRID[perturb] for perturb in shown), "test"]), "|---" * (len(shown) + 2) + "|"]
    for row, cells in grid.items():
        lines.append(_line(row, [*(_cell(found.get(cells[perturb]), digits) for perturb in shown), ""]))
    for name, figures in found.items():
        if name not in taken:
            lines.append(_line(name, [*([""] * len(shown)), _cell(figures, digits)]))
    return "\n".join(lines)


def beside_paper(rows: Sequence[Row], digits: int) -> str:
    """Of these what the paper has figures of, and score by the same rules."""
    known = {row["learner"] for row in rows if row["paper"]}
    return table([row for row in rows if row["learner"].replace(" score", " active") in known], digits)


def _line(name: str, cells: Sequence[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"


def _cell(row: Row | None, digits: int) -> str:
    if row is None or not row["test_mean"]:
        return ""
    paper = f" ({float(row['paper']):.3f})" if row["paper"] else ""
    return f"{float(row['test_mean']):.{digits}f}{paper}"


def seeds(tables: Mapping[str, Sequence[Row]]) -> str:
    """How many, of each experiment."""
    told = []
    for name, rows in tables.items():
        counts = sorted({len(row["seeds"].split()) for row in rows if row["seeds"]})
        told.append(f"{name}: {' or '.join(map(str, counts))}")
    return f"Test results are means over seeds ({', '.join(told)}), h and mu tuned on dev for each learner."


# Claims


def _claims(claims: Iterable[Mapping[str, str]]) -> list[str]:
    return [f"- **{each['verdict']}**: {each['title']} ({each['source']}): {each['words']}." for each in claims]


# Answers

_MAIN = "answers-chunking"
_PLACES = {  # chunking's experiments
    _MAIN: "noun phrases, words and parts of speech",
    "answers-clusters": "noun phrases, words with clusters",
    "answers-words": "noun phrases, words alone",
    "answers-names-clusters": "Spanish names, words with clusters",
    "answers-names": "Spanish names, words alone",
}
_REVIEW, _LEAST_SURE = "review", "whole sentences labelled, least sure first"
_AT_RANDOM = "whole sentences labelled, at random"
_COMPARED = (_REVIEW, "review of what is marked", "span", "label", "part", _LEAST_SURE, _AT_RANDOM)
_QUALITIES = (0.85, 0.90, 0.93)  # of noun phrases
_AFTER = (30, 60, 120, 240)  # minutes
_TABLES = {"ours": "minutes", "literature": "minutes_literature", "slow": "minutes_slow"}  # of seconds -> their column
_LOOKS = (1000, 5000)  # numbers of answers that the table without parts of speech is about
_ONE_PASS = "part asked at random"
_RIVAL = "Vowpal Wabbit:"  # what titles of its records begin with


def _curve(
    rows: Sequence[Row], title: str, experiment: str = _MAIN, table: str = "minutes"
) -> tuple[MeanCurve, NDArray[np.float64]]:
    """Test quality of a learner at every look, and the minutes there."""
    mine = [row for row in rows if (row["experiment"], row["title"]) == (experiment, title) and row["test_mean"]]
    if not mine:
        raise DataError("docs/results/answers/table.csv", f"has no '{title}' of {experiment}; run reproduce answers")
    looks, means, minutes = (np.array([float(row[name]) for row in mine]) for name in ("answers", "test_mean", table))
    return MeanCurve(looks.astype(np.int64), means, None), minutes


def answers_cost(rows: Sequence[Row]) -> str:
    """For each quality the minutes that it takes, and the answers, or labelled tokens."""
    head = [f"{value:.2f}" for value in _QUALITIES]
    lines = [_line("minutes (answers) for test F1", head), "|---" * (len(head) + 1) + "|"]
    for title in _COMPARED:
        curve, minutes = _curve(rows, title)
        pairs = [(needed(curve, value), needed(curve, value, minutes)) for value in _QUALITIES]
        lines.append(_line(title, [f"{time}" if count.at is None else f"{time} ({count})" for count, time in pairs]))
    return "\n".join(lines)


def _after(curve: MeanCurve, places: NDArray[np.float64], at: float) -> str:
    """Between looks by the straight line on the log axis, as ``needed`` has it; nothing where it is beyond them."""
    known = places > 0
    if not places[known][0] <= at <= places[known][-1]:
        return ""
    return f"{np.interp(np.log(at), np.log(places[known]), curve.mean[known]):.3f}"


def answers_minutes(rows: Sequence[Row]) -> str:
    """Quality after minutes of reviews and of the strongest rival, and how many times as long that takes."""
    lines = [_line("test F1 after minutes", [*map(str, _AFTER)]), "|---" * (len(_AFTER) + 1) + "|"]
    for experiment, words in _PLACES.items():
        for title, name in ((_REVIEW, "review"), (_LEAST_SURE, "whole sentences, least sure first")):
            curve, minutes = _curve(rows, title, experiment)
            lines.append(_line(f"{words}: {name}", [_after(curve, minutes, at) for at in _AFTER]))
    told = []
    for value in _QUALITIES[1:]:
        times = []
        for column in _TABLES.values():
            (mine, spent), (rival, its) = (_curve(rows, title, table=column) for title in (_REVIEW, _LEAST_SURE))
            times.append(times_faster(needed(mine, value, spent), needed(rival, value, its)) or "?")
        told.append(f"F1 {value:.2f} takes whole sentences {', '.join(times[:-1])} and {times[-1]} times as long")
    names = [*_TABLES]
    by = f"by the tables {', '.join(names[:-1])} and {names[-1]}"
    return "\n".join([*lines, "", f"With parts of speech, {by}, {'; '.join(told)} as reviews."])


def from_words(rows: Sequence[Row], words: Sequence[Row]) -> str:
    """What the part-of-speech column is worth: without it, and alone."""
    (table,) = [row for row in words if row["columns"] == "parts of speech"]
    lines = [_line("test F1", [f"{look:,} answers" for look in _LOOKS]), "|---" * (len(_LOOKS) + 1) + "|"]
    for experiment in ("answers-chunking", "answers-clusters", "answers-words"):
        for title in ("part", "span"):
            curve, _ = _curve(rows, title, experiment)
            cells = [f"{curve.mean[curve.at == look][0]:.3f}" for look in _LOOKS]
            lines.append(_line(f"{_PLACES[experiment]}: `{title}`", cells))
    alone = f"{float(table['test_mean']):.3f}"
    about = f"no answers: each of the {table['features']} parts of speech with its most frequent tag"
    return "\n".join([*lines, _line(about, [alone] * len(_LOOKS))])


def one_pass(rows: Sequence[Row]) -> str:
    """Text, each document once: our average loss beside that of Vowpal Wabbit's best way."""
    rivals = [row for row in rows if row["title"].startswith(_RIVAL)]
    if not rivals:
        raise DataError("docs/results/answers/table.csv", "has nothing of Vowpal Wabbit; install it and run reproduce")
    documents = max(int(row["answers"]) for row in rivals)
    best = min((row for row in rivals if int(row["answers"]) == documents), key=_loss)
    (mine,) = [row for row in rows if (row["title"], row["answers"]) == (_ONE_PASS, str(documents))]
    name = best["title"].removeprefix(_RIVAL).strip()
    return (
        f"In one pass over {documents:,} documents, a right or wrong for each, `part` has an average loss of "
        f"{_loss(mine):.3f} and Vowpal Wabbit's best ({name}) {_loss(best):.3f}."
    )


def _loss(row: Row) -> float:
    return float(row["average_loss_mean"])


# Scaling


def scaling(rows: Sequence[Row]) -> str:
    """What passes and iterations go with as n grows, from the figures."""
    exponents = {
        (perturb, cost): _slope([row for row in rows if row["panel"] == "n" and row["perturb"] == perturb], cost)
        for perturb in _GRID
        for cost in ("passes", "iterations")
    }
    passes, iterations = (
        ", ".join(f"n^{exponents[perturb, cost]:.2f} with `{perturb}`" for perturb in _GRID)
        for cost in ("passes", "iterations")
    )
    flat = [f"{cost} with `{perturb}`" for (perturb, cost), slope in exponents.items() if abs(slope) < _FLAT]
    return (
        "On an objective with planted sparsity, the number of passes over the inputs grows with n, the number of "
        f"weights, as {passes}; the number of iterations, since more weights need more inputs to be determined, as "
        f"{iterations}. Flat in n: {', '.join(flat) or 'nothing'}."
    )


def _slope(rows: Sequence[Row], cost: str) -> float:
    """Fitted on the log-log scale."""
    x, y = (np.log([float(row[name]) for row in rows]) for name in ("n", cost))
    return float(np.polyfit(x, y, 1)[0])


def _rows(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def main(root: Path = Path()) -> None:
    made = blocks(root / "docs" / "results")
    for page in PAGES:
        path = root / page
        write_text(path, update(path.read_text("utf-8"), made, page))


if __name__ == "__main__":
    main()
