"""``minimize`` and ``Optimizer`` beside their peers, defaults only. pip install nevergrad noisyopt cma cmaes torchzero

    python benchmarks/black_boxes.py compare [--seeds 5] [--peers-seeds 1]    # functions of 1,000 weights
    python benchmarks/black_boxes.py steps [--seeds 3] [--sizes 10 100]       # exact functions made of steps
    python benchmarks/black_boxes.py price                                    # 1.5M weights with 3,750 active
    python benchmarks/black_boxes.py f1 DATA/text                             # F1 of a rare class, 20 Newsgroups

Prints Markdown. Every optimizer starts at 0 and is given F, how many evaluations it may have, and a seed; those
that want a first step (cma, cmaes) get 0.5. What F is without its noise is looked at from outside:
the point counts that the optimizer would return if it were stopped there; where a peer does not say, the best one told.
Times are of one core (process_time), so that a busy machine does not matter much.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import statistics
import time
import warnings
from pathlib import Path

import numpy as np

N = 1_000
WITHIN = 1e-4


class Enough(Exception):  # noqa: N818
    """The budget is used up."""


class Box:
    """A function that counts its calls; ``look(w)`` notes when w is first good enough."""

    n = N

    def __init__(self, f, noise, budget, seed):
        self.f, self.noise, self.budget, self.seed = f, noise, budget, seed
        self.rng = np.random.default_rng(seed)
        self.start, self.calls, self.hit, self.last = f(np.zeros(N)), 0, None, np.nan

    def __call__(self, w, *_):
        if self.calls >= self.budget:
            raise Enough
        self.calls += 1
        return self.f(np.asarray(w)) + (self.noise * self.rng.standard_normal() if self.noise else 0.0)

    def look(self, w):
        self.last = self.f(np.asarray(w)) / self.start
        if self.hit is None and self.last <= WITHIN:
            self.hit = self.calls


def functions(seed):
    """name: (F, noise). Their kinds were used to choose how to walk, at 50 and 100 weights and drawn otherwise."""
    rng = np.random.default_rng(7_000 + seed)
    wanted, steep = rng.standard_normal(N), rng.permutation(np.logspace(-1.5, 1.5, N))
    reflected = [each / np.linalg.norm(each) for each in rng.standard_normal((8, N))]
    scale = np.logspace(-1, 1, N)
    X = rng.standard_normal((200, N)) * scale
    y = np.sign(X @ (wanted / scale))

    def turned(w):
        for v in reflected:  # Householder: no weight is alone any more
            w = w - 2 * (v @ w) * v
        return w

    def sphere(w):
        return 0.5 * float(((w - wanted) ** 2).sum())

    def long(w):
        return 0.5 * float(steep @ (w - wanted) ** 2)

    def rosenbrock(w):
        return float((100 * (w[1:] - w[:-1] ** 2) ** 2 + (1 - w[:-1]) ** 2).sum())

    def logistic(w):
        return float(np.logaddexp(0, -y * (X @ w)).mean()) + 1e-4 * float(w @ w)

    return {
        "condition 1": (sphere, 0.0),
        "condition 1,000": (long, 0.0),
        "condition 1,000, turned": (lambda w: long(wanted + turned(w - wanted)), 0.0),
        "condition 1, noise 1": (sphere, 1.0),
        "condition 1,000, noise 1": (long, 1.0),
        "Rosenbrock": (rosenbrock, 0.0),
        "logistic loss, columns 0.1 to 10": (logistic, 0.0),
        "errors of 200 (0/1 loss)": (lambda w: float((y * (X @ w) <= 0).mean()), 0.0),
    }


def ours(box):
    from sparsezo import minimize

    result = minimize(box, np.zeros(box.n), box.budget, box.seed, callback=lambda result: box.look(result.x))
    box.look(result.x)


def nevergrad(name):
    def run(box):
        import nevergrad as ng

        optimizer = ng.optimizers.registry[name](ng.p.Array(init=np.zeros(box.n)), budget=box.budget)
        optimizer.parametrization.random_state.seed(box.seed)
        for k in range(box.budget):
            asked = optimizer.ask()
            optimizer.tell(asked, box(asked.value))
            if k % 50 == 0:
                box.look(optimizer.provide_recommendation().value)
        box.look(optimizer.provide_recommendation().value)

    return run


def noisyopt(box):
    from noisyopt import minimizeSPSA

    np.random.seed(box.seed)  # noqa: NPY002
    found = minimizeSPSA(box, np.zeros(box.n), niter=box.budget // 2, paired=False, callback=lambda w: box.look(w))
    box.look(found.x)


def pycma(box, diagonal=True):
    import cma

    es = cma.CMAEvolutionStrategy(np.zeros(box.n), 0.5, {"CMA_diagonal": diagonal, "seed": box.seed + 1, "verbose": -9})
    while box.calls + es.popsize <= box.budget:
        asked = es.ask()
        es.tell(asked, [box(w) for w in asked])
        box.look(es.result.xfavorite if box.noise else es.result.xbest)


def cmaes(box):
    from cmaes import SepCMA

    es = SepCMA(mean=np.zeros(box.n), sigma=0.5, seed=box.seed)
    best, least = np.zeros(box.n), np.inf
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


def compare(budget, seeds, peers_seeds, only):
    names = [name for name in OPTIMIZERS if not only or name in only]
    print(
        f"Evaluations to {WITHIN:g} of F(0), or F / F(0) after {budget:,}; {N:,} weights, defaults only; the median of"
    )
    print(f"{seeds} seeds, of {peers_seeds} for the peers.\n")
    print("| F |", " | ".join(names), "|\n|---|" + "---|" * len(names))
    for function in functions(0):
        cells = []
        for name in names:
            found = [one(name, function, budget, seed) for seed in range(seeds if name == "sparsezo" else peers_seeds)]
            hit, last = zip(*found, strict=True)
            middle = statistics.median(hit)
            cells.append(f"{middle:,.0f}" if middle < np.inf else f"{statistics.median(last):.2g} left")
        print(f"| {function} |", " | ".join(cells), "|", flush=True)


def one(name, function, budget, seed):
    """(evaluations to the goal, infinite where it was not met; what is left)."""
    box = Box(*functions(seed)[function], budget, seed)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            OPTIMIZERS[name](box)
    except (Enough, ValueError, FloatingPointError, OverflowError):
        pass
    return box.hit or np.inf, box.last


# Exact functions made of steps


def made_of_steps(n, seed):
    """name: F of n weights."""
    rng = np.random.default_rng(9_000 + seed)
    rows = 400 + 2 * n
    X = rng.standard_normal((rows, n))
    X[:, 0] = 1
    score = X @ rng.standard_normal(n) / np.sqrt(n)
    rare, wrong = score > np.quantile(score, 0.9), score + rng.standard_normal(rows) / 3 > 0
    ten = rng.standard_normal((100, 10, n))
    right = (ten @ rng.standard_normal(n) + np.sqrt(n) / 3 * rng.standard_normal((100, 10))).argmax(1)
    flat, each = ten.reshape(1_000, n), np.arange(100)

    def f1(w):
        said = X @ w > 0
        return 1 - 2 * float((said & rare).sum()) / float(said.sum() + rare.sum())

    def rank(w):
        found = (flat @ w).reshape(100, 10)
        return 1 - float((1 / (found >= found[each, right][:, None]).sum(1)).mean())

    return {
        "1 - F1, one in ten": f1,
        "errors, noisy labels": lambda w: float(((X @ w > 0) != wrong).mean()),
        "1 - mean reciprocal rank of 10": rank,
    }


class BestOf(Box):
    """The least value seen, whatever an optimizer returns."""

    def __init__(self, f, n, budget, seed):
        self.f, self.n, self.noise, self.budget, self.seed = f, n, 0.0, budget, seed
        self.calls, self.least = 0, np.inf

    def __call__(self, w, *_):
        if self.calls >= self.budget:
            raise Enough
        self.calls += 1
        value = self.f(np.asarray(w))
        self.least = min(self.least, value)
        return value

    def look(self, w):
        pass


def evolution(box):
    from scipy.optimize import differential_evolution

    differential_evolution(box, [(-3, 3)] * box.n, x0=np.zeros(box.n), rng=box.seed, maxiter=10**6, polish=False, tol=0)


def nelder_mead(box):
    from scipy.optimize import minimize

    minimize(box, np.zeros(box.n), method="Nelder-Mead", options={"maxfev": box.budget})


def pycma_full(box):
    pycma(box, diagonal=False)


OF_STEPS = {"SciPy differential evolution": evolution, "SciPy Nelder-Mead": nelder_mead, "pycma": pycma_full}


def steps(seeds, sizes, only):
    """Means of the least value seen."""
    names = {**OPTIMIZERS, **OF_STEPS, "Nevergrad NGOpt": nevergrad("NGOpt")}
    names = {name: run for name, run in names.items() if "SPSA" not in name and (not only or name in only)}
    print(f"The least F seen, defaults only; the mean of {seeds} seeds, each another function.\n")
    print("| F |", " | ".join(names), "|\n|---|" + "---|" * len(names))
    for n in sizes:
        budget = min(200 * n, 20_000)
        for function in made_of_steps(n, 0):
            cells = []
            for run in names.values():
                boxes = [BestOf(made_of_steps(n, seed)[function], n, budget, seed) for seed in range(seeds)]
                for box in boxes:
                    with np.errstate(all="ignore"), warnings.catch_warnings(), contextlib.suppress(Enough, ValueError):
                        warnings.simplefilter("ignore")
                        run(box)
                cells.append(f"{np.mean([box.least for box in boxes]):.3f}")
            print(f"| {function}, {n:,} weights, {budget:,} |", " | ".join(cells), "|", flush=True)


# What ask and tell cost


def price(rounds=12, steps=100):
    """A step of ask and tell beside a loop by hand, in turns, and beside what peers take; the loss is free."""
    from scipy.sparse import csr_array

    from sparsezo import Optimizer, RowSpace, Settings

    n, m, R = 1_500_000, 3_750, 24
    rng = np.random.default_rng(0)
    inputs = [np.sort(rng.choice(n, m, replace=False)) for _ in range(20)]
    sparse = csr_array((np.ones(2 * m), (rng.integers(0, R, 2 * m), np.arange(2 * m) % m)), shape=(R, m))
    spaces = [RowSpace(sparse, x) for x in inputs]
    dense = [RowSpace(rng.standard_normal((R, m)), x) for x in inputs]
    h = mu = 0.01
    w = np.zeros(n)

    def by_hand(k):
        x = inputs[k % 20]
        u = rng.standard_normal(m)
        here = w[x]
        plus, minus = here + mu * u, here - mu * u
        c = -h * (plus[0] - minus[0]) / (2 * mu)
        w[x] = here + c * u

    def ask_and_tell(optimizer, **given):
        def step(k):
            proposal = optimizer.ask(**{name: each[k % 20] for name, each in given.items()})
            optimizer.tell(proposal, (proposal.candidate[0], proposal.incumbent[0]))

        return step

    given = {name: Settings("symmetric", name, h=h, mu=mu) for name in ("active", "score")}
    loops = {
        "a loop by hand, NumPy": by_hand,
        "Optimizer, h and mu given": ask_and_tell(Optimizer(n, given["active"]), active=inputs),
        "Optimizer, automatic": ask_and_tell(Optimizer(n), active=inputs),
        "Optimizer, score, sparse C of 24 rows": ask_and_tell(Optimizer(n, given["score"]), C=spaces),
        "Optimizer, score, dense C of 24 rows": ask_and_tell(Optimizer(n, given["score"]), C=dense),
    }
    times = {name: [] for name in loops}
    for _ in range(rounds + 1):
        for name, step in loops.items():
            begun = time.process_time()
            for k in range(steps):
                step(k)
            times[name].append((time.process_time() - begun) / steps * 1e6)
    best = {name: min(each[1:]) for name, each in times.items()}
    plain = best["a loop by hand, NumPy"]
    print(f"{n:,} weights, {m:,} active; best of {rounds} rounds in turns; two evaluations a step.\n")
    print("| | microseconds an evaluation | times by hand |\n|---|---|---|")
    for name, each in best.items():
        print(f"| {name} | {each / 2:.0f} | {each / plain:.2f} |", flush=True)
    for name, peer in PEERS_OF_ALL.items():
        print(f"| {name} | {peer(n):,.0f} | |", flush=True)


def _timed(calls, evaluations):
    """Microseconds of one core an evaluation."""
    begun = time.process_time()
    calls()
    return (time.process_time() - begun) / evaluations * 1e6


def _nevergrad_price(n):
    import nevergrad as ng

    optimizer = ng.optimizers.SPSA(ng.p.Array(init=np.zeros(n)), budget=1_000)

    def calls():
        for _ in range(10):
            asked = optimizer.ask()
            optimizer.tell(asked, float(asked.value[0]))

    calls()
    return _timed(calls, 10)


def _noisyopt_price(n):
    from noisyopt import minimizeSPSA

    return _timed(lambda: minimizeSPSA(lambda w: float(w[0]), np.zeros(n), niter=5, paired=False), 10)


def _pycma_price(n):
    import cma

    es = cma.CMAEvolutionStrategy(np.zeros(n), 0.5, {"CMA_diagonal": True, "seed": 1, "verbose": -9})

    def calls():
        asked = es.ask()
        es.tell(asked, [float(w[0]) for w in asked])

    return _timed(calls, es.popsize)


def _cmaes_price(n):
    from cmaes import SepCMA

    es = SepCMA(mean=np.zeros(n), sigma=0.5, seed=0)

    def calls():
        asked = [es.ask() for _ in range(es.population_size)]
        es.tell([(w, float(w[0])) for w in asked])

    return _timed(calls, es.population_size)


def _torchzero_price(n):
    import torch
    import torchzero as tz

    w = torch.nn.Parameter(torch.zeros(n, dtype=torch.float64))
    optimizer = tz.Optimizer([w], tz.m.SPSA(), tz.m.LR(0.01))
    evaluated = 0

    def closure(backward=True):
        nonlocal evaluated
        evaluated += 1
        return w[0]

    def calls():
        for _ in range(5):
            optimizer.step(closure)

    calls()
    evaluated, begun = 0, time.process_time()
    calls()
    return (time.process_time() - begun) / evaluated * 1e6


PEERS_OF_ALL = {  # each perturbs all weights: none is told which are active
    "Nevergrad SPSA": _nevergrad_price,
    "noisyopt SPSA": _noisyopt_price,
    "pycma diagonal": _pycma_price,
    "cmaes SepCMA": _cmaes_price,
    "torchzero SPSA": _torchzero_price,
}


# F1 of a rare class


class Texts:
    """20 Newsgroups: is it talk? Only every eighth such text is kept, 3% of all. F is 1 - F1 of a batch of 32 texts, a
    quarter of them of the class; a linear model over tf-idf."""

    def __init__(self, folder):
        from sklearn.feature_extraction.text import TfidfVectorizer

        (texts, self.y), (test, self.y_test) = (
            self.read(folder / f"20news4.{name}.tsv.gz") for name in ("train", "test")
        )
        made = TfidfVectorizer(min_df=2)
        self.X, self.X_test = made.fit_transform(texts).tocsr(), made.transform(test).tocsr()
        self.of_class = np.flatnonzero(self.y), np.flatnonzero(~self.y)

    @staticmethod
    def read(path):
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
            labels, texts = zip(*(line.rstrip("\n").split("\t", 1) for line in lines), strict=True)
        rare = np.array(labels) == "talk"
        kept = ~rare
        kept[np.flatnonzero(rare)[::8]] = True
        return [text for text, keep in zip(texts, kept, strict=True) if keep], rare[kept]

    def batch(self, rng):
        return np.concatenate(
            [rng.choice(each, size, replace=False) for each, size in zip(self.of_class, (8, 24), strict=True)]
        )

    def F(self, w, rows):
        said, right = self.X[rows] @ w > 0, self.y[rows]
        return 1 - 2 * float((said & right).sum()) / float(said.sum() + right.sum())

    def test_f1(self, w):
        said = self.X_test @ w > 0
        return 2 * float((said & self.y_test).sum()) / float(said.sum() + self.y_test.sum())


def f1(folder, budget, seeds):
    texts = Texts(folder)
    n = texts.X.shape[1]
    print(
        f"{n:,} weights, {len(texts.y):,} texts, {texts.y.sum()} of the class; {budget:,} evaluations, {seeds} seeds.\n"
    )
    print("| | test F1 | seconds | test F1 in sparsezo's seconds |\n|---|---|---|---|")
    scores, seconds = [], []
    for seed in range(seeds):
        from sparsezo import minimize

        begun = time.process_time()
        sample = lambda k, seed=seed: texts.batch(np.random.default_rng([seed, k]))  # noqa: E731
        result = minimize(texts.F, n, budget, seed, sample=sample, features=lambda rows: texts.X[rows])
        seconds.append(time.process_time() - begun)
        scores.append(texts.test_f1(result.x))
    print(f"| sparsezo | {np.mean(scores):.3f} ({min(scores):.3f} to {max(scores):.3f}) | {np.mean(seconds):.0f} | |")
    for name, peer in OPTIMIZERS.items():
        if name == "sparsezo":
            continue
        box = TextBox(texts, n, budget, statistics.mean(seconds))
        begun = time.process_time()
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(Enough, ValueError, OverflowError):
                peer(box)
        print(f"| {name} | {box.last:.3f} | {time.process_time() - begun:.0f} | {box.in_time:.3f} |", flush=True)
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    begun = time.process_time()
    grid = {"C": [1, 10, 100, 1000], "class_weight": [None, "balanced"]}
    tuned = GridSearchCV(LogisticRegression(max_iter=300), grid, scoring="f1", cv=3).fit(texts.X, texts.y)
    said = tuned.predict(texts.X_test)
    score = 2 * float((said & texts.y_test).sum()) / float(said.sum() + texts.y_test.sum())
    print(f"| logistic regression, tuned on train | {score:.3f} | {time.process_time() - begun:.0f} | |")


class TextBox:
    """F(w) of a batch of its own at each call, for peers; ``last`` is the test F1 of the point looked at last."""

    def __init__(self, texts, n, budget, seconds):
        self.texts, self.n, self.budget, self.seconds, self.seed = texts, n, budget, seconds, 0
        self.noise, self.calls, self.rng = 1.0, 0, np.random.default_rng(0)
        self.begun, self.looked, self.last, self.in_time = time.process_time(), 0, 0.0, 0.0

    def __call__(self, w, *_):
        if self.calls >= self.budget:
            raise Enough
        self.calls += 1
        return self.texts.F(np.asarray(w), self.texts.batch(self.rng))

    def look(self, w):
        if self.calls < self.looked + self.budget // 40 and self.calls < self.budget - 100:
            return
        self.looked, self.last = self.calls, self.texts.test_f1(np.asarray(w))
        if time.process_time() - self.begun <= self.seconds:
            self.in_time = self.last


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["compare", "steps", "price", "f1"])
    parser.add_argument("folder", nargs="?", type=Path, help="f1: where 20news4.train.tsv.gz is")
    parser.add_argument("--budget", type=int, default=40_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peers-seeds", type=int, default=1)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10, 100])
    parser.add_argument("--only", nargs="*", help="names of optimizers")
    given = parser.parse_args()
    if given.what == "price":
        price()
    elif given.what == "steps":
        steps(given.seeds, given.sizes, given.only)
    elif given.what == "f1":
        f1(given.folder, given.budget, given.seeds)
    else:
        compare(given.budget, given.seeds, given.peers_seeds, given.only)
