"""Places to write to and to read: one process at each, devices, pipes, links, what the killed leave, standard input."""

from __future__ import annotations

import io
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from sparsezo.experiments import reproduce as reproducing
from sparsezo.model import load_model
from sparsezo.storage import limits
from sparsezo.storage.locks import locked
from sparsezo.tasks.chunking.generate import chunking_columns, generate_chunking

pytestmark = pytest.mark.usefixtures("plain")


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("chunking")
    for name, n, seed in [("train", 40, 1), ("dev", 10, 2), ("test", 10, 3)]:
        (folder / name).write_text(chunking_columns(generate_chunking(n, seed)))
    return folder


def training(files: Path, output: object, *words: object) -> list[object]:
    return ["train", "chunking", "--train", files / "train", "--iterations", "300", "-o", output, *words]


# One process at a place

HOLDING = """
import sys
from pathlib import Path
from sparsezo.storage.locks import locked
with locked(sys.argv[1]):
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder():
    """Another process that works on a place, until it is killed."""
    processes = []

    def start(place):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDING, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_a_second_training_of_a_model_is_refused_until_the_first_is_dead(program, files, tmp_path, holder):
    output = tmp_path / "m"
    process = holder(output)
    refused = f"sparsezo: {output}: another process is training it; wait for it, or name another place with -o\n"
    assert program(*training(files, output)) == (1, "", refused)
    assert program(*training(files, tmp_path / "other"))[0] == 0
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (tmp_path / ".m.lock").exists()
    assert program(*training(files, output))[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["m", "other"]


@pytest.mark.parametrize("command", ["tune", "reproduce", "scaling"])
def test_a_second_search_or_experiment_in_a_folder_is_refused(program, files, tmp_path, holder, command):
    folder = tmp_path / "results"
    folder.mkdir()
    process = holder(folder)
    words = {
        "tune": ["tune", "chunking", "--train", files / "train", "--dev", files / "dev", "-o", folder],
        "reproduce": ["reproduce", "chunking", "--data", "generated", "-o", folder],
        "scaling": ["reproduce", "scaling", "--quick", "-o", folder],
    }[command]
    refused = f"sparsezo: {folder}: another process is working in it; wait for it, or name another place with -o\n"
    assert program(*words) == (1, "", refused)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with locked(folder):
        pass
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
def test_what_is_wrong_with_the_test_file_is_said_before_the_training(program, files, tmp_path, content, message):
    if content is not None:
        (tmp_path / "test").write_text(content)
    code, _, err = program(*training(files, tmp_path / "m", "--test", tmp_path / "test"))
    assert (code, message in err, "weights" in err) == (1, True, False)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (limits.DataError("test", "is odd"), 1, ["sparsezo: test: is odd; the model is saved, in {m}"]),
        (MemoryError(), 1, ["the model is saved, in {m}", "sparsezo: out of memory; use a higher --min-count, "]),
    ],
)
def test_a_test_that_fails_all_the_same_costs_no_model(program, files, tmp_path, monkeypatch, error, code, said):
    from sparsezo.tasks.chunking.task import Chunking

    def fail(*_):
        raise error

    monkeypatch.setattr(Chunking, "scores", fail)
    found, _, err = program(*training(files, tmp_path / "m", "--test", files / "test"))
    lines = err.splitlines()[-len(said) :]
    assert found == code
    assert all(line.startswith(start.format(m=tmp_path / "m")) for line, start in zip(lines, said, strict=True))
    assert load_model(tmp_path / "m").result["test"] is None
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["m"]


# Devices, pipes and links


def test_a_model_for_a_device_is_written_through_without_anything_beside_it(program, files):
    before = set(os.listdir("/dev"))
    code, _, err = program(*training(files, "/dev/null", "--checkpoint-seconds", "0"))
    assert (code, err.splitlines()[-1]) == (0, "wrote /dev/null")
    assert "no checkpoints" in err
    assert set(os.listdir("/dev")) == before
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    code, _, err = program(*training(files, "/dev/null", "--resume"))
    assert (code, "has no checkpoint to go on from" in err) == (2, True)


def test_a_model_goes_through_a_pipe(program, files, tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    assert program(*training(files, pipe))[0] == 0
    reader.join()
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    (tmp_path / "m").write_bytes(got[0])
    assert program(*training(files, tmp_path / "same"))[0] == 0
    np.testing.assert_array_equal(load_model(tmp_path / "m").W, load_model(tmp_path / "same").W)


def test_of_a_link_the_file_behind_it_is_replaced(program, files, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "m")
    assert program(*training(files, tmp_path / "link"))[0] == 0
    assert (tmp_path / "link").is_symlink()
    assert load_model(tmp_path / "there" / "m").result["iterations"] == 300


def run(line: str, **names: object) -> subprocess.CompletedProcess[bytes]:
    words = {name: str(value) for name, value in names.items()}
    program = {"SPARSEZO": f"{sys.executable} -m sparsezo"}
    return subprocess.run(
        ["bash", "-c", line], env={**os.environ, **program, **words}, capture_output=True, timeout=120
    )


@pytest.fixture(scope="module")
def model(files, tmp_path_factory) -> Path:
    from sparsezo.settings import Settings
    from sparsezo.tasks.chunking.conll import read_conll
    from sparsezo.tasks.chunking.task import Chunking
    from sparsezo.tasks.loading import Data
    from sparsezo.training import Training

    path = tmp_path_factory.mktemp("model") / "m"
    task, train = Chunking.fit(read_conll(str(files / "train")))
    Training(task, Data(train), Settings(), 100).go().model.save(path)
    return path


def test_predictions_for_standard_output_join_what_is_there(model, files, tmp_path):
    """Opened once more, the file behind it would begin anew."""
    names = {"M": model, "IN": files / "test", "OUT": tmp_path / "out"}
    done = run("echo before > $OUT; $SPARSEZO predict $M $IN -o /dev/stdout >> $OUT; echo after >> $OUT", **names)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "out").read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    piped = run("$SPARSEZO predict $M $IN -o /dev/stdout | cat", **names).stdout.decode().splitlines()
    assert piped == lines[1:-1]
    assert len(piped) > 50


def test_train_writes_no_model_into_its_summary(files):
    done = run("$SPARSEZO train chunking --train $T --iterations 10 -o /dev/stdout | cat", T=files / "train")
    assert (done.stdout, done.stderr) == (
        b"",
        b"sparsezo: -o /dev/stdout: is where the summary goes; name a file or a pipe\n",
    )


# What the killed leave behind

KILLED = """
import os, signal, sys
from pathlib import Path
from sparsezo.storage.files import atomic_write
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
with atomic_write(sys.argv[1]) as out:
    out.write(b"half of it")
"""


def killed_while_writing(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)])
    assert done.returncode == -signal.SIGKILL
    assert [each for each in path.parent.iterdir() if each.name.startswith(f".{path.name}.") and each.suffix == ".tmp"]


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob(".*"))


def test_the_next_training_removes_what_a_killed_one_left(program, files, tmp_path):
    for name in ("m", "m.checkpoint", "other"):
        killed_while_writing(tmp_path / name)
    assert program(*training(files, tmp_path / "m"))[0] == 0
    assert [name[:7] for name in left(tmp_path)] == [".other."]  # which may be somebody's who is about to come back


def test_the_next_sweep_removes_what_a_killed_one_left(tmp_path, monkeypatch):
    folder = tmp_path / "results"
    killed_while_writing(folder / "runs" / "0123" / "model.szo")
    killed_while_writing(folder / "tuning.json")
    seen = []
    monkeypatch.setattr(reproducing, "_reproduce", lambda *_, **__: seen.append(left(folder)) or [])
    reproducing.reproduce("chunking", "generated", out=folder, iterations=10, phases=["fixed"])
    assert seen == [[".lock"]]
    assert left(folder) == []


# Standard input


class Piped:
    def __init__(self, path: Path) -> None:
        self.buffer = io.BytesIO(path.read_bytes())


def test_every_command_reads_standard_input(program, files, model, tmp_path, monkeypatch):
    def piped(path, *words):
        monkeypatch.setattr(sys, "stdin", Piped(path))
        return program(*words)

    for part in ("train", "dev", "test"):
        plain = {"train": files / "train", "dev": files / "dev", "test": files / "test"}
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
        by_name, by_pipe = program(*words, files / "test"), piped(files / "test", *words, "-")
        assert by_name[0] == by_pipe[0] == 0
        assert by_name[1].replace(str(files / "test"), "-").split() == by_pipe[1].split()
    assert piped(model, "predict", "-", files / "test") == program("predict", model, files / "test")
    assert piped(model, *training(files, tmp_path / "n", "--init", "-"))[0] == 0
    code, _, err = piped(files / "train", *training(files, tmp_path / "o", "--dev", "-", "--test", "-"))
    assert (code, "standard input (-) can be read only once" in err) == (2, True)


def test_tune_keeps_standard_input_for_all_its_processes(files, tmp_path, monkeypatch):
    from sparsezo.cli.tune import kept_input
    from sparsezo.tasks.loading import Files

    given = Files((str(files / "train"),), "-", None, {"template": "-", "min_count": 2})
    monkeypatch.setattr(sys, "stdin", Piped(files / "dev"))
    kept = kept_input(given, tmp_path)
    place = str(tmp_path / "standard-input")
    assert kept == Files(given.train, place, None, {"template": place, "min_count": 2})
    assert Path(place).read_bytes() == (files / "dev").read_bytes()
    assert kept_input(kept, tmp_path) == kept  # nothing to read


# To insist


def test_insist_holds_for_a_command_and_no_longer(program, model, files, monkeypatch):
    monkeypatch.delenv(limits.VARIABLE, raising=False)
    monkeypatch.setattr(limits, "LINE", 10)
    code, _, err = program("evaluate", model, files / "test")
    assert (code, err.rstrip().endswith("if it is meant, add --insist")) == (1, True)
    code, _, err = program("evaluate", model, files / "test", "--insist")
    assert code == 0, err
    assert not limits.insisted()
    monkeypatch.setenv(limits.VARIABLE, "1")
    assert program("evaluate", model, files / "test")[0] == 0


@pytest.mark.parametrize("command", ["train chunking", "tune text", "predict", "evaluate", "reproduce", "theory"])
def test_commands_that_read_can_be_insisted_on(commands, command):
    assert any("--insist" in param.opts for param in commands[command].params)


def test_reproduce_hands_it_on(program, monkeypatch):
    from sparsezo.cli import reproduce

    seen = []
    monkeypatch.setattr(reproduce, "run_reproduce", lambda *_, **__: seen.append(limits.insisted()))
    monkeypatch.delenv(limits.VARIABLE, raising=False)
    assert program("reproduce", "smt", "--insist")[0] == program("reproduce", "smt")[0] == 0
    assert seen == [True, False]


# A model to start from


def test_training_starts_from_a_model(program, model, files, tmp_path, monkeypatch):
    words = ["train", "chunking", "--train", files / "dev", "--iterations", "20", "--h", "1e-30", "--init", model]
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


def test_a_model_of_another_task_is_no_start(program, model, files, tmp_path):
    (tmp_path / "t").write_text("x\ta b\ny\tc d\n")
    for path, message in [
        (model, "is a model of task chunking, not of text"),
        (files / "train", "is not a sparsezo mo"),
    ]:
        code, _, err = program("train", "text", "--train", tmp_path / "t", "--init", path, "-o", tmp_path / "m")
        assert (code, message in err, err.count("\n")) == (1, True, 1)


def test_rerank_starts_from_a_model_or_from_a_decoders_weights(program, tmp_path, monkeypatch):
    """By what the file is: a model that train wrote, or a decoder's."""
    from sparsezo.tasks.rerank.task import Reranking

    monkeypatch.setattr(Reranking, "feature_names", lambda task: task.names, raising=False)
    monkeypatch.setattr(Reranking, "label_names", lambda task: ("score",), raising=False)
    lists = "0 ||| a b c d ||| LM=1 TM=2 ||| 0\n0 ||| a b ||| LM=2 TM=1 ||| 0\n"
    for name in ("one", "two"):
        text = lists if name == "one" else lists.replace("TM", "New")
        (tmp_path / f"{name}.nbest").write_text(text)
        (tmp_path / f"{name}.ref").write_text("a b c d\n")
    (tmp_path / "weights").write_text("LM 0.5\nTM -0.25\n")
    words = ["--h", "1e-30", "--iterations", "5", "--store", tmp_path / "store"]

    def weights_from(start, lists, output):
        code, _, err = program(
            "train", "rerank", "--train", tmp_path / f"{lists}.nbest", "--init", start, *words, "-o", output
        )
        assert code == 0, err
        model = load_model(output)
        return dict(zip(model.task.names, model.W[:, 0].tolist(), strict=True)), err

    assert weights_from(tmp_path / "weights", "one", tmp_path / "m")[0] == {"LM": 0.5, "TM": -0.25}
    found, err = weights_from(tmp_path / "m", "two", tmp_path / "n")
    assert found == {"LM": 0.5, "New": 0}
    assert f"starting from {tmp_path / 'm'}: 1 of 2 features and 1 of 1 labels found again" in err
