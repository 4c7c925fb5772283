r"""Wapiti's small regular expressions, against Python's where both say the same, and against what its manual says."""

from __future__ import annotations

import random
import re

import pytest

from sparsezo.tasks.chunking.patterns import Pattern, shape, values_of


@pytest.mark.parametrize(
    ("pattern", "word", "matched"),
    [
        ("^.?.?.?.?", "Wapiti", "Wapi"),  # the manual's own: a prefix of at most four characters
        ("^.?.?.?.?", "Wa", "Wa"),
        (".?.?$", "Wapiti", "ti"),
        (".?.?$", "i", "i"),
        ("", "Wapiti", ""),
        ("pi", "Wapiti", "pi"),
        ("i.", "Wapiti", "it"),  # the first match
        ("i$", "Wapiti", "i"),
        ("x", "Wapiti", None),
        ("^a", "Wapiti", None),
        ("a*", "aaa", ""),  # a star takes as little as it can
        ("a*$", "baaa", "aaa"),
        ("ba*b", "abaab", "baab"),
        ("a?a", "aa", "aa"),  # a question mark takes what it can
        ("a?ab", "ab", "ab"),
        ("a^b$c", "xa^b$cx", "a^b$c"),  # in the middle they are characters
        ("$", "ab", ""),
        ("^$", "", ""),
        ("^$", "a", None),
        (r"\.", "a.b", "."),
        (r"\*\?\\", r"x*?\y", r"*?" + "\\"),
        (r"\"", 'say"', '"'),
        (r"\n", "lan\n", "n"),  # no class: the character itself
        (r"\d\d*$", "B2B-747", "747"),
        (r"\u\u", "McDONALD", "DO"),
        (r"\l", "ABcD", "c"),
        (r"\p.", "re-do", "-d"),
        (r"\p", "5€", "€"),
        (r"\a\d\w\s", "é7Ñ ", "é7Ñ "),
        (r"\A\D\L\U\P\S\W", "7a7a7a-", "7a7a7a-"),
        (r"\W", "a_b", "_"),
        ("^..", "éß", "éß"),  # characters, not bytes
    ],
)
def test_matches(pattern, word, matched):
    compiled = Pattern.compile(pattern)
    assert compiled.first(word) == (matched or "")
    assert (compiled.search(word) is None) == (matched is None)
    assert values_of("m", pattern)(word) == (matched or "")
    assert values_of("M", pattern)(word) == (matched or "").lower()
    for macro in "tT":
        assert values_of(macro, pattern)(word) == ("false" if matched is None else "true")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("*a", r"* stands after no character; write \* for the character itself"),
        ("^?", r"? stands after no character; write \? for the character itself"),
        ("a**", r"* stands after no character; write \* for the character itself"),
        ("ab\\", "ends in a single backslash"),
    ],
)
def test_what_is_no_pattern(pattern, said):
    with pytest.raises(ValueError) as caught:
        values_of("m", pattern)
    assert str(caught.value) == said


ITEMS = {".": ".", "a": "a", "b": "b", r"\d": "[0-9]", r"\D": "[^0-9]", r"\.": r"\.", r"\a": "[a-zA-Z]", r"\u": "[A-Z]"}


def test_against_pythons_own():
    """Where the characters are ASCII: ? is Python's ?, * its *?."""
    draw = random.Random(1)
    found = 0
    for _ in range(5000):
        chosen = [(draw.choice(sorted(ITEMS)), draw.choice(["", "?", "*"])) for _ in range(draw.randrange(7))]
        start, end = draw.random() < 0.5, draw.random() < 0.5
        word = "".join(draw.choices("abA1.", k=draw.randrange(9)))
        pattern = "^" * start + "".join(item + often for item, often in chosen) + "$" * end
        python = "^" * start + "".join(ITEMS[item] + {"*": "*?"}.get(often, often) for item, often in chosen)
        expected = re.search(python + r"\Z" * end, word)
        found += expected is not None
        assert Pattern.compile(pattern).search(word) == (expected.span() if expected else None), (pattern, word)
        assert values_of("m", pattern)(word) == (expected[0] if expected else ""), (pattern, word)
    assert 1000 < found < 4000


@pytest.mark.parametrize("word", ["", "a", "été", "word", "longer\nword"])
def test_affixes_take_the_short_way_to_the_same(word):
    for n in range(1, 7):
        for pattern in ("^" + ".?" * n, ".?" * n + "$"):
            assert values_of("m", pattern)(word) == Pattern.compile(pattern).first(word)


def test_no_pattern_takes_long():
    """These take other matchers years: 2^40 ways to leave characters out, n^9 ways to share them."""
    for pattern in (".?" * 40 + r"\d", "a*" * 9 + r"\d", ".*" * 9 + "x$"):
        assert values_of("t", pattern)("a" * 200) == "false"


def test_shapes_and_cases():
    assert shape("McDonald's-747é") == "XxXxxxxx'x-dddx"
    assert values_of("s")("U.S.") == "X.X."
    assert values_of("S")("McDonald's--747") == "XxXx'x-d"
    assert values_of("S")("") == ""
    assert values_of("x")("Éa") == "Éa"
    assert values_of("X")("ÉA-b") == "éa-b"
    with pytest.raises(ValueError, match="there is no macro %q"):
        values_of("q")
