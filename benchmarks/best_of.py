"""BLEU against minutes of `pair` and `best`, as `serve rerank` learns: its defaults, the weights as they are.

python benchmarks/best_of.py DATA [--seeds 25]      # DATA/smt as docs/data.md has it; lines of JSON, then the table
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import numpy as np

from sparsezo.learner import predict
from sparsezo.query_learner import QueryLearner
from sparsezo.settings import Settings
from sparsezo.tasks.rerank.io.decoder_weights import read_weights
from sparsezo.tasks.rerank.io.importing import import_nbest
from sparsezo.tasks.rerank.task import Reranking

MINUTES = (30, 60, 120, 240)
SECONDS = {  # of answers-rerank.toml
    "ours": {"pair": 23.0, "best": 62.0},
    "literature": {"pair": 9.9, "best": 18.9},
    "slow": {"pair": 33.0, "best": 89.0},
}


def run(task, problem, gold, rule, seed, wrong, bleu):
    """{answers: BLEU} at all minutes of all tables; ``wrong``: the share of answers that are any other one."""
    given = {"rule": rule, "rater_error": "0.05", "seed": seed, "rehearse": 0}
    learner = QueryLearner(problem, Settings.complete(given, task.defaults), task.initial_weights())
    stops = {int(60 * minutes / seconds[rule]) for minutes in MINUTES for seconds in SECONDS.values()}
    chance, found, answers = random.Random(seed), {}, 0
    while answers < max(stops):
        if (question := learner.ask()) is None:
            continue
        said = learner.known_answer(question, gold)
        if chance.random() < wrong:
            said = chance.choice([each for each in question.choices if each != said])
        learner.tell(question, said)
        answers += 1
        if answers in stops:
            found[answers] = bleu(learner.weights())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=25)
    args = parser.parse_args()
    folder = args.data / "smt"
    train, test = (import_nbest(folder / f"{name}.nbest.xz") for name in ("train", "nc-test2007"))
    task = Reranking.fit(train, read_weights(folder / "weights.out-of-domain"))
    problem, gold = task.problem(train, asks=True), task.gold(train)
    held, held_gold = task.problem(test, learn=False), task.gold(test)

    def bleu(W) -> float:
        return task.quality(held, held_gold, predict(held, W))

    print(json.dumps({"without answers": bleu(task.initial_weights())}), flush=True)
    for wrong in (0.0, 0.1):
        runs = {
            rule: [run(task, problem, gold, rule, seed, wrong, bleu) for seed in range(args.seeds)]
            for rule in ("pair", "best")
        }
        for table, seconds in SECONDS.items():
            for minutes in MINUTES:
                at = {rule: int(60 * minutes / seconds[rule]) for rule in runs}
                pair, best = (np.array([each[at[rule]] for each in runs[rule]]) for rule in ("pair", "best"))
                error = (best - pair).std(ddof=1) / len(pair) ** 0.5
                row = {"wrong": wrong, "seconds": table, "minutes": minutes, "pair": pair.mean(), "best": best.mean()}
                print(json.dumps({**row, "standard_error": error}), flush=True)


if __name__ == "__main__":
    main()
