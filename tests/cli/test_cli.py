"""The command line as scripts and people use it: results, exit codes, one line for what is wrong."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from sparsezo.tasks.chunking.synthetic import chunking_columns, generate_chunking

PROGRAM = [sys.executable, "-m", "sparsezo"]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("chunking")
    for name, n, seed in [("train", 300, 1), ("dev", 60, 2), ("test", 80, 3)]:
        (folder / name).write_text(chunking_columns(generate_chunking(n, seed)))
    return folder


def test_train_evaluate_predict(program, files, tmp_path, last_json):
    model = tmp_path / "model.szo"
    data = ["--train", files / "train", "--dev", files / "dev", "--test", files / "test"]
    code, out, _ = program("train", "chunking", *data, "--iterations", "30k", "--h", 0.01, "-o", model, "--json")
    assert code == 0
    trained = last_json(out)
    assert out.count("\n") == 1
    assert trained["iterations"] == 30_000
    assert trained["test"] > 0.55
    assert [p.name for p in tmp_path.iterdir()] == ["model.szo"]

    code, out, _ = program("evaluate", model, files / "test", "--json")
    assert code == 0
    evaluated = last_json(out)
    assert evaluated["f1"] == trained["test"]
    assert {"precision", "recall"} <= set(evaluated)

    code, out, _ = program("predict", model, files / "test")
    assert code == 0
    rows = [line.split(" ") for line in out.splitlines()]
    given = [line.split(" ") for line in (files / "test").read_text().splitlines()]
    assert [row[:3] for row in rows if row != [""]] == [row for row in given if row != [""]]
    assert {row[3] for row in rows if row != [""]} <= {"B-NP", "I-NP", "O"}
    untagged = tmp_path / "untagged"
    untagged.write_text("".join(" ".join(row[:2]) + "\n" for row in given))
    code, out, _ = program("predict", model, untagged, "-o", tmp_path / "predicted")
    assert code == 0
    assert out == ""
    written = (tmp_path / "predicted").read_text().splitlines()
    assert [line.split(" ")[-1] for line in written] == [row[-1] for row in rows]


def test_dev_as_a_number_is_the_start_of_train(program, files, tmp_path, last_json):
    """--dev N must be the same run as the two files cut by hand."""
    lines = (files / "train").read_text().split("\n\n")
    (tmp_path / "dev").write_text("\n\n".join(lines[:50]) + "\n\n")
    (tmp_path / "rest").write_text("\n\n".join(lines[50:]))
    common = ["--iterations", "2k", "--json", "-o", tmp_path / "m", "--force"]
    _, number, _ = program("train", "chunking", "--train", files / "train", "--dev", 50, *common)
    _, two, _ = program("train", "chunking", "--train", tmp_path / "rest", "--dev", tmp_path / "dev", *common)
    timings = {"seconds", "us_per_iteration"}
    first, second = ({k: v for k, v in last_json(out).items() if k not in timings} for out in (number, two))
    assert first == second


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "file: no such file; check the path"),
        ("", "file: holds no token"),
        ("a DT B-NP\n\nb \udcff O\n", "file:3: is not UTF-8"),
    ],
)
def test_bad_training_files(program, tmp_path, content, message):
    if content is not None:
        (tmp_path / "file").write_bytes(content.encode("utf-8", "surrogateescape"))
    code, out, err = program("train", "chunking", "--train", tmp_path / "file", "-o", tmp_path / "model")
    assert code == 1
    assert out == ""
    assert err.startswith("sparsezo: ")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dev", "300"], "--dev 300: "),
        (["--dev", "0"], "--dev 0: hold out at least one"),
        (["--perturb", "all", "--step", "adagrad"], "adagrad with --perturb all"),
        (["--only", "XP"], "no chunk of type 'XP'; the types in it are: NP"),
        (["--order", "3"], "--order 3: choose from 1, 2"),
        (["--min-count", "0"], "--min-count 0: must be a whole number, 1 or more"),
    ],
)
def test_bad_calls(program, files, tmp_path, words, message):
    code, out, err = program("train", "chunking", "--train", files / "train", "-o", tmp_path / "model", *words)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_other_bad_calls(program, files, tmp_path):
    code, _, err = program("train", "parsing", "--train", files / "train", "-o", tmp_path / "m")
    assert (code, "No such command 'parsing'" in err) == (2, True)
    code, _, err = program("train", "chunking", "--train", files / "train", "-o", tmp_path / "no" / "m")
    assert (code, "there is no folder" in err) == (1, True)
    code, _, err = program("evaluate", files / "train", files / "test")
    assert (code, "is not a sparsezo model" in err) == (1, True)
    code, _, err = program("train", "chunking", "--train", files / "train")
    assert (code, "Missing option" in err) == (2, True)
    code, _, err = program("bench", "parsing")
    assert (code, "choose from chunking" in err) == (2, True)
    gone = "sparsezo: bench scaling is gone: it did not pay; docs/scaling.md says why\n"
    assert program("bench", "scaling") == program("bench", "scaling", "--quick") == (2, "", gone)
    assert (
        program("bench", "text", "--quick")[2] == "sparsezo: --quick belongs to reproduce scaling; use fewer --rounds\n"
    )


def test_scores_that_run_away(program, files, tmp_path):
    words = ["--train", files / "dev", "--h", "1e38", "--iterations", "1000", "-o", tmp_path / "m"]
    code, _, err = program("train", "chunking", *words)
    assert code == 1
    assert "the scores or the loss are not finite; --h 1e+38" in err
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk(files, tmp_path):
    """A real one, or nearly: the system lets the process write only 10 kB a file."""
    words = ["train", "chunking", "--train", str(files / "dev"), "--iterations", "100", "-o"]
    subprocess.run(
        [*PROGRAM, *words, str(tmp_path / "first")], check=True, capture_output=True
    )  # compiled code is there
    (tmp_path / "first").unlink()
    done = subprocess.run(
        [*PROGRAM, *words, str(tmp_path / "m")],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)),
    )
    assert done.returncode == 1
    assert "cannot be written (File too large); free some space" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_second_process_compiles_nothing(files, tmp_path):
    command = [*PROGRAM, "train", "chunking", "--train", str(files / "dev"), "--dev", "10", "--iterations", "200"]
    environment = {**os.environ, "NUMBA_DEBUG_CACHE": "1"}
    for name in ("first", "second"):
        done = subprocess.run(
            [*command, "-o", str(tmp_path / name)], capture_output=True, text=True, check=True, env=environment
        )
    assert "data loaded" in done.stdout
    assert "saved" not in done.stdout
