"""`h = "auto"` beside an h that was tuned with labels: the figure on test after so many steps, of the weights as they
are then, over seeds that neither was chosen with. No dev set: users without labels have none.

    python benchmarks/auto_h.py DATA -o auto.csv                                   # 100k steps, five seeds
    python benchmarks/auto_h.py DATA --steps 1M --tasks chunking,text -o auto.csv  # rows are added to what is there
    python benchmarks/auto_h.py DATA --answers 300,3000 --rules part,label -o answers.csv
    python benchmarks/auto_h.py DATA --rules two-point --perturb score --step constant,adagrad --h tuned -o which.csv
    python benchmarks/auto_h.py --table docs/results/steps/auto.csv                # the table of docs/steps.md

Needs the real data: CoNLL-2000, CoNLL-2002, 20 Newsgroups in four classes and the n-best lists (docs/data.md).
"""

from __future__ import annotations

import argparse
import csv
import itertools
import statistics
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

NAMES = "chunking", "conll2002/esp.train.gz", "conll2002/esp.testa.gz"
TASKS: dict[str, tuple[str, str, str, dict[str, object]]] = {  # name -> task, train, test, options
    "chunking": ("chunking", "conll2000/train.txt.gz", "conll2000/test.txt.gz", {"only": "NP", "clusters": "none"}),
    "text": ("text", "text/20news4.train.tsv.gz", "text/20news4.test.tsv.gz", {}),
    "names": (*NAMES, {"features": "words", "order": 1, "clusters": "none"}),
    "names-clusters": (*NAMES, {"features": "words", "order": 1, "clusters": "es"}),
    "rerank": ("rerank", "smt/nc-devtest2007.nbest.xz", "smt/nc-test2007.nbest.xz", {"init": "weights.out-of-domain"}),
}
RULES = ("two-point", "symmetric", "comparison", "preference", "baseline")
USUAL = "chunking", "text", "names", "rerank"
TUNED = {  # task, step -> h by what is perturbed; what is not here has the task's default, a number
    ("chunking", "adagrad"): {"score": 0.05, "active": 0.05},
    ("chunking", "constant"): {"score": 0.001, "active": 3e-4},
    ("text", "adagrad"): {"score": 0.3, "active": 0.3},
}
WITHIN = {"names": 0.02, "names-clusters": 0.02}  # of the default's figure; 0.005 for the others
FIELDS = ("task", "rule", "perturb", "step", "h", "steps", "answers", "seed", "figure")


class Bench:
    """A task with its data and the learner's problem, read once."""

    def __init__(self, data: Path, name: str, *, asks: bool = False) -> None:
        from sparsezo.tasks.loading import Files
        from sparsezo.tasks.registry import task_spec
        from sparsezo.training import HeldOut

        kind, train, test, options = TASKS[name]
        if "init" in options:
            options = {**options, "init": str(data / "smt" / str(options["init"]))}
        self.name, self.spec = name, task_spec(kind)
        loaded = self.spec.load(Files((str(data / train),), None, str(data / test), options))
        self.task, self.W = loaded.task, loaded.W
        self.problem = self.task.problem(loaded.data.train, **({"asks": True} if asks else {}))
        self.gold = self.task.gold(loaded.data.train)
        self.test = HeldOut(self.task, loaded.data.test)

    def figure(self, settings: Any, steps: int | None, answers: int | None) -> float:
        """On test, after so many steps or answers."""
        from sparsezo.query_learner import make_learner

        learner = make_learner(self.problem, settings, self.W)
        learner.run(self.gold, steps, answers)
        return self.test.value(learner.weights())


def measure(args: argparse.Namespace) -> None:
    from sparsezo.cli.values import seed_list, whole_number
    from sparsezo.settings import RULES as KNOWN
    from sparsezo.settings import Settings, rate_text

    out = Path(args.output)
    new = not out.exists()
    seeds = seed_list(args.seeds)
    looks = [int(each) for each in args.answers.split(",")] if args.answers else [None]
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if new:
            writer.writeheader()
        for name in args.tasks.split(","):
            bench = Bench(Path(args.data), name, asks=args.answers is not None)
            perturbs = args.perturb.split(",")
            for rule, perturb, look in itertools.product(args.rules.split(","), perturbs, looks):
                if not KNOWN[rule].zeroth_order and perturb != perturbs[0]:
                    continue
                every = itertools.product(
                    args.step.split(",") if args.step else [None],
                    args.h.split(","),
                    (seeds,) if isinstance(seeds, int) else seeds,
                )
                for step, h, seed in every:
                    given: dict[str, object] = {"rule": rule, "seed": seed}
                    if KNOWN[rule].zeroth_order:
                        given["perturb"] = perturb
                    if step:
                        given["step"] = step
                    if h not in ("default", "tuned"):
                        given["h"] = h if h == "auto" else float(h)
                    settings = Settings.complete(given, *bench.spec.usual)
                    if h == "tuned" and KNOWN[rule].zeroth_order:
                        known = TUNED.get((bench.spec.name, settings.step), {})
                        settings = replace(settings, h=known.get(perturb, settings.h))
                    if h == "tuned" and settings.h == "auto":
                        raise SystemExit(f"{name} {rule} {perturb} {settings.step}: no h was tuned")
                    steps = None if look else whole_number(args.steps, "--steps")
                    figure = bench.figure(settings, steps, look)
                    row = (name, rule, settings.perturb, settings.step, h, steps, look, seed, round(figure, 5))
                    writer.writerow(dict(zip(FIELDS, row, strict=True)))
                    file.flush()
                    print(*row, rate_text(settings.h), flush=True)


def table(path: str) -> str:
    """Mean figures side by side; auto is as good where its mean is within the margin of the other h at every length."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    cells: dict[tuple[str, ...], dict[tuple[str, str], list[float]]] = {}
    for row in rows:
        length = f"{int(row['steps']):,}" if row["steps"] else f"{int(row['answers']):,} answers"
        key = (row["task"], row["rule"], row["perturb"], row["step"])
        cells.setdefault(key, {}).setdefault((length, row["h"]), []).append(float(row["figure"]))
    columns = sorted(
        {column for found in cells.values() for column in found},
        key=lambda column: (int(column[0].split()[0].replace(",", "")), column[1] == "auto"),
    )
    names = ["task", "rule", "perturb", "step", *(f"{length}, {h}" for length, h in columns)]
    judged = any(h == "auto" for _, h in columns)
    names += ["auto is"] if judged else []
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for key, found in sorted(cells.items(), key=lambda cell: [_place(part) for part in cell[0]]):
        behind = [
            statistics.mean(values) - statistics.mean(found[length, "auto"])
            for (length, h), values in found.items()
            if h in ("tuned", "default") and (length, "auto") in found
        ]
        worst = max(behind, default=None)
        verdict = ""
        if worst is not None:
            verdict = "as good" if worst <= WITHIN.get(key[0], 0.005) else f"behind by {worst:.3f}"
        cells = [*key, *(_text(found.get(column, [])) for column in columns), *([verdict] if judged else [])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _place(name: str) -> int:
    order = (*TASKS, *RULES, "score", "active", "constant", "adagrad")
    return order.index(name) if name in order else len(order)


def _text(values: list[float]) -> str:
    return f"{statistics.mean(values):.4f} ({min(values):.3f} to {max(values):.3f})" if values else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?")
    parser.add_argument("-o", "--output", default="auto_h.csv")
    parser.add_argument("--table", metavar="CSV", help="print the table of these rows, and stop")
    parser.add_argument("--tasks", default=",".join(USUAL), help=f"of {', '.join(TASKS)}")
    parser.add_argument("--rules", default=",".join(RULES))
    parser.add_argument("--perturb", default="score,active")
    parser.add_argument("--step", help="constant, adagrad or both; by default the task's own")
    parser.add_argument("--h", default="tuned,auto", help="tuned, default, auto or numbers")
    parser.add_argument("--steps", default="100k")
    parser.add_argument("--answers", help="numbers of answers, in the place of steps")
    parser.add_argument("--seeds", default="101-105")
    args = parser.parse_args()
    if args.table:
        print(table(args.table))
    elif args.data is None:
        sys.exit("name the folder with the data")
    else:
        measure(args)


if __name__ == "__main__":
    main()
