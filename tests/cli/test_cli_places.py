"""Places to write to and to read: one process at each, devices, pipes, links, what the killed leave, standard input."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sparsezo.model import load_model
from sparsezo.storage import limits
from sparsezo.storage.locks import locked

pytestmark = pytest.mark.usefixtures("plain")


def training(sentences: Path, output: object, *words: object) -> list[object]:
    return ["train", "chunking", "--train", sentences / "train", "--iterations", "300", "-o", output, *words]


# One process at a place


def test_a_second_training_of_a_model_is_refused(program, sentences, tmp_path):
    output = tmp_path / "m"
    with locked(output):
        refused = f"sparsezo: {output}: another process is training it; wait for it, or name another place with -o\n"
        assert program(*training(sentences, output)) == (1, "", refused)
        assert program(*training(sentences, tmp_path / "other"))[0] == 0
    (tmp_path / ".m.lock").touch()  # as one that was killed leaves it
    assert program(*training(sentences, output))[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["m", "other"]


@pytest.mark.parametrize("command", ["tune", "reproduce", "scaling"])
def test_a_second_search_or_experiment_in_a_folder_is_refused(program, sentences, tmp_path, command):
    folder = tmp_path / "results"
    folder.mkdir()
    words = {
        "tune": ["tune", "chunking", "--train", sentences / "train", "--dev", sentences / "dev", "-o", folder],
        "reproduce": ["reproduce", "chunking", "--data", "generated", "-o", folder],
        "scaling": ["reproduce", "scaling", "--quick", "-o", folder],
    }[command]
    refused = f"sparsezo: {folder}: another process is working in it; wait for it, or name another place with -o\n"
    with locked(folder):
        assert program(*words) == (1, "", refused)
    assert not list(folder.iterdir())


# A place that cannot be written


def test_an_output_that_cannot_be_written_is_said_before_any_file_is_read(program, tmp_path):
    code, _, err = program("train", "chunking", "--train", "nowhere", "-o", "/proc/self/m")
    assert (code, err.startswith("sparsezo: /proc/self/m: cannot be written ("), err.count("\n")) == (1, True, 1)
    code, _, err = program("demo", "-o", "/proc/self/report")
    assert (code, err.startswith("sparsezo: /proc/self/report: cannot be made ("), err.count("\n")) == (1, True, 1)


# The test set


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "test: no such file"),
        ("a DT x B-NP\n", "has 3 columns before the tag, the model 2"),
        ("alone\n", "test:1"),
    ],
)
def test_what_is_wrong_with_the_test_file_is_said_before_the_training(program, sentences, tmp_path, content, message):
    if content is not None:
        (tmp_path / "test").write_text(content)
    code, _, err = program(*training(sentences, tmp_path / "m", "--test", tmp_path / "test"))
    assert (code, message in err, "weights" in err) == (1, True, False)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (limits.DataError("test", "is odd"), 1, ["sparsezo: test: is odd; the model is saved, in {m}"]),
        (MemoryError(), 1, ["the model is saved, in {m}", "sparsezo: out of memory; use a higher --min-count, "]),
    ],
)
def test_a_test_that_fails_all_the_same_costs_no_model(program, sentences, tmp_path, monkeypatch, error, code, said):
    from sparsezo.tasks.chunking.task import Chunking

    def fail(*_):
        raise error

    monkeypatch.setattr(Chunking, "scores", fail)
    found, _, err = program(*training(sentences, tmp_path / "m", "--test", sentences / "test"))
    lines = err.splitlines()[-len(said) :]
    assert found == code
    assert all(line.startswith(start.format(m=tmp_path / "m")) for line, start in zip(lines, said, strict=True))
    assert load_model(tmp_path / "m").result["test"] is None
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["m"]


# Devices, pipes and links


def test_a_model_for_a_device_is_written_through_without_anything_beside_it(program, sentences):
    before = set(os.listdir("/dev"))
    code, _, err = program(*training(sentences, "/dev/null", "--checkpoint-seconds", "0"))
    assert (code, err.splitlines()[-1]) == (0, "wrote /dev/null")
    assert "no checkpoints" in err
    assert set(os.listdir("/dev")) == before
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    code, _, err = program(*training(sentences, "/dev/null", "--resume"))
    assert (code, "has no checkpoint to go on from" in err) == (2, True)


def run(line: str, **names: object) -> subprocess.CompletedProcess[bytes]:
    words = {name: str(value) for name, value in names.items()}
    program = {"SPARSEZO": f"{sys.executable} -m sparsezo"}
    return subprocess.run(
        ["bash", "-c", line], env={**os.environ, **program, **words}, capture_output=True, timeout=120
    )


@pytest.fixture(scope="module")
def model(sentences, tmp_path_factory) -> Path:
    from sparsezo.settings import Settings
    from sparsezo.tasks.chunking.io.conll import read_conll
    from sparsezo.tasks.chunking.task import Chunking
    from sparsezo.tasks.loading import Data
    from sparsezo.training import Training

    path = tmp_path_factory.mktemp("model") / "m"
    task, train = Chunking.fit(read_conll(str(sentences / "train")))
    Training(task, Data(train), Settings(), 100).go().model.save(path)
    return path


def test_predictions_for_standard_output_join_what_is_there(model, sentences, tmp_path):
    """Opened once more, the file behind it would begin anew."""
    names = {"M": model, "IN": sentences / "test", "OUT": tmp_path / "out"}
    done = run("echo before > $OUT; $SPARSEZO predict $M $IN -o /dev/stdout >> $OUT; echo after >> $OUT", **names)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "out").read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    piped = run("$SPARSEZO predict $M $IN -o /dev/stdout | cat", **names).stdout.decode().splitlines()
    assert piped == lines[1:-1]
    assert len(piped) > 50


def test_train_writes_no_model_into_its_summary(sentences):
    done = run("$SPARSEZO train chunking --train $T --iterations 10 -o /dev/stdout | cat", T=sentences / "train")
    assert (done.stdout, done.stderr) == (
        b"",
        b"sparsezo: -o /dev/stdout: is where the summary goes; name a file or a pipe\n",
    )


# Standard input


class Piped:
    def __init__(self, path: Path) -> None:
        self.buffer = io.BytesIO(path.read_bytes())


def test_every_command_reads_standard_input(program, sentences, model, tmp_path, monkeypatch):
    def piped(path, *words):
        monkeypatch.setattr(sys, "stdin", Piped(path))
        return program(*words)

    for part in ("train", "dev", "test"):
        plain = {"train": sentences / "train", "dev": sentences / "dev", "test": sentences / "test"}
        calls = []
        for source in (plain[part], "-"):
            words = [word for name, path in {**plain, part: source}.items() for word in (f"--{name}", path)]
            options = ["--iterations", "100", "-o", tmp_path / "m", "--force", "--json"]
            code, out, err = piped(plain[part], "train", "chunking", *words, *options)
            assert code == 0, err
            calls.append({name: value for name, value in json.loads(out).items() if "second" not in name[:9]})
            calls[-1].pop("us_per_iteration")
        assert calls[0] == calls[1]
    for words in (["predict", model], ["evaluate", model], ["theory", "--task", "chunking", "--data"]):
        by_name, by_pipe = program(*words, sentences / "test"), piped(sentences / "test", *words, "-")
        assert by_name[0] == by_pipe[0] == 0
        assert by_name[1].replace(str(sentences / "test"), "-").split() == by_pipe[1].split()
    assert piped(model, "predict", "-", sentences / "test") == program("predict", model, sentences / "test")
    assert piped(model, *training(sentences, tmp_path / "n", "--init", "-"))[0] == 0
    code, _, err = piped(sentences / "train", *training(sentences, tmp_path / "o", "--dev", "-", "--test", "-"))
    assert (code, "standard input (-) can be read only once" in err) == (2, True)


def test_tune_keeps_standard_input_for_all_its_processes(sentences, tmp_path, monkeypatch):
    from sparsezo.cli.tune import kept_input
    from sparsezo.tasks.loading import Files

    given = Files((str(sentences / "train"),), "-", None, {"template": "-", "min_count": 2})
    monkeypatch.setattr(sys, "stdin", Piped(sentences / "dev"))
    kept = kept_input(given, tmp_path)
    place = str(tmp_path / "standard-input")
    assert kept == Files(given.train, place, None, {"template": place, "min_count": 2})
    assert Path(place).read_bytes() == (sentences / "dev").read_bytes()
    assert kept_input(kept, tmp_path) == kept  # nothing to read


# To insist


def test_insist_holds_for_a_command_and_no_longer(program, model, sentences, monkeypatch):
    monkeypatch.delenv(limits.VARIABLE, raising=False)
    monkeypatch.setattr(limits, "LINE", 10)
    code, _, err = program("evaluate", model, sentences / "test")
    assert (code, err.rstrip().endswith("if it is meant, add --insist")) == (1, True)
    code, _, err = program("evaluate", model, sentences / "test", "--insist")
    assert code == 0, err
    assert not limits.insisted()
    monkeypatch.setenv(limits.VARIABLE, "1")
    assert program("evaluate", model, sentences / "test")[0] == 0


# A model to start from


def test_training_starts_from_a_model(program, model, sentences, tmp_path, monkeypatch):
    words = ["train", "chunking", "--train", sentences / "dev", "--iterations", "20", "--h", "1e-30", "--init", model]
    code, _, err = program(*words, "-o", tmp_path / "m")
    assert code == 0, err
    old, new = load_model(model), load_model(tmp_path / "m")
    place = {name: number for number, name in enumerate(old.task.feature_names())}
    found = [(place[name], row) for row, name in enumerate(new.task.feature_names()) if name in place]
    n, K = new.task.n_features, new.task.n_labels
    said = f"starting from {model}: {len(found):,} of {n:,} features and {K} of {K} labels found again"
    assert said in err.splitlines()[:2]  # behind the remark that such an h is for constant steps
    assert 0 < len(found) < n
    assert old.W.any()
    wanted = np.zeros_like(new.W)
    wanted[[row for _, row in found]] = old.W[[row for row, _ in found]]
    np.testing.assert_allclose(new.W, wanted, atol=1e-20)


def test_a_model_of_another_task_is_no_start(program, model, sentences, tmp_path):
    (tmp_path / "t").write_text("x\ta b\ny\tc d\n")
    for path, message in [
        (model, "is a model of task chunking, not of text"),
        (sentences / "train", "is not a sparsezo mo"),
    ]:
        code, _, err = program("train", "text", "--train", tmp_path / "t", "--init", path, "-o", tmp_path / "m")
        assert (code, message in err, err.count("\n")) == (1, True, 1)
