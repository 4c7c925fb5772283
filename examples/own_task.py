"""A task of one's own: documents in an order that puts clicked ones first. For who ranks, and has a log of clicks.

Three functions make the task. In a package of your own an entry point makes it known to the commands, and
`sparsezo train clicks --train log.jsonl -o clicks.szo` works: docs/tasks.md.

python examples/own_task.py
"""

import json
import tempfile
from pathlib import Path

import numpy as np

from sparsezo import Files, Input, Settings, Training, own_task, register


def read(lines):
    """A query a line: its documents' features, and how often each was clicked."""
    for line in lines:
        query = json.loads(line)
        yield Input(rows=query["documents"], gold=query["clicks"])


def decode(S, y):
    """The documents, best score first; compiled."""
    y[:] = np.argsort(-S[:, 0])


def loss(gold, y):
    """1 - DCG of the clicks / the best there can be; compiled."""
    best, dcg = np.sort(gold)[::-1], 0.0
    most = 0.0
    for place in range(y.size):
        dcg += gold[y[place]] / np.log2(place + 2)
        most += best[place] / np.log2(place + 2)
    return 1 - dcg / most if most > 0 else 0.0


SPEC = own_task("clicks", read, decode, loss, metric="ndcg", title="Ranking by clicks")


def generated(n, seed):
    """Queries whose clicks depend on three of forty features, and on chance."""
    rng, wanted = np.random.default_rng(seed), {"title": 2.0, "fresh": 1.0, "spam": -3.0}
    names = [*wanted, *(f"word {k}" for k in range(37))]
    for _ in range(n):
        documents = [dict.fromkeys(rng.choice(names, 6, replace=False).tolist(), 1.0) for _ in range(8)]
        worth = [sum(wanted.get(name, 0.0) for name in each) for each in documents]
        clicks = rng.poisson(np.exp(np.array(worth) - 1))
        yield json.dumps({"documents": documents, "clicks": clicks.tolist()})


if __name__ == "__main__":
    register(SPEC)
    with tempfile.TemporaryDirectory() as folder:
        for name, n, seed in (("train", 500, 1), ("test", 200, 2)):
            (Path(folder) / name).write_text("\n".join(generated(n, seed)))
        loaded = SPEC.load(Files((f"{folder}/train",), test=f"{folder}/test"))
    for rule in ("comparison", "symmetric"):
        settings = Settings.complete({"rule": rule}, *SPEC.usual)
        for steps in (1, 1_000, 20_000):
            outcome = Training(loaded.task, loaded.data, settings, steps).go()
            print(f"{rule:10} {steps:6,} steps: NDCG {outcome.result['test']:.3f}")
    weights = outcome.model.W[:, 0]
    best = sorted(zip(weights, loaded.task.feature_names(), strict=True), reverse=True)
    print("best", *(f"{name} {weight:.1f}" for weight, name in best[:3]), "| worst", best[-1][1])
