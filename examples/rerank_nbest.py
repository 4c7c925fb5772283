"""Rerank a decoder's n-best lists from one rating a translation. For who has a decoder, and users who rate.

The lists are generated; your own are read by the same call from cdec's or Moses' files. Nobody shows the learner a
reference: it shows a translation, and hears how good that is, in five grades and with noise.

python examples/rerank_nbest.py
"""

import tempfile
from pathlib import Path

from sparsezo import Learner, Reranking, Settings, import_nbest, predict
from sparsezo.tasks.registry import task_spec
from sparsezo.tasks.rerank.io.decoder_weights import read_weights


def learn(train, test, start) -> None:
    task = Reranking.fit(train, start)
    problem, gold, unseen = task.problem(train), task.gold(train), task.problem(test, learn=False)

    def bleu(W) -> str:
        return f"BLEU {task.scores(test, predict(unseen, W)).value:.3f}"

    print(f"{len(train)} lists of {train.n_candidates // len(train)} translations, {task.n_features} features")
    print(f"the decoder's own weights: {bleu(task.initial_weights())}")
    for feedback in ("exact", "rating:5,0.1,0.1"):
        settings = Settings("two-point", "active", h=0.1, mu=0.01, step="adagrad", feedback=feedback)
        learner = Learner(problem, settings, task.initial_weights())
        for ratings in (2_000, 20_000):
            learner.run(gold, ratings // 2 - learner.step)  # two translations a step
            print(f"{feedback:18} after {ratings:6,} ratings: {bleu(learner.weights())}")
    with tempfile.TemporaryDirectory() as folder:  # for the decoder
        for path in task.export(f"{folder}/adapted", learner.weights()):
            print(f"{path.name}: {path.read_text().splitlines()[0]} ...")


with tempfile.TemporaryDirectory() as folder:
    place = Path(folder)
    for name, lists, seed in (("train", 200, 1), ("test", 100, 2)):
        task_spec("rerank").synthetic().write(place / f"{name}.nbest", place / "weights.", lists, seed, None)
    stores = [import_nbest(place / f"{name}.nbest", store_dir=place / "stores") for name in ("train", "test")]
    learn(*stores, read_weights(place / "weights.out-of-domain"))
