"""Ctrl-C, SIGTERM and kill, as real signals to a real process: exit codes, and going on bit for bit.

A shell may have its background jobs ignore SIGINT, and so may nohup: the processes here set the signal themselves.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from sparsezo.cli import show
from sparsezo.tasks.chunking.generate import chunking_columns, generate_chunking

PROGRAM = [sys.executable, "-m", "sparsezo"]
HANG = 120  # seconds after which a process that should have done something is taken to hang


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("chunking")
    for name, n, seed in [("train", 40, 1), ("dev", 10, 2)]:
        (folder / name).write_text(chunking_columns(generate_chunking(n, seed)))
    return folder


def training(files: Path, output: Path, iterations: str) -> list[str]:
    """Looks at dev every 300 steps, and a checkpoint after each of these slices."""
    data = ["--train", str(files / "train"), "--dev", str(files / "dev")]
    pace = ["--iterations", iterations, "--evaluate-every", "300", "--checkpoint-seconds", "0"]
    return ["train", "chunking", *data, "--perturb", "all", *pace, "-o", str(output)]


def as_at_a_terminal() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})


# The program, which sends itself a signal (the first word) at the first report after step 1000.
STOPPING = """
import contextlib, os, sys
from sparsezo.cli import main, show

@contextlib.contextmanager
def stopping(*_):
    yield lambda now: os.kill(os.getpid(), int(number)) if now.step >= 1000 else None

number = sys.argv.pop(1)
show.training_progress = stopping
main()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_it_goes_on_bit_for_bit(program, files, tmp_path, number, code):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    words = training(files, stopped, "3000")
    assert program(*training(files, whole, "3000"))[0] == 0
    command = [sys.executable, "-c", STOPPING, str(int(number)), *words]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=as_at_a_terminal)
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr
    said = re.findall(r"^stopped at step ([\d,]+); the same command with --resume goes on", done.stderr, re.MULTILINE)
    assert len(said) == (number != signal.SIGKILL)
    left = [".stopped.lock"] if number == signal.SIGKILL else []  # the file, which nobody holds
    assert sorted(path.name for path in tmp_path.iterdir()) == [*left, "stopped.checkpoint", "whole"]

    again, _, err = program(*words)
    assert (again, "an unfinished run is there; add --resume" in err) == (2, True)
    again, _, err = program(*words, "--resume")
    assert again == 0
    at = re.match(r"continuing at step ([\d,]+) ", err)[1]
    assert said == ([] if number == signal.SIGKILL else [at])
    assert 0 < int(at.replace(",", "")) < 3000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stopped", "whole"]
    with np.load(whole) as a, np.load(stopped) as b:
        assert set(a.files) == set(b.files)
        for name in set(a.files) - {"meta"}:
            np.testing.assert_array_equal(a[name], b[name])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_from_outside_saves_and_stops(files, tmp_path, number, code):
    """A run that would not end by itself."""
    checkpoint = tmp_path / "m.checkpoint"
    command = [*PROGRAM, *training(files, tmp_path / "m", "1G")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, preexec_fn=as_at_a_terminal, **pipes) as process:
        try:
            deadline = time.monotonic() + HANG
            while not checkpoint.exists():
                assert process.poll() is None, process.communicate()[1]
                assert time.monotonic() < deadline, "no checkpoint"
                time.sleep(0.01)
            process.send_signal(number)
            out, err = process.communicate(timeout=HANG)
        finally:
            process.kill()
    assert (process.returncode, out) == (code, "")
    assert err.splitlines()[-1].startswith("stopped at step ")
    assert "Traceback" not in err
    assert checkpoint.exists()


def test_where_ctrl_c_is_ignored_the_run_goes_on(program, files, tmp_path, monkeypatch):
    """nohup, and a shell's background jobs."""

    @contextmanager
    def interrupting(*_):
        yield lambda now: os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(show, "training_progress", interrupting)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code, _, err = program(*training(files, tmp_path / "m", "1000"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert (code, "stopped" in err) == (0, False)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_reader_that_has_gone_is_no_news():
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run([*PROGRAM, "data", "list"], stdout=write, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (1, "")
