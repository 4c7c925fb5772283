"""Raw text: documents in, sentences of tokens that know where they stand; spans out.

documents = read_raw(["news.txt"])                      # or JSON lines, brat, spaCy, Prodigy, Label Studio, ...
corpus = corpus_of(documents, "news.txt")               # tokens by rule, segmentation.py
corpus = corpus_of(documents, "gold.jsonl", labelled=True)      # with the tags that the documents' spans say
for document in tagged_documents(task, W, documents): ...       # with the model's spans and their probabilities
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.learner import span_chances
from sparsezo.messages import counted, say
from sparsezo.tasks.base import AnyArray
from sparsezo.tasks.chunking.io.conll import Corpus, Source
from sparsezo.tasks.chunking.io.documents import Document, Span, without_overlap
from sparsezo.tasks.chunking.io.formats import read_documents
from sparsezo.tasks.chunking.io.languages import guess_language
from sparsezo.tasks.chunking.io.segmentation import Segments, segment, segment_all
from sparsezo.tasks.chunking.kernels.events import ANYTHING
from sparsezo.tasks.chunking.tags import OUTSIDE

if TYPE_CHECKING:
    from sparsezo.tasks.chunking.task import Chunking

MISSING_TAG = "?"  # of a token that nobody has said anything of
_LOOKED_AT = 20_000  # words that tell the language
_BATCH_CHARACTERS = 1 << 18  # of texts that are read, or tagged, at once


def read_raw(paths: Sequence[str], format: str | None = None) -> Iterator[Document]:
    """The documents of all files, one after the other, in any of the formats of spans or as plain text."""
    for path in paths:
        yield from read_documents(path, format, texts=True)


def corpus_of(
    documents: Iterable[Document],
    path: str,
    *,
    split: str = "sentences",
    language: str | None = None,
    labelled: bool = False,
    cuts: bool = False,
) -> Corpus:
    """All sentences of the documents; each token is what stands at its place in the text.

    ``split``, ``language``: as ``segment`` has them. ``labelled``: tags as the documents' spans say, MISSING_TAG where
    that is not known. A span that begins or ends inside of a token is of a type that no output has, so that it counts
    as missed; with ``cuts`` tokens are cut there instead, to learn from it. Tokens that a file has are taken where its
    text is nothing but these with blanks between them (columns, rows of ``datasets``).
    """
    kept: list[Document] = []
    words: list[str] = []
    tags: list[str] = []
    starts, ends, sentences = [], [], []
    numbers: list[int] = []  # of the documents that have tokens
    intern: dict[str, str] = {}
    for document, found in _segmented(documents, split, language, cuts):
        kept.append(document)
        if not len(found[0]):
            continue
        text = document.text
        row = [text[a:b] for a, b in zip(found[0].tolist(), found[1].tolist(), strict=True)]
        words.extend(map(intern.setdefault, row, row))
        starts.append(found[0])
        ends.append(found[1])
        sentences.append(found[2])
        numbers.append(len(kept) - 1)
        if labelled:
            tags.extend(_tags(document, *(each.tolist() for each in found)))
    if not words:
        raise DataError(path, "holds no word; expected text")
    many = np.fromiter(map(len, sentences), np.int64, len(sentences))  # and one more than a document has
    counts = np.delete(np.diff(np.concatenate(sentences)), np.cumsum(many)[:-1] - 1)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    source = Source(kept, np.repeat(numbers, many - 1), np.concatenate(starts), np.concatenate(ends))
    return Corpus(path, (words,), tags if labelled else None, offsets, source=source)


def _segmented(
    documents: Iterable[Document], split: str, language: str | None, cuts: bool
) -> Iterator[tuple[Document, Segments]]:
    """Each document with its tokens: those that it has, or by rule, many documents at a time."""
    for batch in _batches(documents):
        plain = [document for document in batch if document.tokens is None and not (cuts and document.spans)]
        by_rule = segment_all([document.text for document in plain], split=split, language=language)
        for document in batch:
            if document.tokens is None and not (cuts and document.spans):
                yield document, next(by_rule)
                continue
            given = document.tokens is not None and document.sentences is not None
            if given and " ".join(document.words()) == document.text:
                starts, ends = np.array(document.tokens, np.int64).reshape(-1, 2).T
                yield document, Segments(starts, ends, np.array(document.sentences, np.int64))
            else:
                spans = [(span.start, span.end) for span in document.spans or ()] if cuts else ()
                yield document, segment(document.text, split=split, spans=spans, language=language)


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += len(document.text) + 1
        if size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _tags(document: Document, starts: list[int], ends: list[int], sentences: list[int]) -> list[str]:
    """IOB2 tags of tokens; a span over a sentence's end counts once, as one that no output has."""
    known = document.spans is not None and not document.missing
    tags = [OUTSIDE if known else MISSING_TAG] * len(starts)
    for span in without_overlap(document.spans or ())[0]:
        first = bisect_left(ends, span.start + 1)
        last = bisect_left(starts, span.end) - 1
        if first > last:
            continue
        exact = starts[first] == span.start and ends[last] == span.end
        name = span.label if exact else f"{span.label} inside of a token"
        stop = sentences[bisect_left(sentences, first + 1)]  # of the sentence that it begins in
        if last >= stop:
            name, last = f"{span.label} over a sentence's end", stop - 1
        tags[first : last + 1] = [f"B-{name}", *[f"I-{name}"] * (last - first)]
    return tags


def language_of(documents: Sequence[Document]) -> str:
    """The texts' language, by their first words: "" where that is not sure. A short text alone does not tell."""
    words = (word for document in documents for word in document.text.split())
    return guess_language(itertools.islice(words, _LOOKED_AT)) or ""


def said_what_was_read(corpus: Corpus, split: str) -> None:
    how = {
        "sentences": "split into sentences and tokens by rule (`split` lines or spaces if they are split already)",
        "lines": "one sentence a line, tokens by rule",
        "spaces": "one sentence a line, tokens at white space",
    }
    documents = len(corpus.source.documents) if corpus.source is not None else 0
    say(
        f"{corpus.path}: raw text, {counted(documents, 'document')}, {counted(len(corpus), 'sentence')}, "
        f"{counted(corpus.n_tokens, 'token')}, {how[split]}"
    )


def tagged_documents(
    task: Chunking,
    W: AnyArray,
    documents: Iterable[Document],
    threshold: float = 0.0,
    *,
    around: bool = False,
    tokens: bool = True,
) -> Iterator[Document]:
    """The documents with the model's spans in place of whatever spans they had, their tokens and sentences.

    ``around``: the spans that they have stay, and the rest is decoded around them; a span with the label O says that
    nothing is there. ``tokens`` false: spans alone, for who does not look at the tokens.

    A span's probability is that of the event "a span with this label begins and ends here", whatever the rest is;
    spans less likely than ``threshold`` are left out. Documents are read as they are needed, in batches.
    """
    if not 0 <= threshold <= 1:
        raise UsageError(f"`threshold` {threshold:g}: give a probability from 0 to 1")
    if not task.reads_words_alone:
        raise UsageError(
            "this model reads more than words (parts of speech, say, or attributes), which raw text does not have; "
            "train it with `features` words or ner"
        )
    for batch in _batches(documents):
        yield from _tagged(task, W, batch, threshold, around, tokens)


def _tagged(
    task: Chunking, W: AnyArray, batch: list[Document], threshold: float, around: bool, placed: bool
) -> Iterator[Document]:
    try:
        known = [replace(document, missing=True) for document in batch] if around else batch
        split, language = task.split or "sentences", task.language
        corpus = corpus_of(known, "text", split=split, language=language, labelled=around, cuts=around)
        unread = ([""] * corpus.n_tokens for _ in range(1, task.n_columns))
        corpus = replace(corpus, columns=(*corpus.columns, *unread))
    except DataError:  # nothing but white space
        yield from (replace(document, spans=(), tokens=(), sentences=(0,)) for document in batch)
        return
    source = cast(Source, corpus.source)
    fixed = _fixed(task, corpus) if around else None
    outputs, chances = span_chances(task.problem(corpus, learn=False), W, fixed)
    if fixed is not None:
        chances[(chances > 0) & (fixed >= 0)] = 1  # but for rounding
    spans = _spans(task, corpus, source, outputs, chances, threshold)
    places = corpus.placed(source) if placed else itertools.repeat((None, None), len(batch))
    for k, (document, (tokens, sentences)) in enumerate(zip(batch, places, strict=True)):
        found = tuple(spans.get(k, ()))
        yield Document(document.text, document.id, found, tokens=tokens, sentences=sentences, meta=document.meta)


def _fixed(task: Chunking, corpus: Corpus) -> NDArray[np.int16]:
    """What the tags of a corpus fix of its tokens: a tag; behind a span that it does not go on; or nothing."""
    number = {tag: k for k, tag in enumerate(task.tags)}
    outside = {f"{letter}-{OUTSIDE}": number[OUTSIDE] for letter in "BI"} | {OUTSIDE: number[OUTSIDE]}
    fixed = np.full(corpus.n_tokens, ANYTHING, np.int16)
    firsts = set(corpus.offsets.tolist())
    for i, tag in enumerate(corpus.tags or ()):
        if tag != MISSING_TAG:
            if tag not in number and tag not in outside:
                raise UsageError(
                    f"`fixed`: a span with the label {quoted(tag[2:])}; this model has "
                    f"{', '.join(sorted({each[2:] for each in task.tags if each != OUTSIDE}))}, and {OUTSIDE} for none"
                )
            fixed[i] = number.get(tag, number[OUTSIDE])
        elif i not in firsts and fixed[i - 1] >= 0 and fixed[i - 1] != number[OUTSIDE]:
            fixed[i] = -2 - number["I" + task.tags[fixed[i - 1]][1:]]  # events.other_than
    return fixed


def _spans(
    task: Chunking,
    corpus: Corpus,
    source: Source,
    outputs: NDArray[np.int32],
    chances: NDArray[np.float32],
    threshold: float,
) -> dict[int, list[Span]]:
    firsts = np.flatnonzero(chances > 0)
    sentence = np.searchsorted(corpus.offsets, firsts, side="right") - 1
    inside = np.array([tag[0] == "I" for tag in task.tags])
    begins = (chances > 0) | ~inside[outputs]
    begins[corpus.offsets[:-1]] = True
    stops = np.append(np.flatnonzero(begins), len(outputs))
    lasts = stops[np.searchsorted(stops, firsts, side="right")] - 1
    starts, ends = source.starts[firsts].tolist(), source.ends[lasts].tolist()
    labels = [task.tags[k][2:] for k in outputs[firsts].tolist()]
    found: dict[int, list[Span]] = {}
    chance = chances[firsts].astype(np.float64)
    documents, likely = source.of_sentence[sentence].tolist(), (chance >= threshold).tolist()
    spans = map(Span, starts, ends, labels, np.round(chance, 6).tolist())
    for number, span, is_likely in zip(documents, spans, likely, strict=True):
        if is_likely:
            found.setdefault(number, []).append(span)
    return found


def require_spans(documents: Sequence[Document], path: str, *, whole: bool = False) -> None:
    """Where spans are what a file is read for; ``whole``: all of them, so that the rest is known to be outside."""
    if whole and any(document.missing for document in documents):
        raise DataError(
            path,
            "is not labelled throughout: in Prodigy's format what no span covers is unknown, not outside; give it as "
            "`init_labels`, to start from",
        )
    if all(document.spans is None for document in documents):
        raise DataError(path, 'has no spans in it; give a file that has, such as JSON lines with "spans"')
