"""Model and checkpoint files: whole, checked, never pickled."""

from __future__ import annotations

import io
import json
import re
import warnings
import zipfile

import numpy as np
import pytest

from sparsezo import __version__
from sparsezo.errors import DamagedError, DataError
from sparsezo.model import load_model
from sparsezo.settings import Settings
from sparsezo.storage import container
from sparsezo.storage.container import read_container, write_container
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data
from sparsezo.training import Training


@pytest.fixture(scope="module")
def outcome():
    task, corpus = Chunking.fit(chunking_corpus(30, seed=5), only="NP")
    return Training(task, Data(corpus), Settings(h=0.01), 2000).go(), corpus


@pytest.fixture
def model_file(outcome, tmp_path):
    path = tmp_path / "model.szo"
    outcome[0].model.save(path)
    return path


def test_a_model_comes_back_whole(outcome, model_file):
    before, corpus = outcome
    after = load_model(model_file, "chunking")
    np.testing.assert_array_equal(before.model.W, after.W)
    np.testing.assert_array_equal(before.model.predict(corpus), after.predict(corpus))
    assert after.settings == Settings(h=0.01).as_dict()
    assert after.result == before.result
    np.testing.assert_array_equal(after.curve["iterations"], before.model.curve["iterations"])


def test_anyone_with_numpy_can_read_it(model_file):
    with np.load(model_file, allow_pickle=False) as arrays:
        assert {"meta", "W"} <= set(arrays.files)
        assert b'"task": "chunking"' in arrays["meta"].tobytes()


def test_foreign_files_are_refused(tmp_path, model_file):
    text = tmp_path / "text"
    text.write_text("hello\n")
    other = tmp_path / "other.npz"
    np.savez(other, x=np.zeros(3))
    checkpoint = tmp_path / "run.checkpoint"
    write_container(checkpoint, "checkpoint", {}, {})
    zipped = tmp_path / "almost"
    zipped.write_bytes(b"PK\x03\x05" + model_file.read_bytes()[4:])
    foreign = "is not a sparsezo model; give a file that sparsezo train wrote"
    for path, message in [
        (text, foreign),
        (other, foreign),
        (zipped, foreign),
        (checkpoint, "is a sparsezo checkpoint, not a model"),
        (tmp_path, "is a folder; name a file in it"),
        (tmp_path / "none", "no such file; check the path"),
    ]:
        with pytest.raises(DataError) as caught:
            load_model(path)
        assert str(caught.value) == f"{path}: {message}"
    with pytest.raises(DataError, match="is a model of task chunking, not of text"):
        load_model(model_file, "text")


@pytest.mark.parametrize("layout", [99, 0, None, "1"])
def test_another_layout_is_refused(tmp_path, layout):
    path = tmp_path / "new.szo"
    write_container(path, "model", {"format_version": layout, "sparsezo": "77.1"}, {})
    with pytest.raises(DataError) as caught:
        read_container(path, "model")
    assert str(caught.value) == (
        f"{path}: has layout {layout}, this sparsezo ({__version__}) reads 1; it was written by sparsezo 77.1"
    )


def test_what_is_written_is_what_is_read(tmp_path):
    path = tmp_path / "some.szo"
    given = {
        "W": np.arange(6, dtype=np.float32).reshape(3, 2),
        "z": np.array([1, 2], np.int16),
        "a": np.zeros((0, 4)),
        "x.y": np.array(3.5),
    }
    write_container(path, "checkpoint", {"task": "ünë", "n": [1, None]}, given)
    meta, arrays = read_container(str(path), "checkpoint")
    assert meta == {
        "format": "sparsezo",
        "kind": "checkpoint",
        "format_version": 1,
        "sparsezo": __version__,
        "task": "ünë",
        "n": [1, None],
    }
    assert [*arrays] == ["W", "z", "a", "x.y"]
    for name, array in given.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(arrays[name], array)


def write_npz(path, meta, **arrays):
    text = meta if isinstance(meta, bytes) else json.dumps(meta).encode()
    with open(path, "wb") as stream:
        np.savez(stream, meta=np.frombuffer(text, np.uint8), **arrays)


HEAD = {"format": "sparsezo", "kind": "model", "format_version": 1}


def test_objects_are_neither_written_nor_read(tmp_path):
    """A pickle may run anything."""
    objects = np.array([{"a": 1}, None], object)
    with pytest.raises(ValueError, match="pickle"):
        write_container(tmp_path / "model.szo", "model", {}, {"W": objects})
    assert list(tmp_path.iterdir()) == []
    write_npz(tmp_path / "evil.szo", HEAD, W=objects)
    with pytest.raises(
        DamagedError, match=r"evil\.szo: is damaged \(W\.npy is no array of numbers\); make it anew or copy it again"
    ):
        read_container(tmp_path / "evil.szo", "model")


@pytest.mark.parametrize("meta", [[1, 2], "model", {"kind": "model", "format_version": 1}, {**HEAD, "format": "other"}])
def test_a_head_that_is_not_ours(tmp_path, meta):
    write_npz(tmp_path / "some.szo", meta)
    with pytest.raises(DataError) as caught:
        read_container(tmp_path / "some.szo", "model")
    message = "is not a sparsezo model; give a file that sparsezo train wrote"
    assert str(caught.value) == f"{tmp_path / 'some.szo'}: {message}"


# Crafted files: everything is right but one thing


def npy(array):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def zipped(path, members, compression=zipfile.ZIP_STORED):
    """A zip with right sums of its own, of (name, bytes)."""
    with zipfile.ZipFile(path, "w", compression) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, content in members:
            archive.writestr(name, content)
    return path


GOOD_HEAD = ("meta.npy", npy(np.frombuffer(json.dumps(HEAD).encode(), np.uint8)))
GOOD = ("W.npy", npy(np.zeros((2, 3), np.float32)))


def refused(path):
    with pytest.raises(DamagedError) as caught:
        read_container(path, "model")
    found = re.fullmatch(
        rf"{re.escape(str(path))}: is damaged \((.*)\); make it anew or copy it again", str(caught.value)
    )
    assert caught.value.exit_code == 1
    return found[1]


def test_files_of_before_have_no_sums_of_their_own(tmp_path):
    meta, arrays = read_container(zipped(tmp_path / "old.szo", [GOOD_HEAD, GOOD]), "model")
    assert meta == HEAD
    np.testing.assert_array_equal(arrays["W"], np.zeros((2, 3), np.float32))


def test_packed_files_are_read_too(tmp_path):
    with open(tmp_path / "some.szo", "wb") as stream:
        np.savez_compressed(stream, meta=np.frombuffer(json.dumps(HEAD).encode(), np.uint8), W=np.arange(5))
    np.testing.assert_array_equal(read_container(tmp_path / "some.szo", "model")[1]["W"], np.arange(5))


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([("meta.npy", b"hello"), GOOD], "meta.npy is no array of numbers"),
        ([GOOD_HEAD, ("W.txt", b"1 2 3")], "a member 'W.txt'"),
        ([GOOD_HEAD, GOOD, GOOD], "a member 'W.npy'"),
        ([GOOD_HEAD, ("W.npy", GOOD[1] + b"x")], r"W.npy is not as long as its shape \(2, 3\) says"),
        ([GOOD_HEAD, ("W.npy", GOOD[1][:-1])], r"W.npy is not as long as its shape \(2, 3\) says"),
        ([GOOD_HEAD, ("W.npy", npy(np.zeros(3, complex)))], "W.npy is of type c16"),
        ([GOOD_HEAD, ("W.npy", npy(np.zeros(3, [("a", "i4")])))], "W.npy is no array of numbers"),
        ([GOOD_HEAD, ("W.npy", GOOD[1].replace(b"(2, 3)", b"(9, 9)"))], r"W.npy is not as long as its shape"),
        ([GOOD_HEAD, ("W.npy", GOOD[1].replace(b"(2, 3)", b"(-2,-3"))], "W.npy is no array of numbers"),
    ],
)
def test_members_that_are_no_arrays(tmp_path, members, why):
    assert re.match(why, refused(zipped(tmp_path / "some.szo", members)))


@pytest.mark.parametrize(
    "text",
    [b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}", b'{"a": "\\ud800", "format": "sparsezo"}', b"{", b"\xff\xfe"],
)
def test_heads_that_json_chokes_on(tmp_path, text):
    """Brackets without end, a number of 5,000 digits, half a character, a head that ends early, no text."""
    assert refused(zipped(tmp_path / "some.szo", [("meta.npy", npy(np.frombuffer(text, np.uint8))), GOOD]))


def test_a_zip_that_says_it_is_encrypted(tmp_path):
    path = zipped(tmp_path / "some.szo", [GOOD_HEAD, GOOD])
    content = bytearray(path.read_bytes())
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.rindex(magic) + at] |= 1
    path.write_bytes(content)
    assert refused(path) == "W is encrypted"


@pytest.mark.parametrize("compression", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_zip_packed_in_another_way(tmp_path, compression):
    assert refused(zipped(tmp_path / "some.szo", [GOOD_HEAD, GOOD], compression)) == "meta is packed in an unknown way"


def test_arrays_come_back_in_this_machines_order_and_in_c_order(tmp_path):
    W = np.arange(6.0).reshape(2, 3)
    for stored in (W.astype(">f8"), np.asfortranarray(W)):
        path = zipped(tmp_path / "some.szo", [GOOD_HEAD, ("W.npy", npy(stored))])
        read = read_container(path, "model")[1]["W"]
        assert read.dtype.isnative
        assert read.flags.c_contiguous
        np.testing.assert_array_equal(read, W)
        write_container(path, "model", {}, {"W": stored})
        np.testing.assert_array_equal(read_container(path, "model")[1]["W"], W)


def test_a_flipped_bit_that_the_zip_does_not_notice(tmp_path):
    path = tmp_path / "some.szo"
    given = np.arange(10, dtype=np.int64)
    write_container(path, "model", {"task": "chunking"}, {"W": given, "v": given})
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    other = given.copy()
    other[3] ^= 1
    for wrong in (other, given.reshape(2, 5), given.view(np.uint64)):
        assert refused(zipped(path, {**members, "W.npy": npy(wrong)}.items())) == "the check sum of W is wrong"
    more, less = {**members, "x.npy": members["v.npy"]}, dict(members)
    del less["v.npy"]
    assert refused(zipped(path, less.items())) == "v is missing or does not belong to it"
    assert refused(zipped(path, more.items())) == "x is missing or does not belong to it"
    head = members["meta.npy"].replace(b'"chunking"', b'"chunkinG"')
    assert refused(zipped(path, {**members, "meta.npy": head}.items())) == "the check sum of its head is wrong"


def test_a_small_file_that_holds_gigabytes(tmp_path, monkeypatch):
    """It is refused before memory is taken, and says how much it would be; whoever insists gets it."""
    path = tmp_path / "bomb.szo"
    zipped(path, [GOOD_HEAD, ("W.npy", npy(np.zeros((300, 1000))))], zipfile.ZIP_DEFLATED)
    monkeypatch.setattr(container.limits, "ARRAYS", 1_000_000)
    with monkeypatch.context() as patched:
        patched.setattr(container.np, "empty", None)
        with pytest.raises(DataError, match=r"bomb\.szo: holds 0\.0 GB in a file of 0\.0 MB; if it is meant"):
            read_container(path, "model")
    with container.limits.insisting():
        assert read_container(path, "model")[1]["W"].shape == (300, 1000)
    monkeypatch.setattr(container.limits, "ARRAYS", 3_000_000)
    assert read_container(path, "model")[1]["W"].shape == (300, 1000)


def test_a_machine_without_the_memory_for_it(tmp_path, monkeypatch):
    path = zipped(tmp_path / "some.szo", [GOOD_HEAD, GOOD])

    def full(*_args):
        raise MemoryError

    monkeypatch.setattr(container.np, "empty", full)
    with pytest.raises(DataError, match="holds more than this machine has memory for"):
        read_container(path, "model")
