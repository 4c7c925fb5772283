"""What is learned from logged thumbs, and what `evaluate --log` says of a model, simulated (docs/logged.md).

    python benchmarks/logged.py learn DATA [--sizes 1000,5000,20000] [--seeds 3]    # DATA: conll2000/ and text/ in it
    python benchmarks/logged.py cover DATA [--logs 500]

A model of 100 labelled sentences (documents) labels others: its best output (a deterministic log), or one drawn from
its own distribution (a stochastic one, propensities known). A rater says whether all of it is right, and is wrong one
time in ten. Logs are written as JSON lines and read again. Figures are of the test set.

``cover``: how often intervals of 95% have the truth in them, which is known: what the rater says in the mean of the
outputs of another model on the inputs that logs are drawn from.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from sparsezo import messages
from sparsezo.learner import Learner, predict
from sparsezo.logged import Log, evaluate_log, go_over, read_log, settings_for
from sparsezo.model import Model
from sparsezo.query_learner import make_learner
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.io.conll import read_conll
from sparsezo.tasks.chunking.tags import keep_only, understood
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
            self.fit = Chunking.fit
            read = (read_conll(folder / f"conll2000/{part}.txt.gz") for part in ("train", "test"))
            every, self.test = (keep_only(understood(corpus)[1], "NP") for corpus in read)
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


def ways(log: Log, W: np.ndarray) -> Iterator[tuple[str, dict[str, object], np.ndarray | None]]:
    """(what it is called, settings, weights to start from) of each way to learn from a log."""
    likelihood = {"rule": "part"}
    yield "likelihood, from 0", likelihood, None
    yield "likelihood, from the logging model", likelihood, W
    yield "likelihood, error 0 believed", {**likelihood, "rater_error": "0"}, W
    names = ("DPM", "DPM, reweighted") if log.deterministic else ("IPS", "SNIPS")
    for name, baseline in zip(names, (False, True), strict=True):
        for times in (1, 10):
            usual = settings_for(log, {"rule": "first-order"}).h
            yield f"{name}, h {times * usual:g}", {"rule": "first-order", "baseline": baseline, "h": times * usual}, W


def learn(world: World, folder: Path, sizes: list[int], seeds: range) -> None:
    """A table of test figures after one, two and five passes."""
    model = world.supervised(world.labelled)
    print(f"{world.kind.name}: logging model {world.value(model):.4f}", flush=True)
    for stochastic in (False, True):
        logger = Logger(world, model, stochastic)
        for n in sizes:
            found: dict[str, list[list[float]]] = {}
            up = []
            for seed in seeds:
                logger.write(folder / "log.jsonl", n, seed)
                log = read_log(folder / "log.jsonl", world.kind)
                up += [row.reward for row in log.rows]
                held, W = HeldOut(log.task, log.task.seen(world.test)), joined(model, log.task).W
                problems = {asks: log.task.problem(log.data, asks=asks) for asks in (True, False)}
                for name, given, start in ways(log, W):
                    settings, values = settings_for(log, given), []
                    learner = make_learner(problems[given["rule"] == "part"], settings, start)
                    go_over(learner, log, range(5), look=lambda _: values.append(held.value(learner.weights())))  # noqa: B023
                    found.setdefault(name, []).append([values[0], values[1], values[4]])
            kind = "stochastic" if stochastic else "deterministic"
            for name, values in found.items():
                cells = [
                    kind,
                    f"{n:,}",
                    f"{np.mean(up):.2f}",
                    name,
                    *(f"{each:.4f}" for each in np.mean(values, axis=0)),
                ]
                print("|", " | ".join(cells), "|", flush=True)


def cover(world: World, folder: Path, n: int, logs: int) -> None:
    """How often intervals have the truth in them: propensities as they are, and three ways to have them wrong."""
    logging = world.supervised(world.labelled)
    target = world.supervised(world.pool.take(np.arange(300)))
    chance = np.random.default_rng(0)
    logger = Logger(world, logging, stochastic=True)
    right, of_target = world.right(target), world.seen(target, world.pool)
    best = np.split(predict(p := target.task.problem(of_target, learn=False), target.W), p.output_start[1:-1])
    truth = float(np.mean([1 - WRONG if right(x, y) else WRONG for x, y in enumerate(best)]))
    print(f"{world.kind.name}: {logs} logs of {n:,} lines, the truth is {truth:.4f}", flush=True)
    damage: dict[str, Callable[[float], float]] = {
        "right": lambda p: p,
        "rounded up to tenths": lambda p: float(np.ceil(10 * p) / 10),
        "of a sharper model (p to 0.7)": lambda p: p**0.7,
        "times noise, e to N(0, 0.5)": lambda p: min(p * float(np.exp(0.5 * chance.normal())), 1.0),
    }
    hits: dict[tuple[str, str], list[list[float]]] = {}
    for k in range(logs):
        logger.write(folder / "log.jsonl", n, 1000 + k)
        log = read_log(folder / "log.jsonl", world.kind, target.task)
        for name, wrong in damage.items():
            rows = [replace(row, propensity=wrong(row.propensity)) for row in log.rows]
            report = evaluate_log(target, replace(log, rows=rows))
            warned = any("propensities" in each for each in report["warnings"])
            for estimate in ("ips", "snips", "doubly_robust"):
                value, low, high = report[estimate]
                found = [value, high - low, low <= truth <= high, report["effective_size"], warned]
                hits.setdefault((name, estimate), []).append(found)
    for names, values in hits.items():
        value, width, covered, size, warned = np.mean(values, axis=0)
        print(
            "|",
            " | ".join([*names, f"{value:.3f}", f"{width:.3f}", f"{covered:.3f}", f"{size:.0f}", f"{warned:.2f}"]),
            "|",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("learn", "cover"))
    parser.add_argument("data", type=Path)
    parser.add_argument("--tasks", default="text,chunking")
    parser.add_argument("--sizes", default="1000,5000,20000")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--lines", type=int, default=500, help="of a log of cover")
    args = parser.parse_args()
    messages.say_with(lambda text: None)
    for name in args.tasks.split(","):
        with tempfile.TemporaryDirectory() as folder:
            world = World(name, args.data)
            if args.what == "learn":
                learn(world, Path(folder), [int(n) for n in args.sizes.split(",")], range(args.seeds))
            else:
                cover(world, Path(folder), args.lines, args.logs)


if __name__ == "__main__":
    main()
