"""What CoNLL-2000's part-of-speech column is worth: the benchmark's pieces, and its published figures."""

from __future__ import annotations

import csv
import gzip
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from sparsezo.experiments.plan import builtin
from sparsezo.tasks.chunking.conll import Corpus, read_conll

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def words():
    spec = importlib.util.spec_from_file_location("words_benchmark", ROOT / "benchmarks" / "words.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def corpus(parts_of_speech: str, tags: str) -> Corpus:
    parts = parts_of_speech.split()
    return Corpus("x", (["w"] * len(parts), parts), tags.split(), np.array([0, len(parts)]))


def test_each_part_of_speech_has_its_most_frequent_tag(words):
    parts = ["N", "N", "N", "D", "V", "V"]
    assert words.most_frequent_tags(parts, ["I", "B", "I", "B", "O", "B"]) == {"N": "I", "D": "B", "V": "B"}


def test_the_table_says_outside_of_what_it_does_not_know(words):
    train = corpus("D N V D N", "B-NP I-NP O B-NP I-NP")
    assert words.from_table(train, train) == 1.0
    assert words.from_table(train, corpus("D N X D", "B-NP I-NP O B-NP")) == 1.0
    half = words.from_table(train, corpus("D N X V", "B-NP I-NP B-NP O"))  # one of two is found, nothing else
    assert half == pytest.approx(2 / 3)


def test_files_keep_words_and_tags_alone(words, tmp_path):
    plan = builtin("answers-chunking")
    for name in (plan.data.train[0], plan.data.test):
        (tmp_path / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(tmp_path / "all" / name, "wt") as stream:
            stream.write("the DT B-NP\ncat NN I-NP\n\nsat VBD O\n")
    words.write_words(tmp_path / "all", tmp_path / "words", plan)
    found = read_conll(tmp_path / "words" / plan.data.test)
    assert found.columns == (["the", "cat", "sat"],)
    assert (found.tags, found.offsets.tolist()) == (["B-NP", "I-NP", "O"], [0, 2, 3])


def test_the_plan_keeps_the_data_and_the_learners_that_are_compared(words):
    plan = words.words_plan(builtin("answers-chunking"), "ner", (10, 20))
    assert plan.data.options == {"only": "NP", "features": "ner", "clusters": "none"}
    assert (plan.looks, plan.answers, plan.seeds) == ((10, 20), 20, (0, 1, 2))
    assert [(each.rule, each.labels) for each in plan.learners] == [
        ("part", None),
        ("label", None),
        ("supervised", "random"),
        ("supervised", "least-confident"),
        ("span", None),
    ]


@pytest.mark.data
def test_the_published_table_from_parts_of_speech_is_what_the_data_gives(words, real_data):
    with open(ROOT / "docs" / "results" / "words" / "words.csv", encoding="utf-8", newline="") as stream:
        (published,) = [row for row in csv.DictReader(stream) if row["learner"] == words.TABLE]
    found = words.table_row(real_data, builtin("answers-chunking"))
    assert published["features"] == found["features"] == "44"
    for name in ("dev_mean", "test_mean"):
        assert float(published[name]) == pytest.approx(found[name])
