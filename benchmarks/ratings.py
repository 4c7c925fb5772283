"""Real people's noise: single ratings, one by one, against labels that several people vote for, at equal ratings used.

    pip download vaderSentiment==3.3.2 --no-binary :all: --no-deps -d FOLDER
    python benchmarks/ratings.py FOLDER/vaderSentiment-3.3.2.tar.gz -o docs/results/ratings/ratings.csv

In that source package lie all ratings of 23,700 texts (tweets, film and product reviews, editorials; Hutto and Gilbert
2014): some 20 a text, from -4 to 4. A text is positive or negative by the mean of all its ratings; those nearer to 0
than 0.5 are left out, and a third is for test. A way may use so many ratings, each of them once:

label, part, pair, rate    a question at a time about a text that the model is unsure of, answered by a rating that was
                           not used yet: its sign (a 0: by chance), or for rate the loss (4 - r) / 8 of positive
votes of k                 texts at random, the sign of the mean of k ratings each, then learned from: by rule
                           supervised here, and by scikit-learn's logistic regression with C by cross-validation

What every way sees of a text are its words, by tf-idf.
"""

from __future__ import annotations

import argparse
import ast
import csv
import io
import tarfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo import Learner, QueryLearner, Settings, TextClassification, predict
from sparsezo.tasks.text.io.documents import Documents

PARTS = ("tweets", "movieReviewSnippets", "amazonReviewSnippets", "nytEditorialSnippets")
CLASSES = ("negative", "positive")
CLEAR = 0.5  # of the mean rating: nearer to 0 there is no right class
RULES = ("label", "part", "pair", "rate")
VOTES = (1, 3, 5)
PASSES = 20  # over labelled texts
FIELDS = ("way", "ratings", "seed", "accuracy")


@dataclass(frozen=True)
class Rated:
    """Texts with all their ratings."""

    texts: list[str]
    ratings: list[NDArray[np.int64]]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def positive(self) -> NDArray[np.bool_]:
        return np.array([each.mean() > 0 for each in self.ratings])

    def some(self, which: NDArray[np.int64]) -> Rated:
        return Rated([self.texts[x] for x in which], [self.ratings[x] for x in which])


def read(package: str) -> Rated:
    """Those with a clear mean, each text once."""
    found: dict[str, NDArray[np.int64]] = {}
    with tarfile.open(package) as outer:
        inner = next(name for name in outer.getnames() if name.endswith("hutto_ICWSM_2014.tar.gz"))
        with tarfile.open(fileobj=io.BytesIO(_bytes(outer, inner))) as files:
            for part in PARTS:
                truth, rated = (
                    _rows(_bytes(files, f"hutto_ICWSM_2014/{part}_{what}.txt"))
                    for what in ("GroundTruth", "anonDataRatings")
                )
                ratings = {row[0]: np.array(ast.literal_eval(row[-1]), np.int64) for row in rated}
                for row in truth:
                    if row[0] in ratings and abs(ratings[row[0]].mean()) >= CLEAR:
                        found.setdefault(" ".join(row[-1].split()), ratings[row[0]])
    return Rated(list(found), list(found.values()))


def _bytes(archive: tarfile.TarFile, name: str) -> bytes:
    stream = archive.extractfile(name)
    assert stream is not None
    return stream.read()


def _rows(data: bytes) -> list[list[str]]:
    lines = data.decode("utf-8-sig", errors="replace").splitlines()
    return [line.split("\t") for line in lines if line.count("\t") >= 2]


class Raters:
    """Who gives each rating of a text once, in an order by the seed, and then any of them again."""

    def __init__(self, rated: Rated, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.waiting = [self.rng.permutation(each).tolist() for each in rated.ratings]
        self.all = rated.ratings

    def ask(self, x: int) -> int:
        if self.waiting[x]:
            return int(self.waiting[x].pop())
        return int(self.rng.choice(self.all[x]))

    def sign(self, total: float) -> bool:
        """Positive; a 0 says nothing."""
        return bool(total > 0) if total else bool(self.rng.integers(2))


def documents(texts: list[str], labels: list[str] | None = None) -> Documents:
    n = len(texts)
    return Documents(("ratings",), np.zeros(n, np.int32), np.arange(1, n + 1), labels, texts)


def asked(rule: str, task: Any, data: Any, rated: Rated, looks: list[int], seed: int) -> Iterator[Any]:
    """The weights after so many answers to questions."""
    settings = Settings.complete({"rule": rule, "seed": seed}, task.defaults)
    learner, raters = QueryLearner(task.problem(data, asks=True), settings), Raters(rated, seed)
    for look, before in zip(looks, [0, *looks], strict=False):
        for _ in range(look - before):
            question = learner.ask()
            rating = raters.ask(question.x)
            said = int(raters.sign(rating))
            if rule == "rate":
                positive = question.outputs[0][0] == 1
                answer: Any = (4 - rating if positive else 4 + rating) / 8
            elif rule == "part":
                answer = "yes" if question.numbers[1] == said else "no"
            elif rule == "pair":
                answer = question.choices[0 if question.outputs[0][0] == said else 1]
            else:
                answer = CLASSES[said]
            learner.tell(question, answer)
        yield learner.weights()


def voted(rated: Rated, k: int, most: int, seed: int) -> tuple[NDArray[np.int64], list[str]]:
    """Texts at random, as many as so many ratings are enough for, and what k people say of each."""
    raters, order = Raters(rated, seed), np.random.default_rng(seed).permutation(len(rated))
    which = order[: most // k]
    return which, [CLASSES[raters.sign(sum(raters.ask(x) for _ in range(k)))] for x in which]


def supervised(task: Any, texts: list[str], labels: list[str], seed: int) -> Any:
    docs = documents(texts, labels)
    learner = Learner(task.problem(docs), Settings.complete({"rule": "supervised", "seed": seed}, task.defaults))
    learner.run(task.gold(docs), PASSES * len(texts))
    return learner.weights()


class Regression:
    """Scikit-learn's on the same kind of columns, each text's found once."""

    def __init__(self, train: list[str], test: list[str]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        words = TfidfVectorizer(sublinear_tf=True)
        self.train, self.test = words.fit_transform(train), words.transform(test)

    def accuracy(self, which: NDArray[np.int64], labels: list[str], right: NDArray[np.bool_]) -> float:
        from sklearn.linear_model import LogisticRegressionCV

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LogisticRegressionCV(Cs=10, cv=5, max_iter=1000).fit(self.train[which], labels)
        return float(np.mean((model.predict(self.test) == "positive") == right))


def figures(rated: Rated, looks: list[int], seed: int) -> Iterator[tuple[str, int, float]]:
    """(way, ratings, accuracy) of all ways."""
    order = np.random.default_rng(99).permutation(len(rated))  # the same split for all seeds
    train, test = rated.some(order[len(order) // 3 :]), rated.some(order[: len(order) // 3])
    right = test.positive
    task, data = TextClassification.fit(documents(train.texts), classes=CLASSES)
    problem = task.problem(documents(test.texts), learn=False)

    def accuracy(W: Any) -> float:
        return float(np.mean((predict(problem, W) == 1) == right))

    for rule in RULES:
        for look, W in zip(looks, asked(rule, task, data, train, looks, seed), strict=True):
            yield rule, look, accuracy(W)
    regression = Regression(train.texts, test.texts)
    for k in VOTES:
        for look in looks:
            which, labels = voted(train, k, look, seed)
            W = supervised(task, [train.texts[x] for x in which], labels, seed)
            yield f"votes of {k}, supervised", look, accuracy(W)
            yield f"votes of {k}, logistic regression", look, regression.accuracy(which, labels, right)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package")
    parser.add_argument("--ratings", type=int, nargs="+", default=[300, 1000, 3000, 10000])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    rated = read(args.package)
    wrong = np.mean([np.mean((each > 0) != (each.mean() > 0)) for each in rated.ratings])
    print(f"{len(rated):,} texts, {rated.positive.mean():.2f} positive; {wrong:.3f} of their ratings have another sign")
    rows: list[tuple[str, int, int, float]] = []
    for seed in range(args.seeds):
        for way, ratings, value in figures(rated, args.ratings, seed):
            rows.append((way, ratings, seed, round(value, 5)))
        with args.output.open("w", newline="") as stream:
            table = csv.writer(stream, lineterminator="\n")
            table.writerow(FIELDS)
            table.writerows(rows)
        print("seed", seed, flush=True)
    for way in dict.fromkeys(row[0] for row in rows):
        means = (np.mean([row[3] for row in rows if row[:2] == (way, n)]) for n in args.ratings)
        print(f"{way:>32}", *(f"{mean:.3f}" for mean in means))


if __name__ == "__main__":
    main()
