"""Attributes whose rows are hashes of their names (``hash_bits``), in the place of an index that training makes.

    index = HashedTemplates(built_in("chunking", 2), n_columns=2, bits=20)
    index.rows(corpus)                  # of any corpus: nothing is known of training, and nothing is unknown

An attribute's name is its template's text, its macros as %, and then what each of them sees, part by part
(``tasks.hashing``). As without hashing, templates of one text share their attributes, and (a/b, c) is not (a, b/c).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.tasks import hashing
from sparsezo.tasks.chunking.columns import NONE, Columns
from sparsezo.tasks.chunking.conll import Corpus
from sparsezo.tasks.chunking.crfsuite import listed_rows
from sparsezo.tasks.chunking.observed import Layout, Observed, Shifted
from sparsezo.tasks.chunking.rows import Rows
from sparsezo.tasks.chunking.templates import Template, check_columns

_OUTSIDE = "\n"  # before the name of a place outside the sentence: no word has a line end in it


@dataclass(frozen=True, eq=False)
class HashedTemplates:
    """Of what templates see."""

    templates: tuple[Template, ...]
    n_columns: int
    bits: int
    columns: Columns = NONE  # the derived ones, which templates call by name

    @classmethod
    def of(cls, corpus: Corpus, templates: Sequence[Template], bits: int, columns: Columns = NONE) -> HashedTemplates:
        """For data with the columns of this corpus."""
        check_columns(templates, len(corpus.columns), corpus.path, columns.names)
        return cls(tuple(templates), len(corpus.columns), bits, columns)

    @classmethod
    def saved(cls, templates: Sequence[Template], n_columns: int, bits: int, columns: Columns) -> HashedTemplates:
        """Of a model."""
        check_columns(templates, n_columns, "the model's data", columns.names)
        return cls(tuple(templates), n_columns, bits, columns)

    def rows(self, corpus: Corpus) -> Rows:
        """One a token, with an entry for each template."""
        layout, seen = Layout(self.templates, self.n_columns), Observed(corpus, self.columns)
        vocabularies = seen.vocabularies(layout)
        pads = hashing.hashes_of([_OUTSIDE + name for name in layout.pad_names()])
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

    def __len__(self) -> int:
        return 1 << self.bits

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {}


@dataclass(frozen=True, eq=False)
class HashedListed:
    """Of what the data lists (CRFsuite's format)."""

    bits: int

    n_columns = 0

    def rows(self, corpus: Corpus) -> Rows:
        return listed_rows(corpus, lambda names: hashing.rows_of(names, self.bits), valued=False)

    def __len__(self) -> int:
        return 1 << self.bits

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {}
