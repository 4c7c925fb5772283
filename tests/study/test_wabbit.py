"""Vowpal Wabbit beside us: the same documents in the same order, its losses at the looks, and going without it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sparsezo.query_learner import QueryLearner
from sparsezo.settings import Settings
from sparsezo.study import wabbit
from sparsezo.study.plan import builtin
from sparsezo.study.wabbit import read_wabbit, write_wabbit
from sparsezo.tasks.loading import Data, Loaded
from sparsezo.tasks.text.synthetic import generate_text
from sparsezo.tasks.text.task import TextClassification

PROGRAM = """
import json, sys
words = sys.argv[1:]
if "--broken" in words:
    sys.exit("it says: no")
lines = open(words[words.index("-d") + 1]).read().splitlines()
with open({log!r}, "a") as log:
    log.write(json.dumps([words, lines]) + chr(10))
right = [line.split()[0] for line in lines]
wrong = [str(int(label) % 4 + 1) for label in right]
every = {{"0.1": 4, "0.5": 2, "3": 5, None: 2}}[words[words.index("-l") + 1] if "-l" in words else None]
said = right if "-t" in words else [w if i % every == 0 else r for i, (r, w) in enumerate(zip(right, wrong))]
open(words[words.index("-p") + 1], "w").write("".join(label + chr(10) for label in said))
"""


@pytest.fixture
def program(monkeypatch, tmp_path):
    """A stand-in that writes down what it was given, and is wrong every second time (by -l), but never on test."""
    log, script = tmp_path / "log", tmp_path / "program.py"
    script.write_text(PROGRAM.format(log=str(log)))
    monkeypatch.setattr(wabbit, "COMMAND", [sys.executable, str(script)])
    monkeypatch.setattr(wabbit, "installed", lambda: True)
    monkeypatch.setattr(wabbit, "version", lambda name: "9.9")
    return SimpleNamespace(calls=lambda: [json.loads(line) for line in log.read_text().splitlines()])


@pytest.fixture(scope="module")
def loaded():
    task, train = TextClassification.fit(generate_text(40, seed=1).documents())
    return Loaded(task, Data(train, None, task.seen(generate_text(10, seed=2).documents())))


PLAN = replace(
    builtin("answers-text"),
    looks=(3, 8, 40, 50),
    answers=50,
    seeds=(4,),
    rivals={"square": "--squarecb --gamma_scale 3"},
    rival_rates=(),
)


def test_it_sees_every_document_once_as_our_learner_does_in_the_same_order(program, loaded, tmp_path):
    write_wabbit(PLAN, lambda: loaded, tmp_path, "data", lambda text: None)
    (_, lines), _ = program.calls()
    assert len(lines) == len(set(lines)) == 40  # all documents are different ones
    task, train = loaded.task, loaded.data.train
    learner = QueryLearner(
        task.problem(train), Settings.complete({"rule": "part", "ask": "random", "seed": 4}, task.defaults)
    )
    gold = task.gold(train)
    for line in lines:
        x = learner.next_input()
        label, _, features = line.partition(" | ")
        assert int(label) == gold.labels[x] + 1
        row = train.matrix[[x]]
        pairs = [pair.split(":") for pair in features.split()]
        assert [int(k) for k, _ in pairs] == row.indices.tolist()
        np.testing.assert_allclose([float(v) for _, v in pairs], row.data, rtol=1e-5)
        learner.run(gold, 1)
    assert learner.answers == 40  # none is passed over


def test_losses_are_of_the_classes_chosen_on_the_way_and_test_is_greedy(program, loaded, tmp_path):
    write_wabbit(PLAN, lambda: loaded, tmp_path, "data", lambda text: None)
    found = read_wabbit(tmp_path)
    assert (found["version"], found["documents"], found["looks"], found["rates"]) == ("9.9", 40, [3, 8, 40], {})
    (run,) = found["rivals"]["square"]
    assert run == {"seed": 4, "average_loss": [2 / 3, 0.5, 0.5], "test": 1.0}
    (learning, _), (testing, tested) = program.calls()
    assert learning[learning.index("--cbify") + 1] == "4"
    assert learning[-6:-2] == ["20", "--squarecb", "--gamma_scale", "3"]
    assert (testing[-2:], len(tested)) == (["--gamma_exponent", "8"], 10)


def test_each_rival_gets_the_rate_with_the_least_loss_in_orders_that_no_result_is_of(program, loaded, tmp_path):
    plan = replace(PLAN, rival_rates=(0.1, 3.0, 0.5), tuning_seeds=(7, 8), rivals={"a": "--epsilon 0", "b": "--bag 2"})
    write_wabbit(plan, lambda: loaded, tmp_path, "data", lambda text: None)
    found = read_wabbit(tmp_path)
    assert found["rates"] == {"a": 3.0, "b": 3.0}
    assert found["rivals"]["a"] == [{"seed": 4, "average_loss": [1 / 3, 2 / 8, 8 / 40], "test": 1.0}]
    assert found["rivals"]["b"][0]["test"] is None  # a bag goes on exploring
    calls = program.calls()
    assert len(calls) == 2 * 2 * 3 + 3  # seeds, rivals, rates; then a run of each, and one test
    orders = [tuple(lines) for _, lines in calls]
    assert len(set(orders[:6])) == len(set(orders[6:12])) == 1
    assert len({orders[0], orders[6], orders[12]}) == 3
    assert {tuple(sorted(order)) for order in orders[:13]} == {tuple(sorted(orders[0]))}


@pytest.mark.usefixtures("program")
def test_fewer_documents_than_the_first_look_are_said(loaded, tmp_path):
    said = []
    write_wabbit(replace(PLAN, looks=(41, 50)), lambda: loaded, tmp_path, "data", said.append)
    assert "the first of looks, 41, is more than the 40 documents" in said[1]
    assert read_wabbit(tmp_path) is None


def test_what_is_there_is_not_done_again(program, loaded, tmp_path):
    for plan, calls in ((PLAN, 2), (PLAN, 2), (replace(PLAN, looks=(3, 9, 50)), 4), (replace(PLAN, seeds=(5,)), 6)):
        write_wabbit(plan, lambda: loaded, tmp_path, "data", lambda text: None)
        assert len(program.calls()) == calls
    tuned = replace(PLAN, seeds=(5,), tuning_seeds=(7,), rival_rates=(0.5,))
    for plan, calls in ((tuned, 9), (tuned, 9), (replace(tuned, rival_rates=(3.0,)), 12)):
        write_wabbit(plan, lambda: loaded, tmp_path, "data", lambda text: None)
        assert len(program.calls()) == calls


def test_without_it_nothing_is_written_and_one_line_said(monkeypatch, tmp_path):
    monkeypatch.setattr(wabbit, "installed", lambda: False)
    said = []
    write_wabbit(PLAN, lambda: pytest.fail("it loads"), tmp_path, "data", said.append)
    assert len(said) == 1
    assert "pip install vowpalwabbit" in said[0]
    assert read_wabbit(tmp_path) is None


@pytest.mark.usefixtures("program")
def test_where_it_fails_its_own_words_are_told(loaded, tmp_path):
    plan = replace(PLAN, rivals={"broken": "--broken"})
    said = []
    write_wabbit(plan, lambda: loaded, tmp_path, "data", said.append)
    assert said[1].startswith("Vowpal Wabbit failed with --cbify 4")
    assert said[1].endswith(": it says: no")
    assert read_wabbit(tmp_path) is None  # and the report goes without it
