"""Generated documents: RCV1's shape, reproducible by block, and worth learning from."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.tasks.text.documents import read_documents
from sparsezo.tasks.text.generate import (
    BLOCK,
    CLASSES,
    PRIORS,
    GeneratedText,
    _draw_block,
    _law,
    generate_text,
    generate_texts,
    spell,
)
from sparsezo.tasks.text.generate import write_svmlight as write


@pytest.fixture(scope="module")
def some() -> GeneratedText:
    return generate_text(3 * BLOCK, seed=1)


def test_shape(some: GeneratedText) -> None:
    vectors = some.vectors
    sizes = np.diff(vectors.indptr)
    assert len(vectors) == len(some.labels) == 3 * BLOCK
    assert 73 < sizes.mean() < 77
    assert sizes.min() >= 1
    assert (vectors.indices.dtype, vectors.values.dtype) == (np.int32, np.float32)
    assert vectors.indices.min() >= 1
    assert vectors.indices.max() <= 228_000
    assert len(np.unique(vectors.indices)) > 90_000
    rising = np.diff(vectors.indices) > 0
    rising[vectors.indptr[1:-1] - 1] = True  # from one document to the next
    assert rising.all()
    lengths = np.add.reduceat(vectors.values.astype(float) ** 2, vectors.indptr[:-1])
    np.testing.assert_allclose(lengths, 1, rtol=1e-5)
    assert some.classes == CLASSES
    shares = np.bincount(some.labels) / len(some.labels)
    assert 0.45 < shares[0] < 0.5
    np.testing.assert_allclose(shares, PRIORS, atol=0.03)


def test_the_documents_are_those_they_always_were(some: GeneratedText) -> None:
    """Published numbers rest on these documents: a change here is a change of the data."""
    vectors = some.vectors
    assert some.labels[:20].tolist() == [0, 1, 1, 0, 2, 0, 0, 0, 3, 2, 0, 1, 0, 0, 0, 0, 2, 1, 3, 0]
    assert vectors.indptr[:6].tolist() == [0, 71, 117, 193, 276, 347]
    assert vectors.indices[:6].tolist() == [1520, 8869, 12110, 16109, 21692, 27183]
    np.testing.assert_allclose(
        vectors.values[:6], [0.204229, 0.0895924, 0.122425, 0.22548, 0.161643, 0.0489499], rtol=1e-4
    )
    label, text = next(generate_texts(1, seed=3))
    assert (label, text.split()[:8]) == ("CCAT", ["si", "goti", "bu", "pe", "dobi", "hode", "du", "ki"])


def test_values_are_tf_idf_of_the_law_scaled_to_length_1() -> None:
    """(1 + ln tf) (1 - ln P(a document has the word)): words are counted one by one."""
    settings = {"vocabulary": 3000, "words": 20, "priors": (0.5, 0.3, 0.2), "label_noise": 0.0}
    some = generate_text(50, seed=4, **settings)
    law = _law(4, **settings)
    _, lengths, tokens = _draw_block(law, 0)
    ends = np.cumsum(lengths)
    for i in range(50):
        tf = Counter(law.number_of[tokens[ends[i] - lengths[i] : ends[i]]].tolist())
        rank_of = {int(law.number_of[rank]): rank for rank in range(3000)}
        expected = {column: (1 + math.log(count)) * law.idf[rank_of[column]] for column, count in tf.items()}
        length = math.sqrt(sum(value**2 for value in expected.values()))
        row = slice(*some.vectors.indptr[i : i + 2])
        assert (some.vectors.indices[row] - 1).tolist() == sorted(expected)
        found = [expected[column] / length for column in sorted(expected)]
        np.testing.assert_allclose(some.vectors.values[row], found, rtol=1e-5)


def test_idf_is_that_of_the_documents_drawn() -> None:
    """Of the law's fresh tokens: 1 - ln(share of documents with the word), for frequent words, within 6 errors."""
    settings = {"vocabulary": 3000, "words": 20, "priors": (0.5, 0.3, 0.2), "label_noise": 0.0}
    law = _law(4, **settings)
    chance = np.exp(1 - law.idf.astype(float))  # that a document of mean length has the word
    background = np.diff(law.background, prepend=0)
    shares = 0.8 * law.priors + 0.2 / 3  # the class's own topic words, and strays of any class
    token = 0.65 * background
    for k in range(3):
        token[law.topics[k]] += 0.35 * shares[k] * np.diff(law.topic_law, prepend=0)
    assert token.sum() == pytest.approx(1)
    np.testing.assert_allclose(chance, 1 - (1 - token) ** (0.7 * 20 * 1.4), rtol=1e-4)
    _, _, tokens = _draw_block(law, 0)
    counts = np.bincount(tokens, minlength=3000)[:40]
    error = np.sqrt(counts.sum() * 3 * token[:40])  # repeats and shares make it wider than a multinomial's
    assert (np.abs(counts - len(tokens) * token[:40]) < 6 * error).all()


def test_words_follow_zipf(some: GeneratedText) -> None:
    counts = np.sort(np.bincount(some.vectors.indices)[1:])[::-1]
    ranks = np.array([10, 100, 1000, 10_000])
    slopes = np.diff(np.log(counts[ranks])) / np.diff(np.log(ranks))
    assert (slopes < -0.4).all()
    assert (slopes > -1.6).all()


def test_a_longer_collection_begins_with_the_shorter(some: GeneratedText) -> None:
    shorter = generate_text(BLOCK + 100, seed=1)
    end = shorter.vectors.indptr[-1]
    np.testing.assert_array_equal(shorter.vectors.indptr, some.vectors.indptr[: BLOCK + 101])
    np.testing.assert_array_equal(shorter.vectors.indices, some.vectors.indices[:end])
    np.testing.assert_array_equal(shorter.vectors.values, some.vectors.values[:end])
    np.testing.assert_array_equal(shorter.labels, some.labels[: BLOCK + 100])
    other = generate_text(100, seed=2)
    assert not np.array_equal(other.labels, some.labels[:100])


def test_label_noise() -> None:
    clean, noisy = (generate_text(2 * BLOCK, seed=5, label_noise=noise, words=10) for noise in (0.0, 0.1))
    np.testing.assert_array_equal(clean.vectors.indices, noisy.vectors.indices)
    assert 0.08 < (clean.labels != noisy.labels).mean() < 0.12


def test_other_classes() -> None:
    many = generate_text(500, seed=0, priors=[1, 1, 2], vocabulary=3000, words=20)
    assert many.classes == ("C1", "C2", "C3")
    assert set(many.names()) == {"C1", "C2", "C3"}


def test_a_linear_classifier_learns_it(some: GeneratedText) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    tfidf = pytest.importorskip("sparsezo.tasks.text.tfidf")
    X = tfidf.TextVectoriser().fit_transform(some.documents())
    train = slice(0, 2 * BLOCK)
    test = slice(2 * BLOCK, None)
    model = linear_model.SGDClassifier(loss="log_loss", alpha=1e-5, max_iter=4, tol=None, random_state=0)
    accuracy = model.fit(X[train], some.labels[train]).score(X[test], some.labels[test])
    assert 0.88 < accuracy < 0.97


def test_written_and_read_again(tmp_path: Path, some: GeneratedText) -> None:
    part = some.documents().take(slice(0, 300))
    assert part.vectors is not None
    assert part.labels is not None
    write(tmp_path / "a.dat.gz", part.vectors, part.labels)
    again = read_documents(tmp_path / "a.dat.gz")
    assert again.labels == part.labels
    assert again.vectors is not None
    np.testing.assert_array_equal(again.vectors.indices, part.vectors.indices)
    np.testing.assert_array_equal(again.vectors.values, part.vectors.values)


def test_texts() -> None:
    pairs = list(generate_texts(200, seed=3))
    assert pairs[:50] == list(generate_texts(50, seed=3))
    assert {label for label, _ in pairs} == set(CLASSES)
    distinct = [len(set(text.split())) for _, text in pairs]
    assert 45 < np.mean(distinct) < 70
    assert all(len(word) >= 2 and word.isalpha() for _, text in pairs for word in text.split())


def test_spelling_is_one_to_one() -> None:
    spelled = [spell(rank) for rank in range(20_000)]
    assert len(set(spelled)) == 20_000
    assert [len(word) for word in spelled] == sorted(len(word) for word in spelled)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"n_documents": 0}, "0 documents; ask for at least 1"),
        ({"seed": -1}, "seed is -1"),
        ({"label_noise": 1.0}, r"label_noise is 1.0; it must be in \[0, 1\)"),
        ({"vocabulary": 50}, "a vocabulary of 50 words; 4 classes need at least 400"),
        ({"words": 2}, "2 words a document; it must be between 5"),
        ({"priors": (1.0,)}, r"priors \(1.0,\); give 2 to 100 positive numbers"),
        ({"priors": (1.0, -1.0)}, "give 2 to 100 positive numbers"),
    ],
)
def test_wrong_calls(options: dict[str, object], what: str) -> None:
    arguments: dict[str, object] = {"n_documents": 10, "seed": 0} | options
    with pytest.raises(UsageError, match=what):
        generate_text(**arguments)  # type: ignore[arg-type]
