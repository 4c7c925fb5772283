"""Pieces of words: the same numbers as the library tokenizers gives, which is the oracle here."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from sparsezo.errors import DataError
from sparsezo.tasks.text.features.pieces import Pieces
from sparsezo.tasks.text.features.word_vectors import WordVectors

PATH = Path(find_spec("wordllama").submodule_search_locations[0]) / "tokenizers/l2_supercat_tokenizer_config.json"
ODD = ["▁", "  ", "<s>", "</s>", "<unk>", "<", "<0x41>", "e\u0301", "é", "\U0001f600", "中", "ق", "\u200b", "\n", "\0"]
TEXT = st.lists(st.sampled_from([*ODD, " ", "the", "ing", "Ing", "a", "0", "."]) | st.text(max_size=8), max_size=12)


@pytest.fixture(scope="module")
def pieces():
    return Pieces.of_json(PATH.read_bytes(), str(PATH))


@pytest.fixture(scope="module")
def theirs():
    return Tokenizer.from_file(str(PATH))


def encoded(pieces, texts):
    """The numbers of each text's pieces, in their order."""
    return [pieces._merged(pieces.words_of(text))[0].tolist() for text in texts]


def ids(tokenizer, texts):
    return [each.ids for each in tokenizer.encode_batch(texts, add_special_tokens=False)]


@settings(max_examples=300, deadline=None)
@given(st.lists(TEXT.map("".join), max_size=4))
def test_as_the_library_cuts_them(pieces, theirs, texts):
    assert encoded(pieces, texts) == ids(theirs, texts)


@pytest.mark.parametrize("text", ["ab" * 5000, "x" * 3001, "é中\U0001f600" * 1000, " " * 400 + "end", "<s>" * 50])
def test_long_words(pieces, theirs, text):
    assert encoded(pieces, [text, "", text + "!"]) == ids(theirs, [text, "", text + "!"])


def counts(pieces, texts):
    return WordVectors("x", np.zeros((len(pieces), 1), np.float16), pieces).counts(texts, str.split)


def test_counts(pieces):
    texts = ["the cat and the dog", "", "<s>the\tcat", "dog " * 70]
    found = counts(pieces, texts).toarray()
    expected = [np.bincount(np.array(each, int), minlength=len(pieces)) for each in encoded(pieces, texts)]
    np.testing.assert_array_equal(found, expected)
    many, one = counts(pieces, texts), counts(pieces, texts[3:])
    assert one.indices.tolist() == many.indices[many.indptr[3] :].tolist()
    assert one.data.tolist() == many.data[many.indptr[3] :].tolist()
    assert many.has_sorted_indices


def small(**changes):
    """A tokeniser of a few pieces, as JSON."""
    words = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "ab", "▁ab", "b▁a"]
    model = {
        "type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
        "vocab": {word: k for k, word in enumerate(words)}, "merges": ["a b", "▁ ab"],
    }  # fmt: skip
    before = {"type": "Prepend", "prepend": "▁"}
    blanks = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    whole = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": [before, blanks]},
        "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": model,
    }  # fmt: skip
    for name, value in changes.items():
        (model if name in model else whole)[name] = value
    return json.dumps(whole).encode()


@pytest.mark.parametrize("merges", [["a b", "▁ ab"], ["b ▁", "a b", "▁ ab"], []])
def test_pieces_that_go_on_after_a_blank(merges, tmp_path):
    """Words cannot be looked at one by one then."""
    words = json.loads(small())["model"]["vocab"] | {"b▁": 300, "▁a": 301}
    vocab = {word: k for k, word in enumerate(words)}
    raw = small(vocab=vocab, merges=[*merges, "b▁ a"])
    theirs = Tokenizer.from_str(raw.decode())
    texts = ["ab ab", "a b a b", "bb  aab b a", "é ab"]
    assert encoded(Pieces.of_json(raw, "x"), texts) == ids(theirs, texts)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"type": "Unigram"}, "no byte-pair encoding"),
        ({"pre_tokenizer": {"type": "ByteLevel"}}, "no byte-pair encoding"),
        ({"normalizer": None}, "no byte-pair encoding"),
        ({"vocab": {"a": 0}, "merges": []}, "has no <0x00>"),
        ({"vocab": {"a": 1}}, "not numbered from 0"),
        ({"merges": ["a x"]}, "'x'"),
        ({"merges": ["b a"]}, "piece that is not there"),
        ({"merges": ["a b", "a b"]}, "twice"),
        ({"merges": ["a"]}, "not enough values"),
        ({"model": []}, "list"),
        ({"added_tokens": [{"content": "a", "normalized": True, "lstrip": False, "rstrip": False}]}, "added tokens"),
    ],
)
def test_tokenisers_of_other_kinds(change, why):
    assert encoded(Pieces.of_json(small(), "x"), ["ab"]) == [[261]]
    with pytest.raises(DataError, match=rf"^t\.json: is no tokeniser.*{why}"):
        Pieces.of_json(small(**change), "t.json")


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"\xff", b"null"])
def test_no_json(raw):
    with pytest.raises(DataError, match=r"t\.json: is no tokeniser"):
        Pieces.of_json(raw, "t.json")


def test_arrays(pieces):
    arrays = pieces.to_arrays()
    again = Pieces.from_arrays(arrays, len(pieces))
    assert encoded(again, ["<s>Some text"]) == encoded(pieces, ["<s>Some text"])
    merges = arrays["merges"]
    for wrong in (
        {"merges": merges[:, :1]},
        {"merges": merges.astype(np.int64)},
        {"merges": merges - 1},
        {"merges": np.where(merges == merges.max(), 10**6, merges).astype(np.int32)},
        {"merges": np.concatenate([merges, merges[:1]])},
        {"pieces_start": arrays["pieces_start"][:-1]},
    ):
        with pytest.raises(ValueError):
            Pieces.from_arrays({**arrays, **wrong}, len(pieces))
    with pytest.raises(ValueError):
        Pieces.from_arrays(arrays, len(pieces) + 10)
