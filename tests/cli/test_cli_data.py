"""sparsezo data: list, get, path and make as scripts use them."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from sparsezo.datasets import COLLECTIONS, Download
from sparsezo.tasks.chunking.io.conll import read_conll
from sparsezo.tasks.registry import names, task_spec
from sparsezo.tasks.rerank.io.decoder_weights import read_weights
from sparsezo.tasks.rerank.io.nbest import read_nbest
from sparsezo.tasks.tables import Columns
from sparsezo.tasks.text.io.documents import detect_format, read_documents


@pytest.fixture
def call(program, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARSEZO_DATA", raising=False)
    return partial(program, "data")


@pytest.fixture
def there(tmp_path) -> Path:
    """A folder for --data with CoNLL-2000's files by name."""
    folder = tmp_path / "data" / "conll2000"
    folder.mkdir(parents=True)
    for name in COLLECTIONS["conll2000"].files:
        (folder / name).write_bytes(b"")
    return folder


def test_list(call, there):
    code, out, err = call("list", "--data", there.parent)
    assert (code, err) == (0, "")
    assert f"conll2000 (chunking), in {there}\n" in out
    assert "rcv1 (text), not here\n" in out
    assert "lyrl2004_tokens_train.dat" in out


def test_list_as_json(call, there, monkeypatch):
    monkeypatch.setenv("SPARSEZO_DATA", str(there.parent))
    code, out, _ = call("list", "--json")
    assert code == 0
    listed = {one["name"]: one for one in json.loads(out)["collections"]}
    assert list(listed) == ["conll2000", "rcv1", "wmt07", "20news"]
    assert listed["conll2000"]["path"] == str(there)
    assert [one["name"] for one in listed.values() if one["fetchable"]] == ["conll2000"]
    assert listed["wmt07"]["path"] is None


def test_path(call, there, monkeypatch):
    assert call("path", "conll2000", "--data", there.parent) == (0, f"{there}\n", "")
    code, out, err = call("path", "conll2000")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "sparsezo data get conll2000" in err
    assert call("path", "nonsense")[0] == 2


def test_get_what_is_there(call, tmp_path, monkeypatch):
    folder = tmp_path / "cache/sparsezo/data/conll2000"
    folder.mkdir(parents=True)
    (folder / "train.txt.gz").write_bytes(gzip.compress(b"a DT O\n"))
    download = Download("train.txt.gz", "http://127.0.0.1:9/", hashlib.sha256(b"a DT O\n").hexdigest())
    monkeypatch.setitem(COLLECTIONS, "conll2000", replace(COLLECTIONS["conll2000"], downloads=(download,)))
    code, out, err = call("get", "conll2000")
    assert (code, out) == (0, f"{folder}\n")
    assert "is there and right, nothing to fetch" in err


def test_get_what_cannot_be_fetched(call):
    code, out, err = call("get", "wmt07")
    assert (code, out) == (2, "")
    assert err == "sparsezo: wmt07 cannot be fetched; sparsezo data list says how to get it\n"


# Making


def test_make_chunking(call, tmp_path):
    code, out, err = call("make", "chunking", "-o", tmp_path / "a.txt.gz", "-n", 30, "--seed", 5)
    assert (code, out) == (0, "")
    assert err.split() == ["wrote", str(tmp_path / "a.txt.gz")]
    assert len(read_conll(tmp_path / "a.txt.gz")) == 30
    first = (tmp_path / "a.txt.gz").read_bytes()
    assert call("make", "chunking", "-o", tmp_path / "a.txt.gz", "-n", 30, "--seed", 5)[0] == 0
    assert (tmp_path / "a.txt.gz").read_bytes() == first
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt.gz"]


@pytest.mark.parametrize(("options", "format"), [((), "tsv"), (("--format", "svmlight"), "svmlight")])
def test_make_text(call, tmp_path, options, format):
    path = tmp_path / "some.xz"
    assert call("make", "text", "-o", path, "-n", 40, *options)[0] == 0
    assert detect_format(path, lzma.decompress(path.read_bytes()), Columns()) == format
    documents = read_documents(path)
    assert len(documents) == 40
    assert set(documents.labels) <= {"CCAT", "ECAT", "GCAT", "MCAT"}


def test_make_rerank(call, tmp_path):
    assert call("make", "rerank", "-o", tmp_path / "a.nbest.xz", "-n", 3)[0] == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "a.nbest.xz",
        "a.ref",
        "a.weights.in-domain",
        "a.weights.out-of-domain",
    ]
    assert lzma.decompress((tmp_path / "a.nbest.xz").read_bytes()).startswith(b"0 ||| ")
    assert [nbest.id for nbest in read_nbest(tmp_path / "a.nbest.xz")] == [0, 1, 2]
    assert len((tmp_path / "a.ref").read_text().splitlines()) == 3
    assert len(read_weights(tmp_path / "a.weights.in-domain")) == 14


@pytest.mark.parametrize("task", ["chunking", "text", "rerank"])
def test_make_a_folder(call, tmp_path, task):
    code, _, err = call("make", task, "-o", f"{tmp_path}/new/", "-n", 8)
    assert code == 0
    names = {file.name for file in (tmp_path / "new").iterdir()}
    assert {Path(word.rstrip(",")).name for word in err.split()[1:]} == names
    assert {name.split(".")[0] for name in names} - {"weights"} == {"train", "dev", "test"}
    if task == "chunking":
        assert [len(read_conll(tmp_path / f"new/{part}.txt")) for part in ("train", "dev", "test")] == [8, 2, 4]
    if task == "rerank":
        assert {"train.ref", "dev.ref", "test.ref", "weights.in-domain", "weights.out-of-domain"} < names
    code, _, err = call("make", task, "-o", tmp_path / "new")
    assert code == 2
    assert "is there already and would be replaced" in err


def test_the_parts_of_a_folder_have_seeds_of_their_own(call, tmp_path):
    assert call("make", "chunking", "-o", f"{tmp_path}/new/", "-n", 8, "--seed", 5)[0] == 0
    for part, n, seed in (("train", 8, 5), ("dev", 2, 6), ("test", 4, 7)):
        assert call("make", "chunking", "-o", tmp_path / part, "-n", n, "--seed", seed)[0] == 0
        assert (tmp_path / part).read_bytes() == (tmp_path / f"new/{part}.txt").read_bytes()
    assert (tmp_path / "dev").read_bytes() != (tmp_path / "test").read_bytes()[: (tmp_path / "dev").stat().st_size]


def test_every_option_of_make_arrives(call, monkeypatch):
    from sparsezo.cli import data

    seen = []
    monkeypatch.setattr(data, "make_data", lambda *args: seen.append(args) or [Path("a"), Path("b")])
    assert call("make", "text", "-o", "x") == (0, "", "wrote a, b\n")
    assert call("make", "text", "-o", "x", "-n", "7k", "--seed", "3", "--format", "svmlight")[0] == 0
    assert seen == [("text", "x", None, 0, None), ("text", "x", "7k", 3, "svmlight")]


def test_sizes_unless_given(call, tmp_path, monkeypatch):
    seen = []
    for task in names():
        write = f"{task_spec(task).synthetic_module}.write"
        monkeypatch.setattr(write, lambda *args, task=task: seen.append((task, *args[2:])))
    for task, name in (("chunking", "a.txt"), ("text", "a.tsv"), ("rerank", "a.nbest")):
        assert call("make", task, "-o", tmp_path / name, "--seed", 7)[0] == 0
    assert seen == [("chunking", 2000, 7, None), ("text", 4000, 7, None), ("rerank", 300, 7, None)]


def test_what_was_not_named_is_not_replaced(call, tmp_path):
    (tmp_path / "a.ref").write_text("mine\n")
    code, _, err = call("make", "rerank", "-o", tmp_path / "a.nbest", "-n", 2)
    assert code == 2
    assert f"{tmp_path / 'a.ref'}: is there already" in err
    assert [file.name for file in tmp_path.iterdir()] == ["a.ref"]
    assert (tmp_path / "a.ref").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("words", "code", "what"),
    [
        (["parsing", "-o", "x"], 2, "task parsing: choose from chunking, text, rerank"),
        (["chunking", "-o", "x", "--format", "svmlight"], 2, "--format does not belong to task chunking"),
        (["text", "-o", "x", "--format", "csv"], 2, "--format csv: choose from tsv, svmlight"),
        (["rerank", "-o", "x.txt"], 2, "name it NAME.nbest"),
        (["chunking", "-o", "x", "-n", "0"], 2, "-n 0: must be a whole number"),
        (["chunking", "-o", "nowhere/x"], 1, "make it first"),
    ],
)
def test_make_mistakes(call, tmp_path, monkeypatch, words, code, what):
    monkeypatch.chdir(tmp_path)
    got, out, err = call("make", *words)
    assert (got, out) == (code, "")
    assert what in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
