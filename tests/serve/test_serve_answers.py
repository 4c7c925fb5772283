"""Answers outlive the model: a session's answers learned from again, from its folder or from its export."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sessions import answered, made, opened, row_of, same_as_replay, someone, weights

from sparsezo.errors import DataError, SparsezoError, UsageError
from sparsezo.learner import predict
from sparsezo.query_learner import QueryLearner
from sparsezo.serve.answers import fitted, learn, placed, read_answers, settings_for
from sparsezo.serve.online_model import replay
from sparsezo.serve.session import Session
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.serving import SERVING
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.registry import task_spec
from sparsezo.tasks.text.io.documents import Documents
from sparsezo.tasks.text.task import TextClassification


def session_of(folder, name="chunking", n=40, given=None, **rest):
    """A session with n answers; its export answers.jsonl is beside it."""
    with opened(folder, name, given, max_ahead=1, **rest) as session:
        answered(session, someone(session), n)
        write(session, folder.with_suffix(".jsonl"))
    return folder


def write(session, path):
    path.write_bytes(b"".join(session.export("answers.jsonl")[2]))


def model_of(answers, options=None, passes=1, more=None):
    task, data = fitted(answers, options or {})
    learner = QueryLearner(task.problem(data, asks=True), settings_for(answers, more or {}), _start(answers, task))
    learn(learner, placed(answers, task), passes)
    return task, learner.weights()


def _start(answers, task):
    same = answers.contents is not None and task is answers.contents.task
    return answers.contents.W if same else None


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("chunking", {"rule": "part", "rater_error": "0.1,0.02"}),
        ("chunking", {"rule": "label", "about": "chunk", "rater_error": "0.1"}),
        ("chunking", {"rule": "pair", "rater_error": "0.1"}),
        ("chunking", {"rule": "rate"}),
        ("chunking", {"rule": "span", "rater_error": "0.1"}),
        ("text", {"rule": "part"}),
        ("text", {"rule": "pair"}),
        ("text", {"rule": "rate"}),
        ("rerank", {"rule": "pair"}),
        ("rerank", {"rule": "best", "rater_error": "0.1"}),
    ],
)
def test_once_over_all_answers_is_a_replay_and_what_the_session_learned_bit_for_bit(tmp_path, name, given):
    """Before it is stopped and after."""
    folder = tmp_path / "s"
    with opened(folder, name, given, max_ahead=1) as session:
        ann = someone(session)
        ids = answered(session, ann, 30)
        session.undo(ann, ids[4])
        assert same_as_replay(session)
    task, W = model_of(read_answers(folder, name))
    assert np.array_equal(W, replay(folder).W)
    assert W.any()
    assert task.n_features == made(name)[0].n_features
    with opened(folder, name, given) as session:
        assert np.array_equal(W, weights(session))
        answered(session, ann, 3)
        assert same_as_replay(session)


def test_the_export_alone_teaches_the_same(tmp_path):
    """Features that no answer has do not move, so the weights of the others are those of the folder."""
    folder = session_of(tmp_path / "s", n=60)
    answers = read_answers(folder.with_suffix(".jsonl"), "chunking")
    assert len(answers.recorded) == 60
    assert answers.contents is None
    own, (task, W) = model_of(read_answers(folder))[1], model_of(answers)
    old = made("chunking")[0]
    rows = dict(zip(old.feature_names(), own, strict=True))
    for feature, row in zip(task.feature_names(), W, strict=True):
        assert np.array_equal(row, rows[feature])
    assert task.label_names() == old.label_names()
    assert W.any()


def test_of_texts_the_export_has_texts_and_classes(tmp_path):
    lines = [f"{chr(97 + k % 8)}{k} {'cat' if k % 2 else 'rates'} now" for k in range(32)]
    n = len(lines)
    documents = Documents(("t",), np.zeros(n, np.int32), np.arange(n), None, lines)
    task, data = TextClassification.fit(documents, classes="pets,money")
    rule = Settings.complete({"rule": "label", "seed": 1}, task.defaults)
    with Session(task_spec("text"), task, data, rule, tmp_path / "s", max_ahead=1) as session:
        answered(session, someone(session), 20, lambda q: "pets" if row_of(session, q).x % 2 else "money")
        write(session, tmp_path / "a.jsonl")
    answers = read_answers(tmp_path / "a.jsonl")
    made_of, W = model_of(answers, passes=5)
    assert made_of.classes == ("pets", "money")
    known = made_of.seen(replace(documents, texts=lines))
    right = predict(made_of.problem(known, learn=False), W)
    assert [made_of.classes[k] for k in right] == ["pets" if k % 2 else "money" for k in range(n)]
    assert len(placed(answers, task, data)) == 20
    assert model_of(read_answers(tmp_path / "s"), {"hash_bits": 10})[0].hash_bits == 10


def test_skipped_flagged_undone_and_audited_are_not_learned(tmp_path):
    with opened(tmp_path / "s", max_ahead=1, audit=20, overlap=1.0) as session:
        ann, bob = someone(session), someone(session, "Bob")
        kept = set()
        for k in range(60):
            question = session.ask(ann)[0]
            number = int(question["id"][1:])
            if k % 5 == 0:
                session.skip(ann, question["id"])
                continue
            session.tell(ann, question["id"], "B-NP")
            if k % 5 == 1:
                session.undo(ann)
                session.skip(ann, question["id"], "cannot-tell")
            elif k % 5 == 2:
                session.flag(ann, question["id"], "odd")
            elif not session.queue.entries[number].audit:
                kept.add(number)
        second = session.ask(bob)[0]  # of a second person: what is flagged is flagged for both
        session.tell(bob, second["id"], "O")
        session.flag(bob, second["id"], "odd")
        flagged_by_bob = session.queue.row(int(second["id"][1:])).again
        assert flagged_by_bob is not None
        kept -= {flagged_by_bob}
        audits = len(session.queue.audit_answers())
        write(session, tmp_path / "answers.jsonl")
    for path in (tmp_path / "s", tmp_path / "answers.jsonl"):
        answers = read_answers(path)
        assert len(answers.recorded) == len(kept) > 0
        assert all(each.answer == "B-NP" for each in answers.recorded)
        assert answers.left_out["of audits"] == audits > 0
        assert answers.left_out["to flagged questions"] > 0


def test_a_flag_changes_no_model_that_is_there_and_every_one_made_anew(tmp_path):
    """The session and its replay have learned from the answer; who begins again leaves it out."""
    with opened(tmp_path / "s", max_ahead=1, audit=0, overlap=0.0) as session:
        ann = someone(session)
        for answer in ("B-NP", "O", "I-NP"):
            question = session.ask(ann)[0]
            before = weights(session)
            session.tell(ann, question["id"], answer)
        taught = weights(session)
        session.flag(ann, question["id"], "odd")
        assert np.array_equal(weights(session), taught)
    assert not np.array_equal(taught, before)
    assert np.array_equal(replay(tmp_path / "s").W, taught)
    with opened(tmp_path / "s") as session:
        assert np.array_equal(weights(session), taught)
    assert np.array_equal(model_of(read_answers(tmp_path / "s"))[1], before)


def test_other_features_settings_and_rule(tmp_path):
    answers = read_answers(session_of(tmp_path / "s", n=80))
    task, W = model_of(answers, {"order": 1, "min_count": 2})
    assert (task.order, task.tags) == (1, made("chunking")[0].tags)
    assert task.n_features != made("chunking")[0].n_features
    assert W.any()
    assert model_of(answers, {"hash_bits": 10})[0].hash_bits == 10
    usual = model_of(answers)[1]
    assert not np.array_equal(model_of(answers, more={"h": 0.01})[1], usual)
    assert not np.array_equal(model_of(answers, passes=2)[1], usual)
    assert settings_for(answers, {"rule": "label"}).rule == "label"
    assert settings_for(answers, {}).h == answers.settings["h"]
    with pytest.raises(UsageError, match="`rule` two-point learns from no answers"):
        settings_for(answers, {"rule": "two-point"})


def test_an_error_that_is_given_is_believed_of_all(tmp_path):
    answers = read_answers(session_of(tmp_path / "s", n=20))
    task = fitted(answers, {})[0]
    lessons = placed(answers, task, error="0.2,0.1")
    assert {each.error for each in lessons if each.kind == "part"} == {(0.2, 0.1)}
    assert {each.error for each in lessons if each.kind == "label"} == {((0.2 + 0.1) / 2, (0.2 + 0.1) / 2)}


def test_in_other_data_an_answer_is_found_by_its_words(tmp_path):
    """The same sentences in another order, with others between: the same weights for the same features."""
    folder = session_of(tmp_path / "s", n=60)
    old, data = made("chunking")
    other = chunking_corpus(30, 9)
    columns = [[], []]
    offsets = [0]
    order = [*reversed(range(len(data)))]
    for k, x in enumerate(order):
        for corpus, number in ((data, x), (other, k)):
            if number < len(corpus):
                begin, end = corpus.offsets[number : number + 2].tolist()
                for mine, its in zip(columns, corpus.columns, strict=True):
                    mine.extend(its[begin:end])
                offsets.append(offsets[-1] + end - begin)
    new = type(data)("new", tuple(columns), None, np.array(offsets))
    task, new = Chunking.fit(new, tags="NP")
    for path in (folder, folder.with_suffix(".jsonl")):
        answers = read_answers(path)
        lessons = placed(answers, task, new)
        assert len(lessons) == 60
        for lesson, each in zip(lessons, answers.recorded, strict=True):
            its = SERVING.words_of(answers.inputs, each.question.x)
            assert SERVING.words_of(new, lesson.question.x) == its
            assert task.tags[lesson.question.numbers[1]] == old.tags[each.question.numbers[1]]
    few = placed(read_answers(folder), task, new[:40])
    assert 0 < len(few) < 60
    with pytest.raises(UsageError, match="none of its answers is about one of these sentences"):
        placed(read_answers(folder), task, task.seen(chunking_corpus(5, 77)))


def test_labels_in_another_order_are_found_by_name_and_others_refused(tmp_path):
    answers = read_answers(session_of(tmp_path / "s", "text", n=30, given={"rule": "pair"}))
    old = made("text")[0]
    turned = type(old)(old.classes[::-1], old.vectoriser)
    for lesson, each in zip(placed(answers, turned), answers.recorded, strict=True):
        names = [old.classes[int(output[0])] for output in each.question.outputs]
        assert [turned.classes[int(output[0])] for output in lesson.question.outputs] == names
    with pytest.raises(UsageError, match=r"other labels: .* missing and sport is new"):
        placed(answers, type(old)((*old.classes[:-1], "sport"), old.vectoriser))


def test_what_cannot_be_learned_from_is_one_line(tmp_path):
    with opened(tmp_path / "empty") as session:
        someone(session)
    with pytest.raises(DataError, match="has no answer to learn from"):
        read_answers(tmp_path / "empty")
    with pytest.raises(UsageError, match="has answers of task chunking, not of text"):
        read_answers(session_of(tmp_path / "s", n=3), "text")
    lists = session_of(tmp_path / "lists", "rerank", n=3)
    with pytest.raises(UsageError, match="from the session's folder alone"):
        read_answers(lists.with_suffix(".jsonl"))
    path = tmp_path / "a.jsonl"
    path.write_text('{"label": "yes"}\n')
    with pytest.raises(DataError, match=r"a.jsonl:1: has no `session`: an earlier version"):
        read_answers(path)
    path.write_text("")
    with pytest.raises(DataError, match="has no answers in it"):
        read_answers(path)
    one, two = ((tmp_path / f"{name}.jsonl").read_text() for name in ("s", "lists"))
    path.write_text(one + two)
    with pytest.raises(DataError, match=r"a.jsonl:4: is of another session"):
        read_answers(path)


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    folder = session_of(tmp_path_factory.mktemp("answers") / "s", n=1)
    return json.loads(folder.with_suffix(".jsonl").read_text())


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from(["part", "span"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_export_is_one_line_or_read(line, tmp_path, data):
    row = json.loads(json.dumps(line))
    target = data.draw(st.sampled_from([row, row["session"], row["session"]["made"], row["session"]["settings"]]))
    target[data.draw(st.sampled_from(sorted(target)))] = data.draw(ANYTHING)
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with contextlib.suppress(SparsezoError):  # which is always one line
        model_of(read_answers(path))
