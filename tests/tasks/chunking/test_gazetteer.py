"""Lists of known names: what is found where, against a slow twin, and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsezo.errors import DataError, UsageError
from sparsezo.tasks.chunking.features.gazetteer import Gazetteer, read_gazetteer
from sparsezo.tasks.chunking.io.conll import Corpus


def corpus_of(*sentences: str) -> Corpus:
    cut = [sentence.split() for sentence in sentences]
    return Corpus("f.txt", ([word for each in cut for word in each],), None, np.cumsum([0, *map(len, cut)]))


def found(lists: dict[str, list[str]], *sentences: str) -> str:
    return " ".join(Gazetteer.of(lists).column(corpus_of(*sentences)))


@pytest.mark.parametrize(
    ("entry", "text", "fits"),
    [
        ("bogotá", "bogotá", True),
        ("bogotá", "Bogotá", True),
        ("bogotá", "BOGOTÁ", True),
        ("Bogotá", "BOGOTÁ", True),
        ("Bogotá", "bogotá", False),
        ("BOGOTÁ", "Bogotá", False),
        ("iPhone", "IPhone", True),
        ("iPhone", "Iphone", False),
        ("Bogota", "Bogotá", False),
        ("Bogot\u00e1", "Bogota\u0301", True),  # the same letter in two characters
        ("straße", "STRASSE", False),  # letter by letter
        ("ΝΊΚΟΣ", "ΝΊΚΟΣ", True),
        ("νίκος", "ΝΊΚΟΣ", True),
    ],
)
def test_case(entry, text, fits):
    assert found({"LOC": [entry]}, text) == ("B-LOC" if fits else "O")


@pytest.mark.parametrize(
    ("entry", "text", "expected"),
    [
        ("U.S. Steel", "U.S. Steel", "B-X I-X"),
        ("U.S. Steel", "U.S . Steel", "B-X I-X I-X"),
        ("St. John's", "St. John's", "B-X I-X"),
        ("St. John's", "St . John 's", "B-X I-X I-X I-X"),
        ("Castilla-La Mancha", "Castilla-La Mancha", "B-X I-X"),
        ("Castilla", "Castilla-La Mancha", "O O"),  # ends inside of a token
        ("La Mancha", "Castilla-La Mancha", "O O"),  # begins inside of one
    ],
)
def test_however_the_text_is_cut(entry, text, expected):
    assert found({"X": [entry]}, text) == expected


PIECES = st.sampled_from(["a", "A", "b", "B", "ab", "Ab", "."])
NAMES = st.lists(st.lists(PIECES, min_size=1, max_size=3).map(" ".join), max_size=6)


def plain(lists: dict[str, list[str]], sentences: list[list[str]]) -> list[str]:
    """Every entry at every place, the longest first."""
    column = []
    for words in sentences:
        tags, i = ["O"] * len(words), 0
        while i < len(words):
            for stop in range(len(words), i, -1):
                text = words[i:stop]
                kinds = [
                    kind
                    for kind, entries in lists.items()
                    if any(
                        len(entry.split()) == len(text)
                        and all(
                            re.fullmatch("".join(f"[{c}{c.upper()}]" if c.islower() else re.escape(c) for c in e), t)
                            for e, t in zip(entry.split(), text, strict=True)
                        )
                        for entry in entries
                    )
                ]
                if kinds:
                    tags[i:stop] = ["B-" + "|".join(kinds)] + ["I-" + "|".join(kinds)] * (stop - i - 1)
                    i = stop
                    break
            else:
                i += 1
        column += tags
    return column


@settings(max_examples=200, deadline=None)
@given(NAMES, NAMES, st.lists(st.lists(PIECES, min_size=1, max_size=6), min_size=1, max_size=4))
def test_like_a_slow_search(one, other, sentences):
    lists = {"P": one, "Q": other}
    gazetteer = Gazetteer.of(lists)
    corpus = corpus_of(*map(" ".join, sentences))
    assert gazetteer.column(corpus) == plain(lists, sentences)
    assert Gazetteer.from_arrays(gazetteer.to_arrays()).column(corpus) == plain(lists, sentences)


def test_files(put):
    cities = put("cities.txt", "# Lima\n\nLima\tPeru\t10\n  San José  \n")
    more, clubs = put("more.gz", "Quito\n"), put("clubs.xz", "Lima Norte\n")
    gazetteer = read_gazetteer([f"LOC={cities}", f"LOC={more}", f"ORG={clubs}"])
    assert (gazetteer.types, len(gazetteer)) == (("LOC", "ORG"), 5)
    column = gazetteer.column(corpus_of("Lima Norte , Lima , Quito , San José , Peru , # Lima"))
    expected = "B-ORG I-ORG O B-LOC O B-LOC O B-LOC I-LOC O O O B-LOC I-LOC"
    assert " ".join(column) == expected  # entries are as they are: # begins no comment


@pytest.mark.parametrize("given", ["cities.txt", "=cities.txt", "LOC="])
def test_a_list_needs_a_type_and_a_file(given):
    with pytest.raises(UsageError) as error:
        read_gazetteer([given])
    assert str(error.value) == f"`gazetteer` {given}: give a type and a file, as in LOC=cities.txt"


def test_types_that_cannot_be():
    with pytest.raises(UsageError, match="`gazetteer` A\\|B: a type has no space, = or \\| in it"):
        Gazetteer.of({"A|B": ["x"]})


def test_files_without_entries(tmp_path, put):
    path = put("empty.txt", "\n \n")
    with pytest.raises(DataError) as error:
        read_gazetteer([f"LOC={path}"])
    assert str(error.value) == f"{path}: holds no entry; expected one name a line"
    with pytest.raises(DataError, match="no such file"):
        read_gazetteer([f"LOC={tmp_path}/none.txt"])


@pytest.mark.parametrize("counts", [np.array([1, 2]), np.array([-1, 3]), np.array([2, 1, 0]), np.array([2.0, 1.0])])
def test_other_arrays_are_refused(counts):
    arrays = Gazetteer.of({"A": ["x", "y"], "B": ["x"]}).to_arrays()
    if counts.tolist() == [1, 2]:  # as many entries: no damage that could be seen
        Gazetteer.from_arrays({**arrays, "counts": counts})
        counts = np.array([1, 1])
    with pytest.raises(ValueError, match="lists of names whose counts"):
        Gazetteer.from_arrays({**arrays, "counts": counts})
