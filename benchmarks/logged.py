"""What is learned from logged thumbs, and what `evaluate --log` says of a model, simulated (docs/logged.md).

    python benchmarks/logged.py learn DATA [--sizes 1000,5000,20000] [--seeds 3]    # DATA: conll2000/ and text/ in it
    python benchmarks/logged.py cover DATA [--logs 500]

A model of 100 labelled sentences (documents) tags others: its best output (a deterministic log), or one drawn from its own
distribution (a stochastic one, propensities known). A rater says whether all of it is right, and is wrong one time in ten.
Logs are written as JSON lines and read again. Figures are of the test set; ``gain`` is over the logging model.

``cover``: how often intervals of 95% have the truth in them, which is known: what the rater says in the mean of the
outputs of another model on the inputs that logs are drawn from.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from sparsezo import messages
from sparsezo.learner import Learner, log_chances, predict
from sparsezo.logged import Log, evaluate_log, learn_log, read_log, settings_for
from sparsezo.model import Model
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.io.conll import read_conll
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.registry import task_spec
from sparsezo.tasks.text.io.documents import read_documents
from sparsezo.tasks.text.task import TextClassification
from sparsezo.training import HeldOut, joined

LABELLED, WRONG = 100, 0.1


class World:
    """A task's data: some inputs with labels, others that are logged, and a test set."""

    def __init__(self, name: str, folder: Path) -> None:
        self.kind = task_spec(name)
        if name == "chunking":
            self.fit = lambda data: Chunking.fit(data, only="NP")
            every, self.test = (read_conll(folder / f"conll2000/{part}.txt.gz") for part in ("train", "test"))
        else:
            self.fit = TextClassification.fit
            every, self.test = (read_documents(folder / f"text/20news4.{part}.tsv.gz") for part in ("train", "test"))
        order = np.random.default_rng(0).permutation(len(every))
        self.labelled, self.pool = every.take(order[:LABELLED]), every.take(order[LABELLED:])

    def supervised(self, data: object, passes: int = 20) -> Model:
        task, seen = self.fit(data)
        settings = Settings.complete({"rule": "supervised"}, *self.kind.usual)
        learner = Learner(task.problem(seen), settings)
        learner.run(task.gold(seen), passes * len(seen))
        return Model(task, learner.weights(), settings.as_dict(), {})

    def seen(self, model: Model, data: object) -> object:
        return model.task.seen(data)

    def value(self, model: Model) -> float:
        return HeldOut(model.task, self.seen(model, self.test)).value(model.W)

    def line(self, model: Model, x: int, output: np.ndarray) -> dict[str, object]:
        if self.kind.name == "text":
            return {"text": self.pool.texts[x], "label": model.task.classes[int(output[0])]}
        begin, end = self.pool.offsets[x : x + 2].tolist()
        tokens = [list(cells) for cells in zip(*(column[begin:end] for column in self.pool.columns), strict=True)]
        return {"tokens": tokens, "tags": model.task.words(output, np.array([0, end - begin]))}

    def right(self, model: Model) -> Callable[[int, np.ndarray], bool]:
        """Whether an output of an input of the pool is all right."""
        data, as_shown = self.seen(model, self.pool), self.kind.logs().as_shown
        gold, start = model.task.gold(data), model.task.problem(data, learn=False).output_start
        values = gold.labels if self.kind.name == "text" else gold.tags
        return lambda x, y: np.array_equal(as_shown(model.task, y), values[start[x] : start[x + 1]])


class Logger:
    """A model that shows outputs for inputs of the pool to a rater who errs."""

    def __init__(self, world: World, model: Model, stochastic: bool) -> None:
        self.world, self.model, self.stochastic = world, model, stochastic
        self.data = world.seen(model, world.pool)
        self.problem, self.right = model.task.problem(self.data), world.right(model)
        self.best = np.split(predict(self.problem, model.W), self.problem.output_start[1:-1])

    def shown(self, n: int, seed: int) -> Iterator[tuple[int, np.ndarray, float | None, bool]]:
        """(input, output, propensity, thumb) of n inputs drawn at random."""
        chance = np.random.default_rng(seed)
        settings = Settings.complete({"rule": "first-order", "seed": seed}, *self.world.kind.usual)
        drawer = Learner(self.problem, settings, self.model.W)
        for x in chance.integers(len(self.problem), size=n).tolist():
            output, propensity = self.best[x], None
            if self.stochastic:
                proposal = drawer.ask(x)
                output, propensity = proposal.candidate, float(np.exp(proposal.log_chance))
                drawer.unask(proposal)
                drawer.state.counts[0] += 1  # another step, another draw
            yield x, output, propensity, bool(self.right(x, output)) != (chance.random() < WRONG)

    def write(self, path: Path, n: int, seed: int) -> None:
        with open(path, "w", encoding="utf-8") as stream:
            for x, output, propensity, thumb in self.shown(n, seed):
                row = {**self.world.line(self.model, x, output), "feedback": thumb}
                row |= {} if propensity is None else {"propensity": propensity}
                stream.write(json.dumps(row) + "\n")


def explore(world: World, folder: Path, n: int, stochastic: bool, seed: int) -> None:
    model = world.supervised(world.labelled)
    path = folder / "log.jsonl"
    logger = Logger(world, model, stochastic)
    logger.write(path, n, seed)
    log = read_log(path, world.kind)
    up = np.mean([row.reward for row in log.rows])
    print(f"{world.kind.name} stochastic {stochastic} n {n}: logging model {world.value(model):.4f}, up {up:.3f}", flush=True)
    W = joined(model, log.task).W
    for start, name in ((None, "cold"), (W, "warm")):
        for error in ("0", "0,0.1", "0.1", "0.01,0.1", "0.2"):
            settings = settings_for(log, {"rule": "part", "rater_error": error})
            values = []
            made = learn_log(log, settings, W=start, passes=8, look=lambda k, l: values.append(world.value(Model(log.task, l.weights(), {}, {}))))
            print("part", name, error, [f"{v:.4f}" for v in values], flush=True)
    for baseline in (True, False):
        for h in (None, 0.3):
            given = {"rule": "first-order", "baseline": baseline} | ({} if h is None else {"h": h})
            settings = settings_for(log, given)
            values = []
            learn_log(log, settings, W=W, passes=8, look=lambda k, l: values.append(world.value(Model(log.task, l.weights(), {}, {}))))
            print("first-order warm", baseline, settings.h, [f"{v:.4f}" for v in values], flush=True)


if __name__ == "__main__":
    import sys
    messages.say_with(lambda text: print("   #", text))
    for name in sys.argv[2].split(","):
        world = World(name, Path(sys.argv[1]))
        for stochastic in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                explore(world, Path(folder), int(sys.argv[3]), stochastic, 1)
