"""train: every option arrives where it counts, nothing is replaced unasked, and what is told, word for word."""

from __future__ import annotations

import json
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from options_given import OPTIONS, flags, typed

from sparsezo.cli import train
from sparsezo.errors import SparsezoError
from sparsezo.model import load_model
from sparsezo.settings import SETTINGS, Settings
from sparsezo.tasks.base import Scores
from sparsezo.tasks.loading import Data, Files, Loaded
from sparsezo.tasks.registry import names, task_spec
from sparsezo.training import Outcome, Progress

pytestmark = pytest.mark.usefixtures("plain")

# From the command line to the training


@pytest.fixture
def asked(monkeypatch):
    """What was to be loaded, and how it was to be trained; neither is done."""
    seen = SimpleNamespace(files=[], trainings=[], loaded={})

    def loading(task):
        def load(files):
            seen.files.append(files)
            return seen.loaded[task]

        return load

    def train_it(*args, **keywords):
        seen.trainings.append((args, keywords))
        raise SparsezoError("enough")

    for task in names():
        seen.loaded[task] = Loaded(SimpleNamespace(name=task), Data(f"data of {task}"), np.ones(3))
        monkeypatch.setattr(f"{task_spec(task).io_module}.load", loading(task))
    monkeypatch.setattr(train, "Training", train_it)
    return seen


ENOUGH = (1, "", "sparsezo: enough\n")
WHOLE = "must be a whole number of at least 1, such as 4M, 300k, 1e6 or 250000"
LEARNERS = {  # each value is another one than by default
    "--rule comparison --perturb active --h 0.03 --mu 0.2 --step adagrad --criterion annealed --gamma 0.7 --seed 5 "
    "--feedback flip:0.1": Settings(
        rule="comparison", perturb="active", h=0.03, mu=0.2, step="adagrad", criterion="annealed", gamma=0.7,
        seed=5, feedback="flip:0.1",
    ),
    "--rule first-order --h 0.03 --step constant --baseline": Settings("first-order", None, 0.03, None, baseline=True),
    "--rule symmetric --perturb active --h auto --mu 0.2 --step adagrad": Settings(
        "symmetric", "active", "auto", 0.2, "adagrad"
    ),
    "--rule part --h 0.3 --about chunk --ask random --rater-error 0.1,0.2 --rehearse 3": Settings(
        "part", None, 0.3, None, step="adagrad", about="chunk", ask="random", rater_error="0.1,0.2", rehearse=3
    ),
    "--rule review --h 0.3 --review marked --seconds slow": Settings(
        "review", None, 0.3, None, step="adagrad", review="marked", seconds="slow"
    ),
}  # fmt: skip
FILES = "--train a --train b --dev d --test t"
PACE = (
    "--iterations 7k --answers 2k --evaluate-every 70 --checkpoint-seconds 2.5 --resume "
    "--scorer math:sqrt --scorer-seconds 3"
)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("task", OPTIONS)
def test_every_option_of_train_arrives(program, asked, tmp_path, task, learner):
    """Each with a value of its own, so that none can stand in for another."""
    line = f"train {task} {FILES} -o {tmp_path / 'model'} {learner} {typed(OPTIONS[task])} {PACE}"
    assert program(*line.split()) == ENOUGH
    assert asked.files == [Files(("a", "b"), "d", "t", OPTIONS[task])]
    loaded = asked.loaded[task]
    (args, keywords) = asked.trainings[0]
    assert keywords.pop("W") is loaded.W
    assert keywords.pop("scorer").text == "math:sqrt"
    assert args == (loaded.task, loaded.data, LEARNERS[learner], 7000)
    assert keywords == {
        "answers": 2000,
        "evaluate_every": 70,
        "checkpoint": tmp_path / "model.checkpoint",
        "checkpoint_seconds": 2.5,
        "resume": True,
    }


def test_h_is_a_number_or_auto(program, asked, tmp_path):
    code, out, err = program("train", "text", "--train", "a", "--h", "fast", "-o", tmp_path / "m")
    assert (code, out, err) == (2, "", "sparsezo: --h fast: must be positive and finite, or auto\n")


@pytest.mark.parametrize(
    "words",
    ["train chunking --workers 2", "train --samples 4", "train text --antithetic --train a", "tune rerank --batch=8"],
)
def test_what_shared_one_run_is_gone_and_says_so_in_one_line(program, words):
    flag = next(word for word in words.split() if word.startswith("--")).partition("=")[0]
    message = f"sparsezo: {flag} is gone: it did not pay; docs/scaling.md says why\n"
    assert program(*words.split()) == (2, "", message)


@pytest.mark.parametrize("task", OPTIONS)
def test_train_has_the_documented_defaults(program, asked, tmp_path, task):
    assert program("train", task, "--train", "a", "-o", tmp_path / "m") == ENOUGH
    assert asked.files == [Files(("a",), None, None, {})]
    ((_, _, settings, iterations), keywords) = asked.trainings[0]
    step = {"chunking": "adagrad", "text": "adagrad", "rerank": "constant"}[task]
    h, mu = task_spec(task).defaults("two-point", step, "score")
    assert settings == Settings("two-point", "score", h, mu, step, "map", 1.0, False, 0, "exact")
    assert (iterations, keywords["answers"]) == (1_000_000, None)
    assert {name: keywords[name] for name in ("evaluate_every", "checkpoint_seconds", "resume", "scorer")} == {
        "evaluate_every": None,
        "checkpoint_seconds": 30.0,
        "resume": False,
        "scorer": None,
    }


@pytest.mark.parametrize(("more", "seconds"), [([], 60.0), (["--scorer-seconds", "3"], 3.0)])
def test_a_program_has_its_seconds(program, asked, tmp_path, more, seconds):
    words = ["train", "text", "--train", "a", "--scorer", "cat -u 'b c'", *more, "-o", tmp_path / "m"]
    assert program(*words) == ENOUGH
    scorer = asked.trainings[0][1]["scorer"]
    assert (scorer.text, scorer._words, scorer._seconds) == (
        "cat -u 'b c'",
        ["cat", "-u", "b c"],
        seconds,
    )


def test_with_answers_there_is_no_end_of_iterations(program, asked, tmp_path):
    assert program("train", "text", "--train", "a", "--rule", "part", "--answers", "5k", "-o", tmp_path / "m") == ENOUGH
    ((_, _, settings, iterations), keywords) = asked.trainings[0]
    assert (settings.step, settings.h) == ("adagrad", 1.0)
    assert (iterations, keywords["answers"]) == (None, 5000)
    code, _, err = program("train", "text", "--train", "a", "--answers", "few", "-o", tmp_path / "m")
    assert (code, err) == (2, f"sparsezo: --answers few: {WHOLE}\n")


@pytest.mark.parametrize("task", OPTIONS)
def test_no_option_of_train_is_forgotten_above(commands, task):
    tried = set(" ".join([FILES, PACE, typed(OPTIONS[task]), *LEARNERS]).split())
    tried |= {"--stream", "--window", "--engine", "--ray-address"}  # elsewhere
    tried |= {"--from-answers", "--passes", "--log"}  # test_cli_from_answers, test_cli_logged
    assert flags(commands[f"train {task}"]) - tried - {"--init"} == {"--output", "--force", "--insist", "--json"}
    by_default = Settings()
    for name in SETTINGS:
        assert any(getattr(each, name) != getattr(by_default, name) for each in LEARNERS.values()), name


def test_an_h_of_the_papers_keeps_constant_steps_and_says_so(program, asked, tmp_path):
    code, _, err = program("train", "chunking", "--train", "a", "-o", tmp_path / "m", "--h", "0.001")
    assert code == ENOUGH[0]
    assert "--h 0.001 is for constant steps (usually 0.001), and these are taken" in err
    assert (asked.trainings[0][0][2].step, asked.trainings[0][0][2].h) == ("constant", 0.001)
    assert program("train", "chunking", "--train", "a", "-o", tmp_path / "m", "--perturb", "all") == ENOUGH
    assert (asked.trainings[1][0][2].step, asked.trainings[1][0][2].h) == ("constant", 1e-4)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--h 0", "--h 0.0: must be positive and finite"),
        ("--rule first-order --mu 0.1", "rule first-order perturbs nothing: leave out --perturb and --mu"),
        ("--baseline", "--baseline belongs to rule first-order, not to two-point"),
        ("--seed -1", "--seed -1: must be a whole number from 0 to 2^63 - 1"),
        ("--step long", "--step long: choose from constant, adagrad"),
        ("--iterations many", f"--iterations many: {WHOLE}"),
        ("--rule worst", "--rule worst: choose from two-point, symmetric, comparison, preference, baseline, "
            "first-order, pairwise, cross-entropy, supervised, part, label, span, review, pair, best, rate"),
        ("--evaluate-every 0", f"--evaluate-every 0: {WHOLE}"),
    ],
)  # fmt: skip
def test_mistakes_are_said_before_a_file_is_read(program, asked, tmp_path, words, message):
    """And what was given is not quietly replaced by a default."""
    line = ["train", "text", "--train", "nowhere", "-o", tmp_path / "m", *words.split()]
    assert program(*line) == (2, "", f"sparsezo: {message}\n")
    assert (asked.files, asked.trainings) == ([], [])


# Where the model goes


@pytest.mark.parametrize(
    ("there", "flags", "said"),
    [
        ([], [], "enough"),
        (["m"], [], "{m}: is there already; add --force to replace it, or name another file with -o"),
        (["m"], ["--force"], "enough"),
        (["m"], ["--resume"], "enough"),
        (
            ["m.checkpoint"],
            [],
            "{m}.checkpoint: an unfinished run is there; add --resume to go on with it, or --force to start anew",
        ),
    ],
)
def test_what_is_there_is_replaced_only_if_told(program, asked, tmp_path, there, flags, said):
    for name in there:
        (tmp_path / name).write_text("mine")
    code, out, err = program("train", "text", "--train", "a", "-o", tmp_path / "m", *flags)
    assert (code, out) == (1 if said == "enough" else 2, "")
    assert err == f"sparsezo: {said.format(m=tmp_path / 'm')}\n"
    assert len(asked.files) == (said == "enough")  # said before a file is read
    assert [keywords["resume"] for _, keywords in asked.trainings] == (["--resume" in flags] if asked.files else [])
    assert all((tmp_path / name).read_text() == "mine" for name in there)


def test_a_folder_is_no_place_for_a_model(program, asked, tmp_path):
    none = tmp_path / "no" / "m"
    said = program("train", "text", "--train", "a", "-o", none)
    assert said == (1, "", f"sparsezo: {none}: there is no folder {tmp_path / 'no'}; make it first\n")
    said = program("train", "text", "--train", "a", "-o", tmp_path)
    assert said == (2, "", f"sparsezo: -o {tmp_path}: is a folder; name a file in it\n")
    assert asked.files == []


def test_force_starts_anew_and_replaces_all_of_the_old_run(program, sentences, tmp_path):
    words = ["train", "chunking", "--train", sentences / "train", "--iterations", "200"]
    for seed, output in ((1, "old"), (2, "new")):
        assert program(*words, "--seed", seed, "-o", tmp_path / output)[0] == 0
    (tmp_path / "old.checkpoint").write_bytes(b"of a run that was stopped")
    code, _, err = program(*words, "--seed", 2, "-o", tmp_path / "old", "--force")
    assert code == 0, err
    with np.load(tmp_path / "old") as old, np.load(tmp_path / "new") as new:
        np.testing.assert_array_equal(old["W"], new["W"])
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["new", "old"]


# A decoder's weights


def test_a_run_of_reviews_ends_where_everything_is_reviewed(program, sentences, tmp_path):
    """With more answers asked for than can be: the model that is there is saved, and finished as at any end."""
    words = ("train", "chunking", "--train", sentences / "train", "--dev", sentences / "dev", "--rule", "review")
    code, out, err = program(*words, "--answers", 2000, "-o", tmp_path / "m.szo", "--json")
    assert code == 0, err
    answers = json.loads(out)["answers"]
    assert 40 <= answers < 2000
    said = f"ended after {answers} answers of 2,000: every input is reviewed, and the model agrees with all reviews"
    assert said in err
    code, out, _ = program(*words, "--answers", answers, "-o", tmp_path / "n.szo", "--json")
    assert code == 0
    model, other = load_model(tmp_path / "m.szo"), load_model(tmp_path / "n.szo")
    assert model.result["answers"] == answers
    assert model.curve["answers"][-1] == other.curve["answers"][-1] == answers
    assert model.curve["dev"][-1] == other.curve["dev"][-1]


def test_training_starts_from_the_decoders_weights(program, lists):
    """h is so small that the weights that come out are those that went in.

    By name; 0 for a feature that they do not name; those of features that train does not have are kept.
    """
    words = ["--train", lists / "x.nbest", "--init", lists / "weights", "--store", lists / "store"]
    code, _, err = program("train", "rerank", *words, "--h", "1e-12", "--iterations", "20", "-o", lists / "m")
    assert code == 0, err
    from sparsezo.model import load_model

    model = load_model(lists / "m")
    found = dict(zip(model.task.names, model.W[:, 0].tolist(), strict=True))
    assert found == pytest.approx({"LM": 0.25, "TM": -0.5, "Extra": 0, "Unseen": 4}, abs=1e-6)
    assert err.splitlines()[-1] == f"wrote {lists / 'm'}, {lists / 'm'}.weights, {lists / 'm'}.ini"


def test_people_see_lists_being_imported(program, lists, monkeypatch):
    """On a terminal this is a bar."""
    seen = []

    @contextmanager
    def counting(*words):
        seen.append(words)
        yield lambda done, total: seen.append("progress")

    monkeypatch.setattr("sparsezo.cli.show.counting", counting)
    words = ["--train", lists / "x.nbest", "--store", lists / "store", "--iterations", "10", "-o", lists / "m"]
    assert program("train", "rerank", *words)[0] == 0
    assert seen[0] == (f"importing {lists / 'x.nbest'}", "lists")
    assert "progress" in seen[1:]


# What train tells


RESULT = {
    "task": "chunking",
    "mu": None,
    "iterations": 4_000_000,
    "average_loss": 0.0123449,
    "update_fraction": 0.000477,
}
REPORT = {"f1": 0.5, "chunks": {"gold": 7}}


NOW = Progress(2500, 10_000, 0.25, None, None, 0, 1.5, 1000.0)


class Sized(SimpleNamespace):
    """Arrays of a problem with so many inputs."""

    def __len__(self) -> int:
        return len(self.n_active)


class Stage:
    """What a training that only reports is to report, and what it was told."""

    def __init__(self, words: list[object]) -> None:
        self.words = words
        self.told: list[str] = []
        self.step = 0
        self.n_active = [60, 30, 60]
        self.tested = False
        self.at_work = lambda: None

    def training(self, task, data, settings, iterations, **keywords):
        arrays = {"n_active": np.array(self.n_active), "n_score": np.array([5, 6, 10])}
        return SimpleNamespace(
            task=task,
            settings=settings,
            iterations=iterations,
            answers=keywords["answers"],
            checkpoint=keywords["checkpoint"],
            learner=SimpleNamespace(step=self.step),
            problem=Sized(n_features=20, n_labels=task.n_labels, **arrays),
            learn=self.learn,
            tested=lambda model: Outcome(model, RESULT, Scores("f1", 0.5, REPORT) if self.tested else None),
            finish=lambda: self.told.append("finish"),
        )

    def learn(self, progress):
        progress(NOW)
        self.at_work()
        return SimpleNamespace(save=lambda path: self.told.append(f"save {path}"), W=np.zeros((1, 1)))


@pytest.fixture
def stage(monkeypatch, sentences, tmp_path):
    stage = Stage(["train", "chunking", "--train", sentences / "train", "-o", tmp_path / "m"])
    monkeypatch.setattr(train, "Training", stage.training)
    return stage


HEAD = "chunking: two-point, score, h 0.05, mu 0.2, adagrad, seed 0"


def test_people_are_told_what_is_trained_and_what_came_out(program, stage, tmp_path):
    code, out, err = program(*stage.words)
    assert code == 0
    assert err == (f"{HEAD}; 3 inputs, 180 weights, 50 active and 7 scores an input\nwrote {tmp_path / 'm'}\n")
    lines = out.splitlines()
    assert lines[0].rstrip() == HEAD
    assert dict(line.split() for line in lines[1:]) == {
        "task": "chunking",
        "mu": "-",
        "iterations": "4,000,000",
        "average_loss": "0.0123",
        "update_fraction": "0.000477",
    }


def test_the_model_is_saved_before_the_checkpoint_goes(program, stage, tmp_path):
    assert program(*stage.words)[0] == 0
    assert stage.told == [f"save {tmp_path / 'm'}", "finish"]
    stage.tested = True  # then once more, with the figure
    stage.told.clear()
    assert program(*stage.words)[0] == 0
    assert stage.told == [f"save {tmp_path / 'm'}", "finish", f"save {tmp_path / 'm'}"]


@pytest.mark.parametrize("tested", [True, False])
def test_scripts_get_one_line_of_json_with_the_test_report(program, stage, tested):
    stage.tested = tested
    code, out, _ = program(*stage.words, "--json")
    assert code == 0
    assert out.count("\n") == 1
    assert json.loads(out) == (RESULT | {"test_report": REPORT} if tested else RESULT)
    assert "test_report" not in program(*stage.words)[1]


def test_resume_says_from_where(program, stage, tmp_path):
    checkpoint = tmp_path / "m.checkpoint"
    assert program(*stage.words, "--resume")[2].splitlines()[0] == f"no checkpoint: starting ({checkpoint})"
    stage.step = 12_345
    assert program(*stage.words, "--resume")[2].splitlines()[0] == f"continuing at step 12,345 ({checkpoint})"
    assert program(*stage.words)[2].splitlines()[0].startswith("chunking: ")


def test_all_and_active_are_one_law_only_where_every_weight_is_active(program, stage):
    same = "every weight is active in every input: all and active are the same law here"
    for n_active, perturb, said in [
        ([180, 180], "all", True),
        ([180, 180], "active", False),
        ([180, 179], "all", False),
    ]:
        stage.n_active = n_active
        assert (same in program(*stage.words, "--perturb", perturb)[2].splitlines()) == said
