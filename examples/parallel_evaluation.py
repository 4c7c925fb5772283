"""Many evaluations at once, for who has a slow function: a simulator, a build, a model behind a network.

Proposals are asked ahead, a pool evaluates them side by side, and what it finds is told. Each is made at the weights of
its batch, so a batch learns a little less than as many steps one after the other; it takes a fraction of the time.

python examples/parallel_evaluation.py
"""

import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from sparsezo import Optimizer

BEST = np.linspace(-1, 1, 20)  # which nobody knows


def F(w: np.ndarray) -> float:
    """Slow, and without a gradient."""
    time.sleep(0.01)
    return float(np.abs(w - BEST).sum())


def learn(batch: int, processes: int, evaluations: int = 400) -> None:
    optimizer = Optimizer(BEST.size)
    with ProcessPoolExecutor(processes) as pool:
        list(pool.map(F, [BEST] * processes))  # the processes are there
        began = time.perf_counter()
        for _ in range(evaluations // (2 * batch)):
            proposals = optimizer.ask_many(batch)
            points = [point for proposal in proposals for point in proposal.outputs]  # two a proposal
            losses = list(pool.map(F, points))
            optimizer.tell_many(proposals, zip(losses[::2], losses[1::2], strict=True))
        seconds = time.perf_counter() - began
    print(f"{processes} processes, {batch} proposals at a time: F {F(optimizer.weights()):6.3f} in {seconds:.1f} s")


if __name__ == "__main__":
    print(f"at the start: F {F(np.zeros(BEST.size)):.3f}; 400 evaluations of 10 ms each:")
    learn(batch=1, processes=1)
    learn(batch=8, processes=8)
