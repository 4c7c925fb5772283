"""What a session with people needs of chunking: inputs kept beside the log, parts to audit, the corpus so far."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, UsageError
from sparsezo.options import make_options
from sparsezo.questions import Question
from sparsezo.storage.texts import joined, parted
from sparsezo.tasks.chunking.conll import Corpus, Listed, Source
from sparsezo.tasks.chunking.documents import Document, Span, documents_from_columns
from sparsezo.tasks.chunking.labels import placed_spans
from sparsezo.tasks.chunking.metric import chunks
from sparsezo.tasks.chunking.options import PLAIN, ChunkingOptions
from sparsezo.tasks.chunking.show import choice_words, in_words
from sparsezo.tasks.chunking.tags import OUTSIDE, chunks_of, in_iob2, spelled
from sparsezo.tasks.keeping import identity_of, read_inputs, write_inputs

if TYPE_CHECKING:
    from sparsezo.tasks.chunking.task import Chunking

__all__ = ["choice_words"]

AUDIT = "label"  # the kind of question that an audit asks
_KIND = "sentences"
ANSWERED, GUESS = "answered", "guess"
ENDING = "conll"  # of the corpus
REFITTED = ("order", "features", "clusters", "gazetteer", "template", "min_count", "hash_bits")  # options of features


def to_arrays(data: Corpus) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The sentences without their tags: nobody who answers is helped by these."""
    words = list(dict.fromkeys(itertools.chain.from_iterable(data.columns)))
    number = {word: k for k, word in enumerate(words)}.__getitem__
    arrays: dict[str, NDArray[Any]] = {"offsets": data.offsets, "lines": data.lines}
    for k, column in enumerate(data.columns):
        arrays[f"column.{k}"] = np.fromiter(map(number, column), np.int32, len(column))
    arrays["words"], arrays["words_start"] = joined(words)
    if data.listed is not None:
        arrays["names"], arrays["names_start"] = joined(data.listed.names)
        arrays |= {f"listed.{name}": getattr(data.listed, name) for name in ("starts", "ids", "values")}
    if data.source is not None:
        arrays |= _source_arrays(data.source)
    return {"path": data.path, "columns": len(data.columns), "column": data.column}, arrays


def usual_rule(task: Chunking) -> str:
    """Of a session: people are asked about spans where there are any."""
    return "part" if task.scheme == PLAIN else "span"


def sensible(data: Corpus, question: Question) -> bool:
    """Nobody is asked whether a comma is a person."""
    if question.kind != "span" or not data.columns:
        return True
    first, _, last, _ = question.numbers
    begin = int(data.offsets[question.x])
    return any(c.isalnum() for word in data.columns[0][begin + first : begin + last + 1] for c in word)


def keep(folder: Path, data: Corpus) -> str:
    return write_inputs(folder, _KIND, to_arrays(data))


def identity(data: Corpus) -> str:
    return identity_of(to_arrays(data))


def kept(folder: Path, task: Chunking) -> Corpus:
    with read_inputs(folder, _KIND) as (meta, arrays):
        words = parted(arrays["words"], arrays["words_start"])
        columns = tuple([words[i] for i in arrays[f"column.{k}"].tolist()] for k in range(meta["columns"]))
        listed = None
        if "names" in arrays:
            names = parted(arrays["names"], arrays["names_start"])
            listed = Listed(names, *(arrays[f"listed.{name}"] for name in ("starts", "ids", "values")))
        own: dict[str, Any] = {"listed": listed, "column": meta["column"], "source": _source_of(arrays)}
        return Corpus(meta["path"], columns, None, arrays["offsets"], arrays["lines"], **own)


def _source_arrays(source: Source) -> dict[str, NDArray[Any]]:
    """The texts, and beside each what else its file says of it, without anybody's labels."""
    places = {f"source.{name}": getattr(source, name) for name in ("of_sentence", "starts", "ends")}
    texts = [document.text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") for document in source.documents]
    if any(text != document.text for text, document in zip(texts, source.documents, strict=True)):
        raise UsageError("a text has half of a character in it (a lone surrogate); mend it")
    rest = [
        json.dumps(
            {"id": each.id, "meta": dict(each.meta), "suggested": [[s.start, s.end, s.label] for s in _suggested(each)]}
        )
        for each in source.documents
    ]
    places["source.texts"], places["source.texts_start"] = joined(texts)
    places["source.rest"], places["source.rest_start"] = joined(rest)
    return places


def _suggested(document: Document) -> tuple[Span, ...]:
    """What is to be asked about first: pre-annotations, or labels that the file has, which nobody believes here."""
    return document.suggested or document.spans or ()


def _source_of(arrays: Mapping[str, NDArray[Any]]) -> Source | None:
    if "source.texts" not in arrays:
        return None
    texts = parted(arrays["source.texts"], arrays["source.texts_start"])
    documents = []
    for text, rest in zip(texts, parted(arrays["source.rest"], arrays["source.rest_start"]), strict=True):
        said = json.loads(rest)
        spans = tuple(Span(int(start), int(end), str(label)) for start, end, label in said["suggested"])
        documents.append(Document(text, id=said["id"], suggested=spans, meta=said["meta"]))
    return Source(documents, *(arrays[f"source.{name}"] for name in ("of_sentence", "starts", "ends")))


def suggested(task: Chunking, data: Corpus) -> list[tuple[int, list[int]]]:
    """(sentence, a question's numbers) of the spans that the inputs came with: what is asked about first."""
    if data.source is None:
        return []
    documents = [replace(each, suggested=_suggested(each)) for each in data.source.documents]
    placed = placed_spans(task, replace(data, source=replace(data.source, documents=documents)), "suggested")
    return [(x, list(numbers)) for x, numbers in placed]


def options_of(task: Chunking) -> dict[str, Any]:
    """That make a task of the same tags from inputs without any."""
    if task.scheme == PLAIN:
        return {"tags": ",".join(task.tags), "scheme": PLAIN, "order": task.order}
    named = _named_types(task.tags, task.scheme, task.type_words)
    own = {"split": task.split} if task.split else {}
    return {"tags": ",".join(named), "scheme": task.scheme, "order": task.order, **own}


def _named_types(tags: Sequence[str], scheme: str, words: Mapping[str, str]) -> list[str]:
    """As ``tags`` has them: the types of chunks with what people call them, or plain tags."""
    if scheme == PLAIN:
        return list(tags)
    types = dict.fromkeys(tag[2:] for tag in tags[:-1])
    return [f"{each}={words[each]}" if each in words else each for each in types]


def kept_options(task: Chunking) -> dict[str, Any]:
    """Options of train as the task has them, also where they were chosen by default."""
    options = {name: getattr(task, name) for name in ("scheme", "order", "only", "split", "hash_bits")}
    return {**options, **options_of(task)}


# Answers that are learned from again (serve/answers.py)


def answer_labels(task: Chunking) -> tuple[str, ...]:
    """What the numbers of labels in questions stand for."""
    return task.tags


def words_of(data: Corpus, x: int) -> tuple[str, ...] | None:
    """What a sentence is found again by in other data; None where there are no words (CRFsuite's attributes)."""
    begin, end = data.offsets[x : x + 2].tolist()
    return tuple(data.columns[0][begin:end]) if data.columns else None


def columns_of(data: Corpus, x: int) -> list[list[str]]:
    """The words of a sentence, and what else is observed of them: a list for each column."""
    begin, end = data.offsets[x : x + 2].tolist()
    return [column[begin:end] for column in data.columns]


def from_columns(inputs: Sequence[tuple[str, Any]], made: Mapping[str, Any], path: str) -> Corpus:
    """Sentences of (where, what ``columns_of`` gave); DataError where it did not."""
    columns: tuple[list[str], ...] | None = None
    offsets = [0]
    for where, given in inputs:
        if not _are_columns(given):
            raise DataError(where, "has no words of the sentence (`columns`); give the session's folder instead")
        if columns is None:
            columns = tuple([] for _ in given)
        if len(given) != len(columns):
            raise DataError(where, f"has {len(given)} columns, and lines before it {len(columns)}")
        for column, mine in zip(columns, given, strict=True):
            column.extend(mine)
        offsets.append(offsets[-1] + len(given[0]))
    return Corpus(path, columns or ([],), None, np.array(offsets, np.int64), column=made.get("column"))


def _are_columns(given: Any) -> bool:
    if not isinstance(given, list) or not given or not all(isinstance(each, list) and each for each in given):
        return False
    words = itertools.chain.from_iterable(given)
    return len({len(each) for each in given}) == 1 and all(isinstance(word, str) and word for word in words)


def about_task(task: Chunking) -> dict[str, Any]:
    """What a task is made of beside its features; goes into JSON."""
    names = ("scheme", "order", "only", "split", "language", "column")
    own: dict[str, Any] = {name: getattr(task, name) for name in names}
    return {**own, "tags": list(task.tags), "type_words": dict(task.type_words)}


def _are_made(made: Mapping[str, Any]) -> bool:
    """Whether this is what ``about_task`` can have given: it may come from a file."""
    tags, words = made.get("tags"), made.get("type_words")
    texts = isinstance(tags, list) and all(isinstance(each, str) for each in tags)
    named = isinstance(words, dict) and all(isinstance(each, str) for each in words.values())
    rest = all(isinstance(made.get(name, 0), str | None) for name in ("only", "split", "language", "column"))
    return texts and named and rest and isinstance(made.get("scheme"), str)


def labels_option(made: Mapping[str, Any]) -> dict[str, Any]:
    """The options that name the same tags where other inputs are read."""
    return {"tags": ",".join(_named_types(made["tags"], made["scheme"], made["type_words"])), "scheme": made["scheme"]}


def fitted(made: Mapping[str, Any], data: Corpus, options: Mapping[str, Any]) -> tuple[Chunking, Corpus]:
    """The task of sentences that ``about_task`` tells, with features as the options (of REFITTED) say."""
    from sparsezo.tasks.chunking.files import fit_options, refuse_templates
    from sparsezo.tasks.chunking.task import Chunking

    if not _are_made(made):
        raise DataError(data.path, "does not say what its task is made of, as a session exports it; export it again")
    scheme, tags, words = made["scheme"], made["tags"], made["type_words"]
    how = {name: made[name] for name in ("split", "language")}
    order, only = made["order"], made["only"]
    chosen = make_options(ChunkingOptions, {"order": order, **options}, "task chunking")
    if data.listed is not None:
        refuse_templates(data.path, chosen)
    given = fit_options(chosen, data)
    named = _named_types(tags, scheme, words)
    task, data = Chunking.fit(data, scheme=scheme, tags=named, **how, **{**given, "only": None})
    return replace(task, only=only), data


def audit_parts(task: Chunking, data: Corpus, n: int, chance: random.Random) -> list[tuple[int, list[int], list[Any]]]:
    """Tokens, all as likely, none twice: (sentence, a question's numbers, no outputs). Of spans: words, no commas."""
    all_tokens: Sequence[int] = range(data.n_tokens)
    if task.scheme != PLAIN and data.columns:
        all_tokens = [i for i, word in enumerate(data.columns[0]) if any(map(str.isalnum, word))] or all_tokens
    tokens = np.array(chance.sample(all_tokens, min(n, len(all_tokens))), np.int64)
    sentences = np.searchsorted(data.offsets, tokens, side="right") - 1
    places = tokens - data.offsets[sentences]
    return [(x, [i, 0, i, 0], []) for x, i in zip(sentences.tolist(), places.tolist(), strict=True)]


def parts_of(data: Corpus, sentences: Sequence[int]) -> list[tuple[int, list[int], list[Any]]]:
    """All their tokens, as ``audit_parts`` has them."""
    lengths = np.diff(data.offsets).tolist()
    return [(x, [i, 0, i, 0], []) for x in sentences for i in range(lengths[x])]


def chunks_in(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """(first, last + 1, type) of the chunks of one sentence."""
    return chunks(tags, np.array([0, len(tags)]))


def label_in(task: Chunking, question: Question, output: NDArray[np.int32]) -> str:
    """What an output says of the token in question, as people name it: an I that starts a chunk is its B."""
    tags = [task.tags[k] for k in output.tolist()]
    if task.scheme != PLAIN:
        tags = in_iob2(tags)
    return str(tags[question.numbers[0]])


def around(task: Chunking, output: NDArray[np.int32]) -> dict[str, Any]:
    """What the model makes of the rest of the sentence, beside a part that it asks about."""
    return {"tags": in_words(task, output)}


def annotated(
    task: Chunking, data: Corpus, outputs: NDArray[np.int32], answers: Sequence[tuple[Question, str, Any]]
) -> Iterator[str]:
    """Columns, tag, and ``answered`` or ``guess``. Where a guess contradicts an answer, the guess gives way."""
    tags, certain = _annotation(task, data, outputs, answers)
    if task.scheme != PLAIN:
        tags = spelled(tags, data.offsets, task.scheme)
    rows = zip(*data.columns, tags, (ANSWERED if each else GUESS for each in certain), strict=True)
    ends = set(data.offsets[1:].tolist())
    for number, row in enumerate(rows, start=1):
        yield " ".join(row) + ("\n\n" if number in ends else "\n")


def annotated_documents(
    task: Chunking,
    data: Corpus,
    outputs: NDArray[np.int32],
    chances: NDArray[np.float32],
    answers: Sequence[tuple[Question, str, Any]],
    *,
    apart: bool = False,
) -> Iterator[Document]:
    """The texts with their spans: those that answers say, of probability 1, and the model's, of its own.

    ``apart``: the model's are ``suggested``. Columns are texts of their words with single spaces between them.
    """
    tags, certain = _annotation(task, data, outputs, answers)
    found = chunks_of(tags, data.offsets)
    firsts, lasts = np.flatnonzero(found.starts).tolist(), np.flatnonzero(found.ends).tolist()
    source = data.source or _pasted(data)
    sentence = np.searchsorted(data.offsets, firsts, side="right") - 1
    spans: dict[int, list[tuple[Span, bool]]] = {}
    for x, first, last in zip(sentence.tolist(), firsts, lasts, strict=True):
        said = all(certain[first : last + 1])
        chance = 1.0 if said else round(float(chances[first]), 6) or None
        made = Span(int(source.starts[first]), int(source.ends[last]), found.types[int(found.type_of[first])], chance)
        spans.setdefault(int(source.of_sentence[x]), []).append((made, said))
    for k, (document, (tokens, sentences)) in enumerate(zip(source.documents, data.placed(source), strict=True)):
        mine = spans.get(k, [])
        yield replace(
            document,
            spans=tuple(span for span, said in mine if said or not apart),
            suggested=tuple(span for span, said in mine if apart and not said),
            tokens=tokens,
            sentences=sentences,
        )


def _pasted(data: Corpus) -> Source:
    """Where tokens stand in sentences that are pasted of their words, a document each."""
    documents = list(documents_from_columns(replace(data, tags=None)))
    places = np.array([place for document in documents for place in document.tokens or ()], np.int64).reshape(-1, 2)
    return Source(documents, np.arange(len(documents)), places[:, 0], places[:, 1])


def _annotation(
    task: Chunking, data: Corpus, outputs: NDArray[np.int32], answers: Sequence[tuple[Question, str, Any]]
) -> tuple[list[str], list[bool]]:
    """(the tag of each token, whether an answer says it)"""
    tags = [task.tags[k] for k in outputs.tolist()]
    certain = [False] * len(tags)
    for question, kind, answer in answers:
        begin = int(data.offsets[question.x])
        for place, tag in _said(task, question, kind, answer):
            tags[begin + place], certain[begin + place] = tag, True
    if task.scheme != PLAIN:
        _agree(tags, certain, data.offsets.tolist())
    return tags, certain


def in_text(data: Corpus, question: Question) -> dict[str, Any]:
    """The words that a question is about; of raw text, the document and the characters that they take in it, too."""
    begin, end = data.offsets[question.x : question.x + 2].tolist()
    first, last = (0, end - begin - 1) if question.outputs else (question.numbers[0], question.numbers[2])
    if data.source is None:
        return {"part": " ".join(data.columns[0][begin + first : begin + last + 1]) if data.columns else None}
    where = data.source.where(question.x, begin + first, begin + last + 1)
    return {"part": data.source.text(question.x, begin + first, begin + last), **where}


def _said(task: Chunking, question: Question, kind: str, answer: Any) -> list[tuple[int, str]]:
    """Tokens whose tag the answer says, with the tag."""
    if kind == "span":
        return _said_of_span(task, question, answer)
    if kind not in ("part", "label") or (kind == "part" and answer != "yes"):
        return []
    first, shown, last, _ = question.numbers
    if question.about == "token":
        return [(first, task.tags[shown] if kind == "part" else answer)]
    tag = task.tags[shown]
    if kind == "label":
        if answer == OUTSIDE:  # no chunk with these ends: which tags there are is left open
            return []
        tag = next(each for each in task.tags if each[0] == "B" and (each[2:] or "chunk") == answer)
    return _span_tags(first, last, tag)


def _said_of_span(task: Chunking, question: Question, answer: Any) -> list[tuple[int, str]]:
    """Its own tokens, and those that it was asked about before the first of them."""
    first, shown, last, _ = question.numbers
    if answer == "yes":
        return _span_tags(first, last, task.tags[shown])
    if answer == OUTSIDE:
        return [(place, OUTSIDE) for place in range(first, last + 1)]
    begin, end = answer["first"], answer["last"]
    tag = next(each for each in task.tags if each[0] == "B" and (each[2:] or "chunk") == answer["label"])
    return [*((place, OUTSIDE) for place in range(first, begin)), *_span_tags(begin, end, tag)]


def _span_tags(first: int, last: int, tag: str) -> list[tuple[int, str]]:
    return [(first, tag), *((place, "I" + tag[1:]) for place in range(first + 1, last + 1))]


def _agree(tags: list[str], certain: list[bool], offsets: list[int]) -> None:
    """An answered I goes on a chunk: guesses before it become part of one of its type."""
    for begin, end in itertools.pairwise(offsets):
        for i in range(end - 1, begin, -1):
            before = tags[i - 1]
            if certain[i] and tags[i][0] == "I" and not certain[i - 1] and before[1:] != tags[i][1:]:
                tags[i - 1] = "B" + tags[i][1:]


def prompt(data: Corpus, x: int) -> str:
    begin, end = data.offsets[x : x + 2].tolist()
    if data.source is not None:
        return data.source.text(x, begin, end - 1)
    return " ".join(data.columns[0][begin:end]) if data.columns else f"{data.path}, sentence {x + 1}"


def output_text(task: Chunking, data: Corpus, x: int, output: NDArray[np.int32]) -> str:
    return " ".join(task.words(output, np.array([0, output.size])))
