"""Vectors of words: those in wordllama's files, and files that people have."""

from __future__ import annotations

import gzip
import json
import lzma
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from sparsezo.errors import DataError
from sparsezo.tasks.text.features import word_vectors
from sparsezo.tasks.text.features.word_vectors import WordVectors, read_tensor, read_vectors, wordllama

FOLDER = Path(find_spec("wordllama").submodule_search_locations[0])
WEIGHTS = FOLDER / "weights/l2_supercat_256.safetensors"
TEXTS = ["The orbit of the shuttle, and its crew.", "e-mail: a@b.org", "Zürich 日本 😀", "  two  blanks "]


# wordllama


def test_the_means_that_its_own_library_has():
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer
    from wordllama.inference import WordLlamaInference

    table = load_file(WEIGHTS)["embedding.weight"]
    tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizers/l2_supercat_tokenizer_config.json"))
    theirs = WordLlamaInference(table, tokenizer).embed(TEXTS)
    words = wordllama()
    np.testing.assert_array_equal(words.table, table)
    counts = words.counts(TEXTS, str.split)
    ours = counts @ words.table.astype(np.float32) / counts.sum(axis=1)[:, None]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    assert words.table.shape == (32_000, 256)
    assert words.source.startswith("wordllama 0.")
    assert 17e6 < sum(each.nbytes for each in words.to_arrays().values()) < 18e6


def test_a_package_without_its_files(monkeypatch, tmp_path):
    class Spec:
        submodule_search_locations = (str(tmp_path),)

    monkeypatch.setattr(word_vectors, "find_spec", lambda name: Spec)
    with pytest.raises(DataError, match=r"has its vectors elsewhere; install wordllama 0\.4"):
        wordllama()


def tensor(**changes):
    about = {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]} | changes
    head = json.dumps({"w": about}).encode()
    return len(head).to_bytes(8, "little") + head + np.arange(6, dtype="<f2").tobytes()


def test_a_tensor():
    assert read_tensor(tensor(), "w", "x").tolist() == [[0, 1, 2], [3, 4, 5]]
    for raw in (
        b"", b"\xff" * 20, tensor()[:-1], tensor(dtype="F32"), tensor(shape=[2, 2]), tensor(shape=[-2, -3]),
        tensor(data_offsets=[0, 10]), tensor(data_offsets=[-12, 0]), tensor(data_offsets=[0]), tensor(shape=None),
        tensor()[:-2] + b"\xff\xff", tensor().replace(b'"w"', b'"v"'),
    ):  # fmt: skip
        with pytest.raises(DataError, match="x: is no safetensors file with vectors"):
            read_tensor(raw, "w", "x")


# Files


def written(tmp_path, text, name="v.txt"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def rows(words):
    return {name: row.tolist() for name, row in zip(words.names, words.table, strict=True)}


@pytest.mark.parametrize("head", ["", "3 2\n", "\n"])
@pytest.mark.parametrize("pack", [None, gzip, lzma])
def test_a_file(tmp_path, head, pack):
    raw = f"{head}the 1 -8\nÜber 2 0.5 \r\nnew york\t4 4\n".encode()
    path = tmp_path / ("v.txt" + ({gzip: ".gz", lzma: ".xz"}[pack] if pack else ""))
    path.write_bytes(pack.compress(raw) if pack else raw)
    words = read_vectors(str(path), False, ())
    assert rows(words) == {"the": [1, -8], "Über": [2, 0.5], "new york": [4, 4]}
    assert (words.source, words.columns) == (path.name, 2)
    counts = words.counts(["the the cat", "", "Über über"], str.split)
    assert counts.toarray().tolist() == [[2, 0, 0], [0, 0, 0], [0, 1, 0]]


def test_a_first_line_of_two_numbers_is_a_word_only_later(tmp_path):
    assert rows(read_vectors(written(tmp_path, "9 8\n7 9\n"), False, ())) == {"7": [9]}


def test_lower_case(tmp_path):
    """A word's own line counts for it, wherever it is; else the first that is written another way."""
    path = written(tmp_path, "Paris 8 0\nUS 1 0\nPARIS 2 0\nus 3 0\nus 4 0\nUs 5 0\n")
    assert rows(read_vectors(path, True, ())) == {"paris": [8, 0], "us": [3, 0]}
    assert list(rows(read_vectors(path, False, ()))) == ["Paris", "US", "PARIS", "us", "Us"]


def test_words_that_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(word_vectors, "KEPT", 2)
    path = written(tmp_path, "a 8\nb 8\nc 8\nd 8\ne 8\n")
    assert list(rows(read_vectors(path, True, {"d"}))) == ["a", "b", "d"]


@pytest.mark.parametrize("factor", [1e30, 1e-30, 1.0])
def test_values_of_any_size(tmp_path, factor):
    """float16 would lose them; a document's vector has a length of its own."""
    words = read_vectors(written(tmp_path, f"a {factor} {-factor / 4}\nb 0 {factor / 2}\n"), False, ())
    table = words.table.astype(float)
    np.testing.assert_allclose(table / table[0, 0], [[1, -0.25], [0, 0.5]], rtol=1e-3)
    assert 8 <= table[0, 0] < 16


def test_nothing_but_zeros(tmp_path):
    assert rows(read_vectors(written(tmp_path, "a 0 0\n"), False, ())) == {"a": [0, 0]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "v.txt: has no vectors"),
        ("3 2\n", "v.txt: has no vectors"),
        ("the\n", "v.txt:1: 'the' is no word with 1 to 4,096 numbers"),
        ("a 1 2\nb 1\n", "v.txt:2: 1 numbers after the word, not 2"),
        ("a 1 2\nb 1 x\n", "v.txt:2: 'x' is no number"),
        ("a 1 2\nb 1 inf\n", "v.txt:2: 'inf' is no number"),
        ("a 1 nan\n", "v.txt:1: 'nan' is no number"),
        ("a 1 1e39\n", "v.txt:1: '1e39' is no number, or too large"),
        ("a" + " 1" * 5000 + "\n", "v.txt:1: .* is no word with 1 to 4,096 numbers"),
    ],
)
def test_files_with_mistakes(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_vectors(written(tmp_path, text), False, ())


def test_arrays_that_cannot_be(tmp_path):
    words = read_vectors(written(tmp_path, "a 1 2\nb 3 4\n"), False, ())
    arrays = words.to_arrays()
    assert rows(WordVectors.from_arrays(arrays, "x")) == rows(words)
    twice = read_vectors(written(tmp_path, "a 1 2\nc 3 4\n"), False, ()).to_arrays()["words"].copy()
    twice[1] = twice[0]
    for wrong in (
        {"table": arrays["table"].astype(np.float32)},
        {"table": arrays["table"][:1]},
        {"table": arrays["table"][:, :0]},
        {"table": arrays["table"] * np.float16(np.inf)},
        {"words": twice},
    ):
        with pytest.raises(ValueError):
            WordVectors.from_arrays({**arrays, **wrong}, "x")
