"""Results read back from run folders written by hand: which runs are taken, and what is made of their figures."""

from __future__ import annotations

import json
import math
import statistics

import numpy as np
import pytest
from reported import experiment_of, learner_of, run_of, write_run

from sparsezo.errors import DataError, UsageError
from sparsezo.study.reports.reading import read_experiment
from sparsezo.study.reports.results import Spread

TOML = 'name = "mine"\ntask = "chunking"\nseeds = [3, 8, 4]\n[data]\ntrain = ["corpus/train.gz"]\n'


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    (folder / "runs").mkdir(parents=True)
    (folder / "experiment.toml").write_text(TOML)
    return folder


def only(experiment):
    (learner,) = experiment.learners
    return learner


# One run


def test_a_run_is_read_back_as_it_was_written(out):
    report, versions = {"length_ratio": 1.25}, {"sparsezo": "0.1", "numpy": 2}
    told = {"paper": 1, "test_report": report, "versions": versions, "data": "abc", "made": 1234.0, "iterations": 77}
    write_run(out, "two-point score", "tuned", 8, **told)
    (run,) = read_experiment(out).runs
    assert (run.learner, run.phase, run.seed, run.iterations) == ("two-point score", "tuned", 8, 77)
    assert run.settings == {"rule": "two-point", "perturb": "score", "h": 0.01, "mu": 0.2, "seed": 8}
    assert run.result == {"metric": "f1", "test": 0.5}
    assert run.test_report == report
    assert run.versions == {"sparsezo": "0.1", "numpy": "2"}
    assert (run.paper, run.data, run.made) == (1.0, "abc", 1234.0)
    assert isinstance(run.paper, float)
    assert run.curve["iterations"].tolist() == [0, 100]
    assert run.curve["iterations"].dtype == np.int64
    assert run.curve["average_loss"].tolist() == [1.0, 0.5]
    assert run.curve["dev"].tolist() == [0.25, 0.5]


@pytest.mark.parametrize("text", [None, "iterations,dev\n0,1\n", "iterations,average_loss,dev\n0,x,1\n"])
def test_a_curve_that_cannot_be_read_is_none_and_said(out, text):
    write_run(out, curve=text)
    experiment = read_experiment(out)
    assert experiment.runs[0].curve is None
    (told,) = (gap for gap in experiment.gaps if "curve.csv" in gap)
    assert told.startswith("two-point active, fixed, seed 3, has no curve: runs/000/curve.csv: is damaged (")
    assert told.endswith("); the command that made it does the run again.")


def test_values_are_of_the_result_then_of_the_test_report():
    run = run_of(result={"test": 2, "yes": True, "text": "0.5", "nan": math.nan, "inf": -math.inf, "none": None})
    assert run.value("test") == 2.0
    assert isinstance(run.value("test"), float)
    assert [run.value(name) for name in ("yes", "text", "nan", "inf", "none", "other")] == [None] * 6
    both = run_of(result={"test": 0.25}, test_report={"test": 0.75, "length_ratio": 1.5})
    assert (both.value("test"), both.value("length_ratio")) == (0.25, 1.5)


# Which runs are read


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(UsageError) as caught:
        read_experiment(tmp_path / "nowhere")
    assert str(caught.value) == f"{tmp_path / 'nowhere'}: no such folder; name one that 'sparsezo reproduce' wrote"


def test_the_experiment_is_named_by_its_runs(out):
    write_run(out, result={"metric": None})
    write_run(out, seed=8, result={"metric": "bleu"})
    write_run(out, seed=4, result={"metric": "accuracy"})
    (out / "tuning.json").write_text('{"a": 1}')
    (out / "bounds.json").write_text('{"b": 2}')
    (out / "experiment.toml").write_text(TOML.replace("mine", "other").replace("chunking", "text"))
    experiment = read_experiment(str(out))
    assert (experiment.name, experiment.task, experiment.metric) == ("mine", "chunking", "bleu")
    assert (experiment.folder, experiment.tuning, experiment.bounds) == (out, {"a": 1}, {"b": 2})
    assert experiment.declared["name"] == "other"
    assert experiment.declared_text.startswith('name = "other"\n')


def test_without_runs_the_plan_names_it_or_its_folder(out):
    experiment = read_experiment(out)
    assert (experiment.name, experiment.task, experiment.metric) == ("mine", "chunking", "")
    assert (experiment.runs, experiment.learners, experiment.gaps) == ((), (), ())
    (out / "experiment.toml").unlink()
    experiment = read_experiment(out)
    assert (experiment.name, experiment.task) == ("out", "unknown")
    assert (experiment.declared, experiment.declared_text) == ({}, "")
    assert experiment.gaps == ("experiment.toml is missing: data and planned seeds are not known.",)


def test_two_experiments_in_one_folder_are_refused(out):
    write_run(out)
    write_run(out, seed=8, experiment="an other")
    write_run(out, seed=4, task="text")
    with pytest.raises(DataError) as caught:
        read_experiment(out)
    assert str(caught.value) == (
        f"{out}: holds runs of several experiments, an other (chunking), mine (chunking), mine (text); "
        "give each a folder of its own"
    )


# Which runs make a learner


def test_a_learner_is_known_by_its_settings(out):
    write_run(out, "odd", settings={"rule": "two-point", "perturb": "score", "feedback": "flip:0.1"})
    write_run(out, "bare", settings={"perturb": None})
    (out / "runs" / "001" / "run.json").write_text(
        (out / "runs" / "001" / "run.json").read_text().replace('"rule": "bare", ', "")
    )
    odd, bare = read_experiment(out).learners
    assert (odd.name, odd.rule, odd.perturb, odd.feedback, odd.plain) == (
        "odd",
        "two-point",
        "score",
        "flip:0.1",
        False,
    )
    assert (bare.name, bare.rule, bare.perturb, bare.feedback, bare.plain) == ("bare", "bare", None, "exact", True)


@pytest.mark.parametrize(
    ("settings", "plain"),
    [
        ({"step": "constant", "criterion": "map", "baseline": False, "feedback": "exact"}, True),
        ({"step": "adagrad"}, False),
        ({"criterion": "annealed"}, False),
        ({"baseline": True}, False),
        ({"feedback": "binary"}, False),
        ({"gamma": 0.5, "mu": 3.0}, True),
    ],
)
def test_which_learners_are_the_papers(out, settings, plain):
    write_run(out, settings=settings)
    assert only(read_experiment(out)).plain is plain


def test_learners_stand_in_the_order_of_the_table(out):
    wanted = ["comparison all", "two-point all", "preference active", "baseline active", "symmetric active"]
    wanted += ["baseline score", "first-order", "supervised", "two-point sideways", "unheard-of sideways"]
    for name in sorted(wanted, reverse=True):
        write_run(out, name)
    write_run(out, "an adagrad", settings={"rule": "two-point", "perturb": "all", "step": "adagrad"})
    write_run(out, "a twin", settings={"rule": "two-point", "perturb": "all"})
    found = [item.name for item in read_experiment(out).learners]
    assert found == [*wanted[:1], "a twin", "two-point all", "an adagrad", *wanted[2:]]


def tuned(out, h, seeds, **changes):
    for seed in seeds:
        write_run(out, "two-point active", changes.get("phase", "tuned"), seed, h=h, **changes)


def test_the_settings_that_tuning_chose_are_taken(out):
    """Although others have more iterations, more seeds and are newer."""
    tuned(out, 0.1, (8, 3), made=100)
    tuned(out, 0.5, (3, 8, 4), made=900, iterations=9000)
    for h, iterations in ((0.1, 1000), (0.5, 2000)):  # of another phase: the choice says nothing about it
        write_run(out, phase="fixed", h=h, iterations=iterations)
    (out / "tuning.json").write_text(json.dumps({"two-point active": {"chosen": {"h": 0.1, "mu": 0.2}}}))
    experiment = read_experiment(out)
    assert {run.settings["h"] for run in only(experiment).runs("tuned")} == {0.1}
    assert [run.seed for run in only(experiment).runs("tuned")] == [3, 8]
    assert [run.settings["h"] for run in only(experiment).runs("fixed")] == [0.5]
    assert (
        "two-point active, tuned: runs with 2 different settings lie in the folder; only those with h 0.1, mu 0.2, "
        "1,000 iterations are used."
    ) in experiment.gaps


def test_what_was_chosen_is_both_h_and_mu(out):
    tuned(out, 0.1, (3,), settings={"mu": 0.7}, made=900)
    tuned(out, 0.1, (8,), made=100)
    (out / "tuning.json").write_text(json.dumps({"two-point active": {"chosen": {"h": 0.1, "mu": 0.2}}}))
    assert [run.seed for run in only(read_experiment(out)).runs("tuned")] == [8]


@pytest.mark.parametrize("entry", [5, None, {}, {"chosen": None}, {"chosen": {"h": 7.0}}])
def test_without_a_choice_the_longest_runs_are_taken(out, entry):
    tuned(out, 0.1, (3,), iterations=2000, made=100)
    tuned(out, 0.5, (3, 8, 4), made=900)
    (out / "tuning.json").write_text(json.dumps({"two-point active": entry}))
    assert [run.settings["h"] for run in only(read_experiment(out)).runs("tuned")] == [0.1]


def test_of_equally_long_runs_those_with_more_seeds_are_taken(out):
    tuned(out, 0.1, (4, 3), made=100)
    tuned(out, 0.5, (8,), made=900)
    assert [run.seed for run in only(read_experiment(out)).runs("tuned")] == [3, 4]


@pytest.mark.parametrize("newer", [0.25, 0.75])
def test_of_a_run_that_is_there_twice_the_newer_counts(out, newer):
    for test in (0.25, 0.75):
        write_run(out, result={"test": test}, made=900 if test == newer else 100)
    experiment = read_experiment(out)
    assert only(experiment).spread("fixed", "test").values == (newer,)
    assert not [gap for gap in experiment.gaps if "different settings" in gap]


@pytest.mark.parametrize("other", [{"data": "another"}, {"iterations": 900}, {"settings": {"step": "adagrad"}}])
def test_runs_of_other_data_or_settings_are_not_averaged_in(out, other):
    for seed in (3, 8):
        write_run(out, seed=seed, data="this", result={"test": 0.25})
    write_run(out, seed=4, **{"data": "this", "result": {"test": 0.75}, **other})
    experiment = read_experiment(out)
    assert only(experiment).spread("fixed", "test").values == (0.25, 0.25)
    assert (
        "two-point active, fixed: runs with 2 different settings lie in the folder; only those with h 0.01, mu 0.2, "
        "1,000 iterations are used."
    ) in experiment.gaps


# What is missing


def gaps(out, toml=TOML):
    (out / "experiment.toml").write_text(toml)
    return read_experiment(out).gaps


def all_seeds(out, name="two-point active", phases=("fixed", "tuned"), **changes):
    for phase in phases:
        for seed in (3, 8, 4):
            write_run(out, name, phase, seed, **changes)


def test_nothing_is_missing(out):
    all_seeds(out)
    assert gaps(out, TOML + '[[learner]]\nrule = "two-point"\nperturb = "active"\n') == ()


def test_learners_of_the_plan_without_a_run_are_named_as_their_runs_would_be(out):
    all_seeds(out)
    all_seeds(out, "first-order with baseline", settings={"rule": "first-order", "perturb": None, "baseline": True})
    learners = """
        [[learner]]
        rule = "two-point"
        perturb = "active"
        feedback = ["exact", "flip:0.1", "binary"]
        [[learner]]
        rule = "two-point"
        perturb = "all"
        step = "adagrad"
        criterion = "annealed"
        gamma = 0.50
        [[learner]]
        rule = "first-order"
        baseline = true
        """
    assert gaps(out, TOML + learners) == (
        "two-point active flip:0.1: no finished run.",
        "two-point active binary: no finished run.",
        "two-point all adagrad annealed 0.5: no finished run.",
    )


NO_TUNED = "There is no tuned phase: tables show the fixed settings."


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("", True),
        ('[[learner]]\nrule = "two-point"\nperturb = "active"\n', False),
        ('[grid]\nh = [1.0]\n[[learner]]\nrule = "two-point"\nperturb = "active"\n', True),
        ('[[learner]]\nrule = "two-point"\nperturb = "active"\n[learner.grid]\nh = [1.0]\n', True),
    ],
)
def test_a_tuned_phase_is_missed_where_one_is_to_be_expected(out, plan, said):
    all_seeds(out, phases=("fixed",))
    assert gaps(out, TOML + plan) == ((NO_TUNED,) if said else ())


def test_fixed_settings_are_missed(out):
    all_seeds(out, phases=("tuned",))
    assert gaps(out) == ("There is no phase with fixed settings: curves show the tuned settings.",)
    all_seeds(out, "baseline all", phases=("fixed",))
    assert gaps(out) == ()


def test_seeds_that_are_not_done_are_counted(out):
    all_seeds(out, phases=("fixed",))
    write_run(out, phase="tuned", seed=3)
    assert gaps(out) == ("two-point active, tuned: 1 seed of 3.",)
    assert gaps(out, TOML.replace("[3, 8, 4]", "5")) == (
        "two-point active, fixed: 3 seeds of 5.",
        "two-point active, tuned: 1 seed of 5.",
    )
    assert gaps(out, TOML.replace("[3, 8, 4]", "1")) == ()


def test_no_test_result_is_said_where_no_run_has_one(out):
    all_seeds(out, result={"test": None})
    assert gaps(out) == ()  # the plan has no test
    assert gaps(out, TOML + 'test = "t"\n') == ("No run has a test result.",)
    write_run(out, phase="tune", seed=9)
    assert gaps(out, TOML + 'test = "t"\n') == ()


def test_versions_that_differ_are_said(out):
    all_seeds(out, versions={"sparsezo": "0.2", "numpy": "2.0", "numba": "0.61", "python": "3.11"})
    write_run(out, phase="tune", seed=9, versions={"sparsezo": "0.1", "numba": "0.61", "python": "3.12"})
    assert gaps(out) == ("The runs were made with several versions of sparsezo: 0.1, 0.2.",)


# Figures over seeds


def test_a_spread_is_mean_and_sample_standard_deviation():
    spread = Spread((0.1, 0.2, 0.9))
    assert spread.mean == pytest.approx(0.4)  # the median is 0.2
    assert spread.sd == pytest.approx(math.sqrt((0.09 + 0.04 + 0.25) / 2))
    assert Spread((0.1, 0.3)).sd is Spread((0.5,)).sd is None  # two points only look like a spread
    assert not spread.exact


def test_seeds_without_a_figure_do_not_count_in_its_spread():
    runs = [run_of(seed=seed, result={"test": test}) for seed, test in ((3, 0.1), (4, math.nan), (8, 0.4), (9, None))]
    item = learner_of(*runs, run_of("tuned", result={"dev": 0.7}))
    assert item.spread("fixed", "test") == Spread((0.1, 0.4))
    assert item.spread("tuned", "test") is None
    assert item.spread("tuned", "dev") == Spread((0.7,))
    assert item.spread("tune", "dev") is None
    assert item.runs("tune") == ()


def test_the_best_phase_is_tuned_where_it_has_the_result():
    fixed, bare = run_of("fixed", result={"test": 0.5, "dev": 0.5}), run_of("tuned", result={"dev": 0.4})
    tuned = run_of("tuned", result={"test": 0.1})
    assert learner_of(fixed, tuned).best() == ("tuned", Spread((0.1,)))
    assert learner_of(fixed, bare).best() == ("fixed", Spread((0.5,)))
    assert learner_of(fixed, bare).best("dev") == ("tuned", Spread((0.4,)))
    assert learner_of(fixed, bare).best("other") == ("tuned", None)
    assert learner_of(fixed).best("other") == ("fixed", None)
    assert learner_of(bare).best() == ("tuned", None)


def curve(steps, losses, devs=None):
    devs = np.linspace(0, 1, len(steps)) if devs is None else devs
    return {"iterations": np.array(steps), "average_loss": np.array(losses, float), "dev": np.array(devs, float)}


def test_a_mean_curve_runs_over_the_points_that_all_seeds_have():
    curves = [
        curve([0, 10, 20, 30], [1.0, 0.1, 0.5, 0.7], [0.5, 0.6, 0.7, 0.9]),
        curve([0, 10, 30, 40], [1.0, 0.2, 0.1, 0.3], [0.1, 0.2, 0.3, 0.4]),
        curve([5, 10, 30], [9.0, 0.9, 0.4], [0.0, 0.1, 0.0]),
    ]
    other = run_of("tuned", curve=curve([10, 30], [7.0, 7.0]))
    item = learner_of(*(run_of(seed=seed, curve=each) for seed, each in enumerate(curves)), other)
    loss = item.mean_curve("fixed", "average_loss")
    assert loss.at.tolist() == [10, 30]
    assert loss.at.dtype == np.int64
    np.testing.assert_allclose(loss.mean, [0.4, 0.4])  # medians 0.2 and 0.4
    np.testing.assert_allclose(loss.sd, [statistics.stdev((0.1, 0.2, 0.9)), statistics.stdev((0.7, 0.1, 0.4))])
    dev = item.mean_curve("fixed", "dev")
    np.testing.assert_allclose(dev.mean, [0.3, 0.4])
    tuned = item.mean_curve("tuned", "average_loss")
    assert tuned.mean.tolist() == [7.0, 7.0]
    assert tuned.sd is None


def test_curves_of_different_lengths_meet_at_answers():
    """Where a look found no new answer, the first with that number counts."""
    made = []
    one, other = ([0, 30, 40, 90], [0, 5, 5, 9], [0.1, 0.2, 0.9, 0.4]), ([0, 11, 12], [0, 5, 9], [0.3, 0.4, 0.6])
    for steps, answers, dev in (one, other):
        nothing = np.full(len(steps), math.nan)
        made.append({**curve(steps, nothing, dev), "answers": np.array(answers, float), "test": nothing})
    item = learner_of(*(run_of(seed=seed, curve=each) for seed, each in enumerate(made)))
    found = item.mean_curve("fixed", "dev", "answers")
    assert found.at.tolist() == [0, 5, 9]
    np.testing.assert_allclose(found.mean, [0.2, 0.3, 0.5])
    assert item.mean_curve("fixed", "test", "answers") is None


def test_points_that_a_seed_does_not_know_are_left_out_of_the_mean_curve():
    nan = math.nan
    first, second = run_of(curve=curve([0, 10, 20], [nan, 1, 2])), run_of(curve=curve([0, 10, 20], [5, 3, nan]))
    item = learner_of(first, second, run_of())  # the third has no curve
    found = item.mean_curve("fixed", "average_loss")
    assert (found.at.tolist(), found.mean.tolist()) == ([10], [2.0])
    assert found.sd is None
    third = learner_of(first, second, run_of(curve=curve([10], [5])))
    assert third.mean_curve("fixed", "average_loss").sd.tolist() == [pytest.approx(2)]
    unknown = learner_of(run_of(curve=curve([0, 10], [nan, 1])), run_of(curve=curve([0, 10], [1, nan])))
    assert unknown.mean_curve("fixed", "average_loss") is None
    assert item.mean_curve("tuned", "average_loss") is None
    assert learner_of(run_of()).mean_curve("fixed", "average_loss") is None


# The experiment


@pytest.mark.parametrize(
    ("name", "task", "title"),
    [
        ("chunking", "chunking", "Noun-phrase chunking"),
        ("smt", "rerank", "Reranking of translations (SMT)"),
        ("text", "text", "Text classification"),
        ("noise", "chunking", "Noun-phrase chunking: noise"),
        ("x", "parsing", "parsing: x"),
    ],
)
def test_titles(name, task, title):
    assert experiment_of(name=name, task=task).title == title


@pytest.mark.parametrize(
    ("metric", "name", "loss"),
    [("f1", "F1", "1 - F1"), ("bleu", "BLEU", "1 - BLEU"), ("accuracy", "accuracy", "error"), ("mse", "mse", "loss")],
)
def test_metrics_and_their_losses(metric, name, loss):
    experiment = experiment_of(metric=metric)
    assert (experiment.metric_name, experiment.loss_name) == (name, loss)


@pytest.mark.parametrize(
    ("declared", "data"),
    [
        ({"data": {"train": ["a/b.gz", "c.gz"]}}, "a/b.gz"),
        ({"data": {"train": ["/home/me/b.gz"]}}, "b.gz"),
        ({"data": "a.gz"}, "a.gz"),
        ({"data": {"dev": "x"}}, "not named"),
        ({}, "not named"),
        ({"data": {"train": "a"}, "origin": "generated"}, "generated"),
    ],
)
def test_data_are_named_without_the_machines_folders(declared, data):
    assert experiment_of(declared=declared).data == data


@pytest.mark.parametrize(
    ("sizes", "dense"),
    [
        ([(1000, 1000)], True),
        ([(1000, 1000), (1000, 50)], False),
        ([(1000, 999)], False),
        ([(1000, None), (1000, 1000)], True),
        ([], False),
    ],
)
def test_dense_is_where_every_run_has_all_features_active(sizes, dense):
    runs = tuple(run_of(result={"n": n, "n_active": active}) for n, active in sizes)
    experiment = experiment_of(runs=runs)
    assert experiment.dense is dense
    assert experiment.group_title("active") == ("ACTIVE (here the same as ALL)" if dense else "ACTIVE (paper: SPARSE)")


def test_of_several_feedback_models_the_exact_one_is_drawn():
    exact, flip = learner_of(name="a"), learner_of(name="a flip:0.1", feedback="flip:0.1")
    binary = learner_of(name="a binary", feedback="binary")
    both = experiment_of(flip, exact)
    assert (both.noisy, both.drawn) == (True, (exact,))
    without = experiment_of(flip, binary)
    assert (without.noisy, without.drawn) == (True, (flip, binary))
    alike = experiment_of(exact, learner_of(name="b"))
    assert (alike.noisy, alike.drawn) == (False, alike.learners)
    assert experiment_of(flip).drawn == (flip,)
