"""What goes wrong is one line on standard error and an exit code; what a person asks of the program itself."""

from __future__ import annotations

import pytest

from sparsezo.cli import train, with_flags
from sparsezo.errors import DataError, SparsezoError, UsageError

pytestmark = pytest.mark.usefixtures("plain")


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
    monkeypatch.setattr(train, "run_train", failing(error))
    assert program("train", "chunking", "--train", "a", "-o", "m") == (code, "", f"sparsezo: {line}\n")


def test_a_mistake_in_the_program_is_not_hidden(program, monkeypatch):
    monkeypatch.setattr(train, "run_train", failing(ZeroDivisionError("a mistake")))
    with pytest.raises(ZeroDivisionError, match="a mistake"):
        program("train", "chunking", "--train", "a", "-o", "m")


@pytest.mark.parametrize(
    ("library", "person"),
    [
        ("`h` 0: must be positive", "--h 0: must be positive"),
        ("leave out `min_count` and `dev`", "leave out --min-count and --dev"),
        ("a `Word`, a `two words` and `-o`", "a `Word`, a `two words` and `-o`"),
    ],
)
def test_settings_of_the_library_are_flags_here(program, monkeypatch, library, person):
    assert with_flags(library) == person
    monkeypatch.setattr(train, "run_train", failing(UsageError(library)))
    assert program("train", "chunking", "--train", "a", "-o", "m") == (2, "", f"sparsezo: {person}\n")


def test_the_version_is_printed(program):
    from sparsezo import __version__

    assert program("--version") == (0, f"sparsezo {__version__}\n", "")


@pytest.mark.parametrize("words", [(), ("train",), ("tune",), ("data",)])
def test_no_command_is_a_question(program, words):
    code, out, err = program(*words)
    assert (code, f"Usage: {' '.join(['sparsezo', *words])} " in out + err) == (2, True)
