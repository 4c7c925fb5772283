"""Generated documents: RCV1's shape, reproducible by block, and worth learning from."""

from __future__ import annotations

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.tasks.text.synthetic import (
    BLOCK,
    CLASSES,
    generate_text,
    generate_texts,
    spell,
)


@pytest.fixture(scope="module")
def some():
    return generate_text(3 * BLOCK, seed=1)


def test_the_documents_are_those_they_always_were(some):
    """Published numbers rest on these documents: a change here is a change of the data."""
    vectors = some.vectors
    assert some.labels[:20].tolist() == [0, 1, 1, 0, 2, 0, 0, 0, 3, 2, 0, 1, 0, 0, 0, 0, 2, 1, 3, 0]
    assert vectors.indptr[:6].tolist() == [0, 71, 117, 193, 276, 347]
    assert vectors.indices[:6].tolist() == [1520, 8869, 12110, 16109, 21692, 27183]
    np.testing.assert_allclose(
        vectors.data[:6], [0.204229, 0.0895924, 0.122425, 0.22548, 0.161643, 0.0489499], rtol=1e-4
    )
    label, text = next(generate_texts(1, seed=3))
    assert (label, text.split()[:8]) == ("CCAT", ["si", "goti", "bu", "pe", "dobi", "hode", "du", "ki"])


def test_a_longer_collection_begins_with_the_shorter(some):
    shorter = generate_text(BLOCK + 100, seed=1)
    end = shorter.vectors.indptr[-1]
    np.testing.assert_array_equal(shorter.vectors.indptr, some.vectors.indptr[: BLOCK + 101])
    np.testing.assert_array_equal(shorter.vectors.indices, some.vectors.indices[:end])
    np.testing.assert_array_equal(shorter.vectors.data, some.vectors.data[:end])
    np.testing.assert_array_equal(shorter.labels, some.labels[: BLOCK + 100])
    assert not np.array_equal(generate_text(100, seed=2).labels, some.labels[:100])


def test_texts():
    pairs = list(generate_texts(200, seed=3))
    assert pairs[:50] == list(generate_texts(50, seed=3))
    assert {label for label, _ in pairs} == set(CLASSES)
    assert 45 < np.mean([len(set(text.split())) for _, text in pairs]) < 70
    spelled = [spell(rank) for rank in range(20_000)]
    assert len(set(spelled)) == 20_000
    assert [len(word) for word in spelled] == sorted(len(word) for word in spelled)


def test_wrong_calls():
    with pytest.raises(UsageError, match="0 documents; ask for at least 1"):
        generate_text(0, seed=0)
    with pytest.raises(UsageError, match="seed is -1"):
        generate_text(10, seed=-1)
