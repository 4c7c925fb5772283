"""Attributes: templates filled with what is observed around a token, as numbers (the columns of DESIGN's C).

No string is built for a token. Each column has a vocabulary, a token is its word's code, and a template's
attribute is its parts' codes read as the digits of one integer. Integers are then ranked by sorting, all
tokens of a template at once. Unlike strings, (a/b, c) and (a, b/c) stay different attributes.

    index, C = AttributeIndex.fit_transform(train, default_templates())
    C                       # (tokens, templates) int32: attribute numbers, the columns of C that are 1
    index.transform(dev)    # -1 where the attribute was not seen in training
    index.names()[0]        # 'U12:NN': numbers go by falling frequency, so that hot rows of W lie together
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo import bounds
from sparsezo.errors import DataError, UsageError
from sparsezo.tasks.chunking.conll import Corpus
from sparsezo.tasks.chunking.templates import Template, check_columns

_KEY_LIMIT = 2**62  # keys stay below, in int64


@dataclass(frozen=True, eq=False)
class _Keys:
    """One template's attributes: ``keys`` (sorted) and the number of each.

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
    vocabularies: tuple[dict[str, int], ...]  # one a column: string to code; empty where no template reads it
    tables: tuple[_Keys, ...]  # one a template

    @classmethod
    def fit(cls, corpus: Corpus, templates: Sequence[Template], min_count: int = 1) -> AttributeIndex:
        """The attributes that occur at least ``min_count`` times."""
        return cls.fit_transform(corpus, templates, min_count)[0]

    @classmethod
    def fit_transform(
        cls, corpus: Corpus, templates: Sequence[Template], min_count: int = 1
    ) -> tuple[AttributeIndex, NDArray[np.int32]]:
        """``fit``, and what ``transform`` gives for the same corpus, at the price of one."""
        if min_count < 1:
            raise UsageError(f"the smallest count of an attribute is {min_count}; give 1 or more")
        templates = tuple(templates)
        check_columns(templates, len(corpus.columns), corpus.path)
        words_from = _words_from(templates)
        read = {column for template in templates for _, column in template.parts}
        vocabularies = tuple(
            {word: code for code, word in enumerate(dict.fromkeys(words), start=words_from)} if j in read else {}
            for j, words in enumerate(corpus.columns)
        )
        shifted = _Shifted(corpus, vocabularies, words_from)
        ranks, keys, positions, counts = [], [], [], []
        for template in templates:
            template_ranks, codes = _combine(template, shifted)
            distinct, inverse, count = np.unique(codes, return_inverse=True, return_counts=True)
            kept = count >= min_count
            position = np.where(kept, np.cumsum(kept) - 1, -1)
            ranks.append(template_ranks)
            keys.append(distinct[kept])
            counts.append(count[kept])
            positions.append(position.astype(np.int32)[inverse])
        numbers = _number(counts)
        if not sum(map(len, numbers)):
            raise DataError(corpus.path, f"no attribute occurs {min_count} times; lower the smallest count")
        result = np.empty((corpus.n_tokens, len(templates)), np.int32)
        for t, position in enumerate(positions):
            # position -1 looks up the -1 put at the end
            result[:, t] = np.append(numbers[t], np.int32(-1))[position]
        tables = tuple(_Keys(*table) for table in zip(ranks, keys, numbers, strict=True))
        return cls(templates, vocabularies, tables), result

    def transform(self, corpus: Corpus) -> NDArray[np.int32]:
        """Attribute numbers of each token, (tokens, templates); -1 where training did not have the attribute."""
        if len(corpus.columns) != len(self.vocabularies):
            raise DataError(
                corpus.path,
                f"columns before the tag: {len(corpus.columns)}, in the training data: {len(self.vocabularies)}; "
                "give the same columns",
            )
        shifted = _Shifted(corpus, self.vocabularies, _words_from(self.templates))
        result = np.full((corpus.n_tokens, len(self.templates)), -1, np.int32)
        for t, (template, table) in enumerate(zip(self.templates, self.tables, strict=True)):
            position = _find(table.keys, _combine(template, shifted, table.ranks)[1])
            result[:, t] = np.append(table.numbers, np.int32(-1))[position]
        return result

    def __len__(self) -> int:
        return sum(len(table.keys) for table in self.tables)

    def names(self) -> list[str]:
        """Every attribute spelt out as CRF++ does, in the order of their numbers: 'U05:the/dog'."""
        names = [""] * len(self)
        words_from = _words_from(self.templates)
        pads = _pad_names(words_from)
        strings = [[*pads, *vocabulary] for vocabulary in self.vocabularies]
        sizes = [words_from + len(vocabulary) for vocabulary in self.vocabularies]
        for template, table in zip(self.templates, self.tables, strict=True):
            codes = _take_apart(template, table, sizes)
            columns = [column for _, column in template.parts]
            for i, number in enumerate(table.numbers.tolist()):
                names[number] = template.fill([strings[c][code[i]] for c, code in zip(columns, codes, strict=True)])
        return names

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What ``from_arrays`` needs beside the templates, as plain arrays (no pickle)."""
        arrays: dict[str, NDArray[Any]] = {}
        for j, vocabulary in enumerate(self.vocabularies):
            text = "\n".join(vocabulary)
            if text.count("\n") != max(len(vocabulary) - 1, 0) or "" in vocabulary:
                raise UsageError(f"column {j} holds an empty word or a line end inside one; it cannot be saved")
            arrays[f"vocabulary_{j}"] = np.frombuffer(text.encode("utf-8"), np.uint8)
        flat = [keys for table in self.tables for keys in (*table.ranks, table.keys)]
        arrays["keys"] = np.concatenate(flat)
        arrays["key_stops"] = np.cumsum([len(keys) for keys in flat], dtype=np.int64)
        arrays["n_ranks"] = np.array([len(table.ranks) for table in self.tables], np.int64)
        arrays["numbers"] = np.concatenate([table.numbers for table in self.tables])
        return arrays

    @classmethod
    def from_arrays(cls, templates: Sequence[Template], arrays: Mapping[str, NDArray[Any]]) -> AttributeIndex:
        """The index that ``to_arrays`` was called on; ``templates`` must be the ones it was fitted with.

        ValueError where these arrays are no such thing: whoever looks an attribute up believes its number.
        """
        templates = tuple(templates)
        for name in ("keys", "key_stops", "n_ranks", "numbers"):
            bounds.array(name, arrays[name], "iu", (None,))
        words_from = _words_from(templates)
        vocabularies: list[dict[str, int]] = []
        while (name := f"vocabulary_{len(vocabularies)}") in arrays:
            text = arrays[name].tobytes().decode("utf-8")
            words = text.split("\n") if text else []
            vocabularies.append({word: code for code, word in enumerate(words, start=words_from)})
            if len(vocabularies[-1]) != len(words):
                raise ValueError(f"a word of {name} is there twice")
        check_columns(templates, len(vocabularies), "the model's templates")
        stops = [0, *arrays["key_stops"].tolist()]
        bounds.offsets("key_stops", np.array(stops), end=arrays["keys"].size)
        if arrays["n_ranks"].min(initial=0) < 0 or len(stops) - 1 != arrays["n_ranks"].sum() + len(templates):
            raise ValueError("n_ranks is not as the templates want it")
        flat = iter([np.asarray(arrays["keys"][a:b], np.int64) for a, b in pairwise(stops)])
        numbers = np.asarray(arrays["numbers"], np.int32)
        tables, used = [], 0
        for _, n_ranks in zip(templates, arrays["n_ranks"].tolist(), strict=True):
            ranks = tuple(next(flat) for _ in range(n_ranks))
            keys = next(flat)
            tables.append(_Keys(ranks, keys, numbers[used : used + len(keys)]))
            used += len(keys)
        if used != len(numbers) or not np.array_equal(np.sort(numbers), np.arange(used)):
            raise ValueError("the attributes' numbers are not one each")
        sizes = [words_from + len(vocabulary) for vocabulary in vocabularies]
        for template, table in zip(templates, tables, strict=True):
            _check_keys(template, table, sizes)
        return cls(templates, tuple(vocabularies), tuple(tables))


# Codes: 0 is an unknown word, then the pads before a sentence (nearest first), the pads after it, the words.


def _words_from(templates: Sequence[Template]) -> int:
    """The first word's code: after 0 and as many pads on either side as the templates reach."""
    return 1 + 2 * max((abs(row) for template in templates for row, _ in template.parts), default=0)


def _pad_names(words_from: int) -> list[str]:
    """CRF++'s names for the codes below the words'."""
    reach = words_from // 2
    return ["", *(f"_B-{i}" for i in range(1, reach + 1)), *(f"_B+{i}" for i in range(1, reach + 1))]


class _Shifted:
    """Codes of the token ``row`` places further on, for all tokens; each (row, column) is made once."""

    def __init__(self, corpus: Corpus, vocabularies: Sequence[dict[str, int]], words_from: int) -> None:
        lengths = np.diff(corpus.offsets)
        self.n_tokens = corpus.n_tokens
        self.sizes = [words_from + len(vocabulary) for vocabulary in vocabularies]
        self._reach = words_from // 2
        self._place = np.arange(self.n_tokens) - np.repeat(corpus.offsets[:-1], lengths)  # in its sentence
        self._length = np.repeat(lengths, lengths)  # of its sentence
        self._codes = [
            np.fromiter(map(vocabulary.get, words, repeat(0)), np.int64, self.n_tokens)
            for words, vocabulary in zip(corpus.columns, vocabularies, strict=True)
        ]
        self._made: dict[tuple[int, int], NDArray[np.int64]] = {}

    def codes(self, row: int, column: int) -> NDArray[np.int64]:
        if (row, column) not in self._made:
            place = self._place + row
            after = place - self._length + 1  # how far behind the sentence's last token
            codes = self._codes[column].take(np.arange(row, self.n_tokens + row), mode="clip")
            if row < 0:
                codes = np.where(place < 0, -place, codes)
            elif row > 0:
                codes = np.where(after > 0, self._reach + after, codes)
            self._made[row, column] = codes
        return self._made[row, column]


def _combine(
    template: Template, shifted: _Shifted, ranks: Sequence[NDArray[np.int64]] | None = None
) -> tuple[tuple[NDArray[np.int64], ...], NDArray[np.int64]]:
    """One key a token: the parts' codes as digits. Makes the ranks where none are given; returns both.

    A combination that ``ranks`` do not have turns the key negative, and it stays so: -size + code < 0.
    """
    used: list[NDArray[np.int64]] = []
    keys = np.zeros(shifted.n_tokens, np.int64)
    radix = 1
    for row, column in template.parts:
        size = shifted.sizes[column]
        if radix * size > _KEY_LIMIT:
            used.append(np.unique(keys) if ranks is None else ranks[len(used)])
            keys = _find(used[-1], keys)
            radix = len(used[-1])
        keys = keys * size + shifted.codes(row, column)
        radix *= size
    return tuple(used), keys


def _check_keys(template: Template, table: _Keys, sizes: Sequence[int]) -> None:
    """Whether ``_combine`` and ``_take_apart`` can read them: sorted, and as many ranks as the sizes ask for."""
    ranks, radix = list(table.ranks), 1
    for _, column in template.parts:
        if radix * sizes[column] > _KEY_LIMIT:
            if not ranks:
                raise ValueError(f"{template} has too few ranks")
            _check_sorted(template, ranks[0], radix)
            radix = len(ranks.pop(0))
        radix *= sizes[column]
    if ranks:
        raise ValueError(f"{template} has too many ranks")
    _check_sorted(template, table.keys, radix)


def _check_sorted(template: Template, keys: NDArray[np.int64], limit: int) -> None:
    if (keys[1:] <= keys[:-1]).any() or (keys.size and not 0 <= keys[0] <= keys[-1] < limit):
        raise ValueError(f"the attributes of {template} are out of order")


def _take_apart(template: Template, table: _Keys, sizes: Sequence[int]) -> list[list[int]]:
    """The codes of each part, for all keys of a table: ``_combine`` backwards."""
    ranked_before, radix = [], 1  # for each part, whether the parts before it were ranked
    lengths = iter(map(len, table.ranks))
    for _, column in template.parts:
        ranked_before.append(radix * sizes[column] > _KEY_LIMIT)
        radix = (next(lengths) if ranked_before[-1] else radix) * sizes[column]
    ranks = list(table.ranks)
    keys, codes = table.keys, []
    for (_, column), ranked in zip(reversed(template.parts), reversed(ranked_before), strict=True):
        keys, code = np.divmod(keys, sizes[column])
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


def _number(counts: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int32]]:
    """Numbers for all templates' attributes together, by falling count; ties by template, then key."""
    together = np.concatenate(counts)
    numbers = np.empty(len(together), np.int32)
    numbers[np.argsort(-together, kind="stable")] = np.arange(len(together), dtype=np.int32)
    return np.split(numbers, np.cumsum([len(count) for count in counts])[:-1])
