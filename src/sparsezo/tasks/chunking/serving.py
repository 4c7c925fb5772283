"""What a session with people needs of chunking: questions in words that somebody who has never heard of tags
understands, inputs kept beside the log, parts to audit, the corpus so far.

>>> with_article("organisation"), with_article("place")
('an organisation', 'a place')
>>> type_words("LOC", {}), type_words("DRUG", {"DRUG": "medicine"}), type_words("GENE", {})
('place', 'medicine', 'GENE')
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, UsageError
from sparsezo.kernels.codes import NOT_SAID
from sparsezo.options import Values, make_options
from sparsezo.questions import Proposal, Question, reviewed
from sparsezo.storage.texts import joined, parted
from sparsezo.tasks.base import AnyArray, Arrays, Json, Problem
from sparsezo.tasks.chunking.io.conll import Corpus, Encoded, Listed, Source
from sparsezo.tasks.chunking.io.documents import Document, Span, documents_from_columns
from sparsezo.tasks.chunking.metric import chunks
from sparsezo.tasks.chunking.options import PLAIN, ChunkingOptions
from sparsezo.tasks.chunking.start import placed_spans
from sparsezo.tasks.chunking.tags import IOB2, OUTSIDE, chunks_of, in_iob2, spelled
from sparsezo.tasks.serving import ANSWERED, GUESS, Answer, Part, TaskServing

if TYPE_CHECKING:
    from sparsezo.tasks.chunking.reviewing import Reviewing
    from sparsezo.tasks.chunking.task import Chunking

Made = Values  # what ``about_task`` gave, or a file
_Given = Any  # what came from a file, or an answer


_WORDS = {  # of types that are known by these names in many collections; `tags` PER=person gives other words
    "PER": "person",
    "PERSON": "person",
    "LOC": "place",
    "LOCATION": "place",
    "GPE": "country, city or state",
    "FAC": "building or other facility",
    "ORG": "organisation",
    "ORGANIZATION": "organisation",
    "NORP": "nationality, religious or political group",
    "MISC": "name of another kind",
    "DATE": "date",
    "TIME": "time",
    "MONEY": "amount of money",
    "PERCENT": "percentage",
    "PRODUCT": "product",
    "EVENT": "event",
    "LAW": "law",
    "LANGUAGE": "language",
    "NP": "noun phrase",
    "VP": "verb phrase",
    "PP": "prepositional phrase",
    "ADJP": "adjective phrase",
    "ADVP": "adverb phrase",
    "": "span",
}
NOTHING = "none of these"

_OF_REVIEW = "Is all of this right? If not, how should it be?"
_OF_OUTPUTS = {
    1: "How bad is this, from 0 (all right) to 1 (all wrong)?",
    2: "Which is better, the first or the second?",
}


def shown(task: Chunking, data: Corpus, question: Question | Proposal) -> Json:
    """words, question; part, label and span: first, last (places of tokens), part, tag; others: outputs, tags of each;
    review: tags, and marked, the places of tokens that it is about.

    Of raw text also ``gaps``: what stands behind each token, and ``where``: the document and the sentence's place.
    """
    begin, end = data.offsets[question.x : question.x + 2].tolist()
    words = _words(data, begin, end)
    made: Json = {"words": words}
    if data.source is not None:
        made["gaps"] = data.source.gaps(question.x, begin, end)
        made["where"] = data.source.where(question.x, begin, end)
    if isinstance(question, Question) and question.kind == "review":
        marked = np.flatnonzero(question.outputs[1]).tolist()
        return {**made, "tags": in_words(task, question.outputs[0]), "marked": marked, "question": _OF_REVIEW}
    if isinstance(question, Proposal) or question.outputs:
        outputs = [in_words(task, each) for each in question.outputs]
        return {**made, "outputs": outputs, "question": _OF_OUTPUTS[len(outputs)]}
    first, label, last, _ = question.numbers
    tag = task.tags[label]
    part = " ".join(words[first : last + 1])
    if data.source is not None:
        part = " ".join(data.source.text(question.x, begin + first, begin + last).split())
    if question.kind == "label":
        text = _of_label(task, question, part)
    else:
        text = _of_part(task, question.about, part, tag)
    return {**made, "first": first, "last": last, "part": part, "tag": tag, "question": text}


def in_words(task: Chunking, output: AnyArray) -> list[str]:
    """The tags of an output, as people see them."""
    if task.scheme == IOB2:
        return in_iob2([task.tags[k] for k in output.tolist()])
    return task.words(output, np.array([0, len(output)]))


def type_words(kind: str, own: Mapping[str, str]) -> str:
    """What a type of span is called: by ``own`` words (of `tags` PER=person), by those usual for it, or by itself."""
    return own.get(kind) or _WORDS.get(kind) or kind


def with_article(words: str) -> str:
    """In English, as far as the first letter tells."""
    return f"{'an' if words[:1] in 'aeiouAEIOU' else 'a'} {words}"


def choice_words(task: Chunking, choices: Sequence[str]) -> dict[str, str]:
    """What each answer that can be chosen says, for people: of types, of tags; plain tags say themselves."""
    if task.scheme == PLAIN:
        return {name: name for name in choices}
    made = {}
    for name in choices:
        letter, dash, kind = name.partition("-")
        if name == OUTSIDE:
            made[name] = NOTHING
        elif name in task.tags and (dash or not kind) and letter in ("B", "I"):
            place = "first word" if letter == "B" else "a later word"
            made[name] = f"{place} of {with_article(type_words(kind, task.type_words))}"
        else:
            made[name] = type_words("" if name == "chunk" else name, task.type_words)
    return made


def described(task: Chunking, kind: str) -> str:
    """A type with its article, and its own name where that is another: a place (LOC)."""
    words = type_words(kind, task.type_words)
    return with_article(words) + (f" ({kind})" if kind and kind != words else "")


def _of_part(task: Chunking, about: str, part: str, tag: str) -> str:
    if task.scheme == PLAIN:
        return f"Is '{part}' a {tag}?"
    if tag == OUTSIDE:
        return f"Is '{part}' {NOTHING}: {_all_types(task)}?"
    place = "" if about == "chunk" else "the first word of " if tag[0] == "B" else "a later word of "
    return f"Is '{part}' {place}{described(task, tag[2:])}?"


def _of_label(task: Chunking, question: Question, part: str) -> str:
    if task.scheme == PLAIN:
        return f"What is the tag of '{part}': {', '.join(question.choices)}?"
    if question.about == "chunk":
        return f"What is '{part}': {_all_types(task)}, or {NOTHING}?"
    return f"What is '{part}': a word of {_all_types(task)}, or of {NOTHING}?"


def _all_types(task: Chunking) -> str:
    names = [described(task, tag[2:]) for tag in task.tags if tag[0] == "B"]
    if len(names) > 8:
        names = [*names[:7], "..."]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _words(data: Corpus, begin: int, end: int) -> list[str]:
    if data.columns:
        return data.columns[0][begin:end]
    listed = data.listed  # attributes are all that is known of a token
    if listed is None:
        return [""] * (end - begin)
    spans = zip(listed.starts[begin:end].tolist(), listed.starts[begin + 1 : end + 1].tolist(), strict=True)
    return [" ".join(listed.names[k] for k in listed.ids[a:b].tolist()) for a, b in spans]


class ChunkingServing(TaskServing["Chunking", Corpus]):
    """Sentences: questions are about tokens, spans or whole outputs."""

    KIND = "sentences"
    ENDING = "conll"
    REFITTED = ("order", "features", "clusters", "gazetteer", "vectors", "template", "min_count", "hash_bits")

    def to_arrays(self, data: Corpus) -> tuple[Json, Arrays]:
        """The sentences without their tags: nobody who answers is helped by these."""
        words = list(dict.fromkeys(itertools.chain.from_iterable(data.columns)))
        number = {word: k for k, word in enumerate(words)}.__getitem__
        arrays: Arrays = {"offsets": data.offsets, "lines": data.lines}
        for k, column in enumerate(data.columns):
            arrays[f"column.{k}"] = np.fromiter(map(number, column), np.int32, len(column))
        arrays["words"], arrays["words_start"] = joined(words)
        if data.listed is not None:
            arrays["names"], arrays["names_start"] = joined(data.listed.names)
            arrays |= {f"listed.{name}": getattr(data.listed, name) for name in ("starts", "ids", "values")}
        if data.source is not None:
            arrays |= _source_arrays(data.source)
        meta: Json = {"path": data.path, "columns": len(data.columns), "column": data.column}
        if data.encoded is not None:
            meta["encoded"], arrays["encoded"] = data.encoded.known_by, data.encoded.rows
        return meta, arrays

    def usual_rule(self, task: Chunking) -> str:
        """Of a session: people review whole sentences."""
        return "review"

    def reviewing(self, task: Chunking, problem: Problem) -> Reviewing:
        from sparsezo.tasks.chunking.reviewing import Reviewing

        return Reviewing(task, problem)

    def sensible(self, data: Corpus, question: Question) -> bool:
        """Nobody is asked whether a comma is a person."""
        if question.kind != "span" or not data.columns:
            return True
        first, _, last, _ = question.numbers
        begin = int(data.offsets[question.x])
        return any(c.isalnum() for word in data.columns[0][begin + first : begin + last + 1] for c in word)

    def from_arrays(self, meta: Made, arrays: Arrays) -> Corpus:
        words = parted(arrays["words"], arrays["words_start"])
        columns = tuple([words[i] for i in arrays[f"column.{k}"].tolist()] for k in range(meta["columns"]))
        listed = None
        if "names" in arrays:
            names = parted(arrays["names"], arrays["names_start"])
            listed = Listed(names, *(arrays[f"listed.{name}"] for name in ("starts", "ids", "values")))
        encoded = None
        if "encoded" in meta:
            rows = arrays["encoded"]
            if rows.dtype != np.float32 or rows.ndim != 2 or len(rows) != arrays["offsets"][-1]:
                raise ValueError(f"vectors of type {rows.dtype} and shape {rows.shape}")
            encoded = Encoded(rows, meta["encoded"])
        own: Json = {"listed": listed, "column": meta["column"], "source": _source_of(arrays), "encoded": encoded}
        return Corpus(meta["path"], columns, None, arrays["offsets"], arrays["lines"], **own)

    def suggested(self, task: Chunking, data: Corpus) -> list[tuple[int, list[int]]]:
        if data.source is None:
            return []
        documents = [replace(each, suggested=_suggested(each)) for each in data.source.documents]
        placed = placed_spans(task, replace(data, source=replace(data.source, documents=documents)), "suggested")
        return [(x, list(numbers)) for x, numbers in placed]

    def options_of(self, task: Chunking) -> Json:
        own: Json = {"split": task.split} if task.split and task.scheme != PLAIN else {}
        if task.vectors is not None and task.vectors.name is not None:
            own["vectors"] = task.vectors.name
        return {**self.labels_option(self.about_task(task)), "order": task.order, **own}

    def kept_options(self, task: Chunking) -> Json:
        options = {name: getattr(task, name) for name in ("scheme", "order", "only", "split", "hash_bits")}
        return {**options, **self.options_of(task)}

    def answer_labels(self, task: Chunking) -> tuple[str, ...]:
        return task.tags

    def words_of(self, data: Corpus, x: int) -> tuple[str, ...] | None:
        """What a sentence is found again by in other data; None where there are no words (CRFsuite's attributes)."""
        return tuple(self.columns_of(data, x)[0]) if data.columns else None

    def columns_of(self, data: Corpus, x: int) -> list[list[str]]:
        """The words of a sentence, and what else is observed of them: a list for each column."""
        begin, end = data.offsets[x : x + 2].tolist()
        return [column[begin:end] for column in data.columns]

    def from_columns(self, inputs: Sequence[tuple[str, _Given]], made: Made, path: str) -> Corpus:
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

    def about_task(self, task: Chunking) -> Json:
        names = ("scheme", "order", "only", "split", "language", "column")
        own: Json = {name: getattr(task, name) for name in names}
        return {**own, "tags": list(task.tags), "type_words": dict(task.type_words)}

    def labels_option(self, made: Made) -> Json:
        named = _named_types(made["tags"], made["scheme"], made["type_words"])
        return {"tags": ",".join(named), "scheme": made["scheme"]}

    def fitted(self, made: Made, data: Corpus, options: Mapping[str, object]) -> tuple[Chunking, Corpus]:
        from sparsezo.tasks.chunking.io.files import fit_options, refuse_templates
        from sparsezo.tasks.chunking.task import Chunking

        if not _are_made(made):
            raise DataError(
                data.path, "does not say what its task is made of, as a session exports it; export it again"
            )
        chosen = make_options(ChunkingOptions, {"order": made["order"], **options}, "task chunking")
        if data.listed is not None:
            refuse_templates(data.path, chosen)
        how = {**fit_options(chosen, data), **{name: made[name] for name in ("scheme", "split", "language")}}
        named = _named_types(made["tags"], made["scheme"], made["type_words"])
        task, data = Chunking.fit(data, tags=named, **{**how, "only": None})
        return replace(task, only=made["only"]), data

    def audit_parts(self, task: Chunking, data: Corpus, n: int, chance: random.Random) -> list[Part]:
        """Tokens; where questions are about spans, only words, no commas."""
        all_tokens: Sequence[int] = range(data.n_tokens)
        if task.scheme != PLAIN and data.columns:
            all_tokens = [i for i, word in enumerate(data.columns[0]) if any(map(str.isalnum, word))] or all_tokens
        tokens = np.array(chance.sample(all_tokens, min(n, len(all_tokens))), np.int64)
        sentences = np.searchsorted(data.offsets, tokens, side="right") - 1
        places = tokens - data.offsets[sentences]
        return [(x, [i, 0, i, 0], []) for x, i in zip(sentences.tolist(), places.tolist(), strict=True)]

    def parts_of(self, data: Corpus, sentences: Sequence[int]) -> list[Part]:
        lengths = np.diff(data.offsets).tolist()
        return [(x, [i, 0, i, 0], []) for x in sentences for i in range(lengths[x])]

    def has_chunks(self, task: Chunking) -> bool:
        return task.metric == "f1"

    def chunks_in(self, tags: Sequence[str]) -> list[tuple[int, int, str]]:
        return chunks(tags, np.array([0, len(tags)]))

    def label_in(self, task: Chunking, question: Question, output: NDArray[np.int32]) -> str:
        """What an output says of the token in question, as people name it: an I that starts a chunk is its B."""
        tags = [task.tags[k] for k in output.tolist()]
        return (tags if task.scheme == PLAIN else in_iob2(tags))[question.numbers[0]]

    shown = staticmethod(shown)
    choice_words = staticmethod(choice_words)

    def around(self, task: Chunking, output: NDArray[np.int32]) -> Json:
        return {"tags": in_words(task, output)}

    def annotated(
        self, task: Chunking, data: Corpus, outputs: NDArray[np.int32], answers: Sequence[Answer]
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
        self,
        task: Chunking,
        data: Corpus,
        outputs: NDArray[np.int32],
        chances: NDArray[np.float32],
        answers: Sequence[Answer],
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
            label = found.types[int(found.type_of[first])]
            made = Span(int(source.starts[first]), int(source.ends[last]), label, chance)
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

    def in_text(self, data: Corpus, question: Question) -> Json:
        """The words that a question is about; of raw text, also the document and their characters in it."""
        begin, end = data.offsets[question.x : question.x + 2].tolist()
        first, last = (0, end - begin - 1) if question.outputs else (question.numbers[0], question.numbers[2])
        if data.source is None:
            return {"part": " ".join(data.columns[0][begin + first : begin + last + 1]) if data.columns else None}
        where = data.source.where(question.x, begin + first, begin + last + 1)
        return {"part": data.source.text(question.x, begin + first, begin + last), **where}

    def prompt(self, data: Corpus, x: int) -> str:
        begin, end = data.offsets[x : x + 2].tolist()
        if data.source is not None:
            return data.source.text(x, begin, end - 1)
        return " ".join(self.words_of(data, x) or [f"{data.path}, sentence {x + 1}"])

    def output_text(self, task: Chunking, data: Corpus, x: int, output: NDArray[np.int32]) -> str:
        return " ".join(task.words(output, np.array([0, output.size])))


def _source_arrays(source: Source) -> Arrays:
    """The texts, and beside each what else its file says of it, without anybody's labels."""
    places = {f"source.{name}": getattr(source, name) for name in ("of_sentence", "starts", "ends")}
    texts = [document.text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") for document in source.documents]
    if any(text != document.text for text, document in zip(texts, source.documents, strict=True)):
        raise UsageError("a text has half of a character in it (a lone surrogate); mend it")
    spans = ([[span.start, span.end, span.label] for span in _suggested(each)] for each in source.documents)
    rest = [
        json.dumps({"id": each.id, "meta": dict(each.meta), "suggested": mine})
        for each, mine in zip(source.documents, spans, strict=True)
    ]
    places["source.texts"], places["source.texts_start"] = joined(texts)
    places["source.rest"], places["source.rest_start"] = joined(rest)
    return places


def _suggested(document: Document) -> tuple[Span, ...]:
    """What is to be asked about first: pre-annotations, or labels that the file has, which nobody believes here."""
    return document.suggested or document.spans or ()


def _source_of(arrays: Arrays) -> Source | None:
    if "source.texts" not in arrays:
        return None
    texts = parted(arrays["source.texts"], arrays["source.texts_start"])
    documents = []
    for text, rest in zip(texts, parted(arrays["source.rest"], arrays["source.rest_start"]), strict=True):
        said = json.loads(rest)
        spans = tuple(Span(int(start), int(end), str(label)) for start, end, label in said["suggested"])
        documents.append(Document(text, id=said["id"], suggested=spans, meta=said["meta"]))
    return Source(documents, *(arrays[f"source.{name}"] for name in ("of_sentence", "starts", "ends")))


def _named_types(tags: Sequence[str], scheme: str, words: Mapping[str, str]) -> list[str]:
    """As ``tags`` has them: the types of chunks with what people call them, or plain tags."""
    if scheme == PLAIN:
        return list(tags)
    types = dict.fromkeys(tag[2:] for tag in tags[:-1])
    return [f"{each}={words[each]}" if each in words else each for each in types]


def _are_columns(given: object) -> bool:
    if not isinstance(given, list) or not given or not all(isinstance(each, list) and each for each in given):
        return False
    words = itertools.chain.from_iterable(given)
    return len({len(each) for each in given}) == 1 and all(isinstance(word, str) and word for word in words)


def _are_made(made: Made) -> bool:
    """Whether this is what ``about_task`` can have given: it may come from a file."""
    tags, words = made.get("tags"), made.get("type_words")
    texts = isinstance(tags, list) and all(isinstance(each, str) for each in tags)
    named = isinstance(words, dict) and all(isinstance(each, str) for each in words.values())
    rest = all(isinstance(made.get(name, 0), str | None) for name in ("only", "split", "language", "column"))
    return texts and named and rest and isinstance(made.get("scheme"), str)


def _pasted(data: Corpus) -> Source:
    """Where tokens stand in sentences that are pasted of their words, a document each."""
    documents = list(documents_from_columns(replace(data, tags=None)))
    places = np.array([place for document in documents for place in document.tokens or ()], np.int64).reshape(-1, 2)
    return Source(documents, np.arange(len(documents)), places[:, 0], places[:, 1])


def _annotation(
    task: Chunking, data: Corpus, outputs: NDArray[np.int32], answers: Sequence[Answer]
) -> tuple[list[str], list[bool]]:
    tags = [task.tags[k] for k in outputs.tolist()]
    certain = [False] * len(tags)
    for question, kind, answer in answers:
        begin = int(data.offsets[question.x])
        for place, tag in _said(task, question, kind, answer):
            tags[begin + place], certain[begin + place] = tag, True
    if task.scheme != PLAIN:
        _agree(tags, certain, data.offsets.tolist())
    return tags, certain


def _said(task: Chunking, question: Question, kind: str, answer: _Given) -> list[tuple[int, str]]:
    if kind == "span":
        return _said_of_span(task, question, answer)
    if kind == "review":
        named = question.offering({tag: k for k, tag in enumerate(task.tags)})
        output, how = (each.tolist() for each in reviewed(named, answer))
        return [(i, task.tags[tag]) for i, (tag, said) in enumerate(zip(output, how, strict=True)) if said != NOT_SAID]
    if kind not in ("part", "label") or (kind == "part" and answer != "yes"):
        return []
    first, shown, last, _ = question.numbers
    if question.about == "token":
        return [(first, task.tags[shown] if kind == "part" else answer)]
    tag = task.tags[shown]
    if kind == "label":
        if answer == OUTSIDE:  # no chunk with these ends: which tags there are is left open
            return []
        tag = _begin(task, answer)
    return _span_tags(first, last, tag)


def _said_of_span(task: Chunking, question: Question, answer: _Given) -> list[tuple[int, str]]:
    """Its own tokens, and those that it was asked about before the first of them."""
    first, shown, last, _ = question.numbers
    if answer == "yes":
        return _span_tags(first, last, task.tags[shown])
    if answer == OUTSIDE:
        return [(place, OUTSIDE) for place in range(first, last + 1)]
    begin, end = answer["first"], answer["last"]
    outside = [(place, OUTSIDE) for place in range(first, begin)]
    return outside + _span_tags(begin, end, _begin(task, answer["label"]))


def _begin(task: Chunking, label: str) -> str:
    """The tag that begins a chunk of what people call so."""
    return next(each for each in task.tags if each[0] == "B" and (each[2:] or "chunk") == label)


def _span_tags(first: int, last: int, tag: str) -> list[tuple[int, str]]:
    return [(first, tag), *((place, "I" + tag[1:]) for place in range(first + 1, last + 1))]


def _agree(tags: list[str], certain: list[bool], offsets: list[int]) -> None:
    """An answered I goes on a chunk: guesses before it become part of one of its type."""
    for begin, end in itertools.pairwise(offsets):
        for i in range(end - 1, begin, -1):
            before = tags[i - 1]
            if certain[i] and tags[i][0] == "I" and not certain[i - 1] and before[1:] != tags[i][1:]:
                tags[i - 1] = "B" + tags[i][1:]


SERVING = ChunkingServing()
