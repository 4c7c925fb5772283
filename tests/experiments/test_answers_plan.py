"""Plans with looks: which keys belong together, what is written back, what runs are known by, the built-in three."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparsezo.errors import DataError, UsageError
from sparsezo.experiments.plan import builtin, parse_experiment
from sparsezo.experiments.reproduce import reproduce
from sparsezo.experiments.runs import fixed_runs

PLAN = """
name = "mine"
task = "chunking"
looks = [10, 20, 50]
test_looks = true
thresholds = [0.5, 0.9]
[data]
train = "train.txt"
dev = 10
test = "test.txt"
[seconds]
read = 5.0
yes_no = 1.5
[[learner]]
rule = "part"
figure = "yes or no"
[[learner]]
rule = "supervised"
labels = "random"
passes = 7
[[learner]]
rule = "part"
start = "labels:100"
"""


def plan_of(text=PLAN, **changes):
    for old, new in changes.items():
        text = text.replace(old, new)
    return parse_experiment(text, "plan.toml")


def test_the_last_look_ends_a_run():
    plan = plan_of()
    assert (plan.looks, plan.answers, plan.test_looks) == ((10, 20, 50), 50, True)
    assert [spec.name for spec in plan.learners] == [
        "part adagrad",
        "supervised adagrad labelled random",
        "part adagrad from labels:100",
    ]


def test_a_plan_with_looks_is_written_and_read_again():
    plan = plan_of()
    assert parse_experiment(plan.to_toml(), "again") == plan


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[10, 20, 50]", "[10, 10]", "looks: must be"),
        ("[10, 20, 50]", "[0, 10]", "looks: must be"),
        ("[10, 20, 50]", "[10, true]", "list of whole numbers"),
        ("[10, 20, 50]", "[10, 20]\nanswers = 30", "the last of looks, 20, ends a run"),
        ("[10, 20, 50]", "[10, 20]\nevaluate_every = 3", "not both"),
        ("looks = [10, 20, 50]", "answers = 50", "test_looks goes with looks"),
        ('labels = "random"', 'labels = "best"', "choose from random, least-confident"),
        ('labels = "random"', "", "asks nobody; give it labels"),
        ("passes = 7", "passes = 0", "passes 0"),
        ("labels:100", "labels:0", "give labels:N or output:N"),
        ("labels:100", "output", "give labels:N or output:N"),
        ("read = 5.0", "reed = 5.0", "seconds.reed: known are read, yes_no"),
        ("read = 5.0", "read = -1", "must be a number of seconds"),
        ("[seconds]", '[rivals]\na = "--epsilon 1"\n[seconds]', "rivals do not belong to task chunking"),
        ("test_looks = true", "test_looks = true\nrival_rates = [0.5]", "rival_rates goes with rivals"),
        ("test_looks = true", "test_looks = true\nrival_rates = [0.0]", "rival_rates: must be numbers above 0"),
        ('start = "labels:100"', 'labels = "random"', "labels belong to rule supervised, not to part"),
    ],
)
def test_what_does_not_fit_is_refused(old, new, said):
    with pytest.raises(DataError, match=said):
        plan_of(**{old: new})


def test_n_best_lists_have_no_labels_to_give():
    text = PLAN.replace('"chunking"', '"rerank"').replace("dev = 10", 'dev = "dev"')
    with pytest.raises(DataError, match="task rerank has no labels to give"):
        parse_experiment(text.replace('rule = "part"', 'rule = "pair"'), "plan.toml")


def test_runs_are_known_by_looks_labels_and_starts_but_not_by_what_only_the_page_needs():
    runs = fixed_runs(plan_of(), "data")
    assert len({run.hash for run in runs}) == len(runs)
    mine = [run.hash for run in runs]
    for changed in ({"[10, 20, 50]": "[10, 25, 50]"}, {"test_looks = true": "test_looks = false"}):
        assert not set(mine) & {run.hash for run in fixed_runs(plan_of(**changed), "data")}
    for changed in ({"read = 5.0": "read = 6.0"}, {"0.5, 0.9": "0.7"}, {"yes or no": "thumbs"}):
        assert mine == [run.hash for run in fixed_runs(plan_of(**changed), "data")]
    passes = [run.hash for run in fixed_runs(plan_of(**{"passes = 7": "passes = 8"}), "data")]
    assert [a == b for a, b in zip(mine, passes, strict=True)] == [True] * 3 + [False] * 3 + [True] * 3


def test_a_folder_is_of_one_set_of_looks_and_passes_and_of_any_seconds():
    plan = plan_of()
    assert plan.clash(plan_of(**{"read = 5.0": "read = 6.0"})) is None
    assert plan.clash(plan_of(**{"[10, 20, 50]": "[20, 50]"})) == "looks"
    assert plan.clash(plan_of(**{"passes = 7": "passes = 8"})) == "learner 'supervised adagrad labelled random'"


def test_a_shorter_plan_ends_where_it_is_told():
    plan = plan_of()
    assert plan.shortened(30).looks == (10, 20, 30)
    assert plan.shortened(20).looks == (10, 20)
    assert plan.shortened(20).answers == 20
    with pytest.raises(UsageError, match="must be at least 1"):
        plan.shortened(0)


def test_answers_shorten_only_what_counts_answers():
    with pytest.raises(UsageError, match="chunking counts iterations; use `iterations`"):
        reproduce("chunking", "generated", answers=10)


def test_the_built_in_three_have_the_numbers_that_people_ask_about():
    plans = {task: builtin(f"answers-{task}") for task in ("chunking", "text", "rerank")}
    assert {500, 1000, 2000, 5000, 10_000, 20_000, 50_000} <= set(plans["chunking"].looks)
    assert plans["chunking"].thresholds == (0.80, 0.85, 0.90, 0.92, 0.93)
    assert (plans["text"].looks[-1], plans["rerank"].looks[-1]) == (30_000, 10_000)
    for task, plan in plans.items():
        assert (plan.task, plan.test_looks, plan.title) == (task, True, None)
        assert parse_experiment(plan.to_toml(), "again") == plan
        wrong = {(each.feedback, each.rater_error) for each in plan.learners}
        assert {("flip:0.1", "0"), ("flip:0.1", "0.1"), ("flip:0.2", "0"), ("flip:0.2", "0.2")} <= wrong
        assert {each.figure for each in plan.learners} - {None}
    assert {each.labels for each in plans["chunking"].learners} == {None, "random", "least-confident"}
    assert replace(plans["text"], rivals={}, rival_rates=()).rivals == {}
    assert 8_650 in plans["text"].looks  # one pass, which Vowpal Wabbit is compared over
