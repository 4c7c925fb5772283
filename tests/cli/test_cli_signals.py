"""Ctrl-C, SIGTERM and kill, as real signals to a real process: exit codes, and going on bit for bit.

A shell may have its background jobs ignore SIGINT, and so may nohup: the processes here set the signal themselves.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from sparsezo.cli import show

PROGRAM = [sys.executable, "-m", "sparsezo"]
HANG = 120  # seconds after which a process that should have done something is taken to hang


def training(sentences: Path, output: Path, iterations: str) -> list[str]:
    """Looks at dev every 300 steps, and a checkpoint after each of these slices."""
    data = ["--train", str(sentences / "train"), "--dev", str(sentences / "dev")]
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
def test_stopped_it_goes_on_bit_for_bit(program, sentences, tmp_path, number, code):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    words = training(sentences, stopped, "3000")
    assert program(*training(sentences, whole, "3000"))[0] == 0
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


# The program, which is sent a signal (the first word) while LLVM has called back: an exception there is lost.
CALLED_BACK = """
import os, sys
from numba.core import codegen
from sparsezo.cli import main

number = int(sys.argv.pop(1))
compiled = codegen.CPUCodeLibrary._object_compiled_hook

def hook(cls, *args):
    os.kill(os.getpid(), number)
    print("called back", flush=True)
    return compiled(*args)

codegen.CPUCodeLibrary._object_compiled_hook = classmethod(hook)
main()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_the_middle_of_the_first_compiling_ends_as_any_other(tmp_path, number, code):
    (tmp_path / "a").write_text("1 1:1 2:0.5\n2 2:1 3:0.2\n")
    words = ["train", "text", "--train", "a", "--dev", "a", "-o", "m"]
    (tmp_path / "cold").mkdir(mode=0o700)
    done = subprocess.run(
        [sys.executable, "-c", CALLED_BACK, str(int(number)), *words],
        cwd=tmp_path,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cold")},
        capture_output=True,
        text=True,
        preexec_fn=as_at_a_terminal,
        timeout=HANG,
    )
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.startswith("called back\n")


def test_where_ctrl_c_is_ignored_the_run_goes_on(program, sentences, tmp_path, monkeypatch):
    """nohup, and a shell's background jobs."""

    @contextmanager
    def interrupting(*_):
        yield lambda now: os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(show, "training_progress", interrupting)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code, _, err = program(*training(sentences, tmp_path / "m", "1000"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert (code, "stopped" in err) == (0, False)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
