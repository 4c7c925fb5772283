"""Attributes: templates filled with what is observed around a token, as numbers (the columns of C, design 1).

No string is built for a token. Each column, and each macro's view of one, has a vocabulary (``Observed``); a token is
its value's code, and a template's attribute is its parts' codes read as the digits of one integer, which are ranked by
sorting. Unlike strings, (a/b, c) and (a, b/c) stay different attributes. An index that is there looks them up
(lookup.py).

    index, bigrams = make_indices(corpus, templates=None, features="chunking", order=1, ...)
    index.rows(corpus)                                      # the rows of C, sparse
    index.names()[0]        # 'U12:NN': numbers go by falling frequency, so that hot rows of W lie together
    settings, arrays = indices_to_arrays(index, bigrams)    # and back: indices_from_arrays(settings, arrays)

An index numbers attributes by a vocabulary that training made (``AttributeIndex``), or by hashes of their names
(``HashedTemplates``: of any corpus, nothing is unknown); of templates, or of what the data lists (CRFsuite's format).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property, partial
from itertools import pairwise, repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, UsageError
from sparsezo.tasks import hashing
from sparsezo.tasks.base import AnyArray, Arrays, Json
from sparsezo.tasks.chunking.features.columns import NONE, Columns, of_prefix
from sparsezo.tasks.chunking.features.lookup import Tables, WordCodes, look_up, with_tags
from sparsezo.tasks.chunking.features.templates import (
    CLUSTER,
    LIST,
    Part,
    Source,
    Template,
    built_in,
    check_columns,
    parse_templates,
    values_of,
)
from sparsezo.tasks.chunking.io.conll import Corpus, Listed
from sparsezo.tasks.hash_bits import check_hash_bits

Ints = NDArray[np.int64]


class Rows(NamedTuple):
    """Sparse rows, one after the other."""

    columns: NDArray[np.int32]  # one an entry
    lengths: Ints  # entries of each row
    values: NDArray[np.float32] | None  # one an entry; None: all are 1

    def row_ptr(self) -> Ints:
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    def take(self, order: Ints) -> Rows:
        """The rows in another order."""
        lengths = self.lengths[order]
        ends = np.cumsum(lengths)
        entries = np.repeat(self.row_ptr()[order] - ends + lengths, lengths) + np.arange(len(self.columns))
        return Rows(self.columns[entries], lengths, None if self.values is None else self.values[entries])


def order_1(
    tokens: Rows, bigrams: Rows | None, offsets: Ints, n_attributes: int, n_tags: int, start: int
) -> tuple[Rows, Ints]:
    """All rows, and where each sentence's begin. ``bigrams``: the bigram attributes of each token.

    Of a sentence of R tokens and K tags (chains.expand says what is made of their scores):

        row i                  token i: its attributes
        row R + a              "after tag a": a column of its own for each tag
        row R + K + a R + i    token i after tag a: a column for each bigram attribute and each tag a; only where the
                               templates have such attributes. A first token comes after ``start`` alone.
    """
    sentences = len(offsets) - 1
    if bigrams is None and tokens.values is None:
        lengths = np.insert(tokens.lengths, np.repeat(offsets[1:], n_tags), 1)
        columns = np.empty(len(tokens.columns) + sentences * n_tags, np.int32)
        with_tags(tokens.columns, tokens.row_ptr()[offsets], n_attributes, n_tags, columns)
        return Rows(columns, lengths, None), offsets + n_tags * np.arange(sentences + 1)
    of_token = np.repeat(np.arange(sentences), np.diff(offsets))
    after = np.tile(np.arange(n_attributes, n_attributes + n_tags, dtype=np.int32), sentences)
    blocks = [tokens, Rows(after, np.ones(len(after), np.int64), None)]
    belongs = [of_token, np.repeat(np.arange(sentences), n_tags)]
    if bigrams is not None:
        later = np.ones(len(bigrams.lengths), bool)
        later[offsets[:-1]] = False
        kept = np.repeat(later, bigrams.lengths)
        for a in range(n_tags):
            columns = (n_attributes + n_tags + bigrams.columns.astype(np.int64) * n_tags + a).astype(np.int32)
            if a != start:
                blocks.append(Rows(columns[kept], np.where(later, bigrams.lengths, 0), None))
            else:
                blocks.append(Rows(columns, bigrams.lengths, None))
        belongs += [of_token] * n_tags
    # stable: within a sentence they stay block by block, as they stand above
    rows = _joined(blocks).take(np.argsort(np.concatenate(belongs), kind="stable"))
    counts = np.bincount(np.concatenate(belongs), minlength=sentences)
    return rows, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _joined(blocks: list[Rows]) -> Rows:
    columns = np.concatenate([block.columns for block in blocks])
    lengths = np.concatenate([block.lengths for block in blocks])
    if all(block.values is None for block in blocks):
        return Rows(columns, lengths, None)
    ones = (np.ones(len(b.columns), np.float32) if b.values is None else b.values for b in blocks)
    return Rows(columns, lengths, np.concatenate(list(ones)))


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
                    first, last = sorted(self.vocabulary_of(each.source) for each in (parts[0], part))
                    self._shares_with[last] = first

    def vocabulary_of(self, source: Source) -> int:
        """The number of the source whose vocabulary it has: its own, unless templates of one text read several."""
        place = self.place[source]
        while (other := self._shares_with[place]) != place:
            place = other
        return place

    def pad_names(self) -> list[str]:
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
        self._distinct: dict[int | str, tuple[list[str], NDArray[np.int32]]] = {}
        self._values: dict[Source, list[str]] = {}

    def distinct(self, column: int | str) -> tuple[list[str], NDArray[np.int32]]:
        """The distinct words of a column, and each token's place among them."""
        if column not in self._distinct:
            words = self._columns[column]
            number = {word: i for i, word in enumerate(dict.fromkeys(words))}
            places = np.fromiter(map(number.__getitem__, words), np.int32, len(words))
            self._distinct[column] = list(number), places
        return self._distinct[column]

    def values(self, source: Source) -> list[str]:
        """What the macro makes of each distinct word."""
        if source not in self._values:
            words = self.distinct(source.column)[0]
            self._values[source] = list(map(values_of(source.macro, source.pattern), words))
        return self._values[source]

    def codes(self, source: Source, vocabulary: dict[str, int]) -> NDArray[np.int32]:
        """The code of each distinct word; 0 where the vocabulary does not have its value."""
        values = self.values(source)
        return np.fromiter(map(vocabulary.get, values, repeat(0)), np.int32, len(values))

    def vocabularies(self, layout: Layout) -> tuple[dict[str, int], ...]:
        """One a source, those that share one at the first of them; empty where no template reads it."""
        found: list[dict[str, None]] = [{} for _ in layout.sources]
        for source in layout.sources:
            if source in layout.read:
                found[layout.vocabulary_of(source)] |= dict.fromkeys(self.values(source))
        return tuple({value: code for code, value in enumerate(each, layout.values_from)} for each in found)


class Shifted:
    """Codes of the token that a template's part points at, for all tokens. What each word's is, is found once."""

    def __init__(self, corpus: Corpus, layout: Layout, vocabularies: Sequence[dict[str, int]], seen: Observed) -> None:
        self.n_tokens = corpus.n_tokens
        self._layout, self._vocabularies, self._seen = layout, vocabularies, seen
        self._starts, self._ends = corpus.offsets[:-1], corpus.offsets[1:]
        self._lengths = np.diff(corpus.offsets)
        self._of_words: dict[Source, NDArray[np.int32]] = {}

    def size(self, source: Source) -> int:
        return self._layout.values_from + len(self._vocabularies[self._layout.vocabulary_of(source)])

    def codes(self, part: Part) -> NDArray[np.int32]:
        if part.source not in self._of_words:
            vocabulary = self._vocabularies[self._layout.vocabulary_of(part.source)]
            self._of_words[part.source] = self._seen.codes(part.source, vocabulary)
        of_words, places = self._of_words[part.source], self._seen.distinct(part.source.column)[1]
        if not self.n_tokens:
            return places
        if part.absolute:
            return np.repeat(self._of_sentences(part.row, of_words, places), self._lengths)
        codes = np.zeros(self.n_tokens, np.int32)
        row, reach, lengths = part.row, self._layout.reach, self._lengths
        if row >= 0:
            codes[: max(self.n_tokens - row, 0)] = of_words[places[row:]]
            for k in range(1, row + 1):  # the last tokens of each sentence look beyond its end
                codes[self._ends[lengths >= k] - k] = reach + row - k + 1
        else:
            codes[-row:] = of_words[places[:row]]
            for k in range(-row):
                codes[self._starts[lengths > k] + k] = -(row + k)
        return codes

    def _of_sentences(self, row: int, of_words: NDArray[np.int32], places: NDArray[np.int32]) -> NDArray[np.int32]:
        """Of the token that stands at such a place in each sentence, counted from its start or (0 and less) its end."""
        place = np.full(len(self._lengths), row - 1) if row > 0 else self._lengths + row
        after = place - self._lengths + 1  # how far behind the sentence's last token
        codes = of_words[places.take(self._starts + place, mode="clip")]
        return np.where(after > 0, self._layout.reach + after, np.where(place < 0, -place, codes)).astype(np.int32)


_KEY_LIMIT = 2**62  # keys stay below, in int64
_BLOCK = 2**14  # tokens


@dataclass(frozen=True, eq=False)
class _Keys:
    """The attributes of one group of templates: ``keys`` (sorted) and the number of each.

    ``ranks`` is empty unless the vocabularies' product passes the limit: then it holds, for each time that
    happens, the sorted keys of the parts so far, whose positions stand in for them from there on.
    """

    ranks: tuple[Ints, ...]
    keys: Ints
    numbers: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class AttributeIndex:
    """The attributes of a training corpus; made by ``fit`` or ``from_arrays``."""

    templates: tuple[Template, ...]
    layout: Layout
    vocabularies: tuple[dict[str, int], ...]  # one a source of the layout: value to code
    tables: tuple[_Keys, ...]  # one a group of the layout
    columns: Columns = NONE  # the derived ones, which templates call by name
    _fitted: list[tuple[Corpus, NDArray[np.int32]]] = field(default_factory=list, repr=False)  # until it is asked for

    @classmethod
    def fit(
        cls, corpus: Corpus, templates: Sequence[Template], min_count: int = 1, columns: Columns = NONE
    ) -> AttributeIndex:
        """The attributes that occur at least ``min_count`` times. The first ``rows`` of this corpus are ready."""
        templates = tuple(templates)
        check_columns(templates, len(corpus.columns), corpus.path, columns.names)
        layout, seen = Layout(templates, len(corpus.columns)), Observed(corpus, columns)
        vocabularies = seen.vocabularies(layout)
        shifted = Shifted(corpus, layout, vocabularies, seen)
        ranks, keys, counts = [], [], []
        ids = np.empty((corpus.n_tokens, len(templates)), np.int32)
        for group in layout.groups:
            group_ranks, codes = _combine([templates[t] for t in group], shifted)
            kept, count, position = _counted(codes, min_count)
            ranks.append(group_ranks)
            keys.append(kept)
            counts.append(count)
            ids[:, group] = position.reshape(len(group), -1).T
        numbers = number_by_count(counts)
        if not sum(map(len, numbers)):
            raise DataError(corpus.path, f"no attribute occurs {min_count} times; lower the smallest count")
        tables = tuple(_Keys(*table) for table in zip(ranks, keys, numbers, strict=True))
        by_position = [_by_position(table) for table in tables]
        for begin in range(0, len(ids), _BLOCK):
            block = ids[begin : begin + _BLOCK]
            for group, number in zip(layout.groups, by_position, strict=True):
                block[:, group] = number[block[:, group]]
        index = cls(templates, layout, vocabularies, tables, columns)
        index._fitted.append((corpus, ids))
        return index

    def transform(self, corpus: Corpus) -> NDArray[np.int32]:
        """Attribute numbers of each token, (tokens, templates); -1 where training did not have the attribute."""
        result = np.empty((corpus.n_tokens, len(self.templates)), np.int32)
        self._lookup.into(result, corpus)
        ranked = [each for each in zip(self.layout.groups, self.tables, strict=True) if each[1].ranks]
        if ranked:
            shifted = Shifted(corpus, self.layout, self.vocabularies, Observed(corpus, self.columns))
            for group, table in ranked:
                keys = _combine([self.templates[t] for t in group], shifted, table.ranks)[1]
                result[:, group] = _by_position(table)[_find(table.keys, keys)].reshape(len(group), -1).T
        return result

    @cached_property
    def _lookup(self) -> _Lookup:
        return _Lookup(self)

    def __getstate__(self) -> Json:
        return {name: each for name, each in self.__dict__.items() if name != "_lookup"}

    def rows(self, corpus: Corpus) -> Rows:
        """One a token: the attributes that training has seen."""
        ready = bool(self._fitted) and self._fitted[0][0] is corpus
        ids = self._fitted.pop()[1] if ready else self.transform(corpus)
        if ids.min(initial=0) >= 0:
            return Rows(ids.reshape(-1), np.full(len(ids), ids.shape[1], np.int64), None)
        known = ids >= 0
        return Rows(ids[known], known.sum(axis=1), None)

    @property
    def n_columns(self) -> int:
        return len(self.vocabularies) - len(derived_sources(self.templates))

    @cached_property
    def _size(self) -> int:
        return sum(len(table.keys) for table in self.tables)

    def __len__(self) -> int:
        return self._size

    def names(self) -> list[str]:
        """Every attribute spelt out as CRF++ does, in the order of their numbers: 'U05:the/dog'."""
        names = [""] * len(self)
        pads = self.layout.pad_names()
        strings = [[*pads, *vocabulary] for vocabulary in self.vocabularies]
        for group, table in zip(self.layout.groups, self.tables, strict=True):
            template = self.templates[group[0]]
            own = [strings[self.layout.vocabulary_of(part.source)] for part in template.parts]
            codes = _take_apart(table, [len(each) for each in own])
            for i, number in enumerate(table.numbers.tolist()):
                names[number] = template.fill([each[code[i]] for each, code in zip(own, codes, strict=True)])
        return names

    def to_arrays(self) -> Arrays:
        """What ``from_arrays`` needs beside the templates, as plain arrays (no pickle)."""
        arrays: Arrays = {}
        for j, vocabulary in enumerate(self.vocabularies):
            arrays[f"vocabulary_{j}"] = words_to_bytes(vocabulary, f"column {self.layout.sources[j].column}")
        flat = [keys for table in self.tables for keys in (*table.ranks, table.keys)]
        arrays["keys"] = np.concatenate(flat)
        arrays["key_stops"] = np.cumsum([len(keys) for keys in flat], dtype=np.int64)
        arrays["n_ranks"] = np.array([len(table.ranks) for table in self.tables], np.int64)
        arrays["numbers"] = np.concatenate([table.numbers for table in self.tables])
        return arrays

    @classmethod
    def from_arrays(
        cls, templates: Sequence[Template], arrays: Mapping[str, AnyArray], columns: Columns = NONE
    ) -> AttributeIndex:
        """The index that ``to_arrays`` was called on; ``templates`` must be the ones it was fitted with.

        ValueError where these arrays are no such thing: whoever looks an attribute up believes its number.
        """
        templates = tuple(templates)
        all_keys, key_stops, n_ranks, numbers = (
            _whole_numbers(arrays, name) for name in ("keys", "key_stops", "n_ranks", "numbers")
        )
        saved: list[list[str]] = []
        while (name := f"vocabulary_{len(saved)}") in arrays:
            saved.append(words_from_bytes(arrays[name], name))
        n_columns = len(saved) - len(derived_sources(templates))
        check_columns(templates, n_columns, "the model's data", columns.names)
        layout = Layout(templates, n_columns)
        vocabularies = tuple({word: code for code, word in enumerate(words, layout.values_from)} for words in saved)
        stops = [0, *key_stops.tolist()]
        if np.diff(stops).min(initial=0) < 0 or stops[-1] != len(all_keys):
            raise ValueError("key_stops does not fit the keys")
        if n_ranks.min(initial=0) < 0 or len(stops) - 1 != sum(n_ranks.tolist()) + len(layout.groups):
            raise ValueError("n_ranks is not as the templates want it")
        flat = iter([all_keys[a:b] for a, b in pairwise(stops)])
        tables, used = [], 0
        for group, n in zip(layout.groups, n_ranks.tolist(), strict=True):
            ranks = tuple(next(flat) for _ in range(n))
            keys = next(flat)
            tables.append(_Keys(ranks, keys, numbers[used : used + len(keys)].astype(np.int32)))
            used += len(keys)
            places = [layout.vocabulary_of(part.source) for part in templates[group[0]].parts]
            sizes = [layout.values_from + len(vocabularies[place]) for place in places]
            _check_keys(str(templates[group[0]]), tables[-1], sizes)
        if used != len(numbers) or not np.array_equal(np.sort(numbers), np.arange(used)):
            raise ValueError("the attributes' numbers are not one each")
        return cls(templates, layout, vocabularies, tuple(tables), columns)


class _Lookup:
    """What ``AttributeIndex.transform`` looks at, but for groups with ranks: there each attribute is none."""

    def __init__(self, index: AttributeIndex) -> None:
        layout = index.layout
        self._columns, self._reach = index.columns, layout.reach
        by_column: dict[int | str, list[Source]] = {}
        for source in layout.sources:
            if source in layout.read:  # the words tell the clusters
                by_column.setdefault(0 if source.column == CLUSTER else source.column, []).append(source)
        self._words: dict[int | str, WordCodes] = {}
        place: dict[Source, int] = {}
        for column, sources in by_column.items():
            vocabularies = [index.vocabularies[layout.vocabulary_of(source)] for source in sources]
            self._words[column] = WordCodes(len(sources), partial(self._coded, sources, vocabularies))
            place |= {source: len(place) + k for k, source in enumerate(sources)}
        parts: list[tuple[int, int, int, int]] = []
        stops, of_group, tables = [], np.zeros(len(index.templates), np.int64), []
        for g, (group, table) in enumerate(zip(layout.groups, index.tables, strict=True)):
            of_group[group] = g
            tables.append(_looked_up(index, group, table))
        for template in index.templates:
            for part in template.parts:
                size = layout.values_from + len(index.vocabularies[layout.vocabulary_of(part.source)])
                parts.append((place[part.source], part.row, part.absolute, size))
            stops.append(len(parts))
        self._parts, self._stops = np.array(parts, np.int64).reshape(-1, 4), np.array(stops, np.int64)
        self._tables = Tables(tables)
        self._start, self._mask = self._tables.start[of_group], self._tables.mask[of_group]

    def _coded(
        self, sources: Sequence[Source], vocabularies: Sequence[dict[str, int]], words: list[str]
    ) -> NDArray[np.int32]:
        codes = np.empty((len(words), len(sources)), np.int32)
        paths: list[str] | None = None
        for k, (source, vocabulary) in enumerate(zip(sources, vocabularies, strict=True)):
            seen = words
            if source.column == CLUSTER and self._columns.clusters is not None:
                seen = paths = self._columns.clusters.paths_of(words) if paths is None else paths
            values = map(values_of(source.macro, source.pattern), seen)
            codes[:, k] = np.fromiter(map(vocabulary.get, values, repeat(0)), np.int32, len(words))
        return codes

    def into(self, result: NDArray[np.int32], corpus: Corpus) -> None:
        """tokens x templates."""
        codes = [np.zeros((corpus.n_tokens, 0), np.int32)]
        for column, words in self._words.items():
            if isinstance(column, int):
                codes.append(words.of(corpus.columns[column]))
            elif column == LIST and self._columns.gazetteer is not None:
                codes.append(words.of(self._columns.gazetteer.column(corpus)))
        where = (self._parts, self._reach, self._start, self._mask, self._tables.keys, self._tables.numbers)
        look_up(np.concatenate(codes, axis=1), corpus.offsets, self._stops, *where, result)


def _looked_up(index: AttributeIndex, group: list[int], table: _Keys) -> tuple[Ints, NDArray[np.int32], int | None]:
    """A group's keys, their numbers, and how many keys there can be where these are few."""
    if table.ranks:
        return table.keys[:0], table.numbers[:0], None
    radix = 1
    for part in index.templates[group[0]].parts:
        radix *= index.layout.values_from + len(index.vocabularies[index.layout.vocabulary_of(part.source)])
    few = len(index.templates[group[0]].parts) < 2 or radix < 4 * len(table.keys)
    return table.keys, table.numbers, radix if few else None


def _by_position(table: _Keys) -> NDArray[np.int32]:
    """The numbers of a group's table by position; at -1 stands -1."""
    return np.append(table.numbers, np.int32(-1))


def _counted(codes: Ints, min_count: int) -> tuple[Ints, Ints, NDArray[np.int32]]:
    """(the distinct codes that occur ``min_count`` times, ascending; how often; the position of each code among them,
    or -1)."""
    most = int(codes.max(initial=-1)) + 1
    if most <= len(codes) // 2:  # few enough to count each, which need not sort
        count = np.bincount(codes, minlength=most)
        kept = np.flatnonzero(count >= max(min_count, 1))
        place = np.full(most, -1, np.int32)
        place[kept] = np.arange(len(kept), dtype=np.int32)
        return kept, count[kept], place[codes]
    order = codes.argsort()
    ascending = codes[order]
    first = np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1])[: len(codes)])
    distinct, count = ascending[first], np.diff(np.append(first, len(codes)))
    del ascending
    often = count >= min_count
    place = np.where(often, np.cumsum(often) - 1, -1).astype(np.int32)
    position = np.empty(len(codes), np.int32)
    position[order] = np.repeat(place, count)
    return distinct[often], count[often], position


def words_to_bytes(words: Iterable[str], what: str) -> NDArray[np.uint8]:
    """One a line. Only where one is empty does the last line end, too: otherwise it could not be told from no word."""
    words = list(words)
    text = "\n".join(words) + "\n" * ("" in words)
    if text.count("\n") != max(len(words) - 1, 0) + ("" in words):
        raise UsageError(f"{what} holds a word with a line end in it; it cannot be saved")
    return np.frombuffer(text.encode("utf-8"), np.uint8)


def words_from_bytes(data: AnyArray, name: str) -> list[str]:
    """What ``words_to_bytes`` was given; ValueError where a word is there twice."""
    text = data.tobytes().decode("utf-8")
    words = text.removesuffix("\n").split("\n") if text else []
    if len(set(words)) < len(words):
        raise ValueError(f"a word of {name} is there twice")
    return words


def _whole_numbers(arrays: Mapping[str, AnyArray], name: str) -> Ints:
    if arrays[name].dtype.kind not in "iu" or arrays[name].ndim != 1:
        raise ValueError(f"{name} is no list of whole numbers")
    return arrays[name].astype(np.int64)


def _check_keys(name: str, table: _Keys, sizes: Sequence[int]) -> None:
    """Whether ``_combine`` and ``_take_apart`` can read them: sorted, and as many ranks as the sizes ask for."""
    ranks, radix = list(table.ranks), 1
    for size in sizes:
        if radix * size > _KEY_LIMIT:
            if not ranks:
                raise ValueError(f"{name} has too few ranks")
            _check_sorted(name, ranks[0], radix)
            radix = len(ranks.pop(0))
        radix *= size
    if ranks:
        raise ValueError(f"{name} has too many ranks")
    _check_sorted(name, table.keys, radix)


def _check_sorted(name: str, keys: Ints, limit: int) -> None:
    if (keys[1:] <= keys[:-1]).any() or (keys.size and not 0 <= keys[0] <= keys[-1] < limit):
        raise ValueError(f"the attributes of {name} are out of order")


def _combine(
    templates: Sequence[Template], shifted: Shifted, ranks: Sequence[Ints] | None = None
) -> tuple[tuple[Ints, ...], Ints]:
    """One key a token for each template of a group, one after the other: the parts' codes as digits.

    Makes the ranks where none are given; returns both. A combination that ``ranks`` do not have turns the key negative,
    and it stays so: -size + code < 0.
    """
    used: list[Ints] = []
    keys = np.zeros(len(templates) * shifted.n_tokens, np.int64)
    radix = 1
    for parts in zip(*(template.parts for template in templates), strict=True):
        size = shifted.size(parts[0].source)
        if radix * size > _KEY_LIMIT:
            used.append(np.unique(keys) if ranks is None else ranks[len(used)])
            keys = _find(used[-1], keys)
            radix = len(used[-1])
        keys *= size
        for k, part in enumerate(parts):
            keys[k * shifted.n_tokens : (k + 1) * shifted.n_tokens] += shifted.codes(part)
        radix *= size
    return tuple(used), keys


def _take_apart(table: _Keys, sizes: Sequence[int]) -> list[list[int]]:
    """The codes of each part, for all keys of a table: ``_combine`` backwards. ``sizes``: how many each may have."""
    before: list[Ints | None] = []  # for each part, the ranks of the parts before it, where these were ranked
    ranks, radix = iter(table.ranks), 1
    for size in sizes:
        before.append(next(ranks) if radix * size > _KEY_LIMIT else None)
        radix = (radix if before[-1] is None else len(before[-1])) * size
    keys, codes = table.keys, []
    for size, ranked in zip(reversed(sizes), reversed(before), strict=True):
        keys, code = np.divmod(keys, size)
        codes.append(code.tolist())
        keys = keys if ranked is None else ranked[keys]
    return codes[::-1]


def _find(table: Ints, keys: Ints) -> Ints:
    """Each key's position in a sorted table, -1 where it is not there."""
    if not len(table):
        return np.full(len(keys), -1, np.int64)
    position = np.searchsorted(table, keys)
    position[position == len(table)] = 0  # past the end: any position will do, its key differs
    return np.where(table[position] == keys, position, -1)


def number_by_count(counts: Sequence[Ints]) -> list[NDArray[np.int32]]:
    """Numbers for all groups' attributes together, by falling count; ties by group, then key."""
    together = np.concatenate(counts)
    numbers = np.empty(len(together), np.int32)
    numbers[np.argsort(-together, kind="stable")] = np.arange(len(together), dtype=np.int32)
    return np.split(numbers, np.cumsum([len(count) for count in counts])[:-1])


@dataclass(frozen=True, eq=False)
class ListedIndex:
    """The attributes that training data lists, numbered by falling frequency."""

    numbers: dict[str, int]
    valued: bool  # whether values other than 1 are to be expected

    @classmethod
    def fit(cls, corpus: Corpus, min_count: int = 1) -> ListedIndex:
        """The attributes that occur at least ``min_count`` times."""
        listed = _listed(corpus)
        counts = np.bincount(listed.ids, minlength=len(listed.names)).astype(np.int64)
        order = np.argsort(number_by_count([counts])[0]) if len(counts) else np.zeros(0, np.int64)
        names = [listed.names[i] for i in order.tolist() if counts[i] >= min_count]
        if not names:
            raise DataError(corpus.path, f"no attribute occurs {min_count} times; lower the smallest count")
        return cls({name: i for i, name in enumerate(names)}, bool((listed.values != 1).any()))

    n_columns = 0

    def rows(self, corpus: Corpus) -> Rows:
        """One a token: the attributes that training has seen."""
        names = _listed(corpus).names
        numbers = np.fromiter((self.numbers.get(name, -1) for name in names), np.int32, len(names))
        return listed_rows(corpus, numbers, valued=self.valued)

    def __len__(self) -> int:
        return len(self.numbers)

    def names(self) -> list[str]:
        return list(self.numbers)

    def to_arrays(self) -> Arrays:
        return {"attributes": words_to_bytes(self.numbers, "an attribute"), "valued": np.array([self.valued])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray]) -> ListedIndex:
        names = words_from_bytes(arrays["attributes"], "attributes")
        return cls({name: i for i, name in enumerate(names)}, bool(arrays["valued"][0]))


def listed_rows(corpus: Corpus, columns: NDArray[np.int32], *, valued: bool) -> Rows:
    """One a token; ``columns``: of each name, -1 where it has none. ``valued``: as in ListedIndex."""
    listed = _listed(corpus)
    ids = columns[listed.ids] if len(columns) else listed.ids
    known = ids >= 0
    if not known.any() and corpus.n_tokens:
        raise DataError(corpus.path, "lists no attribute that training has seen; is it CRFsuite's format?")
    before = np.concatenate([[0], np.cumsum(known)])
    values = listed.values[known]
    lengths = np.diff(before[listed.starts])
    return Rows(ids[known], lengths, values if valued or (values != 1).any() else None)


def _listed(corpus: Corpus) -> Listed:
    if corpus.listed is None:
        raise UsageError(f"{corpus.path}: lists no attributes, and the model has no templates; give CRFsuite's format")
    return corpus.listed


_OUTSIDE_NAME = "\n"  # before the name of a place outside the sentence: no word has a line end in it


class _Hashed:
    """An index of 2^bits rows, which keeps nothing of a corpus."""

    bits: int

    def __len__(self) -> int:
        return 1 << self.bits

    def names(self) -> list[str]:
        raise UsageError("with `hash_bits` features have no names")

    def to_arrays(self) -> Arrays:
        return {}


@dataclass(frozen=True, eq=False)
class HashedTemplates(_Hashed):
    """Of what templates see."""

    templates: tuple[Template, ...]
    n_columns: int
    bits: int
    columns: Columns = NONE  # the derived ones, which templates call by name
    data: InitVar[str] = "the model's data"  # for messages

    def __post_init__(self, data: str) -> None:
        check_columns(self.templates, self.n_columns, data, self.columns.names)

    def rows(self, corpus: Corpus) -> Rows:
        """One a token, with an entry for each template."""
        layout, seen = Layout(self.templates, self.n_columns), Observed(corpus, self.columns)
        vocabularies = seen.vocabularies(layout)
        pads = hashing.hashes_of([_OUTSIDE_NAME + name for name in layout.pad_names()])
        values = [np.concatenate([pads, hashing.hashes_of(vocabulary)]) for vocabulary in vocabularies]
        shifted = Shifted(corpus, layout, vocabularies, seen)
        columns = np.empty((corpus.n_tokens, len(self.templates)), np.int32)
        texts = hashing.hashes_of([template.text for template in self.templates])
        for t, template in enumerate(self.templates):
            hashes = np.full(corpus.n_tokens, texts[t])
            for part in template.parts:
                hashing.fold(hashes, values[layout.vocabulary_of(part.source)], shifted.codes(part))
            columns[:, t] = hashing.rows(hashes, self.bits)
        return Rows(columns.reshape(-1), np.full(corpus.n_tokens, len(self.templates), np.int64), None)


@dataclass(frozen=True, eq=False)
class HashedListed(_Hashed):
    """Of what the data lists (CRFsuite's format)."""

    bits: int

    n_columns = 0

    def rows(self, corpus: Corpus) -> Rows:
        return listed_rows(corpus, hashing.rows_of(_listed(corpus).names, self.bits), valued=False)


OfTemplates = AttributeIndex | HashedTemplates
Index = OfTemplates | ListedIndex | HashedListed

_OF_MODEL = "the model's templates"
_BIGRAMS = "bigrams_"  # what the arrays of their attributes are called in a saved task
_COLUMNS = "columns_"  # and those of derived columns


def make_indices(
    corpus: Corpus,
    templates: Sequence[Template] | None,
    features: str,
    order: int,
    min_count: int,
    hash_bits: int | None,
    n_tags: int,
    columns: Columns = NONE,
) -> tuple[Index, OfTemplates | None]:
    """In order 2 every label is a tag bigram, so that all attributes go with labels. ``columns``: the derived ones."""
    if corpus.listed is not None:
        return (ListedIndex.fit(corpus, min_count) if hash_bits is None else HashedListed(hash_bits)), None
    if templates is None:
        templates = built_in(features, len(corpus.columns), columns.names, order)
    with_bigrams = [each for each in templates if order == 1 and each.kind in "b*" and each.parts]
    templates = [each for each in templates if order == 2 or each.kind in "u*"]
    if not templates:
        raise DataError(with_bigrams[0].where, "only tag bigrams have attributes; add a template such as U00:%x[0,0]")
    if hash_bits is not None:
        # a bigram attribute has a row for each tag before it: all of them together take as many rows as the others
        fewer = max(hash_bits - (n_tags - 1).bit_length(), 0)
        how = (columns, corpus.path)
        hashed = HashedTemplates(tuple(templates), len(corpus.columns), hash_bits, *how)
        return hashed, HashedTemplates(tuple(with_bigrams), len(corpus.columns), fewer, *how) if with_bigrams else None
    bigrams = AttributeIndex.fit(corpus, with_bigrams, min_count, columns) if with_bigrams else None
    return AttributeIndex.fit(corpus, templates, min_count, columns), bigrams


def indices_to_arrays(index: Index, bigrams: OfTemplates | None) -> tuple[Json, Arrays]:
    """(settings as JSON, arrays)."""
    settings: Json = {}
    if isinstance(index, _Hashed):
        settings["hash_bits"] = index.bits
    arrays = index.to_arrays()
    if isinstance(index, AttributeIndex | HashedTemplates):
        settings["templates"] = [str(template) for template in index.templates]
        arrays |= {_COLUMNS + name: values for name, values in index.columns.to_arrays().items()}
    if bigrams is not None:
        settings["bigram_templates"] = [str(template) for template in bigrams.templates]
        if isinstance(bigrams, HashedTemplates):
            settings["bigram_hash_bits"] = bigrams.bits
        arrays |= {_BIGRAMS + name: values for name, values in bigrams.to_arrays().items()}
    return settings, arrays


def indices_from_arrays(settings: Json, arrays: Mapping[str, AnyArray]) -> tuple[Index, OfTemplates | None]:
    """ValueError where these are not what ``indices_to_arrays`` can have given."""
    columns = Columns.from_arrays(of_prefix(_COLUMNS, arrays))
    templates, with_tags = (
        parse_templates(settings[name], _OF_MODEL) if name in settings else None
        for name in ("templates", "bigram_templates")
    )
    if "hash_bits" not in settings:
        bigrams = AttributeIndex.from_arrays(with_tags, of_prefix(_BIGRAMS, arrays), columns) if with_tags else None
        if templates is None:
            return ListedIndex.from_arrays(arrays), bigrams
        return AttributeIndex.from_arrays(templates, arrays, columns), bigrams
    bits, n_columns = settings["hash_bits"], settings["n_columns"]
    check_hash_bits(bits)
    if templates is None:
        return HashedListed(bits), None
    if not isinstance(n_columns, int) or n_columns < 1:
        raise ValueError(f"{n_columns} columns")
    fewer = settings["bigram_hash_bits"] if with_tags else 0
    if not isinstance(fewer, int) or not 0 <= fewer <= bits:
        raise ValueError(f"{fewer} bits of bigram attributes")
    hashed = HashedTemplates(templates, n_columns, bits, columns)
    return hashed, HashedTemplates(with_tags, n_columns, fewer, columns) if with_tags else None
