"""Rows by hashes of names: fixed for ever, of any data, and the weights of what collides add up."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from sparsezo.errors import DamagedError, UsageError
from sparsezo.learner import Learner
from sparsezo.model import Model, load_model
from sparsezo.options import make_options
from sparsezo.settings import Settings
from sparsezo.tasks import hashing
from sparsezo.tasks.chunking.features.templates import parse_templates
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.io.crfsuite import read_crfsuite
from sparsezo.tasks.chunking.options import ChunkingOptions
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.text.io.documents import read_documents
from sparsezo.tasks.text.spec import TextOptions
from sparsezo.tasks.text.task import TextClassification
from sparsezo.training import joined

LAST = 2**64 - 1
TRAIN = Corpus("t", (["a", "b", "a"], ["X", "Y", "X"]), ["B-NP", "I-NP", "O"], np.array([0, 2, 3]))


def mixed(z: int) -> int:
    """SplitMix64's finaliser, in plain numbers."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & LAST
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & LAST
    return z ^ (z >> 31)


def hashed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def row(bits: int, template: str, *values: str) -> int:
    """An attribute's row, word for word as the documentation has it."""
    name = hashed(template)
    for value in values:
        name = mixed(name ^ hashed(value))
    return name % 2**bits


def test_the_hash_is_the_one_that_saved_models_rely_on() -> None:
    # printf dog | b2sum -l 64, read with the low byte first
    assert hashing.hashes_of(["dog", "", "é"]).tolist() == [0x9F9C5ED2C1C78439, 0xB4B2797457A0A6E4, 0x2F19F3EF8BBF1ACB]
    assert hashing.rows_of(["dog"], 12).tolist() == [0x439]


def test_an_attributes_row_is_the_hash_of_its_template_and_values() -> None:
    templates = parse_templates(["U0:%x[0,0]", "U1:%x[-1,0]/%x[0,1]", "U2:"], "here")
    task, corpus = Chunking.fit(TRAIN, templates=templates, hash_bits=11)
    columns = task.problem(corpus).inputs.columns.reshape(-1, 3).tolist()
    bias = row(11, "u2:")
    assert columns == [
        [row(11, "u0:%", "a"), row(11, "u1:%/%", "\n_B-1", "X"), bias],
        [row(11, "u0:%", "b"), row(11, "u1:%/%", "a", "Y"), bias],
        [row(11, "u0:%", "a"), row(11, "u1:%/%", "\n_B-1", "X"), bias],
    ]


def test_templates_of_one_text_share_rows_and_parts_stay_apart() -> None:
    words = ["a/b", "c", "a", "b/c"]
    corpus = Corpus("t", (words,), ["O", "B-NP", "O", "B-NP"], np.array([0, 2, 4]))
    shared = parse_templates(["U:%x[-1,0]", "U:%x[0,0]"], "here")
    task, _ = Chunking.fit(corpus, templates=shared, hash_bits=20)
    columns = task.problem(corpus).inputs.columns.reshape(-1, 2)
    assert columns[1, 0] == columns[0, 1]  # the same word, one place further on
    pairs = parse_templates(["U:%x[-1,0]/%x[0,0]"], "here")
    task, _ = Chunking.fit(corpus, templates=pairs, hash_bits=20)
    columns = task.problem(corpus).inputs.columns
    assert columns[1] != columns[3]  # a/b, c and a, b/c


def test_without_collisions_a_hashed_run_is_the_exact_one() -> None:
    """The same weights under other numbers: learning does not care where a row stands."""
    corpus = chunking_corpus(30, seed=1)
    templates = parse_templates(["U0:%x[0,0]", "U1:%x[0,1]", "U2:%x[-1,1]/%x[0,1]"], "here")
    runs = []
    for bits in (None, 24):
        task, data = Chunking.fit(corpus, only="NP", templates=templates, hash_bits=bits)
        problem, gold = task.problem(data), task.gold(data)
        learner = Learner(problem, Settings("two-point", "score", 0.01, 0.1, seed=5))
        learner.run(gold, 500)
        runs.append((problem, learner))
    (exact, first), (table, second) = runs
    pairs = set(zip(exact.inputs.columns.tolist(), table.inputs.columns.tolist(), strict=True))
    assert len(pairs) == exact.n_features  # each attribute has a row for itself
    for number, place in pairs:
        assert np.array_equal(first.state.W[number], second.state.W[place])
    assert second.state.W.any(axis=1).sum() <= exact.n_features


def test_what_collides_within_a_token_counts_twice() -> None:
    """Two attributes of a token on one row: its score is twice the row's weight."""
    templates = parse_templates([f"U{k}:%x[0,0]" for k in range(200)], "here")
    task, corpus = Chunking.fit(TRAIN, templates=templates, hash_bits=10)
    inputs = task.problem(corpus).inputs
    row_of_first = inputs.columns[:200]
    assert len(set(row_of_first.tolist())) < 200
    W = np.zeros((task.n_features, task.n_labels), np.float32)
    twice = next(c for c in row_of_first.tolist() if (row_of_first == c).sum() == 2)
    W[twice] = 1.5
    from sparsezo.kernels import protocol
    from sparsezo.kernels.jit import kernel

    @kernel
    def scores(inputs, W, S):  # type: ignore[no-untyped-def]
        protocol.scores(inputs, 0, W, S)

    S = np.zeros((2, task.n_labels), np.float32)
    scores(inputs, W, S)
    assert (S[0] == 3.0).all()


def test_order_1_keeps_its_tag_bigrams_apart_from_the_table() -> None:
    templates = parse_templates(["U0:%x[0,0]", "B0:%x[0,1]"], "here")
    task, corpus = Chunking.fit(TRAIN, order=1, templates=templates, hash_bits=12)
    K = 3
    assert task.n_features == 2**12 + K + K * 2**10  # rows for each tag before, of two bits fewer
    columns = task.problem(corpus).inputs.columns
    after = set(range(2**12, 2**12 + K))
    assert after <= set(columns.tolist())
    inside = columns[columns >= 2**12 + K] - 2**12 - K
    assert set((inside // K).tolist()) == {row(10, "b0:%", "X"), row(10, "b0:%", "Y")}


def test_listed_attributes_are_hashed_by_name(put) -> None:  # type: ignore[no-untyped-def]
    path = put("t.crfsuite", "B-NP\tw=a\tlong:0.5\nO\tw=b\n\nO\tw=a\n\n")
    task, corpus = Chunking.fit(read_crfsuite(path), hash_bits=15)
    inputs = task.problem(corpus).inputs
    assert inputs.columns.tolist() == [hashed(name) % 2**15 for name in ("w=a", "long", "w=b", "w=a")]
    assert inputs.values.tolist() == [1.0, 0.5, 1.0, 1.0]


@pytest.mark.parametrize("order", [1, 2])
def test_a_hashed_chunker_is_saved_without_a_vocabulary_and_predicts_the_same(tmp_path, order) -> None:  # type: ignore[no-untyped-def]
    templates = parse_templates(["U0:%x[0,0]", "*1:%x[0,1]"], "here")
    task, corpus = Chunking.fit(chunking_corpus(40, seed=2), order=order, only="NP", templates=templates, hash_bits=11)
    learner = Learner(task.problem(corpus), Settings("supervised", None, 0.1, None))
    learner.run(task.gold(corpus), 400)
    Model(task, learner.weights(), {}, {}).save(tmp_path / "m.szo")
    loaded = load_model(tmp_path / "m.szo", "chunking")
    assert loaded.task.to_arrays() == task.to_arrays()
    assert not task.to_arrays()[1]
    other = chunking_corpus(20, seed=9)  # with words that training has not seen
    assert np.array_equal(loaded.predict(other), Model(task, learner.weights(), {}, {}).predict(other))


def test_a_hashed_model_that_was_tampered_with_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    task, _ = Chunking.fit(TRAIN, hash_bits=10)
    settings, arrays = task.to_arrays()
    for wrong in ({"hash_bits": 50}, {"hash_bits": "10"}, {"n_columns": 1}, {"hash_bits": 11}):

        class Tampered:
            name, n_features, n_labels = "chunking", task.n_features, task.n_labels

            def to_arrays(self, wrong=wrong):  # type: ignore[no-untyped-def]
                return {**settings, **wrong}, arrays

        W = np.zeros((task.n_features, task.n_labels), np.float32)
        Model(Tampered(), W, {}, {}).save(tmp_path / "m.szo")  # type: ignore[arg-type]
        with pytest.raises(DamagedError):
            load_model(tmp_path / "m.szo")


@pytest.mark.parametrize("options", [ChunkingOptions, TextOptions])
def test_bits_out_of_range_are_refused_in_one_line(options) -> None:  # type: ignore[no-untyped-def]
    for bits in (9, 29, -1):
        with pytest.raises(UsageError, match=f"`hash_bits` {bits}: must be a whole number from 10 to 28"):
            make_options(options, {"hash_bits": bits}, "task")
    with pytest.raises(UsageError, match="`min_count` 2: with `hash_bits` features have no names to count by"):
        make_options(options, {"hash_bits": 20, "min_count": 2}, "task")


def test_a_table_too_large_says_to_take_fewer_bits() -> None:
    with pytest.raises(UsageError, match="fewer `hash_bits`"):
        Chunking.fit(TRAIN, hash_bits=28)


def test_a_hashed_model_starts_another_of_the_same_bits_and_labels() -> None:
    task, _ = Chunking.fit(TRAIN, only="NP", hash_bits=10)
    W = np.random.default_rng(0).normal(size=(task.n_features, task.n_labels)).astype(np.float32)
    model = Model(task, W, {}, {})
    same, _ = Chunking.fit(chunking_corpus(20, seed=1), only="NP", hash_bits=10)
    assert np.array_equal(joined(model, same).W, W)
    for bits in (11, None):
        other, _ = Chunking.fit(chunking_corpus(20, seed=1), only="NP", hash_bits=bits)
        with pytest.raises(UsageError, match="`hash_bits` 10; train with the same"):
            joined(model, other)
    exact, _ = Chunking.fit(TRAIN, only="NP")
    with pytest.raises(UsageError, match="has no `hash_bits`"):
        joined(Model(exact, np.zeros((exact.n_features, 9), np.float32), {}, {}), same)
    other, _ = Chunking.fit(replace(TRAIN, tags=["B-VP", "I-VP", "O"]), hash_bits=10)
    assert (task.n_features, task.n_labels) == (other.n_features, other.n_labels)  # as many: each would be another's
    with pytest.raises(UsageError, match="the model to start from has other labels than 'B-VP B-VP'"):
        joined(model, other)


def test_lone_surrogates_are_hashed_as_they_are() -> None:
    """As os.fsdecode and JSON's escapes give them: UTF-8 has no bytes for them."""
    texts = ["\ud800", "a\udcff", "\udc80\ud800"]
    expected = [
        int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little")
        for raw in (b"\xed\xa0\x80", b"a\xed\xb3\xbf", b"\xed\xb2\x80\xed\xa0\x80")
    ]
    assert hashing.hashes_of(texts).tolist() == expected
    assert hashing.rows_of(texts, 20).tolist() == [each % 2**20 for each in expected]


# Text


@pytest.fixture
def documents(put):  # type: ignore[no-untyped-def]
    path = put("t.tsv", "sci\tstar star light\nrec\tball game\nsci\tlight years\nrec\t!\n")
    return read_documents(path)


def test_hashed_documents_are_the_exact_ones_under_other_numbers(documents) -> None:  # type: ignore[no-untyped-def]
    exact, prepared = TextClassification.fit(documents)
    table, hashed_ones = TextClassification.fit(documents, hash_bits=16)
    rows = hashing.rows_of(exact.vectoriser.vocabulary, 16)
    assert len(set(rows.tolist())) == exact.n_features
    assert table.n_features == 2**16
    moved = np.zeros((4, 2**16), np.float32)
    moved[:, rows] = prepared.matrix.toarray()
    assert np.allclose(hashed_ones.matrix.toarray(), moved, atol=1e-7)
    assert (table.seen(documents).matrix.toarray() == hashed_ones.matrix.toarray()).all()


def test_words_on_one_row_count_as_one_word(put) -> None:  # type: ignore[no-untyped-def]
    words = [f"word{k}" for k in range(3000)]
    rows = hashing.rows_of(words, 10).tolist()
    first = next(k for k in range(1, 3000) if rows[k] in rows[:k])
    other = rows.index(rows[first])
    path = put("t.tsv", f"a\t{words[first]} {words[other]}\nb\t{words[first]} {words[first]}\n")
    _, prepared = TextClassification.fit(read_documents(path), hash_bits=10)
    X = prepared.matrix
    assert X.indices.tolist() == [rows[first]] * 2
    assert X.data.tolist() == [1.0, 1.0]


def test_counting_in_pieces_is_counting_at_once(documents) -> None:  # type: ignore[no-untyped-def]
    task, prepared = TextClassification.fit(documents, hash_bits=12)
    from sparsezo.tasks.text.features.tfidf import HashedVectoriser

    pieces = HashedVectoriser(12)
    for k in range(4):
        pieces.count(documents.take(slice(k, k + 1)))
    assert (pieces.transform(documents) != prepared.matrix).nnz == 0
    assert pieces.settings == task.vectoriser.settings


def test_a_hashed_text_model_is_saved_and_predicts_the_same(tmp_path, put, documents) -> None:  # type: ignore[no-untyped-def]
    task, _ = TextClassification.fit(documents, hash_bits=10)
    W = np.random.default_rng(1).normal(size=(task.n_features, 2)).astype(np.float32)
    model = Model(task, W, {}, {})
    model.save(tmp_path / "m.szo")
    loaded = load_model(tmp_path / "m.szo", "text")
    assert list(loaded.task.to_arrays()[1]) == ["documents_with_row"]  # no word
    new = put("n.tsv", "sci\tunheard-of light\nrec\tgame\n")
    assert np.array_equal(loaded.predict(read_documents(new)), model.predict(read_documents(new)))


def test_vectors_have_their_indices_hashed(put) -> None:  # type: ignore[no-untyped-def]
    path = put("t.svm", "1 3:0.5 7:2\n-1 12345678901:1\n")
    _, prepared = TextClassification.fit(read_documents(path), hash_bits=20)
    X = prepared.matrix.tocoo()
    assert {(int(r), int(c)): float(v) for r, c, v in zip(X.row, X.col, X.data, strict=True)} == {
        (0, hashed("3") % 2**20): 0.5,
        (0, hashed("7") % 2**20): 2.0,
        (1, hashed("12345678901") % 2**20): 1.0,
    }
