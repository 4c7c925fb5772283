"""Sessions in which people review whole sentences: what they are asked, what they may answer, what comes of it."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import json
import random
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from reviewers import FITTED, opened, plain, review, reviewed, right_spans
from sessions import Clock, row_of, someone

from sparsezo.kernels.codes import STANDING
from sparsezo.model import load_model
from sparsezo.query_learner import QueryLearner
from sparsezo.questions import Question
from sparsezo.serve.answers import learn, placed, read_answers, settings_for
from sparsezo.serve.client import RemoteError, RemoteLearner
from sparsezo.serve.errors import Refused
from sparsezo.serve.online_model import replay
from sparsezo.serve.quality import Review, estimated_reviews
from sparsezo.serve.seconds import MOST, TABLE, Seconds, Spent, fit_seconds, spent_on
from sparsezo.serve.store import EventRow, Store
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.io.documents import Document, Span
from sparsezo.tasks.chunking.io.raw import corpus_of
from sparsezo.tasks.chunking.reviewing import UNSURE, Reviewing
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.registry import task_spec


def exported(session, tmp_path):
    path = tmp_path / "exported.szo"
    path.write_bytes(b"".join(session.export("model")[2]))
    return load_model(path)


def assert_replayed(session, tmp_path):
    """The live weights, and the model that is exported, bit for bit from the folder alone."""
    np.testing.assert_array_equal(replay(session.folder).W, exported(session, tmp_path).W)
    fresh = QueryLearner(session.model.learner.problem, session.contents.settings, session.contents.W)
    for event, row in session.store.answers_to_learn():
        fresh.learn_from(row.question(), event.to_learn(), kind=event.kind, error=(event.e0, event.e1))
    np.testing.assert_array_equal(fresh.state.W, session.model.weights()[1])


# What is asked and answered


@pytest.mark.parametrize("name", FITTED)
def test_a_review_shows_the_models_best_and_is_answered(tmp_path, name):
    with opened(tmp_path / "log", name) as session:
        ann = someone(session)
        reviewed(session, ann, 5)
        question = session.ask(ann)[0]
        shown = question["shown"]
        assert question["kind"] == "review"
        assert question["choices"] == ["right"]
        assert question["labels"] == list(session.presentation.reviewing.labels)
        assert shown["about"] is None
        assert shown["plain"] == (name == "plain")
        n = len(shown["words"])
        assert all(0 <= span["first"] <= span["last"] < n and 0 < span["p"] <= 1 for span in shown["spans"])
        if name == "plain":
            assert [(span["first"], span["last"]) for span in shown["spans"]] == [(i, i) for i in range(n)]
        row = row_of(session, question)
        found = session.model.suggestion(row.x)
        np.testing.assert_array_equal(found.output, row.question().outputs[0])
        assert shown["unsure"] == found.unsure
        wanted = right_spans(session, question)
        said = review(question, wanted, functools.partial(session.decode, ann, question["id"]))
        reply = session.tell(ann, question["id"], said, 7.5, "once", 2.0)
        assert reply["answer"] == said
        assert session.tell(ann, question["id"], said, 7.5, "once", 2.0) == reply
        last = session.recent(ann, 1)[0]
        assert last["question"] == " ".join(shown["words"])
        if said != "right":
            assert plain(said["spans"]) == wanted == last["answer"]["spans"]
        assert last["answer"] == said
        event = session.store.events()[-1]
        assert (event.seconds, event.away, event.kind) == (7.5, 2.0, "review")
        with pytest.raises(Refused, match="answered this already"):
            session.tell(ann, question["id"], {"spans": [], "corrected": [0]} if said == "right" else "right")


@pytest.mark.parametrize("begun", [True, False])
def test_a_sentence_that_somebody_has_begun_to_correct_stays_theirs(tmp_path, begun):
    """Else what a page has kept of it would be lost where the model becomes sure meanwhile."""
    with opened(tmp_path / "log") as session:
        ann = someone(session)
        question = session.ask(ann)[0]
        if begun:
            session.decode(ann, question["id"], [])
        asked = row_of(session, question).question()
        for _ in range(300):
            session.model.learner.learn_from(asked, "right", error=(0.0, 0.0), again=True)
        assert session.strategy.sure(asked)
        held = [each["id"] for each in session.ask(ann, 0, holding=[question["id"]])]
        assert (held == [question["id"]]) == begun


SPAN = {"first": 1, "last": 2, "label": "NP"}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("wrong", "an answer is right"),
        (3, "an answer is right"),
        ({"spans": []}, "an answer is right"),
        ({"spans": [SPAN, SPAN], "corrected": [1]}, "overlaps"),
        ({"spans": [{**SPAN, "last": 500}], "corrected": [1]}, "the .* words are"),
        ({"spans": [{**SPAN, "first": -1}], "corrected": [1]}, "the .* words are"),
        ({"spans": [{**SPAN, "first": True}], "corrected": [1]}, "the .* words are"),
        ({"spans": [{**SPAN, "label": "VP"}], "corrected": [1]}, "label 'VP': there are NP"),
        ({"spans": [{**SPAN, "label": None}], "corrected": [1]}, "needs a label"),
        ({"spans": [{**SPAN, "p": 0.5}], "corrected": [1]}, "first, last and label"),
        ({"spans": "NP", "corrected": [1]}, "are a list"),
        ({"spans": [SPAN], "corrected": [500]}, "corrected: the"),
        ({"spans": [SPAN], "corrected": 1}, "corrected: the"),
        ({"spans": [SPAN], "corrected": []}, "no place was corrected"),
    ],
)
def test_what_is_no_review_is_refused_in_one_line(tmp_path, answer, reason):
    with opened(tmp_path / "log") as session:
        ann = someone(session)
        question = session.ask(ann)[0]
        with pytest.raises(Refused, match=reason) as refused:
            session.tell(ann, question["id"], answer)
        assert "\n" not in refused.value.reason
        assert session.queue.answers == 0
        session.tell(ann, question["id"], "right")


def test_every_word_of_plain_tags_has_one(tmp_path):
    with opened(tmp_path / "log", "plain") as session:
        ann = someone(session)
        question = session.ask(ann)[0]
        spans = plain(question["shown"]["spans"])
        with pytest.raises(Refused, match="every word needs one"):
            session.tell(ann, question["id"], {"spans": spans[1:], "corrected": [0]})
        with pytest.raises(Refused, match="not removed"):
            session.decode(ann, question["id"], [{"first": 0, "last": 0, "label": None}])
        other = next(label for label in question["labels"] if label != spans[0]["label"])
        found = session.decode(ann, question["id"], [{"first": 0, "last": 0, "label": other}])["spans"]
        assert found[0] == {"first": 0, "last": 0, "label": other, "p": 1.0}
        session.tell(ann, question["id"], {"spans": plain(found), "corrected": [0]})


def test_what_is_left_standing_counts_as_said_and_the_corrected_apart(tmp_path):
    with opened(tmp_path / "log", given={"rater_error": "0.03,0.002"}) as session:
        ann = someone(session)
        question = session.ask(ann)[0]
        n = len(question["shown"]["words"])
        session.tell(ann, question["id"], {"spans": [SPAN], "corrected": [1, 2]})
        event, row = session.store.answers()[-1]
        assert (event.e0, event.e1) == (0.03, 0.002)
        output, how = session.presentation.left(row, event)
        assert [session.contents.task.tags[k] for k in output.tolist()] == ["O", "B-NP", "I-NP", *["O"] * (n - 3)]
        assert how.tolist() == [1, 2, 2, *[1] * (n - 3)]


def test_marked_reviews_are_about_what_is_unsure(tmp_path):
    with opened(tmp_path / "log", given={"review": "marked"}) as session:
        ann = someone(session)
        reviewed(session, ann, 12)
        questions = [question for question, _ in reviewed(session, ann, 12)]
        some = [question for question in questions if question["shown"]["about"] is not None]
        assert some
        for question in some:
            assert set(question["shown"]["about"]) <= set(range(len(question["shown"]["words"])))
        assert_replayed(session, tmp_path)


# Decoding around what is fixed


def small(name):
    """(task, problem, random weights) of sentences short enough that all their tag paths can be listed."""
    whole, n = chunking_corpus(30, 1), 5
    tokens = [i for a in whole.offsets[:-1].tolist() for i in range(a, a + n)]
    columns = tuple([column[i] for i in tokens] for column in whole.columns)
    starts = np.arange(0, len(tokens) + 1, n)
    task, corpus = Chunking.fit(Corpus("short", columns, [whole.tags[i] for i in tokens], starts), **FITTED[name])
    problem = task.problem(corpus, asks=True)
    W = np.random.default_rng(5).normal(0, 0.7, (problem.n_features, problem.n_labels)).astype(np.float32)
    return task, problem, W


def all_paths(problem, W, x, n, K):
    """Every tag path of a sentence with its probability."""
    learner = QueryLearner(problem, Settings.complete({"rule": "review"}, lambda *_: (0.1, 0.1)), W)
    found = {}
    for path in itertools.product(range(K), repeat=n):
        outputs = (np.array(path, np.int32), np.full(n, STANDING, np.int32))
        question = Question("", 0, x, "review", "token", (0, 0, 0, 0), outputs, 1.0, (), ())
        found[path] = learner.probability(question, "right")
    assert sum(found.values()) == pytest.approx(1, abs=1e-3)
    return found


def as_shown(task, path):
    """Tags as people see them: an I that goes on nothing is a B."""
    if task.scheme == "plain":
        return path
    made = []
    for i, tag in enumerate(path):
        name = task.tags[tag]
        before = task.tags[path[i - 1]] if i else "O"
        starts = name[0] == "I" and (before == "O" or before[1:] != name[1:])
        made.append(tag - 1 if starts else tag)
    return tuple(made)


@pytest.mark.parametrize("name", FITTED)
def test_decoding_is_the_best_of_all_paths_that_keep_what_is_fixed(name):
    task, problem, W = small(name)
    reviewing, chance, K = Reviewing(task, problem), random.Random(2), len(task.tags)
    for x in range(3):
        n = reviewing.length(x)
        paths = all_paths(problem, W, x, n, K)
        for _ in range(12):
            first = chance.randrange(n)
            last = first if name == "plain" else chance.randrange(first, n)
            label = chance.choice([*reviewing.labels, *([] if name == "plain" else [None])])
            given = {"first": first, "last": last, "label": label}
            fixed = reviewing.fixed([given], n)
            found = reviewing.suggested(W, x, fixed=fixed)
            spans = reviewing.spans(found.output, found.chances)
            inside = [span for span in plain(spans) if span["first"] <= last and span["last"] >= first]
            assert inside == ([] if label is None else [given])  # exactly that span, or none
            kept = {y: p for y, p in paths.items() if all(map(_allows, fixed.tolist(), y))}
            best = max(kept, key=kept.get)
            assert kept[as_path(kept, task, found.output)] == pytest.approx(kept[best], rel=1e-4)
            total = sum(kept.values())
            for span in spans:
                with_it = sum(p for y, p in kept.items() if span_in(reviewing, task, y, span))
                assert span["p"] == pytest.approx(with_it / total, abs=2e-3)
            tops = [max(shown_chances(task, kept, i).values()) / total for i in range(n)]
            np.testing.assert_allclose(found.sure, tops, atol=2e-3)
            most = max(1 - found.sure)
            doubted = [i for i in range(n) if 1 - found.sure[i] >= UNSURE and 1 - found.sure[i] >= most / 2]
            assert found.unsure == doubted


def _allows(want, tag):
    return want == -1 or (want == tag if want >= 0 else tag != -2 - want)


def as_path(paths, task, output):
    """The likeliest tag path that is shown so."""
    return max((y for y in paths if as_shown(task, y) == tuple(output.tolist())), key=paths.get)


def span_in(reviewing, task, path, span):
    return {name: span[name] for name in ("first", "last", "label")} in reviewing.spans(np.array(as_shown(task, path)))


def shown_chances(task, paths, i):
    found = {}
    for y, p in paths.items():
        tag = as_shown(task, y)[i]
        found[tag] = found.get(tag, 0.0) + p
    return found


def test_decoding_changes_nothing_and_is_for_who_holds_the_question(tmp_path):
    clock = Clock()
    with opened(tmp_path / "log", clock=clock, lease_seconds=60) as session:
        ann, bob = someone(session), someone(session, "Bob")
        question = session.ask(ann)[0]
        events, W = session.store.last_event(), session.model.weights()[1]
        session.decode(ann, question["id"], [])
        assert plain(session.decode(ann, question["id"], [])["spans"]) == plain(question["shown"]["spans"])
        assert session.store.last_event() == events
        np.testing.assert_array_equal(session.model.weights()[1], W)
        for given, why in (
            ([{"first": 0, "last": 99, "label": "NP"}], "the .* words are"),
            ([{"first": 0, "last": 0, "label": "X"}], "there are NP"),
            ([{"first": 0, "last": 1, "label": None}, {"first": 1, "last": 1, "label": "NP"}], "overlaps"),
        ):
            with pytest.raises(Refused, match=why):
                session.decode(ann, question["id"], given)
        with pytest.raises(Refused, match="another person's"):
            session.decode(bob, question["id"], [])
        with pytest.raises(Refused, match="no question"):
            session.decode(ann, "q99", [])
        clock.now += 61
        assert session.ask(bob)[0]["id"] == question["id"]
        with pytest.raises(Refused, match="went to another person"):
            session.decode(ann, question["id"], [])
        session.tell(bob, question["id"], "right")
        with pytest.raises(Refused, match="answered this already"):
            session.decode(bob, question["id"], [])


# The model


def _counted(learner):
    return learner.answers, learner.updates, learner.tokens, learner.looked, learner.corrections, learner.whole


@pytest.mark.parametrize("name", FITTED)
def test_reviews_teach_and_a_restart_and_a_replay_have_the_same_bits(tmp_path, name):
    with opened(tmp_path / "log", name, overlap=0.3) as session:
        ann, bob = someone(session), someone(session, "Bob")
        tokens = [session.add_person(who)["token"] for who in ("Ann", "Bob")]
        session.believe(bob.id, 0.04, 0.01)
        first = reviewed(session, ann, 15)
        reviewed(session, bob, 6)
        session.undo(ann)
        reviewed(session, bob, 6)
        assert_replayed(session, tmp_path)
        W, counted = session.model.weights()[1], _counted(session.model.learner)
    with opened(tmp_path / "log", name, overlap=0.3) as session:  # from the snapshot
        np.testing.assert_array_equal(session.model.weights()[1], W)
        assert _counted(session.model.learner) == counted
        assert session.model.learner.answers == 26
        ann, bob = map(session.person, tokens)
        reviewed(session, ann, 5)
        assert_replayed(session, tmp_path)
        session.undo(ann, first[3][0]["id"])  # from before the restart
        assert_replayed(session, tmp_path)
        live, counted_live = session.model.weights()[1], _counted(session.model.learner)
    for each in (tmp_path / "log").glob("*.snapshot"):
        each.unlink()
    with opened(tmp_path / "log", name, overlap=0.3) as session:  # from nothing
        np.testing.assert_array_equal(session.model.weights()[1], live)
        assert _counted(session.model.learner) == counted_live
        assert session.model.learner.state.about[:30].tolist() == [row.x for _, row in session.store.answers()]


def test_earlier_answers_are_gone_over_again_each_with_its_own_errors(tmp_path):
    with opened(tmp_path / "log") as session, opened(tmp_path / "other", given={"rehearse": 0}) as without:
        assert session.contents.settings.rehearse == 10
        for each in (session, without):
            reviewed(each, someone(each), 10)
        assert session.model.learner.updates == 10 + 9 * 10  # after the first there is nothing to go over
        assert without.model.learner.updates == 10
        bob = someone(session, "Bob")
        session.believe(bob.id, 0.2, 0.1)
        reviewed(session, bob, 1)
        assert session.model.learner.state.errors[9:11].tolist() == [[0.01, 0.01], [0.2, 0.1]]


def test_a_review_can_be_taken_back_and_answered_otherwise(tmp_path):
    with opened(tmp_path / "log") as session, opened(tmp_path / "other") as never:
        ann, other = someone(session), someone(never)
        first = session.ask(ann)[0]
        session.tell(ann, first["id"], {"spans": [], "corrected": [0]})
        again = session.undo(ann)
        assert again["id"] == first["id"]
        assert plain(again["shown"]["spans"]) == plain(first["shown"]["spans"])
        for each, person in ((session, ann), (never, other)):
            question = again if each is session else each.ask(person)[0]
            each.tell(person, question["id"], "right")
        np.testing.assert_array_equal(session.model.weights()[1], never.model.weights()[1])


def test_a_reviewed_sentence_comes_again_only_where_the_model_disagrees(tmp_path):
    with opened(tmp_path / "log", n=12) as session:
        ann = someone(session)
        left, refused = {}, ""
        for _ in range(60):
            try:
                question = session.ask(ann)[0]
            except Refused as error:
                refused = error.code
                break
            x = row_of(session, question).x
            assert left.get(x) != plain(question["shown"]["spans"])
            wanted = right_spans(session, question)
            said = review(question, wanted, functools.partial(session.decode, ann, question["id"]))
            session.tell(ann, question["id"], said)
            left[x] = wanted
        assert set(left) == set(range(12))
        assert refused == "nothing-to-ask"


def test_people_review_different_sentences_and_second_annotators_the_same(tmp_path):
    with opened(tmp_path / "log", overlap=1.0) as session:
        ann, bob = someone(session), someone(session, "Bob")
        mine, his = session.ask(ann, 3), session.ask(bob, 3)
        xs = [row_of(session, each).x for each in (*mine, *his)]
        assert len(set(xs)) == 6
        session.tell(ann, mine[0]["id"], "right")
        session.skip(bob, his[0]["id"])
        second = session.ask(bob, 1, [each["id"] for each in his[1:]])[-1]
        assert row_of(session, second).again == int(mine[0]["id"][1:])
        assert plain(second["shown"]["spans"]) == plain(mine[0]["shown"]["spans"])
        session.flag(bob, second["id"], "odd")
        session.tell(bob, second["id"], {"spans": [], "corrected": [0]})
        assert session.flagged()[0]["note"] == "odd"
        assert_replayed(session, tmp_path)


# What comes out


def test_exports_have_what_was_said_and_answers_alone_teach_the_same_model(tmp_path):
    with opened(tmp_path / "log", n=150) as session:
        ann = someone(session)
        done = reviewed(session, ann, 12)
        lines = "".join(piece.decode() for piece in session.export("corpus")[2]).split("\n\n")
        for question, _ in done:
            row = row_of(session, question)
            columns = [line.split() for line in lines[row.x].splitlines()]
            assert {column[-1] for column in columns} == {"answered"}
            spans = session.contents.serving.chunks_in([column[-2] for column in columns])
            found = [{"first": a, "last": b - 1, "label": kind} for a, b, kind in spans]
            assert found == right_spans(session, question)
        guessed = sum("guess" in sentence for sentence in lines)
        assert guessed == 150 - len({row_of(session, question).x for question, _ in done})
        rows = [json.loads(line) for line in b"".join(session.export("answers.jsonl")[2]).splitlines()]
        assert [row["label"] for row in rows] == [said for _, said in done]
        assert plain(rows[0]["shown"]["spans"]) == plain(done[0][0]["shown"]["spans"])
        answers_file = tmp_path / "answers.jsonl"
        answers_file.write_bytes(b"".join(session.export("answers.jsonl")[2]))
        b"".join(session.export("answers.csv")[2])
        W = exported(session, tmp_path).W
    answers = read_answers(tmp_path / "log")
    learner = QueryLearner(session.model.learner.problem, settings_for(answers, {}))
    learn(learner, placed(answers, answers.contents.task))
    np.testing.assert_array_equal(learner.weights(), W)
    from_file = read_answers(answers_file)
    assert [each.answer for each in from_file.recorded] == [each.answer for each in answers.recorded]


def test_answers_are_found_again_where_labels_have_other_numbers(tmp_path):
    with opened(tmp_path / "log", "plain") as session:
        reviewed(session, someone(session), 4)
    answers = read_answers(tmp_path / "log")
    turned = replace(answers, labels=answers.labels[::-1])
    names = list(answers.labels)
    for mine, other in zip(placed(answers, answers.contents.task), placed(turned, answers.contents.task), strict=True):
        assert [names[k] for k in mine.question.outputs[0]] == [names[::-1][k] for k in other.question.outputs[0]]
        assert mine.question.outputs[1].tolist() == other.question.outputs[1].tolist()


def test_spans_that_a_sentence_came_with_are_in_its_first_review(tmp_path):
    texts = [f"On day {k} Ana met Eva in Madrid." for k in range(30)]
    documents = [Document(text, id=f"d{k}", suggested=(Span(0, 2, "LOC"),)) for k, text in enumerate(texts)]
    task, corpus = Chunking.fit(corpus_of(documents, "here"), tags="PER,LOC", split="sentences")
    settings = Settings.complete({"seed": 3, "rule": "review"}, task.defaults)
    from sparsezo.serve.session import Session

    with Session(task_spec("chunking"), task, corpus, settings, tmp_path / "log") as session:
        ann = someone(session)
        given = {"first": 0, "last": 0, "label": "LOC"}
        for _ in range(6):
            question = session.ask(ann)[0]
            assert given in plain(question["shown"]["spans"])
            assert question["shown"]["where"]["document"].startswith("d")
            assert len(question["shown"]["gaps"]) == len(question["shown"]["words"])
            session.tell(ann, question["id"], {"spans": [], "corrected": [0]})
        assert_replayed(session, tmp_path)


# People


def test_what_people_overlook_is_found_from_sentences_that_two_reviewed():
    chance = np.random.default_rng(3)
    share = {1: 0.1, 2: 0.25, 3: 0.4}
    reviews = []
    for k in range(600):
        right = chance.integers(0, 3, 20).astype(np.int32)
        suggested = np.where(chance.random(20) < 0.08, (right + 1) % 3, right).astype(np.int32)
        for who in chance.choice([1, 2, 3], 2, replace=False).tolist():
            found = chance.random(20) >= share[who]
            output = np.where(found, right, suggested)
            reviews.append(Review(k, who, suggested, output, np.ones(20, bool), drawn=True))
    nothing, one = np.zeros(20, np.int32), np.eye(20, dtype=np.int32)[0]
    for k in range(600, 700):  # asked again since the first answer was doubted: no sample, so nothing is made of it
        reviews += [Review(k, who, nothing, output, np.ones(20, bool)) for who, output in ((1, one), (2, nothing))]
    found = estimated_reviews(reviews, lambda output: {(i, i + 1, str(tag)) for i, tag in enumerate(output.tolist())})
    assert found.known
    for who, truth in share.items():
        assert found.overlooked[who].value == pytest.approx(truth, abs=0.05)
        assert found.overlooked[who].low <= truth <= found.overlooked[who].high
        assert found.rates[who].e0.value == pytest.approx(0.08 * truth / (0.92 + 0.08 * truth), abs=0.006)
        assert found.rates[who].e1.value < 0.02
    assert found.agreement[1] > found.agreement[3]


def test_who_overlooks_is_believed_so(tmp_path):
    with opened(tmp_path / "log", overlap=1.0) as session:
        ann, bob = someone(session), someone(session, "Bob")
        for _ in range(40):
            reviewed(session, ann, 1)
            reviewed(session, bob, 1, overlooks=2)
        session.estimate()
        people = {each["name"]: each for each in session.people()}
        assert people["Ann"]["overlooked"]["value"] < people["Bob"]["overlooked"]["value"]
        assert people["Bob"]["e0"] > people["Ann"]["e0"]
        assert 0 < people["Ann"]["agreement"] < 1
        event = next(event for event in reversed(session.store.events()) if event.what == "belief")
        assert session.quality.beliefs[event.person] == (event.e0, event.e1)
        reviewed(session, bob, 1)
        assert_replayed(session, tmp_path)


def simulated(fit, n, seed, marked=False):
    """(spent, seconds) of a person."""
    chance = np.random.default_rng(seed)
    tokens = chance.integers(4, 60, n)
    corrections = chance.poisson(1.0, n)
    spent = np.stack([tokens * (not marked), tokens // 6 * marked, corrections], axis=1)
    mean = fit[0] + spent @ np.array(fit[1:])
    return spent, mean * chance.lognormal(-0.02, 0.2, n)


@pytest.mark.parametrize("fit", [(0.5, 0.12, 0.7, 2.5), (2.4, 0.3, 0.7, 4.7), (1.0, 0.05, 0.7, 8.0)])
def test_a_persons_seconds_are_fitted_towards_the_table(fit):
    spent, seconds = simulated(fit, 300, 1)
    found = fit_seconds(spent, seconds)
    assert found[1] == pytest.approx(fit[1], rel=0.2)
    assert found[3] == pytest.approx(fit[3], rel=0.2)
    assert found[2] == pytest.approx(TABLE[2], rel=0.05)  # nothing was marked: as in the table
    seconds[::10] = 500.0  # who was called away
    lasting = fit_seconds(spent, seconds)
    assert np.allclose(np.add(fit[:2], fit[3]), np.add(lasting[:2], lasting[3]), rtol=0.5)
    assert fit_seconds(spent[:0], seconds[:0]) == pytest.approx(TABLE)
    few = fit_seconds(spent[:1], [0.01])
    assert min(few) >= 0


def test_seconds_leave_out_what_was_not_spent_on_the_answer():
    seconds = Seconds()
    for took, away in ((8.0, 5.0), (MOST + 1, None), (None, None), (4.0, 9.0), (MOST + 100, 598.0)):
        seconds.take(EventRow(1, 0.0, "answer", 7, seconds=took, away=away), Spent(10, 0, 1))
    about = seconds.about(7)
    assert about["n"] == 2
    assert [measured for _, measured in about["points"]] == [3.0, 102.0]
    assert seconds.of(8) == TABLE
    for how, corrected, spent in (([1] * 4, [0, 1, 3], Spent(4, 0, 2)), ([0, 1, 1, 0], [], Spent(0, 2, 0))):
        outputs = (np.zeros(4, np.int32), np.array(how, np.int32))
        question = Question("", 0, 0, "review", "token", (0, 0, 0, 0), outputs, 1.0, ("O", "B-NP", "I-NP"), (0, 1, 2))
        assert spent_on(question, {"output": [1, 2, 0, 1], "corrected": corrected}) == spent


def test_the_admin_sees_seconds_and_they_choose_what_is_asked(tmp_path):
    with opened(tmp_path / "log") as session:
        ann = someone(session)
        for _ in range(12):
            question = session.ask(ann)[0]
            n = len(question["shown"]["words"])
            session.tell(ann, question["id"], "right", seconds=1 + 0.5 * n)
        found = session.people()[0]["seconds"]
        assert found["n"] == 12
        assert len(found["points"]) == 12
        assert found["fit"][1] > 2 * TABLE[1]
        session.ask(ann)
        assert session.model.learner._params.seconds == session.seconds.of(ann.id)
    with opened(tmp_path / "log") as session:
        assert session.people()[0]["seconds"] == found


# The log, and HTTP


def test_a_log_from_before_there_was_a_column_for_time_away_goes_on(tmp_path):
    with opened(tmp_path / "log") as session:
        token = session.add_person("Ann")["token"]
        reviewed(session, session.person(token), 3)
    with contextlib.closing(sqlite3.connect(tmp_path / "log" / "log.sqlite")) as older:
        older.execute("ALTER TABLE events DROP COLUMN away")
    with opened(tmp_path / "log") as session:
        ann = session.person(token)
        question = session.ask(ann)[0]
        session.tell(ann, question["id"], "right", 3.0, None, 1.0)
    with contextlib.closing(Store(tmp_path / "log" / "log.sqlite")) as store:
        assert [event.away for event, _ in store.answers()] == [None, None, None, 1.0]
    with contextlib.closing(sqlite3.connect(tmp_path / "log" / "log.sqlite")) as changed:
        changed.execute("DROP TRIGGER events_no_update")
        changed.execute("UPDATE events SET away = 2 WHERE away = 1")
        changed.commit()
    with pytest.raises(Exception, match="check sum"):
        Store(tmp_path / "log" / "log.sqlite")


def test_reviews_over_http(tmp_path, serving):
    with opened(tmp_path / "log") as session:
        serving(session)
        tokens = [session.add_person(who)["token"] for who in ("Ann", "Bob")]
        with RemoteLearner(session.url, tokens[0]) as ann, RemoteLearner(session.url, tokens[1]) as bob:
            question = ann.ask()
            said = review(question, right_spans(session, question), functools.partial(ann.decode, question))
            for answer, fixed in (({"spans": [{**SPAN, "label": "X"}], "corrected": [1]}, [{**SPAN, "label": "X"}]),):
                with pytest.raises(RemoteError, match="there are NP"):
                    ann.tell(question, answer)
                with pytest.raises(RemoteError, match="there are NP"):
                    ann.decode(question, fixed)
            with pytest.raises(RemoteError) as refused:
                bob.decode(question, [])
            assert (refused.value.status, refused.value.code) == (409, "not-yours")
            assert ann.tell(question, said, 9.0, away=1.5)["answer"] == said
            assert ann.recent()[0]["answer"] == said
            assert ann.undo()["id"] == question["id"]
            with pytest.raises(RemoteError, match="less than or equal to 86400"):
                ann.tell(question, "right", 1.0, away=1e6)
            found = list(csv_rows(session))
            assert found == []


def csv_rows(session):
    import csv

    return csv.DictReader(io.StringIO(b"".join(session.export("answers.csv")[2]).decode()))
