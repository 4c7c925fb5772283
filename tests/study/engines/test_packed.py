"""Data that many processes read in one place: equal, shared, and written to by nobody."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from sparsezo.settings import Settings
from sparsezo.study.engines.ray import packed, unpacked
from sparsezo.study.prepared import PreparedTask
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data, Loaded
from sparsezo.tasks.text.synthetic import generate_text
from sparsezo.tasks.text.task import TextClassification
from sparsezo.training import Training


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


def read_only(buffers):
    """As a store hands it out."""
    for array in buffers:
        array.flags.writeable = False
    return buffers


def test_what_is_packed_is_read_where_it_is_and_says_nothing_about_writing():
    """Read-only arrays are another type to Numba: all would be compiled anew."""
    pickled, buffers = packed(content())
    there = unpacked(pickled, read_only(buffers))
    assert_same(content(), there)
    places = [array.ctypes.data for array in buffers if array.size]
    assert [there["a"].ctypes.data, there["fixed"].ctypes.data] == places


def test_what_came_is_unpacked_keeps_its_memory():
    there = unpacked(*packed(content()))
    gc.collect()
    other = [np.full(12, -1.0, np.float32) for _ in range(1000)]  # where it would have been
    assert_same(content(), there)
    assert len(other) == 1000


@pytest.mark.parametrize(("rule", "perturb"), [("two-point", "score"), ("supervised", None)])
@pytest.mark.parametrize("task", ["chunking", "text"])
def test_no_run_writes_to_what_was_packed(task, rule, perturb):
    """Its marks are gone, so nothing else would keep a run from it."""
    one = loaded(task)
    pickled, buffers = packed(one)
    before = [array.copy() for array in buffers]
    prepared = PreparedTask(unpacked(pickled, read_only(buffers)))
    prepared.compile()
    settings = Settings(rule, h=0.1, perturb=perturb, mu=0.1 if perturb else None)
    theirs, mine = (Training(each.task, each.data, settings, 40).go() for each in (prepared, one))
    np.testing.assert_array_equal(theirs.model.W, mine.model.W)
    assert len(before) > 3
    for array, its in zip(buffers, before, strict=True):
        np.testing.assert_array_equal(array, its)


def loaded(task):
    if task == "chunking":
        task, train = Chunking.fit(chunking_corpus(30, seed=1), only="NP")
        return Loaded(task, Data(train, task.seen(chunking_corpus(20, seed=2))))
    task, train = TextClassification.fit(generate_text(40, seed=1).documents())
    return Loaded(task, Data(train, task.seen(generate_text(10, seed=2).documents())))
