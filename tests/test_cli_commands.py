"""train, predict and evaluate: every option arrives where it counts, and what a person is told, word for word."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from sparsezo.cli import chunking, commands, loading, main, rerank, show, text
from sparsezo.cli.commands import TrainCall, run_train
from sparsezo.cli.loading import Files, check_options, cut, front
from sparsezo.cli.values import whole_number
from sparsezo.data.conll import read_conll
from sparsezo.data.generate_chunking import chunking_columns, generate_chunking
from sparsezo.data.text import read_documents
from sparsezo.errors import DataError, SparsezoError, UsageError
from sparsezo.experiments.training import Progress
from sparsezo.model import Model
from sparsezo.settings import Settings
from sparsezo.tasks.base import Scores
from sparsezo.tasks.chunking import Chunking
from sparsezo.tasks.rerank import Reranking
from sparsezo.tasks.text import TextClassification


@pytest.fixture(autouse=True)
def plain(monkeypatch, tmp_path):
    """No terminal, whatever the environment says, and no cache but the test's own."""
    monkeypatch.setattr(show, "errors", Console(stderr=True, highlight=False, force_terminal=False, width=300))
    monkeypatch.setattr(show, "output", Console(highlight=False, force_terminal=False, width=120))
    monkeypatch.setattr(show, "note_compiling", lambda: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARSEZO_DATA", raising=False)


@pytest.fixture
def calls(monkeypatch):
    """Put a recorder in the place of a function: its calls as (arguments, keywords)."""

    def record(name: str) -> list[tuple[tuple, dict]]:
        seen: list[tuple[tuple, dict]] = []
        monkeypatch.setattr(commands, name, lambda *args, **keywords: seen.append((args, keywords)))
        return seen

    return record


# From the command line to the call

NOT_GIVEN = TrainCall(
    task="chunking",
    files=Files(("a",), None, None, {}),
    output=Path("m"),
    rule="two-point",
    perturb=None,
    criterion="map",
    gamma=1.0,
    h=None,
    mu=None,
    step="constant",
    baseline=False,
    feedback="exact",
    iterations="1M",
    seed=0,
    evaluate_every=None,
    checkpoint_seconds=30.0,
    resume=False,
    as_json=False,
)


def test_train_has_the_documented_defaults(program, calls):
    seen = calls("run_train")
    assert program("train", "chunking", "--train", "a", "-o", "m") == (0, "", "")
    assert seen == [((NOT_GIVEN,), {})]


def test_every_option_of_train_arrives(program, calls):
    """Each with a value of its own, so that none can stand in for another."""
    seen = calls("run_train")
    words = """train rerank --train a --train b -o model --dev d --test t --rule symmetric --perturb active
        --criterion annealed --gamma 0.7 --h 0.03 --mu 0.2 --step adagrad --baseline --feedback binary --iterations 7k
        --seed 5 --only VP --order 1 --template tpl --min-count 3 --format svmlight --topics q --raw-tf --train-ref r1
        --train-ref r2 --dev-ref r3 --test-ref r4 --init w --store s --evaluate-every 70 --checkpoint-seconds 2.5
        --resume --json"""
    assert program(*words.split()) == (0, "", "")
    options = {
        "only": "VP",
        "order": 1,
        "template": "tpl",
        "min_count": 3,
        "format": "svmlight",
        "topics": "q",
        "raw_tf": True,
        "train_ref": ["r1", "r2"],
        "dev_ref": ["r3"],
        "test_ref": ["r4"],
        "init": "w",
        "store": "s",
    }
    given = TrainCall(
        task="rerank",
        files=Files(("a", "b"), "d", "t", options),
        output=Path("model"),
        rule="symmetric",
        perturb="active",
        criterion="annealed",
        gamma=0.7,
        h=0.03,
        mu=0.2,
        step="adagrad",
        baseline=True,
        feedback="binary",
        iterations="7k",
        seed=5,
        evaluate_every="70",
        checkpoint_seconds=2.5,
        resume=True,
        as_json=True,
    )
    assert seen == [((given,), {})]
    for field in fields(TrainCall):
        assert getattr(given, field.name) != getattr(NOT_GIVEN, field.name), f"{field.name} is not told from a default"


def test_every_option_of_predict_arrives(program, calls):
    seen = calls("run_predict")
    assert program("predict", "m", "in") == (0, "", "")
    assert program("predict", "m", "in", "-o", "out", "--format", "lyrl", "--labels-only", "--nbest") == (0, "", "")
    assert seen == [
        ((Path("m"), "in", None, {}), {}),
        ((Path("m"), "in", Path("out"), {"format": "lyrl", "labels_only": True, "nbest": True}), {}),
    ]


def test_every_option_of_evaluate_arrives(program, calls):
    seen = calls("run_evaluate")
    assert program("evaluate", "m", "gold") == (0, "", "")
    words = ["--format", "lyrl", "--topics", "q", "--ref", "r1", "--ref", "r2", "--store", "s", "--json"]
    assert program("evaluate", "m", "gold", *words) == (0, "", "")
    assert seen == [
        ((Path("m"), "gold", {}), {"as_json": False}),
        ((Path("m"), "gold", {"format": "lyrl", "topics": "q", "ref": ["r1", "r2"], "store": "s"}), {"as_json": True}),
    ]


def test_the_version_is_printed(program):
    from sparsezo import __version__

    assert program("--version") == (0, f"sparsezo {__version__}\n", "")


def test_no_command_is_a_question(program):
    for words in ((), ("data",)):
        code, out, err = program(*words)
        assert (code, "Usage: " in out + err) == (2, True)


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_has_a_short_name(program, flag):
    code, out, _ = program("train", flag)
    assert (code, "--evaluate-every" in out) == (0, True)


# From the call to the settings


def test_every_setting_of_a_perturbing_learner_arrives():
    call = replace(
        NOT_GIVEN, rule="comparison", perturb="active", h=0.03, mu=0.2, step="adagrad", criterion="annealed",
        gamma=0.7, seed=5, feedback="flip:0.1",
    )  # fmt: skip
    expected = Settings(
        rule="comparison", perturb="active", h=0.03, mu=0.2, step="adagrad", criterion="annealed",
        gamma=0.7, baseline=False, seed=5, feedback="flip:0.1",
    )  # fmt: skip
    assert call.settings(None) == expected
    assert call.settings(TEXT) == expected


def test_every_setting_of_a_learner_that_perturbs_nothing_arrives():
    call = replace(NOT_GIVEN, rule="first-order", h=0.03, seed=6, baseline=True)
    expected = Settings("first-order", None, 0.03, None, baseline=True, seed=6)
    assert call.settings(None) == expected
    assert call.settings(TEXT) == expected


CHUNKING, TEXT = object.__new__(Chunking), object.__new__(TextClassification)
RERANK = Reranking(("a",), (0.0,))


@pytest.mark.parametrize(
    ("task", "rule", "perturb", "step", "h", "mu"),
    [
        (CHUNKING, "two-point", None, "constant", 1e-3, 0.1),
        (CHUNKING, "two-point", "score", "constant", 1e-3, 0.1),
        (CHUNKING, "comparison", "active", "constant", 3e-4, 0.1),
        (CHUNKING, "baseline", "all", "constant", 1e-4, 0.1),
        (CHUNKING, "symmetric", None, "adagrad", 0.05, 0.2),
        (CHUNKING, "first-order", None, "constant", 0.01, None),
        (CHUNKING, "first-order", None, "adagrad", 0.1, None),
        (CHUNKING, "supervised", None, "constant", 0.01, None),
        (TEXT, "two-point", None, "constant", 0.1, 1.0),
        (TEXT, "two-point", "active", "constant", 0.01, 1.0),
        (TEXT, "two-point", "all", "constant", 1e-3, 1.0),
        (TEXT, "preference", "active", "adagrad", 0.3, 1.0),
        (TEXT, "first-order", None, "constant", 1.0, None),
        (RERANK, "two-point", None, "constant", 1e-4, 0.01),
        (RERANK, "symmetric", "active", "constant", 1e-4, 0.01),
        (RERANK, "comparison", None, "constant", 1e-5, 0.01),
        (RERANK, "baseline", "active", "adagrad", 0.1, 0.01),
        (RERANK, "first-order", None, "constant", 1e-3, None),
        (RERANK, "first-order", None, "adagrad", 0.01, None),
        (RERANK, "supervised", None, "constant", 0.01, None),
    ],
)
def test_h_and_mu_have_defaults_by_task_rule_and_perturbation(task, rule, perturb, step, h, mu):
    call = replace(NOT_GIVEN, rule=rule, perturb=perturb, step=step)
    settings = call.settings(task)
    assert (settings.h, settings.mu) == (h, mu)
    assert settings.perturb == (perturb or (None if mu is None else "score"))
    assert replace(call, h=0.5).settings(task) == replace(settings, h=0.5)
    if mu is not None:
        assert replace(call, mu=0.5).settings(task) == replace(settings, mu=0.5)


def test_what_was_given_is_kept_where_it_is_refused():
    """Not quietly replaced by a default."""
    for changes, what in [
        ({"h": 0.0}, "--h 0.0: must be positive"),
        ({"mu": 0.0}, "--mu 0.0: must be positive"),
        ({"rule": "first-order", "mu": 0.1}, "rule first-order perturbs nothing"),
        ({"rule": "first-order", "perturb": "all"}, "rule first-order perturbs nothing"),
        ({"rule": "best"}, "--rule best: choose from"),
        ({"baseline": True}, "--baseline belongs to rule first-order, not to two-point"),
        ({"seed": -1}, "--seed -1: must be"),
    ]:
        with pytest.raises(UsageError, match=what):
            replace(NOT_GIVEN, **changes).settings(TEXT)


# From the call to the training


@pytest.fixture(scope="module")
def sentences(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("chunking")
    for name, n, seed in [("train", 20, 1), ("dev", 6, 2), ("test", 8, 3)]:
        (folder / name).write_text(chunking_columns(generate_chunking(n, seed)))
    return folder


class RecordedError(Exception):
    """Training was asked for: enough."""


@pytest.fixture
def trainings(monkeypatch):
    seen: list[tuple[tuple, dict]] = []

    def training(*args, **keywords):
        seen.append((args, keywords))
        raise RecordedError

    monkeypatch.setattr(commands, "Training", training)
    return seen


def test_every_value_reaches_the_training(trainings, sentences, tmp_path):
    files = Files((str(sentences / "train"),), str(sentences / "dev"), str(sentences / "test"), {})
    call = replace(
        NOT_GIVEN, files=files, output=tmp_path / "model.szo", rule="first-order", h=0.03, seed=6, baseline=True,
        iterations="7k", evaluate_every="3k", checkpoint_seconds=2.5, resume=True,
    )  # fmt: skip
    with pytest.raises(RecordedError):
        run_train(call)
    (task, data, settings, iterations), keywords = trainings[0]
    assert isinstance(task, Chunking)
    assert [len(part) for part in (data.train, data.dev, data.test)] == [20, 6, 8]
    assert settings == Settings("first-order", None, 0.03, None, baseline=True, seed=6)
    assert iterations == 7000
    assert keywords == {
        "evaluate_every": 3000,
        "checkpoint": tmp_path / "model.szo.checkpoint",
        "checkpoint_seconds": 2.5,
        "resume": True,
        "W": None,
    }


def test_the_training_has_the_tasks_defaults_where_nothing_was_given(trainings, sentences, tmp_path):
    call = replace(NOT_GIVEN, files=Files((str(sentences / "train"),)), output=tmp_path / "m")
    with pytest.raises(RecordedError):
        run_train(call)
    (_, data, settings, iterations), keywords = trainings[0]
    assert (data.dev, data.test) == (None, None)
    assert settings == Settings("two-point", "score", 1e-3, 0.1, "constant", "map", 1.0, False, 0, "exact")
    assert iterations == 1_000_000
    assert keywords == {
        "evaluate_every": None,
        "checkpoint": tmp_path / "m.checkpoint",
        "checkpoint_seconds": 30.0,
        "resume": False,
        "W": None,
    }


LISTS = """\
0 ||| the small house ||| LM=1.5 TM=0.25 ||| 0
0 ||| a small house ||| LM=-2 TM=0.5 Extra=3 ||| 0
1 ||| we go home now ||| TM=2 ||| 0
1 ||| go we home ||| LM=1 TM=-1 ||| 0
"""


@pytest.fixture
def lists(tmp_path) -> Path:
    (tmp_path / "x.nbest").write_text(LISTS)
    (tmp_path / "x.ref").write_text("a small house\nwe go home now\n")
    (tmp_path / "weights").write_text("TM -0.5\nLM 0.25\nUnseen 4\n")
    return tmp_path


def test_training_starts_from_the_decoders_weights(trainings, lists):
    """By name; 0 for a feature that they do not name; those of features that train does not have are kept."""
    options = {"init": str(lists / "weights"), "store": str(lists / "store")}
    files = Files((str(lists / "x.nbest"),), None, None, options)
    with pytest.raises(RecordedError):
        run_train(replace(NOT_GIVEN, task="rerank", files=files, output=lists / "m"))
    (task, *_), keywords = trainings[0]
    W = keywords["W"]
    assert W.shape == (4, 1)
    assert dict(zip(task.names, W[:, 0].tolist(), strict=True)) == {"LM": 0.25, "TM": -0.5, "Extra": 0, "Unseen": 4}


def test_a_model_trained_from_a_decoders_weights_began_there(program, lists):
    """h is so small that the weights that come out are those that went in."""
    words = ["--train", lists / "x.nbest", "--init", lists / "weights", "--store", lists / "store"]
    code, _, err = program("train", "rerank", *words, "--h", "1e-12", "--iterations", "20", "-o", lists / "m")
    assert code == 0, err
    with np.load(lists / "m") as arrays:
        W = arrays["W"][:, 0]
    np.testing.assert_allclose(sorted(W), [-0.5, 0, 0.25, 4], atol=1e-6)
    assert err.splitlines()[-1] == f"wrote {lists / 'm'}, {lists / 'm'}.weights, {lists / 'm'}.ini"


def test_mistakes_are_said_before_a_file_is_read(trainings, tmp_path):
    nowhere = Files(("nowhere.txt",))
    for changes, what in [
        ({"iterations": "many"}, "^--iterations many: must be"),
        ({"evaluate_every": "0"}, "^--evaluate-every 0: must be"),
        ({"h": -1.0}, "^--h -1.0: must be"),
        ({"task": "parsing"}, "^task parsing: choose from chunking, text, rerank$"),
    ]:
        with pytest.raises(UsageError, match=what):
            run_train(replace(NOT_GIVEN, **{"files": nowhere, "output": tmp_path / "m", **changes}))
    with pytest.raises(DataError, match=r"nowhere.txt: no such file"):
        run_train(replace(NOT_GIVEN, files=nowhere, output=tmp_path / "m"))
    assert trainings == []


def test_what_is_wrong_about_the_output_is_said_before_a_file_is_read(tmp_path):
    def said(output: Path, **changes) -> str:
        with pytest.raises(SparsezoError) as caught:
            run_train(replace(NOT_GIVEN, files=Files(("nowhere.txt",)), output=output, **changes))
        return f"{caught.value.exit_code} {caught.value}"

    none, folder = tmp_path / "no" / "m", tmp_path
    assert said(none) == f"1 {none}: there is no folder {tmp_path / 'no'}; make it first"
    assert said(folder) == f"2 -o {folder}: is a folder; name a file in it"
    checkpoint = tmp_path / "m.szo.checkpoint"
    checkpoint.touch()
    assert said(tmp_path / "m.szo") == (
        f"2 {checkpoint}: an unfinished run is there; add --resume to go on with it, or remove the file to start anew"
    )
    assert said(tmp_path / "m.szo", resume=True) == "1 nowhere.txt: no such file; check the path"
    assert said(tmp_path / "m") == "1 nowhere.txt: no such file; check the path"


def test_a_name_alone_is_a_file_of_this_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert commands._places(NOT_GIVEN) == Path("m.checkpoint")


# What train tells


RESULT = {
    "task": "chunking",
    "mu": None,
    "baseline": False,
    "seed": 3,
    "iterations": 4_000_000,
    "n": 1234,
    "n_active": 3310.25,
    "n_score": 213.0,
    "average_loss": 0.0123449,
    "dev": 0.91,
    "seconds": 49.38268,
    "us_per_iteration": 12.34567,
    "update_fraction": 0.000477,
}
REPORT = {"f1": 0.5, "chunks": {"gold": 7}}


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
            learner=SimpleNamespace(step=self.step),
            problem=Sized(n_features=20, n_labels=task.n_labels, **arrays),
            go=self.go,
            finish=lambda: self.told.append("finish"),
        )

    def go(self, progress):
        progress(now(2500))
        self.at_work()
        model = SimpleNamespace(save=lambda path: self.told.append(f"save {path}"), W=np.zeros((1, 1)))
        return SimpleNamespace(model=model, result=RESULT, test=Scores("f1", 0.5, REPORT) if self.tested else None)


@pytest.fixture
def stage(monkeypatch, sentences, tmp_path):
    stage = Stage(["train", "chunking", "--train", sentences / "train", "-o", tmp_path / "m"])
    monkeypatch.setattr(commands, "Training", stage.training)
    return stage


HEAD = "chunking: two-point, score, h 0.001, mu 0.1, seed 0"


def test_people_are_told_what_is_trained_and_what_came_out(program, stage, tmp_path):
    code, out, err = program(*stage.words)
    assert code == 0
    assert err == (f"{HEAD}; 3 inputs, 180 weights, 50 active and 7 scores an input\nwrote {tmp_path / 'm'}\n")
    lines = out.splitlines()
    assert lines[0].rstrip() == HEAD
    assert dict(line.split() for line in lines[1:]) == {
        "task": "chunking",
        "mu": "-",
        "baseline": "False",
        "seed": "3",
        "iterations": "4,000,000",
        "n": "1,234",
        "n_active": "3310.2500",
        "n_score": "213.0000",
        "average_loss": "0.0123",
        "dev": "0.9100",
        "seconds": "49.3827",
        "us_per_iteration": "12.3457",
        "update_fraction": "0.000477",
    }


def test_the_training_is_followed(program, stage, monkeypatch):
    seen = []

    @contextmanager
    def follow(*args):
        seen.append(args)
        yield seen.append

    monkeypatch.setattr(show, "training_progress", follow)
    assert program(*stage.words, "--rule", "symmetric", "--iterations", "7k")[0] == 0
    assert seen == [("symmetric", 7000, "f1"), now(2500)]


def test_the_model_is_saved_before_the_checkpoint_goes(program, stage, tmp_path):
    assert program(*stage.words)[0] == 0
    assert stage.told == [f"save {tmp_path / 'm'}", "finish"]


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
        ([180, 180], "score", False),
        ([180, 179], "all", False),
    ]:
        stage.n_active = n_active
        assert (same in program(*stage.words, "--perturb", perturb)[2].splitlines()) == said


# Stopping


@pytest.fixture
def own_signals():
    """SIGINT as at a terminal, whatever the shell that started the tests has made of it; no SIGTERM ends the tests."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: pytest.fail("SIGTERM went past the program"))
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_in_one_line_and_its_exit_code(program, stage, own_signals, number, expected):
    stage.step = 4321
    stage.at_work = lambda: os.kill(os.getpid(), number)
    code, out, err = program(*stage.words)
    assert (code, out) == (expected, "")
    assert err.splitlines()[1:] == ["stopped at step 4,321; the same command with --resume goes on from there"]
    assert stage.told == []


def test_ctrl_c_outside_of_training_is_130_as_well(program, monkeypatch, own_signals):
    monkeypatch.setattr(commands, "run_train", lambda call: os.kill(os.getpid(), signal.SIGINT))
    assert program("train", "chunking", "--train", "a", "-o", "m")[0] == 130


# What goes wrong elsewhere


def failing(error: BaseException):
    def fail(*_args, **_keywords):
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (SparsezoError("it failed"), 1, "it failed"),
        (UsageError("it was wrong"), 2, "it was wrong"),
        (DataError("file:3", "is odd"), 1, "file:3: is odd"),
        (MemoryError(), 1, "out of memory; use a higher --min-count, --order 1 or a smaller file"),
        (OSError(28, "No space left on device", "some/file"), 1, "some/file: No space left on device"),
        (OSError(5, "Input/output error"), 1, "Input/output error"),
        (OSError("odd"), 1, "odd"),
    ],
)
def test_what_fails_is_one_line_and_an_exit_code(program, monkeypatch, error, code, line):
    monkeypatch.setattr(commands, "run_train", failing(error))
    assert program("train", "chunking", "--train", "a", "-o", "m") == (code, "", f"sparsezo: {line}\n")


def test_a_mistake_in_the_program_is_not_hidden(program, monkeypatch):
    monkeypatch.setattr(commands, "run_train", failing(ZeroDivisionError("a mistake")))
    with pytest.raises(ZeroDivisionError, match="a mistake"):
        program("train", "chunking", "--train", "a", "-o", "m")


@pytest.mark.parametrize("error", [BrokenPipeError(), BrokenPipeError(32, "Broken pipe")])
def test_a_reader_that_has_gone_is_no_news(program, monkeypatch, error):
    """Exit code 1 and no word; what is still in standard output's buffer goes nowhere and complains no more."""
    read, write = os.pipe()
    os.close(read)
    gone = os.fdopen(write, "w")
    monkeypatch.setattr(sys, "stdout", gone)
    monkeypatch.setattr(commands, "run_predict", failing(error))
    code, _, err = program("predict", "m", "in")
    assert (code, err) == (1, "")
    sys.stdout.write("the rest\n")
    sys.stdout.flush()
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), write)  # where it was not done: closing flushes once more
    gone.close()


def test_usage_names_the_program_however_it_was_started(monkeypatch, capsys):
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(sys, "argv", ["/somewhere/sparsezo/__main__.py", "train"])
    try:
        with pytest.raises(SystemExit) as caught:
            main()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert caught.value.code == 2
    assert "Usage: sparsezo train " in capsys.readouterr().err


# predict and evaluate


@pytest.fixture
def chunker(sentences, tmp_path) -> tuple[Path, Chunking]:
    """A model whose every tag is O."""
    task, _ = Chunking.fit(read_conll(sentences / "train"))
    return tmp_path / "chunker", task


def saved(path: Path, task, W: np.ndarray) -> Path:
    Model(task, W, {}, {}).save(path)
    return path


def outside(task: Chunking) -> np.ndarray:
    """Weights that like only tag O."""
    W = np.zeros((task.n_features, task.n_labels), np.float32)
    O = task.tags.index("O")
    W[:, [k for k in range(task.n_labels) if k % len(task.tags) != O]] = -1
    return W


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_scores_that_are_not_finite_are_refused(program, chunker, sentences, tmp_path, value):
    path, task = chunker
    W = outside(task)
    W[:, 0] = value
    saved(path, task, W)
    said = "sparsezo: the model's weights give scores that are not finite; train it again with a smaller h\n"
    assert program("predict", path, sentences / "test") == (1, "", said)
    assert program("predict", path, sentences / "test", "-o", tmp_path / "out") == (1, "", said)
    assert program("evaluate", path, sentences / "test") == (1, "", said)
    assert not (tmp_path / "out").exists()


def test_predict_writes_to_a_file_or_to_standard_output(program, chunker, tmp_path):
    path, task = chunker
    saved(path, task, outside(task))
    (tmp_path / "in").write_text("Ünder DT B-NP\ntrees NNS I-NP\n\nyes UH O\n")
    expected = "Ünder DT B-NP O\ntrees NNS I-NP O\n\nyes UH O O\n\n"
    code, out, err = program("predict", path, tmp_path / "in")
    assert (code, out.rstrip("\n"), err) == (0, expected.rstrip("\n"), "")
    assert program("predict", path, tmp_path / "in", "-o", tmp_path / "out") == (0, "", f"wrote {tmp_path / 'out'}\n")
    assert (tmp_path / "out").read_bytes().decode() == out


def test_predict_needs_no_correct_tags(program, chunker, tmp_path):
    path, task = chunker
    saved(path, task, outside(task))
    (tmp_path / "in").write_text("under DT\ntrees NNS\n\nyes UH\n")
    code, out, _ = program("predict", path, tmp_path / "in")
    assert (code, out.split("\n\n")) == (0, ["under DT O\ntrees NNS O", "yes UH O", ""])


def test_evaluate_says_what_was_evaluated_on_what(program, chunker, tmp_path):
    path, task = chunker
    saved(path, task, outside(task))
    gold = tmp_path / "gold"
    gold.write_text("the DT B-NP\ntrees NNS I-NP\n\nyes UH O\n")
    code, out, _ = program("evaluate", path, gold, "--json")
    assert code == 0
    assert json.loads(out) == {
        "task": "chunking",
        "metric": "f1",
        "f1": 0.0,
        "precision": 0.0,
        "recall": 0.0,
        "accuracy": pytest.approx(1 / 3),
        "chunks": {"gold": 1, "predicted": 0, "correct": 0},
        "sentences": 2,
        "tokens": 3,
        "model": str(path),
        "test": str(gold),
    }
    code, out, _ = program("evaluate", path, gold)
    assert code == 0
    assert out.splitlines()[0].rstrip() == f"{path} on {gold}"
    assert ["chunks", "gold", "1"] in [line.split() for line in out.splitlines()]


def test_options_of_other_tasks_are_refused(program, chunker, lists, tmp_path):
    path, task = chunker
    saved(path, task, outside(task))
    reranker = saved(tmp_path / "reranker", Reranking(("LM", "TM"), (0.0, 0.0)), np.array([[1.0], [0.0]]))
    documents = tmp_path / "documents"
    documents.write_text("A\tone two\nB\tthree\n")
    classes, _ = TextClassification.fit(read_documents(str(documents)))
    classifier = saved(tmp_path / "classifier", classes, np.zeros((3, 2), np.float32))
    for words, option, name in [
        (["predict", path, "in", "--nbest"], "nbest", "chunking"),
        (["predict", path, "in", "--labels-only"], "labels-only", "chunking"),
        (["evaluate", path, "in", "--format", "tsv"], "format", "chunking"),
        (["predict", reranker, "in", "--format", "tsv"], "format", "rerank"),
        (["evaluate", reranker, "in", "--topics", "q"], "topics", "rerank"),
        (["predict", classifier, "in", "--nbest"], "nbest", "text"),
        (["evaluate", classifier, "in", "--ref", "r"], "ref", "text"),
    ]:
        assert program(*words) == (2, "", f"sparsezo: --{option} does not belong to task {name}\n")


def test_a_reranker_evaluates_and_predicts(program, lists):
    model = saved(lists / "m", Reranking(("LM", "TM"), (0.0, 0.0)), np.array([[-1.0], [0.125]]))
    # LM: 1.5, -2 | 0, 1; by -LM + TM / 8 the second candidate is the first list's best, the first one the second's
    assert program("predict", model, lists / "x.nbest") == (0, "a small house\nwe go home now\n", "")
    code, out, _ = program("predict", model, lists / "x.nbest", "--nbest")
    assert code == 0
    assert out.splitlines() == [
        "0 ||| a small house ||| LM=-2.0 TM=0.5 Extra=3.0 ||| 2.0625",
        "0 ||| the small house ||| LM=1.5 TM=0.25 ||| -1.46875",
        "1 ||| we go home now ||| TM=2.0 ||| 0.25",
        "1 ||| go we home ||| LM=1.0 TM=-1.0 ||| -1.125",
    ]
    code, out, err = program("evaluate", model, lists / "x.nbest", "--store", lists / "store", "--json")
    assert code == 0, err
    assert json.loads(out)["sentence_bleu"] == pytest.approx(1)
    assert list((lists / "store").iterdir())
    (lists / "other").write_text("nothing of this\nkind was said\n")
    code, out, _ = program("evaluate", model, lists / "x.nbest", "--ref", lists / "other", "--json")
    assert code == 0
    assert json.loads(out)["bleu"] < 0.1


# Reading


def test_dev_is_a_number_only_where_no_such_file_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Files(dev="12").held_out() == 12
    assert Files(dev=None).held_out() is None
    assert Files(dev="12.txt").held_out() is None
    Path("12").touch()
    assert Files(dev="12").held_out() is None
    with pytest.raises(UsageError, match=r"^--dev 0: hold out at least one input, or leave --dev out$"):
        Files(dev="0").held_out()
    assert Files(dev="1").held_out() == 1


def test_one_training_file():
    assert Files(("a",)).one_train("rerank") == "a"
    for files in (Files(("a", "b")), Files(())):
        with pytest.raises(UsageError, match=rf"^rerank takes one --train file, not {len(files.train)}$"):
            files.one_train("rerank")


def test_a_front_is_found_by_its_task():
    assert [front(name) for name in ("chunking", "text", "rerank")] == [chunking, text, rerank]
    with pytest.raises(UsageError, match=r"^task loading: choose from chunking, text, rerank$"):
        front("loading")


def test_an_option_of_another_task_is_named_as_it_is_typed():
    check_options("text", {"min_count": 1}, ("raw_tf", "min_count"))
    with pytest.raises(UsageError, match=r"^--dev-ref does not belong to task text$"):
        check_options("text", {"min_count": 1, "dev_ref": []}, ("min_count",))


def test_dev_leaves_something_to_learn_from():
    cut(4, 5, "sentences", "file")
    for n in (1500, 1501):
        with pytest.raises(UsageError) as caught:
            cut(n, 1500, "sentences", "file")
        assert str(caught.value) == f"--dev {n}: file has only 1,500 sentences; hold out fewer, or name a file"


def test_chunking_reads_what_the_options_say(sentences, tmp_path):
    (tmp_path / "template").write_text("U00:%x[0,1]\n")
    train = (str(sentences / "train"),)
    loaded = chunking.load(Files(train, "5", None, {"template": str(tmp_path / "template")}))
    rest = {
        line.split()[1] for part in (sentences / "train").read_text().split("\n\n")[5:] for line in part.splitlines()
    }
    assert (len(loaded.data.dev), len(loaded.data.train), loaded.data.test, loaded.W) == (5, 15, None, None)
    assert len(loaded.task.index) == len(rest)
    assert [str(each) for each in loaded.task.index.templates] == ["U00:%x[0,1]"]
    assert loaded.data.train.columns[0][0] == read_conll(train[0])[5:].columns[0][0]
    assert loaded.task.order == 2
    first = chunking.load(Files(train, None, None, {"order": 1, "min_count": 3, "only": "NP"}))
    assert (first.task.order, first.task.only, first.data.dev) == (1, "NP", None)
    assert len(first.task.index) < len(chunking.load(Files(train)).task.index)
    with pytest.raises(UsageError, match=r"^--raw-tf does not belong to task chunking$"):
        chunking.load(Files(train, None, None, {"raw_tf": True}))
    with pytest.raises(UsageError, match=r"^chunking takes one --train file, not 2$"):
        chunking.load(Files(train * 2))
    with pytest.raises(UsageError) as caught:
        chunking.load(Files(train, "20"))
    assert str(caught.value) == f"--dev 20: {train[0]} has only 20 sentences; hold out fewer, or name a file"


def test_chunking_keeps_one_type_in_dev_and_test_too(tmp_path):
    (tmp_path / "file").write_text("a DT B-NP\nb VB B-VP\n\nc DT B-NP\n")
    path = str(tmp_path / "file")
    loaded = chunking.load(Files((path,), path, path, {"only": "NP"}))
    for part in (loaded.data.train, loaded.data.dev, loaded.data.test, chunking.read(loaded.task, path, {})):
        assert list(part.tags) == ["B-NP", "O", "B-NP"]


DOCUMENTS = "A\tred red red blue\nB\tblue green\nA\tred\n"


@pytest.fixture
def documents(tmp_path) -> str:
    (tmp_path / "documents").write_text(DOCUMENTS)
    return str(tmp_path / "documents")


def vectors(loaded) -> np.ndarray:
    return loaded.data.train.matrix.toarray()


def weighted(counts: list[list[float]]) -> np.ndarray:
    """tf-idf by hand: smoothed idf, rows of length 1."""
    tf = np.array(counts)
    idf = np.log((1 + len(tf)) / (1 + (tf > 0).sum(axis=0))) + 1
    rows = tf * idf
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def same_up_to_the_order_of_words(a: np.ndarray, b: np.ndarray) -> None:
    order = [np.lexsort(each[::-1].round(5)) for each in (a, b)]
    np.testing.assert_allclose(a[:, order[0]], b[:, order[1]], atol=1e-6)


def test_raw_tf_is_tf_as_it_is(documents):
    """red, blue, green: 3 times red counts 3, or 1 + log 3."""
    counts = [[3, 1, 0], [0, 1, 1], [1, 0, 0]]
    loaded = text.load(Files((documents,), None, None, {"raw_tf": True}))
    same_up_to_the_order_of_words(vectors(loaded), weighted(counts))
    counts[0][0] = 1 + np.log(3)
    for options in ({}, {"raw_tf": False}):
        same_up_to_the_order_of_words(vectors(text.load(Files((documents,), None, None, options))), weighted(counts))


def test_min_count_leaves_out_rare_words(documents):
    """green is in one document, blue in two, red in two."""
    assert [text.load(Files((documents,), None, None, o)).task.n_features for o in ({}, {"min_count": 2})] == [3, 2]


def test_text_reads_what_the_options_say(documents, tmp_path):
    loaded = text.load(Files((documents, documents), "1", documents, {"format": "tsv"}))
    assert [len(part) for part in (loaded.data.train, loaded.data.dev, loaded.data.test)] == [5, 1, 3]
    assert list(loaded.data.train.documents.labels[:2]) == ["B", "A"]
    assert list(loaded.data.dev.documents.labels) == ["A"]
    assert loaded.W is None
    named = text.load(Files((documents,), documents))
    assert (len(named.data.dev), len(named.data.train), named.data.test) == (3, 3, None)
    for place in ({"train": (documents,)}, {"train": (documents,), "dev": documents, "test": documents}):
        with pytest.raises(SparsezoError):  # read as what it is not
            text.load(Files(**place, options={"format": "svmlight"}))
    with pytest.raises(UsageError, match=r"^--order does not belong to task text$"):
        text.load(Files((documents,), None, None, {"order": 1}))
    with pytest.raises(UsageError) as caught:
        text.load(Files((documents, documents), "6"))
    assert str(caught.value) == (
        f"--dev 6: {documents}, {documents} has only 6 documents; hold out fewer, or name a file"
    )


def test_all_parts_are_read_in_the_same_way(documents, monkeypatch):
    seen = []

    def read(paths, **reading):
        seen.append((paths, reading))
        return read_documents(documents)

    monkeypatch.setattr(text, "read_documents", read)
    reading = {"format": "lyrl", "topics": "q"}
    text.load(Files(("a", "b"), "dev", "test", {**reading, "min_count": 1, "raw_tf": True}))
    assert seen == [(("a", "b"), reading), ("dev", reading), ("test", reading)]


def test_a_folder_is_rcv1_and_has_its_own_split(tmp_path, documents, monkeypatch):
    parts = [read_documents(documents).take(slice(0, n)) for n in (3, 2, 1)]
    seen = []

    def read_rcv1(folder):
        seen.append(folder)
        return SimpleNamespace(train=parts[0], dev=parts[1], test=parts[2])

    monkeypatch.setattr(text, "read_rcv1", read_rcv1)
    folder = str(tmp_path)
    loaded = text.load(Files((folder,)))
    assert seen == [folder]
    assert [len(part) for part in (loaded.data.train, loaded.data.dev, loaded.data.test)] == [3, 2, 1]
    for more in ({"dev": "1"}, {"test": documents}):
        with pytest.raises(UsageError) as caught:
            text.load(Files((folder,), **more))
        assert str(caught.value) == "--train with RCV1's folder takes the paper's split; leave out --dev and --test"


@pytest.fixture
def classifier(documents, tmp_path) -> Path:
    """red is A, everything else B."""
    task, _ = TextClassification.fit(read_documents(documents))
    W = np.zeros((task.n_features, 2), np.float32)
    for word, class_ in [("red", 0), ("blue", 1), ("green", 1)]:
        (tmp_path / "one").write_text(f"A\t{word}\n")
        column = task.seen(read_documents(str(tmp_path / "one"))).matrix.indices[0]
        W[column, class_] = 1
    return saved(tmp_path / "classifier", task, W)


def test_a_classifier_predicts_and_evaluates(program, classifier, documents, tmp_path):
    assert program("predict", classifier, documents) == (
        0,
        "A\tred red red blue\nB\tblue green\nA\tred\n",
        "",
    )
    assert program("predict", classifier, documents, "--labels-only") == (0, "A\nB\nA\n", "")
    assert program("predict", classifier, documents, "--format", "tsv")[0] == 0
    assert program("predict", classifier, documents, "--format", "svmlight")[0] == 1
    assert program("evaluate", classifier, documents, "--format", "svmlight")[0] == 1
    (tmp_path / "gold").write_text("A\tred\nA\tblue\nB\tgreen\nB\tgreen blue\n")
    code, out, _ = program("evaluate", classifier, tmp_path / "gold", "--format", "tsv", "--json")
    assert code == 0
    assert json.loads(out)["accuracy"] == 0.75


def test_texts_need_no_labels_and_no_words_to_be_predicted(program, classifier, tmp_path):
    (tmp_path / "some").write_text("red\n\nblue green\n")
    code, out, _ = program("predict", classifier, tmp_path / "some")
    first, second, third = out.splitlines()
    assert (code, first, second[1:], third) == (0, "A\tred", "\t", "B\tblue green")


def test_rerank_reads_what_the_options_say(lists, tmp_path):
    path = str(lists / "x.nbest")
    for name in ("r1", "r2", "r3"):
        (lists / name).write_text(f"{name} house\n{name} home\n")
    references = {"train_ref": [str(lists / "r1")], "dev_ref": [str(lists / "r2")], "test_ref": [str(lists / "r3")]}
    loaded = rerank.load(Files((path,), path, path, {**references, "store": str(lists / "store")}))
    for part, name in ((loaded.data.train, "r1"), (loaded.data.dev, "r2"), (loaded.data.test, "r3")):
        assert [list(each) for each in part.references] == [[f"{name} house", f"{name} home"]]
    np.testing.assert_array_equal(loaded.W, np.zeros((3, 1)))
    bare = rerank.load(Files((path,), None, None, {"store": str(lists / "store")}))
    assert (bare.data.dev, bare.data.test) == (None, None)
    assert [list(each) for each in bare.data.train.references] == [["a small house", "we go home now"]]
    with pytest.raises(UsageError, match=r"^--only does not belong to task rerank$"):
        rerank.load(Files((path,), None, None, {"only": "NP"}))
    with pytest.raises(UsageError, match=r"^--dev 5: rerank takes an n-best file as its dev set$"):
        rerank.load(Files((path,), "5"))
    with pytest.raises(UsageError, match=r"^rerank takes one --train file, not 2$"):
        rerank.load(Files((path, path)))


def test_importing_counts_lists(lists, monkeypatch):
    seen = []

    class Counting:
        def __init__(self, *words):
            seen.append(words)

        def __enter__(self):
            return lambda done, total: seen.append("progress")

        def __exit__(self, *_):
            return None

    monkeypatch.setattr(show, "counting", Counting)
    rerank.load(Files((str(lists / "x.nbest"),), None, None, {"store": str(lists / "store")}))
    assert seen[0] == (f"importing {lists / 'x.nbest'}", "lists")
    assert "progress" in seen[1:]


# Values as people type them


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("1", 1),
        ("4M", 4_000_000),
        ("4m", 4_000_000),
        ("300k", 300_000),
        ("300K", 300_000),
        ("2g", 2_000_000_000),
        ("2G", 2_000_000_000),
        ("1e6", 1_000_000),
        ("1_000", 1000),
        ("1__000", 1000),
        ("0.5k", 500),
        ("1.0", 1),
    ],
)
def test_numbers_as_people_type_them(typed, value):
    number = whole_number(typed, "--iterations")
    assert (number, type(number)) == (value, int)


@pytest.mark.parametrize("typed", ["", "0", "k", "-1", "-1k", "1.5", "0.0001k", "1e400", "inf", "nan", "ten", "4Q"])
def test_what_is_no_whole_number_is_named_with_its_option(typed):
    with pytest.raises(UsageError) as caught:
        whole_number(typed, "--evaluate-every")
    assert str(caught.value) == (
        f"--evaluate-every {typed}: must be a whole number of at least 1, such as 4M, 300k, 1e6 or 250000"
    )


# What a person sees


def now(step: int, dev: float | None = None) -> Progress:
    return Progress(step, 10_000, 0.123449, dev, None if dev is None else 0.9, 100, 3.0, 250.0)


@pytest.fixture
def clock(monkeypatch):
    """The time that show reads, set by hand."""
    time = SimpleNamespace(now=100.0)
    monkeypatch.setattr(show, "time", SimpleNamespace(monotonic=lambda: time.now))
    return time


def test_a_log_has_a_line_every_ten_seconds(clock, capsys):
    with show.training_progress("two-point", 10_000, "f1") as progress:
        for seconds, step in [(9.9, 1000), (10.0, 2000), (19.9, 3000), (20.5, 4000), (30.0, 5000), (30.5, 9000)]:
            clock.now = 100 + seconds
            progress(now(step, dev=0.8125 if step > 3000 else None))
    assert capsys.readouterr().err.splitlines() == [
        "step 2,000 of 10,000  loss 0.1234  32 s left",
        "step 4,000 of 10,000  loss 0.1234  dev f1 0.8125 (best 0.9000)  24 s left",
        "step 9,000 of 10,000  loss 0.1234  dev f1 0.8125 (best 0.9000)  4 s left",
    ]


def terminal(monkeypatch) -> Console:
    console = Console(file=io.StringIO(), force_terminal=True, width=200, record=True, highlight=False)
    monkeypatch.setattr(show, "errors", console)
    return console


def test_a_terminal_has_a_live_line(monkeypatch):
    console = terminal(monkeypatch)
    with show.training_progress("two-point", 10_000, "f1") as progress:
        progress(now(2500, dev=0.8125))
        seen = show_bar(console)
    for words in ("two-point", "2500/10000", "250 steps/s", "loss 0.1234  dev f1 0.8125 (best 0.9000)"):
        assert words in seen


def show_bar(console: Console) -> str:
    """What stands on the screen at this moment."""
    console._record_buffer.clear()
    live = console._live_stack[-1] if hasattr(console, "_live_stack") else console._live
    live.refresh()
    return console.export_text()


def test_counting_is_a_bar_on_a_terminal_and_silence_elsewhere(monkeypatch, capsys):
    with show.counting("importing x", "lists") as count:
        count(1, 2)
    assert capsys.readouterr() == ("", "")
    console = terminal(monkeypatch)
    with show.counting("importing x", "lists") as count:
        count(3, 7)
        seen = show_bar(console)
    for words in ("importing x", "3/7", "lists"):
        assert words in seen


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "-"),
        (True, "True"),
        (1_234_567, "1,234,567"),
        (0.001, "0.0010"),
        (0.00099, "0.00099"),
        (0.0, "0"),
        (-0.5, "-0.5000"),
        (-0.0005, "-0.0005"),
        (9999.0, "9999.0000"),
        (10_000.0, "10000"),
        (1234567.891, "1.23457e+06"),
        ("f1", "f1"),
        ({"f1": 0.5, "gold": 1000}, "f1 0.5000  gold 1,000"),
    ],
)
def test_values_for_people(value, words):
    assert show._text(value) == words


def test_reports_within_a_result_are_rows_of_their_own(capsys):
    show.result({"f1": 0.25, "types": {"NP": {"f1": 0.5, "gold": 3}, "VP": 1}}, as_json=False, title="a [b] c")
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "a [b] c",
        "f1        0.2500",
        "types NP  f1 0.5000  gold 3",
        "types VP  1",
    ]


def test_notes_are_for_people_and_not_markup(capsys):
    show.note("a [b] c")
    assert capsys.readouterr() == ("", "a [b] c\n")


def test_loading_is_told_from_its_fronts():
    """Every front has the three functions that loading.py promises."""
    assert all(hasattr(front(task), name) for task in loading.TASKS for name in ("load", "read", "predict"))
