"""Sessions about spans of raw text: what people read, what they may answer, what comes out."""

from __future__ import annotations

import csv
import functools
import io
import json
import re
from dataclasses import replace

import pytest
from sessions import Clock, answered, known, row_of, same_as_replay, someone

from sparsezo.serve.errors import Refused
from sparsezo.serve.session import Session
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.io.documents import Document, Span
from sparsezo.tasks.chunking.io.formats import read_documents
from sparsezo.tasks.chunking.io.raw import corpus_of
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.registry import task_spec

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
    return Session(task_spec("chunking"), task, corpus if data is None else data, settings, folder, **rest)


def truth(question):
    """What somebody says who knows these texts."""
    text = documents()[int(question["shown"]["where"]["document"].removeprefix("doc-"))].text
    labels = {**dict.fromkeys(NAMES, "PER"), **dict.fromkeys(PLACES, "LOC")}
    found = [Span(at.start(), at.end(), labels[at[0]]) for at in re.finditer("|".join(map(re.escape, labels)), text)]
    return known(question, found)


def asked(session, person, n=40):
    """What n questions show, each answered rightly."""
    shown = []

    def answer(question):
        shown.append(question["shown"])
        return truth(question)

    answered(session, person, n, answer)
    return shown


def suggesting(n, *labels):
    """Documents that come with "met" suggested as each of these."""
    given = []
    for document in documents(n):
        at = document.text.index("met")
        given.append(replace(document, suggested=tuple(Span(at, at + 3, label) for label in labels)))
    return corpus_of(given, "here")


def test_questions_are_in_plain_words(tmp_path):
    with opened(tmp_path / "log", audit=3, audit_whole=1) as session:
        ann = someone(session)
        kinds = set()
        for _ in range(60):
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
        assert kinds == {"span", "label"}
        assert not any(BANNED.search(each["question"]) for each in session.recent(ann))


def test_right_answers_teach_and_undo_and_replay_hold(tmp_path):
    with opened(tmp_path / "log") as session:
        ann = someone(session)
        answered(session, ann, 40, truth)
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
        (event, row), *_ = session.store.answers()
        assert (event.kind, json.loads(event.answer), row.kind) == ("part", "no", "span")
        assert not session.queue.is_settled(row)
        question = session.ask(ann)[0]
        session.tell(ann, question["id"], "O")
        assert session.queue.is_settled(session.store.answers()[-1][1])
        session.undo(ann)
        assert not session.queue.is_settled(session.store.question(int(question["id"][1:])))


def test_what_was_settled_is_not_asked_again(tmp_path):
    with opened(tmp_path / "log") as session:
        ann = someone(session)
        said: dict[int, set[int]] = {}
        for _ in range(80):
            try:
                question = session.ask(ann)[0]
            except Refused:
                break
            x, shown = row_of(session, question).x, question["shown"]
            tokens = set(range(shown["first"], shown["last"] + 1))
            assert not tokens <= said.get(x, set())
            answer = truth(question)
            if isinstance(answer, dict):
                tokens = set(range(min(shown["first"], answer["first"]), answer["last"] + 1))
            said.setdefault(x, set()).update(tokens)
            session.tell(ann, question["id"], answer)


def test_of_two_suggestions_for_the_same_words_one_answer_settles_both(tmp_path):
    with opened(tmp_path / "log", suggesting(12, "LOC", "PER")) as session:
        shown = asked(session, someone(session))
        met = [each["where"]["document"] for each in shown if each["part"] == "met"]
        assert len(met) == len(set(met)) == 12


def test_exports_have_words_and_places(tmp_path):
    with opened(tmp_path / "log") as session:
        ann = someone(session)
        answered(session, ann, 30, truth)
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
    with opened(tmp_path / "log", suggesting(20, "LOC")) as session:
        parts = [each["part"] for each in asked(session, someone(session))]
        assert parts.count("met") >= 20
        assert parts[0] == "met"
        assert any(part != "met" for part in parts[:4])
    with opened(tmp_path / "log", suggesting(20, "LOC")) as again:  # what it came with is kept, and not asked twice
        ben = someone(again, "Ben")
        assert [again.ask(ben)[0]["shown"]["part"]] != ["met"]


def test_a_model_that_tags_nothing_is_told(tmp_path):
    clock = Clock()
    with opened(tmp_path / "log", clock=clock) as session:
        ann = someone(session)
        assert session.quality.nothing_tagged() is None
        session.model.count = 100  # as if so many answers had taught nothing
        assert "finds nothing in 60 sentences" in session.quality.nothing_tagged()
        assert "--gazetteer" in session.quality.nothing_tagged()
        session.model.count = 0
        answered(session, ann, 40, truth)
        session.model.count = 100
        assert session.quality.nothing_tagged() is None


def test_first_questions_are_about_what_may_be_a_name(tmp_path):
    with opened(tmp_path / "log") as session:
        parts = [each["part"] for each in asked(session, someone(session))]
        assert all(any(c.isalnum() for c in part) for part in parts)  # never a comma or a bracket alone
        assert sum(any(word[0].isupper() for word in part.split()) for part in parts[1:11]) >= 6


def test_a_session_from_a_model_has_its_types_and_words():
    found = task_spec("chunking").serving().options_of(made()[0])
    assert found == {"tags": "PER=somebody,LOC", "scheme": "iob2", "order": 2, "split": "sentences"}
