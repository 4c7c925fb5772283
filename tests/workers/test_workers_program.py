"""train --workers as a program: signals to all of its processes, and what it says of calls that are wrong."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from sparsezo.tasks.chunking.generate import chunking_columns, generate_chunking

# The program, in a group of its own, which sends all of its processes a signal at the first report after step 1000.
STOPPING = """
import contextlib, os, signal, sys
from sparsezo.cli import main, show

@contextlib.contextmanager
def stopping(*_):
    yield lambda now: os.killpg(0, int(number)) if now.step >= 1000 else None

if __name__ == "__main__":
    number = sys.argv.pop(1)
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    show.training_progress = stopping
    main()
"""


def words(folder, output, workers):
    files = ["--train", folder / "train", "--dev", folder / "dev"]
    pace = ["--iterations", "3000", "--evaluate-every", "300", "--batch", "32", "--workers", workers]
    return [*map(str, ["train", "chunking", *files, *pace, "-o", folder / output])]


@pytest.fixture
def folder(tmp_path):
    for name, n, seed in [("train", 40, 1), ("dev", 10, 2)]:
        (tmp_path / name).write_text(chunking_columns(generate_chunking(n, seed)))
    return tmp_path


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_all_processes_saves_the_run_which_one_process_ends(program, folder, number, code):
    assert program(*words(folder, "whole", 1))[0] == 0
    command = [sys.executable, "-c", STOPPING, str(int(number)), *words(folder, "cut", 2)]
    done = subprocess.run(command, capture_output=True, text=True, start_new_session=True)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert re.search(r"^stopped at step 1,\d\d\d; the same command with --resume goes on", done.stderr, re.MULTILINE)
    assert program(*words(folder, "cut", 1), "--resume")[0] == 0
    with np.load(folder / "whole") as whole, np.load(folder / "cut") as cut:
        for name in set(whole.files) - {"meta"}:
            np.testing.assert_array_equal(cut[name], whole[name])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--workers", "2"], "--workers 2: share the steps of a --batch, which has 1; give a larger one, such as 1024"),
        (["--workers", "0"], "--workers 0: must be a whole number, 1 or more"),
        (["--workers", "2000", "--batch", "9999"], "--workers 2000: must be at most 1,024"),
        (["--batch", "8", "--engine", "ray"], "--engine ray is for several --workers, and there is 1; give 2 or more"),
        (["--batch", "8", "--workers", "2", "--ray-address", "auto"], "--ray-address goes with --engine ray"),
        (["--engine", "spark"], "--engine spark: choose from local, ray"),
        (["--batch", "8", "--perturb", "all"], "--batch 8: with --perturb all, sleeping weights are owed their share"),
        (["--batch", "8", "--scorer", "cat"], "--batch 8: a scorer is asked about one step at a time"),
    ],
)
def test_calls_that_are_wrong_are_refused_in_one_line(program, folder, more, said):
    code, _, err = program("train", "chunking", "--train", folder / "train", "-o", folder / "m", *more)
    assert (code, err.count("\n")) == (2, 1)
    assert said in err
