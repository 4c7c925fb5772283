"""spaCy's DocBin (.spacy): what ``spacy train`` reads, and ``DocBin().from_disk(path).get_docs(nlp.vocab)``.

Tokens get spaCy's form (``spans.pieces``), so that ``doc.text`` is the document's text; entities are its spans, none
over another. ``doc.user_data`` has the ``id``, the ``probabilities`` of ``doc.ents`` where there are some, and under
``sparsezo``, as JSON, what a Doc has no place for.
"""

from __future__ import annotations

import itertools
import json
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from typing import IO, TYPE_CHECKING

from sparsezo.errors import DataError, need, shown
from sparsezo.storage.files import reading
from sparsezo.tasks.base import Json
from sparsezo.tasks.chunking.io.conll import AnyPath
from sparsezo.tasks.chunking.io.documents import Document, Offsets, Span, without_overlap
from sparsezo.tasks.chunking.io.formats.json_formats import as_object, json_line, marked_object
from sparsezo.tasks.chunking.io.formats.spans import Given, Remarks, check_document, pieces, placed, words_among

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

_OWN = "sparsezo"  # the key of user_data
_ATTRIBUTES = ["ENT_IOB", "ENT_TYPE", "SENT_START"]
_MISSING = 0  # ENT_IOB of a token that nobody said anything of
_BEGINS = 1  # SENT_START of a sentence's first token


def read_docbin(path: AnyPath, stream: IO[bytes], remarks: Remarks) -> Iterator[Document]:
    need("spacy")
    from spacy.tokens import DocBin
    from spacy.vocab import Vocab

    with reading(path):
        data = stream.read()
    docs = None
    for number in itertools.count(1):
        try:
            docs = docs or DocBin().from_bytes(data).get_docs(Vocab())
            doc = next(docs, None)
        except Exception as error:  # of zlib, msgpack, or what has other fields: spaCy checks nothing itself
            why = f"{type(error).__name__}: {shown(error)}"
            raise DataError(
                str(path), f"is no whole DocBin of spaCy ({why}); write it anew with DocBin.to_disk"
            ) from None
        if doc is None:
            return
        where = f"{path}: document {number}"
        document = _with_own(_plain(doc), doc.user_data, where, remarks)
        check_document(document, where)
        yield document


def _plain(doc: Doc) -> Document:
    starts, lengths, states, begins = doc.to_array(["IDX", "LENGTH", "ENT_IOB", "SENT_START"]).T
    text = doc.text
    tokens = words_among(text, list(zip(starts.tolist(), (starts + lengths).tolist(), strict=True)))
    spans = tuple(Span(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents)
    known = states != _MISSING
    sentences = None
    if len(doc) and doc.has_annotation("SENT_START"):  # white space makes none
        numbers = [bisect_left(tokens, at, key=lambda token: token[0]) for at in starts[begins == _BEGINS].tolist()]
        sentences = tuple(sorted({0, *numbers, len(tokens)}))
    return Document(
        text,
        spans=spans if known.any() or not len(doc) else None,
        missing=bool(known.any() and not known.all()),
        tokens=tokens,
        sentences=sentences,
    )


def _with_own(document: Document, user_data: Json, where: str, remarks: Remarks) -> Document:
    """What we wrote beside a Doc, where the Doc still is as we wrote it."""
    id, probabilities = user_data.get("id"), user_data.get("probabilities")
    spans = document.spans
    if spans is not None and isinstance(probabilities, list | tuple) and len(probabilities) == len(spans):
        spans = tuple(Span(s.start, s.end, s.label, p) for s, p in zip(spans, probabilities, strict=True))
    own: Json = {}
    if isinstance(user_data.get(_OWN), str):
        try:
            own = json.loads(user_data[_OWN])
            suggested, rejected = (
                placed([marked_object(each, where) for each in own.get(name, [])], document.text, where, remarks)
                for name in ("suggested", "rejected")
            )
            tokens = tuple((start, end) for start, end in own["tokens"]) if "tokens" in own else document.tokens
            sentences = own.get("sentences", document.sentences)
            labelled = own.get("labelled", spans is not None)
            return replace(
                document,
                id=id if isinstance(id, str) else None,
                spans=(spans or ()) if labelled else None,
                suggested=suggested,
                rejected=rejected,
                missing=bool(own.get("missing", document.missing)),
                tokens=tokens,
                sentences=None if sentences is None else tuple(sentences),
                meta=own.get("meta", {}),
            )
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise DataError(where, f"user_data['{_OWN}'] is not as it was written ({error}); remove it") from None
    return replace(document, id=str(id) if isinstance(id, str | int) else None, spans=spans)


def write_docbin(documents: Given, stream: IO[bytes], remarks: Remarks) -> None:
    """Documents without tokens get those of spaCy's tokeniser for any language."""
    need("spacy")
    import spacy
    from spacy.tokens import DocBin
    from spacy.vocab import Vocab

    vocab, tokeniser = Vocab(), None
    bin = DocBin(attrs=_ATTRIBUTES, store_user_data=True)
    for where, document in documents:
        tokens = document.tokens
        if tokens is None:
            tokeniser = tokeniser or spacy.blank("xx").tokenizer
            tokens = tuple((token.idx, token.idx + len(token.text)) for token in tokeniser(document.text))
            tokens = words_among(document.text, tokens)
        bin.add(_doc(document, tokens, vocab, where, remarks))
    stream.write(bin.to_bytes())


def _doc(document: Document, tokens: Offsets, vocab: Vocab, where: str, remarks: Remarks) -> Doc:
    from spacy.tokens import Doc
    from spacy.tokens import Span as Entity

    spans, left_out = without_overlap(document.spans or ())
    remarks.count("span", "left out: of spans that overlap the longest is kept", left_out)
    if any(not span.label for span in spans):
        raise DataError(where, "a span without a label, which spaCy cannot have; name it")
    made = pieces(document.text, tokens, spans)
    starts = None
    if document.sentences is not None:
        begins = {document.tokens[i][0] for i in document.sentences[:-1]} if document.tokens else set()
        starts = [i == 0 or place[0] in begins for i, place in enumerate(made.places)]
    words = [document.text[start:end] for start, end in made.places]
    doc = Doc(vocab, words=words, spaces=made.spaces, sent_starts=starts)
    entities = [Entity(doc, *made.covered(span), label=span.label) for span in spans]
    unknown = document.missing or document.spans is None
    doc.set_ents(entities, default="missing" if unknown else "outside")
    if document.id is not None:
        doc.user_data["id"] = document.id
    if any(span.probability is not None for span in spans):
        doc.user_data["probabilities"] = [span.probability for span in spans]
    if own := _own(document, _plain(doc)):
        doc.user_data[_OWN] = json_line(own).decode()
    return doc


def _own(document: Document, plain: Document) -> Json:
    own: Json = {}
    if (document.spans is None) != (plain.spans is None):
        own["labelled"] = document.spans is not None
    for name, spans in (("suggested", document.suggested), ("rejected", document.rejected)):
        if spans:
            own[name] = [as_object(span) for span in spans]
    if document.missing != plain.missing:
        own["missing"] = document.missing
    if document.tokens is not None and document.tokens != plain.tokens:
        own["tokens"] = [list(token) for token in document.tokens]
    if document.tokens is not None and document.sentences != plain.sentences:
        own["sentences"] = document.sentences
    return {**own, "meta": dict(document.meta)} if document.meta else own
