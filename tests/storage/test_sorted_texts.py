"""Front-coded texts: each is found at its place in the order of all, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsezo.storage.texts import LONGEST, SortedTexts

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.text("ab", max_size=8)


def in_order(texts: list[str]) -> list[str]:
    return sorted({*texts}, key=str.encode)


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTS, max_size=80), st.lists(TEXTS, max_size=20))
def test_places_are_those_of_a_sorted_list(texts, others):
    plain = in_order(texts)
    made = SortedTexts.of(texts)
    again = SortedTexts.from_arrays(made.to_arrays())
    expected = [plain.index(text) if text in plain else -1 for text in texts + others]
    assert len(made) == len(plain)
    assert made.places(texts + others) == expected
    assert again.places(texts + others) == expected


def test_what_is_shared_is_kept_once():
    words = [f"unmistakable{k:04d}" for k in range(1600)]
    made = SortedTexts.of(words)
    assert made.rest.size < sum(map(len, words)) / 4
    assert made.places(words) == list(range(1600))


def test_the_longest_text():
    texts = ["ä" * (LONGEST // 2), "x" * LONGEST]
    assert SortedTexts.of(texts).places(texts) == [1, 0]
    with pytest.raises(ValueError, match="a text of more than 255 bytes"):
        SortedTexts.of(["x" * (LONGEST + 1)])


@pytest.mark.parametrize(
    "changed",
    [
        {"shared": np.zeros(2, np.uint8)},
        {"lengths": np.array([3, 0, 9], np.uint8)},
        {"rest": np.zeros(1, np.uint8)},
        {"shared": np.array([1, 0, 0], np.uint8)},
        {"lengths": np.array([1, 1, 1], np.int64)},
        {"rest": np.zeros((1, 3), np.uint8)},
    ],
)
def test_other_arrays_are_refused(changed):
    arrays = SortedTexts.of(["a", "b", "c"]).to_arrays()
    SortedTexts.from_arrays(arrays)
    with pytest.raises(ValueError, match="sorted texts"):
        SortedTexts.from_arrays({**arrays, **changed})
