"""The memory-mapped n-best store: what is in it, and that nothing else is taken for one."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from small_lists import LISTS, REFERENCES, leftovers, write

from sparsezo.errors import DamagedError, DataError
from sparsezo.tasks.rerank.io.importing import NBestStore, import_nbest, write_meta
from sparsezo.tasks.rerank.metric import bleu_from_statistics, corpus_bleu, corpus_bleu_from_statistics, list_statistics


def test_what_is_in_it(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    store = import_nbest(write(tmp_path), store_dir=tmp_path / "s", progress=lambda k, n: calls.append((k, n)))
    assert calls == [(1, 3), (2, 3), (3, 3)]
    assert len(store) == 3
    assert store.n_candidates == 6
    assert store.names == ("A", "B", "C", "D")
    assert store.features.tolist() == [
        [1, 2, 0, 0],
        [0, 0.5, 0, 0],
        [-1, 0, 0, 0],
        [4, 0, 5, 0],
        [2, 0, 0, 1],
        [3, 1, 0, 0],
    ]
    assert store.features.dtype == np.float32
    assert isinstance(store.features, np.memmap)
    assert store.offsets.tolist() == [0, 3, 4, 6]
    assert store.list(2) == slice(4, 6)
    texts = [text for nbest in LISTS for text, _ in nbest]
    assert [store.hypothesis(j) for j in range(6)] == texts
    expected = [
        list_statistics([text for text, _ in nbest], [ref]) for nbest, ref in zip(LISTS, REFERENCES, strict=True)
    ]
    np.testing.assert_array_equal(store.statistics, np.concatenate(expected))
    np.testing.assert_array_equal(store.losses, 1 - bleu_from_statistics(store.statistics))
    assert store.losses[0] == 0
    assert store.references == (tuple(REFERENCES),)
    assert store.columns_of(["D", "E", "A"]).tolist() == [3, -1, 0]
    for wrong in (-1, 6):
        with pytest.raises(IndexError, match="of 6"):
            store.hypothesis(wrong)
    for wrong in (-1, 3):
        with pytest.raises(IndexError, match="of 3"):
            store.list(wrong)
    meta = json.loads((store.folder / "meta.json").read_text())
    assert meta["lists"] == 3
    assert [Path(source["path"]).name for source in meta["sources"]] == ["x.nbest", "x.ref"]
    assert (store.source, store.reference_lines) == (str(tmp_path / "x.nbest"), 3)
    assert leftovers(tmp_path / "s") == [store.folder.name]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return import_nbest(write(tmp_path), store_dir=tmp_path / "s").folder


def test_what_is_no_store(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(DataError, match=r"none: is no finished n-best store; remove the folder, and the lists are"):
        NBestStore.open(tmp_path / "none")
    meta = json.loads((folder / "meta.json").read_text())
    del meta["sum"]
    write_meta(folder, {**meta, "format": 1})
    with pytest.raises(DataError, match=r"is an n-best store of format 1, not 2; remove the folder"):
        NBestStore.open(folder)
    (folder / "meta.json").unlink()
    with pytest.raises(DataError, match=r"is no finished n-best store"):
        NBestStore.open(folder)


@pytest.mark.parametrize("raw", [b"", b"[]", b"[" * 100_000, b'{"format": ' + b"9" * 5000 + b"}", b"\xff", b"null"])
def test_a_head_that_is_none(folder: Path, raw: bytes) -> None:
    (folder / "meta.json").write_bytes(raw)
    with pytest.raises(DamagedError, match=r"meta\.json: is damaged"):
        NBestStore.open(folder)


def test_a_file_that_is_cut_off_or_gone(folder: Path) -> None:
    (folder / "features.f32").write_bytes(b"123")
    for check in (True, False):
        with pytest.raises(DamagedError, match=r"features\.f32: is damaged \(3 bytes, not 96\)"):
            NBestStore.open(folder, check=check)
    (folder / "features.f32").unlink()
    with pytest.raises(DamagedError, match=r"features\.f32: is damaged \(No such file or directory\)"):
        NBestStore.open(folder)


def test_a_mark_at_the_beginning_of_a_reference_stays(tmp_path: Path) -> None:
    """Of a file's first line it is taken off as its byte order mark, once."""
    path = write(tmp_path, references=["\ufeff\ufeffthe cat", "\ufeffdogs", "the end"])
    store = import_nbest(path, store_dir=tmp_path / "stores")
    assert store.references == (("\ufeffthe cat", "\ufeffdogs", "the end"),)


def test_several_references(tmp_path: Path, put) -> None:
    path = write(tmp_path)
    second = put("second.ref", "a cat\nnaïve dogs\n\n")
    store = import_nbest(path, [tmp_path / "x.ref", second], store_dir=tmp_path / "s")
    assert store.n_references == 2
    assert store.references[1] == ("a cat", "naïve dogs", "")
    assert store.losses[[0, 1, 3]].tolist() == [0, 0, 0]
    chosen = [0, 3, 5]
    score = corpus_bleu([store.hypothesis(j) for j in chosen], store.references)
    assert corpus_bleu_from_statistics(store.statistics[chosen]) == score.bleu


def test_late_features_over_many_lists(tmp_path: Path) -> None:
    lists = [[("x", f"f{i}={i + 1} f0=0.5") if i else ("x", "f0=0.5")] * (1 + i % 3) for i in range(30)]
    store = import_nbest(write(tmp_path, lists, ["x"] * 30), store_dir=tmp_path / "s")
    assert store.names == tuple(f"f{i}" for i in range(30))
    expected = np.zeros((30, 30), np.float32)
    expected[np.arange(30), np.arange(30)] = np.arange(1, 31)
    expected[:, 0] = 0.5
    np.testing.assert_array_equal(store.features, np.repeat(expected, [1 + i % 3 for i in range(30)], axis=0))


def test_another_process_maps_the_files_itself(tmp_path: Path) -> None:
    store = import_nbest(write(tmp_path), store_dir=tmp_path / "s")
    sent = pickle.dumps(store)
    assert len(sent) < 1000
    assert pickle.loads(sent).hypothesis(0) == store.hypothesis(0)
