"""tune on the command line: every option arrives where it counts, and the command that it prints is one of train's."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import options_given
import pytest
from options_given import flags, typed
from rich.console import Console

from sparsezo.cli import Terminated, show, train, tune
from sparsezo.settings import SETTINGS
from sparsezo.storage.checksummed import read_checksummed
from sparsezo.study.engines import local
from sparsezo.study.engines.base import Overview
from sparsezo.study.plan import LearnerSpec
from sparsezo.study.sources import Source
from sparsezo.study.tuning import Trial, Tuned
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import task_spec

pytestmark = pytest.mark.usefixtures("plain")

NOW = Overview(runs=4, done=1, failed=0, steps=2_000_000, steps_done=500_000, seconds_left=None, now=())
FOUND = Tuned("two-point score", (0.02, 0.3), 0.75, (Trial(0.02, 0.3, 40, 0.75, 0.5),), 0, "")


def found_for(spec: LearnerSpec) -> Tuned:
    return replace(FOUND, learner=spec.name, chosen=(0.02, 0.3 if spec.perturb else None))


# From the command line to the search


@pytest.fixture
def machinery(monkeypatch):
    """An engine and a search that only write down what they are asked, in order."""
    told: list[tuple] = []

    class Engine:
        def __init__(self, out, load, processes, *, say):
            told.append(("engine", out, load.func, load.args, load.keywords, processes))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            told.append(("home",))

    def search(plan, engine, identity, *, full_grid, progress, say):
        progress(NOW)
        say("searching")
        told.append(("tune", plan, identity, full_grid))
        return {spec.name: found_for(spec) for spec in plan.learners}

    monkeypatch.setattr(local, "LocalEngine", Engine)
    monkeypatch.setattr(tune, "tune", search)
    monkeypatch.setattr(show, "_LOG_SECONDS", 0.0)
    monkeypatch.setattr(Source, "identity", property(lambda self: f"content of {self}"))
    return told


LEARNERS = {  # each value is another one than by default
    "--rule comparison --perturb active --step adagrad --criterion annealed --gamma 0.7 --feedback flip:0.1 "
    "--grid-h 0.5,2e-1 --grid-mu 3 --grid-gamma 2,0.3": LearnerSpec(
        rule="comparison", perturb="active", h=0.5, mu=3.0, step="adagrad", criterion="annealed", gamma=0.7,
        feedback="flip:0.1", grid_h=(0.5, 0.2), grid_mu=(3.0,), grid_gamma=(2.0, 0.3),
    ),
    "--rule first-order --step constant --baseline --grid-h 0.5": LearnerSpec(
        "first-order", None, 0.5, None, baseline=True, grid_h=(0.5,)
    ),
    "--rule part --about chunk --ask random --rater-error 0.1,0.2 --rehearse 3 --grid-h 0.5": LearnerSpec(
        "part", None, 0.5, None, step="adagrad", about="chunk", ask="random", rater_error="0.1,0.2", rehearse=3,
        grid_h=(0.5,),
    ),
    "--rule review --review marked --seconds slow --grid-h 0.5": LearnerSpec(
        "review", None, 0.5, None, step="adagrad", review="marked", seconds="slow", grid_h=(0.5,)
    ),
}  # fmt: skip
NOT_OF_TUNE = ("tags", "init_labels", "classes", "test_ref")
NOT_TOGETHER = ("features", "gazetteer", "hash_bits")  # with the others, as an experiment's plan knows
OPTIONS = {
    task: {name: value for name, value in options.items() if name not in NOT_OF_TUNE + NOT_TOGETHER}
    for task, options in options_given.OPTIONS.items()
}
SEARCH = (
    "--train a --train b --dev 12 --iterations 7k --answers 2k --seed 5 --seeds 3 --full-grid --processes 2 "
    "--engine local --json"
)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("task", OPTIONS)
def test_every_option_of_tune_arrives(program, machinery, tmp_path, task, learner):
    """Each with a value of its own, so that none can stand in for another."""
    options, out = OPTIONS[task], tmp_path / "a/b"
    code, printed, err = program("tune", task, *f"{SEARCH} {typed(options)} {learner} -o {out}".split())
    assert (code, err.splitlines()[1:]) == (0, ["searching"])
    engine, (_, plan, identity, full_grid), home = machinery
    files = Files(("a", "b"), "12", None, options)
    assert engine == ("engine", out, task_spec(task).load, (files,), {}, 2)
    assert home == ("home",)
    spec = LEARNERS[learner]
    assert (plan.name, plan.task, plan.learners) == (f"tune-{task}", task, (spec,))
    assert (plan.iterations, plan.answers, plan.search_seeds, plan.evaluate_every) == (7000, 2000, (5, 6, 7), None)
    assert (plan.data.train, plan.data.dev, plan.data.test, plan.data.options) == (("a", "b"), "12", None, options)
    assert identity == f"content of {Source(task, ('a', 'b'), '12', None, options)}"
    assert full_grid is True
    found = found_for(spec)
    assert read_checksummed(out / "tuning.json") == {spec.name: found.as_dict()}
    result = json.loads(printed)
    command = result.pop("command")
    assert result == {"task": task, "learner": spec.name, "h": 0.02, "mu": found.chosen[1], **found.as_dict()}
    assert command == tune.train_command(task_spec(task), files, spec, found, plan)
    assert err.splitlines()[0] == f"tuning {spec.name}: 1 of 4 runs, 25% of 2M steps"


@pytest.mark.parametrize("task", OPTIONS)
def test_no_option_of_tune_is_forgotten_above(commands, task):
    tried = set(" ".join([SEARCH, typed(OPTIONS[task]), *LEARNERS]).split())
    tried |= {"--features", "--gazetteer", "--hash-bits"}
    assert flags(commands[f"tune {task}"]) - tried == {"--output", "--insist", "--ray-address"}  # it goes with ray


@pytest.mark.parametrize(
    ("task", "h", "mu"),
    [
        ("chunking", (0.3, 0.1, 0.03), (0.4, 0.2, 0.1)),
        ("rerank", (1.0, 0.1, 0.01, 0.001, 1e-4, 1e-5), (0.01, 0.001, 1e-4, 1e-5, 1e-6)),
        ("text", (1.0, 0.3, 0.1), (2.0, 1.0, 0.5)),
    ],
)
def test_tune_has_the_documented_defaults(program, machinery, tmp_path, monkeypatch, task, h, mu):
    """The grid of the task's usual step; one seed, 0; a folder named by the task."""
    step = task_spec(task).usual_step
    monkeypatch.chdir(tmp_path)
    for more in ([], ["--rule", "first-order"], ["--grid-mu", "7"], ["--grid-h", "7"]):
        code, _, err = program("tune", task, "--train", "a", "--dev", "d", *more)  # into the same folder: it goes on
        assert code == 0, err
    engine, (_, plan, _, full_grid), _ = machinery[:3]
    files = Files(("a",), "d", None, {})
    assert engine[1:] == (Path(f"tune-{task}"), task_spec(task).load, (files,), {}, None)
    assert (plan.iterations, plan.search_seeds, full_grid) == (1_000_000, (0,), False)
    assert Path(f"tune-{task}/tuning.json").exists()
    plain, first_order, own_mu, own_h = (each[1].learners[0] for each in machinery if each[0] == "tune")
    assert plain == LearnerSpec("two-point", "score", h[0], mu[0], step, grid_h=h, grid_mu=mu)
    assert first_order == LearnerSpec("first-order", None, h[0], None, step, grid_h=h, grid_mu=())
    assert own_mu == replace(plain, mu=7.0, grid_mu=(7.0,))
    assert own_h == replace(plain, h=7.0, grid_h=(7.0,))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--grid-h 0.1;0.2", "--grid-h 0.1;0.2: give numbers with commas between them, such as 0.01,0.001"),
        ("--rule first-order --grid-mu 1", "rule first-order perturbs nothing"),
        ("--seeds 0", "Invalid value for '--seeds'"),
        ("--processes 0", "--processes 0: must be a whole number, 1 or more"),
        ("--h 1", "No such option: --h"),
    ],
)
def test_calls_that_are_refused(program, machinery, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = program("tune", "chunking", "--train", "a", "--dev", "d", *words.split())
    assert (code, out, message in err) == (2, "", True), err
    assert machinery == []


@pytest.mark.parametrize(("stop", "code"), [(KeyboardInterrupt(), 130), (Terminated(), 143)])
def test_stopped_it_says_how_to_go_on(program, machinery, tmp_path, monkeypatch, stop, code):
    def stopped(*_args, **_keywords):
        raise stop

    monkeypatch.setattr(tune, "tune", stopped)
    words = ["tune", "text", "--train", "a", "--dev", "d", "-o", tmp_path / "t"]
    assert program(*words) == (code, "", "stopped; the same command goes on from there\n")


# What it tells


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("task", OPTIONS)
def test_the_command_for_train_has_every_option(program, monkeypatch, task, learner):
    """What it prints is what train understands: all that went in comes out."""
    seen = []
    monkeypatch.setattr(train, "run_train", lambda *args: seen.append(args))
    spec, options = LEARNERS[learner], OPTIONS[task]
    point = (0.00325, 0.125 if spec.perturb else None)
    plan = SimpleNamespace(search_seeds=(5, 6), unit="iterations", length=7000)
    files = Files(("a b", "c"), "12", None, options)
    words = shlex.split(tune.train_command(task_spec(task), files, spec, replace(FOUND, chosen=point), plan))
    assert words[0] == "sparsezo"
    assert program(*words[1:]) == (0, "", "")
    ((of, values),) = seen
    assert of is task_spec(task)
    expected = {
        "train": ["a b", "c"], "dev": "12", "test": None, "output": Path("model.szo"), "iterations": "7000",
        "evaluate_every": None, "checkpoint_seconds": 30.0, "resume": False, "force": False, "json": False,
    }  # fmt: skip
    assert {name: values[name] for name in expected} == expected
    given = {name: values[name] for name in task_spec(task).options if values[name] not in (None, False, [])}
    assert given == options
    from sparsezo.settings import Settings

    learned = {name: values[name] for name in SETTINGS if values[name] not in (None, False)}
    assert Settings.complete(learned, task_spec(task).defaults) == spec.settings(5, *point)


@pytest.fixture
def telling(monkeypatch, tmp_path, program, machinery):
    """What tune prints where the search found this."""

    def tell(found: Tuned, *words: str) -> tuple[str, str]:
        monkeypatch.setattr(tune, "tune", lambda plan, *_, **__: {plan.learners[0].name: found})
        line = ["tune", "text", "--train", "[b]a", "--dev", "d", "--iterations", 2000, "-o", tmp_path / "o"]
        code, out, err = program(*line, *words)
        assert code == 0, err
        return out, err

    return tell


def test_people_see_the_trials_from_short_to_long_best_first(telling, monkeypatch):
    """Nothing is cut where a window is narrow, and nothing is taken for markup."""
    monkeypatch.setattr(show, "output", Console(highlight=False, force_terminal=False, width=30))
    trials = (
        Trial(0.1, 0.5, 2000, 0.5, 0.3),
        Trial(0.01, 0.5, 2000, 0.75, 0.2, seeds=2),
        Trial(10.0, 0.5, 500, None),
        Trial(0.001, 0.5, 2000, 0.5, 0.25),
        Trial(1.0, 0.5, 500, 0.625, 0.4),
    )
    out, err = telling(Tuned("two-point score", (0.01, 0.5), 0.75, trials, 1, "the grid has grown"))
    assert err.splitlines() == [
        "         500 iterations  h 1        mu 0.5      dev 0.6250",
        "         500 iterations  h 10       mu 0.5      failed",
        "       2,000 iterations, 2 seeds  h 0.01     mu 0.5      dev 0.7500",
        "       2,000 iterations  h 0.001    mu 0.5      dev 0.5000",
        "       2,000 iterations  h 0.1      mu 0.5      dev 0.5000",
        "the grid has grown",
    ]
    assert out.splitlines() == [
        "two-point score adagrad: h 0.01  mu 0.5      dev 0.7500",
        "sparsezo train text --train '[b]a' --dev d --rule two-point --perturb score --h 0.01 --mu 0.5 "
        "--step adagrad --seed 0 --iterations 2000 -o model.szo",
    ]


def test_people_see_no_mu_where_nothing_is_perturbed(telling):
    found = Tuned("first-order", (0.01, None), 0.75, (Trial(0.01, None, 2000, 0.75),), 0, "")
    out, err = telling(found, "--rule", "first-order")
    assert err == "       2,000 iterations  h 0.01     dev 0.7500\n"
    assert out.splitlines()[0] == "first-order adagrad: h 0.01  dev 0.7500"
