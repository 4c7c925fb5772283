"""Plans with looks: which keys belong together, what is written back, what runs are known by, the built-in ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparsezo.errors import DataError, UsageError
from sparsezo.study.experiments import EXPERIMENTS
from sparsezo.study.plan import builtin, clocks, parse_experiment, seconds_of
from sparsezo.study.reproduce import reproduce
from sparsezo.study.runs import fixed_runs

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
        ("read = 5.0", "ours = { part = { answers = 1 } }", "give tables of seconds, or one short table"),
        ("test_looks = true", "test_looks = true\nafter = [0]", "after: must be minutes above 0"),
        ("passes = 7", "every = 0", "every 0: must be at least 1"),
        ('name = "mine"', 'name = "mine"\nlike = "yours"', "like yours: choose from"),
        ("[seconds]", '[rivals]\na = "--epsilon 1"\n[seconds]', "rivals do not belong to task chunking"),
        ("test_looks = true", "test_looks = true\nrival_rates = [0.5]", "rival_rates goes with rivals"),
        ("test_looks = true", "test_looks = true\nrival_rates = [0.0]", "rival_rates: must be numbers above 0"),
        ('start = "labels:100"', 'labels = "random"', "labels belong to rule supervised, not to part"),
    ],
)
def test_what_does_not_fit_is_refused(old, new, said):
    with pytest.raises(DataError, match=said):
        plan_of(**{old: new})


def test_a_person_s_time_is_in_tables_by_form_and_by_what_a_curve_counts():
    tables = """[seconds.ours]
part = { answers = 1.5, tokens = 0.2 }
whole = { tokens = 1.2 }
[seconds."slow one"]
part = { answers = 3 }
"""
    plan = plan_of(**{"[seconds]\nread = 5.0\nyes_no = 1.5\n": tables})
    assert list(clocks(plan.seconds)) == ["ours", "slow one"]
    ours = clocks(plan.seconds)["ours"]
    assert seconds_of(ours, "part") == {"answers": 1.5, "tokens": 0.2}
    assert seconds_of(ours, "supervised", labels="random") == {"tokens": 1.2}
    assert seconds_of(ours, "review") == {}
    assert parse_experiment(plan.to_toml(), "again") == plan
    for old, new, said in (
        ("part =", "parts =", "seconds.ours.parts: known are part, label"),
        ("tokens = 0.2", "token = 0.2", "seconds.ours.part.token: known are answers, inputs, tokens"),
        ("tokens = 0.2", "tokens = -1", "seconds.ours.part.tokens: must be a number of seconds"),
    ):
        with pytest.raises(DataError, match=said):
            plan_of(**{"[seconds]\nread = 5.0\nyes_no = 1.5\n": tables.replace(old, new, 1)})


def test_the_short_table_of_before_means_what_it_meant():
    (clock,) = clocks({"read": 5.0, "yes_no": 1.5, "label": 2.5, "pair": 4.0, "rate": 6.0, "token": 1.0}).values()
    for rule, seconds in (
        *(("part", 6.5), ("label", 7.5), ("span", 7.5), ("pair", 9), ("preference", 9), ("comparison", 9)),
        *(("pairwise", 9), ("rate", 11), ("first-order", 11), ("baseline", 11), ("two-point", 17), ("symmetric", 17)),
    ):
        assert seconds_of(clock, rule) == {"answers": seconds}, rule
    assert seconds_of(clock, "supervised", labels="random") == {"inputs": 5.0, "answers": 1.0}
    assert seconds_of(clock, "review", "all") == {}


def test_marked_reviews_have_a_form_of_their_own():
    clock = {"review": {"tokens": 1.0}, "marked": {"looked": 1.0}}
    assert seconds_of(clock, "review", "all") == {"tokens": 1.0}
    assert seconds_of(clock, "review", "marked") == {"looked": 1.0}
    assert seconds_of({"review": {"tokens": 1.0}}, "review", "auto") == {}


def test_reviews_of_either_form_cost_what_each_of_them_does():
    clock = {
        "review": {"answers": 0.5, "tokens": 0.1, "corrections": 2.0},
        "marked": {"answers": 0.5, "tokens": 0.05, "looked": 0.7, "corrections": 2.0},
    }
    counts = {"answers": 3, "tokens": 60, "looked": 24, "whole": 20, "corrections": 4}  # one of 20 tokens was whole
    costs = seconds_of(clock, "review", "auto")
    by_hand = 3 * 0.5 + 4 * 2.0 + 20 * 0.1 + (24 - 20) * 0.7 + (60 - 20) * 0.05
    assert sum(value * counts[cost] for cost, value in costs.items()) == pytest.approx(by_hand)


def test_a_learner_may_end_earlier_and_runs_are_known_by_it():
    plan = plan_of(**{"passes = 7": "passes = 7\nanswers = 25"})
    ends = {run.learner: (run.answers, run.looks) for run in fixed_runs(plan, "data")}
    assert ends["supervised adagrad labelled random"] == (25, (10, 20, 25))
    assert ends["part adagrad"] == (50, (10, 20, 50))
    assert plan_of().clash(plan) == "learner 'supervised adagrad labelled random'"


def test_what_a_plan_does_not_say_is_as_in_the_one_that_it_is_like():
    plan = parse_experiment('like = "answers-chunking"\nthresholds = [0.5]\n', "mine.toml", "mine")
    other = builtin("answers-chunking")
    assert (plan.name, plan.title, plan.thresholds) == ("mine", None, (0.5,))
    assert (plan.learners, plan.data, plan.seconds) == (other.learners, other.data, other.seconds)


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


def test_the_built_in_ones_have_the_numbers_that_people_ask_about():
    names = [name for name in EXPERIMENTS if name.startswith("answers-")]
    plans = {name.removeprefix("answers-"): builtin(name) for name in names}
    assert list(plans) == ["chunking", "words", "clusters", "names", "names-clusters", "text", "rerank"]
    for name, plan in plans.items():
        assert (plan.test_looks, plan.after, plan.seeds) == (True, (30, 60, 120, 240), (0, 1, 2, 3, 4)), name
        assert list(clocks(plan.seconds)) == ["ours", "literature", "slow"]
        assert parse_experiment(plan.to_toml(), "again") == plan
        assert any(each.feedback in ("flip:0.5", "flip:0.6667") for each in plan.learners)  # says nothing
        for clock in clocks(plan.seconds).values():
            timed = [seconds_of(clock, each.rule, each.review, each.labels) for each in plan.learners if each.figure]
            assert all(timed), name
    for name in ("chunking", "words", "clusters", "names", "names-clusters"):
        plan = plans[name]
        assert {each.mistakes for each in plan.learners} == {0.0, 0.5}
        assert {each.labels for each in plan.learners} == {None, "random", "least-confident"}
        assert {("review", "all"), ("review", "marked")} <= {(each.rule, each.review) for each in plan.learners}
    assert set(plans["words"].thresholds) >= {0.85, 0.90, 0.93}
    assert plans["names"].data.dev == "conll2002/esp.testa.gz"
    assert replace(plans["text"], rivals={}, rival_rates=()).rivals == {}
    assert 8_650 in plans["text"].looks  # one pass, which Vowpal Wabbit is compared over
