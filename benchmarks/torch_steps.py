"""The optimiser for PyTorch: evaluations to the same loss, active rows against all; memory and time beside inference.

    python benchmarks/torch_steps.py evaluations [--task "ids, all as often"] [--seeds 3]
    python benchmarks/torch_steps.py memory
    python benchmarks/torch_steps.py time

Prints Markdown. Evaluations are the closure's calls, until the loss of held-out documents, or of all rows, is at a
target.
Memory is the most that a process ever held (resident) beyond its libraries, each way in a process of its own. Time is
CPU time on one thread, the best of several turns that are taken one after the other.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from sparsezo.torch import SparseZO

WORDS, DIM, LENGTH, BATCH = 20_000, 8, 40, 8
EVERY = 100  # evaluations between looks at the loss, or a twentieth of those so far


def documents(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two classes of documents with words by Zipf's law, which the classes have more or less often."""
    rng = torch.Generator().manual_seed(seed)
    lean = torch.randn(WORDS, generator=torch.Generator().manual_seed(99))
    y = torch.randint(0, 2, (n,), generator=rng)
    x = torch.empty(n, LENGTH, dtype=torch.long)
    for label, sign in ((0, 1), (1, -1)):
        chances = torch.exp(sign * lean / 2) / torch.arange(1, WORDS + 1)
        count = int((y == label).sum())
        x[y == label] = torch.multinomial(chances, count * LENGTH, True, generator=rng).view(-1, LENGTH)
    return x, y


class Words:
    """Held-out cross-entropy of documents, by a bag and a linear layer."""

    target = 0.2
    most = 60_000  # evaluations after which a run is given up

    def __init__(self, seed: int) -> None:
        (self.x, self.y), (self.x_test, self.y_test) = documents(20_000, 1), documents(2_000, 2)
        self.model = nn.Sequential(nn.EmbeddingBag(WORDS, DIM), nn.Linear(DIM, 2))
        self.table = self.model[0].weight

    def loss(self, rng: torch.Generator) -> Callable[[], torch.Tensor]:
        batch = torch.randint(0, len(self.x), (BATCH,), generator=rng)
        return lambda: cross_entropy(self.model(self.x[batch]), self.y[batch])

    def held_out(self) -> float:
        return float(cross_entropy(self.model(self.x_test), self.y_test))


class Ids:
    """Mean squared error of a table's rows to wanted ones, 5 of 500 in a batch; over all of them."""

    target = 1.0  # 2 at the start
    most = 250_000

    def __init__(self, seed: int) -> None:
        self.model, self.wanted = nn.Embedding(500, 4), torch.randn(500, 4)
        self.table = self.model.weight

    def loss(self, rng: torch.Generator) -> Callable[[], torch.Tensor]:
        ids = torch.randint(0, 500, (5,), generator=rng)
        return lambda: mse_loss(self.model(ids), self.wanted[ids])

    def held_out(self) -> float:
        return float(mse_loss(self.table, self.wanted))


TASKS = {"words by Zipf's law": Words, "ids, all as often": Ids}


def evaluations(made: type[Words | Ids], everything: bool, h: float | None, seed: int, most: int) -> int | None:
    """Calls of the closure until the loss is at the target; None: not within ``most``."""
    torch.manual_seed(seed)
    task = made(seed)
    active = {task.table: torch.arange(len(task.table))} if everything else None
    optimizer = SparseZO(task.model.parameters(), h=h, mu=None if h is None else 0.01, seed=seed, active=active)
    rng, calls = torch.Generator().manual_seed(seed), 0
    look = EVERY
    while calls < most:
        loss = task.loss(rng)

        def closure() -> torch.Tensor:
            nonlocal calls
            calls += 1
            return loss()  # noqa: B023

        optimizer.step(closure)
        if calls >= look:
            look = calls + max(EVERY, calls // 20)
            with torch.no_grad():
                now = task.held_out()
            if now <= task.target:
                return calls
            if not now < 20:  # h is too large
                return None
    return None


def evaluations_table(tasks: Iterable[str], seeds: int) -> None:
    """h found by itself, and the best of some on the first seed."""
    print("| evaluations | automatic | best h |\n|---|---|---|")
    grids = {False: (0.1, 0.3, 1.0), True: (0.001, 0.003, 0.01, 0.03, 0.1)}
    for task in tasks:
        made = TASKS[task]
        for everything in (False, True):
            automatic = [evaluations(made, everything, None, seed, made.most) for seed in range(seeds)]
            reached: dict[float, int] = {}
            for h in grids[everything]:
                calls = evaluations(made, everything, h, 0, min(reached.values(), default=made.most))
                if calls is not None:
                    reached[h] = calls
            rows = "all rows" if everything else "active rows"
            print(
                f"| {task}, to {made.target}: {rows} | {said(automatic, made.most)} | {best(reached, made.most)} |",
                flush=True,
            )


def said(calls: list[int | None], most: int) -> str:
    """Each seed's."""
    return ", ".join(f"> {most:,}" if each is None else f"{each:,}" for each in calls)


def best(reached: dict[float, int], most: int) -> str:
    if not reached:
        return f"none within {most:,}"
    h = min(reached, key=reached.__getitem__)
    return f"{reached[h]:,} (h {h:g})"


# Memory and time: a bag, and a small transformer


class Encoder(nn.Module):
    """Words, two transformer layers, the mean, a class."""

    def __init__(self, words: int, dim: int, layers: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.words(x)).mean(1))


def bag() -> nn.Module:
    return nn.Sequential(nn.EmbeddingBag(1_000_000, 64), nn.Linear(64, 2))


def deep_bag() -> nn.Module:
    return nn.Sequential(
        nn.EmbeddingBag(500_000, 64),
        nn.Linear(64, 1024),
        nn.ReLU(),
        nn.Linear(1024, 1024),
        nn.ReLU(),
        nn.Linear(1024, 2),
    )


def encoder() -> nn.Module:
    return Encoder(500_000, 128, 4)


def dense() -> nn.Module:
    return Encoder(2_000, 512, 6)


MODELS = {  # name -> (the model, documents in a batch, words in each)
    "bag: 1M x 64, a linear layer": (bag, 256, 100),
    "bag: 500k x 64, three layers of 1,024": (deep_bag, 1024, 20),
    "encoder: 500k x 128, four transformer layers": (encoder, 32, 64),
    "encoder: 2k x 512, six transformer layers": (dense, 16, 64),
}
WAYS = ("inference", "two-point", "symmetric", "comparison", "Adam")


def made(name: str) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """(model, x, y), words by Zipf's law."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, count, length = MODELS[name][0](), *MODELS[name][1:]
    rows = next(model.parameters()).shape[0]
    words = (rows ** torch.rand(count, length)).long() - 1
    return model, words, torch.randint(0, 2, (count,))


def status(name: str) -> int:
    """A line of what Linux says of this process, in kB."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def small_steps() -> None:
    """What every rule compiles, for large weights and small ones, is of the libraries, too."""
    layers = nn.Sequential(nn.Embedding(2, 600), nn.Linear(600, 600), nn.TransformerEncoderLayer(600, 2))
    bag, words = nn.EmbeddingBag(2, 600), torch.ones(2, 2).long()
    for rule in WAYS[1:4]:
        optimizer = SparseZO([*layers.parameters(), *bag.parameters()], rule=rule)
        for _ in range(2):
            optimizer.step(lambda: layers(words).sum() + bag(words).sum())


def memory(name: str, way: str) -> None:
    """Three steps, and the most that this process held beyond its libraries, in MB."""
    small_steps()
    Path("/proc/self/clear_refs").write_text("5")  # the most held begins anew
    before = status("VmRSS")
    model, x, y = made(name)
    closure = lambda: cross_entropy(model(x), y)  # noqa: E731
    if way == "Adam":
        adam = torch.optim.Adam(model.parameters())
    elif way != "inference":
        optimizer = SparseZO(model.parameters(), rule=way)
    for _ in range(3):
        if way == "inference":
            with torch.no_grad():
                closure()
        elif way == "Adam":
            adam.zero_grad()
            closure().backward()
            adam.step()
        else:
            optimizer.step(closure)
    print((status("VmHWM") - before) / 1024)


def memory_table() -> None:
    print("| peak memory, MB (times inference) | " + " | ".join(WAYS) + " |")
    print(f"|{'---|' * (len(WAYS) + 1)}")
    for name in MODELS:
        held = []
        for way in WAYS:
            call = [sys.executable, __file__, "memory", "--model", name, "--way", way]
            held.append(float(subprocess.run(call, capture_output=True, text=True, check=True).stdout))
        print(f"| {name} | " + " | ".join(f"{each:,.0f} ({each / held[0]:.2f})" for each in held) + " |", flush=True)


def time_table(names: Iterable[str], turns: int) -> None:
    rules = WAYS[1:4]
    print("| milliseconds a step (beyond two forward passes) | two forward passes | " + " | ".join(rules) + " |")
    print(f"|{'---|' * (len(rules) + 2)}")
    for name in names:
        model, x, y = made(name)
        closure = lambda: cross_entropy(model(x), y)  # noqa: B023, E731
        optimizers = [SparseZO(model.parameters(), rule=rule) for rule in rules]
        took = [float("inf")] * (len(rules) + 1)
        turn, begun = 0, time.process_time()
        while turn <= turns or (turn <= 50 * turns and time.process_time() < begun + 3):  # short ones more often
            for number, optimizer in enumerate((None, *optimizers)):
                start = time.process_time()
                if optimizer is None:
                    with torch.no_grad():
                        closure(), closure()
                else:
                    optimizer.step(closure)
                if turn:  # the first is not counted
                    took[number] = min(took[number], time.process_time() - start)
            turn += 1
        cells = [f"{1e3 * each:.1f} ({each / took[0] - 1:+.0%})" for each in took[1:]]
        print(f"| {name} | {1e3 * took[0]:.1f} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("evaluations", "memory", "time"))
    parser.add_argument("--task", choices=TASKS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--model", choices=MODELS)
    parser.add_argument("--way", choices=WAYS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.what == "evaluations":
        evaluations_table([given.task] if given.task else TASKS, given.seeds)
    elif given.what == "time":
        time_table([given.model] if given.model else MODELS, given.turns)
    elif given.way:
        memory(given.model, given.way)
    else:
        memory_table()


if __name__ == "__main__":
    main()
