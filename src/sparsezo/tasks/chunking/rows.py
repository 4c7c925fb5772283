"""The rows of C for a corpus (DESIGN 1): one a token, and in order 1 those of the tag bigrams behind each sentence's.

Order 1, for a sentence of R tokens and K tags (chains.expand says what is made of their scores):

    row i                  token i: its attributes
    row R + a              "after tag a": a column of its own for each tag
    row R + K + a R + i    token i after tag a: a column for each bigram attribute and each tag a; only where the
                           templates have such attributes. A first token comes after ``start`` alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Rows(NamedTuple):
    """Sparse rows, one after the other."""

    columns: NDArray[np.int32]  # one an entry
    lengths: NDArray[np.int64]  # entries of each row
    values: NDArray[np.float32] | None  # one an entry; None: all are 1

    def row_ptr(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    def take(self, order: NDArray[np.int64]) -> Rows:
        """The rows in another order."""
        lengths = self.lengths[order]
        ends = np.cumsum(lengths)
        entries = np.repeat(self.row_ptr()[order] - ends + lengths, lengths) + np.arange(len(self.columns))
        return Rows(self.columns[entries], lengths, None if self.values is None else self.values[entries])


def order_1(
    tokens: Rows, bigrams: Rows | None, offsets: NDArray[np.int64], n_attributes: int, n_tags: int, start: int
) -> tuple[Rows, NDArray[np.int64]]:
    """All rows, and where each sentence's begin. ``bigrams``: the bigram attributes of each token."""
    sentences = len(offsets) - 1
    of_token = np.repeat(np.arange(sentences), np.diff(offsets))
    after = np.tile(np.arange(n_attributes, n_attributes + n_tags, dtype=np.int32), sentences)
    blocks = [tokens, Rows(after, np.ones(len(after), np.int64), None)]
    belongs = [of_token, np.repeat(np.arange(sentences), n_tags)]
    if bigrams is not None:
        blocks += _after_each_tag(bigrams, offsets, n_attributes + n_tags, n_tags, start)
        belongs += [of_token] * n_tags
    # stable: within a sentence they stay block by block, as they stand above
    rows = _joined(blocks).take(np.argsort(np.concatenate(belongs), kind="stable"))
    counts = np.bincount(np.concatenate(belongs), minlength=sentences)
    return rows, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _after_each_tag(rows: Rows, offsets: NDArray[np.int64], base: int, n_tags: int, start: int) -> list[Rows]:
    """For each tag a, the tokens' rows with the columns that say "after a"."""
    later = np.ones(len(rows.lengths), bool)
    later[offsets[:-1]] = False
    kept = np.repeat(later, rows.lengths)
    blocks = []
    for a in range(n_tags):
        columns = (base + rows.columns.astype(np.int64) * n_tags + a).astype(np.int32)
        if a == start:
            blocks.append(Rows(columns, rows.lengths, None))
        else:
            blocks.append(Rows(columns[kept], np.where(later, rows.lengths, 0), None))
    return blocks


def _joined(blocks: list[Rows]) -> Rows:
    columns = np.concatenate([block.columns for block in blocks])
    lengths = np.concatenate([block.lengths for block in blocks])
    if all(block.values is None for block in blocks):
        return Rows(columns, lengths, None)
    ones = (np.ones(len(b.columns), np.float32) if b.values is None else b.values for b in blocks)
    return Rows(columns, lengths, np.concatenate(list(ones)))
