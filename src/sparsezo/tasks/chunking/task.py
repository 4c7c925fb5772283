"""Chunking, and sequence labelling in IOB tags at large (paper Sec. 5, "Sparse Models for Noun-Phrase Chunking").

The tags of a corpus are taken as the task sees them, in IOB2 and of one chunk type if ``only`` says so:

    task, train = Chunking.fit(read_conll("train.txt.gz"), only="NP")
    problem, gold = task.problem(train), task.gold(train)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, UsageError
from sparsezo.kernels.inputs.sparse import ranks, sparse_inputs
from sparsezo.tasks.base import Problem, Scores
from sparsezo.tasks.chunking.attributes import AttributeIndex
from sparsezo.tasks.chunking.conll import Corpus
from sparsezo.tasks.chunking.kernel import ChunkGold, chunk_task, corpus_counts
from sparsezo.tasks.chunking.kind import defaults
from sparsezo.tasks.chunking.metric import score_chunks
from sparsezo.tasks.chunking.options import ChunkingOptions
from sparsezo.tasks.chunking.tags import keep_only, require_chunks, to_iob2
from sparsezo.tasks.chunking.templates import Template, default_templates, parse_templates

_OUTSIDE = "O"
_MOST_WEIGHTS = 2**31  # of a dense table of features x labels


@dataclass(frozen=True, eq=False)
class Chunking:
    """Tag set, order and features of a chunker.

    order 2 (the paper): every attribute has a weight for each tag bigram, y_i = c_{i-1} c_i. order 1: a weight for each
    tag, plus one for each tag bigram; for large tag sets.
    """

    tags: tuple[str, ...]
    order: int
    only: str | None
    n_columns: int
    index: AttributeIndex

    name = "chunking"
    metric = "f1"
    defaults = staticmethod(defaults)

    @classmethod
    def fit(
        cls,
        train: Corpus,
        *,
        only: str | None = None,
        order: int = ChunkingOptions.order,
        templates: Sequence[Template] | None = None,
        min_count: int = ChunkingOptions.min_count,
    ) -> tuple[Chunking, Corpus]:
        """The task of a training corpus, and that corpus with its tags as the task sees them."""
        ChunkingOptions(only=only, order=order, min_count=min_count)  # checked
        corpus = _as_seen(train, only, required=True)
        require_chunks(corpus)
        if templates is None:
            width = len(train.columns)
            templates = [t for t in default_templates() if all(column < width for _, column in t.parts)]
        index = AttributeIndex.fit(corpus, templates, min_count)
        if len(index) == 0:
            raise DataError(train.path, f"no attribute is seen {min_count} times; lower `min_count`")
        types = sorted({tag[2:] for tag in corpus.tags or [] if tag != _OUTSIDE})
        tags = (*(f"{prefix}-{kind}" if kind else prefix for kind in types for prefix in "BI"), _OUTSIDE)
        task = cls(tags, order, only, len(train.columns), index)
        if task.n_features * task.n_labels > _MOST_WEIGHTS:
            raise UsageError(
                f"{task.n_features:,} features x {task.n_labels} labels are too many weights; "
                "use `order` 1, a higher `min_count`, or `only` one type"
            )
        return task, corpus

    @property
    def n_features(self) -> int:
        return len(self.index) + (len(self.tags) if self.order == 1 else 0)

    @property
    def n_labels(self) -> int:
        K = len(self.tags)
        return K * K if self.order == 2 else K

    def feature_names(self) -> list[str]:
        """Attributes as CRF++ spells them; order 1: behind them the rows of the tag bigrams."""
        return [*self.index.names(), *(f"after {tag}" for tag in self.tags if self.order == 1)]

    def label_names(self) -> list[str]:
        """Tags, or pairs of a tag and the one before it."""
        return list(self.tags) if self.order == 1 else [f"{before} {tag}" for before in self.tags for tag in self.tags]

    def seen(self, corpus: Corpus) -> Corpus:
        """A corpus with its tags, if it has any, as the task sees them."""
        return corpus if corpus.tags is None else _as_seen(corpus, self.only, required=False)

    def problem(self, data: Corpus, *, learn: bool = True, risk: bool = False) -> Problem:
        if len(data.columns) != self.n_columns:
            raise DataError(data.path, f"has {len(data.columns)} columns before the tag, the model {self.n_columns}")
        ids = self.index.transform(data)  # tokens x templates
        known = ids >= 0
        columns, lengths, row_start = ids[known], known.sum(axis=1), data.offsets
        if self.order == 1:
            columns, lengths, row_start = self._with_bigrams(columns, lengths, row_start)
        row_ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        inputs = sparse_inputs(row_start, row_ptr, columns, None, self.n_features, learn)
        kind, chunk_type = self._kinds()
        tokens = np.diff(data.offsets)
        start = self.tags.index(_OUTSIDE)
        n_score = ranks(row_start, inputs.chol_start, inputs.chol) if learn else np.zeros(len(data), np.int64)
        return Problem(
            inputs=inputs,
            task=chunk_task(tokens, kind, chunk_type, start, self.order, risk, len(self.tags)),
            n_features=self.n_features,
            n_labels=self.n_labels,
            output_start=data.offsets,
            n_active=np.diff(inputs.col_start) * self.n_labels,
            n_score=n_score * self.n_labels,
            max_rows=int(np.diff(row_start).max()),
            max_columns=int(np.diff(inputs.col_start).max()),
        )

    def _with_bigrams(
        self, columns: NDArray[np.int32], lengths: NDArray[np.int64], offsets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """K more rows behind each sentence's tokens, row a with the one column that says "after tag a": the bigrams."""
        K, N = len(self.tags), offsets.size - 1
        ends = np.concatenate([[0], np.cumsum(lengths)])[offsets[1:]]
        bigrams = np.tile(np.arange(len(self.index), self.n_features, dtype=np.int32), N)
        columns = np.insert(columns, np.repeat(ends, K), bigrams)
        lengths = np.insert(lengths, np.repeat(offsets[1:], K), 1)
        return columns, lengths, offsets + K * np.arange(N + 1)

    def _kinds(self) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
        """Kind and type of each tag; behind them a B and an I of "another type", which gold may have but no output."""
        kind = [0 if tag == _OUTSIDE else 1 + (tag[0] == "I") for tag in self.tags] + [1, 2]
        types = sorted({tag[2:] for tag in self.tags})
        chunk_type = [-1 if tag == _OUTSIDE else types.index(tag[2:]) for tag in self.tags] + [len(types)] * 2
        return np.array(kind, np.int8), np.array(chunk_type, np.int32)

    def gold(self, data: Corpus) -> ChunkGold:
        if data.tags is None:
            raise DataError(data.path, "has no tags to compare with; give a file with the tag in its last column")
        number = {tag: k for k, tag in enumerate(self.tags)}
        K = len(self.tags)
        tags = [number[tag] if tag in number else K + (tag[0] == "I") for tag in data.tags]
        return ChunkGold(data.offsets, np.array(tags, np.int16))

    def quality(self, problem: Problem, gold: ChunkGold, outputs: NDArray[np.int32]) -> float:
        predicted, correct, both = corpus_counts(gold, problem.task, outputs)
        return 2 * both / (predicted + correct) if both else 0.0

    def scores(self, data: Corpus, outputs: NDArray[np.int32]) -> Scores:
        if data.tags is None:
            raise DataError(data.path, "has no tags to compare with; give a file with the tag in its last column")
        result = score_chunks(data.tags, self.words(outputs, data.offsets), data.offsets)
        report: dict[str, Any] = {
            "f1": result.f1,
            "precision": result.precision,
            "recall": result.recall,
            "accuracy": result.accuracy,
            "chunks": {"gold": result.gold, "predicted": result.predicted, "correct": result.correct},
            "sentences": len(data),
            "tokens": data.n_tokens,
        }
        if len(result.per_type) > 1:
            report["types"] = {
                name: {"f1": s.f1, "precision": s.precision, "recall": s.recall, "gold": s.gold}
                for name, s in sorted(result.per_type.items())
            }
        return Scores(self.metric, result.f1, report)

    def words(self, outputs: NDArray[np.int32], offsets: NDArray[np.int64]) -> list[str]:
        """Tag names of outputs, in IOB2: an I that starts a chunk (to F1 it does) is written as the B it is."""
        kind, chunk_type = self._kinds()
        kinds, types = kind[outputs], chunk_type[outputs]
        after = np.concatenate([[-1], types[:-1]])  # the type before; -1 outside
        after[offsets[:-1]] = -1
        starts = (kinds == 2) & (types != after)
        return [self.tags[k] for k in (outputs - starts).tolist()]  # B-X stands right before I-X

    def export(self, path: Path, W: NDArray[Any]) -> list[Path]:
        return []

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        settings = {
            "tags": list(self.tags),
            "order": self.order,
            "only": self.only,
            "n_columns": self.n_columns,
            "templates": [str(template) for template in self.index.templates],
        }
        return settings, self.index.to_arrays()

    @classmethod
    def from_arrays(cls, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Chunking:
        templates = parse_templates(settings["templates"], "the model's templates")
        index = AttributeIndex.from_arrays(templates, arrays)
        return cls(tuple(settings["tags"]), settings["order"], settings["only"], settings["n_columns"], index)


def _as_seen(corpus: Corpus, only: str | None, *, required: bool) -> Corpus:
    return to_iob2(corpus) if only is None else keep_only(corpus, only, required=required)
