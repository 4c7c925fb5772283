"""Made-up sentences: reproducible, well formed, and ambiguous in the ways that are promised."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import pytest

from sparsezo.errors import UsageError
from sparsezo.tasks.chunking.synthetic import chunking_columns, chunking_corpus, generate_chunking

Sentences = list[list[tuple[str, str, str]]]


@pytest.fixture(scope="module")
def train() -> Sentences:
    return generate_chunking(300, seed=1)


@pytest.fixture(scope="module")
def test() -> Sentences:
    return generate_chunking(50, seed=2)


def test_sentences_follow_from_the_seed_and_a_longer_list_starts_with_the_shorter(train, test):
    assert generate_chunking(50, seed=1) == train[:50]
    assert test[:20] != train[:20]
    assert generate_chunking(0, seed=3) == []


def test_the_sentences_are_those_they_always_were(train):
    """Published numbers rest on these sentences: a change here is a change of the data."""
    assert [token[0] for token in train[0][:5]] == ["Vunifailmly", ",", "plosts", "doulked", "to"]
    digest = hashlib.sha256(chunking_columns(train[:200]).encode()).hexdigest()
    assert digest == "c31063d5909d736c0bd99468d7c176f1afe51caf942fb0cd7774a014f4aea0e6"


def test_tags_are_iob2_and_tokens_are_clean(train):
    for sentence in train:
        tags = ["O", *(tag for _, _, tag in sentence)]
        assert set(tags) <= {"O", "B-NP", "I-NP"}
        assert all(before != "O" for before, tag in pairwise(tags) if tag == "I-NP")
        assert all(field and not any(c.isspace() for c in field) for token in sentence for field in token)
        assert sentence[-1] == (".", ".", "O")
        assert not sentence[0][0][0].islower()


def test_a_corpus_and_columns(test):
    corpus = chunking_corpus(20, seed=2)
    assert corpus.offsets.tolist() == [sum(map(len, test[:k])) for k in range(21)]
    tokens = [token for sentence in test[:20] for token in sentence]
    assert list(zip(*corpus.columns, corpus.tags, strict=True)) == tokens
    assert corpus.path == "generated (seed 2)"
    sentences = [[("Trond", "NNP", "B-NP"), (".", ".", "O")], [("It", "PRP", "B-NP")]]
    assert chunking_columns(sentences) == "Trond NNP B-NP\n. . O\n\nIt PRP B-NP\n\n"


@pytest.mark.parametrize(("n", "seed", "named"), [(-1, 0, "n_sentences"), (1, -1, "seed")])
def test_bad_numbers_are_refused(n, seed, named):
    with pytest.raises(UsageError, match=named):
        generate_chunking(n, seed)
