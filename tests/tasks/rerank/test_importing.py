"""Importing n-best lists: found again by content, from pipes too, by several at once; nothing half-built is left."""

from __future__ import annotations

import gzip
import lzma
import os
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from small_lists import leftovers, write

from sparsezo.errors import DataError, SparsezoError, UsageError
from sparsezo.storage import limits, locks
from sparsezo.tasks.rerank.io import importing
from sparsezo.tasks.rerank.io.importing import NBestStore, default_references, import_nbest


def test_found_again_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path)
    store = import_nbest(path, store_dir=tmp_path / "s")
    other = path.rename(tmp_path / "other.nbest")
    with monkeypatch.context() as patch:
        patch.setattr(importing, "read_nbest", None)  # reading again would fail
        assert import_nbest(other, tmp_path / "x.ref", store_dir=tmp_path / "s").folder == store.folder


def test_the_key_is_of_all_contents_in_their_order(tmp_path: Path, put, monkeypatch: pytest.MonkeyPatch) -> None:
    path, stores = write(tmp_path), tmp_path / "s"
    second = put("second.ref", "a cat\nnaïve dogs\nan end\n")
    one_way, other_way = [tmp_path / "x.ref", second], [second, tmp_path / "x.ref"]
    folders = [import_nbest(path, references, stores).folder for references in (None, one_way, other_way)]
    path.write_text(path.read_text(encoding="utf-8").replace("A=4", "A=5"), encoding="utf-8")
    folders.append(import_nbest(path, store_dir=stores).folder)
    folders.append(import_nbest(path, store_dir=stores, keep_segmentation=True).folder)
    monkeypatch.setattr(importing, "FORMAT", 3)
    folders.append(import_nbest(path, store_dir=stores).folder)
    assert len(set(folders)) == 6
    assert all(folder.parent == stores for folder in folders)


def test_lists_for_some_of_the_references(tmp_path: Path, put, said: list[str]) -> None:
    """By id, of every set; the others' lines are not in the store."""
    lists = [[("a b c d", "A=1")], [("a b c d", "A=1"), ("e f g h", "A=2")], [("i j k l", "A=2")]]
    lines = ["no"] * 5 + ["a b c d", "no", "e f g h", "no", "i j k l", "no"]
    path = write(tmp_path, lists, lines, ids=[5, 7, 9])
    second = put("second.ref", "".join(f"{i} z\n" for i in range(11)))
    store = import_nbest(path, [tmp_path / "x.ref", second], tmp_path / "s")
    assert store.losses.tolist() == [0, 1, 0, 0]
    assert store.references == (("a b c d", "e f g h", "i j k l"), ("5 z", "7 z", "9 z"))
    assert (len(store), store.reference_lines) == (3, 11)
    assert said == [f"{path}: 3 lists for 11 references; they are taken by id"]
    assert len(import_nbest(path, [tmp_path / "x.ref", second], tmp_path / "s")) == 3
    assert len(said) == 2


def test_marks_of_segmentation_do_not_count_as_words(tmp_path: Path, said: list[str]) -> None:
    lists = [[("the cat sat down", "A=1")], [("the cat |0-1| sat down |2-3|", "A=1"), ("a | b |0-1|", "A=2")]] * 2
    path = write(tmp_path, lists, ["the cat sat down"] * 4)
    store = import_nbest(path, store_dir=tmp_path / "s")
    assert store.losses[[0, 1, 3, 4]].tolist() == [0, 0, 0, 0]
    assert [store.hypothesis(j) for j in (1, 2)] == ["the cat sat down", "a | b"]
    text = ":2: Moses' marks of segmentation, |0-1|, are left out of the hypotheses, here and in 2 lists in all; "
    assert said == [f"{path}{text}`keep_segmentation` keeps them"]
    import_nbest(path, store_dir=tmp_path / "s")
    assert len(said) == 2  # also of a store that is found again
    kept = import_nbest(path, store_dir=tmp_path / "s", keep_segmentation=True)
    assert kept.hypothesis(1) == "the cat |0-1| sat down |2-3|"
    assert kept.losses[0] == 0 < kept.losses[1]
    assert kept.folder != store.folder
    assert len(said) == 2


def read_from(raw: bytes) -> int:
    """A pipe's end from which these bytes can be read."""
    end, other = os.pipe()
    with open(other, "wb") as stream:
        stream.write(raw)
    return end


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_pipes_are_files(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Read once, lists and references; the store is that of the files, packed or not as they were."""
    path, stores = write(tmp_path), tmp_path / "s"
    raw, ref = pack(path.read_bytes()), (tmp_path / "x.ref").read_bytes()
    ends = [read_from(raw), read_from(ref)]
    try:
        store = import_nbest(f"/dev/fd/{ends[0]}", f"/dev/fd/{ends[1]}", stores)
    finally:
        for end in ends:
            os.close(end)
    assert [store.hypothesis(j) for j in (0, 3)] == ["the cat sat on the mat", "naïve dogs"]
    assert leftovers(stores) == [store.folder.name]
    if pack is bytes:
        assert import_nbest(path, store_dir=stores).folder == store.folder


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, stores = write(tmp_path), tmp_path / "s"
    with open(read_from(path.read_bytes())) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        store = import_nbest("-", tmp_path / "x.ref", stores)
        assert (len(store), store.source) == (3, "standard input")
        assert import_nbest(path, store_dir=stores).folder == store.folder
        with pytest.raises(UsageError, match=r"standard input \(-\) can be read only once"):
            import_nbest("-", tmp_path / "x.ref", stores)
    with pytest.raises(UsageError, match=r"^standard input: does not end in \.nbest.*; name their file"):
        import_nbest("-", store_dir=stores)


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    """Its sum is another one's then: nothing is stored under it."""
    path, stores = write(tmp_path), tmp_path / "s"

    def change(done: int, _: int) -> None:
        path.write_text(path.read_text(encoding="utf-8") + "2 ||| more ||| A=1 ||| 0\n", encoding="utf-8")

    with pytest.raises(DataError, match=r"x\.nbest: changed while it was read; begin again when it is written"):
        import_nbest(path, store_dir=stores, progress=change)
    assert leftovers(stores) == []


@pytest.mark.parametrize("damaged", [False, True])
def test_several_at_the_same_time_all_end_well(tmp_path: Path, damaged: bool) -> None:
    path, stores = write(tmp_path), tmp_path / "s"
    if damaged:
        flip(import_nbest(path, store_dir=stores).folder / "losses.f64")
    gate = threading.Barrier(4)

    def go(_: int) -> NBestStore:
        return import_nbest(path, store_dir=stores, progress=lambda done, _: gate.wait(20) if done == 3 else None)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(go, range(4)))
    assert {store.folder for store in found} == {found[0].folder}
    assert all(store.losses[0] == 0 for store in found)
    assert leftovers(stores) == [found[0].folder.name]


def test_a_damaged_store_is_replaced_by_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while the old one is gone and the new one is not yet there."""
    path, stores = write(tmp_path), tmp_path / "s"
    folder = import_nbest(path, store_dir=stores).folder
    flip(folder / "losses.f64")
    waits, remove, sleep = threading.Event(), shutil.rmtree, time.sleep
    other = threading.Thread(target=lambda: import_nbest(path, store_dir=stores))

    def removed(place: Path, **how: bool) -> None:
        remove(place, **how)
        if place == folder and not other.ident:
            other.start()
            while other.is_alive() and not waits.wait(0.01):
                pass

    def waiting(seconds: float) -> None:
        waits.set()
        sleep(seconds)

    monkeypatch.setattr(shutil, "rmtree", removed)
    monkeypatch.setattr(time, "sleep", waiting)
    assert import_nbest(path, store_dir=stores).losses[0] == 0
    other.join()
    assert leftovers(stores) == [folder.name]


def flip(file: Path, place: int = 3) -> None:
    raw = bytearray(file.read_bytes())
    raw[place] ^= 1
    file.write_bytes(raw)


def test_an_import_that_stops_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, stores = write(tmp_path), tmp_path / "s"

    def interrupt(done: int, _: int) -> None:
        assert leftovers(stores)  # it is being built
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_nbest(path, store_dir=stores, progress=interrupt)
    assert leftovers(stores) == []

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SparsezoError, match=r"cannot be written \(No space left on device\); free some") as caught:
        import_nbest(path, store_dir=stores)
    assert caught.value.exit_code == 1
    assert leftovers(stores) == []


def test_import_that_was_killed_is_cleared_away(tmp_path: Path) -> None:
    """At once, also where nothing is built; one that is at work holds its lock."""
    path, stores = write(tmp_path), tmp_path / "s"
    for kind in ("dead", "busy", "older"):
        folder = stores / f".{kind}.tmp"
        folder.mkdir(parents=True)
        (folder / "features.f32").write_bytes(b"1234")
        if kind != "older":
            (folder / "lock").touch()
    with open(stores / ".busy.tmp" / "lock") as lock:
        assert locks.take(lock.fileno())
        store = import_nbest(path, store_dir=stores)
        assert leftovers(stores) == [".busy.tmp", store.folder.name]
    import_nbest(path, store_dir=stores)
    assert leftovers(stores) == [store.folder.name]
    assert "lock" not in leftovers(store.folder)


def test_the_quicker_of_two_imports_stays(tmp_path: Path) -> None:
    path = write(tmp_path)
    inner: list[NBestStore] = []
    places: list[int] = []

    def overtake(done: int, _: int) -> None:
        if done == 2:
            inner.append(import_nbest(path, store_dir=tmp_path / "s"))
            places.append(inner[0].folder.stat().st_ino)

    store = import_nbest(path, store_dir=tmp_path / "s", progress=overtake)
    assert places == [store.folder.stat().st_ino]
    assert store.folder == inner[0].folder
    assert store.losses.tolist() == inner[0].losses.tolist()
    assert leftovers(tmp_path / "s") == [store.folder.name]


def test_default_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_references("d/a.b.nbest.xz") == Path("d/a.b.ref")
    assert default_references("a.nbest.gz") == default_references("a.nbest") == Path("a.ref")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    assert import_nbest(write(tmp_path)).folder.parent == tmp_path / "c/sparsezo/nbest"


@pytest.mark.parametrize(
    ("ids", "references", "message"),
    [
        ([0, 1, 2], 2, r"x\.nbest:3: list 2 has no reference: .*x\.ref ends with line 2, that of list 1"),
        ([0, 9], 3, r"x\.nbest:2: list 9 has no reference: .*x\.ref ends with line 3"),
        ([5, 7, 5], 9, r"x\.nbest:3: id 5 comes after id 7; sort the candidates by id"),
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


@pytest.mark.parametrize(
    ("path", "references", "message"),
    [
        ("x.nbest", ["x.ref", "short.ref"], r"short\.ref: has 1 lines but .*x\.ref has 3; give a line for each list"),
        ("x.nbest", ["none.ref"], r"none\.ref: no such file"),
        ("none.nbest", ["x.ref"], r"none\.nbest: no such file"),
        ("x.ref", None, r"x\.ref: does not end in \.nbest\[\.gz\|\.xz\], so its references are not known"),
        ("x.nbest", [], r"no reference files are named; name at least one"),
        ("empty.nbest", ["short.ref"], r"empty\.nbest: names no feature on any line"),
        ("long.nbest", ["short.ref"], r"long\.nbest:1: list 0 has a sentence of 40000 tokens; at most 32767"),
    ],
)
def test_other_bad_input(tmp_path: Path, path: str, references: list[str] | None, message: str) -> None:
    write(tmp_path)
    (tmp_path / "short.ref").write_text("x\n")
    (tmp_path / "empty.nbest").write_text("0 ||| x ||| ||| 0\n")
    (tmp_path / "long.nbest").write_text(f"0 ||| {'x ' * 40000} ||| A=1 ||| 0\n")
    given = None if references is None else [tmp_path / name for name in references]
    with pytest.raises(SparsezoError, match=message):
        import_nbest(tmp_path / path, given, tmp_path / "s")
    assert leftovers(tmp_path / "s") == []
    with pytest.raises(SparsezoError, match=r"x\.ref: the n-best store cannot be written \(.*\); free some space"):
        import_nbest(tmp_path / "x.nbest", store_dir=tmp_path / "x.ref")


def test_sizes_that_can_only_be_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before memory or disk is taken for them."""
    lists = [[("x", " ".join(f"f{i}.{k}=1" for k in range(50)))] for i in range(40)]
    path = write(tmp_path, lists, ["x"] * 40)
    monkeypatch.setattr(limits, "ARRAYS", 1 << 16)
    monkeypatch.setattr(limits, "SWELLING", 2)
    with pytest.raises(DataError, match=r"x\.nbest:19: 19 candidates and 950 features so far take 0\.0 GB.*`insist`"):
        import_nbest(path, store_dir=tmp_path / "s")
    with limits.insisting():
        assert import_nbest(path, store_dir=tmp_path / "s").features.shape == (40, 2000)
