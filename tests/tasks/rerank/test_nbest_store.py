"""The memory-mapped n-best store: what is in it, that it is found again, and that nothing half-built is."""

from __future__ import annotations

import json
import os
import pickle
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from sparsezo.errors import DataError, SparsezoError, UsageError
from sparsezo.tasks.rerank import store as nbest_store
from sparsezo.tasks.rerank.decoder_weights import read_weights
from sparsezo.tasks.rerank.importing import default_references, default_store_dir, import_nbest
from sparsezo.tasks.rerank.metric import bleu_from_statistics, corpus_bleu, corpus_bleu_from_statistics, list_statistics
from sparsezo.tasks.rerank.nbest import read_nbest
from sparsezo.tasks.rerank.store import NBestStore

LISTS = [
    [("the cat sat on the mat", "A=1 B=2"), ("a cat", "B=0.5"), ("", "A=-1")],
    [("naïve dogs", "A=4 C=5")],
    [("the end", "D=1 A=2"), ("an end", "A=3 B=1")],
]
REFERENCES = ["the cat sat on the mat", "dogs", "the end ."]


def write(folder: Path, lists: list = LISTS, references: list[str] = REFERENCES) -> Path:
    rows = [f"{i} ||| {text} ||| {features} ||| 0\n" for i, nbest in enumerate(lists) for text, features in nbest]
    (folder / "x.nbest").write_text("".join(rows), encoding="utf-8")
    (folder / "x.ref").write_text("".join(line + "\n" for line in references), encoding="utf-8")
    return folder / "x.nbest"


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


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
    assert leftovers(tmp_path / "s") == [store.folder.name]


def test_found_again_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path)
    store = import_nbest(path, store_dir=tmp_path / "s")
    other = path.rename(tmp_path / "other.nbest")
    with monkeypatch.context() as patch:
        patch.setattr(nbest_store, "read_nbest", None)  # reading again would fail
        assert import_nbest(other, tmp_path / "x.ref", store_dir=tmp_path / "s").folder == store.folder
    (tmp_path / "other.ref").write_text("the cat\ndogs\nthe end .\n")
    changed = import_nbest(other, store_dir=tmp_path / "s")
    assert changed.folder != store.folder
    assert changed.losses[0] > 0


def test_the_key_is_of_all_contents_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, stores = write(tmp_path), tmp_path / "s"
    second = tmp_path / "second.ref"
    second.write_text("a cat\nnaïve dogs\nan end\n", encoding="utf-8")
    one_way, other_way = [tmp_path / "x.ref", second], [second, tmp_path / "x.ref"]
    folders = [import_nbest(path, references, stores).folder for references in (None, one_way, other_way)]
    path.write_text(path.read_text(encoding="utf-8").replace("A=4", "A=5"), encoding="utf-8")
    folders.append(import_nbest(path, store_dir=stores).folder)
    monkeypatch.setattr(nbest_store, "FORMAT", 2)
    folders.append(import_nbest(path, store_dir=stores).folder)
    assert len(set(folders)) == 5
    assert all(folder.parent == stores for folder in folders)


def test_each_list_is_scored_against_its_own_reference(tmp_path: Path) -> None:
    lists = [[("a b c d", "A=1"), ("e f g h", "A=2")], [("a b c d", "A=1"), ("e f g h", "A=2")]]
    store = import_nbest(write(tmp_path, lists, ["a b c d", "e f g h"]), store_dir=tmp_path / "s")
    assert store.losses.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("damage", ["features.f32", "hypotheses.txt", "meta.json", "format"])
def test_damaged_store_is_built_anew(tmp_path: Path, damage: str) -> None:
    path = write(tmp_path)
    store = import_nbest(path, store_dir=tmp_path / "s")
    if damage == "format":
        meta = store.folder / "meta.json"
        meta.write_text(meta.read_text().replace('"format": 1', '"format": 0'))
        message = r"is an n-best store of format 0, not 1; import anew"
    elif damage == "meta.json":
        (store.folder / damage).unlink()
        message = r"is no finished n-best store \(.*\); import the lists anew"
    else:
        os.truncate(store.folder / damage, 3)
        message = rf"{damage}: has 3 bytes, not \d+; remove the folder and import anew"
    with pytest.raises(DataError, match=message):
        NBestStore.open(store.folder)
    again = import_nbest(path, store_dir=tmp_path / "s")
    assert again.hypothesis(3) == "naïve dogs"
    assert leftovers(tmp_path / "s") == [store.folder.name]


def test_interrupted_import_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(done: int, _: int) -> None:
        assert leftovers(tmp_path / "s")  # it is being built
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_nbest(write(tmp_path), store_dir=tmp_path / "s", progress=interrupt)
    assert leftovers(tmp_path / "s") == []


def test_import_that_was_killed_is_cleared_away(tmp_path: Path) -> None:
    path = write(tmp_path)
    for name, age in ((".dead.tmp", 7200), (".busy.tmp", 60)):
        folder = tmp_path / "s" / name
        folder.mkdir(parents=True)
        (folder / "features.f32").write_bytes(b"1234")
        for file in (folder / "features.f32", folder):
            os.utime(file, (time.time() - age,) * 2)
    store = import_nbest(path, store_dir=tmp_path / "s")
    assert leftovers(tmp_path / "s") == sorted([".busy.tmp", store.folder.name])


def test_the_quicker_of_two_imports_stays(tmp_path: Path) -> None:
    path = write(tmp_path)
    inner: list[NBestStore] = []

    def overtake(done: int, _: int) -> None:
        if done == 2:
            inner.append(import_nbest(path, store_dir=tmp_path / "s"))

    store = import_nbest(path, store_dir=tmp_path / "s", progress=overtake)
    assert store.folder == inner[0].folder
    assert store.losses.tolist() == inner[0].losses.tolist()
    assert leftovers(tmp_path / "s") == [store.folder.name]


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


def test_default_places(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_references("d/a.b.nbest.xz") == Path("d/a.b.ref")
    assert default_references("a.nbest.gz") == default_references("a.nbest") == Path("a.ref")
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert default_store_dir() == Path("/c/sparsezo/nbest")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_store_dir() == Path.home() / ".cache/sparsezo/nbest"


@pytest.mark.parametrize(
    ("ids", "references", "message"),
    [
        ([0, 1, 2], 2, r"x\.nbest:3: list 2 has no reference: .*x\.ref ends with line 2"),
        ([0, 1, 2], 4, r"x\.nbest: ends with list 2 but .*x\.ref has 4 lines; give a list for each"),
        ([0, 2], 3, r"x\.nbest:2: list 1 is missing before list 2; line 2 of .*x\.ref needs it"),
        ([1, 2], 3, r"x\.nbest:1: list 0 is missing before list 1; line 1 of .*x\.ref needs it"),
        ([0, 9], 3, r"x\.nbest:2: list 9 has no reference: .*x\.ref ends with line 3"),
        ([0, 0, 1, 0], 2, r"x\.nbest:4: id 0 comes after id 1"),
        ([0], 0, r"x\.ref: is empty; it needs a reference line for each list"),
        ([], 1, r"x\.nbest: is empty"),
    ],
)
def test_lists_and_references_that_do_not_match(tmp_path: Path, ids: list[int], references: int, message: str) -> None:
    path = write(tmp_path)
    path.write_text("".join(f"{i} ||| x ||| A=1 ||| 0\n" for i in ids))
    (tmp_path / "x.ref").write_text("x\n" * references)
    with pytest.raises(DataError, match=message) as caught:
        import_nbest(path, store_dir=tmp_path / "s")
    assert "\n" not in str(caught.value)
    assert leftovers(tmp_path / "s") == []


def test_other_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path)
    stores = tmp_path / "s"
    (tmp_path / "short.ref").write_text("x\n")
    with pytest.raises(DataError, match=r"short\.ref: has 1 lines but .*x\.ref has 3; give a line for each list"):
        import_nbest(path, [tmp_path / "x.ref", tmp_path / "short.ref"], store_dir=stores)
    with pytest.raises(DataError, match=r"none\.ref: no such file"):
        import_nbest(path, tmp_path / "none.ref", store_dir=stores)
    with pytest.raises(DataError, match=r"none\.nbest: no such file"):
        import_nbest(tmp_path / "none.nbest", store_dir=stores)
    with pytest.raises(
        UsageError, match=r"x\.ref: does not end in \.nbest\[\.gz\|\.xz\], so its references are not known"
    ):
        import_nbest(tmp_path / "x.ref", store_dir=stores)
    with pytest.raises(UsageError, match=r"no reference files are named; name at least one"):
        import_nbest(path, [], store_dir=stores)
    assert leftovers(stores) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(
        SparsezoError, match=r"file: the n-best store cannot be written \(.*\); free some space or set XDG"
    ):
        import_nbest(path, store_dir=tmp_path / "file")
    write(tmp_path, [[("x", "")]], ["x"])
    with pytest.raises(DataError, match=r"x\.nbest: names no feature on any line"):
        import_nbest(path, store_dir=stores)
    write(tmp_path, [[("x " * 40000, "A=1")]], ["x"])
    with pytest.raises(DataError, match=r"x\.nbest:1: list 0 has a sentence of 40000 tokens; at most 32767"):
        import_nbest(path, store_dir=stores)
    assert leftovers(stores) == []


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(nbest_store.os, "fsync", full)
    with pytest.raises(
        SparsezoError, match=r"cannot be written \(No space left on device\); free some space"
    ) as caught:
        import_nbest(write(tmp_path), store_dir=tmp_path / "s")
    assert caught.value.exit_code == 1
    assert leftovers(tmp_path / "s") == []


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
