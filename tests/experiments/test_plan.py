"""Experiments as data: the paper's own are there, a file is read as it is meant or refused."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import fields, replace
from types import SimpleNamespace

import pytest

from sparsezo.cli.train import ITERATIONS
from sparsezo.cli.values import whole_number
from sparsezo.errors import DataError, SparsezoError, UsageError
from sparsezo.experiments.plan import (
    DataSpec,
    Experiment,
    LearnerSpec,
    builtin,
    grid_of,
    parse_experiment,
    read_experiment,
)
from sparsezo.experiments.reproduce import reproduce
from sparsezo.experiments.runs import Run, fixed_runs
from sparsezo.experiments.toml import pairs
from sparsezo.settings import Settings
from sparsezo.tasks.registry import experiments, kind

SMALL = """
name = "small"
task = "chunking"
iterations = 1000
seeds = 2
[data]
train = "train.txt"
dev = 10
options = { only = "NP" }
[fixed]
h = 0.01
mu = 0.1
step = "constant"
[grid]
h = [0.1, 0.01]
mu = [0.1]
[[learner]]
rule = "two-point"
perturb = "score"
paper = 0.5
[[learner]]
rule = "first-order"
h = 0.5
baseline = true
grid.h = [1, 2]
"""

WHOLE = """
name = "whole"
task = "rerank"
note = "a note"
origin = "files"
identity = "abc"
iterations = 4321
evaluate_every = 77
seeds = [3, 8, 4]
init = "weights.start"

[data]
train = ["a.nbest", "b.nbest"]
dev = "dev.nbest"
test = "test.nbest"
options = { train_ref = ["r1", "r2"], store = "place" }

[bounds]
low = "weights.low"
high = "weights.high"

[fixed]
h = 0.01
mu = 0.02

[grid]
h = [0.3, 0.1]
mu = [0.4, 0.2]

[[learner]]
rule = "symmetric"
perturb = "active"
h = 0.05
mu = 0.06
step = "adagrad"
criterion = "annealed"
gamma = 2.5
feedback = "binary"
paper = 0.25
grid = { h = [7, 8.5], mu = [9.5] }

[[learner]]
rule = "comparison"
perturb = "all"
feedback = ["exact", "flip:0.1"]

[[learner]]
rule = "first-order"
baseline = true

[[learner]]
rule = "supervised"
h = 3
grid.h = [5]
"""

AS_OBJECTS = Experiment(
    name="whole",
    task="rerank",
    data=DataSpec(("a.nbest", "b.nbest"), "dev.nbest", "test.nbest", {"train_ref": ["r1", "r2"], "store": "place"}),
    learners=(
        LearnerSpec(
            rule="symmetric",
            perturb="active",
            h=0.05,
            mu=0.06,
            step="adagrad",
            criterion="annealed",
            gamma=2.5,
            baseline=False,
            feedback="binary",
            grid_h=(7.0, 8.5),
            grid_mu=(9.5,),
            paper=0.25,
        ),
        LearnerSpec("comparison", "all", 0.01, 0.02, grid_h=(0.3, 0.1), grid_mu=(0.4, 0.2)),
        LearnerSpec("comparison", "all", 0.01, 0.02, feedback="flip:0.1", grid_h=(0.3, 0.1), grid_mu=(0.4, 0.2)),
        LearnerSpec("first-order", None, 0.01, None, baseline=True, grid_h=(0.3, 0.1)),
        LearnerSpec("supervised", None, 3.0, None, grid_h=(5.0,)),
    ),
    iterations=4321,
    seeds=(3, 8, 4),
    evaluate_every=77,
    init="weights.start",
    bounds={"low": "weights.low", "high": "weights.high"},
    origin="files",
    identity="abc",
    note="a note",
)


def parse(text: str):
    return parse_experiment(text, "small.toml")


# Reading


def test_every_field_of_a_file_reaches_the_plan():
    plan = parse(WHOLE)
    for field in fields(Experiment):
        assert getattr(plan, field.name) == getattr(AS_OBJECTS, field.name), field.name
    assert plan == AS_OBJECTS


def test_what_a_file_leaves_out_has_a_default():
    learner = '[[learner]]\nrule = "first-order"\nh = 1\n'
    plan = parse('name = "x"\ntask = "text"\niterations = 7\ndata.train = "t"\n' + learner)
    assert plan == Experiment(
        "x", "text", DataSpec(("t",)), (LearnerSpec("first-order", None, 1.0, None, "adagrad"),), 7
    )
    assert plan.seeds == (0, 1, 2)
    assert (plan.data.dev, plan.data.test, plan.data.options, plan.bounds) == (None, None, {}, {})
    assert (plan.evaluate_every, plan.init, plan.origin, plan.identity, plan.note) == (None,) * 5
    spec = plan.learners[0]
    assert (spec.step, spec.criterion, spec.gamma, spec.baseline) == ("adagrad", "map", 1.0, False)
    assert (spec.feedback, spec.grid_h, spec.grid_mu, spec.paper) == ("exact", (), (), None)


BARE = 'task = "chunking"\ndata.train = "train.txt"\n'


@pytest.mark.parametrize("task", ["chunking", "text", "rerank"])
def test_task_data_and_learners_are_enough(task, tmp_path):
    """The rest is as train has it: h and mu by the rule, the step and the perturbation."""
    path = tmp_path / "my first.toml"
    learners = (
        {},
        {"rule": "first-order"},
        {"rule": "comparison", "perturb": "active"},
        {"rule": "baseline", "step": "constant"},
    )
    text = "".join("[[learner]]\n" + "".join(f'{k} = "{v}"\n' for k, v in given.items()) for given in learners)
    path.write_text(BARE.replace("chunking", task) + text)
    plan = read_experiment(path)
    assert (plan.name, plan.title, plan.task) == ("my first", "my first", task)
    assert (plan.iterations, plan.seeds, plan.phases_of()) == (1_000_000, (0, 1, 2), ("fixed",))
    assert [spec.settings(0) for spec in plan.learners] == [
        Settings.complete(given, *kind(task).usual) for given in learners
    ]
    assert not plan.has_grid


def test_iterations_are_those_of_train():
    assert whole_number(ITERATIONS, "") == Experiment.iterations
    plan = parse(BARE + 'name = "x"\nanswers = 500\n[[learner]]\nrule = "part"\n')
    assert (plan.answers, plan.length, plan.interval, plan.unit) == (500, 500, 5, "answers")
    assert parse(plan.to_toml()) == plan


def test_an_own_h_and_mu_come_before_the_tasks(tmp_path):
    (spec,) = parse(BARE + 'name = "x"\n[fixed]\nh = 0.5\n[[learner]]\n').learners
    assert (spec.h, spec.mu, spec.step) == (0.5, 0.2, "adagrad")
    (spec,) = parse(BARE + 'name = "x"\n[fixed]\nh = 0.5\nstep = "constant"\n[[learner]]\n').learners
    assert (spec.h, spec.mu, spec.step) == (0.5, 0.1, "constant")
    (spec,) = parse(BARE + 'name = "x"\n[fixed]\nmu = 0.5\n[[learner]]\nh = 7\n').learners
    assert (spec.h, spec.mu) == (7.0, 0.5)


def test_a_title_of_its_own(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text('title = "Größe & <b>"\nname = "y"\n' + BARE + "[[learner]]\n")
    plan = read_experiment(path)
    assert (plan.name, plan.title) == ("y", "Größe & <b>")
    assert parse(plan.to_toml()) == plan
    assert builtin("chunking").title is None


def test_an_experiment_from_standard_input(monkeypatch):
    stdin = SimpleNamespace(buffer=io.BytesIO((BARE + "[[learner]]\n").encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert read_experiment("-").name == "experiment"


def test_what_is_tuned_where_no_grid_is_given():
    """Where tune looks; a learner's own grid, anybody's, is enough to leave it so."""
    plan = parse('name = "x"\n' + BARE + '[[learner]]\n[[learner]]\nrule = "supervised"\n')
    grid_h, grid_mu = grid_of("chunking", "adagrad")
    found = plan.to_tune()
    constant = parse('name = "x"\n' + BARE + '[[learner]]\nstep = "constant"\n').to_tune().learners[0]
    assert (constant.grid_h, constant.grid_mu) == (builtin("chunking").learners[0].grid_h, (0.1, 0.01))
    assert [(spec.grid_h, spec.grid_mu) for spec in found.learners] == [(grid_h, grid_mu), (grid_h, ())]
    assert replace(found, learners=plan.learners) == plan
    some = parse('name = "x"\n' + BARE + '[[learner]]\n[[learner]]\nrule = "supervised"\ngrid.h = [1]\n')
    assert some.to_tune() is some
    assert (some.phases_of(), plan.phases_of(["tuned"])) == (("fixed", "tuned"), ("tuned",))
    assert replace(some, phases=("fixed",)).phases_of() == ("fixed",)


@pytest.mark.parametrize(
    "name", ["../x", "..", ".", "a/b", "/tmp/x", "a\\b", ".hidden", "", " ", "a\nb", "\x1b[31m", "x" * 81, " x", "x\t"]
)
def test_a_name_is_the_name_of_a_folder(name, tmp_path, monkeypatch):
    """And nothing is written outside of the folder of results."""
    path = tmp_path / "mine.toml"
    path.write_text(f"name = {json.dumps(name)}\n{BARE}[[learner]]\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        DataError, match=r"^\S+mine\.toml: name '.*': must do as the name of a folder: up to 80 letters"
    ):
        reproduce(str(path), "generated")
    assert [each.name for each in tmp_path.iterdir()] == ["mine.toml"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("h = 1" + "0" * 400, "learner.1.h is a whole number of 1330 bits; 64 are the most"),
        ("h = 1" + "0" * 5000, "is not TOML: Exceeds the limit (4300 digits) for integer string conversion"),
        ("h = 0x1" + "0" * 5000, "learner.1.h is a whole number of 20002 bits; 64 are the most"),
        ("h = 1e400", "learner 1: `h` inf: must be positive and finite"),
        ("h = nan", "learner 1: `h` nan: must be positive and finite"),
        ("h = " + "[" * 100_000, "is not TOML: nested too deep"),
        ("h = " + "[" * 100 + "]" * 100, "nested too deep"),
        ("h" + ".h" * 50 + " = 1", "nested too deep"),
        ("h" + ".h" * 100_000 + " = 1", "is not TOML: nested too deep"),
        ('"h, "' + '. "h, "' * 30_000 + " = 1", "is not TOML: nested too deep"),
        ("h = 1979-05-27T07:32:00Z", 'learner 1.h is "1979-05-27 07:32:00+00:00"; give a number'),
        ("rule = 07:32:00", 'learner 1.rule is "07:32:00"; give a string'),
        ("grid.h = [1979-05-27]", "learner 1.grid.h: must be a list of numbers"),
        ("grid.mu = [1]", "learner 1: its grid has values of mu and none of h; give both"),
        ('rule = ""', "learner 1: `rule` : choose from two-point"),
        ('rule = "first-order"\nstep = "adagzad"', "learner 1: `step` adagzad: choose from constant, adagrad"),
        ('rule = "\\u0000"', "learner.1.rule is a text with a NUL character"),
        ("rule = " + "'" + "x" * 70_000 + "'", "learner 1: `rule` xxx"),
        ("x" * 70_000 + " = 1", "unknown key 'learner 1.xxx"),
    ],
)
def test_whatever_toml_can_hold_is_said_in_one_line(text, message):
    with pytest.raises(DataError) as caught:
        parse(f'name = "x"\n{BARE}[[learner]]\n{text}\n')
    said = str(caught.value)
    assert said.startswith(f"small.toml: {message}")
    assert said.isprintable()
    assert len(said) < 1300


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("iterations = 0", "iterations 0: must be at least 1"),
        ("data.dev = 9999999999999999999", "data.dev is a whole number of 65 bits; 64 are the most"),
        ("data.dev = '9999999999999999999'", "data.dev: no data has so many inputs"),
        ("data.options = { only = 1979-05-27 }", "`only` datetime.date(1979, 5, 27): give text"),
        ("data.options = { only = 3 }", "`only` 3: give text"),
        ("data.options = { nothing = 3 }", "`nothing` does not belong to task chunking"),
        ("phases = 'warm'", "phases 'warm': choose from fixed, tuned"),
        ("phases = []", "phases: must be a phase, or a list of them"),
        ("title = ''", "title: must be one line of text"),
        ('title = "a\\nb"', "title: must be one line of text"),
    ],
)
def test_wrong_values_at_the_top(text, message):
    with pytest.raises(DataError) as caught:
        parse(f'name = "x"\n{text}\n{BARE}[[learner]]\n')
    assert str(caught.value) == f"small.toml: {message}"


def test_an_empty_path_is_no_file():
    with pytest.raises(DataError, match="data has no train; name a file"):
        parse('name = "x"\n' + BARE.replace("train.txt", "") + "[[learner]]\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeds = 100000000", "small.toml: 100,000,000 seeds, more than 10,000"),
        (
            "[grid]\nh = [" + "1," * 10_001 + "]",
            "small.toml: grid.h has 10,001 values, more than 10,000",
        ),
        (
            "[grid]\nh = [" + "1," * 200 + "]\nmu = [" + "1," * 200 + "]",
            "two-point score adagrad: a grid of 40,000 points, more than 10,000",
        ),
        ("# " + "x" * 300_000, "small.toml: an experiment of more than 256 kB: is this the right file?"),
    ],
)
def test_sizes_are_refused_before_any_work(text, message):
    with pytest.raises(DataError) as caught:
        parse(f'name = "x"\n{BARE}{text}\n[[learner]]\n')
    assert str(caught.value) == f"{message}; if it is meant, add `insist`"


def test_a_packed_file_that_swells_is_not_swallowed(tmp_path):
    path = tmp_path / "x.toml.gz"
    path.write_bytes(gzip.compress(b"#" * (1 << 24)))
    with pytest.raises(DataError, match=r"x\.toml\.gz: an experiment of more than 256 kB: is this the right file\?"):
        read_experiment(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match=r"x\.toml\.gz: cannot be read on"):
        read_experiment(path)


def test_a_file_is_read_as_it_is_meant():
    plan = parse(SMALL)
    assert plan.seeds == (0, 1)  # a number of seeds
    assert (plan.data.train, plan.data.dev, plan.data.options) == (("train.txt",), "10", {"only": "NP"})
    first, second = plan.learners
    assert first.grid() == [(0.1, 0.1), (0.01, 0.1)]
    assert (first.h, first.mu, first.paper) == (0.01, 0.1, 0.5)
    assert second.grid() == [(1.0, None), (2.0, None)]
    assert (second.h, second.mu, second.paper, second.baseline) == (0.5, None, None, True)


def test_a_grid_of_h_and_mu_is_every_pair():
    spec = LearnerSpec("two-point", "score", 1.0, 1.0, grid_h=(3.0, 2.0), grid_mu=(0.1, 0.5, 0.3))
    assert spec.grid() == [(3.0, 0.1), (3.0, 0.5), (3.0, 0.3), (2.0, 0.1), (2.0, 0.5), (2.0, 0.3)]
    assert LearnerSpec("two-point", "score", 1.0, 1.0).grid() == []


def test_a_learners_own_settings_come_before_the_common_ones():
    """Each alone: an own h leaves the common mu and grid as they are, and so on."""
    text = SMALL.replace('perturb = "score"\n', 'perturb = "score"\n{}\n')
    specs = [
        parse(text.replace("{}", own)).learners[0]
        for own in ("h = 7", "mu = 7", "grid.h = [7]", "grid.mu = [7, 8]", "grid.h = []")
    ]
    assert [(spec.h, spec.mu, spec.grid_h, spec.grid_mu) for spec in specs] == [
        (7.0, 0.1, (0.1, 0.01), (0.1,)),
        (0.01, 7.0, (0.1, 0.01), (0.1,)),
        (0.01, 0.1, (7.0,), (0.1,)),
        (0.01, 0.1, (0.1, 0.01), (7.0, 8.0)),
        (0.01, 0.1, (0.1, 0.01), (0.1,)),
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # unknown keys, table by table
        (
            "seeds = 2",
            "seed = 2",
            "unknown key 'seed'; known are data, fixed, grid, task, looks, answers, name, learner, iterations, "
            "test_looks, keep_best, thresholds, seconds, rivals, rival_rates, seeds, tuning_seeds, evaluate_every, "
            "init, bounds, origin, identity, note, title, phases",
        ),
        ("dev = 10", "develop = 10", "unknown key 'data.develop'; known are instead, dev, train, test, split, options"),
        ("h = 0.01\nmu = 0.1", "h = 0.01\nmu = 0.1\nnu = 1", "unknown key 'fixed.nu'; known are h, mu, step"),
        ("mu = [0.1]", "nu = [0.1]", "unknown key 'grid.nu'; known are h, mu"),
        (
            "paper = 0.5",
            "papers = 0.5",
            "unknown key 'learner 1.papers'; known are rule, grid, perturb, h, mu, step, criterion, gamma, baseline, "
            "about, ask, rater_error, rehearse, batch, samples, antithetic, fixed, walk, paper, labels, start, figure, "
            "passes, feedback",
        ),
        ("grid.h = [1, 2]", "grid.k = [1]", "unknown key 'learner 2.grid.k'; known are h, mu, feedback, gamma"),
        # what has to be there
        ('name = "small"', "", "name is missing; give a string"),
        ('task = "chunking"', "", "task is missing; give a string"),
        ('train = "train.txt"', "", "data has no train; name a file"),
        # kinds of values
        ('name = "small"', "name = 3", "name is 3; give a string"),
        ('task = "chunking"', "task = 1979-05-27", 'task is "1979-05-27"; give a string'),
        ("iterations = 1000", "iterations = '1M'", 'iterations is "1M"; give a whole number'),
        ("iterations = 1000", "iterations = true", "iterations is true; give a whole number"),
        ("iterations = 1000", "iterations = 1e3", "iterations is 1000.0; give a whole number"),
        ("h = 0.01\n", "h = true\n", "fixed.h is true; give a number"),
        ("h = [0.1, 0.01]", "h = 0.1", "grid.h is 0.1; give a list of numbers"),
        ("h = [0.1, 0.01]", "h = [0.1, 'x']", "grid.h: must be a list of numbers"),
        ("h = [0.1, 0.01]", "h = [0.1, true]", "grid.h: must be a list of numbers"),
        ('train = "train.txt"', "train = 3", "data.train is 3; give a path, or a list of them"),
        ('train = "train.txt"', "train = ['a', 3]", "data.train: must be a path, or a list of them"),
        ('train = "train.txt"', "train = []", "data.train: must be a path, or a list of them"),
        ("dev = 10", "dev = 1.5", "data.dev is 1.5; give a path, or a number of inputs"),
        ("dev = 10", "dev = true", "data.dev is true; give a path, or a number of inputs"),
        ("dev = 10", "test = 3", "data.test is 3; give a string"),
        ('options = { only = "NP" }', "options = 1", "data.options is 1; give a table"),
        ("baseline = true", "baseline = 1", "learner 2.baseline is 1; give true or false"),
        ("baseline = true", "feedback = 1", "learner 2.feedback is 1; give a feedback model, or a list of them"),
        ("baseline = true", "feedback = []", "learner 2.feedback: must be a feedback model, or a list of them"),
        ("seeds = 2", "seeds = 'two'", 'seeds is "two"; give a number of seeds, or a list of them'),
        ("seeds = 2", "seeds = true", "seeds is true; give a number of seeds, or a list of them"),
        ("seeds = 2", "seeds = [0, -1]", "seeds: must be whole numbers from 0"),
        ("seeds = 2", "seeds = [true]", "seeds: must be whole numbers from 0"),
        ("seeds = 2", "seeds = [1.5]", "seeds: must be whole numbers from 0"),
        ("seeds = 2", "bounds = 2", "bounds is 2; give a table"),
        # what does not go together
        ("iterations = 1000", "iterations = 0", "iterations 0: must be at least 1"),
        ("seeds = 2", "evaluate_every = 0", "evaluate_every: must be at least 1"),
        ('task = "chunking"', 'task = "parsing"', "task parsing: choose from chunking, text, rerank"),
        (
            '"two-point"',
            '"three-point"',
            "learner 1: `rule` three-point: choose from two-point, symmetric, comparison, preference, baseline, "
            "first-order, pairwise, cross-entropy, supervised, part, label, span, pair, rate",
        ),
        (
            "baseline = true",
            'perturb = "all"',
            "learner 2: rule first-order perturbs nothing: leave out `perturb` and `mu`",
        ),
        ("seeds = 2", "seeds = [1, 1]", "seeds: give at least one, each once"),
        ("seeds = 2", "seeds = []", "seeds: give at least one, each once"),
        ("seeds = 2", "init = 'w'", "init and bounds do not belong to task chunking"),
        ("seeds = 2", "bounds = { low = 'w' }", "init and bounds do not belong to task chunking"),
        ("seeds = 2", "bounds = { low = 3 }", "bounds: give name = path"),
        ("h = [0.1, 0.01]", "h = [0.1, -1]", "learner 1: `h` -1.0: must be positive and finite"),
        ("mu = [0.1]", "mu = [0.1, -1]", "learner 1: `mu` -1.0: must be positive and finite"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(old, new, message):
    assert old in SMALL
    with pytest.raises(DataError) as caught:
        parse(SMALL.replace(old, new, 1))
    assert str(caught.value) == f"small.toml: {message}"


def test_what_is_not_toml_is_refused():
    with pytest.raises(DataError, match=r"^small\.toml: is not TOML: .*line 6") as caught:
        parse(SMALL.replace("[data]", "[data"))
    assert "\n" not in str(caught.value)


def test_learners_are_tables():
    top = SMALL[: SMALL.index("[[learner]]")]
    for new, message in (
        ("learner = 1", "learner is 1; give tables: [[learner]]"),
        ("learner = [1]", "learner: must be tables, [[learner]]"),
        ("learner = []", "it has no [[learner]]; give at least one"),
        ("", "it has no [[learner]]; give at least one"),
    ):
        with pytest.raises(DataError) as caught:
            parse(f"{new}\n{top}")
        assert str(caught.value) == f"small.toml: {message}"


def test_two_learners_of_one_name_are_refused():
    with pytest.raises(DataError) as caught:
        parse(SMALL + '[[learner]]\nrule = "two-point"\nperturb = "score"\nh = 0.5\n')
    assert str(caught.value) == "small.toml: learner 'two-point score' is there twice; a learner is known by its name"


def test_a_files_own_path_and_encoding_are_named(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SMALL.replace('"small"', '"kleinß"'), encoding="utf-8")
    assert read_experiment(path).name == "kleinß"
    path.write_text("task = 3")
    with pytest.raises(DataError) as caught:
        read_experiment(path)
    assert str(caught.value) == f"{path}: task is 3; give a string"
    path.write_bytes(b'name = "\xff"')
    with pytest.raises(DataError) as caught:
        read_experiment(path)
    assert str(caught.value) == f"{path}: is not UTF-8 text (invalid start byte)"
    with pytest.raises(DataError, match=r"nowhere\.toml: no such file"):
        read_experiment("nowhere.toml")


# Learners


SPEC = LearnerSpec("two-point", "score", 0.3, 0.4)


def test_all_of_a_learner_reaches_its_settings():
    spec = LearnerSpec("symmetric", "active", 0.3, 0.4, "adagrad", "annealed", 2.5, feedback="binary")
    assert spec.settings(7) == Settings("symmetric", "active", 0.3, 0.4, "adagrad", "annealed", 2.5, False, 7, "binary")
    assert spec.settings(7, 0.5, 0.6) == replace(spec.settings(7), h=0.5, mu=0.6)
    assert spec.settings(7, 0.5) == replace(spec.settings(7), h=0.5)
    assert spec.settings(7, mu=0.6) == replace(spec.settings(7), mu=0.6)
    assert LearnerSpec("first-order", None, 0.3, None, baseline=True).settings(1) == Settings(
        "first-order", None, 0.3, None, baseline=True, seed=1
    )


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (SPEC, "two-point score"),
        (replace(SPEC, step="adagrad"), "two-point score adagrad"),
        (replace(SPEC, criterion="annealed", gamma=0.25), "two-point score annealed 0.25"),
        (replace(SPEC, feedback="binary"), "two-point score binary"),
        (LearnerSpec("first-order", None, 0.3, None), "first-order"),
        (LearnerSpec("first-order", None, 0.3, None, baseline=True), "first-order with baseline"),
        (
            replace(SPEC, step="adagrad", criterion="annealed", gamma=2.0, feedback="binary"),
            "two-point score adagrad annealed 2 binary",
        ),
    ],
)
def test_a_learner_is_called_by_what_sets_it_apart(spec, name):
    assert spec.name == name


def test_a_learner_that_cannot_work_is_refused_with_its_whole_grid():
    for wrong in ({"h": -1.0}, {"mu": None}, {"grid_h": (0.1, -1.0)}, {"grid_h": (0.1,), "grid_mu": (0.1, -1.0)}):
        with pytest.raises(UsageError):
            replace(SPEC, **wrong)


# Plans


def test_where_learning_starts():
    rerank = parse(WHOLE)
    assert not rerank.from_zero
    assert replace(rerank, init=None).from_zero
    assert not replace(rerank, init=None, data=replace(rerank.data, options={"init": "w"})).from_zero
    assert [builtin(name).from_zero for name in ("chunking", "smt", "text", "noise")] == [True, False, True, True]


def test_looks_at_dev():
    plan = replace(parse(SMALL), iterations=1234)
    assert plan.interval == 13  # a hundredth, rounded up
    assert replace(plan, iterations=5).interval == 1
    assert replace(plan, evaluate_every=77).interval == 77


def test_one_iteration_and_a_look_after_each_are_allowed():
    plan = replace(parse(SMALL), iterations=1, evaluate_every=1)
    assert (plan.iterations, plan.interval) == (1, 1)


def test_whether_there_is_anything_to_tune():
    plan = parse(SMALL)
    bare = [replace(learner, grid_h=(), grid_mu=()) for learner in plan.learners]
    assert plan.has_grid
    assert replace(plan, learners=(bare[0], plan.learners[1])).has_grid
    assert not replace(plan, learners=tuple(bare)).has_grid
    assert [builtin(name).has_grid for name in ("chunking", "smt", "text", "noise")] == [True] * 4


def test_plans_that_cannot_share_a_folder():
    plan = replace(parse(SMALL), identity="ab", evaluate_every=9, data=DataSpec(("train.txt",)))
    for name, value in {
        "name": "other",
        "task": "text",
        "identity": "cd",
        "iterations": 5,
        "evaluate_every": 8,
    }.items():
        assert plan.clash(replace(plan, **{name: value})) == name
    for number, wrong in (
        (1, {"h": 0.7}),
        (0, {"mu": 0.7}),
        (0, {"gamma": 0.7}),  # of no weight to the criterion map, nor to the name
    ):
        learners = [*plan.learners]
        learners[number] = replace(learners[number], **wrong)
        name = ("two-point score", "first-order with baseline")[number]
        assert plan.clash(replace(plan, learners=tuple(learners))) == f"learner '{name}'"
    assert plan.clash(replace(plan, iterations=5, learners=(replace(plan.learners[0], h=0.7),))) == "iterations"


def test_plans_that_can_share_a_folder():
    plan = replace(parse(SMALL), identity="ab")
    first, second = plan.learners
    third = LearnerSpec("supervised", None, 0.3, None)
    others = [
        plan,
        replace(plan, seeds=(0, 1, 2)),
        replace(plan, learners=(second,)),
        replace(plan, learners=(third, second, first)),
        replace(plan, learners=(third,)),
        replace(plan, learners=(replace(first, grid_h=(0.7,), paper=0.1), second)),
        replace(plan, note="a note", origin="files", data=replace(plan.data, train=("elsewhere/train.txt",))),
    ]
    assert [plan.clash(other) for other in others] == [None] * 7


def test_the_fixed_runs_are_every_learner_with_every_seed():
    plan = parse(WHOLE)
    runs = fixed_runs(plan, "identity")
    names = [
        "symmetric active adagrad annealed 2.5 binary",
        "comparison all",
        "comparison all flip:0.1",
        "first-order with baseline",
        "supervised",
    ]
    assert [(run.learner, run.settings.seed) for run in runs] == [(name, seed) for name in names for seed in (3, 8, 4)]
    assert runs[1] == Run(
        experiment="whole",
        task="rerank",
        learner="symmetric active adagrad annealed 2.5 binary",
        phase="fixed",
        settings=Settings("symmetric", "active", 0.05, 0.06, "adagrad", "annealed", 2.5, False, 8, "binary"),
        iterations=4321,
        evaluate_every=77,
        data="identity",
        paper=0.25,
        keep_model=True,
    )
    assert len({run.hash for run in runs}) == 15
    assert fixed_runs(replace(plan, evaluate_every=None), "identity")[0].evaluate_every == 44


# Writing


def test_what_is_written():
    plan = replace(
        parse(SMALL), note='a "quoted" note', identity="ab", evaluate_every=3, data=DataSpec(("a", "b"), "10", "t")
    )
    learners = """
[[learner]]
rule = "two-point"
perturb = "score"
h = 0.01
mu = 0.1
step = "constant"
criterion = "map"
gamma = 1.0
baseline = false
feedback = "exact"
paper = 0.5
grid.h = [0.1, 0.01]
grid.mu = [0.1]

[[learner]]
rule = "first-order"
h = 0.5
step = "constant"
criterion = "map"
gamma = 1.0
baseline = true
feedback = "exact"
grid.h = [1.0, 2.0]
"""
    top = 'name = "small"\ntask = "chunking"\nnote = "a \\"quoted\\" note"\nidentity = "ab"\niterations = 1000\n'
    data = 'evaluate_every = 3\nseeds = [0, 1]\n\n[data]\ntrain = ["a", "b"]\ndev = "10"\ntest = "t"\n'
    assert plan.to_toml() == top + data + learners
    more = replace(plan, data=replace(plan.data, options={"only": "NP"}))
    assert more.to_toml() == top + data + '\n[data.options]\nonly = "NP"\n' + learners
    assert parse(more.to_toml()) == more
    odd = replace(AS_OBJECTS, bounds={"a b": "x", "é": "y", "min-count_2": "z"})
    assert '\n[bounds]\n"a b" = "x"\n"é" = "y"\nmin-count_2 = "z"\n' in odd.to_toml()
    assert parse(odd.to_toml()) == odd


def test_every_field_round_trips():
    assert parse(AS_OBJECTS.to_toml()) == AS_OBJECTS


@pytest.mark.parametrize("name", ["chunking", "smt", "text", "noise"])
def test_the_papers_experiments_round_trip(name, tmp_path):
    plan = replace(builtin(name), origin="generated", identity="ab")
    path = tmp_path / "experiment.toml"
    path.write_text(plan.to_toml(), encoding="utf-8")
    assert parse_experiment(path.read_text("utf-8"), "") == plan
    assert read_experiment(path) == replace(plan, title=name)  # whoever starts from it has an experiment of their own


def test_text_of_any_kind_round_trips():
    plan = replace(parse(SMALL), note='a "quoted"\nline \\ \x7f é 😀 \x01', evaluate_every=3)
    assert parse(plan.to_toml()) == plan


@pytest.mark.parametrize("value", [{"a": 1}, float("nan")])
def test_what_toml_has_no_word_for_is_refused(value):
    with pytest.raises(SparsezoError) as caught:
        pairs({"only": value})
    assert str(caught.value) == f"{value!r} cannot be written to TOML"


# The paper's own


def test_no_such_experiment():
    with pytest.raises(UsageError) as caught:
        builtin("parsing")
    assert str(caught.value) == (
        "experiment parsing: choose from chunking, text, smt, noise, answers-chunking, answers-text, answers-rerank, "
        "or name a .toml file"
    )


def figures(plan: Experiment) -> dict[str, float | None]:
    return {spec.name: spec.paper for spec in plan.learners}


ZEROTH = ("two-point", "comparison", "baseline")


ANNEALED = [f"{rule} {perturb} annealed" for rule in ZEROTH for perturb in ("all", "active", "score")]


def assert_annealed(spec, walks):
    """Gamma is searched for, over a decade at least; there are no runs at the figure's settings."""
    assert len(spec.grid_h) >= 3
    assert len(spec.grid_mu) == 1
    assert max(spec.grid_gamma) >= 10 * min(spec.grid_gamma)
    assert (spec.fixed, spec.walk) == (False, walks)


def test_the_papers_chunking():
    """Table 1, its figure's h = mu = 0.01, its grid, and what goes past the paper."""
    plan = builtin("chunking")
    assert figures(plan) == {
        "two-point all": 0.841,
        "two-point active": 0.888,
        "two-point score": None,
        "comparison all": 0.810,
        "comparison active": 0.842,
        "comparison score": None,
        "baseline all": 0.819,
        "baseline active": 0.869,
        "baseline score": None,
        "first-order": 0.908,
        "supervised": None,
        "preference score": None,
        "symmetric score": None,
        "two-point score adagrad": None,
        "symmetric score adagrad": None,
        "first-order adagrad with baseline": None,
        **dict.fromkeys(ANNEALED),
    }
    assert (plan.name, plan.task, plan.iterations, plan.seeds) == ("chunking", "chunking", 4_000_000, tuple(range(5)))
    assert plan.data == DataSpec(("conll2000/train.txt.gz",), "1000", "conll2000/test.txt.gz", {"only": "NP"})
    for spec in plan.learners:
        assert (spec.h, spec.mu) == (0.01, 0.01 if spec.perturb else None)
        if spec.criterion == "annealed":
            assert_annealed(spec, walks=False)
        elif spec.step == "constant":
            assert spec.grid_h == ((0.01, 0.001, 0.0001, 1e-05) if spec.perturb else (1.0, 0.1, 0.01, 0.001))
            assert spec.grid_mu == ((0.1, 0.01) if spec.perturb else ())
        else:
            assert spec.grid_h == (0.3, 0.1, 0.03)
            assert spec.grid_mu == ((1.0, 0.3, 0.1) if spec.perturb else ())


def test_the_papers_reranking():
    """Its figure's h = mu = 0.001, its grid; all learners start from the out-of-domain weights."""
    plan = builtin("smt")
    assert figures(plan) == {
        "two-point all": 0.273,
        "two-point active": None,
        "two-point score": None,
        "comparison all": 0.265,
        "comparison active": None,
        "comparison score": None,
        "baseline all": 0.266,
        "baseline active": None,
        "baseline score": None,
        "first-order": 0.263,
        "supervised": None,
        **dict.fromkeys(ANNEALED),
    }
    assert (plan.name, plan.task, plan.iterations, plan.seeds) == ("smt", "rerank", 4_000_000, tuple(range(10)))
    assert plan.init == "smt/weights.out-of-domain"
    assert list(plan.bounds.items()) == [
        ("out-of-domain", "smt/weights.out-of-domain"),
        ("in-domain", "smt/weights.in-domain"),
    ]
    assert plan.data == DataSpec(("smt/train.nbest.xz",), "smt/nc-devtest2007.nbest.xz", "smt/nc-test2007.nbest.xz")
    for spec in plan.learners:
        assert (spec.h, spec.mu) == (0.001, 0.001 if spec.perturb else None)
        if spec.criterion == "annealed":
            assert_annealed(spec, walks=False)
            continue
        assert spec.grid_h == ((0.01, 0.001, 1e-4, 1e-5) if spec.perturb else (1.0, 0.1, 0.01, 0.001, 1e-4))
        assert spec.grid_mu == ((0.1, 0.01, 0.001) if spec.perturb else ())


def test_the_papers_text():
    plan = builtin("text")
    names = [f"{rule} {perturb}" for rule in ZEROTH for perturb in ("all", "active", "score")]
    assert figures(plan) == dict.fromkeys([*names, "first-order", "supervised", *ANNEALED])
    assert (plan.name, plan.task, plan.iterations, plan.seeds) == ("text", "text", 1_000_000, tuple(range(10)))
    files = DataSpec(("text/20news4.train.tsv.gz",), "1000", "text/20news4.test.tsv.gz")
    assert plan.data == replace(files, instead=DataSpec(("rcv1",), split=True))  # the paper's own comes first
    for spec in plan.learners:
        assert (spec.h, spec.mu) == (0.1, 1.0 if spec.perturb else None)
        if spec.criterion == "annealed":
            assert_annealed(spec, walks=True)
            continue
        assert spec.grid_h == (10.0, 1.0, 0.1, 0.01, 0.001, 1e-4, 1e-5)
        assert spec.grid_mu == ((10.0, 1.0, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6) if spec.perturb else ())


def test_raters_that_err():
    """Every rule with every perturbation and every rater that fits; h by the perturbation."""
    plan = builtin("noise")
    flips = ["exact", "flip:0.05", "flip:0.1", "flip:0.2", "flip:0.3", "flip:0.4"]
    grades = ["exact", "binary", "rating:5,0,0", "rating:5,0.1,0.1", "rating:5,0.3,0.1", "rating:5,0.5,0.1"]
    steps = {"all": 1e-4, "active": 3e-4, "score": 1e-3}
    rules = {"comparison": flips, "preference": flips, "two-point": grades, "symmetric": grades, "baseline": grades}
    expected = {
        (rule, perturb, h, 0.1, rater) for rule in rules for perturb, h in steps.items() for rater in rules[rule]
    }
    expected |= {("first-order", None, 0.01, None, rater) for rater in grades}
    assert {(spec.rule, spec.perturb, spec.h, spec.mu, spec.feedback) for spec in plan.learners} == expected
    assert len(plan.learners) == len(expected) == 96
    assert (plan.name, plan.task, plan.iterations, plan.seeds) == ("noise", "chunking", 500_000, (0, 1, 2))
    assert plan.data == builtin("chunking").data


def test_h_is_tuned_for_exact_answers_and_for_one_noise_of_each_kind():
    plan = builtin("noise")
    tuned = [spec for spec in plan.learners if spec.grid_h]
    assert plan.phases_of() == ("fixed", "tuned")
    assert {spec.feedback for spec in tuned} == {"exact", "flip:0.2", "rating:5,0.3,0.1"}
    assert len(tuned) == 2 * len({(spec.rule, spec.perturb) for spec in plan.learners}) == 32
    for spec in tuned:
        assert len(spec.grid_h) == 3
        assert sorted(spec.grid_h)[1] == spec.h  # around the one that is fixed
        assert spec.grid_mu == ((spec.mu,) if spec.perturb else ())


def test_a_grid_may_be_for_some_raters_alone():
    head, _, _ = SMALL.rpartition("[[learner]]")
    learner = (
        '[[learner]]\nrule = "first-order"\nfeedback = ["exact", "binary"]\ngrid = { h = [1.0], feedback = FOR }\n'
    )
    plan = parse(head + learner.replace("FOR", '"binary"'))
    assert [(spec.feedback, spec.grid_h) for spec in plan.learners[-2:]] == [("exact", ()), ("binary", (1.0,))]
    assert parse(plan.to_toml()) == plan
    with pytest.raises(DataError, match=r"grid.feedback 'flip:0.1': must be one of the learner's own$"):
        parse(head + learner.replace("FOR", '"flip:0.1"'))


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ("seeds = [0, 7]\ntuning_seeds = [7, 9]", "tuning_seeds: 7 is one of seeds; results must not be of seeds that"),
        ("seeds = 2\ntuning_seeds = []", "tuning_seeds: give at least one, each once"),
        ("seeds = 2\ntuning_seeds = [5, 5]", "tuning_seeds: give at least one, each once"),
        ("seeds = 2\ntuning_seeds = [-1]", "tuning_seeds: must be whole numbers from 0"),
    ],
)
def test_tuning_and_results_share_no_seed(seeds, message):
    with pytest.raises(DataError, match=message):
        parse(SMALL.replace("seeds = 2", seeds))


def test_the_seeds_of_tuning():
    assert parse(SMALL).search_seeds == (1000, 1001)
    assert parse(SMALL.replace("seeds = 2", "seeds = 2\ntuning_seeds = 3")).search_seeds == (1000, 1001, 1002)
    plan = parse(SMALL.replace("seeds = 2", "seeds = 2\ntuning_seeds = [4, 3]"))
    assert (plan.search_seeds, parse(plan.to_toml()).search_seeds) == ((4, 3), (4, 3))


def test_a_folder_that_brings_its_own_split_takes_no_dev_and_no_test():
    plan = parse(SMALL.replace("dev = 10", "split = true"))
    assert (plan.data.dev, plan.data.has_dev) == (None, True)
    with pytest.raises(DataError, match=r"data.split: train brings dev and test; leave them out$"):
        parse(SMALL.replace("dev = 10", "dev = 10\nsplit = true"))


@pytest.mark.parametrize("name", ["chunking", "smt", "text", "noise"])
def test_what_stands_beside_the_paper_takes_the_papers_steps(name):
    """Whatever the defaults of train become."""
    for spec in builtin(name).learners:
        adagrad, annealed = "adagrad" in spec.name, "annealed" in spec.name
        wanted = ("adagrad" if adagrad else "constant", "annealed" if annealed else "map")
        assert (spec.step, spec.criterion) == wanted
        assert spec.paper is None or not (adagrad or annealed)


def test_the_papers_experiments_by_name():
    known = experiments()
    assert [(name, kind.name) for name, kind in known.items()] == [
        ("chunking", "chunking"),
        ("text", "text"),
        ("smt", "rerank"),
        ("noise", "chunking"),
        ("answers-chunking", "chunking"),
        ("answers-text", "text"),
        ("answers-rerank", "rerank"),
    ]
    assert [name for name, kind in known.items() if kind.paper == name] == ["chunking", "text", "smt"]


# The annealed criterion's gamma

GAMMAS = """
task = "text"
[data]
train = "a"
dev = "b"
[fixed]
step = "constant"
[[learner]]
criterion = "annealed"
fixed = false
walk = false
grid = { h = [0.1, 0.01], mu = [1.0], gamma = [3.0, 1.0] }
"""


def test_a_gamma_that_is_searched_for_is_an_axis_of_the_grid_and_not_in_the_name():
    (spec,) = parse_experiment(GAMMAS, "g.toml", "g").learners
    assert spec.name == "two-point score annealed"
    assert spec.grid() == [(0.1, 1.0, 3.0), (0.1, 1.0, 1.0), (0.01, 1.0, 3.0), (0.01, 1.0, 1.0)]
    assert spec.points == 4
    settings = spec.settings(5, 0.01, 1.0, 3.0)
    assert (settings.h, settings.mu, settings.gamma, settings.seed) == (0.01, 1.0, 3.0, 5)
    (plain,) = parse_experiment(GAMMAS.replace(", gamma = [3.0, 1.0]", ""), "g.toml", "g").learners
    assert plain.name == "two-point score annealed 1"


def test_a_plan_with_gammas_is_written_and_read_again():
    plan = parse_experiment(GAMMAS, "g.toml", "g")
    assert parse_experiment(plan.to_toml(), "again.toml") == plan
    (spec,) = plan.learners
    assert (spec.fixed, spec.walk, spec.grid_gamma) == (False, False, (3.0, 1.0))


def test_a_learner_without_fixed_has_no_such_runs():
    plan = parse_experiment(GAMMAS + '[[learner]]\nrule = "first-order"\n', "g.toml", "g")
    assert [run.learner for run in fixed_runs(plan, "data")] == ["first-order"] * 3


def test_gamma_is_of_the_annealed_criterion():
    with pytest.raises(DataError, match="its grid has values of gamma, which is of `criterion` annealed"):
        parse_experiment(GAMMAS.replace('criterion = "annealed"\n', ""), "g.toml", "g")
