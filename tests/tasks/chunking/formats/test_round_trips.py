"""Out and back through every format, and through every two of them: no offset is lost, whatever the text."""

from __future__ import annotations

import io
import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsezo import messages
from sparsezo.tasks.chunking.io.documents import Document, Span, tagged, without_overlap
from sparsezo.tasks.chunking.io.formats import read_documents, write_documents

KEEP_TEXT = ("jsonl", "brat", "spacy", "prodigy", "label-studio")
KEEP_TOKENS = ("conll", "datasets")
ODD = [  # combining marks, beyond U+FFFF, joined emoji, zero width, right to left, line ends of all kinds, blanks
    *("a", "Z", ".", "'", '"', "\\", "{", ",", " ", " ", "  ", "\t", "\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x85"),
    *("e\u0301", "\u0301", "ñ", "n\u0303", "😀", "👨\u200d👩\u200d👧", "𝐱", "\U0010ffff", "\u200b", "\ufeff", "\u2060"),
    *("\u00a0", "\u2028", "\u2029", "\u3000", "日本", "שלום", "\u202e", "क्षि", *"\0\x1b\x7f\ufffd\ue000ﬁ"),
]
labels = st.sampled_from(["PER", "LOC", "Ö", "x-y", "O"])
texts = st.lists(st.sampled_from(ODD) | st.characters(exclude_categories=["Cs"]), max_size=30).map("".join)


@st.composite
def documents(draw, overlapping=True):
    text = draw(texts)
    places = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)), labels)
    probability = st.none() | st.floats(0, 1)

    def spans(size):
        drawn = draw(st.lists(places, max_size=size))
        return tuple(Span(a, b, label, draw(probability)) for a, b, label in drawn if a < b)

    known = draw(st.booleans())
    own = spans(4) if known else None
    if own and not overlapping:
        own = without_overlap(own)[0]
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=12)))
    tokens = tuple(place for place in itertools.pairwise(cuts) if draw(st.integers(0, 4)))
    return Document(text, draw(st.none() | st.sampled_from(["7", "007", "a/b", "é 😀"])), own, tokens=tokens)


def through(format, given):
    """Written, and read again."""
    stream = io.BytesIO()
    with messages.gathered():
        write_documents(given, format, stream)
        stream.seek(0)
        return list(read_documents("x", format, stream))


def spans_only(document):
    return document.text, document.spans


@pytest.mark.parametrize("format", KEEP_TEXT)
@settings(max_examples=100, deadline=None)
@given(given=st.lists(documents(), min_size=1, max_size=3))
def test_text_and_spans_come_back(format, given):
    found = through(format, given)
    wanted = given
    if format == "spacy":
        wanted = [
            each if each.spans is None else replace(each, spans=without_overlap(each.spans)[0]) for each in wanted
        ]
    assert sorted(map(repr, map(spans_only, found))) == sorted(map(repr, map(spans_only, wanted)))  # brat: by name
    if format != "brat":
        assert [(each.id, each.spans) for each in found] == [(each.id, each.spans) for each in wanted]
    if format == "spacy":
        assert [each.tokens for each in found] == [each.tokens for each in wanted]


@pytest.mark.parametrize("format", KEEP_TOKENS)
@settings(max_examples=100, deadline=None)
@given(given=st.lists(documents(), min_size=1, max_size=3))
def test_tokens_and_tags_come_back(format, given):
    """Spans along tokens; columns have no blanks in a token."""
    blanks = set(" \t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029") if format == "conll" else set()
    wanted = []
    for each in given:
        tokens = tuple(place for place in each.tokens if not blanks & set(each.text[slice(*place)]))
        if tokens:
            ends = [tokens[i : i + 2] for i in range(0, len(tokens), 3)]
            spans = tuple(Span(some[0][0], some[-1][1], label) for some, label in zip(ends, "ABCDE", strict=False))
            wanted.append(replace(each, tokens=tokens, spans=spans))
    found = through(format, wanted) if wanted else []
    assert [(each.words(), tagged(each, "x")) for each in found] == [
        (each.words(), tagged(each, "x")) for each in wanted
    ]
    for document in found:
        assert document.text == " ".join(document.words())


def test_suggestions_rejections_and_the_unknown_come_back():
    spans = (Span(0, 1, "X", 0.5),)
    some = Document(
        "a b c", "7", spans, (Span(2, 3, "Y"),), (Span(4, 5, "Z"),), True, ((0, 1), (2, 3), (4, 5)), (0, 1, 3)
    )
    for format in ("jsonl", "spacy"):
        (found,) = through(format, [some])
        assert replace(found, tokens=some.tokens, sentences=some.sentences) == some
    assert through("spacy", [some]) == [some]
    assert through("prodigy", [some]) == [replace(some, suggested=(), sentences=None)]
    assert through("label-studio", [some])[0].suggested == some.suggested
    nothing_known = Document("a", spans=(), missing=True, tokens=((0, 1),))
    assert through("spacy", [nothing_known]) == [nothing_known]
    to_look_at = Document("a b", spans=None, suggested=spans)
    for format in ("jsonl", "prodigy", "label-studio"):
        assert through(format, [to_look_at]) == [to_look_at]


@pytest.mark.parametrize("format", ["jsonl", "spacy", "prodigy", "label-studio"])
def test_other_fields_come_back(format):
    meta = {
        "url": "é\u2028",
        "n": [1, 2.5, None, True, {"a": 10**30}],
        "": {},
        "meta": {"x": 1},
        "label_studio": {"project": 3},
    }
    document = Document("a", "x", (), meta=meta)
    assert [(each.id, each.meta) for each in through(format, [document])] == [("x", meta)]


def test_a_first_token_that_looks_like_a_byte_order_mark_stays():
    one = Document("\ufeff x", spans=(Span(0, 1, "A"),), tokens=((0, 1), (2, 3)), sentences=(0, 2))
    (found,) = through("conll", [one])
    assert (found.words(), tagged(found, "x")[0]) == (["\ufeff", "x"], ["B-A", "O"])
