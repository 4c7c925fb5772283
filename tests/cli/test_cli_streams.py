"""Standard output and error that are closed, full, gone or know no more than ASCII; signals in the first moments.

Real processes. A shell may have its background jobs ignore SIGINT: those here set the signal themselves.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-m", "sparsezo"]
ASCII = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
needs_dev_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A line of sh, with $SPARSEZO for the program; in a session of its own."""
    words = {"SPARSEZO": " ".join(PROGRAM), **environment}
    return subprocess.run(
        ["sh", "-c", line], env={**os.environ, **words}, capture_output=True, start_new_session=True, timeout=120
    )


def said(done: subprocess.CompletedProcess[bytes]) -> tuple[int, str]:
    return done.returncode, done.stderr.decode()


def test_a_closed_standard_output_is_an_error_not_a_traceback():
    assert said(shell("$SPARSEZO data list >&-")) == (1, "sparsezo: standard output: Bad file descriptor\n")


def test_a_closed_standard_error_changes_nothing_else():
    assert said(shell("$SPARSEZO data path nowhere 2>&-")) == (2, "")
    done = shell("$SPARSEZO --version 2>&-")
    assert (done.returncode, done.stdout[:9]) == (0, b"sparsezo ")


def test_no_file_of_ours_becomes_a_closed_stream(tmp_path):
    """The next file that is opened would get the number of standard output, and what is printed with it."""
    done = shell(f"$SPARSEZO data make chunking -n 5 -o {tmp_path}/made >&- 2>&-")
    assert said(done) == (0, "")
    assert shell(f"$SPARSEZO data make chunking -n 5 -o {tmp_path}/again").returncode == 0
    assert (tmp_path / "made").read_bytes() == (tmp_path / "again").read_bytes()


@needs_dev_full
@pytest.mark.parametrize("words", ["--version", "theory", "theory --json"])
def test_a_full_disk_under_standard_output_is_one_line(words):
    full = (1, "sparsezo: standard output: No space left on device\n")
    assert said(shell(f"$SPARSEZO {words} >/dev/full")) == full


@pytest.mark.parametrize("words", ["data list", "--help", "theory --json"])
def test_a_reader_that_has_gone_is_no_news(words):
    done = shell(f"$SPARSEZO {words} | true; echo")
    assert done.stderr == b""


def test_remarks_that_nobody_reads_do_not_stop_the_work(tmp_path):
    """``2>&1 | head -1`` must not end a run of hours."""
    assert shell(f"$SPARSEZO data make chunking -n 10 -o {tmp_path}/train").returncode == 0
    words = f"train chunking --train {tmp_path}/train --iterations 2000 -o {tmp_path}/m --json"
    done = shell(f"{{ $SPARSEZO {words} >{tmp_path}/json; }} 2>&1 | true")
    assert done.stderr == b""
    assert (tmp_path / "m").exists()
    assert (tmp_path / "json").read_text().endswith("}\n")


WORDS = "Übergröße NN B-NP\nist VB O\n²³ CD B-NP\n\n" * 8


def test_an_ascii_terminal_gets_escapes_and_files_get_utf_8(tmp_path):
    (tmp_path / "train").write_text(WORDS, "utf-8")
    (tmp_path / "in").write_text(WORDS.replace(" B-NP", "").replace(" O", ""), "utf-8")
    model = f"{tmp_path}/m"
    done = shell(f"$SPARSEZO train chunking --train {tmp_path}/train --iterations 50 -o {model}", **ASCII)
    assert done.returncode == 0, done.stderr
    done = shell(f"$SPARSEZO predict {model} {tmp_path}/in", **ASCII)  # a pipe: data, as a file would have it
    assert (done.returncode, done.stdout.decode("utf-8").split()[0]) == (0, "Übergröße")
    code, line = said(shell("$SPARSEZO data path ²", **ASCII))
    assert (code, line[:27], line.isascii(), line.count("\n")) == (2, "sparsezo: collection \\udcc2", True, 1)


# The program, which gets a signal (the second word) when it is about to import a module (the first).
IMPORTING = """
import os, signal, sys
name, number = sys.argv[1:3]
signal.signal(signal.SIGINT, signal.default_int_handler)

class Stopping:
    def find_spec(self, wanted, *_):
        if wanted == name:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), int(number))

sys.meta_path.insert(0, Stopping())
sys.argv[1:] = sys.argv[3:]
from sparsezo.cli import main
main()
"""


@pytest.mark.parametrize("module", ["sparsezo.cli.app", "numba"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_the_first_moments_ends_without_a_word(module, number, code):
    words = ["theory", "--task", "chunking", "--data", "nowhere"]
    command = [sys.executable, "-c", IMPORTING, module, str(int(number)), *words]
    done = subprocess.run(command, capture_output=True, text=True, start_new_session=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
