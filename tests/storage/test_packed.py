"""The data as all workers of a machine map it: equal, shared, and nobody's writing is seen by another."""

from __future__ import annotations

import gc
import os
from multiprocessing import get_context

import numpy as np
import pytest

from sparsezo.experiments.runs import Bench
from sparsezo.settings import Settings
from sparsezo.storage.packed import Mapped, packed, shelved, unshelved
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data, Loaded
from sparsezo.tasks.text.generate import generate_text
from sparsezo.tasks.text.task import TextClassification
from sparsezo.training import Training

pytestmark = pytest.mark.skipif(os.name != "posix", reason="elsewhere each process has a copy")


def content():
    fixed = np.arange(5, dtype=np.int32)
    fixed.flags.writeable = False
    return {"a": np.arange(12, dtype=np.float32).reshape(3, 4), "none": np.zeros((0, 3)), "fixed": fixed, "n": 7}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(other[name], value)
        if isinstance(value, np.ndarray):
            assert (other[name].dtype, other[name].shape) == (value.dtype, value.shape)
            assert (other[name].flags.writeable, other[name].flags.c_contiguous) == (value.flags.writeable, True)
            assert other[name].flags.aligned


def test_what_is_mapped_is_what_was_given_and_outlives_the_file():
    mapped = Mapped(content())
    there = mapped.content()
    mapped.close()
    assert_same(content(), there)
    assert_same(content(), packed(content()).content())


def test_nothing_is_empty_enough_not_to_be_mapped():
    mapped = Mapped((np.zeros(0), None))
    assert mapped.content()[0].size == 0
    mapped.close()


def test_writing_is_seen_by_nobody_else():
    mapped = Mapped(content())
    one, other = mapped.content(), mapped.content()
    one["a"][:] = -1
    assert_same(content(), other)
    assert_same(content(), mapped.content())
    mapped.close()


def _tell(connection, mapped):
    there = mapped.content()
    mapped.close()
    there["a"][0, 0] += 1
    connection.send((there["a"].sum().item(), there["fixed"].tolist()))


def test_a_process_that_starts_gets_it_and_nothing_is_left_behind():
    mapped = Mapped(content())
    assert os.fstat(mapped._file.fileno()).st_nlink == 0  # no name leads to it
    ours, theirs = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_tell, args=(theirs, mapped))
    process.start()
    assert ours.recv() == (content()["a"].sum() + 1, [0, 1, 2, 3, 4])
    process.join()
    assert_same(content(), mapped.content())
    mapped.close()
    for end in (ours, theirs):
        end.close()


def read_only(shelf):
    """As a store hands it out."""
    for array in shelf:
        array.flags.writeable = False
    return shelf


def test_what_is_shelved_is_read_where_it_is_and_says_nothing_about_writing():
    """Read-only arrays are another type to Numba: all would be compiled anew."""
    pickled, shelf = shelved(content())
    there = unshelved(pickled, read_only(shelf))
    assert_same(content(), there)
    places = [array.ctypes.data for array in shelf if array.size]
    assert [there["a"].ctypes.data, there["fixed"].ctypes.data] == places


def test_what_came_from_a_shelf_keeps_it():
    there = unshelved(*shelved(content()))
    gc.collect()
    other = [np.full(12, -1.0, np.float32) for _ in range(1000)]  # where it would have been
    assert_same(content(), there)
    assert len(other) == 1000


@pytest.mark.parametrize(("rule", "perturb"), [("two-point", "score"), ("supervised", None)])
@pytest.mark.parametrize("task", ["chunking", "text"])
def test_no_run_writes_to_what_was_shelved(task, rule, perturb):
    """Its marks are gone, so nothing else would keep a run from it."""
    one = loaded(task)
    pickled, shelf = shelved(one)
    before = [array.copy() for array in shelf]
    bench = Bench(unshelved(pickled, read_only(shelf)))
    bench.compile()
    settings = Settings(rule, h=0.1, perturb=perturb, mu=0.1 if perturb else None)
    theirs, mine = (Training(each.task, each.data, settings, 40).go() for each in (bench, one))
    np.testing.assert_array_equal(theirs.model.W, mine.model.W)
    assert len(before) > 3
    for array, its in zip(shelf, before, strict=True):
        np.testing.assert_array_equal(array, its)


def loaded(task):
    if task == "chunking":
        task, train = Chunking.fit(chunking_corpus(30, seed=1), only="NP")
        return Loaded(task, Data(train, task.seen(chunking_corpus(20, seed=2))))
    task, train = TextClassification.fit(generate_text(40, seed=1).documents())
    return Loaded(task, Data(train, task.seen(generate_text(10, seed=2).documents())))
