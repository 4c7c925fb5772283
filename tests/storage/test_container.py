"""Model and checkpoint files: whole, checked, never pickled."""

from __future__ import annotations

import numpy as np
import pytest

from sparsezo.errors import DataError, SparsezoError
from sparsezo.model import load_model
from sparsezo.settings import Settings
from sparsezo.storage.container import read_container, write_container
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.training import Data, Training


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
    for path, message in [
        (text, "is not a sparsezo model"),
        (other, "is not a sparsezo model"),
        (checkpoint, "is a sparsezo checkpoint, not a model"),
        (tmp_path, "is a folder"),
        (tmp_path / "none", "no such file"),
    ]:
        with pytest.raises(DataError, match=message):
            load_model(path)
    with pytest.raises(DataError, match="is a model of task chunking, not of text"):
        load_model(model_file, "text")


def test_a_newer_layout_is_refused(tmp_path):
    path = tmp_path / "new.szo"
    write_container(path, "model", {"format_version": 99}, {})
    with pytest.raises(DataError, match="has layout 99"):
        read_container(path, "model")


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
