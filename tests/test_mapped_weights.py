"""Weights in the caller's own array, which may be a mapped file: learned in place, and the same as in a copy."""

from __future__ import annotations

import gc
import mmap
import tempfile
from pathlib import Path

import numpy as np
import pytest

from sparsezo.errors import DataError, UsageError
from sparsezo.learner import Learner
from sparsezo.settings import Settings
from sparsezo.storage.mapped_weights import in_large_pages, mapped_weights
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking

SETTINGS = Settings("two-point", "score", 0.01, 0.1, seed=1)


@pytest.fixture(scope="module")
def problem():
    task, corpus = Chunking.fit(chunking_corpus(30, seed=1), only="NP", hash_bits=10)
    return task.problem(corpus), task.gold(corpus)


def test_a_mapped_file_holds_the_weights_of_a_run_in_memory(problem, tmp_path) -> None:
    problem, gold = problem
    shape = (problem.n_features, problem.n_labels)
    tables = np.memmap(tmp_path / "0", np.float32, "w+", shape=shape), mapped_weights(tmp_path / "1", *shape)
    plain, *mapped = (Learner(problem, SETTINGS), *(Learner(problem, SETTINGS, W, copy=False) for W in tables))
    for learner in (plain, *mapped):
        learner.run(gold, 300)
    assert plain.state.W.any()
    for name in "01":
        assert np.array_equal(np.fromfile(tmp_path / name, np.float32).reshape(shape), plain.state.W)


def in_memory() -> Path:
    """A folder whose files are in memory, where this machine has one."""
    if not Path("/dev/shm").is_dir():
        pytest.skip("no /dev/shm here")
    return Path("/dev/shm")


@pytest.mark.parametrize(
    ("folder", "rows"), [(Path(tempfile.gettempdir()), 1), (in_memory, 400_000)], ids=["temporary", "memory"]
)
def test_a_table_is_what_is_in_the_file(folder, rows) -> None:
    with tempfile.TemporaryDirectory(dir=folder() if callable(folder) else folder) as place:
        path = Path(place) / "W"
        W = mapped_weights(path, rows, 9)
        assert W.shape == (rows, 9)
        assert not W.any()
        W[0, 1], W[-1, -1] = 1, 2
        del W
        gc.collect()  # nobody has it mapped
        found, again = np.fromfile(path, np.float32).reshape(rows, 9), mapped_weights(path, rows, 9)
        assert (found.sum(), found[0, 1], found[-1, -1]) == (3, 1, 2)
        np.testing.assert_array_equal(again, found)
        assert 0 <= in_large_pages(again) <= again.nbytes
        for other in ((rows + 1, 9), (rows, 8)):
            with pytest.raises(DataError, match=rf"{path}: has {36 * rows:,} bytes, where this table of weights has"):
                mapped_weights(path, *other)


def test_pages_of_a_file_in_memory_are_large_where_the_system_can() -> None:
    """By hand: the system's own word for all of a mapping's memory beside what ``mapped_weights`` has reached."""
    with tempfile.TemporaryDirectory(dir=in_memory()) as place:
        W = mapped_weights(Path(place) / "W", 500_000, 9)
        if in_large_pages(W) == 0:
            pytest.skip("this system has no large pages for files in memory")
        assert in_large_pages(W) >= W.nbytes - 2 * (2 << 20)
        other = mmap.mmap(-1, 8 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        other.madvise(mmap.MADV_NOHUGEPAGE)  # plain memory may be in large pages too, where the system is set so
        other.write(bytes(8 << 20))
        assert in_large_pages(np.frombuffer(other, np.float32)) == 0


def test_a_table_of_nothing_is_refused(tmp_path) -> None:
    with pytest.raises(UsageError, match="rows is 0, and 1 is needed"):
        mapped_weights(tmp_path / "W", 0, 9)
    assert not (tmp_path / "W").exists()


def test_an_array_that_cannot_be_learned_in_is_refused(problem) -> None:
    problem, _ = problem
    shape = (problem.n_features, problem.n_labels)
    locked = np.zeros(shape, np.float32)
    locked.flags.writeable = False
    for W in (np.zeros(shape), np.zeros(shape[::-1], np.float32).T, locked):
        with pytest.raises(UsageError, match="a float32 array in C order that can be written"):
            Learner(problem, SETTINGS, W, copy=False)
