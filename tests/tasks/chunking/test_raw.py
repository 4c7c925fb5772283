"""Raw text in, spans out: what is read, where tokens stand, what is written, and that no offset is lost."""

from __future__ import annotations

import io
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from sparsezo.errors import DataError, UsageError
from sparsezo.kernels import protocol
from sparsezo.kernels.jit import allocating_kernel as kernel
from sparsezo.learner import Learner
from sparsezo.model import Model, load_model
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.io.documents import Document, Span, pasted, spans_of
from sparsezo.tasks.chunking.io.formats import read_documents, write_documents
from sparsezo.tasks.chunking.io.raw import MISSING_TAG, corpus_of, read_raw, tagged_documents
from sparsezo.tasks.chunking.start import placed_spans
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import task_spec

PLACES = ["Madrid", "San Sebastián", "Łódź", "New York", "Zürich"]
PEOPLE = ["Ana Botín", "José García", "O'Brien", "Jean-Luc Godard"]


def made_texts(n, seed=0):
    """Texts of one or two sentences with known spans."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(n):
        person, place = PEOPLE[rng.integers(len(PEOPLE))], PLACES[rng.integers(len(PLACES))]
        text = f"Yesterday {person} went to {place}, they said. \U0001f600 Nothing else happened (it was 12.5 °C)."
        spans = tuple(
            Span(text.index(name), text.index(name) + len(name), label)
            for name, label in ((person, "PER"), (place, "LOC"))
        )
        found.append(Document(text, id=f"d{k}", spans=spans, meta={"source": "made"}))
    return found


@kernel
def scores_of(inputs, W, S):
    protocol.scores(inputs, 0, W, S)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """(a model of raw text that knows its spans, its path)"""
    path = tmp_path_factory.mktemp("raw") / "train.jsonl"
    write_documents(made_texts(40), "jsonl", path)
    loaded = task_spec("chunking").load(Files((str(path),), options={"clusters": "none"}))
    settings = Settings.complete({"rule": "supervised", "step": "adagrad"}, loaded.task.defaults)
    learner = Learner(loaded.task.problem(loaded.data.train), settings)
    learner.run(loaded.task.gold(loaded.data.train), steps=800)
    model = path.parent / "names.szo"
    Model(loaded.task, learner.weights(), settings.as_dict(), {}).save(model)
    return load_model(model), model


def test_a_token_is_what_stands_at_its_place():
    documents = [
        *made_texts(3),
        Document("  \r\n"),
        Document("e\u0301t\u00e9 \u202bשלום\u202c!\r\n\r\nZwei\u00adte Zeile."),
    ]
    corpus = corpus_of(documents, "here")
    source = corpus.source
    for sentence in range(len(corpus)):
        text = source.document(sentence).text
        for i in range(*corpus.offsets[sentence : sentence + 2].tolist()):
            assert corpus.columns[0][i] == text[source.starts[i] : source.ends[i]]
    assert {int(each) for each in source.of_sentence} == {0, 1, 2, 4}  # the third has no word
    part = corpus[2:5]
    assert part.source.text(0, 0, 0) == part.columns[0][0]
    taken = corpus.take([4, 0])
    assert taken.source.text(1, int(taken.offsets[1]), int(taken.offsets[1])) == corpus.columns[0][0]
    words, gaps = corpus.columns[0], source.gaps(0, 0, int(corpus.offsets[1]))
    pasted = "".join(word + gap for word, gap in zip(words, gaps, strict=False))
    assert documents[0].text.startswith(pasted)


def test_labels_of_raw_text():
    text = "Pre-Madrid and San Sebastián."
    spans = (Span(4, 10, "LOC"), Span(15, 28, "LOC"))
    plain = corpus_of([Document(text, spans=spans)], "here", labelled=True)
    words, tags = plain.columns[0], plain.tags
    assert words[0] == "Pre-Madrid"
    assert tags[0] == "B-LOC inside of a token"  # which no output can have: it counts as missed
    assert tags[words.index("San")] == "B-LOC"
    assert tags[words.index("Sebastián")] == "I-LOC"
    cut = corpus_of([Document(text, spans=spans)], "here", labelled=True, cuts=True)
    assert cut.tags[cut.columns[0].index("Madrid")] == "B-LOC"
    partly = corpus_of([Document(text, spans=spans[1:], missing=True)], "here", labelled=True)
    assert partly.tags[0] == MISSING_TAG
    assert partly.tags[words.index("San")] == "B-LOC"


def test_a_span_over_a_sentences_end_counts_once():
    text = "He works for Yahoo! Inc now. She does not."
    plain = corpus_of([Document(text, spans=(Span(13, 23, "ORG"),))], "here", labelled=True)
    assert len(plain) == 3  # nobody told where not to split
    assert [tag for tag in plain.tags if tag != "O"] == ["B-ORG over a sentence's end", "I-ORG over a sentence's end"]
    told = corpus_of([Document(text, spans=(Span(13, 23, "ORG"),))], "here", labelled=True, cuts=True)
    assert [tag for tag in told.tags if tag != "O"] == ["B-ORG", "I-ORG", "I-ORG"]


@pytest.mark.parametrize("cuts", [False, True])
def test_tokens_of_rows_stay_what_they_are(cuts):
    text, tokens = pasted(["U.N.", "official", "Ekeus's", "trip"])
    given = Document(text, spans=(Span(0, 4, "ORG"),), tokens=tokens, sentences=(0, 4))
    corpus = corpus_of([given], "here", labelled=True, cuts=cuts)
    assert corpus.columns == (["U.N.", "official", "Ekeus's", "trip"],)
    assert corpus.tags == ["B-ORG", "O", "O", "O"]


def test_a_text_file_is_one_document_or_one_a_line(tmp_path, put):
    lines = put("lines.txt", "Ana lives in Łódź.\r\nJosé does not.\r\nNobody \u2028else does.\r\n".encode())
    assert [(each.id, each.text) for each in read_raw([str(lines)])] == [
        ("1", "Ana lives in Łódź."),
        ("2", "José does not."),
        ("3", "Nobody \u2028else does."),
    ]
    whole = put("whole.txt", "One paragraph. It has two.\n\nAnother one.\n\nA third, at the end.\n")
    (found,) = read_raw([str(whole)])
    assert (found.id, found.text) == ("whole.txt", whole.read_text("utf-8"))
    assert [each.id for each in read_raw([str(tmp_path)])] == ["lines.txt", "whole.txt"]
    rows = put("rows.jsonl", '{"id": 7, "text": "Ana.", "user": "x"}\n{"text": "José."}\n')
    assert [(each.text, dict(each.meta)) for each in read_raw([str(rows)])] == [("Ana.", {"user": "x"}), ("José.", {})]


def test_of_a_table_the_column_of_texts_is_read_and_the_others_go_along(put, caplog):
    export = (
        '\ufeffid;Kunde;Kommentar\r\n7;Ana;"Sie wohnt in Łódź; dort\r\nist es ""schön""."\r\n8;Bo;Er nicht mehr.\r\n'
    )
    found = list(read_raw([str(put("export.csv", export.encode()))]))
    assert [(each.id, each.text, dict(each.meta)) for each in found] == [
        ("7", 'Sie wohnt in Łódź; dort\nist es "schön".', {"Kunde": "Ana"}),
        ("8", "Er nicht mehr.", {"Kunde": "Bo"}),
    ]
    assert "a table; its column 'Kommentar' is read" in caplog.text
    named = put("named.tsv", "note\ttext\nmany words that nobody asked for\tAna.\n")
    assert [(each.id, each.text) for each in read_raw([str(named)])] == [("2", "Ana.")]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("bad.txt", b"caf\xe9 con leche\nand more text here\n", "is not UTF-8"),
        ("rows.csv", b"a,b\nAna went home,he did too\n", "which column has the texts. there are a, b; call one of"),
        ("rows.tsv", b"Ana went home and stayed there, too\nx\n", "rows.tsv:1: 'Ana went .*' is no column's name"),
        ("rows.csv", b"text\n", "is a table without rows"),
        ("rows.csv", b"id,text\n1,Ana went home, too\n", "rows.csv:2: 3 columns, but the header has 2"),
        ("empty.txt", b"  \n\n ", "holds no word"),
    ],
)
def test_what_cannot_be_read_is_said(put, name, content, said):
    path = put(name, content)
    with pytest.raises(DataError, match=said):
        task_spec("chunking").load(Files((str(path),), options={"tags": "PER"}))


def test_a_model_of_raw_text_gives_spans(trained):
    model, _ = trained
    unseen = made_texts(25, seed=5)
    found = list(model.tag(document.text for document in unseen))
    for document, spans in zip(unseen, found, strict=True):
        assert [(s.start, s.end, s.label) for s in spans] == [(s.start, s.end, s.label) for s in document.spans]
        assert all(0.5 < span.probability <= 1 for span in spans)
    assert model.tag(unseen[0].text) == found[0]
    assert model.tag("") == ()
    assert list(model.tag([])) == []
    sure = max(span.probability for span in found[0])
    assert [span.probability for span in model.tag(unseen[0].text, threshold=sure)] == [sure]
    with pytest.raises(UsageError, match="threshold"):
        list(model.tag(["x"], threshold=1.5))


def named(spans):
    return [(span.start, span.end, span.label) for span in spans]


def test_what_is_fixed_stays_and_the_rest_is_decoded_around_it(trained):
    model, _ = trained
    text = "Yesterday Ana Botín went to Madrid, they said."
    person, place = (10, 19, "PER"), (28, 34, "LOC")
    assert named(model.tag(text)) == [person, place]
    assert named(model.tag(text, fixed=[])) == [person, place]
    assert named(model.tag(text, fixed=[(28, 34, "PER")])) == [person, (28, 34, "PER")]
    assert named(model.tag(text, fixed=[Span(10, 19, "O")])) == [place]
    fixed = model.tag(text, threshold=1.0, fixed=[(10, 13, "LOC")])  # shorter than the one that the model has there
    assert named(fixed) == [(10, 13, "LOC")]
    assert fixed[0].probability == 1.0
    assert named(model.tag(text, fixed=[(0, 12, "LOC")]))[0] == (0, 12, "LOC"), "also inside of a token"
    assert (12, 19, "LOC") not in named(model.tag(text, fixed=[(0, 12, "LOC")])), "it ends where it was set to end"
    many = [named(each) for each in model.tag([text, text], fixed=[[], [(28, 34, "O")]])]
    assert many == [[person, place], [person]]


@pytest.mark.parametrize(
    ("fixed", "said"),
    [
        ([(28, 34, "GENE")], "a span with the label GENE; this model has LOC, PER, and O for none"),
        ([(30, 99, "LOC")], "a span from 30 to 99; the text has 46 characters"),
        ([(5, 5, "LOC")], "a span from 5 to 5"),
    ],
)
def test_what_cannot_be_fixed_is_refused(trained, fixed, said):
    with pytest.raises(UsageError, match=said):
        trained[0].tag("Yesterday Ana Botín went to Madrid, they said.", fixed=fixed)


def test_a_correction_mends_its_neighbours():
    """By enumeration: the best of all paths that have what is fixed."""
    task, _ = Chunking.fit(corpus_of(made_texts(6), "made", labelled=True), order=1)
    W = np.random.default_rng(4).normal(0, 1, (task.n_features, task.n_labels)).astype(np.float32)
    model, text = Model(task, W, {}, {}), "Ana Botín went to"
    tokens = [(0, 3), (4, 9), (10, 14), (15, 17)]
    before, after = (named(model.tag(text, fixed=fixed)) for fixed in ([], [(4, 9, "LOC")]))
    assert (4, 9, "LOC") not in before
    problem = task.problem(corpus_of([Document(text)], "x"), learn=False)
    S = np.zeros((problem.max_rows, task.n_labels), np.float32)
    scores_of(*problem.private()[:1], W, S)
    best, most = None, -np.inf
    for path in itertools.product(range(len(task.tags)), repeat=4):
        tags = [task.tags[k] for k in path]
        if tags[1] == "B-LOC" and tags[2] != "I-LOC":
            before = [len(task.tags) - 1, *path]
            score = sum(S[i, b] + S[4 + a, b] for i, (a, b) in enumerate(itertools.pairwise(before)))
            best, most = (tags, score) if score > most else (best, most)
    assert after == named(spans_of(tokens, best))


def test_tagging_goes_batch_by_batch(trained, monkeypatch):
    model, _ = trained
    texts = [document.text for document in made_texts(30, seed=2)]
    at_once = list(model.tag(texts))
    monkeypatch.setattr("sparsezo.tasks.chunking.io.raw._BATCH_CHARACTERS", 200)
    read = []
    stream = (read.append(k) or text for k, text in enumerate(texts))
    found = model.tag(stream)
    assert next(found) == at_once[0]
    assert len(read) < 10  # the rest is not read before it is needed
    assert list(found) == at_once[1:]


def test_documents_keep_what_they_came_with(trained):
    model, _ = trained
    given = made_texts(2)[0]
    (found,) = tagged_documents(model.task, model.W, [replace(given, suggested=given.spans)])
    assert (found.text, found.id, found.meta) == (given.text, "d0", {"source": "made"})
    assert found.suggested == ()
    assert [given.text[a:b] for a, b in found.tokens][:3] == given.text.split()[:3]
    assert found.sentences[0] == 0
    assert found.sentences[-1] == len(found.tokens)
    (bare,) = tagged_documents(model.task, model.W, [given], tokens=False)
    assert bare == replace(found, tokens=None, sentences=None)
    assert bare.spans


def test_a_model_that_wants_more_than_words_says_so():
    from sparsezo.tasks.chunking.synthetic import chunking_corpus

    task, _ = Chunking.fit(chunking_corpus(20, 1), only="NP")
    with pytest.raises(UsageError, match="more than words"):
        list(tagged_documents(task, np.zeros((task.n_features, task.n_labels)), [Document("Some text.")]))


@pytest.mark.parametrize("format", ["jsonl", "prodigy", "label-studio", "conll", "datasets", "spacy", "brat"])
def test_predict_writes_what_others_read(trained, tmp_path, format):
    model, _ = trained
    path = tmp_path / "new.jsonl"
    unseen = [replace(document, spans=None) for document in made_texts(6, seed=9)]
    write_documents(unseen, "jsonl", path)
    target = tmp_path / ("out.zip" if format == "brat" else "out")
    assert task_spec("chunking").predict_spans(model, str(path), {"format": format}, target)
    found = list(read_documents(target, format))
    spans = [span for each in found for span in (each.suggested or each.spans or ())]
    texts = [each.text for each in found]
    expected = [span for document in made_texts(6, seed=9) for span in document.spans]
    assert len(spans) == len(expected)
    if format not in ("conll", "datasets"):  # which have tokens and no text
        assert texts == [document.text for document in unseen]
        assert [(s.start, s.end, s.label) for s in spans] == [(s.start, s.end, s.label) for s in expected]


def test_evaluate_counts_spans_by_characters(trained, tmp_path):
    model, _ = trained
    path = tmp_path / "gold.jsonl"
    right = made_texts(10, seed=3)
    wrong = replace(right[0], spans=(Span(0, 3, "LOC"),))  # "Yes" of "Yesterday": no token
    write_documents([wrong, *right[1:]], "jsonl", path)
    data = task_spec("chunking").read(model.task, str(path), {})
    report = model.task.scores(data, model.predict(data)).report
    assert report["chunks"] == {"gold": 19, "predicted": 20, "correct": 18}


def test_labels_to_start_from(trained, tmp_path):
    """Names are labelled, in Prodigy's way: what is not labelled is not known. And one span is rejected."""
    labelled = [replace(document, missing=True) for document in made_texts(40)]
    no = Document("Yesterday Monday went home.", rejected=(Span(10, 16, "PER"),), spans=(), missing=True)
    path, raw = tmp_path / "labels.jsonl", tmp_path / "raw.txt"
    write_documents([*labelled, no], "prodigy", path)
    raw.write_text("".join(f"{document.text}\n" for document in made_texts(30, seed=8)), "utf-8")
    options = {"tags": "PER,LOC", "clusters": "none", "init_labels": str(path)}
    loaded = task_spec("chunking").load(Files((str(raw),), options=options))
    texts = [document.text for document in made_texts(10, seed=4)]
    found = Model(loaded.task, loaded.W, {}, {}).tag(texts)
    names = [{text[span.start : span.end] for span in spans} for text, spans in zip(texts, found, strict=True)]
    assert sum(len(each & {*PEOPLE, *PLACES}) for each in names) >= 16  # of 20
    with pytest.raises(DataError, match=r"not labelled throughout.*`init_labels`"):
        task_spec("chunking").load(Files((str(path),)))


def test_where_suggested_spans_stand():
    task = Chunking.fit(corpus_of(made_texts(5), "here"), tags="PER,LOC")[0]
    text = "He said so. Ana Botín did."
    spans = (Span(12, 21, "PER"), Span(12, 20, "PER"), Span(12, 21, "ORG"), Span(8, 21, "PER"))
    corpus = corpus_of([Document(text, suggested=spans)], "here")
    assert placed_spans(task, corpus, "suggested") == [(1, (0, task.tags.index("B-PER"), 1, 0))]


def test_what_types_are_called(tmp_path):
    task = Chunking.fit(corpus_of(made_texts(5), "here"), tags="PER=somebody, LOC")[0]
    assert task.tags == ("B-PER", "I-PER", "B-LOC", "I-LOC", "O")
    assert task.type_words == {"PER": "somebody"}
    model = Model(task, np.zeros((task.n_features, task.n_labels), np.float32), {}, {})
    model.save(tmp_path / "m.szo")
    assert load_model(tmp_path / "m.szo").task.type_words == {"PER": "somebody"}


def test_brat_is_no_stream(trained, tmp_path):
    model, raw, out = trained[0], tmp_path / "raw.txt", io.BytesIO()
    raw.write_text("Ana went home.\nNobody did.\n")
    assert task_spec("chunking").predict_spans(model, str(raw), {}, out)
    assert [json.loads(line)["text"] for line in out.getvalue().splitlines()] == raw.read_text().splitlines()
    with pytest.raises(UsageError, match="brat is a folder"):
        task_spec("chunking").predict_spans(model, str(raw), {"format": "brat"}, out)
