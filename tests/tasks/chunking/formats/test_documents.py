"""Spans and tags: what one says the other says, or it is an error."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsezo.errors import DataError, UsageError
from sparsezo.tasks.chunking.io.conll import Corpus, read_conll
from sparsezo.tasks.chunking.io.documents import (
    Document,
    Span,
    documents_from_columns,
    spans_of,
    tagged,
    without_overlap,
)
from sparsezo.tasks.chunking.tags import in_iob2, understood

TEXT = "In San Sebastián's port."
TOKENS = ((0, 2), (3, 6), (7, 16), (16, 18), (19, 23), (23, 24))


def tags(*spans):
    return tagged(Document(TEXT, spans=tuple(Span(*each) for each in spans), tokens=TOKENS), "x.jsonl:7")[0]


def test_tags_of_spans():
    assert tags((3, 16, "LOC")) == ["O", "B-LOC", "I-LOC", "O", "O", "O"]
    assert tags((3, 16, "LOC"), (16, 18, "LOC")) == ["O", "B-LOC", "I-LOC", "B-LOC", "O", "O"]
    assert tags((2, 19, "")) == ["O", "B", "I", "I", "O", "O"]  # blanks at its ends are in no token
    assert tagged(Document(TEXT, tokens=TOKENS), "x") == (["O"] * 6, 0)
    assert tagged(Document("", tokens=(), spans=()), "x") == ([], 0)


@pytest.mark.parametrize(
    ("span", "words"),
    [
        ((3, 15, "LOC"), "inside of the token 'Sebastián'"),
        ((8, 16, "LOC"), "inside of the token 'Sebastián'"),
        ((8, 9, "LOC"), "inside of the token 'Sebastián'"),
        ((2, 3, "LOC"), "with no token in it"),
    ],
)
def test_a_span_that_tags_cannot_say(span, words):
    with pytest.raises(DataError, match=words) as caught:
        tags((23, 24, "X"), span)
    assert str(caught.value).startswith("x.jsonl:7: span ")
    assert "mend the span or the tokens, or write jsonl" in str(caught.value)


def test_no_tokens_no_tags():
    with pytest.raises(UsageError, match="x7: has no tokens"):
        tagged(Document(TEXT, spans=(Span(0, 2, "X"),)), "x7")


def test_of_spans_that_overlap_the_longest_is_kept():
    spans = (Span(3, 6, "A"), Span(3, 16, "B"), Span(7, 18, "C"), Span(3, 16, "B"))
    assert tagged(Document(TEXT, spans=spans, tokens=TOKENS), "x") == (["O", "B-B", "I-B", "O", "O", "O"], 2)
    same = (Span(3, 6, "A"), Span(7, 16, "B"), Span(3, 6, "A"))  # the same twice is one
    assert tagged(Document(TEXT, spans=same, tokens=TOKENS), "x")[1] == 0


places = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5), st.sampled_from("AB")), max_size=8)


@given(places)
def test_without_overlap_by_the_literal_rule(drawn):
    spans = [Span(start, start + size, label) for start, size, label in drawn]
    kept = []
    for span in sorted(dict.fromkeys(spans), key=lambda s: (s.start - s.end, s.start)):
        if all(span.end <= other.start or other.end <= span.start for other in kept):
            kept.append(span)
    found, left_out = without_overlap(spans)
    assert [(s.start, s.end) for s in found] == sorted((s.start, s.end) for s in kept)
    assert left_out == len(set(spans)) - len(kept)


@given(st.lists(st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"]), max_size=10))
def test_spans_of_tags_and_back(tags):
    tokens = tuple((3 * i + 1, 3 * i + 3) for i in range(len(tags)))
    spans = spans_of(tokens, tags)
    document = Document("x" * (3 * len(tags) + 1), spans=spans, tokens=tokens)
    assert tagged(document, "x")[0] == in_iob2(tags)


def test_a_tag_for_each_token():
    with pytest.raises(UsageError, match="1 tags for 6 tokens"):
        spans_of(TOKENS, ["O"])


def test_columns_become_documents(tmp_path):
    (tmp_path / "x.txt").write_text("In IN O\nSan NNP B-LOC\nSebastián NNP I-LOC\n\n. . O\n", "utf-8")
    first, second = documents_from_columns(understood(read_conll(tmp_path / "x.txt"))[1])
    assert first == Document(
        "In San Sebastián", spans=(Span(3, 16, "LOC"),), tokens=((0, 2), (3, 6), (7, 16)), sentences=(0, 3)
    )
    assert (second.text, second.spans, second.tokens) == (".", (), ((0, 1),))
    untagged = next(documents_from_columns(read_conll(tmp_path / "x.txt", tagged=False)))
    assert untagged.spans is None


def test_attributes_are_no_words():
    with pytest.raises(UsageError, match="has attributes, not words"):
        next(documents_from_columns(Corpus("x", (), None, np.zeros(1, np.int64))))


@pytest.mark.data
def test_real_columns_keep_their_chunks(real_data):
    corpus = understood(read_conll(real_data / "conll2002" / "esp.testa.gz"))[1][:500]
    documents = list(documents_from_columns(corpus))
    tags = [tag for document in documents for tag in tagged(document, "x")[0]]
    assert tags == corpus.tags
    words = list(itertools.chain.from_iterable(document.words() for document in documents))
    assert words == corpus.columns[0]
