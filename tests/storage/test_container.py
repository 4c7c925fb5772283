"""Model and checkpoint files: whole, checked, never pickled."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparsezo import __version__
from sparsezo.errors import DamagedError, DataError, SparsezoError
from sparsezo.model import load_model
from sparsezo.settings import Settings
from sparsezo.storage import container
from sparsezo.storage.container import read_container, write_container
from sparsezo.tasks.chunking.generate import chunking_corpus
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


@pytest.mark.parametrize("place", [0.2, 0.5, 0.8, 0.999])
def test_a_damaged_file_is_refused(model_file, place):
    content = bytearray(model_file.read_bytes())
    for at in range(int(len(content) * place), int(len(content) * place) + 8):
        content[min(at, len(content) - 1)] ^= 0xFF
    model_file.write_bytes(content)
    with pytest.raises(DataError, match=r"model\.szo: is (damaged|not a sparsezo model)"):
        load_model(model_file)


@pytest.mark.parametrize("size", [0, 3, 100, 5000])
def test_a_cut_off_file_is_refused(model_file, size):
    model_file.write_bytes(model_file.read_bytes()[:size])
    with pytest.raises(DataError, match=r"is (damaged|not a sparsezo model)"):
        load_model(model_file)


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
        (tmp_path, "is a folder; name the model file in it"),
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


@pytest.mark.parametrize("meta", [b"{", b"\xff\xfe"])
def test_a_head_that_cannot_be_read_is_damage(tmp_path, meta):
    write_npz(tmp_path / "some.szo", meta)
    with pytest.raises(DataError, match=r"is damaged \(.*\); make it anew or copy it again"):
        read_container(tmp_path / "some.szo", "model")


def test_the_head_is_checked_before_the_arrays_are_read(tmp_path):
    """Another kind of file is called so, even where this version could not read its arrays."""
    write_npz(tmp_path / "some.szo", {**HEAD, "kind": "checkpoint"}, W=np.array([None]))
    with pytest.raises(DataError) as caught:
        read_container(tmp_path / "some.szo", "model")
    assert str(caught.value) == f"{tmp_path / 'some.szo'}: is a sparsezo checkpoint, not a model"


@pytest.mark.parametrize(
    ("error", "said"),
    [(PermissionError(13, "Permission denied"), "Permission denied"), (OSError("odd"), "odd")],
)
def test_what_may_not_be_read(tmp_path, monkeypatch, error, said):
    def refuse(*_args):
        raise error

    monkeypatch.setattr(container, "open", refuse, raising=False)
    with pytest.raises(DataError) as caught:
        read_container(tmp_path / "secret", "model")
    assert str(caught.value) == f"{tmp_path / 'secret'}: cannot be read ({said})"


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    path = tmp_path / "model.szo"
    path.write_bytes(b"the old one")

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(SparsezoError, match=r"model\.szo: cannot be written \(No space left on device\); free some"):
        write_container(path, "model", {}, {"W": np.zeros(3)})
    assert path.read_bytes() == b"the old one"
    assert [p.name for p in tmp_path.iterdir()] == ["model.szo"]
