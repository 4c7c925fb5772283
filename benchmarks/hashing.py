"""What `--hash-bits` costs: two-point score on CoNLL-2000's noun phrases, hashed features beside an exact vocabulary.

    python benchmarks/hashing.py DATA -o docs/results/scaling       # hashing.csv; prints the table of docs/scaling.md

Test F1 of the last weights after 1M steps (h 0.001, mu 0.1, constant). DATA is a folder with conll2000/.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparsezo import Learner, Settings
from sparsezo.learner import predict
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import task_spec

BITS = (None, 18, 20, 22)
SEEDS, STEPS = range(1, 9), 1_000_000
SETTINGS = {"rule": "two-point", "perturb": "score", "h": 0.001, "mu": 0.1}


def load(train: str, test: str | None, bits: int | None) -> Any:
    options = {"only": "NP"} | ({"hash_bits": bits} if bits else {})
    return task_spec("chunking").load(Files((train,), None, test, options))


def apart(exact: Any, hashed: Any) -> float:
    """The share of features that have a row of their own."""
    pairs = np.stack([each.task.index.rows(each.data.train).columns for each in (exact, hashed)])
    _, of_row, counts = np.unique(np.unique(pairs, axis=1)[1], return_inverse=True, return_counts=True)
    return float((counts[of_row] == 1).mean())


def measure(train: str, test: str, seeds: Sequence[int] = SEEDS, steps: int = STEPS) -> list[dict[str, Any]]:
    exact, rows = load(train, test, None), []
    for bits in BITS:
        loaded = load(train, test, bits) if bits else exact
        problem, gold = loaded.task.problem(loaded.data.train), loaded.task.gold(loaded.data.train)
        unseen, right = loaded.task.problem(loaded.data.test, learn=False), loaded.task.gold(loaded.data.test)
        share = apart(exact, loaded) if bits else 1.0
        for seed in seeds:
            learner = Learner(problem, Settings(**SETTINGS, seed=seed))
            learner.run(gold, steps=steps)
            f1 = loaded.task.quality(unseen, right, predict(unseen, learner.weights()))
            sizes = {"bits": bits or "", "weights": problem.n_features * problem.n_labels, "apart": round(share, 4)}
            rows.append({**sizes, "seed": seed, "f1": round(f1, 5)})
            print(*rows[-1].values(), sep="  ", flush=True)
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """For docs/scaling.md: means, and differences to the exact vocabulary seed by seed."""
    lines = ["| | weights | features with a row of their own | test F1 | difference |", "|---|---|---|---|---|"]
    exact = np.array([float(row["f1"]) for row in rows if not row["bits"]])
    for bits in dict.fromkeys(row["bits"] for row in rows):
        known = [row for row in rows if row["bits"] == bits]
        f1 = np.array([float(row["f1"]) for row in known])
        cells = [f"{bits} bits" if bits else "exact vocabulary", f"{int(known[0]['weights']):,}"]
        cells += [f"{float(known[0]['apart']):.0%}", f"{f1.mean():.4f}"]
        error = (f1 - exact).std(ddof=1) / np.sqrt(f1.size)
        lines.append(f"| {' | '.join(cells)} | {f'{(f1 - exact).mean():.4f} ± {error:.4f} |' if bits else '|'}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/results/scaling"))
    args = parser.parse_args()
    rows = measure(*(str(args.data / "conll2000" / f"{name}.txt.gz") for name in ("train", "test")))
    with open(args.output / "hashing.csv", "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(table([{name: str(value) for name, value in row.items()} for row in rows]))


if __name__ == "__main__":
    main()
