"""Remarks and errors: one printable line, whatever the data holds; remarks go to the log, or where they are wanted."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from sparsezo import messages
from sparsezo.errors import DamagedError, DataError, SparsezoError, UsageError, one_line, quoted


def test_remarks_go_to_the_log(caplog):
    with caplog.at_level(logging.INFO, "sparsezo"):
        messages.say("file:7: 50% of it\nmended")
    assert [(each.name, each.levelname, each.getMessage()) for each in caplog.records] == [
        ("sparsezo", "WARNING", "file:7: 50% of it\\nmended")
    ]


def test_some_remarks_are_made_once():
    said = []
    once = messages.Once(said.append)
    for text in ("one", "two", "one", "two", "three"):
        once(text)
    assert said == ["one", "two", "three"]


def test_remarks_are_gathered(caplog):
    with messages.gathered() as outer:
        messages.say("one")
        with messages.gathered() as inner:
            messages.say("two")
        messages.say("three")
    messages.say("four")
    assert (outer, inner) == (["one", "three"], ["two"])
    assert caplog.messages == ["four"]


def test_the_command_line_shows_them_with_flags():
    code = "from sparsezo.cli.show import note; from sparsezo.messages import say, say_with"
    code += "; say_with(note); say('9 tags: `min_count` 2')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "9 tags: --min-count 2\n")


def test_a_terminal_is_given_nothing_to_obey():
    message = str(DataError("a\nb.txt:3", "tag '\x1b]0;owned\x07\x9b31m\u202e\r' is odd"))
    assert message == r"a\nb.txt:3: tag '\x1b]0;owned\x07\x9b31m\u202e\r' is odd"
    assert message.isprintable()
    assert str(SparsezoError("née 東京")) == "née 東京"


@pytest.mark.parametrize("size", [1199, 1200, 1201, 70_000])
def test_a_long_message_keeps_its_beginning_and_its_end(size):
    message = "BEGIN" + "x" * (size - 8) + "END"
    shown = one_line(message)
    assert shown.startswith("BEGIN")
    assert shown.endswith("END")
    assert len(shown) == min(size, 1200 - 300 + 7 + 290) or (size <= 1200 and shown == message)
    assert (" [...] " in shown) == (size > 1200)


def test_what_is_quoted_is_cut():
    assert quoted("x" * 40) == "x" * 40
    assert quoted("x" * 41) == "x" * 40 + "..."
    assert quoted(b"\xff" + b"y" * 10_000) == "\ufffd" + "y" * 39 + "..."
    assert quoted("é".encode() * 40) == "é" * 40


def test_standard_input_has_a_name():
    assert str(DataError("-", "is empty")) == "standard input: is empty"
    assert str(DataError("-:3", "is odd")) == "standard input:3: is odd"
    assert str(DataError("-x:3", "is odd")) == "-x:3: is odd"


def test_one_class_for_what_is_damaged():
    error = DamagedError("m.szo", "no weights")
    assert str(error) == "m.szo: is damaged (no weights); make it anew or copy it again"
    assert isinstance(error, DataError)
    assert (error.exit_code, UsageError("x").exit_code) == (1, 2)
