r"""What a macro makes of a word: itself, in lower case, the part that a pattern matches, its shape.

    values_of("m", "^.?.?")("Wapiti")      # 'Wa'
    values_of("t", r"^\u")("Wapiti")       # 'true'
    values_of("s")("Mac-9a")               # 'Xxx-dx'

Patterns are Wapiti's small dialect of regular expressions: ``.`` any character, ``\a \d \l \p \s \u \w`` a letter,
digit, lower-case letter, punctuation mark, space, upper-case letter, letter or digit (in upper case: anything else),
``\x`` the character x itself; ``?`` after one of them makes it optional and ``*`` repeats it, as seldom as possible;
``^`` first and ``$`` last hold the match at the word's ends. Characters are Unicode's, where Wapiti has bytes.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

MACROS = "xXmMtTsS"
WITH_PATTERN = "mMtT"

_Test = Callable[[str], bool]
_CLASSES: dict[str, _Test] = {
    "a": str.isalpha,
    "d": str.isdecimal,
    "l": str.islower,
    "p": lambda c: unicodedata.category(c)[0] in "PS",
    "s": str.isspace,
    "u": str.isupper,
    "w": lambda c: c.isalpha() or c.isdecimal(),
}
_prefix = re.compile(r"\^((?:\.\?)+)")
_suffix = re.compile(r"((?:\.\?)+)\$")


def values_of(macro: str, pattern: str = "") -> Callable[[str], str]:
    """The function from words to values; ValueError where the pattern is none."""
    if macro == "x":
        return str
    if macro == "X":
        return str.lower
    if macro == "s":
        return shape
    if macro == "S":
        return lambda word: "".join(c for c, _ in itertools.groupby(shape(word)))
    if macro in "tT":
        compiled = Pattern.compile(pattern)
        return lambda word: "false" if compiled.search(word) is None else "true"
    if macro == "m":
        return _matched(pattern)
    if macro == "M":
        matched = _matched(pattern)
        return lambda word: matched(word).lower()
    raise ValueError(f"there is no macro %{macro}")


def shape(word: str) -> str:
    """X for an upper-case letter, x for another, d for a digit; the rest as it is."""
    return "".join("X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdecimal() else c for c in word)


def _matched(pattern: str) -> Callable[[str], str]:
    """The first part of a word that matches; empty where none does."""
    compiled = Pattern.compile(pattern)
    if affix := _prefix.fullmatch(pattern):  # these two are by far the most used
        n = len(affix[1]) // 2
        return lambda word: word[:n]
    if affix := _suffix.fullmatch(pattern):
        n = len(affix[1]) // 2
        return lambda word: word[-n:]
    return compiled.first


@dataclass(frozen=True)
class Pattern:
    items: tuple[tuple[_Test, str], ...]  # what a character must be, and how often: "" once, "?" or "*"
    at_start: bool
    at_end: bool

    @classmethod
    def compile(cls, text: str) -> Pattern:
        at_start, at_end = text.startswith("^"), False
        items: list[tuple[_Test, str]] = []
        i = int(at_start)
        while i < len(text):
            char = text[i]
            if char == "$" and i == len(text) - 1:
                at_end = True
                break
            if char in "*?":
                raise ValueError(f"{char} stands after no character; write \\{char} for the character itself")
            if char == "\\":
                i += 1
                if i == len(text):
                    raise ValueError("ends in a single backslash")
            test = _any if char == "." else _test(text[i]) if char == "\\" else char.__eq__
            i += 1
            often = text[i] if i < len(text) and text[i] in "*?" else ""
            i += len(often)
            items.append((test, often))
        return cls(tuple(items), at_start, at_end)

    def first(self, word: str) -> str:
        found = self.search(word)
        return "" if found is None else word[slice(*found)]

    def search(self, word: str) -> tuple[int, int] | None:
        """Where the first match begins and ends."""
        seen: set[tuple[int, int]] = set()  # what led nowhere, from wherever it was reached: no word takes long
        for start in range(1 if self.at_start else len(word) + 1):
            if (end := self._match(word, start, seen)) is not None:
                return start, end
        return None

    def _match(self, word: str, start: int, seen: set[tuple[int, int]]) -> int | None:
        """Depth first, what is to be preferred last on the stack; (items done, characters read)."""
        stack = [(0, start)]
        while stack:
            state = stack.pop()
            if state in seen:
                continue
            seen.add(state)
            i, at = state
            if i == len(self.items):
                if at == len(word) or not self.at_end:
                    return at
                continue
            test, often = self.items[i]
            fits = at < len(word) and test(word[at])
            if often == "?":
                stack.append((i + 1, at))
            if fits:
                stack.append((i if often == "*" else i + 1, at + 1))
            if often == "*":
                stack.append((i + 1, at))
        return None


def _any(char: str) -> bool:
    return True


def _test(escaped: str) -> _Test:
    """Of a character after a backslash."""
    if escaped in _CLASSES:
        return _CLASSES[escaped]
    if escaped.lower() in _CLASSES:
        inside = _CLASSES[escaped.lower()]
        return lambda c: not inside(c)
    return escaped.__eq__
