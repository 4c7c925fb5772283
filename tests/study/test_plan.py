"""Experiments as data: the paper's own are there, a file is read as it is meant or refused."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import fields, replace
from types import SimpleNamespace

import pytest

from sparsezo.cli.values import ITERATIONS, whole_number
from sparsezo.errors import DataError
from sparsezo.settings import Settings
from sparsezo.study.experiments import EXPERIMENTS, papers_own
from sparsezo.study.plan import (
    DataSpec,
    Experiment,
    LearnerSpec,
    builtin,
    grid_of,
    parse_experiment,
    read_experiment,
)
from sparsezo.study.reproduce import reproduce
from sparsezo.study.runs import Run, fixed_runs
from sparsezo.tasks.registry import task_spec

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
            *("symmetric", "active", 0.05, 0.06, "adagrad", "annealed", 2.5),
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
    assert plan == AS_OBJECTS == parse(AS_OBJECTS.to_toml())


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
        Settings.complete(given, *task_spec(task).usual) for given in learners
    ]
    assert not plan.has_grid


def test_iterations_are_those_of_train():
    assert whole_number(ITERATIONS, "") == Experiment.iterations
    plan = parse(BARE + 'name = "x"\nanswers = 500\n[[learner]]\nrule = "part"\n')
    assert (plan.answers, plan.length, plan.interval, plan.unit) == (500, 500, 5, "answers")
    assert parse(plan.to_toml()) == plan


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
        ("h = 1e400", "learner 1: `h` inf: must be positive and finite"),
        ("h = " + "[" * 100_000, "is not TOML: nested too deep"),
        ("h = " + "[" * 100 + "]" * 100, "nested too deep"),
        ("h" + ".h" * 100_000 + " = 1", "is not TOML: nested too deep"),
        ('"h, "' + '. "h, "' * 30_000 + " = 1", "is not TOML: nested too deep"),
        ("h = 1979-05-27T07:32:00Z", 'learner 1.h is "1979-05-27 07:32:00+00:00"; give a number'),
        ("grid.mu = [1]", "learner 1: its grid has values of mu and none of h; give both"),
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
        ("data.options = { nothing = 3 }", "`nothing` does not belong to task chunking"),
        ("phases = 'warm'", "phases 'warm': choose from fixed, undivided, tuned, speed, gamma"),
        ("phases = []", "phases: must be a phase, or a list of them"),
        ('title = "a\\nb"', "title: must be one line of text"),
    ],
)
def test_wrong_values_at_the_top(text, message):
    with pytest.raises(DataError) as caught:
        parse(f'name = "x"\n{text}\n{BARE}[[learner]]\n')
    assert str(caught.value) == f"small.toml: {message}"


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
            "unknown key 'seed'; known are data, fixed, grid, task, name, iterations, evaluate_every, init, bounds, "
            "origin, identity, note, title, answers, looks, test_looks, keep_best, thresholds, losses, after, seconds, "
            "rivals, rival_rates, seeds, tuning_seeds, phases, learner",
        ),
        ("dev = 10", "develop = 10", "unknown key 'data.develop'; known are instead, dev, train, test, split, options"),
        ("h = 0.01\nmu = 0.1", "h = 0.01\nmu = 0.1\nnu = 1", "unknown key 'fixed.nu'; known are h, mu, step"),
        (
            "paper = 0.5",
            "papers = 0.5",
            "unknown key 'learner 1.papers'; known are rule, grid, perturb, h, mu, step, criterion, gamma, baseline, "
            "about, review, seconds, ask, rater_error, rehearse, fixed, walk, paper, labels, passes, every, answers, "
            "mistakes, start, figure, feedback",
        ),
        (
            "paper = 0.5",
            "samples = 4",
            "learner 1.samples is gone: it did not pay; docs/scaling.md says why",
        ),
        ("grid.h = [1, 2]", "grid.k = [1]", "unknown key 'learner 2.grid.k'; known are h, mu, gamma, feedback"),
        # what has to be there
        ('name = "small"', "", "name is missing; give a string"),
        ('task = "chunking"', "", "task is missing; give a string"),
        ('train = "train.txt"', "", "data has no train; name a file"),
        # kinds of values
        ('task = "chunking"', "task = 1979-05-27", 'task is "1979-05-27"; give a string'),
        ("iterations = 1000", "iterations = '1M'", 'iterations is "1M"; give a whole number'),
        ("h = 0.01\n", "h = true\n", "fixed.h is true; give a number, or auto"),
        ("h = [0.1, 0.01]", "h = 0.1", "grid.h is 0.1; give a list of numbers"),
        ("h = [0.1, 0.01]", "h = [0.1, 'x']", "grid.h: must be a list of numbers"),
        ('train = "train.txt"', "train = ['a', 3]", "data.train: must be a path, or a list of them"),
        ("dev = 10", "dev = 1.5", "data.dev is 1.5; give a path, or a number of inputs"),
        ("baseline = true", "baseline = 1", "learner 2.baseline is 1; give true or false"),
        ("seeds = 2", "seeds = 'two'", 'seeds is "two"; give a number of seeds, or a list of them'),
        ("seeds = 2", "seeds = [0, -1]", "seeds: must be whole numbers from 0"),
        ("seeds = 2", "bounds = 2", "bounds is 2; give a table"),
        # what does not go together
        ("seeds = 2", "evaluate_every = 0", "evaluate_every: must be at least 1"),
        ('task = "chunking"', 'task = "parsing"', "task parsing: choose from chunking, text, rerank"),
        (
            '"two-point"',
            '"three-point"',
            "learner 1: `rule` three-point: choose from two-point, symmetric, comparison, preference, baseline, "
            "first-order, pairwise, cross-entropy, supervised, part, label, span, review, pair, best, rate",
        ),
        (
            "baseline = true",
            'perturb = "all"',
            "learner 2: rule first-order perturbs nothing: leave out `perturb` and `mu`",
        ),
        ("seeds = 2", "seeds = [1, 1]", "seeds: give at least one, each once"),
        ("seeds = 2", "init = 'w'", "init and bounds do not belong to task chunking"),
        ("seeds = 2", "bounds = { low = 3 }", "bounds: give name = path"),
        ("h = [0.1, 0.01]", "h = [0.1, -1]", "learner 1: `h` -1.0: must be positive and finite"),
        (
            "baseline = true\ngrid.h = [1, 2]",
            '[[learner]]\nrule = "first-order"',
            "learner 'first-order' is there twice; a learner is known by its name",
        ),
        (
            "paper = 0.5",
            "grid.gamma = [1]",
            "learner 1: its grid has values of gamma, which is of `criterion` annealed",
        ),
        (SMALL[SMALL.index("[[learner]]") :], "", "it has no [[learner]]; give at least one"),
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


# Plans


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
    settings = Settings("symmetric", "active", 0.05, 0.06, "adagrad", "annealed", 2.5, False, 8, "binary")
    assert runs[1] == Run("whole", "rerank", names[0], "fixed", settings, 4321, 77, "identity", paper=0.25)
    assert len({run.hash for run in runs}) == 15
    assert fixed_runs(replace(plan, evaluate_every=None), "identity")[0].evaluate_every == 44


# Writing


@pytest.mark.parametrize("name", ["chunking", "smt", "text", "noise"])
def test_the_papers_experiments_round_trip(name, tmp_path):
    plan = replace(builtin(name), origin="generated", identity="ab")
    path = tmp_path / "experiment.toml"
    path.write_text(plan.to_toml(), encoding="utf-8")
    assert parse_experiment(path.read_text("utf-8"), "") == plan
    assert read_experiment(path) == replace(plan, title=name)  # whoever starts from it has an experiment of their own


# The paper's own


ZEROTH = ("two-point", "comparison", "baseline")
PERTURBED = [f"{rule} {perturb}" for rule in ZEROTH for perturb in ("all", "active", "score")]
ANNEALED = [f"{name} annealed" for name in PERTURBED]


FIGURES = {
    "chunking": {
        "two-point all": 0.841,
        "two-point active": 0.888,
        "comparison all": 0.810,
        "comparison active": 0.842,
        "baseline all": 0.819,
        "baseline active": 0.869,
        "first-order": 0.908,
    },
    "smt": {"two-point all": 0.273, "comparison all": 0.265, "baseline all": 0.266, "first-order": 0.263},
    "text": {},
}
OWN = ["preference score", "symmetric score", "two-point score adagrad", "symmetric score adagrad"]


@pytest.mark.parametrize(
    ("name", "h", "mu", "grid_h", "grid_mu"),
    [
        ("chunking", 0.01, 0.01, (0.01, 0.001, 1e-4, 1e-5), (0.1, 0.01)),
        ("smt", 0.001, 0.001, (0.01, 0.001, 1e-4, 1e-5), (0.1, 0.01, 0.001)),
        ("text", 0.1, 1.0, (10.0, 1.0, 0.1, 0.01, 0.001, 1e-4, 1e-5), tuple(10.0**k for k in range(1, -7, -1))),
    ],
)
def test_the_papers_own(name, h, mu, grid_h, grid_mu):
    """Its figures on test and no others, the h and mu of its figure, its grid; learners of our own stand beside."""
    plan = builtin(name)
    more = [*OWN, "first-order adagrad with baseline"] if name == "chunking" else []
    others = dict.fromkeys([*PERTURBED, "first-order", "supervised", *more, *ANNEALED])
    assert {spec.name: spec.paper for spec in plan.learners} == others | FIGURES[name]
    assert (plan.name, plan.task) == (name, EXPERIMENTS[name])
    assert name in papers_own()
    for spec in plan.learners:
        assert (spec.h, spec.mu) == (h, mu if spec.perturb else None)
        if spec.criterion == "annealed":  # gamma is searched for; there are no runs at the figure's settings
            assert max(spec.grid_gamma) >= 10 * min(spec.grid_gamma)
            assert (spec.fixed, spec.walk) == (False, name == "text")
        elif spec.perturb and spec.step == "constant":
            assert (spec.grid_h, spec.grid_mu) == (grid_h, pytest.approx(grid_mu))


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
    plan = parse_experiment(GAMMAS, "g.toml", "g")
    (spec,) = plan.learners
    assert not fixed_runs(plan, "data")  # fixed = false
    assert spec.name == "two-point score annealed"
    assert spec.grid() == [(0.1, 1.0, 3.0), (0.1, 1.0, 1.0), (0.01, 1.0, 3.0), (0.01, 1.0, 1.0)]
    assert spec.points == 4
    settings = spec.settings(5, 0.01, 1.0, 3.0)
    assert (settings.h, settings.mu, settings.gamma, settings.seed) == (0.01, 1.0, 3.0, 5)
    (plain,) = parse_experiment(GAMMAS.replace(", gamma = [3.0, 1.0]", ""), "g.toml", "g").learners
    assert plain.name == "two-point score annealed 1"
