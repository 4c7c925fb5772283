"""Attributes: templates filled with what is observed around a token, as numbers (the columns of DESIGN's C).

No string is built for a token. Each column, and each macro's view of one, has a vocabulary (observed.py); a token is
its value's code, and a template's attribute is its parts' codes read as the digits of one integer. Integers are then
ranked by sorting, all tokens of a template at once. Unlike strings, (a/b, c) and (a, b/c) stay different attributes.
Templates of the same text share their attributes (templates.py).

    index, C = AttributeIndex.fit_transform(train, built_in("chunking", 2))
    C                       # (tokens, templates) int32: attribute numbers, the columns of C that are 1
    index.transform(dev)    # -1 where the attribute was not seen in training
    index.names()[0]        # 'U12:NN': numbers go by falling frequency, so that hot rows of W lie together
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, UsageError
from sparsezo.tasks.chunking.columns import NONE, Columns
from sparsezo.tasks.chunking.conll import Corpus
from sparsezo.tasks.chunking.observed import Layout, Observed, Shifted, derived_sources
from sparsezo.tasks.chunking.rows import Rows
from sparsezo.tasks.chunking.templates import Template, check_columns

_KEY_LIMIT = 2**62  # keys stay below, in int64


@dataclass(frozen=True, eq=False)
class _Keys:
    """The attributes of one group of templates: ``keys`` (sorted) and the number of each.

    ``ranks`` is empty unless the vocabularies' product passes the limit: then it holds, for each time that
    happens, the sorted keys of the parts so far, whose positions stand in for them from there on.
    """

    ranks: tuple[NDArray[np.int64], ...]
    keys: NDArray[np.int64]
    numbers: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class AttributeIndex:
    """The attributes of a training corpus; made by ``fit``, ``fit_transform`` or ``from_arrays``."""

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
        index, ids = cls.fit_transform(corpus, templates, min_count, columns)
        index._fitted.append((corpus, ids))
        return index

    @classmethod
    def fit_transform(
        cls, corpus: Corpus, templates: Sequence[Template], min_count: int = 1, columns: Columns = NONE
    ) -> tuple[AttributeIndex, NDArray[np.int32]]:
        """``fit``, and what ``transform`` gives for the same corpus, at the price of one."""
        if min_count < 1:
            raise UsageError(f"the smallest count of an attribute is {min_count}; give 1 or more")
        templates = tuple(templates)
        check_columns(templates, len(corpus.columns), corpus.path, columns.names)
        layout, seen = Layout(templates, len(corpus.columns)), Observed(corpus, columns)
        vocabularies = seen.vocabularies(layout)
        shifted = Shifted(corpus, layout, vocabularies, seen)
        ranks, keys, positions, counts = [], [], [], []
        for group in layout.groups:
            group_ranks, codes = _combine([templates[t] for t in group], shifted)
            distinct, inverse, count = np.unique(codes, return_inverse=True, return_counts=True)
            kept = count >= min_count
            position = np.where(kept, np.cumsum(kept) - 1, -1)
            ranks.append(group_ranks)
            keys.append(distinct[kept])
            counts.append(count[kept])
            positions.append(position.astype(np.int32)[inverse])
        numbers = number_by_count(counts)
        if not sum(map(len, numbers)):
            raise DataError(corpus.path, f"no attribute occurs {min_count} times; lower the smallest count")
        result = np.empty((corpus.n_tokens, len(templates)), np.int32)
        for group, position, number in zip(layout.groups, positions, numbers, strict=True):
            result[:, group] = _numbers_at(number, position, len(group))
        tables = tuple(_Keys(*table) for table in zip(ranks, keys, numbers, strict=True))
        return cls(templates, layout, vocabularies, tables, columns), result

    def transform(self, corpus: Corpus) -> NDArray[np.int32]:
        """Attribute numbers of each token, (tokens, templates); -1 where training did not have the attribute."""
        if len(corpus.columns) != self.n_columns:
            raise DataError(
                corpus.path,
                f"columns before the tag: {len(corpus.columns)}, in the training data: {self.n_columns}; "
                "give the same columns",
            )
        shifted = Shifted(corpus, self.layout, self.vocabularies, Observed(corpus, self.columns))
        result = np.full((corpus.n_tokens, len(self.templates)), -1, np.int32)
        for group, table in zip(self.layout.groups, self.tables, strict=True):
            position = _find(table.keys, _combine([self.templates[t] for t in group], shifted, table.ranks)[1])
            result[:, group] = _numbers_at(table.numbers, position, len(group))
        return result

    def rows(self, corpus: Corpus) -> Rows:
        """One a token: the attributes that training has seen."""
        ready = bool(self._fitted) and self._fitted[0][0] is corpus
        ids = self._fitted.pop()[1] if ready else self.transform(corpus)
        known = ids >= 0
        return Rows(ids[known], known.sum(axis=1), None)

    @property
    def n_columns(self) -> int:
        return len(self.vocabularies) - len(derived_sources(self.templates))

    def __len__(self) -> int:
        return sum(len(table.keys) for table in self.tables)

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

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What ``from_arrays`` needs beside the templates, as plain arrays (no pickle)."""
        arrays: dict[str, NDArray[Any]] = {}
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
        cls, templates: Sequence[Template], arrays: Mapping[str, NDArray[Any]], columns: Columns = NONE
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
        if n_ranks.min(initial=0) < 0 or len(stops) - 1 != n_ranks.sum() + len(layout.groups):
            raise ValueError("n_ranks is not as the templates want it")
        flat = iter([all_keys[a:b] for a, b in pairwise(stops)])
        tables, used = [], 0
        for _, n in zip(layout.groups, n_ranks.tolist(), strict=True):
            ranks = tuple(next(flat) for _ in range(n))
            keys = next(flat)
            tables.append(_Keys(ranks, keys, numbers[used : used + len(keys)].astype(np.int32)))
            used += len(keys)
        if used != len(numbers) or not np.array_equal(np.sort(numbers), np.arange(used)):
            raise ValueError("the attributes' numbers are not one each")
        for group, table in zip(layout.groups, tables, strict=True):
            places = [layout.vocabulary_of(part.source) for part in templates[group[0]].parts]
            sizes = [layout.values_from + len(vocabularies[place]) for place in places]
            _check_keys(str(templates[group[0]]), table, sizes)
        return cls(templates, layout, vocabularies, tuple(tables), columns)


def words_to_bytes(words: Iterable[str], what: str) -> NDArray[np.uint8]:
    """One a line. Only where one is empty does the last line end, too: otherwise it could not be told from no word."""
    words = list(words)
    text = "\n".join(words) + "\n" * ("" in words)
    if text.count("\n") != max(len(words) - 1, 0) + ("" in words):
        raise UsageError(f"{what} holds a word with a line end in it; it cannot be saved")
    return np.frombuffer(text.encode("utf-8"), np.uint8)


def words_from_bytes(data: NDArray[Any], name: str) -> list[str]:
    """What ``words_to_bytes`` was given; ValueError where a word is there twice."""
    text = data.tobytes().decode("utf-8")
    words = text.removesuffix("\n").split("\n") if text else []
    if len(set(words)) < len(words):
        raise ValueError(f"a word of {name} is there twice")
    return words


def _whole_numbers(arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[np.int64]:
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


def _check_sorted(name: str, keys: NDArray[np.int64], limit: int) -> None:
    if (keys[1:] <= keys[:-1]).any() or (keys.size and not 0 <= keys[0] <= keys[-1] < limit):
        raise ValueError(f"the attributes of {name} are out of order")


def _numbers_at(numbers: NDArray[np.int32], position: NDArray[Any], n_templates: int) -> NDArray[np.int32]:
    """(tokens, templates) numbers from positions that stand template after template; position -1 gives -1."""
    found: NDArray[np.int32] = np.append(numbers, np.int32(-1))[position]
    return found.reshape(n_templates, -1).T


def _combine(
    templates: Sequence[Template], shifted: Shifted, ranks: Sequence[NDArray[np.int64]] | None = None
) -> tuple[tuple[NDArray[np.int64], ...], NDArray[np.int64]]:
    """One key a token for each template of a group, one after the other: the parts' codes as digits.

    Makes the ranks where none are given; returns both. A combination that ``ranks`` do not have turns the key negative,
    and it stays so: -size + code < 0.
    """
    used: list[NDArray[np.int64]] = []
    keys = np.zeros(len(templates) * shifted.n_tokens, np.int64)
    radix = 1
    for parts in zip(*(template.parts for template in templates), strict=True):
        size = shifted.size(parts[0].source)
        if radix * size > _KEY_LIMIT:
            used.append(np.unique(keys) if ranks is None else ranks[len(used)])
            keys = _find(used[-1], keys)
            radix = len(used[-1])
        keys = keys * size + np.concatenate([shifted.codes(part) for part in parts])
        radix *= size
    return tuple(used), keys


def _take_apart(table: _Keys, sizes: Sequence[int]) -> list[list[int]]:
    """The codes of each part, for all keys of a table: ``_combine`` backwards. ``sizes``: how many each may have."""
    ranked_before, radix = [], 1  # for each part, whether the parts before it were ranked
    lengths = iter(map(len, table.ranks))
    for size in sizes:
        ranked_before.append(radix * size > _KEY_LIMIT)
        radix = (next(lengths) if ranked_before[-1] else radix) * size
    ranks = list(table.ranks)
    keys, codes = table.keys, []
    for size, ranked in zip(reversed(sizes), reversed(ranked_before), strict=True):
        keys, code = np.divmod(keys, size)
        codes.append(code.tolist())
        if ranked:
            keys = ranks.pop()[keys]
    return codes[::-1]


def _find(table: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each key's position in a sorted table, -1 where it is not there."""
    if not len(table):
        return np.full(len(keys), -1, np.int64)
    position = np.searchsorted(table, keys)
    position[position == len(table)] = 0  # past the end: any position will do, its key differs
    return np.where(table[position] == keys, position, -1)


def number_by_count(counts: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int32]]:
    """Numbers for all groups' attributes together, by falling count; ties by group, then key."""
    together = np.concatenate(counts)
    numbers = np.empty(len(together), np.int32)
    numbers[np.argsort(-together, kind="stable")] = np.arange(len(together), dtype=np.int32)
    return np.split(numbers, np.cumsum([len(count) for count in counts])[:-1])
