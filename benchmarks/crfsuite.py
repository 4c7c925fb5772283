"""``SequenceLabeller`` beside sklearn-crfsuite's CRF: the same dicts of attributes (those of its tutorial), the same
labels, chunk F1 on test, seconds of one core to fit, and milliseconds of one core to learn one sentence more.

    pip install sklearn-crfsuite
    python benchmarks/crfsuite.py DATA [--repeats 3] [--corpora NP,chunks,names]

Needs CoNLL-2000 (train.txt.gz, test.txt.gz) and CoNLL-2002 (esp.train.gz, esp.testb.gz). CRFsuite has L-BFGS and at
most 100 iterations, with its tutorial's c1 = c2 = 0.1, and with its own c1 = 0, c2 = 1. SequenceLabeller has
its defaults, and as many passes as are best of 5, 10, 15, 20 on the last tenth of train after learning from the rest;
its seconds are those of the fit with these. It is fitted once before the clock runs, on a few sentences, so that
nothing is compiled or imported in it.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import sklearn_crfsuite

from sparsezo.sklearn import SequenceLabeller
from sparsezo.tasks.chunking.io.conll import Corpus, read_conll
from sparsezo.tasks.chunking.metric import score_chunks
from sparsezo.tasks.chunking.tags import keep_only

CORPORA = {
    "NP": ("CoNLL-2000, noun phrases", "conll2000/train.txt.gz", "conll2000/test.txt.gz", "NP"),
    "chunks": ("CoNLL-2000, all chunks", "conll2000/train.txt.gz", "conll2000/test.txt.gz", None),
    "names": ("CoNLL-2002, Spanish names", "conll2002/esp.train.gz", "conll2002/esp.testb.gz", None),
}
UPDATES = 50  # sentences, one by one


def attributes(words: list[str], pos: list[str], i: int) -> dict[str, Any]:
    """As sklearn-crfsuite's tutorial makes them."""
    word, tag = words[i], pos[i]
    made: dict[str, Any] = {
        "bias": 1.0,
        "word.lower()": word.lower(),
        "word[-3:]": word[-3:],
        "word[-2:]": word[-2:],
        "word.isupper()": word.isupper(),
        "word.istitle()": word.istitle(),
        "word.isdigit()": word.isdigit(),
        "postag": tag,
        "postag[:2]": tag[:2],
    }
    for j, name in ((i - 1, "-1"), (i + 1, "+1")):
        if not 0 <= j < len(words):
            made["BOS" if j < 0 else "EOS"] = True
            continue
        made |= {
            f"{name}:word.lower()": words[j].lower(),
            f"{name}:word.istitle()": words[j].istitle(),
            f"{name}:word.isupper()": words[j].isupper(),
            f"{name}:postag": pos[j],
            f"{name}:postag[:2]": pos[j][:2],
        }
    return made


def sentences(corpus: Corpus) -> tuple[list[list[dict[str, Any]]], list[list[str]]]:
    X, y = [], []
    words, pos = corpus.columns
    for begin, end in itertools.pairwise(corpus.offsets.tolist()):
        w, p = words[begin:end], pos[begin:end]
        X.append([attributes(w, p, i) for i in range(end - begin)])
        y.append((corpus.tags or [])[begin:end])
    return X, y


def timed(work: Any) -> tuple[Any, float]:
    begin = time.process_time()
    done = work()
    return done, time.process_time() - begin


RIVALS = {  # as its tutorial has it; as it comes
    "c1 = c2 = 0.1": {"c1": 0.1, "c2": 0.1, "all_possible_transitions": True},
    "c1 = 0, c2 = 1": {"c1": 0.0, "c2": 1.0},
}


def best_passes(X: list[Any], y: list[Any]) -> int:
    """Of 5, 10, 15 and 20, by the last tenth of train."""
    cut = len(X) * 9 // 10
    labeller, scores = SequenceLabeller(random_state=99), {}
    for passes in range(1, 21):
        labeller.partial_fit(X[:cut], y[:cut])
        if passes % 5 == 0:
            scores[passes] = labeller.chunk_f1(X[cut:], y[cut:])
    return max(scores, key=lambda passes: scores[passes])


def f1(corpus: Corpus, found: list[list[str]]) -> float:
    return score_chunks(corpus.tags or [], [tag for labels in found for tag in labels], corpus.offsets).f1


def compare(data: Path, name: str, repeats: int) -> str:
    title, *files, only = CORPORA[name]
    train, test = (read_conll(data / each) for each in files)
    if only:
        train, test = keep_only(train, only), keep_only(test, only)
    (X, y), (X_test, y_test) = sentences(train), sentences(test)
    few = SequenceLabeller().fit(X[:20], y[:20]).partial_fit(X[:1], y[:1])
    few.predict(X_test[:1])
    ours, passes = [], best_passes(X, y)
    for seed in range(repeats):
        labeller = SequenceLabeller(passes=passes, random_state=seed)
        _, seconds = timed(lambda labeller=labeller: labeller.fit(X, y))
        ours.append((f1(test, labeller.predict(X_test)), seconds))
    its = []
    for given in RIVALS.values():
        rival = sklearn_crfsuite.CRF(algorithm="lbfgs", max_iterations=100, **given)
        _, seconds = timed(lambda rival=rival: rival.fit(X, y))  # without chance: once
        its.append((f1(test, rival.predict(X_test)), seconds))
    updates = [timed(lambda k=k: labeller.partial_fit([X_test[k]], [y_test[k]]))[1] for k in range(UPDATES)]
    own, own_seconds = np.array(ours).T
    cells = [
        title,
        *(f"{score:.4f}, {seconds:.1f} s" for score, seconds in its),
        f"{own.mean():.4f} ({own.min():.4f} to {own.max():.4f}), {statistics.median(own_seconds):.1f} s",
        f"{passes}",
        f"{1000 * statistics.median(updates):.1f} ms",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--corpora", default=",".join(CORPORA))
    given = parser.parse_args()
    print(f"| corpus | {' | '.join(f'CRFsuite, {each}' for each in RIVALS)} | ours | passes | one sentence more |")
    print("|---|---|---|---|---|---|")
    for name in given.corpora.split(","):
        print(compare(given.data, name, given.repeats), flush=True)


if __name__ == "__main__":
    main()
