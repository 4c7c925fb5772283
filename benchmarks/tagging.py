"""How fast a model tags raw text, from characters to spans with probabilities, beside CRFsuite, which gets the same
attributes ready made and gives tags; both in one run, in turns, best of five. Needs CoNLL-2002 and python-crfsuite.

    python benchmarks/tagging.py DATA [--clusters none]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pycrfsuite
from names import CORPORA, documents

from sparsezo.learner import Learner
from sparsezo.model import Model
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.features.columns import chosen_columns
from sparsezo.tasks.chunking.io.documents import Document, Span
from sparsezo.tasks.chunking.io.raw import corpus_of
from sparsezo.tasks.chunking.task import Chunking


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--clusters", default="auto")
    args = parser.parse_args()
    train, test, tags = CORPORA["es"]
    labelled = documents(Path(args.data) / train, set(tags.split(",")))[:300]
    texts = [text for text, _ in documents(Path(args.data) / test, set())]
    given = [Document(text, spans=tuple(Span(*span) for span in spans)) for text, spans in labelled]
    read = corpus_of(given, train, labelled=True, cuts=True)
    columns = chosen_columns(read, args.clusters, None)
    task, corpus = Chunking.fit(read, tags=tags, split="sentences", columns=columns)
    learner = Learner(task.problem(corpus), Settings.complete({"rule": "supervised", "step": "adagrad"}, task.defaults))
    learner.run(task.gold(corpus), 5 * len(corpus))
    model = Model(task, learner.weights(), {}, {})

    unseen = corpus_of(map(Document, texts), test)
    names = task.index.names()
    of_train, of_test = (
        [[[names[k] for k in row if k >= 0] for row in ids[a:b].tolist()] for a, b in pairwise(each.offsets.tolist())]
        for each, ids in ((corpus, task.index.transform(corpus)), (unseen, task.index.transform(unseen)))
    )
    trainer = pycrfsuite.Trainer(algorithm="ap", verbose=False)
    trainer.set_params({"max_iterations": 5})
    for attributes, (a, b) in zip(of_train, pairwise(corpus.offsets.tolist()), strict=True):
        trainer.append(attributes, (corpus.tags or [])[a:b])
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(str(Path(folder) / "m.crf"))
        tagger = pycrfsuite.Tagger()
        tagger.open(str(Path(folder) / "m.crf"))
        list(model.tag(texts[:10]))
        rounds = [
            (seconds(lambda: list(model.tag(texts))), seconds(lambda: [tagger.tag(each) for each in of_test]))
            for _ in range(5)
        ]
    ours, theirs = (min(each) for each in zip(*rounds, strict=True))
    n = unseen.n_tokens
    print(f"{n:,} tokens; raw text to spans: {n / ours:,.0f} tokens a second")
    print(f"CRFsuite, attributes to tags: {n / theirs:,.0f} tokens a second")
    print(f"ratio {theirs / ours:.2f}")


if __name__ == "__main__":
    main()
