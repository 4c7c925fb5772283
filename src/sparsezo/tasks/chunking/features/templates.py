"""Feature templates in CRF++'s and Wapiti's notation: which observations around a token make one attribute.

``%x[row,column]`` stands for a column (from 0) of the token ``row`` places further on.

    U02:%x[0,0]                    the word
    U05:%x[-1,0]/%x[0,0]           the word before and the word
    U99:                           a bias: one attribute that every token has
    B01:%x[0,0]                    the word together with the tag before it
    u:kind=%x[0,cluster]           the word's cluster: a column that is made of the words (columns.py) has a name
    u:suf=%m[0,0,".?.?$"]          its last two characters

    templates = read_templates("my.template")
    check_columns(templates, n_columns=2, data="train.txt")

Templates that differ only in their macros share the attributes that come out alike (U:%x[-1,0] and U:%x[0,0] have one
for a word, wherever it stands). In a file with something of Wapiti in it # begins a comment anywhere; in CRF++'s
notation only at the beginning of a line.

What a macro makes of a word (``values_of``): x itself, X in lower case, m the part that a pattern matches, t whether
one does, s its shape (Mac-9a: Xxx-dx), S its shape without repetitions; M and T as m and t. Patterns are Wapiti's small
dialect of regular expressions: ``.`` any character, ``\\a \\d \\l \\p \\s \\u \\w`` a letter, digit, lower-case letter,
punctuation mark, space, upper-case letter, letter or digit (in upper case: anything else), ``\\x`` the character x
itself; ``?`` after one of them makes it optional and ``*`` repeats it, as seldom as possible; ``^`` first and ``$``
last hold the match at the word's ends. Characters are Unicode's, where Wapiti has bytes.

Sets of templates that are built in (``built_in``): ``chunking`` is CRF++'s own for CoNLL-2000, ``ner`` is for names,
``words`` the same without other columns than the words.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sparsezo import messages
from sparsezo.errors import DataError, quoted
from sparsezo.storage.files import numbered_lines

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
_KEPT = 2**16  # words
_prefix = re.compile(r"\^((?:\.\?)+)")
_suffix = re.compile(r"((?:\.\?)+)\$")


def values_of(macro: str, pattern: str = "") -> Callable[[str], str]:
    """The function from words to values; ValueError where the pattern is none."""
    plain: dict[str, Callable[[str], str]] = {
        "x": str,
        "X": str.lower,
        "s": shape,
        "S": lambda word: "".join(c for c, _ in itertools.groupby(shape(word))),
    }
    if macro in plain:
        return plain[macro]
    if macro in "tT":
        return _tested(pattern)
    matched = _matched(pattern)
    return matched if macro == "m" else lambda word: matched(word).lower()


class _Shapes(dict[int, str]):
    """What ``shape`` makes of each character, as ``str.translate`` asks for it; found once for a character."""

    def __missing__(self, code: int) -> str:
        c = chr(code)
        self[code] = "X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdecimal() else c
        return self[code]


_SHAPES = _Shapes()


def shape(word: str) -> str:
    """X for an upper-case letter, x for another, d for a digit; the rest as it is."""
    return word.translate(_SHAPES)


@functools.cache
def _tested(pattern: str) -> Callable[[str], str]:
    """Words come again in every batch of texts: what was found of one is kept."""
    compiled = Pattern.compile(pattern)
    return functools.lru_cache(_KEPT)(lambda word: "false" if compiled.search(word) is None else "true")


def _matched(pattern: str) -> Callable[[str], str]:
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
            test = (lambda c: True) if char == "." else _test(text[i]) if char == "\\" else char.__eq__
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


def _test(escaped: str) -> _Test:
    if escaped in _CLASSES:
        return _CLASSES[escaped]
    if escaped.lower() in _CLASSES:
        inside = _CLASSES[escaped.lower()]
        return lambda c: not inside(c)
    return escaped.__eq__


CLUSTER, LIST = "cluster", "list"
NAMES = (CLUSTER, LIST)
REMEDIES = {CLUSTER: "give `clusters`", LIST: "give `gazetteer`"}  # where a template reads one that is not there
FURTHEST_ROW = 100
_LAST_COLUMN = 9999
_macro = re.compile(
    rf"%(?P<macro>[{MACROS}])\[ *(?P<at>@?)(?P<row>[+-]?[0-9]+) *, *(?P<column>[0-9]+|[a-z]+) *"
    r'(?:, *"(?P<pattern>(?:[^"\\]|\\.)*)" *)?\]'
)
_without_percent = re.compile(rf"[{MACROS}]\[ *@?[+-]?[0-9]+ *,")
_of_wapiti = re.compile(rf"[ub*]|.*%[{MACROS.replace('x', '')}]\[")
_prose = re.compile(r"[A-Za-z]{2,}\s")
_EXAMPLE = "write it like U05:%x[-1,0]/%x[0,0]"


class Source(NamedTuple):
    """A column as a macro sees it."""

    column: int | str  # its number from 0, or the name of a derived one
    macro: str = "x"
    pattern: str = ""


class Part(NamedTuple):
    """One macro of a template."""

    row: int  # from the token; where absolute, from the sentence's first token (1, 2, ...) or last one (-1, -2, ...)
    source: Source
    absolute: bool = False

    def __str__(self) -> str:
        pattern = f',"{self.source.pattern}"' if self.source.macro in WITH_PATTERN else ""
        return f"%{self.source.macro}[{'@' * self.absolute}{self.row},{self.source.column}{pattern}]"


@dataclass(frozen=True)
class Template:
    """One template; ``str()`` gives its line back."""

    line: str  # U05:%x[-1,0]/%x[0,0]
    parts: tuple[Part, ...]
    where: str = field(default="", compare=False, repr=False)  # file:line, for messages

    def __str__(self) -> str:
        return self.line

    @property
    def kind(self) -> str:
        """u: goes with a tag; b: with a tag and the one before it; *: with both."""
        return self.line[0].lower()

    @property
    def text(self) -> str:
        """What templates that share attributes have in common: all but the macros."""
        return self.kind + _macro.sub("%", self.line[1:])

    def fill(self, values: Sequence[str]) -> str:
        """The attribute's name, with one value for each part: U05:the/dog."""
        remaining = iter(values)
        return _macro.sub(lambda _: next(remaining), self.line)


def read_templates(path: str | os.PathLike[str]) -> tuple[Template, ...]:
    templates = parse_templates((line for _, line in numbered_lines(path)), str(path))
    for template in templates:
        if " #" in template.line:
            what = "is part of its text, as CRF++ has it; put comments on lines of their own"
            messages.say(f"{template.where}: what follows # in a template {what}")
            break
    return templates


def parse_templates(lines: Iterable[str], where: str) -> tuple[Template, ...]:
    """Templates from the lines of ``where``, which is what messages call the place.

    A B without macros asks for the weights of tag bigrams. `order` has them anyway, so that it changes nothing.
    """
    numbered = [(number, line.strip()) for number, line in enumerate(lines, start=1)]
    numbered = [(number, line) for number, line in numbered if line and not line.startswith("#")]
    if any(_of_wapiti.match(line) for _, line in numbered):
        numbered = [(number, line.partition("#")[0].rstrip()) for number, line in numbered]
    templates = [_parse(line, f"{where}:{number}") for number, line in numbered]
    templates = [template for template in templates if template.parts or template.kind != "b"]
    if not templates:
        raise DataError(where, f"holds no template; {_EXAMPLE}")
    return tuple(templates)


def _parse(line: str, where: str) -> Template:
    parts = tuple(_part(found, line, where) for found in _macro.finditer(line))
    rest = _macro.sub("", line)
    if "%" in rest or _without_percent.search(rest):
        raise DataError(
            where,
            f"'{quoted(line)}' has a malformed macro, which is %x[row,column] in whole numbers, or "
            f'%m[row,column,"pattern"]; {_EXAMPLE}',
        )
    if line[0] not in "UBub*" or (not parts and _prose.match(line)):
        raise DataError(where, f"'{quoted(line)}' is not a template; {_EXAMPLE}")
    return Template(line, parts, where)


def _part(found: re.Match[str], line: str, where: str) -> Part:
    macro, pattern, absolute = found["macro"], found["pattern"], bool(found["at"])
    row, column = _whole(found["row"], FURTHEST_ROW), _column(found["column"], line, where)
    if row is None:
        raise DataError(where, f"'{quoted(line)}' looks more than {FURTHEST_ROW} tokens away; at most that is possible")
    if absolute and row == 0:
        raise DataError(where, f"'{quoted(line)}': @1 is a sentence's first token and @-1 its last; there is no @0")
    if (pattern is not None) != (macro in WITH_PATTERN):
        form = f'%{macro}[row,column,"pattern"]' if macro in WITH_PATTERN else f"%{macro}[row,column]"
        raise DataError(where, f"'{quoted(line)}': the macro %{macro} is written {form}")
    try:
        values_of(macro, pattern or "")
    except ValueError as error:
        raise DataError(where, f"'{quoted(line)}': pattern \"{quoted(pattern)}\": {error}") from None
    return Part(row, Source(column, macro, pattern or ""), absolute)


def _column(text: str, line: str, where: str) -> int | str:
    if not text[0].isdecimal():
        if text not in NAMES:
            known = f"they have numbers from 0, and those that are made the names {' and '.join(NAMES)}"
            raise DataError(where, f"'{quoted(line)}': there is no column '{quoted(text)}'; {known}")
        return text
    if (column := _whole(text, _LAST_COLUMN)) is None:
        raise DataError(where, f"'{quoted(line)}' reads a column that no file has; they are counted from 0")
    return column


def _whole(digits: str, most: int) -> int | None:
    """The number, or None where it is further from 0 than ``most``; it may have any number of digits."""
    magnitude = digits.lstrip("+-").lstrip("0")
    if len(magnitude) > len(str(most)) or int(magnitude or "0") > most:
        return None
    return -int(magnitude or "0") if digits[0] == "-" else int(magnitude or "0")


def check_columns(templates: Iterable[Template], n_columns: int, data: str, names: Collection[str] = ()) -> None:
    """Refuse a template that reads a column which the data does not have (the tag is not one of them).

    ``names``: the derived columns that there are.
    """
    for template in templates:
        for part in template.parts:
            if has_column(part, n_columns, names):
                continue
            where = template.where or f"template {quoted(template.line)}"
            column = part.source.column
            if isinstance(column, str):
                raise DataError(where, f"{part} reads the column '{column}', which is not made; {REMEDIES[column]}")
            raise DataError(
                where,
                f"{part} reads column {column}, but {data} has {n_columns} before the tag, "
                "counted from 0; change the template or the data",
            )


def has_column(part: Part, n_columns: int, names: Collection[str]) -> bool:
    """Whether what a macro reads is among so many columns and these derived ones."""
    column = part.source.column
    return column in names if isinstance(column, str) else column < n_columns


CAPITAL = r'u:capital=%t[-1,0,"^."]/%t[0,0,"^\u"]'  # whether it stands inside of a sentence, and has a capital
BIAS = "u:bias="  # of order 2: a row that every token has, for tag bigrams; order 1 has rows of its own for them


def _around(name: str, macro: str, reach: int) -> list[str]:
    """A template for each place of a window: u:word-1=%x[-1,0], u:word=%x[0,0], ..."""
    return [f"u:{name}{f'{k:+}' if k else ''}={macro % k}" for k in range(-reach, reach + 1)]


def _pairs(name: str, macro: str) -> list[str]:
    return [f"u:{name}-1={macro % -1}/{macro % 0}", f"u:{name}+1={macro % 0}/{macro % 1}"]


def _bits(n: int) -> str:
    """A macro: the first n bits of a cluster's path."""
    return f'%%m[%d,cluster,"^{".?" * n}"]'


_PLACES = range(-2, 3)
# Words, then parts of speech, in a window of two, with their bigrams and of the latter the trigrams.
CHUNKING = [
    *(f"U0{i}:%x[{k},0]" for i, k in enumerate(_PLACES)),
    *(f"U0{i}:%x[{k},0]/%x[{k + 1},0]" for i, k in enumerate((-1, 0), start=5)),
    *(f"U1{i}:%x[{k},1]" for i, k in enumerate(_PLACES)),
    *(f"U1{i}:%x[{k},1]/%x[{k + 1},1]" for i, k in enumerate(_PLACES[:-1], start=5)),
    *(f"U2{i}:%x[{k},1]/%x[{k + 1},1]/%x[{k + 2},1]" for i, k in enumerate(_PLACES[:-2])),
]
NER = [
    CAPITAL,
    *_around("word", "%%x[%d,0]", 2), *_pairs("words", "%%x[%d,0]"), *_around("lower", "%%X[%d,0]", 1),
    *(f'u:prefix{n}=%m[0,0,"^{".?" * n}"]' for n in range(1, 5)),
    *(f'u:suffix{n}=%m[0,0,"{".?" * n}$"]' for n in range(1, 5)),
    *_around("shape", "%%s[%d,0]", 1), *_around("form", "%%S[%d,0]", 2), *_pairs("forms", "%%S[%d,0]"),
    "u:forms=%S[-1,0]/%S[0,0]/%S[1,0]", "u:word-1form=%X[-1,0]/%S[0,0]", "u:formword+1=%S[0,0]/%X[1,0]",
    *_around("second", "%%x[%d,1]", 2), *_pairs("seconds", "%%x[%d,1]"), *_around("third", "%%x[%d,2]", 1),
    *(line for n in (4, 6, 10) for line in _around(f"cluster{n}", _bits(n), 2)),  # all of the path adds nothing
    *_pairs("clusters", _bits(6)),
    *_around("list", "%%x[%d,list]", 1), "u:listform=%x[0,list]/%S[0,0]",
]  # fmt: skip

# As for names, where the data has columns that raw text would not have: they are not read.
WORDS = [line for line in NER if not line.startswith(("u:second", "u:third"))]
FEATURE_SETS = {"chunking": CHUNKING, "ner": NER, "words": WORDS}


def usual_features(n_columns: int) -> str:
    """The set for data with so many columns before the tag: a single one is of words."""
    return "ner" if n_columns == 1 else "chunking"


def built_in(name: str, n_columns: int, names: Collection[str] = (), order: int = 1) -> tuple[Template, ...]:
    """A set of FEATURE_SETS, without the templates that read other columns than the data's and the derived ones."""
    lines = [*FEATURE_SETS[name], BIAS] if name != "chunking" and order == 2 else FEATURE_SETS[name]
    templates = parse_templates(lines, f"the built-in templates for {name}")
    return tuple(each for each in templates if all(has_column(part, n_columns, names) for part in each.parts))
