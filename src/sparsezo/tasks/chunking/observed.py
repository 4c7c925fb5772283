"""A corpus as codes: what every macro of the templates sees of every token, as a number.

A source is a column as a macro sees it; the columns themselves come first. What a macro makes of a word is worked out
once for each distinct word. Codes: 0 is an unknown value, then the pads before a sentence (nearest first), the pads
after it, the values. A pad is the same whatever the macro: it says how far outside the sentence one is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from sparsezo.tasks.chunking.columns import Columns
from sparsezo.tasks.chunking.conll import Corpus
from sparsezo.tasks.chunking.patterns import values_of
from sparsezo.tasks.chunking.templates import Part, Source, Template


class Layout:
    """Which sources and which groups of templates there are, and who shares with whom."""

    def __init__(self, templates: Sequence[Template], n_columns: int) -> None:
        self.sources = [*map(Source, range(n_columns)), *derived_sources(templates)]
        self.place = {source: i for i, source in enumerate(self.sources)}
        self.read = {part.source for template in templates for part in template.parts}
        self.reach = max((abs(part.row) for template in templates for part in template.parts), default=0)
        self.values_from = 1 + 2 * self.reach  # the first value's code
        by_text: dict[str, list[int]] = {}
        for t, template in enumerate(templates):
            by_text.setdefault(template.text, []).append(t)
        self.groups = list(by_text.values())  # templates that share their attributes, by number
        self._shares_with = list(range(len(self.sources)))
        for group in self.groups:
            for parts in zip(*(templates[t].parts for t in group), strict=True):
                for part in parts[1:]:
                    self._join(parts[0].source, part.source)

    def vocabulary_of(self, source: Source) -> int:
        """The number of the source whose vocabulary it has: its own, unless templates of one text read several."""
        place = self.place[source]
        while (other := self._shares_with[place]) != place:
            place = other
        return place

    def _join(self, one: Source, other: Source) -> None:
        first, last = sorted((self.vocabulary_of(one), self.vocabulary_of(other)))
        self._shares_with[last] = first

    def pad_names(self) -> list[str]:
        """CRF++'s names for the codes below the values'."""
        steps = range(1, self.reach + 1)
        return ["", *(f"_B-{i}" for i in steps), *(f"_B+{i}" for i in steps)]


def derived_sources(templates: Sequence[Template]) -> list[Source]:
    """Those that are no plain column of the data, in the order of their first use."""
    sources = [part.source for template in templates for part in template.parts]
    return list(dict.fromkeys(each for each in sources if each.macro != "x" or isinstance(each.column, str)))


class Observed:
    """The values of every source in a corpus: distinct ones, and which of them each token has."""

    def __init__(self, corpus: Corpus, columns: Columns) -> None:
        """``columns``: makes those that have names."""
        self._columns: dict[int | str, list[str]] = {
            **dict(enumerate(corpus.columns)),
            **dict(zip(columns.names, columns.derived(corpus), strict=True)),
        }
        self._distinct: dict[int | str, tuple[list[str], NDArray[np.int64]]] = {}
        self._values: dict[Source, list[str]] = {}

    def distinct(self, column: int | str) -> tuple[list[str], NDArray[np.int64]]:
        """The distinct words of a column, and each token's place among them."""
        if column not in self._distinct:
            words = self._columns[column]
            number = {word: i for i, word in enumerate(dict.fromkeys(words))}
            places = np.fromiter(map(number.__getitem__, words), np.int64, len(words))
            self._distinct[column] = list(number), places
        return self._distinct[column]

    def values(self, source: Source) -> list[str]:
        """What the macro makes of each distinct word."""
        if source not in self._values:
            words = self.distinct(source.column)[0]
            self._values[source] = list(map(values_of(source.macro, source.pattern), words))
        return self._values[source]

    def codes(self, source: Source, vocabulary: dict[str, int]) -> NDArray[np.int64]:
        """Each token's code; 0 where the vocabulary does not have its value."""
        values = self.values(source)
        codes = np.fromiter(map(vocabulary.get, values, repeat(0)), np.int64, len(values))
        return codes[self.distinct(source.column)[1]]

    def vocabularies(self, layout: Layout) -> tuple[dict[str, int], ...]:
        """One a source, those that share one at the first of them; empty where no template reads it."""
        found: list[dict[str, None]] = [{} for _ in layout.sources]
        for source in layout.sources:
            if source in layout.read:
                found[layout.vocabulary_of(source)] |= dict.fromkeys(self.values(source))
        return tuple({value: code for code, value in enumerate(each, layout.values_from)} for each in found)


class Shifted:
    """Codes of the token that a template's part points at, for all tokens; each is made once."""

    def __init__(self, corpus: Corpus, layout: Layout, vocabularies: Sequence[dict[str, int]], seen: Observed) -> None:
        lengths = np.diff(corpus.offsets)
        self.n_tokens = corpus.n_tokens
        self._layout, self._vocabularies, self._seen = layout, vocabularies, seen
        self._starts = np.repeat(corpus.offsets[:-1], lengths)  # of its sentence, like the others
        self._place = np.arange(self.n_tokens) - self._starts
        self._length = np.repeat(lengths, lengths)
        self._codes: dict[Source, NDArray[np.int64]] = {}
        self._made: dict[Part, NDArray[np.int64]] = {}

    def size(self, source: Source) -> int:
        """How many codes a source may have."""
        return self._layout.values_from + len(self._vocabulary(source))

    def codes(self, part: Part) -> NDArray[np.int64]:
        if part not in self._made:
            if not part.absolute:
                place = self._place + part.row
            elif part.row > 0:
                place = np.full(self.n_tokens, part.row - 1)
            else:
                place = self._length + part.row
            after = place - self._length + 1  # how far behind the sentence's last token
            codes = self._plain(part.source).take(self._starts + place, mode="clip")
            codes = np.where(place < 0, -place, codes)
            self._made[part] = np.where(after > 0, self._layout.reach + after, codes)
        return self._made[part]

    def _plain(self, source: Source) -> NDArray[np.int64]:
        if source not in self._codes:
            self._codes[source] = self._seen.codes(source, self._vocabulary(source))
        return self._codes[source]

    def _vocabulary(self, source: Source) -> dict[str, int]:
        return self._vocabularies[self._layout.vocabulary_of(source)]
