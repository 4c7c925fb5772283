"""Questions in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.query_learner import QueryLearner
from sparsezo.questions import Question
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.registry import task_spec
from sparsezo.tasks.rerank.io.importing import import_nbest
from sparsezo.tasks.rerank.task import Reranking
from sparsezo.tasks.text.io.documents import read_documents
from sparsezo.tasks.text.task import TextClassification

WORDS = ["the", "dog", "saw", "San", "Sebastián"]


def corpus(tags):
    return Corpus("here", (WORDS,), tags, np.array([0, 5]))


def question(kind, numbers, about="token", outputs=(), choices=()):
    shown = tuple(np.array(output, np.int32) for output in outputs)
    return Question("me", 0, 0, kind, about, numbers, shown, 1.0, tuple(choices), tuple(range(len(choices))))


@pytest.mark.parametrize(
    ("tag", "about", "place", "text"),
    [
        ("B-NP", "token", (0, 0), "Is 'the' the first word of a noun phrase (NP)?"),
        ("I-NP", "token", (1, 1), "Is 'dog' a later word of a noun phrase (NP)?"),
        ("O", "token", (0, 0), "Is 'the' none of these: a place (LOC) or a noun phrase (NP)?"),
        ("B-LOC", "token", (3, 3), "Is 'San' the first word of a place (LOC)?"),
        ("B-LOC", "chunk", (3, 4), "Is 'San Sebastián' a place (LOC)?"),
        ("B-NP", "chunk", (0, 1), "Is 'the dog' a noun phrase (NP)?"),
    ],
)
def test_a_part_of_a_sentence(tag, about, place, text):
    task, data = Chunking.fit(corpus(["B-NP", "I-NP", "O", "B-LOC", "I-LOC"]))
    numbers = (place[0], task.tags.index(tag), place[1], 0)
    found = task_spec("chunking").shown(task, data, question("part", numbers, about))
    part = " ".join(WORDS[place[0] : place[1] + 1])
    shown = {"words": WORDS, "first": place[0], "last": place[1], "part": part, "tag": tag, "question": text}
    assert found == shown


def test_labels_pairs_and_plain_tags():
    task, data = Chunking.fit(corpus(["B-NP", "I-NP", "O", "B-LOC", "I-LOC"]))
    label = question("label", (0, 0, 0, 0), choices=task.tags)
    text = "What is 'the': a word of a place (LOC) or a noun phrase (NP), or of none of these?"
    assert task_spec("chunking").shown(task, data, label)["question"] == text
    label = question("label", (3, 0, 4, 0), "chunk", choices=("LOC", "NP", "O"))
    text = "What is 'San Sebastián': a place (LOC) or a noun phrase (NP), or none of these?"
    assert task_spec("chunking").shown(task, data, label)["question"] == text
    pair = question("pair", (0, 0, 0, 0), outputs=[[2, 3, 4, 0, 1], [4, 4, 4, 4, 4]])
    outputs = task_spec("chunking").shown(task, data, pair)["outputs"]
    assert outputs == [["B-NP", "I-NP", "O", "B-LOC", "I-LOC"], ["O"] * 5]
    rate = task_spec("chunking").shown(task, data, question("rate", (0, 0, 0, 0), outputs=[[2, 3, 4, 0, 1]]))
    text = "How bad is this, from 0 (all right) to 1 (all wrong)?"
    assert rate == {"words": WORDS, "outputs": [["B-NP", "I-NP", "O", "B-LOC", "I-LOC"]], "question": text}
    task, data = Chunking.fit(corpus(["DT", "NN", "VB", "NN", "NN"]))
    part = question("part", (1, task.tags.index("NN"), 1, 0))
    assert task_spec("chunking").shown(task, data, part)["question"] == "Is 'dog' a NN?"


def test_documents(put):
    path = put("train.tsv", "sci\tatoms and stars\nrec\tball and goal\ntalk\tguns and god\n")
    task, data = TextClassification.fit(read_documents(path), min_count=1)
    k = task.classes.index("sci")
    show = task_spec("text").shown
    part = show(task, data, question("part", (0, k, 0, 0)))
    assert part == {"document": "atoms and stars", "class": "sci", "question": "Is this about sci?"}
    label = question("label", (0, 0, 0, 0), choices=task.classes)
    assert show(task, data, label)["question"] == "What is this about: rec, sci, talk?"
    assert show(task, data, question("pair", (0, 0, 0, 0), outputs=[[k], [0]]))["classes"] == ["sci", "rec"]
    assert show(task, data, question("rate", (0, 0, 0, 0), outputs=[[k]]))["classes"] == ["sci"]


def test_translations(tmp_path, put):
    lists = put("train.nbest", "0 ||| a house ||| LM=-1 ||| 1\n0 ||| the house ||| LM=-2 ||| 2\n")
    (tmp_path / "train.ref").write_text("the house\n", "utf-8")
    store = import_nbest(lists, store_dir=tmp_path / "stores")
    task = Reranking.fit(store)
    learner = QueryLearner(task.problem(store, asks=True), Settings.complete({"rule": "pair"}, task.defaults))
    found = task_spec("rerank").shown(task, store, learner.ask())
    assert sorted(found["hypotheses"]) == ["a house", "the house"]


def test_a_task_that_asks_nothing():
    with pytest.raises(UsageError, match="asks no questions"):
        replace(task_spec("text"), asks=(), serving_module=None).shown(None, None, None)


def test_articles_and_words_of_types():
    task, data = Chunking.fit(Corpus("here", (WORDS,), None, np.array([0, 5])), tags="ORG=Organisation,GENE,LOC")
    asked = [
        task_spec("chunking").shown(task, data, question("span", (3, task.tags.index(tag), 4, 0), "chunk"))["question"]
        for tag in ("B-ORG", "B-GENE", "B-LOC")
    ]
    assert asked == [
        "Is 'San Sebastián' an Organisation (ORG)?",
        "Is 'San Sebastián' a GENE?",
        "Is 'San Sebastián' a place (LOC)?",
    ]
