"""The memory-mapped n-best store: what is in it, and that nothing else is taken for one."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from small_lists import LISTS, REFERENCES, leftovers, write

from sparsezo.errors import DamagedError, DataError
from sparsezo.storage.sources import new_sum
from sparsezo.tasks.rerank.decoder_weights import read_weights
from sparsezo.tasks.rerank.importing import import_nbest
from sparsezo.tasks.rerank.metric import bleu_from_statistics, corpus_bleu, corpus_bleu_from_statistics, list_statistics
from sparsezo.tasks.rerank.nbest import read_nbest
from sparsezo.tasks.rerank.store import NBestStore, write_meta


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


def test_what_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"s: is no finished n-best store; remove the folder, and the lists are"):
        NBestStore.open(tmp_path / "s")
    folder = import_nbest(write(tmp_path), store_dir=tmp_path / "s").folder
    rewrite(folder, lambda meta: meta.update(format=1))
    with pytest.raises(DataError, match=r"is an n-best store of format 1, not 2; remove the folder"):
        NBestStore.open(folder)
    (folder / "meta.json").unlink()
    with pytest.raises(DataError, match=r"is no finished n-best store"):
        NBestStore.open(folder)


def rewrite(folder: Path, change: Callable[[dict], object]) -> None:
    """A head that says other things, with the right sum."""
    meta = json.loads((folder / "meta.json").read_text())
    del meta["sum"]
    change(meta)
    write_meta(folder, meta)


CRAFTED = {
    "more candidates": lambda meta: meta.update(candidates=7),
    "absurdly many": lambda meta: meta.update(candidates=10**15),
    "fewer than none": lambda meta: meta.update(lists=-1),
    "yes": lambda meta: meta.update(references=True),
    "more references": lambda meta: meta.update(references=10**9),
    "no number": lambda meta: meta.update(lists="3"),
    "names are numbers": lambda meta: meta.update(names=[1, 2, 3, 4]),
    "names are one word": lambda meta: meta.update(names="ABCD"),
    "a name twice": lambda meta: meta.update(names=["A", "B", "B", "D"]),
    "fewer names": lambda meta: meta.update(names=["A"]),
    "files elsewhere": lambda meta: meta["files"].update({"../x.nbest": [1, ""]}),
    "files are a list": lambda meta: meta.update(files=[]),
    "files without sums": lambda meta: meta.update(files=dict.fromkeys(meta["files"], 4)),
    "marks are words": lambda meta: meta.update(segmented="ab"),
    "source is none": lambda meta: meta.update(source=None),
    "nothing": lambda meta: meta.clear(),
}


@pytest.mark.parametrize("how", CRAFTED)
def test_a_head_that_was_made_up(tmp_path: Path, how: str) -> None:
    folder = import_nbest(write(tmp_path), store_dir=tmp_path / "s").folder
    rewrite(folder, CRAFTED[how])
    with pytest.raises(DataError, match="is damaged"):
        NBestStore.open(folder)


@pytest.mark.parametrize("raw", [b"", b"[]", b"[" * 100_000, b'{"format": ' + b"9" * 5000 + b"}", b"\xff", b"null"])
def test_a_head_that_is_none(tmp_path: Path, raw: bytes) -> None:
    folder = import_nbest(write(tmp_path), store_dir=tmp_path / "s").folder
    (folder / "meta.json").write_bytes(raw)
    with pytest.raises(DamagedError, match=r"meta\.json: is damaged"):
        NBestStore.open(folder)
    assert len(import_nbest(tmp_path / "x.nbest", store_dir=tmp_path / "s")) == 3


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("offsets.i64", np.array([0, 3, 2, 6]), "do not rise"),
        ("offsets.i64", np.array([0, 3, 4, 2**40]), "do not rise"),
        ("offsets.i64", np.array([-9, 3, 4, 6]), "do not rise"),
        ("hypotheses.i64", np.array([0, 1, 2, 3, 4, 5, 2**40]), "do not rise"),
        ("losses.f64", np.array([0, 0, 0, 0, 0, np.nan]), "not within 0 and 1"),
        ("losses.f64", np.array([0, 0, 0, 0, 0, -0.1]), "not within 0 and 1"),
        ("features.f32", np.full((6, 4), np.inf, np.float32), "not finite"),
    ],
)
def test_numbers_that_were_made_up(tmp_path: Path, name: str, values: np.ndarray, message: str) -> None:
    """Also with the right sum they do not reach compiled code."""
    folder = import_nbest(write(tmp_path), store_dir=tmp_path / "s").folder
    (folder / name).write_bytes(values.tobytes())
    digest = new_sum()
    digest.update(values.tobytes())
    rewrite(folder, lambda meta: meta["files"].update({name: [values.nbytes, digest.hexdigest()]}))
    with pytest.raises(DamagedError, match=rf"{name}: is damaged \(.*{message}"):
        NBestStore.open(folder)


def test_a_file_that_is_cut_off_or_gone(tmp_path: Path) -> None:
    folder = import_nbest(write(tmp_path), store_dir=tmp_path / "s").folder
    (folder / "features.f32").write_bytes(b"123")
    for check in (True, False):
        with pytest.raises(DamagedError, match=r"features\.f32: is damaged \(3 bytes, not 96\)"):
            NBestStore.open(folder, check=check)
    (folder / "features.f32").unlink()
    with pytest.raises(DamagedError, match=r"features\.f32: is damaged \(No such file or directory\)"):
        NBestStore.open(folder)


def test_several_references(tmp_path: Path) -> None:
    path = write(tmp_path)
    second = tmp_path / "second.ref"
    second.write_text("a cat\nnaïve dogs\n\n", encoding="utf-8")
    store = import_nbest(path, [tmp_path / "x.ref", second], store_dir=tmp_path / "s")
    assert store.n_references == 2
    assert store.references[1] == ("a cat", "naïve dogs", "")
    assert store.losses[[0, 1, 3]].tolist() == [0, 0, 0]
    chosen = [0, 3, 5]
    score = corpus_bleu_from_statistics(store.statistics[chosen], store.n_references)
    assert score == corpus_bleu([store.hypothesis(j) for j in chosen], store.references)


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


@pytest.mark.data
def test_real_lists_give_the_known_figures(real_data: Path, tmp_path: Path) -> None:
    smt = real_data / "smt"
    store = import_nbest(smt / "ep-dev.nbest.xz", store_dir=tmp_path)
    assert len(store) == 400
    assert store.features.shape == (176865, 14)
    for nbest in islice(read_nbest(smt / "ep-dev.nbest.xz"), 20):
        rows = store.list(nbest.id)
        np.testing.assert_array_equal(store.features[rows][:, store.columns_of(nbest.names)], nbest.features)
        assert [store.hypothesis(j) for j in range(rows.start, rows.stop)] == nbest.hypotheses
    weights = read_weights(smt / "weights.out-of-domain")
    w = np.array([weights[name] for name in store.names])
    score = (store.features * w).sum(axis=1)  # by row: equal candidates tie, unlike with BLAS
    for criterion, bleu, ratio, sentence_bleu in (
        (-score, 0.2962, 0.990, 0.2501),
        (store.losses, 0.4279, 0.972, 0.4010),
    ):
        best = [rows.start + int(np.argmin(criterion[rows])) for rows in map(store.list, range(len(store)))]
        corpus = corpus_bleu_from_statistics(store.statistics[best])
        assert corpus == corpus_bleu([store.hypothesis(j) for j in best], store.references)
        assert (round(corpus.bleu, 4), round(corpus.length_ratio, 3)) == (bleu, ratio)
        assert round(1 - store.losses[best].mean(), 4) == sentence_bleu
