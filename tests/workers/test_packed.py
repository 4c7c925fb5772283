"""The data as all workers of a machine map it: equal, shared, and nobody's writing is seen by another."""

from __future__ import annotations

import os
from multiprocessing import get_context

import numpy as np
import pytest

from sparsezo.workers.packed import Mapped, packed

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
