"""What a run leaves behind, read back: figures to the last bit, and every field of its kind."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from sparsezo.errors import DamagedError
from sparsezo.study.records import read_curve, read_record, write_curve, write_record

POINTS = [(0, 1.0, 0.1), (100, 0.1 + 0.2, math.nan), (250, math.nan, 1e-17)]
FIELDS = {
    "experiment": "mine",
    "task": "chunking",
    "learner": "two-point score",
    "phase": "tuned",
    "seed": 0,
    "settings": {"h": 0.1, "mu": None},
    "iterations": 250,
    "result": {"dev": 0.5},
}


@pytest.fixture
def folder(tmp_path):
    write_curve(tmp_path, POINTS)
    write_record(tmp_path, FIELDS)
    return tmp_path


def test_a_record_and_its_curve(folder):
    record = read_record(folder)
    assert {name: record[name] for name in FIELDS} == FIELDS
    steps, loss, dev, *others = read_curve(folder, record)
    assert len(others) == 9
    for unknown in others:  # of points that do not say
        assert np.isnan(unknown).all()
    assert steps.tolist() == [0, 100, 250]
    assert [repr(x) for x in loss.tolist()] == [repr(point[1]) for point in POINTS]
    assert [repr(x) for x in dev.tolist()] == [repr(point[2]) for point in POINTS]
    assert "nan" not in (folder / "curve.csv").read_text()


def test_a_curve_with_test_and_inputs(tmp_path):
    unknown = [math.nan] * 6
    points = [(0, 1.0, 0.25, 0, math.nan, *unknown, 3), (100, 0.5, math.nan, 7, 0.1 + 0.2, *unknown, 8)]
    write_curve(tmp_path, points)
    assert (tmp_path / "curve.csv").read_text().splitlines()[0] == "iterations,average_loss,dev,answers,test,inputs"
    np.testing.assert_array_equal(np.transpose(read_curve(tmp_path, {})), points)


def test_a_curve_with_what_a_persons_time_goes_to(tmp_path):
    points = [(0, 1.0, 0.25, 0, math.nan, math.nan, 0, 0, 0, 0), (100, 0.5, 0.5, 7, math.nan, math.nan, 150, 90, 9, 80)]
    write_curve(tmp_path, points)
    lines = (tmp_path / "curve.csv").read_text().splitlines()
    assert lines[0] == "iterations,average_loss,dev,answers,tokens,looked,corrections,whole"
    assert lines[2] == "100,0.5,0.5,7,150,90,9,80"
    assert [column.tolist() for column in read_curve(tmp_path, {})[6:10]] == [[0, 150], [0, 90], [0, 9], [0, 80]]


def test_there_is_no_finished_run(tmp_path):
    assert read_record(tmp_path) is None
    assert read_record(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"learner": None}, "its learner is not what a run has"),
        ({"experiment": 3}, "its experiment is not what a run has"),
        ({"phase": "warm"}, "its phase is not what a run has"),
        ({"seed": True}, "its seed is not what a run has"),
        ({"seed": -1}, "its seed is not what a run has"),
        ({"seed": 1.5}, "its seed is not what a run has"),
        ({"iterations": 0}, "its iterations is not what a run has"),
        ({"settings": {"perturb": ["all"]}}, "its settings is not what a run has"),
        ({"result": []}, "its result is not what a run has"),
        ({"paper": "0.5"}, "its paper is not what a run has"),
        ({"paper": math.nan}, "its paper is not what a run has"),
        ({"versions": 3}, "its versions is not what a run has"),
        ({"files": 3}, "its files is not what a run has"),
    ],
)
def test_before_there_were_sums_every_field_is_of_its_kind(folder, change, why):
    (folder / "run.json").write_text(json.dumps(FIELDS | change))
    with pytest.raises(DamagedError) as caught:
        read_record(folder)
    path = folder / "run.json"
    assert str(caught.value) == f"{path}: is damaged ({why}); the command that made it does the run again"


@pytest.mark.parametrize("name", ["experiment", "settings", "result"])
def test_no_field_may_be_missing(folder, name):
    (folder / "run.json").write_text(json.dumps({key: value for key, value in FIELDS.items() if key != name}))
    with pytest.raises(DamagedError, match=f"it has no {name}"):
        read_record(folder)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is cut off"),
        ("iterations,average_loss,dev\n5,1,1\n15,1", "it is cut off"),
        ("iterations,average_loss,dev\n5,1,1\n15,1\n", "it is cut off"),
        ("iterations,average_loss,dev\n", "its iterations do not rise"),
        ("iterations,average_loss,dev\n5,1,1\n5,1,1\n", "its iterations do not rise"),
        ("iterations,average_loss,dev\n-1,1,1\n", "its iterations do not rise"),
        ("iterations,average_loss,dev\nnan,1,1\n", "invalid literal"),
        ("iterations,average_loss,dev\n1" + "0" * 30 + ",1,1\n", "too large"),
        ("iterations,average_loss,dev\n1" + "0" * 5000 + ",1,1\n", "Exceeds the limit"),
        ("iterations,average_loss\n1,1\n", "it has no column 'dev'"),
        ("iterations,average_loss,dev\n1,1," + "1" * 200_000 + "\n", "field larger than field limit"),
    ],
)
def test_before_there_were_sums_a_curve_has_its_form(folder, text, why):
    (folder / "curve.csv").write_text(text)
    with pytest.raises(DamagedError, match=why):
        read_curve(folder, {})
