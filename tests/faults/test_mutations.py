"""The damage itself: the same for the same number, and never none at all for long."""

from __future__ import annotations

import json

import numpy as np
import pytest
from array_mutations import damaged_zip, npy, zipped
from mutations import Anything, damaged, damaged_json, damaged_text, endure

from sparsezo.errors import DataError

TEXT = b"He PRP B-NP\nsaw VBD O 12\n\nher 3.5:7 O\n"
ARRAYS = zipped(
    {
        "meta.npy": npy(np.frombuffer(json.dumps({"a": [1, {"b": 2}]}).encode(), np.uint8)),
        "W.npy": npy(np.zeros((3, 2))),
    }
)


@pytest.mark.parametrize(
    ("damage", "data"),
    [(damaged, TEXT), (damaged_text, TEXT), (damaged_json, b'{"a": [1, 2], "b": null}'), (damaged_zip, ARRAYS)],
)
def test_the_same_number_is_the_same_damage(damage, data):
    made = [damage(data, case) for case in range(300)]
    assert made == [damage(data, case) for case in range(300)]
    assert len(set(made)) > 150
    assert sum(each == data for each in made) < 60


def test_faults_are_found():
    def read(data):
        if data == TEXT:
            return "whole"
        if b"\0" in data:
            raise DataError("some", "has a null")
        return "whole"

    endure(read, TEXT, damaged, 50)
    with pytest.raises(pytest.fail.Exception, match="case 0: was read as something else"):
        endure(read, TEXT, damaged, 50, reference=lambda data: "other")
    with pytest.raises(pytest.fail.Exception, match="was read, although 'not a line'"):
        endure(read, TEXT, damaged, 50, reference=_refuse)
    endure(read, TEXT, damaged, 50, reference=lambda data: Anything)
    with pytest.raises(pytest.fail.Exception, match=r"case \d+: UnicodeDecodeError"):
        endure(lambda data: data.decode("ascii"), TEXT, damaged, 50, reference=lambda data: Anything)


def _refuse(data):
    raise ValueError("not a line")


def test_a_hang_is_found(monkeypatch):
    monkeypatch.setattr("mutations.SECONDS", 0.05)

    def read(data):
        while data != TEXT:
            pass

    with pytest.raises(pytest.fail.Exception, match=r"no end within 0\.05 s"):
        endure(read, TEXT, damaged, 1)
