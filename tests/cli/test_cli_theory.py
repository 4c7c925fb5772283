"""sparsezo theory: the paper's Corollary 1 from numbers, and from a data file's own dimensions."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from sparsezo.cli import theory
from sparsezo.cli.data import make_data
from sparsezo.study.theory import Complexity, Dimension, bounded_rows


@pytest.fixture
def call(program):
    return partial(program, "theory")


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("theory")
    for task, name in (("chunking", "train.txt"), ("text", "train.tsv.gz"), ("rerank", "train.nbest")):
        make_data(task, str(folder / name), "40", 1)
    return folder


def test_from_numbers(call):
    numbers = {"n": 10_000, "n-bar": 100, "r-bar": 10, "L0": 1.5, "R": 2, "alpha": 0.5, "epsilon": 0.1}
    code, out, err = call(*(word for name, value in numbers.items() for word in (f"--{name}", value)), "--json")
    assert (code, err) == (0, "")
    got = json.loads(out)
    rows = Complexity(10_000, 100, 10, L0=1.5, R=2, alpha=0.5, epsilon=0.1).rows()
    assert got["rows"] == [vars(row) for row in rows]
    assert [(one["perturb"], one["p"]) for one in got["moments"][:2]] == [("all", 2), ("all", 4)]
    assert all(one["moment"] <= one["bound"] for one in got["moments"])
    assert got["moments"][-1]["moment"] == pytest.approx(10 * 12)


def test_every_option_about_the_data_arrives(call, monkeypatch):
    seen = []

    def measure(*args):
        seen.append(args)
        moments = {"all": 9018.0, "active": 1234.0, "score": 120.0}
        return theory.Dimensions("text", ("a", "b"), 3, 1000, Dimension(90.0, 100.0), Dimension(9.0, 10.0), moments)

    monkeypatch.setattr(theory, "measure", measure)
    words = """--task text --data a --data b --only VP --order 1 --template tpl --min-count 3 --format csv
        --text-column t --label-column 2 --topics q --raw-tf --train-ref r1 --train-ref r2 --store s
        --L0 1.5 --R 2 --alpha 0.5 --epsilon 0.25 --mu 0.5 --iterations 2k --json"""
    code, out, _ = call(*words.split())
    assert code == 0
    options = {"only": "VP", "order": 1, "template": "tpl", "min_count": 3, "format": "csv", "text_column": "t"}
    options |= {"label_column": "2", "topics": "q", "raw_tf": True, "train_ref": ["r1", "r2"], "store": "s"}
    assert seen == [("text", ("a", "b"), options)]
    got = json.loads(out)
    names = ("n", "n_bar", "r_bar", "L0", "R", "alpha", "epsilon")
    assert [got[name] for name in names] == [1000, 100, 10, 1.5, 2, 0.5, 0.25]
    assert (got["data"]["inputs"], got["data"]["n_bar"]) == (3, {"mean": 90.0, "valid": 100.0})
    case = Complexity(1000, 100, 10, 1.5, 2, 0.5, 0.25, {"all": 9018, "active": 1234, "score": 120})
    assert got["rows"] == [vars(row) for row in case.rows()]  # not by the product of the means
    assert got["bounded"] == [vars(row) for row in bounded_rows(1000, 90, 9, 0.5, 1999)]  # the means are enough
    assert call("--task", "text", "--data", "a")[0] == 0
    assert seen[1] == ("text", ("a",), {})


def test_for_people(call):
    code, out, err = call("--n", "1M", "--n-bar", 100.5)
    assert code == 2
    assert "r_bar <= n_bar" in err
    code, out, err = call("--n", "1M", "--n-bar", 300.5)
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert [line[1] for line in lines if line and line[0] in ("all", "active", "score")][:3] == [
        "1,000,000",
        "300.5",
        "213",
    ]
    assert "worst-case bounds" in out
    assert "docs/theory.md" in out


@pytest.mark.parametrize(
    ("task", "name", "options"),
    [
        ("chunking", "train.txt", {"only": "NP", "order": 1, "min-count": 2}),
        ("text", "train.tsv.gz", {"min-count": 2}),
        ("rerank", "train.nbest", {}),
    ],
)
def test_from_a_file(call, files, tmp_path, monkeypatch, task, name, options):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words = [word for option, value in options.items() for word in (f"--{option}", value)]
    code, out, _ = call("--task", task, "--data", files / name, *words, "--json")
    assert code == 0
    got = json.loads(out.splitlines()[-1])
    data = got["data"]
    assert (data["task"], data["inputs"], data["data"]) == (task, 40, [str(files / name)])
    assert data["n_bar"]["mean"] <= data["n_bar"]["valid"] <= data["n"] * (1 + 1e-12)
    assert data["r_bar"]["mean"] <= data["n_bar"]["mean"]
    assert got["n"] == data["n"]
    assert got["n_bar"] == pytest.approx(data["n_bar"]["valid"])
    if task == "rerank":
        assert data["n"] == 14
        assert 13 < data["n_bar"]["mean"] < 14  # a list may lack a feature
    if task == "text":
        assert data["r_bar"]["mean"] == pytest.approx(4)

    code, out, _ = call("--task", task, "--data", files / name, *words)
    assert code == 0
    assert f"{data['n']:,}" in out


def test_an_h_for_any_loss(call):
    """By default for noun phrases, the paper's run: (4.13 / (m N))^(1/2) times mu^2."""
    code, out, _ = call("--json")
    assert code == 0
    for row, m in zip(json.loads(out)["bounded"], (2.8e6, 3300, 213), strict=True):
        assert row["m"] == m
        assert row["rate"] == pytest.approx((4.1327 / (m * 4e6)) ** 0.5, rel=1e-4)
        assert row["h"] == pytest.approx(row["rate"] * 0.01)
        assert row["bound"] == pytest.approx((0.96788 * m / 4e6) ** 0.5, rel=1e-4)
        assert row["says"] == pytest.approx(38.21 * m, rel=1e-3)
    code, out, _ = call("--mu", 0.5, "--iterations", "100k")
    assert code == 0
    assert "mu 0.5, 100,000 iterations" in out
    shown = [line.split() for line in out.splitlines() if line.startswith("score")][-1]
    assert shown[2:5] == ["0.00044", "0.00011", "0.0454"]


@pytest.mark.parametrize(
    ("words", "code", "what"),
    [
        (["--data", "x"], 2, "--data needs --task"),
        (["--task", "chunking"], 2, "--task goes with --data"),
        (["--only", "NP"], 2, "--only goes with --data"),
        (["--task", "chunking", "--data", "x", "--n-bar", 3], 2, "--n-bar 3.0: --data has its own"),
        (["--task", "text", "--data", "x", "--only", "NP"], 2, "--only does not belong to task text"),
        (["--task", "chunking", "--data", "nowhere.txt"], 1, "nowhere.txt: no such file"),
        (["--task", "chunking", "--data", "nowhere.txt", "--alpha", 0], 2, "alpha 0.0: must be positive"),
        (["--n", "many"], 2, "--n many: must be a whole number"),
        (["--n", "1e90", "--epsilon", 1e-70], 2, "does not fit a float"),
        (["--task", "chunking", "--data", "nowhere.txt", "--mu", -1], 2, "mu -1.0: must be positive"),
    ],
)
def test_mistakes(call, words, code, what):
    got, out, err = call(*words)
    assert (got, out) == (code, "")
    assert what in err
    assert err.count("\n") == 1
