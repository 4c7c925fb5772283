"""Sessions about spans of raw text: what people read, what they may answer, what comes out."""

from __future__ import annotations

import csv
import functools
import io
import json
import re

import numpy as np
import pytest
from sessions import Clock, answered, same_as_replay, someone

from sparsezo.decoding import predict
from sparsezo.serve.errors import Refused
from sparsezo.serve.session import Session
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.documents import Document, Span
from sparsezo.tasks.chunking.formats import read_documents
from sparsezo.tasks.chunking.raw import corpus_of
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.registry import kind

NAMES = ["Ana", "José García", "Eva"]
PLACES = ["Madrid", "San Sebastián", "Łódź"]
BANNED = re.compile(r"chunk|outside|goes on|\bB-|\bI-", re.IGNORECASE)  # no annotator reads these


def documents(n=60, **rest):
    found = []
    for k in range(n):
        text = f"On day {k} {NAMES[k % 3]} met {NAMES[(k + 1) % 3]}  in {PLACES[k // 3 % 3]}, as (nearly) always."
        found.append(Document(text, id=f"doc-{k}", meta={"page": k}, **rest))
    return found


@functools.cache
def made(tags="PER=somebody,LOC"):
    return Chunking.fit(corpus_of(documents(), "here"), tags=tags, split="sentences")


def opened(folder, data=None, **rest):
    task, corpus = made()
    settings = Settings.complete({"seed": 3, "rule": "span", "rater_error": "0.05"}, task.defaults)
    return Session(kind("chunking"), task, corpus if data is None else data, settings, folder, **rest)


def truth(question):
    """What somebody says who knows these texts."""
    shown = question["shown"]
    places, at = [], 0
    for word, gap in zip(shown["words"], shown["gaps"], strict=True):
        places.append((at, at + len(word)))
        at += len(word) + len(gap)
    text = "".join(word + gap for word, gap in zip(shown["words"], shown["gaps"], strict=True))
    begin, end = places[shown["first"]][0], places[shown["last"]][1]
    spans = sorted(
        (found.start(), found.end(), label)
        for label, names in (("PER", NAMES), ("LOC", PLACES))
        for name in names
        for found in re.finditer(re.escape(name), text)
    )
    for start, stop, label in spans:
        if start < end and stop > begin:
            inside = [k for k, (a, b) in enumerate(places) if a < stop and b > start]
            if (inside[0], inside[-1]) == (shown["first"], shown["last"]):
                return "yes" if shown["tag"] == f"B-{label}" else label
            return {"first": inside[0], "last": inside[-1], "label": label}
    return "O"


def test_questions_are_in_plain_words(tmp_path):
    with opened(tmp_path / "log", audit=3, audit_whole=1) as session:
        ann = someone(session)
        kinds = set()
        for k in range(60):
            question = session.ask(ann)[0]
            kinds.add(question["kind"])
            seen = [question["text"], *question["names"].values()]
            assert not any(BANNED.search(each) for each in seen), seen
            where = question["shown"]["where"]
            text = documents()[int(where["document"].removeprefix("doc-"))].text
            sentence = "".join(
                a + b for a, b in zip(question["shown"]["words"], question["shown"]["gaps"], strict=True)
            )
            assert text[where["start"] : where["end"]] == sentence
            if question["kind"] == "span":
                assert question["shown"]["part"] in question["text"]
                assert question["names"] == {"PER": "somebody", "LOC": "place", "O": "none of these"}
                session.tell(ann, question["id"], truth(question))
            else:
                session.tell(ann, question["id"], question["choices"][k % 5])
        assert kinds == {"span", "label"}
        assert re.fullmatch(r"Is '.*' (a somebody \(PER\)|a place \(LOC\))\?", question["text"]) or kinds


def test_right_answers_teach_and_undo_and_replay_hold(tmp_path):
    with opened(tmp_path / "log") as session:
        ann = someone(session)
        for _ in range(40):
            question = session.ask(ann)[0]
            session.tell(ann, question["id"], truth(question))
        assert same_as_replay(session)
        spans = [each.spans for each in read_documents_of(session, "spans-jsonl")]
        texts = [each.text for each in documents()]
        found = [{text[span.start : span.end] for span in each} for text, each in zip(texts, spans, strict=True)]
        right = sum(each == {*names_in(text)} for text, each in zip(texts, found, strict=True))
        assert right > 50  # of 60 documents, from 40 answers
        session.undo(ann)
        assert same_as_replay(session)


def names_in(text):
    return [name for name in (*NAMES, *PLACES) if name in text]


def read_documents_of(session, what):
    name, _, pieces = session.export(what)
    return list(read_documents(name, stream=io.BytesIO(b"".join(pieces))))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("maybe", "takes yes"),
        ({"first": 0, "last": 99, "label": "PER"}, "ends at token"),
        ({"first": 0, "last": 0, "label": "ORG"}, "takes yes"),
        ({"first": 3, "last": 1, "label": "PER"}, "takes yes"),
        ({"first": 0, "label": "PER"}, "takes yes"),
        ({"first": 0.5, "last": 1, "label": "PER"}, "takes yes"),
        ({"first": 0, "last": 0, "label": "O"}, "takes yes"),
    ],
)
def test_what_is_no_answer_is_refused_and_nothing_changes(tmp_path, answer, said):
    with opened(tmp_path / "log") as session:
        ann = someone(session)
        question = session.ask(ann)[0]
        if isinstance(answer, dict) and answer.get("last") == 0:
            answer = {**answer, "first": question["shown"]["first"], "last": question["shown"]["last"]}
        elif isinstance(answer, dict) and answer.get("last") == 99:
            answer = {**answer, "first": question["shown"]["first"]}
        with pytest.raises(Refused, match=said):
            session.tell(ann, question["id"], answer)
        assert session.status()["answers"] == 0
        elsewhere = len(question["shown"]["words"]) - 1 if question["shown"]["last"] < 5 else 0
        with pytest.raises(Refused, match="touches"):
            session.tell(ann, question["id"], {"first": elsewhere, "last": elsewhere, "label": "PER"})


def test_a_no_says_only_that_it_is_not_this(tmp_path):
    """Of `no` nothing follows for other spans there; of `none of these` it does."""
    with opened(tmp_path / "log") as session:
        ann = someone(session)
        question = session.ask(ann)[0]
        reply = session.tell(ann, question["id"], "no")
        assert reply["answer"] == "no"
        (event, row), *_ = session.log.answers()
        assert (event.kind, json.loads(event.answer), row.kind) == ("part", "no", "span")
        assert not session.desk.is_settled(row)
        question = session.ask(ann)[0]
        session.tell(ann, question["id"], "O")
        assert session.desk.is_settled(session.log.answers()[-1][1])
        session.undo(ann)
        assert not session.desk.is_settled(session.log.question(int(question["id"][1:])))


def test_what_was_settled_is_not_asked_again(tmp_path):
    with opened(tmp_path / "log") as session:
        ann = someone(session)
        said: dict[int, set[int]] = {}
        for _ in range(80):
            try:
                question = session.ask(ann)[0]
            except Refused:
                break
            x, shown = session.desk.row(int(question["id"][1:])).x, question["shown"]
            tokens = set(range(shown["first"], shown["last"] + 1))
            assert not tokens <= said.get(x, set())
            answer = truth(question)
            if isinstance(answer, dict):
                tokens = set(range(min(shown["first"], answer["first"]), answer["last"] + 1))
            said.setdefault(x, set()).update(tokens)
            session.tell(ann, question["id"], answer)


def test_of_two_suggestions_for_the_same_words_one_answer_settles_both(tmp_path):
    given = []
    for document in documents(12):
        at = document.text.index("met")
        given.append(Document(document.text, suggested=(Span(at, at + 3, "LOC"), Span(at, at + 3, "PER"))))
    with opened(tmp_path / "log", corpus_of(given, "here")) as session:
        ann = someone(session)
        asked = []
        for _ in range(40):
            question = session.ask(ann)[0]
            asked.append((question["shown"]["where"]["document"], question["shown"]["part"]))
            session.tell(ann, question["id"], truth(question))
        met = [each for each in asked if each[1] == "met"]
        assert len(met) == len(set(met)) == 12


def test_exports_have_words_and_places(tmp_path):
    with opened(tmp_path / "log") as session:
        ann = someone(session)
        for _ in range(30):
            question = session.ask(ann)[0]
            session.tell(ann, question["id"], truth(question))
        texts = {each.id: each.text for each in documents()}
        rows = [json.loads(line) for line in b"".join(session.export("answers.jsonl")[2]).decode().splitlines()]
        assert len(rows) == 30
        for row in rows:
            text = texts[row["document"]]
            assert text[row["start"] : row["end"]] == row["part"]
            assert row["part"] in row["input"]
        table = list(csv.DictReader(io.StringIO(b"".join(session.export("answers.csv")[2]).decode())))
        assert [row["part"] for row in table] == [row["part"] for row in rows]
        for what in ("jsonl", "brat", "spacy", "prodigy", "label-studio"):
            found = read_documents_of(session, f"spans-{what}")
            assert sorted(each.text for each in found) == sorted(texts.values()), what
        assert {each.meta["page"] for each in read_documents_of(session, "spans-jsonl")} == set(range(60))
        certain = [s for each in read_documents_of(session, "spans-jsonl") for s in each.spans if s.probability == 1]
        said = [row for row in rows if row["label"] not in ("O", "no")]
        assert len(certain) >= len(said) > 5
        apart = read_documents_of(session, "spans-label-studio")
        assert sum(len(each.spans or ()) for each in apart) == len(certain)
        assert sum(len(each.suggested) for each in apart) > 0


def test_pre_annotations_are_asked_about_first(tmp_path):
    given = []
    for document in documents(20):
        at = document.text.index("met")
        given.append(Document(document.text, id=document.id, suggested=(Span(at, at + 3, "LOC"),)))
    with opened(tmp_path / "log", corpus_of(given, "here")) as session:
        ann = someone(session)
        parts = []
        for _ in range(40):
            question = session.ask(ann)[0]
            parts.append(question["shown"]["part"])
            session.tell(ann, question["id"], truth(question))
        assert parts.count("met") >= 20
        assert parts[0] == "met"
        assert any(part != "met" for part in parts[:4])
    with opened(tmp_path / "log", corpus_of(given, "here")) as again:  # what it came with is kept, and not asked twice
        ben = someone(again, "Ben")
        assert [again.ask(ben)[0]["shown"]["part"]] != ["met"]


def test_a_model_that_tags_nothing_is_told(tmp_path):
    clock = Clock()
    with opened(tmp_path / "log", clock=clock) as session:
        ann = someone(session)
        assert session._nothing_tagged() is None
        session.lessons.count = 100  # as if so many answers had taught nothing
        assert "finds nothing in 60 sentences" in session._nothing_tagged()
        assert "--gazetteer" in session._nothing_tagged()
        session.lessons.count = 0
        for _ in range(40):
            question = session.ask(ann)[0]
            session.tell(ann, question["id"], truth(question))
        session.lessons.count = 100
        assert session._nothing_tagged() is None


def test_nothing_is_tagged_before_anything_was_learned(tmp_path):
    task, corpus = made()
    with opened(tmp_path / "log") as session:
        outputs = predict(session.learner.problem, session.learner.state.W)
        assert (outputs == len(task.tags) - 1).all()
        assert np.abs(session.learner.state.W).max() > 0
        assert len(corpus) == len(session.learner.problem)


def test_first_questions_are_about_what_may_be_a_name(tmp_path):
    with opened(tmp_path / "log") as session:
        ann = someone(session)
        parts = []
        for _ in range(40):
            question = session.ask(ann)[0]
            parts.append(question["shown"]["part"])
            session.tell(ann, question["id"], truth(question))
        assert all(any(c.isalnum() for c in part) for part in parts)  # never a comma or a bracket alone
        assert sum(any(word[0].isupper() for word in part.split()) for part in parts[1:11]) >= 6


def test_older_answers_are_shown_in_words(tmp_path):
    with opened(tmp_path / "log") as session:
        ann = someone(session)
        answered(session, ann, 4)
        for each in session.recent(ann):
            assert not BANNED.search(each["question"])
            assert each["names"]["LOC"] == "place"


def test_a_session_from_a_model_has_its_types_and_words():
    from sparsezo.serve.folder import serving

    found = serving(kind("chunking")).options_of(made()[0])
    assert found == {"tags": "PER=somebody,LOC", "scheme": "iob2", "order": 2, "split": "sentences"}
