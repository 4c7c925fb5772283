"""Inputs without labels: what is read, what is learned from a named tag set or list of classes, what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparsezo import messages
from sparsezo.errors import DataError, UsageError
from sparsezo.learner import predict
from sparsezo.model import Model, load_model
from sparsezo.query_learner import QueryLearner
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.io.conll import read_conll
from sparsezo.tasks.chunking.io.formats import looks_like_columns
from sparsezo.tasks.chunking.tags import named_tags
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import task_spec
from sparsezo.tasks.rerank.io.importing import import_nbest
from sparsezo.tasks.text.io.documents import named_classes
from sparsezo.tasks.text.task import TextClassification

SENTENCES = [["the", "cat", "sat"], ["a", "dog", "saw", "it"], ["who", "?"]]
POS = {"the": "DT", "a": "DT", "cat": "NN", "dog": "NN", "sat": "VBD", "saw": "VBD", "it": "PRP", "who": "WP", "?": "."}
TAGS = [["B-NP", "I-NP", "O"], ["B-NP", "I-NP", "B-VP", "B-NP"], ["O", "O"]]


def columns(*cells):
    """A column file; each argument gives a token's cell by its sentence and place."""
    lines = ["\n".join(" ".join(cell(s, i) for cell in cells) for i in range(len(SENTENCES[s]))) for s in range(3)]
    return "\n\n".join(lines) + "\n"


def word(s, i):
    return SENTENCES[s][i]


def pos(s, i):
    return POS[word(s, i)]


def tag(s, i):
    return TAGS[s][i]


RAW = {
    "words": (columns(word), "read as columns, 3 sentences, 1 column observed"),
    "words and parts of speech": (columns(word, pos), "read as columns, 3 sentences, 2 columns observed"),
    "lines": ("the cat sat\na dog saw it\nwho ?\n", "raw text, 3 documents, 3 sentences"),
    "with tags": (columns(word, pos, tag), "2 columns observed; the last one's tags are not looked at"),
}


@pytest.fixture
def load(put):
    """load(task, text, ending, **options) -> (Loaded, remarks)"""

    def of(task, text, ending=".txt", dev=None, test=None, **options):
        train = put(f"train{ending}", text)
        with messages.gathered() as remarks:
            return task_spec(task).load(Files((str(train),), dev, test, options)), remarks

    return of


# ---- chunking ----


@pytest.mark.parametrize("name", RAW)
def test_chunking_reads_sentences_without_tags_and_says_how(load, name):
    text, remark = RAW[name]
    loaded, remarks = load("chunking", text, tags="NP")
    train, task = loaded.data.train, loaded.task
    assert task.tags == ("B-NP", "I-NP", "O")
    assert train.columns[0] == [word for sentence in SENTENCES for word in sentence]
    assert train.offsets.tolist() == [0, 3, 7, 9]
    assert len(train.columns) == (2 if "speech" in name or name == "with tags" else 1)
    assert train.tags is None
    assert len([each for each in remarks if remark in each]) == 1
    assert (task.split, task.scheme, task.metric) == ("sentences" if name == "lines" else None, "iob2", "f1")
    with pytest.raises(DataError, match=r"train.txt: has no tags to compare with.*`scorer`"):
        task.gold(train)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb\n\nc\n", True),
        ("a DT\nb NN\n", True),
        ("a b c d\ne f g h\n", False),
        ("a b c d\n\ne f g h\n", True),
        ("one sentence\n", False),
        ("word\n", False),
        ("the cat\nsat on it\n", False),
        ("\n".join(["a DT"] * 30 + ["b"]), True),  # a mistake in columns stays one
        ("-DOCSTART- -X- O\n\na DT\nb NN\n", True),
        ("", True),
    ],
)
def test_columns_are_told_from_running_text(text, expected):
    assert looks_like_columns(text) is expected


def test_the_format_can_be_named(load):
    text = "cats sleep\ndogs bark.\n"
    assert len(load("chunking", text, tags="NP", format="columns")[0].data.train) == 1
    for how, words, offsets in (
        ({}, ["cats", "sleep", "dogs", "bark", "."], [0, 2, 5]),
        ({"format": "text", "split": "spaces"}, ["cats", "sleep", "dogs", "bark."], [0, 2, 4]),
    ):
        loaded, _ = load("chunking", text, tags="NP", **how)
        assert loaded.data.train.columns == (words,)
        assert loaded.data.train.offsets.tolist() == offsets
    with pytest.raises(UsageError, match="name the types of spans to learn with `tags`"):
        load("chunking", text, format="text")
    with pytest.raises(UsageError, match="text has no columns"):
        load("chunking", text, tags="NP", format="text", column="2")


def test_tags_are_named():
    assert named_tags("PER, LOC", "iob2") == ("B-PER", "I-PER", "B-LOC", "I-LOC", "O")
    assert named_tags("O,NOUN,VERB", "plain") == ("NOUN", "VERB", "O")
    assert named_tags(["VERB", "NOUN"], "plain") == ("VERB", "NOUN")
    for given, scheme, why in [
        ("", "iob2", "nothing between two commas"), ("NP,,VP", "iob2", "nothing between"), ("NP,NP", "iob2", "twice"),
        ("B-NP", "iob2", "types of chunks alone"), ("NP,O", "iob2", "types of chunks alone"),
        ("N P", "iob2", "give names"), ("NOUN", "plain", "two or more"),
    ]:  # fmt: skip
        with pytest.raises(UsageError, match=why):
            named_tags(given, scheme)


def test_plain_tags(load):
    loaded, _ = load("chunking", RAW["words"][0], tags="NOUN,VERB,X", scheme="plain")
    assert (loaded.task.tags, loaded.task.metric) == (("NOUN", "VERB", "X"), "accuracy")
    text = columns(word, lambda s, i: "NOUN" if pos(s, i)[0] == "N" else "X")
    loaded, remarks = load("chunking", text, tags="NOUN,VERB,X", scheme="plain")
    assert len(loaded.data.train.columns) == 1
    assert any("tags are not looked at" in each for each in remarks)


def test_conllu_and_crfsuite_without_their_tags(load):
    rows = "\n".join(f"{i + 1}\t{w}\t{w}\tX\tX\t_\t0\troot\t_\t_" for i, w in enumerate(SENTENCES[0])) + "\n\n"
    loaded, remarks = load("chunking", rows, ".conllu", tags="NOUN,X", scheme="plain")
    assert loaded.data.train.columns == (SENTENCES[0],)
    assert loaded.data.train.tags is None
    assert any("column UPOS is not looked at" in each for each in remarks)
    listed = "\n".join(f"O\tw={w}" for w in SENTENCES[0]) + "\n\n"
    loaded, _ = load("chunking", listed, tags="NP")
    assert loaded.data.train.tags is None
    assert loaded.task.listed
    assert loaded.task.feature_names()[:3] == [f"w={w}" for w in SENTENCES[0]]
    with pytest.raises(UsageError, match="`features` has no place"):
        load("chunking", listed, tags="NP", features="ner")


def test_dev_has_labels_and_its_other_types_are_said(load, put):
    dev = put("dev.txt", columns(word, pos, tag))
    raw = RAW["words and parts of speech"][0]
    loaded, remarks = load("chunking", raw, dev=str(dev), tags="NP")
    assert loaded.task.gold(loaded.data.dev).tags.tolist() == [0, 1, 2, 0, 1, 3, 0, 2, 2]  # 3: of another type
    assert [each for each in remarks if "1 tag of type VP, not among `tags`" in each]
    loaded, remarks = load("chunking", raw, dev=str(dev), test=str(dev), tags="NP,VP")
    assert not [each for each in remarks if "not among" in each]
    loaded, _ = load("chunking", raw, dev=str(dev), tags="NP", only="NP")
    assert loaded.task.gold(loaded.data.dev).tags.tolist() == [0, 1, 2, 0, 1, 2, 0, 2, 2]
    with pytest.raises(UsageError, match="`only` NP: leaves no other type"):
        load("chunking", raw, tags="NP,VP", only="NP")
    with pytest.raises(DataError, match="has 3 columns; expected 2, 1 and the tag"):
        load("chunking", RAW["words"][0], dev=str(dev), tags="NP")
    with pytest.raises(UsageError, match=r"`dev` 1: .*has no labels to look at"):
        load("chunking", raw, dev="1", tags="NP")


def test_a_corpus_with_tags_keeps_them_beside_a_named_tag_set(put):
    path = put("train.txt", columns(word, pos, tag))
    task, corpus = Chunking.fit(read_conll(path), tags=["NP"])
    assert task.gold(corpus).tags.tolist() == [0, 1, 2, 0, 1, 3, 0, 2, 2]


@pytest.mark.parametrize("name", ["words", "words and parts of speech", "lines"])
def test_a_model_predicts_files_of_the_same_shape(load, tmp_path, name):
    text, _ = RAW[name]
    loaded, _ = load("chunking", text, tags="NP")
    task = loaded.task
    W = np.random.default_rng(1).normal(size=(task.n_features, task.n_labels)).astype(np.float32)
    Model(task, W, {}, {}, {}).save(tmp_path / "m.szo")
    model = load_model(tmp_path / "m.szo")
    out = "".join(task_spec("chunking").predict(model, str(tmp_path / "train.txt"), {}))
    observed = [word, pos] if name == "words and parts of speech" else [word]
    tags = iter(task.words(predict(task.problem(loaded.data.train, learn=False), W), loaded.data.train.offsets))
    expected = [
        "".join(f"{' '.join(cell(s, i) for cell in observed)} {next(tags)}\n" for i in range(len(SENTENCES[s]))) + "\n"
        for s in range(3)
    ]
    if name != "lines":
        assert out == "".join(expected)
        return
    spans = [json.loads(line) for line in out.splitlines()]  # of texts; which may come as columns as well
    assert [each["text"] for each in spans] == text.splitlines()
    (tmp_path / "columns.txt").write_text(columns(word))
    assert "".join(task_spec("chunking").predict(model, str(tmp_path / "columns.txt"), {})) == "".join(expected)
    (tmp_path / "one.txt").write_text("the cat sat\n")
    (one,) = "".join(task_spec("chunking").predict(model, str(tmp_path / "one.txt"), {})).splitlines()
    assert json.loads(one)["spans"] == spans[0]["spans"]


# ---- text ----

DOCUMENTS = ["the orbit of mars", "a debate about tax", "rocket fuel"]
FORMATS = {
    "lines": (".txt", "\n".join(DOCUMENTS) + "\n", False),
    "lines with TABs": (".txt", "the orbit\tof mars\na debate about tax\nrocket fuel\n", False),
    "labelled": (".tsv", "".join(f"{c}\t{d}\n" for c, d in zip(("sci", "talk", "sci"), DOCUMENTS, strict=True)), True),
    "jsonl": (".jsonl", "".join(json.dumps({"text": each}) + "\n" for each in DOCUMENTS), False),
    "csv": (".csv", "id,text\n" + "".join(f"{i},{each}\n" for i, each in enumerate(DOCUMENTS)), False),
}


@pytest.mark.parametrize("name", FORMATS)
def test_text_reads_documents_without_labels_and_says_how(load, name):
    ending, text, labelled = FORMATS[name]
    loaded, remarks = load("text", text, ending, classes="talk,sci", vectors="none")
    task, train = loaded.task, loaded.data.train
    assert task.classes == ("talk", "sci")
    assert [each.replace("\t", " ") for each in train.documents.texts] == DOCUMENTS
    assert train.documents.labels is None
    assert sorted(task.feature_names()) == sorted({*" ".join(DOCUMENTS).split()} - {"a"})
    assert [each for each in remarks if "3 documents without labels, texts" in each]
    assert any("labels are not looked at" in each for each in remarks) is labelled
    with pytest.raises(DataError, match=r"has no labels;.*`scorer`"):
        task.gold(train)
    learner = QueryLearner(task.problem(train, asks=True), Settings.complete({"rule": "label"}, task.defaults))
    learner.tell(learner.ask(), "sci")


@pytest.mark.parametrize("label", ["0 ", "", "sci "])
def test_vectors_without_labels(load, tmp_path, label):
    text = "".join(f"{label}{pairs}\n" for pairs in ("1:0.5 7:1", "2:1", "1:2 3:4"))
    loaded, remarks = load("text", text, ".dat", classes="talk,sci")
    assert loaded.task.feature_names() == ["1", "2", "3", "7"]
    assert len(loaded.data.train) == 3
    assert [each for each in remarks if "vectors" in each]
    W = np.zeros((4, 2), np.float32)
    W[1, 1] = 1  # index 2 speaks for sci
    model = Model(loaded.task, W, {}, {}, {})
    assert list(task_spec("text").predict(model, str(tmp_path / "train.dat"), {})) == ["talk\n", "sci\n", "talk\n"]


def test_classes_are_named():
    assert named_classes(" sci , talk") == ("sci", "talk")
    for given, why in [("sci", "two or more"), ("sci,", "nothing between"), ("a,a", "twice"), (["a\tb", "c"], "names")]:
        with pytest.raises(UsageError, match=why):
            named_classes(given)


def test_dev_of_text_has_labels_among_the_classes(load, put):
    dev = put("dev.tsv", "sci\tan orbit\ntalk\ta tax\n")
    loaded, _ = load("text", "\n".join(DOCUMENTS), dev=str(dev), classes="talk,sci", vectors="none")
    assert loaded.task.gold(loaded.data.dev).labels.tolist() == [1, 0]
    with pytest.raises(UsageError, match=r"`dev` 1: .*has no labels to look at"):
        load("text", "\n".join(DOCUMENTS), dev="1", classes="talk,sci")
    assert TextClassification.fit(loaded.data.dev.documents, classes=["sci", "talk"])[0].classes == ("sci", "talk")


# ---- reranking ----


def test_lists_without_references(tmp_path):
    lists = tmp_path / "train.nbest"
    task_spec("rerank").synthetic().write(lists, tmp_path / "weights", 5, 1, None)
    with_them = import_nbest(lists, store_dir=tmp_path / "stores")
    references = tmp_path / "train.ref"
    references.rename(tmp_path / "elsewhere.ref")
    with pytest.raises(DataError, match="no such file"):
        import_nbest(lists, store_dir=tmp_path / "stores")
    for _ in range(2):  # built, and found again
        with messages.gathered() as remarks:
            loaded = task_spec("rerank").load(Files((str(lists),), None, None, {"store": str(tmp_path / "stores")}))
        assert [each for each in remarks if "train.ref is not there, so these are lists without references" in each]
        task, store = loaded.task, loaded.data.train
        assert (store.n_references, store.references) == (0, ())
        np.testing.assert_array_equal(store.features, with_them.features)
        with pytest.raises(DataError, match=r"train.nbest: its lists have no references.*`scorer`"):
            task.gold(store)
        with pytest.raises(DataError, match=r"train.nbest: its lists have no references"):
            task.scores(store, np.zeros(len(store), np.int32))
    learner = QueryLearner(task.problem(store, asks=True), Settings.complete({"rule": "pair"}, task.defaults))
    learner.tell(learner.ask(), "first")
    options = {"store": str(tmp_path / "stores")}
    with pytest.raises(DataError, match="no such file"):
        task_spec("rerank").load(Files((str(lists),), str(lists), None, options))
    with pytest.raises(DataError, match="no such file"):
        task_spec("rerank").load(Files((str(lists),), None, None, {"train_ref": [str(references)]}))
