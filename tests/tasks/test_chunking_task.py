"""Chunking as a task: tags in and out, chunks that count, features, and what a saved task brings back."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from sparsezo.errors import DataError, UsageError
from sparsezo.kernels import loop
from sparsezo.kernels.inputs import sparse
from sparsezo.learner import Learner, predict
from sparsezo.settings import Settings
from sparsezo.tasks.chunking import task as module
from sparsezo.tasks.chunking.conll import Corpus
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.chunking.templates import parse_templates

WORD = parse_templates(["U00:%x[0,0]"], "test")


def corpus(*sentences, path="some.txt"):
    """Sentences as strings of word/TAG; without tags where none is written."""
    tokens = [[token.rpartition("/") if "/" in token else (token, "", None) for token in s.split()] for s in sentences]
    flat = list(itertools.chain(*tokens))
    tags = [tag for _, _, tag in flat]
    offsets = np.cumsum([0, *map(len, tokens)])
    return Corpus(path, ([word for word, _, _ in flat],), None if None in tags else tags, offsets)


TRAIN = corpus(
    "the/B-NP dog/I-NP barks/B-VP loudly/O", "dogs/B-NP bark/B-VP the/B-NP cat/I-NP", "cats/B-NP do/B-VP bark/I-VP"
)


@pytest.fixture(scope="module")
def task():
    return Chunking.fit(TRAIN, templates=WORD)[0]


# Tags


def test_the_tag_set_is_B_and_I_of_each_type_and_O(task):
    assert task.tags == ("B-NP", "I-NP", "B-VP", "I-VP", "O")
    assert Chunking.fit(TRAIN, templates=WORD, only="VP")[0].tags == ("B-VP", "I-VP", "O")
    assert Chunking.fit(corpus("a/B b/I c/O"), templates=WORD)[0].tags == ("B", "I", "O")


def test_an_I_that_starts_a_chunk_is_written_as_B(task):
    """At a sentence start, after O and after another type; an I after its own type, in its own sentence, is one."""
    sentences = [[1, 1, 3, 3], [3, 3, 4, 1], [0, 1, 0, 4, 2, 3, 1], [1], [1]]
    outputs = np.array([*itertools.chain(*sentences)], np.int32)
    written = task.words(outputs, np.cumsum([0, *map(len, sentences)]))
    expected = [
        *("B-NP", "I-NP", "B-VP", "I-VP"),
        *("B-VP", "I-VP", "O", "B-NP"),
        *("B-NP", "I-NP", "B-NP", "O", "B-VP", "I-VP", "B-NP"),
        "B-NP",
        "B-NP",
    ]
    assert written == expected


def test_plain_tags_are_written_in_the_same_way():
    task, _ = Chunking.fit(corpus("a/B b/I c/O"), templates=WORD)
    assert task.words(np.array([1, 1, 2, 1, 1, 0], np.int32), np.array([0, 4, 6])) == ["B", "I", "O", "B", "B", "B"]


def test_tags_come_out_as_they_went_in(task):
    gold = task.gold(TRAIN)
    assert gold.tags.tolist() == [0, 1, 2, 4, 0, 2, 0, 1, 0, 2, 3]
    assert gold.offsets.tolist() == [0, 4, 8, 11]
    assert task.words(gold.tags.astype(np.int32), TRAIN.offsets) == TRAIN.tags


def test_a_corpus_is_seen_in_iob2_and_by_its_type():
    iob1 = corpus("the/I-NP dog/I-NP barks/I-VP", "dogs/I-NP cats/B-NP")
    task, seen = Chunking.fit(iob1, templates=WORD)
    assert seen.tags == ["B-NP", "I-NP", "B-VP", "B-NP", "B-NP"]
    only, seen = Chunking.fit(iob1, templates=WORD, only="NP")
    assert seen.tags == ["B-NP", "I-NP", "O", "B-NP", "B-NP"]
    other = corpus("runs/B-VP far/B-ADVP")
    assert only.seen(other).tags == ["O", "O"]  # no NP in it, which is no error after training
    assert task.seen(other).tags == ["B-VP", "B-ADVP"]
    bare = corpus("runs far")
    assert only.seen(bare) is bare


# Chunks that count


def test_a_gold_chunk_of_an_unseen_type_is_a_chunk_and_not_O(task):
    """Nobody can find it, and it counts as missed: B-PP and I-PP stand behind the tags that outputs may have."""
    data = corpus("the/B-NP of/B-PP to/I-PP in/B-PP loudly/O")
    gold, problem = task.gold(data), task.problem(data)
    assert gold.tags.tolist() == [0, 5, 6, 5, 4]
    found = np.array([0, 4, 4, 4, 4], np.int32)  # the NP and nothing else: 1 of 3 chunks, and none too many
    assert task.quality(problem, gold, found) == pytest.approx(2 / 4)
    assert loop.loss(gold, problem.task, 0, found) == pytest.approx(1 - 2 / 4)
    assert task.scores(data, found).value == pytest.approx(2 / 4)
    wrong = np.array([0, 2, 3, 2, 4], np.int32)  # right places, wrong type
    assert task.quality(problem, gold, wrong) == pytest.approx(2 / 6)


def test_the_report(task):
    """Gold: NP 0-2, VP 2-3 | NP 4-5, VP 5-6, NP 6-8 | NP 8-9, VP 9-11. Found: NP 0-2, NP 4-5, VP 9-11, two others."""
    outputs = np.array([0, 1, 4, 4, 0, 4, 0, 4, 2, 2, 3], np.int32)
    scores = task.scores(TRAIN, outputs)
    assert scores.metric == "f1"
    assert scores.value == scores.report["f1"] == pytest.approx(2 * 3 / (5 + 7))
    report = scores.report
    assert (report["precision"], report["recall"]) == (pytest.approx(3 / 5), pytest.approx(3 / 7))
    assert report["accuracy"] == pytest.approx(7 / 11)
    assert report["chunks"] == {"gold": 7, "predicted": 5, "correct": 3}
    assert (report["sentences"], report["tokens"]) == (3, 11)
    assert report["types"] == {
        "NP": {
            "f1": pytest.approx(4 / 7),
            "precision": pytest.approx(2 / 3),
            "recall": pytest.approx(2 / 4),
            "gold": 4,
        },
        "VP": {
            "f1": pytest.approx(2 / 5),
            "precision": pytest.approx(1 / 2),
            "recall": pytest.approx(1 / 3),
            "gold": 3,
        },
    }
    assert [*report["types"]] == ["NP", "VP"]
    assert task.quality(task.problem(TRAIN), task.gold(TRAIN), outputs) == pytest.approx(scores.value)


def test_one_type_needs_no_table_of_types():
    task, seen = Chunking.fit(TRAIN, templates=WORD, only="NP")
    scores = task.scores(seen, task.gold(seen).tags.astype(np.int32))
    assert scores.value == 1.0
    assert "types" not in scores.report


def test_nothing_found_is_worth_nothing(task):
    outside = np.full(11, 4, np.int32)
    assert task.quality(task.problem(TRAIN), task.gold(TRAIN), outside) == 0.0


def test_without_tags_there_is_nothing_to_compare_with(task):
    bare = corpus("the dog")
    for ask in (task.gold, lambda data: task.scores(data, np.zeros(2, np.int32))):
        with pytest.raises(DataError) as caught:
            ask(bare)
        message = "some.txt: has no tags to compare with; give a file with the tag in its last column"
        assert str(caught.value) == message


# Features


@pytest.mark.parametrize(("min_count", "names"), [(1, 9), (2, 2), (3, 1)])
def test_min_count_drops_rare_attributes(min_count, names):
    """the: twice, bark: twice, the other seven once; 'the' three times with a sentence more."""
    train = TRAIN if min_count < 3 else corpus("the/B-NP the/B-NP the/B-NP dog/O dog/O")
    task, seen = Chunking.fit(train, templates=WORD, min_count=min_count)
    assert task.n_features == names
    known = {name.removeprefix("U00:") for name in task.index.names()}
    if min_count > 1:
        assert known == ({"the", "bark"} if min_count == 2 else {"the"})
    problem = task.problem(seen)
    active = [len({w for w in seen.columns[0][i:j] if w in known}) for i, j in itertools.pairwise(seen.offsets)]
    assert problem.n_active.tolist() == [n * task.n_labels for n in active]


@pytest.mark.parametrize(("order", "labels", "more"), [(1, 5, 5), (2, 25, 0)])
def test_sizes(order, labels, more):
    task, seen = Chunking.fit(TRAIN, templates=WORD, order=order)
    assert (task.n_labels, task.n_features) == (labels, 9 + more)
    problem = task.problem(seen)
    assert (problem.n_labels, problem.n_features, len(problem)) == (labels, 9 + more, 3)
    # distinct words of each sentence; order 1 has a row and a column more for each tag
    assert problem.n_active.tolist() == [(n + more) * labels for n in (4, 4, 3)]
    assert problem.n_score.tolist() == [(n + more) * labels for n in (4, 4, 3)]
    assert (problem.max_rows, problem.max_columns, problem.max_outputs) == (4 + more, 4 + more, 4)
    assert problem.output_start.tolist() == [0, 4, 8, 11]
    assert not task.problem(seen, learn=False).n_score.any()


def test_a_repeated_word_is_one_direction():
    """Two tokens with the same attributes: R is 3, the rank 2."""
    task, seen = Chunking.fit(corpus("a/B-NP b/O a/B-NP"), templates=WORD)
    problem = task.problem(seen)
    assert problem.n_score.tolist() == [2 * 9]
    assert problem.n_active.tolist() == [2 * 9]


@pytest.mark.parametrize("order", [1, 2])
def test_the_best_path_is_the_best_of_all(order):
    """By enumeration, with scores added up from attributes by name; a word that training lacks scores nothing."""
    task, _ = Chunking.fit(corpus("a/B-NP b/I-NP c/O", "b/B-NP a/O"), templates=WORD, order=order)
    data = corpus("b c a new", "a", "new", "c c b a")
    K, rows = 3, {name.removeprefix("U00:"): row for row, name in enumerate(task.index.names())}
    W = np.random.default_rng(5).standard_normal((task.n_features, task.n_labels)).astype(np.float32)

    def score(words, path):
        total, before = 0.0, 2  # O
        for word, tag in zip(words, path, strict=True):
            own = [W[rows[word]]] if word in rows else []
            if order == 2:
                total += sum(row[before * K + tag] for row in own)
            else:
                total += sum(row[tag] for row in own) + W[len(rows) + before, tag]
            before = tag
        return total

    outputs = predict(task.problem(data, learn=False), W)
    for x, (i, j) in enumerate(itertools.pairwise(data.offsets)):
        words = data.columns[0][i:j]
        best = max(itertools.product(range(K), repeat=len(words)), key=lambda path, words=words: score(words, path))
        if order == 1 or words != ["new"]:  # there all paths are equal
            assert score(words, outputs[i:j]) == pytest.approx(score(words, best), abs=1e-5), x


def test_default_templates_are_those_whose_columns_are_there():
    one, _ = Chunking.fit(TRAIN)
    assert [template.name for template in one.index.templates] == [f"U0{k}" for k in range(7)]
    two, _ = Chunking.fit(chunking_corpus(3, seed=1))
    assert len(two.index.templates) == 19


def test_a_corpus_with_other_columns_is_refused(task):
    with pytest.raises(DataError) as caught:
        task.problem(chunking_corpus(3, seed=1))
    assert str(caught.value) == "generated (seed 1): has 2 columns before the tag, the model 1"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"order": 3}, "`order` 3: choose from 1, 2"),
        ({"order": 0}, "`order` 0: choose from 1, 2"),
        ({"min_count": 0}, "`min_count` 0: must be a whole number, 1 or more"),
        ({"only": "PP"}, "some.txt: no chunk of type 'PP'; the types in it are: NP, VP"),
    ],
)
def test_what_is_refused(given, message):
    with pytest.raises(UsageError) as caught:
        Chunking.fit(TRAIN, templates=WORD, **given)
    assert str(caught.value) == message


def test_a_corpus_to_learn_nothing_from_is_refused():
    with pytest.raises(DataError, match="has no chunk"):
        Chunking.fit(corpus("a/O b/O"), templates=WORD)
    with pytest.raises(DataError, match="no attribute occurs 3 times"):
        Chunking.fit(TRAIN, templates=WORD, min_count=3)


def test_too_many_weights_are_refused(monkeypatch):
    monkeypatch.setattr(module, "_MOST_WEIGHTS", 225)
    assert Chunking.fit(TRAIN, templates=WORD)[0].n_features == 9  # 9 x 25
    monkeypatch.setattr(module, "_MOST_WEIGHTS", 224)
    with pytest.raises(UsageError) as caught:
        Chunking.fit(TRAIN, templates=WORD)
    assert str(caught.value) == (
        "9 features x 25 labels are too many weights; use `order` 1, a higher `min_count`, or `only` one type"
    )


# A task that is saved


@pytest.mark.parametrize("given", [{}, {"order": 1, "only": "NP"}, {"min_count": 2}], ids=str)
def test_saved_and_restored(given):
    task, seen = Chunking.fit(TRAIN, templates=WORD, **given)
    settings, arrays = task.to_arrays()
    again = Chunking.from_arrays(json.loads(json.dumps(settings)), arrays)
    names = ("tags", "order", "only", "n_columns", "n_features", "n_labels")
    assert [getattr(again, name) for name in names] == [getattr(task, name) for name in names]
    assert again.index.names() == task.index.names()
    one, other = task.problem(seen), again.problem(seen)
    for left, right in zip(one.inputs, other.inputs, strict=True):
        np.testing.assert_array_equal(left, right)
    assert again.gold(seen).tags.tolist() == task.gold(seen).tags.tolist()


def test_defaults(task):
    assert [task.defaults("two-point", "constant", perturb) for perturb in ("all", "active", "score")] == [
        (1e-4, 0.1),
        (3e-4, 0.1),
        (1e-3, 0.1),
    ]
    assert task.defaults("preference", "adagrad", "score") == (0.05, 0.2)
    assert task.defaults("first-order", "constant", None) == (0.01, 0.1)
    assert task.defaults("supervised", "adagrad", None) == (0.1, 0.1)


def test_there_is_nothing_to_export(task, tmp_path):
    assert task.export(tmp_path / "model", np.zeros((9, 25))) == []
    assert (task.name, task.metric) == ("chunking", "f1")


@pytest.mark.parametrize("perturb", ["score", "active", "all"])
def test_sentences_too_long_to_factor_are_learned_from(monkeypatch, perturb):
    """The same laws another way: what is learned with every sentence taken as long is as good."""
    results = []
    for rows in (sparse.FACTORED_ROWS, 0):
        monkeypatch.setattr(sparse.sparse_inputs, "__defaults__", (True, rows))
        task, train = Chunking.fit(chunking_corpus(200, 1), only="NP")
        problem, gold = task.problem(train), task.gold(train)
        learner = Learner(problem, Settings("two-point", perturb, h=0.001, mu=0.1))
        learner.run(gold, 20_000)
        results.append(task.quality(problem, gold, predict(problem, learner.weights())))
        assert bool(len(problem.inputs.chol)) == bool(rows)
    assert abs(results[0] - results[1]) < 0.05
    assert min(results) > 0.4
