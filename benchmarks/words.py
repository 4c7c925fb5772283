"""What CoNLL-2000's part-of-speech column says by itself, of noun phrases: F1 without any answer.

    python benchmarks/words.py DATA -o docs/results/words       # seconds

The column was written by a tagger that learned from labels (Brill's). `sparsezo reproduce answers` has learners with
it and without it; here stands a table that nobody is asked for: each part of speech gets the tag that it most often has
in train. DATA is a folder with conll2000/ as `sparsezo reproduce` wants it (SPARSEZO_DATA where it is not given).
"""

from __future__ import annotations

import argparse
import csv
import io
import os
from collections import Counter
from pathlib import Path
from typing import Any

from sparsezo.storage.files import write_text
from sparsezo.study.plan import Experiment, builtin
from sparsezo.tasks.chunking.io.conll import Corpus, read_conll
from sparsezo.tasks.chunking.metric import score_chunks
from sparsezo.tasks.chunking.tags import keep_only

RESULTS = Path(__file__).parent.parent / "docs" / "results"
TABLE = "a table from parts of speech to tags"


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
        "dev_mean": from_table(train, dev),
        "test_mean": from_table(train, test),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=os.environ.get("SPARSEZO_DATA"))
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "words")
    args = parser.parse_args()
    if args.data is None:
        parser.error("give the folder with the data, or set SPARSEZO_DATA")
    row = table_row(Path(args.data), builtin("answers-chunking"))
    text = io.StringIO()
    writer = csv.DictWriter(text, [*row], lineterminator="\n")
    writer.writeheader()
    writer.writerow(row)
    args.output.mkdir(parents=True, exist_ok=True)
    write_text(args.output / "words.csv", text.getvalue())
    print(text.getvalue())


if __name__ == "__main__":
    main()
