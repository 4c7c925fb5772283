"""What is learned from logged thumbs, and what `evaluate --log` says of a model, simulated (docs/logged.md).

    python benchmarks/logged.py learn DATA [--sizes 1000,5000,20000] [--seeds 3]    # DATA: conll2000/ and text/ in it
    python benchmarks/logged.py cover DATA [--logs 200]

A model of 100 labelled sentences (documents) labels others: its best output (a deterministic log), or one drawn from
its own distribution (a stochastic one, propensities known). A rater says whether all of it is right, and is wrong one
time in ten. Logs are written as JSON lines and read again. Figures are of the test set, the mean of seeds; a seed says
which inputs are labelled, which are logged, what is drawn, and in which order it is learned from.

``cover``: how often intervals of 95% have the truth in them, which is known: what the rater says in the mean of the
outputs of another model on the inputs that logs are drawn from.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
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

LABELLED, WRONG, PASSES = 100, 0.1, 5


class World:
    """A task's data: some inputs with labels, others that are logged, and a test set."""

    def __init__(self, name: str, folder: Path, seed: int = 0) -> None:
        self.kind = task_spec(name)
        if name == "chunking":
            self.fit = Chunking.fit
            read = (read_conll(folder / f"conll2000/{part}.txt.gz") for part in ("train", "test"))
            every, self.test = (keep_only(understood(corpus)[1], "NP") for corpus in read)
        else:
            self.fit = TextClassification.fit
            every, self.test = (read_documents(folder / f"text/20news4.{part}.tsv.gz") for part in ("train", "test"))
        order = np.random.default_rng(seed).permutation(len(every))
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

    def shown_as_drawn(self, model: Model) -> np.ndarray:
        """Weights by which no I begins a chunk: it would be shown as a B, and the propensity of what is shown would be
        that of several outputs."""
        if self.kind.name == "text":
            return model.W
        W, tags = model.W.copy(), model.task.tags
        assert model.task.order == 2
        K = len(tags)
        W[:, tags.index("O") * K + tags.index("I-NP")] -= 50  # of every attribute, and each token has some
        return W

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
        self.W = world.shown_as_drawn(model)
        self.best = np.split(predict(self.problem, self.W), self.problem.output_start[1:-1])

    def shown(self, n: int, seed: int) -> Iterator[tuple[int, np.ndarray, float | None, bool]]:
        """(input, output, propensity, thumb) of n inputs drawn at random."""
        chance = np.random.default_rng(seed)
        settings = Settings.complete({"rule": "first-order", "seed": seed}, *self.world.kind.usual)
        drawer = Learner(self.problem, settings, self.W)
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


def ways(log: Log, W: np.ndarray) -> Iterator[tuple[str, int, dict[str, object], np.ndarray | None]]:
    """(what it is called, passes, settings, weights to start from) of each way to learn from a log."""
    yield "likelihood, from nothing", 1, {"rule": "part"}, None
    yield "likelihood, from the logging model", PASSES, {"rule": "part"}, W
    names = ("DPM", "DPM, reweighted") if log.deterministic else ("IPS", "SNIPS")
    for name, baseline in zip(names, (False, True), strict=True):
        yield name, PASSES, {"rule": "first-order", "baseline": baseline}, W
    if len(log.rows) <= 5000:
        h = 10 * settings_for(log, {"rule": "first-order"}).h
        yield f"{names[1]}, ten times the h", PASSES, {"rule": "first-order", "h": h}, W


def learn(name: str, data: Path, folder: Path, sizes: list[int], seeds: int) -> None:
    """A table of test figures: after one pass and, where there are more, after five."""
    found: dict[tuple[bool, str], dict[int, list[list[float]]]] = {}
    first, most = [], []
    ups: dict[tuple[bool, int], list[float]] = {}
    for seed in range(seeds):
        world = World(name, data, seed)
        model = world.supervised(world.labelled)
        first.append(world.value(model))
        most.append(world.value(world.supervised(world.pool, 5)))
        for stochastic, n in product((False, True), sizes):
            Logger(world, model, stochastic).write(folder / "log.jsonl", n, seed)
            log = read_log(folder / "log.jsonl", world.kind)
            ups.setdefault((stochastic, n), []).append(float(np.mean([row.reward for row in log.rows])))
            held, W = HeldOut(log.task, log.task.seen(world.test)), joined(model, log.task).W
            problems = {asks: log.task.problem(log.data, asks=asks) for asks in (True, False)}
            for way, passes, given, start in ways(log, W):
                settings, values = settings_for(log, {**given, "seed": seed}), []
                learner = make_learner(problems[given["rule"] == "part"], settings, start)
                for k in range(passes):
                    go_over(learner, log, range(k, k + 1))
                    values += [held.value(learner.weights())] if k in (0, PASSES - 1) else []
                found.setdefault((stochastic, way), {}).setdefault(n, []).append(values)
                print(f"{name}, seed {seed}, {log.deterministic=}, {n:,}: {way} {values}", file=sys.stderr, flush=True)
    print(f"{name}: the logging model {np.mean(first):.4f}, {ups_of(ups)}; all labels {np.mean(most):.4f}")
    print(f"| log | way | {' | '.join(f'{n:,} lines' for n in sizes)} |")
    print(f"|---|---|{'---|' * len(sizes)}")
    for (stochastic, way), of_size in found.items():
        cells = [", ".join(map(spread, zip(*of_size.get(n, []), strict=True))) for n in sizes]
        print("|", " | ".join(["drawn" if stochastic else "deterministic", way, *cells]), "|", flush=True)


def spread(values: tuple[float, ...]) -> str:
    """Mean and standard deviation over seeds."""
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=len(values) > 1):.3f}"


def ups_of(ups: dict[tuple[bool, int], list[float]]) -> str:
    return "; ".join(
        f"ups {'drawn' if drawn else 'best'} {n:,}: {np.mean(each):.2f}" for (drawn, n), each in ups.items()
    )


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
            warned = [any(word in each for each in report["warnings"]) for word in ("in the mean", "too few")]
            for estimate in ("ips", "snips", "doubly_robust"):
                value, low, high = report[estimate]
                found = [value, high - low, low <= truth <= high, report["effective_size"], *warned]
                hits.setdefault((name, estimate), []).append(found)
    for names, values in hits.items():
        value, width, covered, size, odd, few = np.nanmean(values, axis=0)
        cells = [f"{value:.3f}", f"{width:.3f}", f"{covered:.3f}", f"{size:.0f}", f"{odd:.2f}", f"{few:.2f}"]
        print("|", " | ".join([*names, *cells]), "|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("learn", "cover"))
    parser.add_argument("data", type=Path)
    parser.add_argument("--tasks", default="text,chunking")
    parser.add_argument("--sizes", default="1000,5000,20000")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--lines", type=int, default=500, help="of a log of cover")
    args = parser.parse_args()
    messages.say_with(lambda text: None)
    for name in args.tasks.split(","):
        with tempfile.TemporaryDirectory() as folder:
            if args.what == "learn":
                learn(name, args.data, Path(folder), [int(n) for n in args.sizes.split(",")], args.seeds)
            else:
                cover(World(name, args.data), Path(folder), args.lines, args.logs)


if __name__ == "__main__":
    main()
