"""Indices to columns: small ones by a table, huge ones by sorting, both as a dictionary would."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsezo.tasks.text import indices as module
from sparsezo.tasks.text.indices import columns_of, kept_indices

SOME = st.lists(st.one_of(st.integers(0, 12), st.sampled_from([10**9, 2**40, 10**18 - 1])), max_size=40)


@pytest.mark.parametrize("small", [0, 1 << 22])
@settings(max_examples=100, deadline=None)
@given(train=SOME, test=SOME, least=st.integers(1, 3))
def test_as_a_dictionary_would(small: int, train: list[int], test: list[int], least: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PIECE", 7)
        patch.setattr(module, "_SMALL", small)
        features = kept_indices(np.array(train, np.int64), least)
        assert features.tolist() == sorted(index for index, n in Counter(train).items() if n >= least)
        place = {index: column for column, index in enumerate(features.tolist())}
        columns = columns_of(np.array(test, np.int64), features)
        assert columns.tolist() == [place.get(index, -1) for index in test]
        assert columns.dtype == np.int32
