"""Functions of 1,000 weights, defaults only: evaluations to 1e-4 of F(0), beside peers; what ask and tell cost.

    python benchmarks/black_boxes.py [--budget 40000] [--only NAME ...]     # pip install nevergrad noisyopt cma cmaes
    python benchmarks/black_boxes.py overhead                              # 1.5M weights with 3,750 active

Prints Markdown. Every optimizer starts at 0 and is given F, how many evaluations it may have, and a seed; those
that want a first step (cma, cmaes) get 0.5. What F is without its noise is looked at from outside:
the point counts that the optimizer would return if it were stopped there; where a peer does not say, the best one told.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings

import numpy as np

N = 1_000
WITHIN = 1e-4


class Enough(Exception):  # noqa: N818
    """The budget is used up."""


class Box:
    """A function that counts its calls; ``look(w)`` notes when w is first good enough."""

    def __init__(self, name, f, noise, scale, budget):
        self.name, self.f, self.noise, self.scale, self.budget = name, f, noise, scale, budget
        self.rng = np.random.default_rng(7)
        self.start, self.calls, self.hit, self.last = f(np.zeros(N)), 0, None, np.nan

    def __call__(self, w, *_):
        if self.calls >= self.budget:
            raise Enough
        self.calls += 1
        return self.scale * (self.f(np.asarray(w)) + (self.noise * self.rng.standard_normal() if self.noise else 0.0))

    def look(self, w):
        self.last = self.f(np.asarray(w)) / self.start
        if self.hit is None and self.last <= WITHIN:
            self.hit = self.calls


def boxes(budget):
    """(name, a fresh box) of what is minimised."""
    rng = np.random.default_rng(100)
    wanted, steep = rng.standard_normal(N), np.logspace(-1.5, 1.5, N)
    turned = np.linalg.qr(rng.standard_normal((N, N)))[0]
    sphere = lambda w: 0.5 * float(((w - wanted) ** 2).sum())  # noqa: E731
    long = lambda w: 0.5 * float(steep @ (w - wanted) ** 2)  # noqa: E731
    askew = lambda w: 0.5 * float(steep @ (turned @ (w - wanted)) ** 2)  # noqa: E731
    corner = lambda w: float(np.abs(w - wanted).sum())  # noqa: E731
    return {
        name: Box(name, *rest, budget)
        for name, *rest in (
            ("condition 1", sphere, 0.0, 1.0),
            ("condition 1, times 1e4", sphere, 0.0, 1e4),
            ("condition 1,000", long, 0.0, 1.0),
            ("condition 1,000, turned", askew, 0.0, 1.0),
            ("L1 norm", corner, 0.0, 1.0),
            ("condition 1, noise 1", sphere, 1.0, 1.0),
            ("condition 1,000, noise 1", long, 1.0, 1.0),
            ("condition 1, noise 50", sphere, 50.0, 1.0),
        )
    }


def ours(box):
    from sparsezo import minimize

    result = minimize(box, np.zeros(N), box.budget, callback=lambda result: box.look(result.x))
    box.look(result.x)


def nevergrad(name):
    def run(box):
        import nevergrad as ng

        optimizer = ng.optimizers.registry[name](ng.p.Array(init=np.zeros(N)), budget=box.budget)
        optimizer.parametrization.random_state.seed(0)
        for k in range(box.budget):
            asked = optimizer.ask()
            optimizer.tell(asked, box(asked.value))
            if k % 50 == 0:
                box.look(optimizer.provide_recommendation().value)
        box.look(optimizer.provide_recommendation().value)

    return run


def noisyopt(box):
    from noisyopt import minimizeSPSA

    np.random.seed(0)  # noqa: NPY002
    found = minimizeSPSA(box, np.zeros(N), niter=box.budget // 2, paired=False, callback=lambda w: box.look(w))
    box.look(found.x)


def pycma(box):
    import cma

    es = cma.CMAEvolutionStrategy(np.zeros(N), 0.5, {"CMA_diagonal": True, "seed": 1, "verbose": -9})
    while box.calls + es.popsize <= box.budget:
        asked = es.ask()
        es.tell(asked, [box(w) for w in asked])
        box.look(es.result.xfavorite if box.noise else es.result.xbest)


def cmaes(box):
    from cmaes import SepCMA

    es = SepCMA(mean=np.zeros(N), sigma=0.5, seed=0)
    best, least = np.zeros(N), np.inf
    while box.calls + es.population_size <= box.budget:
        told = [(w, box(w)) for w in (es.ask() for _ in range(es.population_size))]
        es.tell(told)
        w, F = min(told, key=lambda each: each[1])
        if least > F:
            best, least = w, F
        box.look(es._mean if box.noise else best)


OPTIMIZERS = {
    "sparsezo": ours,
    "Nevergrad OnePlusOne": nevergrad("OnePlusOne"),
    "Nevergrad SPSA": nevergrad("SPSA"),
    "noisyopt SPSA": noisyopt,
    "pycma diagonal": pycma,
    "cmaes SepCMA": cmaes,
}


def compare(budget, only):
    names = [name for name in OPTIMIZERS if not only or name in only]
    print(f"Evaluations to {WITHIN:g} of F(0), or F / F(0) after {budget:,}; {N:,} weights, defaults only.\n")
    print("| F |", " | ".join(names), "|\n|---|" + "---|" * len(names))
    for function in boxes(1):
        cells = []
        for name in names:
            box = boxes(budget)[function]
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    OPTIMIZERS[name](box)
            except Enough:
                pass
            except (ValueError, FloatingPointError, OverflowError) as error:
                cells.append(type(error).__name__)
                continue
            cells.append(f"{box.hit:,}" if box.hit else f"{box.last:.2g} left")
        print(f"| {function} |", " | ".join(cells), "|", flush=True)


def overhead(rounds=30, steps=200):
    """Ask and tell beside a loop by hand, in turns; the loss is free."""
    from sparsezo import Optimizer, Settings

    n, m = 1_500_000, 3_750
    rng = np.random.default_rng(0)
    inputs = [np.sort(rng.choice(n, m, replace=False)) for _ in range(20)]
    h = mu = 0.01
    w = np.zeros(n)

    def by_hand():
        for k in range(steps):
            x = inputs[k % 20]
            u = rng.standard_normal(m)
            here = w[x]
            plus, minus = here + mu * u, here - mu * u
            c = -h * (plus[0] - minus[0]) / (2 * mu)
            w[x] = here + c * u

    def ask_and_tell(optimizer):
        def run():
            for k in range(steps):
                proposal = optimizer.ask(inputs[k % 20])
                optimizer.tell(proposal, (proposal.candidate[0], proposal.incumbent[0]))

        return run

    loops = {
        "by hand, NumPy": by_hand,
        "Optimizer, automatic": ask_and_tell(Optimizer(n)),
        "Optimizer, h and mu given": ask_and_tell(Optimizer(n, Settings("symmetric", "active", h=h, mu=mu))),
    }
    times = {name: [] for name in loops}
    for _ in range(rounds + 1):
        for name, loop in loops.items():
            begun = time.perf_counter()
            loop()
            times[name].append((time.perf_counter() - begun) / steps * 1e6)
    plain = statistics.median(times["by hand, NumPy"][1:])
    print(f"{n:,} weights, {m:,} active; median of {rounds} rounds in turns.\n")
    print("| loop | microseconds a step | times by hand |\n|---|---|---|")
    for name, each in times.items():
        print(f"| {name} | {statistics.median(each[1:]):.0f} | {statistics.median(each[1:]) / plain:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["compare", "overhead"], default="compare")
    parser.add_argument("--budget", type=int, default=40_000)
    parser.add_argument("--only", nargs="*", help="names of optimizers")
    given = parser.parse_args()
    overhead() if given.what == "overhead" else compare(given.budget, given.only)
