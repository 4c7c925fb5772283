"""Generated documents: RCV1's shape, reproducible by block, and worth learning from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.tasks.text.documents import read_documents
from sparsezo.tasks.text.generate import BLOCK, CLASSES, PRIORS, GeneratedText, generate_text, generate_texts
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
    assert vectors.indices.min() >= 0
    assert vectors.indices.max() < 228_000
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


def test_words_follow_zipf(some: GeneratedText) -> None:
    counts = np.sort(np.bincount(some.vectors.indices))[::-1]
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


def testspelling_is_one_to_one() -> None:
    from sparsezo.tasks.text.generate import spell

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
