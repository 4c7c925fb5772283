"""Remarks: to the log, or wherever they are wanted; one line that a terminal can show."""

from __future__ import annotations

import logging
import subprocess
import sys

from sparsezo import notes


def test_remarks_go_to_the_log(caplog):
    with caplog.at_level(logging.INFO, "sparsezo"):
        notes.say("file:7: 50% of it\nmended")
    assert [(each.name, each.levelname, each.getMessage()) for each in caplog.records] == [
        ("sparsezo", "WARNING", "file:7: 50% of it\\nmended")
    ]


def test_some_remarks_are_made_once():
    said = []
    once = notes.Once(said.append)
    for text in ("one", "two", "one", "two", "three"):
        once(text)
    assert said == ["one", "two", "three"]


def test_remarks_are_gathered(caplog):
    with notes.gathered() as outer:
        notes.say("one")
        with notes.gathered() as inner:
            notes.say("two")
        notes.say("three")
    notes.say("four")
    assert (outer, inner) == (["one", "three"], ["two"])
    assert caplog.messages == ["four"]


def test_the_command_line_shows_them_with_flags():
    code = "from sparsezo import notes, cli; notes.say_with(cli._note); notes.say('9 tags: `min_count` 2')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "9 tags: --min-count 2\n")
