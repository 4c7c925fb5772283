"""What reviews of whole sentences bring by the minute, and what going over them again does: F1 on test.

    python benchmarks/reviews.py DATA words --review all marked auto --seeds 3 --minutes 30 60 120 240
    python benchmarks/reviews.py DATA names --rehearse 10 --h 0.1 --finish 0 2 5 10 --seconds slow
    python benchmarks/reviews.py DATA np --rule label --minutes 30 60
    python benchmarks/reviews.py DATA words --clusters none --vectors encoders:minilm --sentences 4000

np: CoNLL-2000's noun phrases, with parts of speech; words: from words and clusters alone; names: CoNLL-2002's Spanish
names, likewise, on esp.testa; names-b: on esp.testb. Somebody who makes no errors answers, unless --feedback says
otherwise. --vectors: an encoder (encoders.py), beside clusters or with none. Minutes are by the table of seconds that
reviews are chosen by (docs/answers.md); a single question takes 0.208 s a token and 1.5 s.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import tempfile
from pathlib import Path

from sparsezo.query_learner import QueryLearner
from sparsezo.settings import Settings, parse_seconds
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import task_spec
from sparsezo.training import HeldOut

CORPORA = {
    "np": ("conll2000/train.txt.gz", "conll2000/test.txt.gz", {"only": "NP"}),
    "words": ("conll2000/train.txt.gz", "conll2000/test.txt.gz", {"only": "NP", "features": "ner", "clusters": "en"}),
    "names": ("conll2002/esp.train.gz", "conll2002/esp.testa.gz", {"features": "ner", "clusters": "es"}),
    "names-b": ("conll2002/esp.train.gz", "conll2002/esp.testb.gz", {"features": "ner", "clusters": "es"}),
}
DEV = 1000  # sentences at the beginning of CoNLL-2000's train, which are not asked about
READ, KEY = 0.208, 1.5  # seconds of a single question: a token, and the answer


def part(path: Path, to: Path, words_alone: bool, leave_out: int, most: int | None) -> str:
    """The file without its first sentences, ``most`` of them, and without all columns but the first and the last."""
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
        blocks = [block for block in file.read().split("\n\n") if block.strip()][leave_out:][:most]
    rows = [[line.split() for line in block.strip().split("\n")] for block in blocks]
    chosen = [[[row[0], row[-1]] if words_alone else row for row in block] for block in rows]
    to.write_text("\n".join("\n".join(map(" ".join, block)) + "\n" for block in chosen) + "\n", encoding="utf-8")
    return str(to)


def minutes(learner: QueryLearner) -> float:
    """Of a person's time, by the learner's own table."""
    each, token, marked, correction = parse_seconds(learner.settings.seconds)
    if learner.settings.rule != "review":
        return (READ * learner.tokens + KEY * learner.answers) / 60
    looked = token * learner.whole + marked * (learner.looked - learner.whole)
    return (each * learner.answers + looked + correction * learner.corrections) / 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("corpus", choices=CORPORA)
    parser.add_argument("--rule", default="review")
    parser.add_argument("--review", nargs="+", default=["all"])
    parser.add_argument("--seconds", default="ours")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--minutes", type=float, nargs="+", default=[30, 60, 120, 240])
    parser.add_argument("--rehearse", type=int, nargs="+")
    parser.add_argument("--h", type=float, nargs="+")
    parser.add_argument("--feedback", default="exact", help="flip:P: of what is wrong P is overlooked")
    parser.add_argument("--clusters", help="instead of the corpus's own")
    parser.add_argument("--vectors", help="module:function")
    parser.add_argument("--sentences", type=int, help="so many of the training sentences")
    parser.add_argument("--finish", type=int, nargs="+", default=[0])
    given = parser.parse_args()
    train, test, options = CORPORA[given.corpus]
    chosen_features = {"clusters": given.clusters, "vectors": given.vectors}
    options = {**options, **{name: value for name, value in chosen_features.items() if value is not None}}
    chunking = task_spec("chunking")
    with tempfile.TemporaryDirectory() as place:
        words = given.corpus != "np"
        dev = 0 if given.corpus.startswith("names") else DEV
        files = [
            part(given.data / path, Path(place) / name, words, skipped, most)
            for path, name, skipped, most in ((train, "train.txt", dev, given.sentences), (test, "test.txt", 0, None))
        ]
        loaded = chunking.load(Files((files[0],), None, files[1], options))
    problem, gold = loaded.task.problem(loaded.data.train, asks=True), loaded.task.gold(loaded.data.train)
    held = HeldOut(loaded.task, loaded.data.test)
    print("review", "rehearse", "h", "seed", "minutes", "answers", *(f"finish {n}" for n in given.finish), sep="\t")
    for review in given.review if given.rule == "review" else [""]:
        for rehearse in given.rehearse or [None]:
            for h in given.h or [None]:
                for seed in range(1, given.seeds + 1):
                    chosen = {
                        "rule": given.rule,
                        "seed": seed,
                        "rehearse": rehearse,
                        "h": h,
                        "feedback": given.feedback,
                    }
                    chosen |= {"review": review, "seconds": given.seconds} if given.rule == "review" else {}
                    known = {name: value for name, value in chosen.items() if value is not None}
                    learner = QueryLearner(problem, Settings.complete(known, chunking.defaults, chunking.usual_step))
                    for end in given.minutes:
                        while minutes(learner) < end:
                            learner.run(gold, answers=learner.answers + 2)
                        figures = []
                        for passes in given.finish:
                            after = copy.copy(learner) if passes else learner
                            after.finish(passes)
                            figures.append(f"{held.value(after.weights()):.4f}")
                        settings = learner.settings
                        about = (review or given.rule, settings.rehearse, settings.h, seed, f"{end:g}", learner.answers)
                        print(*about, *figures, sep="\t", flush=True)


if __name__ == "__main__":
    main()
