"""What CoNLL-2000's part-of-speech column is worth: the benchmark's pieces, and its published figures."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import pytest

from sparsezo.study.plan import builtin

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def words():
    spec = importlib.util.spec_from_file_location("words_benchmark", ROOT / "benchmarks" / "words.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.data
def test_the_published_table_from_parts_of_speech_is_what_the_data_gives(words, real_data):
    with open(ROOT / "docs" / "results" / "words" / "words.csv", encoding="utf-8", newline="") as stream:
        (published,) = [row for row in csv.DictReader(stream) if row["learner"] == words.TABLE]
    found = words.table_row(real_data, builtin("answers-chunking"))
    assert published["features"] == found["features"] == "44"
    for name in ("dev_mean", "test_mean"):
        assert float(published[name]) == pytest.approx(found[name])
