"""Chunk F1 against seqeval, and by hand where seqeval says nothing."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsezo.errors import UsageError
from sparsezo.tasks.chunking.metric import chunks, score_chunks

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from seqeval.metrics import accuracy_score
    from seqeval.metrics.sequence_labeling import get_entities, precision_recall_fscore_support

TAGS = ["O", "B-NP", "I-NP", "B-VP", "I-VP", "B-A-B", "I-A-B"]
tagged = st.lists(
    st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), min_size=1, max_size=8), min_size=1, max_size=6
)


def flat(sentences: list[list[str]]) -> list[str]:
    return [tag for sentence in sentences for tag in sentence]


def both(sentences: list[list[tuple[str, str]]]) -> tuple[list[list[str]], list[list[str]], np.ndarray]:
    gold, predicted = ([[pair[i] for pair in sentence] for sentence in sentences] for i in (0, 1))
    return gold, predicted, np.cumsum([0, *map(len, sentences)])


@settings(deadline=None)
@given(tagged)
def test_chunks_are_seqevals_entities(sentences):
    gold, _, offsets = both(sentences)
    expected = [
        (int(offset) + first, int(offset) + last + 1, kind)
        for offset, sentence in zip(offsets, gold, strict=False)
        for kind, first, last in get_entities(sentence)
    ]
    assert chunks(flat(gold), offsets) == expected


@pytest.mark.filterwarnings("ignore")
@settings(deadline=None)
@given(tagged)
def test_scores_are_seqevals(sentences):
    gold, predicted, offsets = both(sentences)
    scores = score_chunks(flat(gold), flat(predicted), offsets)
    assert scores.accuracy == pytest.approx(accuracy_score(gold, predicted))
    if not scores.per_type:
        assert (scores.precision, scores.recall, scores.f1) == (0, 0, 0)
        return
    options = {"zero_division": 0}
    precision, recall, f1, gold_count = precision_recall_fscore_support(gold, predicted, average="micro", **options)
    assert (scores.precision, scores.recall, scores.f1) == pytest.approx((precision, recall, f1))
    assert scores.gold == gold_count
    per_type = np.transpose(precision_recall_fscore_support(gold, predicted, average=None, **options))
    ours = [(s.precision, s.recall, s.f1, s.gold) for s in scores.per_type.values()]
    assert np.array(ours) == pytest.approx(per_type)  # both in order of the types' names


def test_plain_tags_and_empty_sentences():
    assert chunks(["B", "I", "I", "O"], np.array([0, 2, 2, 4, 4])) == [(0, 2, ""), (2, 3, "")]
    assert chunks([], np.array([0])) == []


def test_nothing_to_score():
    for tags in ([], ["O", "O"]):
        scores = score_chunks(tags, tags, np.array([0, len(tags)]))
        assert (scores.precision, scores.recall, scores.f1, scores.accuracy) == (0, 0, 0, float(bool(tags)))


def test_refusals():
    with pytest.raises(UsageError, match="2 gold tags, 1 predicted tags, 2 tokens; give one of each a token"):
        score_chunks(["O", "O"], ["O"], np.array([0, 2]))
    with pytest.raises(UsageError, match="tag 'X-NP' is no chunk tag"):
        score_chunks(["O"], ["X-NP"], np.array([0, 1]))
