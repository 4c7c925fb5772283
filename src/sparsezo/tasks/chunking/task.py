"""Chunking, and sequence labelling at large (paper Sec. 5, "Sparse Models for Noun-Phrase Chunking").

The tags of a corpus are taken as the task sees them: of chunks in IOB2, and of one chunk type if ``only`` says so; of
anything else (parts of speech) as they are.

    task, train = Chunking.fit(read_conll("train.txt.gz"), only="NP")
    problem, gold = task.problem(train), task.gold(train)
    task, raw = Chunking.fit(raw, tags="NP")        # from sentences without tags: there is no gold, people are asked
    task, raw = Chunking.fit(raw, tags="NP", vectors="my_encoder:encode")       # vectors of tokens beside attributes
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparsezo import validation
from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.kernels.inputs.sparse import FACTORED_ROWS, sparse_inputs
from sparsezo.messages import say
from sparsezo.questions import A_LOSS, WHICH, YES_NO, Answers, Questions
from sparsezo.storage import limits
from sparsezo.tasks.base import AnyArray, Arrays, Json, Problem, Scores
from sparsezo.tasks.chunking.features import attributes
from sparsezo.tasks.chunking.features.columns import NONE, Columns, of_prefix
from sparsezo.tasks.chunking.features.templates import Template, usual_features
from sparsezo.tasks.chunking.features.token_vectors import Given, TokenVectors
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.io.documents import Document, Span
from sparsezo.tasks.chunking.kernels.task import MISSING, ChunkGold, chunk_task, corpus_counts
from sparsezo.tasks.chunking.metric import counts_by_sentence, score_chunks, score_tags, tokens_by_sentence
from sparsezo.tasks.chunking.options import AUTO, PLAIN, SCHEMES, SPLITS, ChunkingOptions
from sparsezo.tasks.chunking.spec import defaults
from sparsezo.tasks.chunking.start import start_weights
from sparsezo.tasks.chunking.tags import (
    IOB2,
    OUTSIDE,
    keep_only,
    named_tags,
    named_words,
    require_chunks,
    spelled,
    understood,
)
from sparsezo.tasks.encoders import Encode, Encoder

_MOST_TAGS_OF_ORDER_2 = 5  # unless `order` says otherwise
_ADAGRAD_START_OF_ORDER_1 = 0.1  # its weights are fewer and answer for more: chosen on CoNLL-2002 and CoNLL-2000
_MOST_TAGS = 2**15 - 3  # as int16, with two behind them that only gold has
_MOST_WEIGHTS = 2**31  # of a dense table of features x labels
_VECTORS = "vectors_"  # what the arrays of vectors are called in a saved task


@dataclass(frozen=True, eq=False)
class Chunking:
    """Tag set, order and features of a chunker.

    order 2 (the paper): every attribute has a weight for each tag bigram, y_i = c_{i-1} c_i. order 1: a weight for each
    tag, plus one for each tag bigram; for large tag sets. Attributes of B templates then have one for each bigram, too.
    Before the first token stands the last of the tags: O, and of plain tags the one that most sentences end with.
    """

    tags: tuple[str, ...]
    order: int
    only: str | None
    n_columns: int
    index: attributes.Index
    scheme: str = IOB2  # of the training file, and of what is written; plain: no chunks
    column: str | None = None  # the training file's, for files like it
    bigrams: attributes.OfTemplates | None = None  # order 1: the attributes that go with tag bigrams
    split: str | None = None  # the training data was raw text, and this is how it was split; None: it was tokens
    language: str | None = None  # of raw text, where it is known; looked at where it is split
    type_words: Mapping[str, str] = field(default_factory=dict)  # what people call a type: PER -> person
    vectors: TokenVectors | None = None  # dense columns, behind all others

    name = "chunking"
    defaults = staticmethod(defaults)

    def __post_init__(self) -> None:
        if self.order not in (1, 2):
            raise UsageError(f"`order` {self.order!r}: choose from 1, 2")
        if self.split not in (None, *SPLITS):
            raise UsageError(f"`split` {self.split!r}: choose from {', '.join(SPLITS)}")
        for name, value in (("language", self.language), ("column", self.column), ("only", self.only)):
            if not isinstance(value, str | None):
                raise UsageError(f"`{name}` {value!r}: give a text")
        if not all(isinstance(each, str) for pair in dict(self.type_words).items() for each in pair):
            raise UsageError(f"`type_words` {self.type_words!r}: give a text for each type")
        _check_tags(self.tags, self.scheme)

    @classmethod
    def fit(
        cls,
        train: Corpus,
        *,
        only: str | None = None,
        order: int | None = None,
        templates: Sequence[Template] | None = None,
        features: str | None = None,
        min_count: int = ChunkingOptions.min_count,
        hash_bits: int | None = None,
        scheme: str = AUTO,
        tags: str | Sequence[str] | None = None,
        split: str | None = None,
        language: str | None = None,
        columns: Columns = NONE,
        vectors: Given | None = None,
    ) -> tuple[Chunking, Corpus]:
        """The task of a training corpus, and that corpus with its tags and vectors as the task sees them.

        ``tags``: those to learn, where the corpus does not have them (``named_tags``). ``split``: of raw text, how.
        ``columns``: those made of the words, which templates call by name (columns.py). ``vectors``: of each token, as
        dense columns beside its attributes: a function of a sentence's tokens that gives an array tokens x d, its name
        as "module:function", an array for each sentence, or one for all tokens.
        """
        given: Json = {"only": only, "order": order, "features": features, "scheme": scheme}
        ChunkingOptions(min_count=min_count, hash_bits=hash_bits, **given)  # checked
        words: dict[str, str] = {}
        corpus = train
        if tags is None:
            scheme, corpus = understood(train, scheme)
        elif scheme == AUTO:
            scheme = IOB2
        if only is not None and scheme == PLAIN:
            raise UsageError(f"`only` {only}: the tags are no chunks, which alone have types; leave `only` out")
        if tags is None:
            corpus = corpus if only is None else keep_only(corpus, only)
            tag_set = _tag_set(corpus, scheme)
        else:
            tag_set, words = named_tags(tags, scheme), named_words(tags)
            if only is not None and tag_set != (f"B-{only}", f"I-{only}", OUTSIDE):
                raise UsageError(
                    f"`only` {only}: leaves no other type of `tags`; name the same one type, or leave `only` out"
                )
        if order is None:
            order = 2 if len(tag_set) <= _MOST_TAGS_OF_ORDER_2 else 1
            if order == 1:
                say(f"{len(tag_set)} tags: `order` 1, weights for tags and tag bigrams, is the default for so many")
        if features is None:
            features = usual_features(len(train.columns))
            if templates is None and features != "chunking":
                what = f"words alone, so `features` {features} is the default"
                say(f"{train.path}: {what}: affixes and shapes of words, too")
        how = (features, order, min_count, hash_bits, len(tag_set), columns)
        index, bigrams = attributes.make_indices(corpus, templates, *how)
        dense, encoded = (None, None) if vectors is None else TokenVectors.fit(vectors, corpus)
        corpus = corpus if corpus.encoded is encoded else replace(corpus, encoded=encoded)
        task = cls(
            tag_set,
            order,
            only,
            len(train.columns),
            index,
            scheme,
            train.column,
            bigrams,
            split,
            language,
            words,
            dense,
        )
        if task.n_features * task.n_labels > _MOST_WEIGHTS:
            fewer = "a higher `min_count`" if hash_bits is None else "fewer `hash_bits`"
            raise UsageError(
                f"{task.n_features:,} features x {task.n_labels} labels are too many weights; "
                f"use `order` 1, {fewer}, or `only` one type"
            )
        return task, corpus if tags is None else task.seen(corpus)

    @property
    def metric(self) -> str:
        return "accuracy" if self.scheme == PLAIN else "f1"

    @property
    def reads_words_alone(self) -> bool:
        """Whether raw text has all that its templates read, whatever other columns the training file had."""
        if not isinstance(self.index, attributes.OfTemplates):
            return False
        templates = (*self.index.templates, *(self.bigrams.templates if self.bigrams else ()))
        columns = {part.source.column for template in templates for part in template.parts}
        return all(isinstance(column, str) or column == 0 for column in columns)

    @property
    def n_features(self) -> int:
        n = len(self.index) + (0 if self.vectors is None else self.vectors.columns)
        if self.order == 1:
            n += len(self.tags) * (1 + (0 if self.bigrams is None else len(self.bigrams)))
        return n

    @property
    def n_labels(self) -> int:
        K = len(self.tags)
        return K * K if self.order == 2 else K

    @property
    def listed(self) -> bool:
        """Whether the data lists its attributes (CRFsuite's format), so that there are no templates."""
        return isinstance(self.index, attributes.ListedIndex | attributes.HashedListed)

    @property
    def hash_bits(self) -> int | None:
        """Rows are hashes of names, of so many bits; None: each attribute has its own."""
        return self.index.bits if isinstance(self.index, attributes.HashedTemplates | attributes.HashedListed) else None

    def check_start(self, other: Chunking) -> None:
        """Refuse a task with other clusters or vectors: features of the same name would not mean the same."""
        own, its = (getattr(each.index, "columns", NONE).clusters for each in (self, other))
        if own is not None and its is not None and not own.same_as(its):
            raise UsageError("the model to start from has other clusters of words; give `clusters` as it had them")
        if self.vectors is not None and other.vectors is not None and self.vectors.columns != other.vectors.columns:
            raise UsageError(
                f"the model to start from has `vectors` of {other.vectors.columns:,} columns, this task of "
                f"{self.vectors.columns:,}; give the same encoder"
            )

    def feature_names(self) -> list[str]:
        """Attributes as CRF++ spells them; order 1: behind them the tag bigrams, without attributes and with them; then
        the columns of vectors."""
        names = self.index.names()
        if self.order == 1:
            names += [f"after {tag}" for tag in self.tags]
            if self.bigrams is not None:
                names += [f"{name} after {tag}" for name in self.bigrams.names() for tag in self.tags]
        return names if self.vectors is None else [*names, *self.vectors.names()]

    def label_names(self) -> list[str]:
        """Tags, or pairs of a tag and the one before it."""
        return list(self.tags) if self.order == 1 else [f"{before} {tag}" for before in self.tags for tag in self.tags]

    def with_vectors(self, function: Encode) -> Chunking:
        """The task with the function that its vectors are of, where a model does not name it."""
        if self.vectors is None:
            raise UsageError("`vectors`: the model was trained without any; leave them out")
        return replace(self, vectors=replace(self.vectors, encoder=Encoder(function)))

    def seen(self, corpus: Corpus, vectors: Given | None = None) -> Corpus:
        """A corpus with its tags, if it has any, and its vectors, if the task has any, as the task sees them.

        ``vectors``: where the task has no function that gives them, as ``fit`` takes them.
        """
        if self.vectors is not None:
            corpus = replace(corpus, encoded=self.vectors.encoded(corpus, vectors))
        elif vectors is not None:
            raise UsageError("`vectors`: the task was made without any; leave them out")
        if corpus.tags is None:
            return corpus
        if self.scheme != PLAIN and corpus.source is None:
            corpus = understood(corpus, self.scheme)[1]
        return corpus if self.only is None else keep_only(corpus, self.only, required=False)

    def problem(self, data: Corpus, *, learn: bool = True, risk: bool = False, asks: bool = False) -> Problem:
        if len(data.columns) != self.n_columns:
            raise DataError(data.path, f"has {len(data.columns)} columns before the tag, the model {self.n_columns}")
        for column in data.columns:
            validation.offsets("the corpus's offsets", data.offsets, end=len(column))
        rows, row_start = self.index.rows(data), data.offsets
        start = len(self.tags) - 1
        if self.order == 1:
            bigrams = None if self.bigrams is None else self.bigrams.rows(data)
            rows, row_start = attributes.order_1(rows, bigrams, data.offsets, len(self.index), len(self.tags), start)
        # with rows for every tag K would be large, and who asks questions has no use for it
        factored = FACTORED_ROWS if self.bigrams is None and not asks else 0
        sparse = (row_start, rows.row_ptr(), rows.columns, rows.values, self.n_features, self.n_labels)
        dense = None if self.vectors is None else (self.vectors.encoded(data).rows, data.offsets)
        inputs = sparse_inputs(*sparse, learn, factored, *(dense or ()))
        kind, chunk_type = self._kinds()
        made = (self.order, risk, len(self.tags), self.bigrams is not None, self.scheme != PLAIN, asks)
        return Problem(
            inputs=inputs,
            task=chunk_task(np.diff(data.offsets), kind, chunk_type, start, *made),
            n_features=self.n_features,
            n_labels=self.n_labels,
            output_start=data.offsets,
            n_active=np.diff(inputs.col_start) * self.n_labels,
            max_rows=int(np.diff(row_start).max(initial=0)),
            max_columns=int(np.diff(inputs.col_start).max(initial=0)),
            learn=learn,
            risk=risk,
            questions=self._questions(asks),
            start=start_weights(self) if asks else None,
            adagrad_start=1.0 if self.order == 2 else _ADAGRAD_START_OF_ORDER_1,
        )

    def _questions(self, asks: bool) -> Questions:
        labels = {tag: k for k, tag in enumerate(self.tags)}
        offered: dict[tuple[str, str], Answers] = {
            ("part", "token"): YES_NO,
            ("label", "token"): labels,
            ("review", "token"): labels,
        }
        if asks:
            offered |= {("pair", "token"): WHICH, ("rate", "token"): A_LOSS}
        if self.scheme != PLAIN:  # a chunk is known by the tag that begins it
            types = {tag[2:] or "chunk": k for tag, k in labels.items() if tag[0] == "B"}
            labels = {**types, OUTSIDE: len(self.tags) - 1}
            offered |= {("part", "chunk"): YES_NO, ("label", "chunk"): labels, ("span", "chunk"): labels}
        return offered

    def _kinds(self) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
        """Kind and type of each tag; behind them a B and an I of "another type", which gold may have but no output."""
        kind = [0 if tag == OUTSIDE else 1 + (tag[0] == "I") for tag in self.tags] + [1, 2]
        types = sorted({tag[2:] for tag in self.tags})
        chunk_type = [-1 if tag == OUTSIDE else types.index(tag[2:]) for tag in self.tags] + [len(types)] * 2
        return np.array(kind, np.int8), np.array(chunk_type, np.int32)

    def gold(self, data: Corpus) -> ChunkGold:
        correct = _tags(data, ", or train with a `scorer`")
        number = {tag: k for k, tag in enumerate(self.tags)}
        K = len(self.tags)
        others = {"I": K + 1} if self.scheme != PLAIN else {}  # K: of another type, or another tag; no output has them
        tags = [number[tag] if tag in number else others.get(tag[0], K) for tag in correct]
        return ChunkGold(data.offsets, np.array(tags, np.int16))

    def known(self, data: Corpus) -> ChunkGold:
        """``gold`` for rule supervised, of which some tags may not be known, or be of types that no output has."""
        number = {tag: k for k, tag in enumerate(self.tags)}
        tags = [number.get(tag, number[OUTSIDE] if tag[:2] in ("B-", "I-") else MISSING) for tag in _tags(data)]
        return ChunkGold(data.offsets, np.array(tags, np.int16))

    def quality(self, problem: Problem, gold: ChunkGold, outputs: NDArray[np.int32]) -> float:
        gold.check(problem, False)
        validation.array("the outputs", outputs, "iu", (int(problem.output_start[-1]),))
        validation.below("the outputs", outputs, problem.task.n_tags)
        if self.scheme == PLAIN:
            return float((outputs == gold.tags).mean())
        predicted, correct, both = corpus_counts(gold, problem.task, outputs)
        return 2 * both / (predicted + correct) if both else 0.0

    def scores(self, data: Corpus, outputs: NDArray[np.int32]) -> Scores:
        correct = _tags(data)
        predicted = self.words(outputs, data.offsets)
        size = {"sentences": len(data), "tokens": data.n_tokens}
        if self.scheme == PLAIN:
            found = score_tags(correct, predicted)
            of_tags = {tag: counts.as_dict() for tag, counts in found.per_type.items()}
            counts = tokens_by_sentence(correct, predicted, data.offsets)
            return Scores(self.metric, found.accuracy, {"accuracy": found.accuracy, **size, "tags": of_tags}, counts)
        correct = spelled(correct, data.offsets, self.scheme)
        result = score_chunks(correct, predicted, data.offsets)
        report: Json = {
            "f1": result.f1,
            "precision": result.precision,
            "recall": result.recall,
            "accuracy": result.accuracy,
            "chunks": {"gold": result.gold, "predicted": result.predicted, "correct": result.correct},
            **size,
        }
        if len(result.per_type) > 1:
            report["types"] = {name: counts.as_dict() for name, counts in sorted(result.per_type.items())}
        return Scores(self.metric, result.f1, report, counts_by_sentence(correct, predicted, data.offsets))

    def words(self, outputs: NDArray[np.int32], offsets: NDArray[np.int64]) -> list[str]:
        """Tag names of outputs, in the training file's scheme; an I that starts a chunk (to F1 it does) as its B."""
        return spelled([self.tags[k] for k in outputs.tolist()], offsets, self.scheme)

    def tag(
        self,
        W: AnyArray,
        texts: Iterable[str],
        threshold: float = 0.0,
        fixed: Iterable[Iterable[Span | tuple[int, int, str]]] | None = None,
    ) -> Iterator[tuple[Span, ...]]:
        """The spans of each text, see ``Model.tag``."""
        from sparsezo.tasks.chunking.io.raw import tagged_documents

        given = (
            map(Document, texts)
            if fixed is None
            else (Document(text, spans=_fixed_spans(text, spans)) for text, spans in zip(texts, fixed, strict=True))
        )
        for document in tagged_documents(self, W, given, threshold, around=fixed is not None, tokens=False):
            yield document.spans or ()

    def export(self, path: Path, W: AnyArray) -> list[Path]:
        return []

    def to_arrays(self) -> tuple[Json, Arrays]:
        own, arrays = attributes.indices_to_arrays(self.index, self.bigrams)
        settings: Json = {
            "tags": list(self.tags),
            "order": self.order,
            "only": self.only,
            "n_columns": self.n_columns,
            "scheme": self.scheme,
            "column": self.column,
            **({"split": self.split, "language": self.language} if self.split else {}),
            **({"type_words": dict(self.type_words)} if self.type_words else {}),
            **own,
        }
        if self.vectors is not None:
            settings["vectors"], dense = self.vectors.to_arrays()
            arrays |= {_VECTORS + name: values for name, values in dense.items()}
        return settings, arrays

    @classmethod
    def from_arrays(cls, settings: Json, arrays: Mapping[str, AnyArray]) -> Chunking:
        index, bigrams = attributes.indices_from_arrays(settings, arrays)
        scheme, column = settings.get("scheme", IOB2), settings.get("column")  # models of 0.1.0 have neither
        tags, order, only, n_columns = (settings[name] for name in ("tags", "order", "only", "n_columns"))
        if n_columns != index.n_columns or not (bigrams is None or (order == 1 and bigrams.n_columns == n_columns)):
            raise ValueError("n_columns or order does not fit the templates")
        try:
            words = settings.get("type_words", {})
            split = settings.get("split", "spaces" if settings.get("lines") is True else None)  # lines: of 0.1
            dense = None
            if "vectors" in settings:
                dense = TokenVectors.from_arrays(settings["vectors"], of_prefix(_VECTORS, arrays))
            own = (split, settings.get("language"), words, dense)
            return cls(tuple(tags), order, only, n_columns, index, scheme, column, bigrams, *own)
        except UsageError as error:
            raise ValueError(str(error)) from None


def _fixed_spans(text: str, given: Iterable[Span | tuple[int, int, str]]) -> tuple[Span, ...]:
    """Spans that somebody has set, checked."""
    spans = []
    for each in given:
        span = each if isinstance(each, Span) else Span(*each)
        if not 0 <= span.start < span.end <= len(text):
            raise UsageError(f"`fixed`: a span from {span.start} to {span.end}; the text has {len(text)} characters")
        spans.append(span)
    return tuple(spans)


def _tags(data: Corpus, more: str = "") -> list[str]:
    if data.tags is None:
        raise DataError(data.path, f"has no tags to compare with; give a file with the tag in its last column{more}")
    return data.tags


def _tag_set(corpus: Corpus, scheme: str) -> tuple[str, ...]:
    """All tags that outputs may have, the one before the first token last."""
    given = corpus.tags or []
    if scheme != PLAIN:
        require_chunks(corpus)
        types = sorted({tag[2:] for tag in given if tag != OUTSIDE})
        tags = (*(f"{prefix}-{kind}" if kind else prefix for kind in types for prefix in "BI"), OUTSIDE)
    else:
        at_ends = Counter(given[stop - 1] for stop in corpus.offsets[1:].tolist())
        start = min(at_ends, key=lambda tag: (-at_ends[tag], tag))
        tags = (*sorted({*given} - {start}), start)
        if len(tags) == 1:
            raise DataError(corpus.path, f"every tag is '{quoted(start)}'; is the right column the tag?")
    if len(tags) > limits.TAGS:
        limits.refuse(corpus.path, f"{len(tags):,} different tags: is the right column the tag?")
    return tags


def _check_tags(tags: tuple[str, ...], scheme: str) -> None:
    """As ``_tag_set`` makes them; a caller or a file may have others."""
    if scheme not in SCHEMES or scheme == AUTO:
        raise UsageError(f"scheme {scheme!r} is not known")
    if len(tags) < 2 or len({*tags}) < len(tags) or not all(isinstance(tag, str) and tag for tag in tags):
        raise UsageError("a tag set has two different tags or more")
    if len(tags) > _MOST_TAGS:
        raise UsageError(f"{len(tags):,} tags are too many; is the right column the tag?")
    if scheme != PLAIN:
        pairs = [(f"B-{tag[2:]}", f"I-{tag[2:]}") if tag[2:] else ("B", "I") for tag in tags[:-1:2]]
        if tags != (*(tag for pair in pairs for tag in pair), OUTSIDE):
            raise UsageError("a tag set of chunks has B and I of each type, and O last")
