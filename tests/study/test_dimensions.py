"""What n, n̄ and shared weights do to a run (benchmarks/dimensions.py), and the theorem behind it (docs/theory.md)."""

from __future__ import annotations

import math
from pathlib import Path

import dimensions as script
import numpy as np
import pytest
from dimensions import Corpus, Runs, Size, kappas
from scipy.stats import norm

from sparsezo.study.theory import bounded_L1, bounded_steps
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking

ROOT = Path(__file__).parents[2]
DIMENSIONS = ROOT / "docs" / "results" / "scaling" / "dimensions.csv"
ABOUT = {"axis": "rare", "value": 0, "loss": 0.5}


@pytest.fixture(scope="module")
def corpus():
    task, train = Chunking.fit(chunking_corpus(60, seed=1), order=2)
    return Corpus(task, train, task.seen(chunking_corpus(20, seed=2)))


def dense(problem, x):
    inputs = problem.inputs
    C = np.zeros((inputs.row_start[x + 1] - inputs.row_start[x], problem.n_features))
    for i, row in enumerate(range(inputs.row_start[x], inputs.row_start[x + 1])):
        np.add.at(C[i], inputs.columns[inputs.row_ptr[row] : inputs.row_ptr[row + 1]], 1.0)
    return C


def test_as_they_are_attributes_are_those_of_the_task(corpus):
    (problem, _), (held, _) = corpus.at(Size())
    for made, own in zip((problem, held), (part for part, _ in corpus.parts), strict=True):
        assert made.n_features == own.n_features
        assert (made.n_active == own.n_active).all()
        for x in range(len(own)):
            assert (dense(made, x) @ dense(made, x).T == dense(own, x) @ dense(own, x).T).all()


def test_attributes_made_one_are_fewer_and_a_token_has_as_many(corpus):
    whole, _ = corpus.at(Size())[0]
    few, _ = corpus.at(Size(rows=1500))[0]
    assert 1200 < few.n_features <= 1500 < whole.n_features
    assert few.inputs.row_ptr[-1] == whole.inputs.row_ptr[-1]
    assert 0.8 * whole.n_active.mean() < few.n_active.mean() <= whole.n_active.mean()


def test_split_attributes_leave_a_sentence_as_it_is(corpus):
    """n grows; n̄, r̄ and the law of what a sentence's scores see do not."""
    one, _ = corpus.at(Size(rows=200))[0]
    split, _ = corpus.at(Size(rows=200, copies=4))[0]
    assert split.n_features > 2.5 * one.n_features
    assert (split.n_active == one.n_active).all()
    for x in range(len(one)):
        assert (dense(split, x) @ dense(split, x).T == dense(one, x) @ dense(one, x).T).all()
    kept, _ = corpus.at(Size(copies=4, rare=True))[0]  # no template of these sentences is large
    assert kept.n_features == corpus.at(Size())[0][0].n_features


def test_repeated_attributes_are_as_many_more_in_the_same_room(corpus):
    one, _ = corpus.at(Size(rows=4000))[0]
    more, _ = corpus.at(Size(rows=4000, repeats=4))[0]
    own = corpus.rank.shape[1]
    of_words = corpus.columns(Size(rows=800, repeats=4))[0][:, ::own]  # one template's, of each repeat
    assert len(np.unique(of_words, axis=0)) > 1.5 * len(np.unique(of_words[:, 0]))  # each makes others one
    assert more.n_features <= 4000
    assert more.inputs.row_ptr[-1] == 4 * one.inputs.row_ptr[-1]
    assert more.n_active.mean() > 2.5 * one.n_active.mean()
    assert kappas(more, 1)["kappa_all"] == pytest.approx(kappas(one, 1)["kappa_all"], rel=0.02)


@pytest.mark.parametrize("size", [Size(rows=400), Size(rows=150, copies=2)])
def test_kappa_is_what_projectors_give(corpus, size):
    problem, _ = corpus.at(size)[0]
    found = kappas(problem, pairs=30)
    P = [np.linalg.pinv(C) @ C for C in (dense(problem, x) for x in range(len(problem)))]
    A = [dense(problem, x).any(axis=0) for x in range(len(problem))]
    pairs = np.random.default_rng(0).integers(len(problem), size=(30, 2))
    active = np.mean([np.diag(P[y])[A[x]].sum() for x, y in pairs])
    score = np.mean([(P[y] * P[x]).sum() for x, y in pairs])
    L = problem.n_labels
    assert found["kappa_active"] == pytest.approx(L * active)
    assert found["kappa_score"] == pytest.approx(L * score)
    assert found["kappa_all"] == pytest.approx(L * np.mean([np.trace(each) for each in P]))
    assert found["kappa_score"] < found["kappa_active"] < found["kappa_all"]


def test_only_what_inputs_share_bends_the_smoothed_loss():
    """f_mu(w + d) <= f_mu(w) + grad·d + ½ L1 E||P_y d||², exactly, where each loss is a half-space's."""
    rng, mu, n = np.random.default_rng(3), 0.3, 6
    B = rng.normal(size=(8, n)) * (rng.random((8, n)) < 0.5)
    B = B[B.any(axis=1)]
    B /= np.linalg.norm(B, axis=1, keepdims=True)
    worst = 0.0
    for _ in range(3000):
        w, d = rng.normal(size=n) * 0.4, rng.normal(size=n) * rng.choice([0.01, 0.1, 1])
        before, after = (norm.cdf(B @ at / mu).mean() for at in (w, w + d))
        gradient = (norm.pdf(B @ w / mu)[:, None] * B / mu).mean(axis=0)
        bound = 0.5 * bounded_L1(mu) * ((B @ d) ** 2).mean()
        assert after <= before + gradient @ d + bound + 1e-12
        worst = max(worst, (after - before - gradient @ d) / bound)
    assert worst > 0.4


def test_a_run_counts_iterations_to_the_loss(corpus, monkeypatch):
    monkeypatch.setattr(script, "LOOKS", 50)
    parts = corpus.at(Size())
    for perturb in script.PERTURBS:
        iterations, us = script.run(parts, perturb, 1e-3, 0, 0.8, 20_000)
        assert 0 < iterations < 20_000
        assert us > 0
    assert math.isnan(script.run(parts, "all", 1e-9, 0, 0.1, 200)[0])


class Counted:
    """Iterations as a function of h, in the place of runs."""

    def __init__(self, best: float) -> None:
        self.best, self.asked = best, []

    def __call__(self, parts, perturb, h, seed, loss, most):
        self.asked.append((h, seed))
        iterations = 1000 * (1 + abs(math.log2(h / self.best))) + (seed == 1001)
        return (iterations if iterations <= most else math.nan), 2.0


@pytest.mark.parametrize("start", [1e-4, 8e-4, 0.0512])
def test_the_search_walks_to_the_best_h_and_no_further(tmp_path, monkeypatch, start):
    monkeypatch.setattr(script, "run", counted := Counted(8e-4))
    assert Runs(tmp_path / "runs.csv").best_h(None, ABOUT, "all", start) == pytest.approx(8e-4)
    assert {seed for _, seed in counted.asked} == set(script.SEARCHED)
    assert min(h for h, _ in counted.asked) >= min(start, 8e-4) / 2.01


def test_a_run_in_the_file_is_not_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(script, "run", counted := Counted(8e-4))
    path = tmp_path / "runs.csv"
    first = Runs(path).best_h(None, ABOUT, "all", 1e-4)
    made = len(counted.asked)
    lines = path.read_text("utf-8").splitlines()
    assert len(lines) == made + 1
    path.write_text("\n".join(lines[:-2]) + "\n", "utf-8")  # stopped two runs earlier
    assert Runs(path).best_h(None, ABOUT, "all", 1e-4) == first
    assert len(counted.asked) == made + 2
    assert path.read_text("utf-8").splitlines() == lines


def test_the_page_has_the_table_and_the_picture_is_of_the_file(tmp_path):
    rows = script.read(DIMENSIONS)
    assert script.table(rows) in (ROOT / "docs" / "theory.md").read_text("utf-8")
    for line in script.lines(rows):
        assert np.isfinite(line.iterations).all()
        assert line.iterations.shape == (len(script.AXES[line.name].sizes), len(script.SEEDS))
    script.draw(rows, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["dimensions.png"]


def test_the_page_says_what_kappa_makes_of_the_bounds():
    """Of the features as they are, beside the published table of the theory's h."""
    text = " ".join((ROOT / "docs" / "theory.md").read_text("utf-8").split())
    place = next(i for i, size in enumerate(script.AXES["rare"].sizes) if size == Size())
    rows = script.read(DIMENSIONS)
    row = next(row for row in rows if (row["axis"], row["value"]) == ("rare", str(place)))
    m = dict(zip(script.PERTURBS, (float(row[name]) for name in ("n", "n_bar", "r_bar")), strict=True))
    kappa = {name: float(row[f"kappa_{name}"]) for name in script.PERTURBS}
    for name in script.PERTURBS:
        digits = 0 if name == "all" else 1
        assert f"| {m[name]:,.0f} | {kappa[name]:.{digits}f} |" in text
    steps = [bounded_steps(kappa[name]) + 1 for name in reversed(script.PERTURBS)]
    assert "in the place of m makes it {:,}, {:,} and {:,}".format(*steps) in text
    ratios = [kappa[name] / kappa["score"] for name in ("all", "active")]
    assert "all : active : score are {:.0f} : {:.0f} : 1".format(*ratios) in text
    assert f"m has {m['all'] / m['score']:,.0f} : {m['active'] / m['score']:.1f} : 1" in text
    gains = {name: math.sqrt(m[name] / kappa[name]) for name in script.PERTURBS}
    assert "h by κ is {all:.0f}, {active:.1f} and {score:.1f} times h by m".format(**gains) in text
    found = [
        row for row in script.read(ROOT / "docs" / "results" / "theory" / "rates.csv") if row["task"] == "chunking"
    ]
    larger = [float(row["tuned_over_theory"]) / gains[row["perturb"]] for row in found]
    assert f"still {min(larger):.0f} to {max(larger):,.0f} times larger" in text
    tuned = {row["perturb"]: float(row["rate_tuned"]) for row in found if row["rule"] == "two-point"}
    fall = math.sqrt(kappa["all"] / kappa["score"])
    assert f"by {tuned['score'] / tuned['all']:.0f} for two-point where that is {fall:.0f}" in text
    whole = {line.perturb: line for line in script.lines(script.read(DIMENSIONS)) if line.name == "rare"}
    mean = {name: line.iterations[place].mean() for name, line in whole.items()}
    gain, over = mean["all"] / mean["active"], m["all"] / m["active"]
    assert f"is not n / n̄, {over:.0f} for the features as they are, but {gain:.1f}" in text
    apart = [mean[name] / mean["score"] for name in ("all", "active")]
    assert "all : active : score are {:.0f} : {:.1f} : 1, further".format(*apart) in text
    assert f"the exponent is {whole['all'].measured('iterations')[0]:.2f}, not 1 or 3" in text


def test_the_page_says_how_iterations_grow_on_the_planted_objective():
    text = " ".join((ROOT / "docs" / "theory.md").read_text("utf-8").split())
    rows = script.read(ROOT / "docs" / "results" / "scaling" / "scaling.csv")
    found = []
    for perturb in script.PERTURBS:
        of = [row for row in rows if (row["panel"], row["perturb"]) == ("n", perturb)]
        found.append(script.exponent(*([float(row[name]) for row in of] for name in ("n", "iterations"))))
    assert "measured are {:.2f}, {:.2f} and {:.2f}".format(*found) in text
