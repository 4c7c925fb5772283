"""Noun-phrase chunking from words alone, and from parts of speech alone: what the part-of-speech column is worth.

    python benchmarks/words.py DATA -o docs/results/words       # about 5 minutes of one core

CoNLL-2000's second column was written by a tagger that learned from labels (Brill's). Here the learners of
`sparsezo reproduce answers-chunking` run without it, with both built-in sets of features, and clusters of words. Beside
them stands a table that nobody is asked for: each part of speech gets the tag that it has most often in train. DATA is
a folder with conll2000/ as `sparsezo reproduce` wants it (SPARSEZO_DATA where it is not given).
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import os
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparsezo.experiments.plan import Experiment, builtin
from sparsezo.experiments.reproduce import Watch, reproduce
from sparsezo.reports.answers import lines, minutes
from sparsezo.reports.reading import read_experiment
from sparsezo.storage.files import write_text
from sparsezo.tasks.chunking.conll import Corpus, read_conll
from sparsezo.tasks.chunking.metric import score_chunks
from sparsezo.tasks.chunking.tags import keep_only

RESULTS = Path(__file__).parent.parent / "docs" / "results"
FEATURES = {  # as the command line has them
    "chunking": {"features": "chunking", "clusters": "none"},
    "ner": {"features": "ner", "clusters": "none"},
    "ner --clusters en": {"features": "ner", "clusters": "en"},
}
LOOKS = (500, 1000, 2000, 5000)
TABLE = "a table from parts of speech to tags"
FIELDS = ("columns", "features", "learner", "answers", "dev_mean", "dev_sd", "test_mean", "test_sd", "minutes", "seeds")


def most_frequent_tags(parts_of_speech: list[str], tags: list[str]) -> dict[str, str]:
    """Each part of speech's most frequent tag; of equally frequent ones the first in the alphabet."""
    counts = Counter(zip(parts_of_speech, tags, strict=True))
    ranked = sorted(counts, key=lambda pair: (counts[pair], [-ord(letter) for letter in pair[1]]))
    return dict(ranked)  # the last of a part of speech stays


def from_table(train: Corpus, other: Corpus) -> float:
    """F1 on ``other`` of the table of ``train``; a part of speech that train does not have is outside."""
    table = most_frequent_tags(train.columns[1], train.tags or [])
    said = [table.get(each, "O") for each in other.columns[1]]
    return float(score_chunks(other.tags or [], said, other.offsets).f1)


def table_row(data: Path, plan: Experiment) -> dict[str, Any]:
    """The table's row, on the plan's dev and test."""
    only = str(plan.data.options["only"])
    whole, test = (keep_only(read_conll(data / name), only) for name in (plan.data.train[0], str(plan.data.test)))
    held_out = int(str(plan.data.dev))
    dev, train = whole[:held_out], whole[held_out:]
    return {
        "columns": "parts of speech",
        "features": str(len(set(train.columns[1]))),
        "learner": TABLE,
        "answers": 0,
        "dev_mean": from_table(train, dev),
        "test_mean": from_table(train, test),
        "minutes": 0.0,
    }


def write_words(data: Path, folder: Path, plan: Experiment) -> None:
    """The plan's files without their second column, under the same names."""
    for name in (plan.data.train[0], str(plan.data.test)):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(data / name, "rt", encoding="utf-8") as stream, gzip.open(target, "wt", encoding="utf-8") as out:
            for line in stream:
                cells = line.split()
                out.write(f"{cells[0]} {cells[-1]}\n" if cells else "\n")


def words_plan(plan: Experiment, features: str, looks: tuple[int, ...] = LOOKS) -> Experiment:
    """Part and label, and whole sentences labelled; the learners of ``plan`` that its main figure shows. And span."""
    wanted = [each for each in plan.learners if each.rule in ("part", "label", "supervised") and each.figure]
    wanted.append(replace(wanted[0], rule="span", figure="span: the span that is there"))
    options = {**plan.data.options, **FEATURES[features]}
    return replace(
        plan,
        name=f"words-{features.replace(' ', '')}",
        data=replace(plan.data, options=options),
        learners=tuple(wanted),
        looks=looks,
        answers=looks[-1],
    )


def rows_of(folder: Path, features: str) -> Iterator[dict[str, Any]]:
    """A row for each learner and look of an experiment's folder."""
    experiment = read_experiment(folder)
    for line in lines(experiment):
        curve, times = line.curve("dev"), minutes(line, experiment)
        for k, look in enumerate([] if curve is None else curve.at.tolist()):
            found: dict[str, Any] = {}
            for column in ("dev", "test"):
                spread = line.at(column, look)
                values = spread.values if spread else ()
                found[f"{column}_mean"] = statistics.fmean(values) if values else ""
                found[f"{column}_sd"] = statistics.stdev(values) if len(values) > 1 else ""
            about = {"columns": "words", "features": features, "learner": line.title, "answers": look}
            time = "" if times is None else float(times[k])
            yield {**about, **found, "minutes": time, "seeds": len(line.learner.runs("fixed"))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=os.environ.get("SPARSEZO_DATA"))
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "words")
    parser.add_argument("--processes", type=int, default=None)
    args = parser.parse_args()
    if args.data is None:
        parser.error("give the folder with the data, or set SPARSEZO_DATA")
    plan, rows = builtin("answers-chunking"), [table_row(Path(args.data), builtin("answers-chunking"))]
    with tempfile.TemporaryDirectory() as folder:
        write_words(Path(args.data), Path(folder) / "data", plan)
        for features in FEATURES:
            out = Path(folder) / features.replace(" ", "")
            done = reproduce(
                words_plan(plan, features),
                str(Path(folder) / "data"),
                out=out,
                processes=args.processes,
                watch=Watch(say=print),
            )
            if done.failures:
                parser.exit(1, f"{done.failures[0]}\n")
            rows += rows_of(out, features)
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    args.output.mkdir(parents=True, exist_ok=True)
    write_text(args.output / "words.csv", text.getvalue())
    print(text.getvalue())


if __name__ == "__main__":
    main()
