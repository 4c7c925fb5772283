"""convert: texts with spans from one tool's format into another's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

from sparsezo.cli import show
from sparsezo.errors import UsageError, quoted
from sparsezo.messages import counted
from sparsezo.options import Values
from sparsezo.storage.files import STANDARD_INPUT, ending
from sparsezo.tasks.chunking.io.documents import Document
from sparsezo.tasks.chunking.io.formats import FORMATS, TABLE, TEXT, read_documents, write_documents
from sparsezo.tasks.chunking.io.raw import language_of
from sparsezo.tasks.chunking.io.segmentation import segment

_BY_ENDING = {  # of what is written, where nobody says
    ".jsonl": "jsonl",
    ".conll": "conll",
    ".txt": "conll",
    ".spacy": "spacy",
    ".parquet": "datasets",
    ".zip": "brat",
    ".json": "label-studio",
}
_WITHOUT_TOKENS = ("jsonl", "brat", "label-studio")


def run_convert(values: Values) -> None:
    """Read all, write all: a file is whole or not there."""
    target, format = values["output"], values["to"] or _BY_ENDING.get(ending(values["output"]))
    if format is None:
        raise UsageError(f"{target}: which format is it to have? name one with `to`: {', '.join(FORMATS)}")
    for name, value, known in (("from", values["from_"], (*FORMATS, TEXT, TABLE)), ("to", format, FORMATS)):
        if value is not None and value not in known:
            raise UsageError(f"`{name}` {quoted(value)}: choose from {', '.join(known)}")
    documents = list(read_documents(values["input"], values["from_"], texts=True))
    done = documents if format in _WITHOUT_TOKENS else list(_with_tokens(documents))
    write_documents(done, format, sys.stdout.buffer if target == STANDARD_INPUT else target)
    spans = sum(len(document.spans or ()) for document in documents)
    show.note(f"{target}: {counted(len(documents), 'document')}, {counted(spans, 'span')}, as {format}")


def _with_tokens(documents: list[Document]) -> Iterator[Document]:
    """Where a document has none they are found by rule, and one ends wherever a span begins or ends."""
    language = language_of(documents)
    for document in documents:
        if document.tokens is None:
            borders = [(span.start, span.end) for span in (*(document.spans or ()), *document.suggested)]
            starts, ends, sentences = segment(document.text, spans=borders, language=language)
            tokens = tuple(zip(starts.tolist(), ends.tolist(), strict=True))
            document = replace(document, tokens=tokens, sentences=tuple(sentences.tolist()))
        yield document
