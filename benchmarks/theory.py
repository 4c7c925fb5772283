"""What docs/theory.md shows of real data: how long steps are, and what the theory's h does.

    python benchmarks/theory.py moments DATA -o docs/results/theory     # E||s||^2 on CoNLL-2000 beside its bounds
    python benchmarks/theory.py rates DATA -o docs/results/theory       # h for any loss in [0, 1] beside the tuned h
    python benchmarks/theory.py margins DATA -o docs/results/theory     # |f_mu - f| and what margins say of it

DATA is a folder with conll2000/, text/ and, for margins, smt/ as `sparsezo reproduce` wants them. ``rates`` and
``margins`` read the tuned h and mu from docs/results/*/table.csv; ``rates`` runs each learner once more with the
theory's h.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparsezo.storage.files import write_text
from sparsezo.study.theory import bounded_h, bounded_rate, smoothing_gap

RESULTS = Path(__file__).parent.parent / "docs" / "results"
TASKS = ("chunking", "text")  # whose plans say where the data is
RULES = ("two-point", "baseline", "symmetric")  # those that the theorem is about
PERTURBS = ("all", "active", "score")
TRAINED = 100_000  # steps of two-point score before E||s||^2 is measured again
H, MU = 0.001468, 0.1  # theirs, and what a step is measured with: once the tuned ones, kept when the tables changed


def load(task: str, folder: Path, test: bool = True) -> Any:
    """Train and, unless it is left out, test as `sparsezo reproduce` reads them."""
    from sparsezo.study.plan import builtin
    from sparsezo.study.sources import in_folder
    from sparsezo.tasks.loading import Files
    from sparsezo.tasks.registry import task_spec

    source = in_folder(builtin(task), folder)
    more = (source.dev, source.test) if test else (None, None)
    return task_spec(source.task).load(Files(source.train, *more, source.options))


# How long a step is


def moments(loaded: Any, draws: int, trained: int, h: float, mu: float, gamma: float = 1.0) -> list[dict[str, Any]]:
    """Rows of E||s||^2: at w = 0, and at what two-point score has learned with h."""
    from step_moments import measure

    from sparsezo.learner import Learner
    from sparsezo.settings import Settings

    problem, gold = loaded.task.problem(loaded.data.train, risk=True), loaded.task.gold(loaded.data.train)
    learner = Learner(problem, Settings(rule="two-point", perturb="score", h=h, mu=mu, gamma=gamma))
    rows = []
    for steps in (0, trained):
        if steps:
            learner.run(gold, steps=steps)
        rows += [{"after": steps, **vars(each)} for each in measure(learner, gold, draws)]
    return rows


def draw(rows: Sequence[Mapping[str, Any]], folder: Path, title: str) -> None:
    """Measured against bound: one panel a criterion, one column a rule and perturbation."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from sparsezo.study.reports.figures import OTHER_RULE, RULE_STYLES, drawing_style, save

    with drawing_style():
        figure = Figure(figsize=(7.0, 6.4), layout="constrained", facecolor="white")
        axes = figure.subplots(2, 1, sharex=True)
        rules = list(dict.fromkeys(row["rule"] for row in rows))
        places = [(rule, perturb) for rule in rules for perturb in PERTURBS]
        for panel, criterion in zip(axes, ("map", "annealed"), strict=True):
            for row in (row for row in rows if row["criterion"] == criterion):
                place = places.index((row["rule"], row["perturb"])) + 0.6 * rules.index(row["rule"])
                colour, marker = RULE_STYLES.get(row["rule"], OTHER_RULE)
                face = "white" if row["after"] == 0 else colour
                beside = -0.12 if row["after"] == 0 else 0.12
                panel.plot(place + beside, row["mean"], marker, color=colour, markerfacecolor=face, markersize=5.5)
                for name, style in (("bounded", "-"), ("lipschitz", ":")):
                    if row[name] is not None:
                        panel.plot([place - 0.4, place + 0.4], [row[name]] * 2, style, color="#333333", linewidth=1.6)
            panel.set_yscale("log")
            panel.yaxis.set_major_formatter(_power)
            panel.set_ylabel(f"{'MAP' if criterion == 'map' else 'annealed'}: E‖s‖²")
        ticks = [j + 0.6 * (j // 3) for j in range(len(places))]
        axes[1].set_xticks(ticks, [perturb for _, perturb in places], rotation=60)
        for j, rule in enumerate(rules):
            axes[1].text(3.6 * j + 1, -0.34, rule, transform=axes[1].get_xaxis_transform(), ha="center", va="top")
        axes[0].set_title(title, fontsize=10.5, loc="left")
        figure.legend(
            handles=[
                Line2D([], [], marker="o", color="#555555", markerfacecolor="white", linestyle="", label="w = 0"),
                Line2D([], [], marker="o", color="#555555", linestyle="", label=f"after {rows[-1]['after']:,} steps"),
                Line2D([], [], color="#333333", label="bound, losses in [0, 1]"),
                Line2D([], [], color="#333333", linestyle=":", label="bound, Lipschitz"),
            ],
            loc="outside lower center",
            ncols=4,
            frameon=False,
        )
        save(figure, folder, "moments")


# From f_mu to f

LEARNED = {"chunking": "CoNLL-2000 NP", "text": "20 Newsgroups", "smt": "n-best lists"}  # plans, and their data
STEPS, PASSES = 200_000, 20  # of two-point score with the tuned h and mu; perturbations of every input
RATIOS = [10 ** (k / 2) for k in range(-10, 1)]  # mu / ||w||, beside the one that it was learned with


def smoothing(
    task: str, loaded: Any, h: float, mu: float, steps: int = STEPS, passes: int = PASSES, share: float = 0.01
) -> list[dict[str, Any]]:
    """Rows of f_mu - f and its bounds, of the inputs that were learned from, with what was learned."""
    import numpy as np
    from margins import margins, smoothed, tail_of
    from scipy.stats import chi

    from sparsezo.learner import Learner
    from sparsezo.settings import Settings

    problem, gold = loaded.task.problem(loaded.data.train), loaded.task.gold(loaded.data.train)
    start = loaded.task.initial_weights() if task == "smt" else None
    learner = Learner(problem, Settings(rule="two-point", perturb="score", h=h, mu=mu), start)
    learner.run(gold, steps=steps)
    W, r = learner.weights(), problem.n_score
    length = float(np.linalg.norm(W.astype(np.float64)))
    relative = margins(problem, gold, W) / length
    tail, r_most = tail_of(relative, share), int(r.max())
    about = {"task": task, "inputs": len(problem), "steps": steps, "used": mu / length, "r": r_most}
    about |= {"a": tail.a, "a_error": tail.error, "C": tail.C, "C1": tail.C1, "a_of_10%": tail_of(relative, 0.1).a}
    rows = []
    for each in smoothed(learner, gold, sorted([*RATIOS, mu / length]), passes):
        by_margins = float(chi.sf(relative / each.ratio, np.maximum(r, 1)).mean())
        bounds = {"by_margins": by_margins, "by_tail": smoothing_gap(each.ratio, tail.C1, 1.0, r_most)}
        rows.append({**about, **vars(each), **bounds})
    return rows


def draw_margins(rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """|f_mu - f| against mu / ||w||, and what bounds it: one panel a data set."""
    from matplotlib.figure import Figure

    from sparsezo.study.reports.figures import drawing_style, save

    lines = {
        "gap": ("|f_mu - f|", "-", "#0072B2"),
        "change": ("Pr(the loss changes)", "-", "#E69F00"),
        "by_margins": ("bound by each input's margin", "--", "#333333"),
        "by_tail": ("bound by C, a = 1", ":", "#333333"),
    }
    with drawing_style():
        figure = Figure(figsize=(7.6, 3.4), layout="constrained", facecolor="white")
        axes = figure.subplots(1, len(LEARNED), sharey=True)
        for panel, (task, data) in zip(axes, LEARNED.items(), strict=True):
            known = [row for row in rows if row["task"] == task]
            for name, (label, style, colour) in lines.items():
                points = [(float(row["ratio"]), abs(float(row[name]))) for row in known if abs(float(row[name])) > 0]
                panel.plot(*zip(*points, strict=True), style, color=colour, label=label)
            panel.axvline(float(known[0]["used"]), color="#999999", linewidth=0.8)
            panel.set(xscale="log", yscale="log", ylim=(1e-5, 1.5), xlabel="mu / ‖w‖")
            for axis in (panel.xaxis, panel.yaxis):
                axis.set_major_formatter(_power)
            panel.set_title(data, fontsize=10.5, loc="left")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
        save(figure, folder, "margins")


def margins_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """For docs/theory.md: what was estimated, and what is found at the mu / ||w|| of learning."""
    head = "| | inputs | r | a | C | C at a = 1 | mu / ‖w‖ | f_mu - f | loss changes | by margins | by C, a = 1 |"
    lines = [head, f"|---|{'--:|' * 10}"]
    for task, data in LEARNED.items():
        (row,) = (row for row in rows if row["task"] == task and float(row["ratio"]) == float(row["used"]))
        found = {name: float(value) for name, value in row.items() if name != "task"}
        cells = [data, f"{found['inputs']:,.0f}", f"{found['r']:.0f}", f"{found['a']:.2f} ± {found['a_error']:.2f}"]
        cells += [f"{found['C']:,.0f}", f"{found['C1']:,.0f}", f"{found['ratio']:.4f}"]
        cells += [f"{found['gap']:.4f}", *(f"{found[name]:.3f}" for name in ("change", "by_margins", "by_tail"))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


# The theory's h


def tuned(task: str) -> list[dict[str, Any]]:
    """The learners of the published table that the theorem is about: MAP, constant step, exact losses."""
    with open(RESULTS / task / "table.csv", encoding="utf-8", newline="") as stream:
        known = {row["learner"]: row for row in csv.DictReader(stream) if row["phase"] == "tuned"}
    rows = []
    for rule in RULES:
        for perturb in PERTURBS:
            if (row := known.get(f"{rule} {perturb}")) is not None:
                found = {name: float(row[name]) for name in ("h", "mu", "test_mean")}
                rows.append({"rule": rule, "perturb": perturb, "iterations": int(row["iterations"]), **found})
    return rows


def rate_row(task: str, one: Mapping[str, Any], m: float) -> dict[str, Any]:
    """A tuned learner beside the theory's h for as many steps, the same mu and m."""
    N = one["iterations"] - 1
    h = bounded_h(one["mu"], m, N, one["rule"])
    return {
        "task": task,
        "rule": one["rule"],
        "perturb": one["perturb"],
        "m": m,
        "iterations": one["iterations"],
        "mu": one["mu"],
        "h_theory": h,
        "h_tuned": one["h"],
        "tuned_over_theory": one["h"] / h,
        "rate_theory": bounded_rate(m, N, one["rule"]),
        "rate_tuned": one["h"] / one["mu"] ** 2,
        "test_tuned": one["test_mean"],
    }


_RUN = ("task", "rule", "perturb", "iterations", "mu", "h_theory")  # what a run at the theory's h depends on


def rates(
    task: str,
    loaded: Any,
    learners: Iterable[Mapping[str, Any]],
    known: Iterable[Mapping[str, Any]] = (),
    say: Any = print,
) -> list[dict[str, Any]]:
    """With the test figure at the end of one run (seed 0) at the theory's h. ``known``: rows of runs made before."""
    from sparsezo.learner import Learner, predict
    from sparsezo.settings import Settings

    problem, gold = loaded.task.problem(loaded.data.train), loaded.task.gold(loaded.data.train)
    test = loaded.task.problem(loaded.data.test, learn=False)
    n = float(problem.n_features * problem.n_labels)
    sizes = {"all": n, "active": float(problem.n_active.mean()), "score": float(problem.n_score.mean())}
    made = {tuple(str(row[name]) for name in _RUN): float(row["test_theory"]) for row in known}
    rows = []
    for one in learners:
        row = rate_row(task, one, sizes[one["perturb"]])
        rows.append(row)
        if (test_theory := made.get(tuple(str(row[name]) for name in _RUN))) is not None:
            row["test_theory"] = test_theory
            continue
        settings = Settings(rule=one["rule"], perturb=one["perturb"], h=row["h_theory"], mu=one["mu"])
        learner = Learner(problem, settings)
        learner.run(gold, steps=one["iterations"])
        row["test_theory"] = loaded.task.scores(loaded.data.test, predict(test, learner.weights())).value
        say(row)
    return rows


def draw_rates(rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """h / mu^2 against m: the theorem's lines of each task, symmetric's its own, and what tuning found."""
    from matplotlib.figure import Figure

    from sparsezo.study.reports.figures import RULE_STYLES, drawing_style, save

    with drawing_style():
        figure = Figure(figsize=(7.0, 3.6), layout="constrained", facecolor="white")
        axes = figure.subplots(1, len(TASKS), sharey=True)
        for panel, task in zip(axes, TASKS, strict=True):
            known = [row for row in rows if row["task"] == task]
            bounds = {(row["rule"], float(row["m"])): float(row["rate_theory"]) for row in known}
            line = sorted((m, rate) for (rule, m), rate in bounds.items() if rule == "two-point")
            panel.plot(*zip(*line, strict=True), color="#333333", label="theorem")
            twice = {bounds["symmetric", m] / rate for m, rate in line if ("symmetric", m) in bounds}
            for factor in twice:  # the same at every m
                wider = [(m, factor * rate) for m, rate in line]
                panel.plot(*zip(*wider, strict=True), "--", color="#333333", label="theorem, symmetric")
            for rule in RULES:
                found = [(float(row["m"]), float(row["rate_tuned"])) for row in known if row["rule"] == rule]
                if found:
                    colour, marker = RULE_STYLES[rule]
                    panel.plot(*zip(*found, strict=True), marker, color=colour, linestyle=":", label=f"{rule}, tuned")
            panel.set(xscale="log", yscale="log", xlabel="m: r̄ (score), n̄ (active), n (all)")
            for axis in (panel.xaxis, panel.yaxis):
                axis.set_major_formatter(_power)
            panel.set_title(f"{task}, {int(known[0]['iterations']):,} iterations", fontsize=10.5, loc="left")
        axes[0].set_ylabel("h / mu²")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
        save(figure, folder, "rates")


def _power(value: float, _: object) -> str:
    """1e-7, where the style has no mathematics."""
    number, _, power = f"{value:.0e}".partition("e")
    return f"{number}e{int(power)}"


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table for people; test figures: F1 of chunking, accuracy of text."""
    head = "| task | rule | perturb | m | mu | theory's h | tuned h | tuned / theory | test, theory's | test, tuned |"
    lines = ["# The theory's h and the tuned one", "", "Made by `python benchmarks/theory.py rates DATA`.", ""]
    lines += [head, "|---|---|---|--:|--:|--:|--:|--:|--:|--:|"]
    for row in rows:
        names = [row["task"], row["rule"], row["perturb"]]
        sizes = [f"{float(row['m']):,.0f}", *(f"{float(row[name]):.3g}" for name in ("mu", "h_theory", "h_tuned"))]
        ratio = f"{float(row['tuned_over_theory']):,.0f}"
        tests = [f"{float(row[name]):.3f}" for name in ("test_theory", "test_tuned")]
        lines.append(f"| {' | '.join([*names, *sizes, ratio, *tests])} |")
    return "\n".join([*lines, ""])


# Files


def table(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, out.getvalue())


def _known(path: Path) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("moments", "rates", "margins"))
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "theory")
    parser.add_argument("--draws", type=int, default=50_000)
    parser.add_argument("--only", choices=TASKS, help="rates: anew for this task; the other's rows stay")
    parser.add_argument("--keep", action="store_true", help="rates: a run that was made before is not made again")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    if args.what == "moments":
        rows = moments(load("chunking", args.data), args.draws, TRAINED, H, MU)
        draw(rows, args.output, f"E‖s‖² of a step, CoNLL-2000 NP, mu {MU:g}, gamma 1, {args.draws:,} draws")
    elif args.what == "margins":
        rows = []
        for task in LEARNED:
            (one,) = (row for row in tuned(task) if (row["rule"], row["perturb"]) == ("two-point", "score"))
            rows += smoothing(task, load(task, args.data, test=False), one["h"], one["mu"])
        draw_margins(rows, args.output)
        print(margins_table(rows))
    else:
        anew = (args.only,) if args.only else TASKS
        known = _known(args.output / "rates.csv") if args.only or args.keep else []
        kept = [row for row in known if row["task"] not in anew]
        made = known if args.keep else []
        found = [row for task in anew for row in rates(task, load(task, args.data), tuned(task), made)]
        rows = sorted([*kept, *found], key=lambda row: TASKS.index(row["task"]))
        write_text(args.output / "rates.md", markdown(rows))
        draw_rates(rows, args.output)
    table(rows, args.output / f"{args.what}.csv")


if __name__ == "__main__":
    main()
