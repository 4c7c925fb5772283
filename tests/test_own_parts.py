"""A task and a rule of one's own: what docs/tasks.md and docs/rules.md show, from a package on sys.path as pip would
install it; that a rule of one's own is computed as the built-in ones are; and what is said where one is not right."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba import float64

from sparsezo import (
    Files,
    Input,
    Learner,
    Optimizer,
    Proposal,
    Settings,
    TextClassification,
    own_rule,
    own_task,
    predict,
)
from sparsezo.errors import DataError, UsageError
from sparsezo.kernels import protocol, random
from sparsezo.kernels.own import OwnFunction
from sparsezo.kernels.raters import perceived
from sparsezo.learner import confidence
from sparsezo.raters import parse_feedback
from sparsezo.rules import RULES
from sparsezo.tasks import registry
from sparsezo.tasks.text.synthetic import generate_text
from sparsezo.training import Training

DOCS = Path(__file__).parent.parent / "docs"


# ---- a rule ----


@own_rule("of-three", points=(1, 0, -1), like="symmetric")
def OF_THREE(losses, h, mu, mean):
    """Symmetric's formula, of the first and the third."""
    return -h * (losses[0] - losses[2]) / (2 * mu)


@own_rule("own-baseline", points=(1,))
def OWN_BASELINE(losses, h, mu, mean):
    return -h * (losses[0] - mean) / mu


@own_rule("middle-out", points=(1, 0, -1))
def MIDDLE_OUT(losses, h, mu, mean):
    """All three losses count, each in its own way."""
    return -h * (2 * losses[0] - losses[1] - 0.5 * losses[2]) / mu


OWN = {rule.name: rule for rule in (OF_THREE, OWN_BASELINE, MIDDLE_OUT)}
for name in OWN:
    del RULES.own[name]


@pytest.fixture(scope="module", autouse=True)
def _known_here_alone():
    """Other tests go over all rules that there are."""
    RULES.own.update(OWN)
    yield
    for name in OWN:
        del RULES.own[name]


@pytest.fixture(scope="module")
def text():
    return TextClassification.fit(generate_text(300, 1, vocabulary=500, words=30).documents())


SETTINGS = [
    {"perturb": "score", "step": "adagrad"},
    {"perturb": "active"},
    {"perturb": "all"},
    {"perturb": "score", "criterion": "annealed", "gamma": 2.0},
]


@pytest.mark.parametrize("given", SETTINGS, ids=lambda given: " ".join(map(str, given.values())))
def test_three_outputs_of_which_two_count_are_symmetrics_bits(text, given):
    task, data = text
    problem, weights = task.problem(data, risk=True), []
    for rule in ("of-three", "symmetric"):
        learner = Learner(problem, Settings(rule, h=0.1, mu=1.0, seed=3, **given))
        learner.run(task.gold(data), 300)
        weights.append(learner.weights())
    assert np.abs(weights[0]).max() > 0
    np.testing.assert_array_equal(*weights)


@pytest.mark.parametrize("feedback", ["exact", "binary", "rating:5,0.3,0.2"])
def test_a_run_is_what_somebody_tells_who_is_asked(text, feedback):
    """By ask and tell, with the losses as a rater tells them: of an output that was shown before, the same again."""
    task, data = text
    problem, gold = task.problem(data), task.gold(data)
    settings = Settings("of-three", "active", h=0.1, mu=1.0, seed=5, feedback=feedback)
    done, asked = Learner(problem, settings), Learner(problem, settings)
    done.run(gold, 120)
    rater, key = parse_feedback(feedback), settings.step_params().keys[random.FEEDBACK]
    again = 0
    for _ in range(120):
        proposal = Proposal.from_json(json.loads(json.dumps(asked.ask().as_json())))
        told: list[float] = []
        for k, output in enumerate(proposal.outputs):
            seen = next((j for j in range(k) if np.array_equal(output, proposal.outputs[j])), None)
            F = float(output[0] != gold.labels[proposal.x])
            again += seen is not None and k == 2
            told.append(
                told[seen]
                if seen is not None
                else perceived(rater.code, rater.noise, rater.bias, rater.levels, key, proposal.step, F, k)
            )
        asked.tell(proposal, told)
    assert 0 < again < 120
    np.testing.assert_array_equal(done.weights(), asked.weights())
    assert done.questions == done.answers == 120  # though the first two are often the same


def test_the_mean_is_told_as_it_is_to_baseline():
    weights = []
    for rule in ("own-baseline", "baseline"):
        optimizer = Optimizer(6, Settings(rule, "active", h=0.05, mu=0.3, seed=2))
        for k in range(50):
            proposal = optimizer.ask([k % 6, (k + 2) % 6])
            assert len(proposal.outputs) == 1
            optimizer.tell(proposal, float(((proposal.candidate - 1) ** 2).sum()))
        weights.append(optimizer.weights())
    assert np.abs(weights[0]).max() > 0
    np.testing.assert_array_equal(*weights)


def test_an_optimizer_shows_all_points_and_goes_on_from_bytes():
    settings = Settings("middle-out", "active", h=0.02, mu=0.5, seed=4)
    optimizer = Optimizer(4, settings, w0=[1.0, 2.0, 3.0, 4.0])
    proposal = optimizer.ask([0, 2])
    up, here, down = proposal.outputs
    np.testing.assert_array_equal(here, [1.0, 3.0])
    np.testing.assert_allclose(up - here, here - down)
    with pytest.raises(UsageError, match="rule middle-out takes the losses of the 3 outputs"):
        optimizer.tell(proposal, (1.0, 2.0))
    other = Optimizer.from_bytes(optimizer.to_bytes())
    info = optimizer.tell(proposal, [1.0, 2.0, 4.0])
    assert info.c == -0.02 * (2 * 1.0 - 2.0 - 0.5 * 4.0) / 0.5  # as it is written above
    other.tell(proposal, np.array([1.0, 2.0, 4.0]))
    np.testing.assert_array_equal(optimizer.weights(), other.weights())
    np.testing.assert_allclose(
        optimizer.weights(), [1, 2, 3, 4] + info.c * np.array([*(up - here), 0, 0])[[0, 2, 1, 3]] / 0.5
    )


def test_its_defaults_and_its_name():
    def defaults(rule, step, perturb):
        return {"symmetric": (0.5, 2.0), "two-point": (0.25, 4.0)}[rule]

    made = Settings.complete({"rule": "of-three"}, defaults)
    assert (made.h, made.mu, made.name, made.scale_free) == (0.5, 2.0, "of-three score", False)
    assert Settings.complete({"rule": "middle-out"}, defaults).h == 0.25
    assert (RULES["of-three"].losses, "of-three" in list(RULES), RULES.get("nobody's")) == (3, True, None)
    with pytest.raises(UsageError, match=r"`feedback` flip:0.1 is of comparisons; rule of-three asks for losses"):
        Settings("of-three", feedback="flip:0.1")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "two-point"}, "rule 'two-point': give it a name of letters, digits and -, that no built-in rule has"),
        ({"name": "a b"}, "rule 'a b': give it a name"),
        ({"points": (0, 1)}, "rule x: points (0, 1): give 1 to 8 different numbers, the first not 0"),
        ({"points": (1, 1)}, "rule x: points (1, 1)"),
        ({"points": ()}, "rule x: points ()"),
        ({"points": tuple(range(1, 10))}, "rule x: points"),
        ({"like": "first-order"}, "rule x: like 'first-order' is no built-in rule that perturbs the weights"),
    ],
)
def test_a_rule_that_is_none(given, message):
    with pytest.raises(UsageError, match=f"^{re.escape(message)}"):
        own_rule(**{"name": "x", **given})
    assert "x" not in RULES


# ---- a function in compiled code ----


def takes_two(a, b):
    return a + b


def adds_text(a):
    return a + "text"


def gives_nothing(a):
    a += 1


def test_a_function_that_cannot_be_compiled():
    here = Path(__file__).name
    for function, said in (
        (takes_two, r"takes a, b, and must take 1$"),
        (adds_text, r"cannot be compiled: .*\(.*test_own_parts.py:\d+\)$"),
        (gives_nothing, r"returns none; it must return a number$"),
    ):
        with pytest.raises(UsageError, match=rf"^rule x: {here}:\d+ {said}") as error:
            OwnFunction(function, "rule x").compiled(float64)
        assert "\n" not in str(error.value)
    inner = 2.0

    def closed(a):
        return a * inner

    with pytest.raises(UsageError, match="is made inside another function"):
        OwnFunction(closed, "rule x")
    with pytest.raises(UsageError, match="compiled code is known by its file"):
        OwnFunction(eval("lambda a: a"), "rule x")


def test_it_is_known_by_all_that_it_is_compiled_from(tmp_path, monkeypatch):
    """Its file, the files of what it calls, and numbers from anywhere."""
    monkeypatch.syspath_prepend(str(tmp_path))
    files = {
        "own_numbers": "CUT = {cut}\n",
        "own_called": "import numba\n@numba.njit\ndef twice(a):\n    return {twice} * a\n",
        "own_caller": "from own_called import twice\nfrom own_numbers import CUT\n"
        "def f(a):\n    return twice(a) + CUT + {own}\n",
    }
    seen = {}
    for cut, twice, more in ((1, 2, 0), (5, 2, 0), (1, 3, 0), (1, 2, 7), (1, 2, 0)):
        numbers = {"cut": cut, "twice": twice, "own": more}
        for name, source in files.items():
            (tmp_path / f"{name}.py").write_text(source.format(**numbers))
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        sys.dont_write_bytecode, kept = True, sys.dont_write_bytecode
        try:
            own = OwnFunction(importlib.import_module("own_caller").f, "f").compiled(float64)
        finally:
            sys.dont_write_bytecode = kept
        assert own(10.0) == numbers["twice"] * 10 + numbers["cut"] + numbers["own"]
        assert seen.setdefault(own.known_by, numbers) == numbers
    assert len(seen) == 4


# ---- a task ----


def read(lines):
    for line in lines:
        words, _, gold = line.partition("|")
        rows = [dict.fromkeys(part.split(), 1.0) for part in words.split(";")]
        yield Input(rows, None if not gold else [float(each) for each in gold.split()])


def decode(S, y):
    for i in range(y.size):
        y[i] = 0
        for l in range(1, S.shape[1]):
            if S[i, l] > S[i, y[i]]:
                y[i] = l


def loss(gold, y):
    wrong = 0
    for i in range(y.size):
        wrong += y[i] != gold[i]
    return wrong / y.size


TAGS = own_task("tags", read, decode, loss, labels=("A", "B", "C"), metric="right")


@pytest.fixture(scope="module")
def tags(tmp_path_factory):
    """Words of three kinds, each row's tag that of its one telling word."""
    rng, path = np.random.default_rng(1), tmp_path_factory.mktemp("tags") / "train"
    lines = []
    for _ in range(80):
        kinds = rng.integers(0, 3, rng.integers(1, 5))
        words = ";".join(f"kind{kind} noise{rng.integers(30)}" for kind in kinds)
        lines.append(f"{words}|{' '.join(map(str, kinds))}")
    path.write_text("\n".join(lines))
    loaded = TAGS.load(Files((str(path),), dev="20"))
    return loaded.task, loaded.data


def test_a_task_of_three_functions_learns_and_is_what_numpy_says(tags):
    task, data = tags
    problem, gold = task.problem(data.train), task.gold(data.train)
    learner = Learner(problem, Settings("comparison", "score", h=0.1, mu=1.0, step="adagrad", seed=1))
    learner.run(gold, 3000)
    W = learner.weights()
    outputs = predict(task.problem(data.dev, learn=False), W)
    columns = {name: k for k, name in enumerate(task.feature_names())}
    expected = [
        int(sum(W[columns[name]] for name in row if name in columns).argmax()) for each in data.dev for row in each.rows
    ]
    assert outputs.tolist() == expected
    losses, at = [], 0
    for each in data.dev:
        losses.append(np.mean(np.array(each.gold) != expected[at : at + len(each.rows)]))
        at += len(each.rows)
    scores = task.scores(data.dev, outputs)
    assert (scores.metric, scores.value) == ("right", pytest.approx(1 - np.mean(losses)))
    assert scores.value > 0.9
    again = Learner(problem, learner.settings)
    for _ in range(200):  # the same, with losses computed in Python
        proposal = again.ask()
        given = data.train[proposal.x].gold
        again.tell(proposal, [loss(given, output) for output in proposal.outputs])
    other = Learner(problem, learner.settings)
    other.run(gold, again.step)
    np.testing.assert_array_equal(again.weights(), other.weights())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rule": "first-order"}, "rule first-order needs protocol.sample, protocol.score_gradient, "
         "protocol.log_probability, which OwnScores does not implement; docs/tasks.md says how"),
        ({"rule": "supervised"}, "rule supervised needs protocol.supervise, which OwnGold does not implement"),
        ({"criterion": "annealed"}, "task tags has no expected loss: leave out `criterion` annealed"),
        ({"rule": "part"}, "task tags asks no questions: choose a rule that learns from losses, such as two-point"),
    ],
)  # fmt: skip
def test_what_it_has_not_is_refused_by_name(tags, given, message):
    task, data = tags
    with pytest.raises(UsageError, match=f"^{re.escape(message)}"):
        Training(task, data, Settings.complete(given, *TAGS.usual), 10).learn()


def test_an_output_that_nobody_can_be_sure_of(tags):
    task, data = tags
    with pytest.raises(UsageError, match=r"^how sure a model is needs protocol.confidence, which OwnScores does not"):
        confidence(task.problem(data.dev, learn=False), np.zeros((task.n_features, 3), np.float32))


class Bare(NamedTuple):
    """A task written out, of which nothing is written."""

    n: int


def test_a_task_written_out_that_lacks_something(tags):
    """Before anything is compiled, and not by a traceback of Numba."""
    task, data = tags
    problem = task.problem(data.train)
    object.__setattr__(problem, "task", Bare(1))
    with pytest.raises(UsageError, match=r"^rule two-point needs protocol.decode, which Bare does not implement"):
        Learner(problem, Settings())
    with pytest.raises(UsageError, match=r"^predicting needs protocol.decode, which Bare does not implement"):
        predict(problem, np.zeros((task.n_features, 3), np.float32))
    protocol.need(task.problem(data.train).task, [protocol.decode, protocol.outputs], "learning")
    with pytest.raises(UsageError, match=r"^rule two-point needs protocol.delta, which Bare does not implement"):
        Learner(task.problem(data.train), Settings()).run(Bare(1), 1)


def test_what_is_wrong_with_its_files(tmp_path, tags):
    path = tmp_path / "data"
    path.write_text("kind1|0\nkind1 ; kind2|0 x\n")
    with pytest.raises(DataError, match=rf"^{path}:2: ValueError: could not convert .* \(test_own_parts.py:\d+\)$"):
        TAGS.load(Files((str(path),)))
    path.write_text("")
    with pytest.raises(DataError, match="has no inputs"):
        TAGS.load(Files((str(path),)))
    path.write_text("kind1\n")
    with pytest.raises(UsageError, match=r"^task tags: input 0 has no gold, and losses are computed from it"):
        tags[0].gold(TAGS.read(tags[0], str(path), {}))
    with pytest.raises(UsageError, match=r"^task t: loss is a NoneType; give a function"):
        own_task("t", read, decode, None)


def test_a_model_of_it_is_read_again(tags):
    task, _ = tags
    again = TAGS.from_arrays(*task.to_arrays())
    assert again.feature_names() == task.feature_names()
    with pytest.raises(UsageError, match="task tags has other labels than the model, A, B, C"):
        own_task("tags", read, decode, loss, labels=("A", "B")).from_arrays(*task.to_arrays())


# ---- a package ----


def shown_in(page: str) -> str:
    """The example of a page: the first block of Python."""
    return (DOCS / page).read_text("utf-8").split("```python\n")[1].split("```")[0]


def sparsezo(folder: Path, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(folder), str(Path(__file__).parent.parent / "src")])
    command = [sys.executable, "-m", "sparsezo", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def package(tmp_path):
    """What the two pages show, installed, with a broken rule beside it; and a log of clicks."""
    for page in ("tasks.md", "rules.md"):
        assert len(shown_in(page).splitlines()) <= 80
    (tmp_path / "clicks.py").write_text(shown_in("tasks.md"))
    (tmp_path / "still.py").write_text(shown_in("rules.md"))
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[sparsezo.tasks]\nclicks = clicks:SPEC\n[sparsezo.rules]\nstill = still:STILL\nlost = nowhere:LOST\n"
    )
    rng = np.random.default_rng(0)
    for name, n in (("train", 120), ("dev", 40)):
        lines = []
        for _ in range(n):
            rows = [{"title": float(rng.integers(2)), f"word {rng.integers(50)}": 1.0} for _ in range(6)]
            lines.append({"documents": rows, "clicks": [int(row["title"]) for row in rows]})
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


FILES = ("--train", "train.jsonl", "--dev", "dev.jsonl")
TRAIN = ("train", "clicks", *FILES, "--rule", "still", "--iterations", "2k")


def test_what_the_pages_show_works_from_the_command_line(package):
    done = sparsezo(package, *TRAIN, "-o", "m.szo", "--json")
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["task"], result["rule"], result["metric"], result["losses"]) == ("clicks", "still", "ndcg", 6000)
    assert result["dev"] > 0.95  # what has a title is clicked
    found = json.loads(sparsezo(package, "evaluate", "m.szo", "dev.jsonl", "--json").stdout)
    assert (found["ndcg"], found["inputs"]) == (pytest.approx(result["dev"]), 40)
    lines = sparsezo(package, "predict", "m.szo", "dev.jsonl").stdout.splitlines()
    assert [sorted(json.loads(line)["output"]) for line in lines] == [list(range(6))] * 40


@pytest.mark.torture
def test_after_an_edit_it_is_another_rule(package):
    """Whose loop is not the one that was compiled before: nothing moves."""
    (package / "still.py").write_text(shown_in("rules.md").replace("return -h", "return 0 * h"))
    stands = sparsezo(package, *TRAIN, "-o", "n.szo", "--json")
    assert json.loads(stands.stdout.splitlines()[-1])["update_fraction"] == 0


def test_what_is_wrong_with_a_packages_rule_is_one_line(package):
    (package / "still.py").write_text(shown_in("rules.md").replace("losses[1]", "losse[1]"))
    failed = sparsezo(package, *TRAIN, "-o", "o.szo", code=2)
    assert re.fullmatch(r"sparsezo: rule still: still.py:\d+ cannot be compiled: .*losse.*\n", failed.stderr)
    lost = sparsezo(package, "train", "clicks", *FILES, "--rule", "lost", "-o", "o.szo", code=1)
    assert lost.stderr.startswith("sparsezo: rule lost of mine cannot be used: nowhere:LOST ModuleNotFoundError")


@pytest.mark.torture
def test_both_are_in_a_report_made_by_other_processes(package):
    (package / "mine.toml").write_text(
        'name = "both"\ntask = "clicks"\niterations = 300\nseeds = 2\n'
        '[data]\ntrain = "train.jsonl"\ndev = "dev.jsonl"\ntest = "dev.jsonl"\n'
        '[fixed]\nh = 0.1\nmu = 1.0\n[[learner]]\nrule = "still"\nperturb = "score"\n'
        '[[learner]]\nrule = "symmetric"\nperturb = "score"\n'
    )
    sparsezo(package, "reproduce", "mine.toml", "--data", ".", "-o", "out", "--phases", "fixed", "--processes", 2)
    page = (package / "out" / "report" / "report.html").read_text()
    for words in ("Ranking by clicks, learned from", "ndcg", "still score", "symmetric score", "losses asked for"):
        assert words in page


def test_the_help_names_both(package):
    told = sparsezo(package, "train", "--help").stdout
    assert "clicks" in told
    said = sparsezo(package, "train", "clicks", "--rule", "stil", *FILES, "-o", "m.szo", code=2)
    assert "choose from two-point, symmetric" in said.stderr
    assert said.stderr.rstrip().endswith("still, lost")


def test_a_task_is_registered_by_a_program(monkeypatch):
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    assert registry.register(TAGS) is registry.task_spec("tags")
