"""Teach a PyTorch classifier a metric that has no gradient: the F1 of a rare class, by two evaluations a step.

python examples/torch_embedding_bag.py [--steps 3000]

Of the table of 20,000 words only the rows of a batch's words are perturbed and moved; beside it, all rows.
"""

import argparse

import torch
from torch import nn

from sparsezo.torch import SparseZO

WORDS, DIM, LENGTH, BATCH = 20_000, 8, 40, 64


def documents(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Words by Zipf's law, some of which one class in eight has more often."""
    rng = torch.Generator().manual_seed(seed)
    lean = torch.randn(WORDS, generator=torch.Generator().manual_seed(99))
    usual = 1 / torch.arange(1, WORDS + 1)
    y = torch.rand(n, generator=rng) < 1 / 8
    x = torch.empty(n, LENGTH, dtype=torch.long)
    for rare in (False, True):
        chances = usual * torch.exp(lean / 2 if rare else -lean / 2)
        x[y == rare] = torch.multinomial(chances, int((y == rare).sum()) * LENGTH, True, generator=rng).view(-1, LENGTH)
    return x, y


def f1(scores: torch.Tensor, y: torch.Tensor) -> float:
    said = scores[:, 0] > 0
    return float(2 * (said & y).sum() / (said.sum() + y.sum()).clamp(min=1))


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3_000)
steps = parser.parse_args().steps
torch.set_num_threads(1)
x, y = documents(20_000, 1)
x_test, y_test = documents(4_000, 2)

for name in ("active rows", "all rows"):
    torch.manual_seed(0)
    model = nn.Sequential(nn.EmbeddingBag(WORDS, DIM), nn.Linear(DIM, 1))
    active = {model[0].weight: torch.arange(WORDS)} if name == "all rows" else None
    optimizer = SparseZO(model.parameters(), rule="symmetric", h=1.0, mu=0.3, active=active)
    batches = torch.Generator().manual_seed(3)
    for _ in range(steps):
        batch = torch.randint(0, len(x), (BATCH,), generator=batches)
        optimizer.step(lambda: 1 - f1(model(x[batch]), y[batch]))  # noqa: B023
    with torch.no_grad():
        print(f"{name}: test F1 {f1(model(x_test), y_test):.3f} after {2 * steps:,} evaluations")
