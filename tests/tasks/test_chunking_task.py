"""Chunking as a task: tags in and out, chunks that count, features, and what a saved task brings back."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from sparsezo import messages
from sparsezo.errors import DataError, UsageError
from sparsezo.kernels import loop
from sparsezo.learner import predict
from sparsezo.settings import Settings
from sparsezo.storage.fingerprint import known_by
from sparsezo.tasks.chunking import task as module
from sparsezo.tasks.chunking.features.templates import parse_templates
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.options import ChunkingOptions
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data
from sparsezo.training import Training

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


@pytest.mark.parametrize(
    ("scheme", "written"),
    [
        ("iob2", "B-NP I-NP I-NP B-NP O B-VP"),
        ("iob1", "I-NP I-NP I-NP B-NP O I-VP"),
        ("bioes", "B-NP I-NP E-NP S-NP O S-VP"),
        ("bilou", "B-NP I-NP L-NP U-NP O U-VP"),
        ("bmes", "B-NP M-NP E-NP S-NP O S-VP"),
    ],
)
def test_outputs_are_written_in_the_scheme_of_the_training_file(scheme, written):
    words = " ".join(f"w{k}/{tag}" for k, tag in enumerate(written.split()))
    task, seen = Chunking.fit(corpus(words), templates=WORD)
    assert (task.scheme, task.tags) == (scheme, ("B-NP", "I-NP", "B-VP", "I-VP", "O"))
    assert seen.tags == ["B-NP", "I-NP", "I-NP", "B-NP", "O", "B-VP"]
    again = Chunking.from_arrays(*json.loads(json.dumps(task.to_arrays()[:1])), task.to_arrays()[1])
    for one in (task, again):
        assert one.words(np.array([0, 1, 1, 0, 4, 2], np.int32), np.array([0, 6])) == written.split()
        # an I that starts a chunk starts it in every scheme
        assert one.words(np.array([1, 1, 1, 0, 4, 3], np.int32), np.array([0, 6])) == written.split()
    scores = task.scores(seen, np.array([0, 1, 4, 0, 4, 2], np.int32))
    assert (scores.report["chunks"], scores.value) == ({"gold": 3, "predicted": 3, "correct": 2}, pytest.approx(2 / 3))
    # as a reader of the two columns counts: without its third token the first chunk, or the next, has another letter
    assert scores.report["accuracy"] == pytest.approx((5 if scheme == "iob2" else 4) / 6)


# Tags that are no chunks

POS = corpus("the/DT dog/NN barks/VB ./.", "dogs/NN bark/VB ./.", "the/DT cats/NN do/VB bark/NN")


@pytest.fixture(scope="module")
def tagger():
    with messages.gathered():
        return Chunking.fit(POS, templates=WORD)[0]


def test_plain_tags_are_what_they_are(tagger):
    """Before the first token stands the tag that most sentences end with."""
    assert (tagger.tags, tagger.scheme, tagger.metric) == (("DT", "NN", "VB", "."), "plain", "accuracy")
    assert tagger.problem(POS).task.start == 3
    gold = tagger.gold(POS)
    assert gold.tags.tolist() == [0, 1, 2, 3, 1, 2, 3, 0, 1, 2, 1]
    assert tagger.words(gold.tags.astype(np.int32), POS.offsets) == POS.tags
    assert tagger.seen(POS) is POS
    settings, arrays = tagger.to_arrays()
    again = Chunking.from_arrays(json.loads(json.dumps(settings)), arrays)
    assert (again.tags, again.scheme, again.metric, again.order) == (tagger.tags, "plain", "accuracy", 2)


def test_a_tie_for_the_last_tag_is_settled_by_its_name():
    tags = [
        Chunking.fit(corpus(*each), templates=WORD, scheme="plain")[0].tags for each in (["a/X", "b/Y"], ["b/Y", "a/X"])
    ]
    assert tags == [("Y", "X"), ("Y", "X")]


def test_plain_tags_are_measured_by_accuracy(tagger):
    data = corpus("the/DT dog/NN barks/XX", "cats/NN")
    problem, gold = tagger.problem(data), tagger.gold(data)
    assert gold.tags.tolist() == [0, 1, 4, 1]  # XX, which no output has
    found = np.array([0, 0, 2, 1], np.int32)
    scores = tagger.scores(data, found)
    assert (scores.metric, scores.value, tagger.quality(problem, gold, found)) == ("accuracy", 0.5, 0.5)
    assert [loop.loss(gold, problem.task, x, y) for x, y in ((0, found[:3]), (1, found[3:]))] == [
        pytest.approx(2 / 3),
        0,
    ]
    assert scores.report == {
        "accuracy": 0.5,
        "sentences": 2,
        "tokens": 4,
        "tags": {
            "DT": {"f1": pytest.approx(2 / 3), "precision": 0.5, "recall": 1.0, "gold": 1},
            "NN": {"f1": pytest.approx(2 / 3), "precision": 1.0, "recall": 0.5, "gold": 2},
            "VB": {"f1": 0.0, "precision": 0.0, "recall": 0.0, "gold": 0},
            "XX": {"f1": 0.0, "precision": 0.0, "recall": 0.0, "gold": 1},
        },
    }


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "learner",
    [
        Settings("supervised", None, 0.1, None),
        Settings("two-point", "score", 0.1, 0.1, criterion="annealed"),
    ],
    ids=str,
)
def test_a_tagger_learns(learner, order):
    with messages.gathered():
        task, train = Chunking.fit(POS, templates=WORD, order=order)
    outcome = Training(task, Data(train, train, train), learner, 3000).go()
    assert outcome.result["metric"] == outcome.test.metric == "accuracy"
    assert outcome.result["dev"] == outcome.test.value > 0.75
    assert outcome.result["average_loss"] < 0.5


def test_what_plain_tags_cannot_have():
    with pytest.raises(UsageError) as caught, messages.gathered():
        Chunking.fit(POS, templates=WORD, only="NN")
    assert str(caught.value) == "`only` NN: the tags are no chunks, which alone have types; leave `only` out"
    with (
        pytest.raises(DataError, match=r"^some.txt: every tag is 'X'; is the right column the tag\?$"),
        messages.gathered(),
    ):
        Chunking.fit(corpus("a/X b/X"), templates=WORD)
    with pytest.raises(DataError, match="tag 'DT' is no chunk tag"):
        Chunking.fit(POS, templates=WORD, scheme="iob2")
    with pytest.raises(UsageError, match="`scheme` pos: choose from auto, iob1, iob2, bioes, bilou, bmes, plain"):
        Chunking.fit(POS, templates=WORD, scheme="pos")


def test_a_file_of_other_tags_is_refused_after_training(task):
    with pytest.raises(DataError, match=r"some.txt: tag 'DT' is no chunk tag"):
        task.seen(POS)


def test_chunk_tags_may_be_learned_as_plain_tags():
    task, seen = Chunking.fit(TRAIN, templates=WORD, scheme="plain")
    assert seen is TRAIN
    assert task.tags == ("B-NP", "B-VP", "I-VP", "O", "I-NP")  # O, I-NP and I-VP end a sentence each: the first by name


def test_more_different_tags_than_a_tag_set_has(monkeypatch):
    many = corpus(*(f"w/T{k}" for k in range(501)))
    with pytest.raises(DataError) as caught, messages.gathered():
        Chunking.fit(many, templates=WORD)
    assert "some.txt: 501 different tags: is the right column the tag?; if it is meant" in str(caught.value)
    monkeypatch.setenv("SPARSEZO_INSIST", "1")
    with messages.gathered():
        assert len(Chunking.fit(many, templates=WORD)[0].tags) == 501


def test_with_more_than_five_tags_order_1_is_the_default():
    three = corpus("a/B-NP b/B-VP c/B-PP d/O")
    with messages.gathered() as said:
        assert Chunking.fit(three, templates=WORD)[0].order == 1
    assert said == ["7 tags: `order` 1, weights for tags and tag bigrams, is the default for so many"]
    with messages.gathered() as said:
        assert Chunking.fit(three, templates=WORD, order=2)[0].order == 2
        assert Chunking.fit(three, templates=WORD, order=1)[0].order == 1
        assert Chunking.fit(three, templates=WORD, only="NP")[0].order == 2
        assert Chunking.fit(TRAIN, templates=WORD)[0].order == 2  # 5 tags
    assert said == []


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
        "NP": pytest.approx({"f1": 4 / 7, "precision": 2 / 3, "recall": 2 / 4, "gold": 4}),
        "VP": pytest.approx({"f1": 2 / 5, "precision": 1 / 2, "recall": 1 / 3, "gold": 3}),
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
    message = "some.txt: has no tags to compare with; give a file with the tag in its last column"
    with pytest.raises(DataError) as caught:
        task.scores(bare, np.zeros(2, np.int32))
    assert str(caught.value) == message
    with pytest.raises(DataError) as caught:
        task.gold(bare)
    assert str(caught.value) == message + ", or train with a `scorer`"


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


BOTH = ["U00:%x[0,0]", "B", "B01:%x[-1,0]/%x[0,0]", "*:%X[0,0]", "B01:%x[-1,0]/%x[0,0]"]


def named_weights(task, W):
    """Weights by an attribute's name and a tag, or the tag before and the tag."""
    K, words = len(task.tags), task.index.names()
    weights = {(name, b): W[row, b] for row, name in enumerate(words) for b in range(task.n_labels)}
    if task.order == 1:
        weights |= {("", a, b): W[len(words) + a, b] for a in range(K) for b in range(K)}
        for j, name in enumerate(task.bigrams.names()):
            weights |= {(name, a, b): W[len(words) + K + j * K + a, b] for a in range(K) for b in range(K)}
    return weights


@pytest.mark.parametrize("order", [1, 2])
def test_bigram_templates_score_tag_and_tag_before(order):
    """By enumeration, with strings; the template that is there twice counts twice, an unseen word not at all."""
    train = corpus("a/B-NP b/I-NP C/O", "B/B-NP a/O c/O")
    task, seen = Chunking.fit(train, templates=parse_templates(BOTH, "t"), order=order)
    K, n = 3, 5 + 3 + (6 if order == 2 else 0)  # words; in lower case; pairs
    assert len(task.index) == n
    assert task.n_features == (n if order == 2 else n + K + K * (6 + 3))
    W = np.random.default_rng(6).standard_normal((task.n_features, task.n_labels)).astype(np.float32)
    weights = named_weights(task, W)

    def score(words, path):
        total, before = 0.0, 2  # O
        for i, (word, tag) in enumerate(zip(words, path, strict=True)):
            pair = f"B01:{words[i - 1] if i else '_B-1'}/{word}"
            alone = [f"U00:{word}", f"*:{word.lower()}"]
            if order == 2:
                total += sum(weights.get((name, before * K + tag), 0) for name in [*alone, pair, pair])
            else:
                total += sum(weights.get((name, tag), 0) for name in alone)
                total += sum(weights.get((name, before, tag), 0) for name in ["", alone[1], pair, pair])
            before = tag
        return total

    data = corpus("a b C", "B a", "c", "b b a c", "b new a c")
    outputs = predict(task.problem(data, learn=False), W)
    for i, j in itertools.pairwise(data.offsets):
        words = data.columns[0][i:j]
        best = max(itertools.product(range(K), repeat=len(words)), key=lambda path, words=words: score(words, path))
        assert outputs[i:j].tolist() == list(best)
    problem = task.problem(seen)
    assert problem.max_rows == (3 if order == 2 else 3 + K + 3 * K)
    settings, arrays = task.to_arrays()
    again = Chunking.from_arrays(json.loads(json.dumps(settings)), arrays)
    for left, right in zip(problem.inputs, again.problem(seen).inputs, strict=True):
        np.testing.assert_array_equal(left, right) if not isinstance(left, tuple) else None


def test_order_1_needs_attributes_of_tags():
    with pytest.raises(DataError, match=r"^t:2: only tag bigrams have attributes; add a template such as U00"):
        Chunking.fit(TRAIN, templates=parse_templates(["", "B01:%x[0,0]"], "t"), order=1)


def test_a_model_of_before_there_were_macros():
    """Saved by 0.1.0: words x and y, and their pairs; arrays as they stand in its file."""
    settings = {"tags": ["B", "I", "O"], "order": 2, "only": None, "n_columns": 2}
    settings["templates"] = ["U00:%x[0,1]", "U01:%x[-1,1]/%x[0,1]"]
    arrays = {
        "vocabulary_0": np.zeros(0, np.uint8),
        "vocabulary_1": np.frombuffer(b"x\ny", np.uint8),
        "keys": np.array([3, 4, 8, 19, 24]),  # codes: 0 unknown, 1 and 2 pads, 3 x, 4 y
        "key_stops": np.array([2, 5]),
        "n_ranks": np.array([0, 0]),
        "numbers": np.array([1, 0, 2, 3, 4], np.int32),
    }
    task = Chunking.from_arrays(settings, arrays)
    assert (task.scheme, task.column) == ("iob2", None)  # nor schemes
    assert task.index.names() == ["U00:y", "U00:x", "U01:_B-1/x", "U01:x/y", "U01:y/y"]
    words, offsets = (["a", "b", "c"], ["x", "y", "y"]), np.array([0, 3])
    assert task.index.transform(Corpus("f", words, None, offsets)).tolist() == [[1, 2], [0, 3], [0, 4]]
    for name, values in task.index.to_arrays().items():
        np.testing.assert_array_equal(values, arrays[name])


def test_features_for_names():
    task, seen = Chunking.fit(TRAIN, features="ner")
    names = task.index.names()
    assert {"u:suffix3=dog", "u:form=x", "u:word+1=barks"} < set(names)
    assert names == Chunking.fit(TRAIN)[0].index.names()  # what data of words alone gets
    assert Chunking.fit(TRAIN, features="chunking")[0].index.names() != names
    settings, arrays = task.to_arrays()
    again = Chunking.from_arrays(json.loads(json.dumps(settings)), arrays)
    assert again.index.transform(seen).tolist() == task.index.transform(seen).tolist()
    with pytest.raises(UsageError, match="`features` pos: choose from chunking, ner"):
        Chunking.fit(TRAIN, features="pos")
    with pytest.raises(UsageError, match="`template` and `features` both say what the templates are; give one of them"):
        ChunkingOptions(template="f", features="ner")


def test_a_corpus_with_other_columns_is_refused(task):
    with pytest.raises(DataError) as caught:
        task.problem(chunking_corpus(3, seed=1))
    assert str(caught.value) == "generated (seed 1): has 2 columns before the tag, the model 1"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"order": 3}, "`order` 3: choose from 1, 2"),
        ({"min_count": 0}, "`min_count` 0: must be a whole number, 1 or more"),
        ({"only": "PP"}, "some.txt: no chunk of type 'PP'; the types in it are: NP, VP"),
    ],
)
def test_what_is_refused(given, message):
    with pytest.raises(UsageError) as caught:
        Chunking.fit(TRAIN, templates=WORD, **given)
    assert str(caught.value) == message


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
    assert known_by(one.inputs) == known_by(other.inputs)
    assert again.gold(seen).tags.tolist() == task.gold(seen).tags.tolist()


@pytest.mark.parametrize(
    "changed",
    [
        {"tags": ["B-NP", "I-NP"]},  # no O
        {"tags": ["O", "B-NP", "I-NP"]},
        {"tags": ["B-NP", "I-VP", "O"]},
        {"tags": ["B-NP", "I-NP", "B-NP", "I-NP", "O"]},
        {"tags": ["O"]},
        {"tags": []},
        {"tags": ["B-NP", 7, "O"]},
        {"tags": ["NN", "NN"], "scheme": "plain"},
        {"tags": ["NN", ""], "scheme": "plain"},
        {"tags": [str(k) for k in range(40_000)], "scheme": "plain"},
        {"scheme": "auto"},
        {"scheme": "else"},
        {"scheme": ["iob2"]},
        {"order": 3},
        {"order": "2"},
        {"column": 7},
    ],
    ids=lambda changed: str(changed)[:40],
)
def test_a_tag_set_that_none_is_no_task(task, changed):
    settings, arrays = task.to_arrays()
    with pytest.raises(ValueError, match=r"tag set|scheme|order|column|too many"):
        Chunking.from_arrays(settings | changed, arrays)
