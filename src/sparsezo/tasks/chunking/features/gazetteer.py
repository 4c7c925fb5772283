"""Lists of known names, and where in a text they stand.

    gazetteer = Gazetteer.of({"LOC": ["Bogotá", "New York City", "new orleans"], "ORG": ["AC Milan"]})
    gazetteer.column(corpus)            # one of B-LOC, I-LOC, O, ... a token; B-LOC|ORG where both lists have the name

A lower-case letter of an entry matches both cases, an upper-case one only itself: "bogotá" is found as Bogotá and
BOGOTÁ, "Bogotá" as BOGOTÁ, but not as bogotá. At each place the longest entry counts, from left to right, within a
sentence. Entries and tokens are compared as runs of letters and digits and single other characters, so that it does not
matter how the text was cut into tokens ("U.S." or "U.S" and "."); a match begins and ends where tokens do.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.storage.files import numbered_lines
from sparsezo.storage.texts import joined, parted
from sparsezo.tasks.base import AnyArray, Arrays
from sparsezo.tasks.chunking.io.conll import Corpus

OUTSIDE = "O"
_pieces = re.compile(r"\w+|[^\w\s]").findall
_is_type = re.compile(r"[^\s|=]+").fullmatch


@dataclass(frozen=True, eq=False)
class Gazetteer:
    """Entries and their types; made by ``of`` or ``read_gazetteer``."""

    types: tuple[str, ...]
    entries: tuple[tuple[str, ...], ...]  # of each type, in order; their pieces, parted by spaces

    @classmethod
    def of(cls, lists: Mapping[str, Iterable[str]]) -> Gazetteer:
        """Of names by type. An entry without a letter, digit or sign is left out."""
        for name in lists:
            if not _is_type(name):
                raise UsageError(f"`gazetteer` {quoted(name)}: a type has no space, = or | in it")
        entries = {name: {" ".join(_cut(text)) for text in texts} - {""} for name, texts in lists.items()}
        return cls(tuple(entries), tuple(tuple(sorted(each)) for each in entries.values()))

    def __len__(self) -> int:
        return sum(map(len, self.entries))

    def column(self, corpus: Corpus) -> list[str]:
        result = [OUTSIDE] * corpus.n_tokens
        for start, stop, kinds in self._matches(corpus):
            result[start:stop] = [f"B-{kinds}", *([f"I-{kinds}"] * (stop - start - 1))]
        return result

    def _matches(self, corpus: Corpus) -> Iterable[tuple[int, int, str]]:
        """(first token, last + 1, types)."""
        words = corpus.columns[0]
        cut = {word: _cut(word) for word in dict.fromkeys(words)}
        pieces = [piece for word in words for piece in cut[word]]
        small = {piece: piece.lower() for piece in dict.fromkeys(pieces)}
        lower = [small[piece] for piece in pieces]
        lengths = {word: len(each) for word, each in cut.items()}
        # where each token's pieces begin; and which token begins at a piece, -1 inside of one
        begins = np.concatenate([[0], np.cumsum(np.fromiter(map(lengths.__getitem__, words), np.int64, len(words)))])
        token_at = np.full(len(pieces) + 1, -1, np.int64)
        token_at[begins] = np.arange(len(words) + 1)
        # how many pieces the entries have that may begin with a word, the longest first
        sizes = {word: self._by_first.get(small[each[0]], []) if each else [] for word, each in cut.items()}
        likely = np.flatnonzero(np.fromiter((bool(sizes[word]) for word in words), bool, len(words)))
        ends = begins[corpus.offsets[1:]][np.searchsorted(corpus.offsets[1:], likely, side="right")]
        token_of = token_at.tolist()
        free = 0
        for token, at, end in zip(likely.tolist(), begins[likely].tolist(), ends.tolist(), strict=True):
            if token < free:
                continue
            for n in sizes[words[token]]:
                if at + n > end or token_of[at + n] < 0:
                    continue
                text = " ".join(pieces[at : at + n])
                spelled = self._spellings.get(" ".join(lower[at : at + n]), ())
                if kinds := {kind for entry, kind in spelled if _fits(entry, text)}:
                    free = token_of[at + n]
                    yield token, free, "|".join(self.types[k] for k in sorted(kinds))
                    break

    @cached_property
    def _spellings(self) -> dict[str, list[tuple[str, int]]]:
        """Entries in lower case: how they are spelt, and the types' numbers."""
        found: dict[str, list[tuple[str, int]]] = {}
        for kind, entries in enumerate(self.entries):
            for entry in entries:
                # piece by piece, as tokens are: at a word's end, Greek has another small sigma
                lower = " ".join([piece.lower() for piece in entry.split(" ")])
                found.setdefault(lower, []).append((entry, kind))
        return found

    @cached_property
    def _by_first(self) -> dict[str, list[int]]:
        """First pieces of entries, in lower case: how many pieces the entries have, falling."""
        found: dict[str, set[int]] = {}
        for entry in itertools.chain(*self.entries):
            found.setdefault(entry.partition(" ")[0].lower(), set()).add(entry.count(" ") + 1)
        return {first: sorted(sizes, reverse=True) for first, sizes in found.items()}

    def to_arrays(self) -> Arrays:
        types, types_start = joined(self.types)
        text, start = joined([entry for entries in self.entries for entry in entries])
        counts = np.array([len(entries) for entries in self.entries], np.int64)
        return {"types": types, "types_start": types_start, "entries": text, "entries_start": start, "counts": counts}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray]) -> Gazetteer:
        """ValueError where these are not what ``to_arrays`` gave."""
        types = tuple(parted(arrays["types"], arrays["types_start"]))
        entries = parted(arrays["entries"], arrays["entries_start"])
        counts = arrays["counts"]
        if counts.dtype != np.int64 or counts.shape != (len(types),) or counts.min(initial=0) < 0:
            raise ValueError("lists of names whose counts do not fit their types")
        stops = np.cumsum(counts).tolist()
        if (stops[-1] if stops else 0) != len(entries):
            raise ValueError("lists of names whose counts do not fit the entries")
        return cls(types, tuple(tuple(entries[a:b]) for a, b in zip([0, *stops], stops, strict=False)))


def read_gazetteer(named: Iterable[str]) -> Gazetteer:
    """From files, each given as TYPE=FILE: one entry a line (its first cell, where it has TABs), plain, .gz or .xz."""
    lists: dict[str, list[str]] = {}
    for each in named:
        kind, found, path = each.partition("=")
        if not (kind and found and path):
            raise UsageError(f"`gazetteer` {quoted(each)}: give a type and a file, as in LOC=cities.txt")
        entries = [line.partition("\t")[0].strip() for _, line in numbered_lines(path)]
        if not any(map(_cut, entries)):
            raise DataError(path, "holds no entry; expected one name a line")
        lists.setdefault(kind, []).extend(entries)
    return Gazetteer.of(lists)


def _cut(text: str) -> list[str]:
    return _pieces(unicodedata.normalize("NFC", text))


def _fits(entry: str, text: str) -> bool:
    """Letter by letter: a lower-case one of the entry may be a capital in the text."""
    return entry == text or (
        len(entry) == len(text)
        and all(e == t or (e.islower() and e.upper() == t) for e, t in zip(entry, text, strict=True))
    )
