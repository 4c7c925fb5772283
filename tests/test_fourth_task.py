"""A task is one module and one line in the registry: a tiny fourth one, from this file, is trained, tuned, reported on.

Coins: a line is a label and the names of the coins on a table; which side they show is to be learned.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sparsezo.kernels.inputs.rows import row_inputs
from sparsezo.model import load_model
from sparsezo.options import check_options, make_options, option
from sparsezo.tasks import registry
from sparsezo.tasks.base import Problem, Scores
from sparsezo.tasks.loading import Data, Files, Loaded
from sparsezo.tasks.spec import TaskSpec
from sparsezo.tasks.text.kernels.task import ClassGold, class_task

SIDES = ("heads", "tails")


@dataclass(frozen=True)
class CoinOptions:
    purse: int = option(20, "How many coins there are.", least=1)

    def __post_init__(self):
        check_options(self)


@dataclass(frozen=True)
class NoOptions:
    pass


@dataclass(frozen=True, eq=False)
class Table:
    coins: csr_matrix
    sides: np.ndarray


class Coins:
    name, metric, n_labels = "coins", "accuracy", 2

    def __init__(self, purse):
        self.n_features = purse

    def problem(self, data, *, learn=True, risk=False):
        inputs = row_inputs(data.coins)
        N, some = data.coins.shape[0], np.diff(data.coins.indptr)
        return Problem(inputs, class_task(2), self.n_features, 2, np.arange(N + 1), some * 2, 1, int(some.max()))

    def gold(self, data):
        return ClassGold(data.sides)

    def quality(self, problem, gold, outputs):
        return float(np.mean(outputs == gold.labels))

    def scores(self, data, outputs):
        right = float(np.mean(outputs == data.sides))
        return Scores("accuracy", right, {"accuracy": right})

    def export(self, path, W):
        return []

    def to_arrays(self):
        return {"purse": self.n_features}, {}


def _table(path, purse):
    lines = [line.split() for line in Path(path).read_text().splitlines()]
    rows = [sorted({int(coin) for coin in coins}) for _, *coins in lines]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    columns = np.concatenate(rows)
    matrix = csr_matrix((np.ones(columns.size, np.float32), columns, indptr), (len(rows), purse))
    return Table(matrix, np.array([SIDES.index(label) for label, *_ in lines], np.int32))


# What a files module has


def load(files: Files) -> Loaded:
    purse = make_options(CoinOptions, files.options, "task coins").purse
    parts = [_table(path, purse) if path else None for path in (files.one_train("coins"), files.dev, files.test)]
    return Loaded(Coins(purse), Data(*parts))


def read(task, path, options):
    return _table(path, task.n_features)


def predict(model, path, options):
    yield from (f"{SIDES[k]}\n" for k in model.predict(_table(path, model.task.n_features)))


def from_arrays(settings, arrays):
    return Coins(settings["purse"])


def defaults(rule, step, perturb):
    return 0.1, 1.0


SPEC = TaskSpec(
    name="coins",
    title="Tossing coins",
    inputs="tables",
    metric="accuracy",
    metric_name="share right",
    loss_name="share wrong",
    io_module=__name__,
    train_options=CoinOptions,
    read_options=NoOptions,
    predict_options=NoOptions,
    defaults=defaults,
    grid=((1.0, 0.1), (1.0,)),
)


@pytest.fixture
def coins(tmp_path, monkeypatch):
    """The task registered, and its files: a coin's side is its number's parity, and the table shows the sum's."""
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    registry.register(SPEC)
    rng = np.random.default_rng(0)
    for name, size in (("train", 200), ("dev", 60), ("test", 60)):
        lines = []
        for _ in range(size):
            side = int(rng.integers(2))
            lines.append(f"{SIDES[side]} {' '.join(str(2 * c + side) for c in rng.integers(0, 10, 3))}\n")
        (tmp_path / f"{name}.coins").write_text("".join(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


FILES = ["--train", "train.coins", "--dev", "dev.coins"]


def test_it_is_trained_evaluated_and_predicts(coins, program):
    code, out, err = program(
        "train", "coins", *FILES, "--test", "test.coins", "--purse", 30, "--iterations", "2k", "-o", "m.szo", "--json"
    )
    assert code == 0, err
    result = json.loads(out.splitlines()[-1])
    assert (result["task"], result["n"], result["h"], result["mu"]) == ("coins", 60, 0.1, 1.0)
    assert result["test"] > 0.9  # the sides are a linear function of the coins
    assert load_model("m.szo").task.n_features == 30
    code, out, _ = program("evaluate", "m.szo", "test.coins", "--json")
    assert (code, json.loads(out)["accuracy"]) == (0, result["test"])
    code, out, _ = program("predict", "m.szo", "test.coins")
    gold = [line.split()[0] for line in (coins / "test.coins").read_text().splitlines()]
    assert np.mean([one == other for one, other in zip(out.split(), gold, strict=True)]) == result["test"]


def test_it_is_tuned_in_other_processes(coins, program):
    code, out, err = program("tune", "coins", *FILES, "--iterations", "1k", "--processes", 2, "--json")
    assert code == 0, err
    found = json.loads(out.splitlines()[-1])
    assert found["dev"] > 0.9
    assert found["command"].startswith("sparsezo train coins --train train.coins --dev dev.coins")


def test_an_experiment_on_it_is_reported(coins, program):
    (coins / "mine.toml").write_text(
        'name = "pockets"\ntask = "coins"\niterations = 500\nseeds = 2\n'
        '[data]\ntrain = "train.coins"\ndev = "dev.coins"\ntest = "test.coins"\noptions = { purse = 25 }\n'
        '[fixed]\nh = 0.1\nmu = 1.0\n[[learner]]\nrule = "two-point"\nperturb = "score"\n'
        '[[learner]]\nrule = "baseline"\nperturb = "active"\n'
    )
    code, _, err = program("reproduce", "mine.toml", "--data", ".", "-o", "out", "--phases", "fixed", "--processes", 1)
    assert code == 0, err
    page = (coins / "out" / "report" / "report.html").read_text()
    for words in (
        "<h1>pockets</h1>",
        "Tossing coins, learned from",
        "share right",
        "share wrong",
        "two-point score",
        "baseline active",
    ):
        assert words in page


def test_its_options_and_nobody_elses_are_in_the_help(coins, program, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = program("train", "coins", "--help")
    assert code == 0
    assert "--purse" in out
    assert "How many coins there are." in out
    assert "--order" not in out
    code, _, err = program("train", "coins", *FILES, "--purse", 0, "-o", "m.szo")
    assert (code, err) == (2, "sparsezo: --purse 0: must be a whole number, 1 or more\n")
