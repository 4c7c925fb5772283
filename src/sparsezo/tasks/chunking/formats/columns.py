"""Column files: read by conll.py, a document for each sentence; written as a token and its IOB2 tag a line.

    -DOCSTART- 7 O

    In O
    Madrid B-LOC
    . O

Where there are several documents, each begins with a -DOCSTART- line that has its id. A token with blanks or line
ends in it takes a line for each of its parts.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import IO

from sparsezo.errors import DataError, quoted
from sparsezo.tasks.chunking.conll import read_conll
from sparsezo.tasks.chunking.documents import Document, documents_from_columns
from sparsezo.tasks.chunking.formats.remarks import Remarks, as_tags
from sparsezo.tasks.chunking.tags import IOB2, OUTSIDE, is_chunk_tag, understood

# What a reader of columns may take for the end of a cell or of a line; a no-break space may stand in a token.
_MARK = "\ufeff"
_PARTS = re.compile(r"[^ \t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")


def read_columns(path: str | os.PathLike[str], stream: IO[bytes], remarks: Remarks) -> Iterator[Document]:
    """Words in the first column, and chunk tags, in any scheme, in the last of several."""
    corpus = read_conll(path, tagged=False, stream=stream)
    if corpus.tags is None and len(corpus.columns) > 1:
        if odd := next((tag for tag in dict.fromkeys(corpus.columns[-1]) if not is_chunk_tag(tag)), None):
            line = corpus.where(corpus.columns[-1].index(odd))
            raise DataError(
                line, f"'{quoted(odd)}' in the last column is no chunk tag, such as O and B-LOC; make it so"
            )
        corpus = understood(replace(corpus, columns=corpus.columns[:-1], tags=corpus.columns[-1]), IOB2)[1]
    elif corpus.tags is not None and not all(map(is_chunk_tag, dict.fromkeys(corpus.tags))):
        remarks.count("sentence", "of CoNLL-U without chunk tags: only the words are read", len(corpus))
        corpus = replace(corpus, tags=None)
    yield from documents_from_columns(corpus)


def write_columns(documents: Iterable[tuple[str, Document]], stream: IO[bytes], remarks: Remarks) -> None:
    """(where, document) each."""
    given = iter(documents)
    first = list(itertools.islice(given, 2))
    several, begun = len(first) > 1, False
    for where, document in itertools.chain(first, given):
        lines = [_start(document)] if several else []
        lines += _lines(document, where, remarks)
        text = "".join(lines)
        if not begun and text.startswith(_MARK):  # readers take the first one for a byte order mark, and drop it
            text = _MARK + text
        begun = begun or bool(text)
        stream.write(text.encode("utf-8"))


def _start(document: Document) -> str:
    id = "" if document.id is None else " ".join(_PARTS.findall(document.id))
    return " ".join(part for part in ("-DOCSTART-", id, "O") if part) + "\n\n"


def _lines(document: Document, where: str, remarks: Remarks) -> Iterator[str]:
    for span in document.spans or ():
        if span.label and not _PARTS.fullmatch(span.label):
            raise DataError(
                where, f"label '{quoted(span.label)}' has a blank in it, which columns cannot have; rename it"
            )
    sentences = as_tags(document, where, remarks)
    remarks.count("document", "that nobody labelled: all tags are O", int(document.spans is None))
    for words, tags in sentences:
        lines, begins = [], False
        for word, tag in zip(words, tags, strict=True):
            parts = _PARTS.findall(word)
            remarks.count("token", "with blanks in it: a line for each of its parts", int(parts != [word]))
            if begins and tag[0] == "I":
                tag = "B" + tag[1:]
            begins = not parts and tag[0] == "B"  # the chunk's first token is blank: the next one begins it
            later = tag if tag == OUTSIDE else "I" + tag[1:]
            lines += [f"{part} {later if k else tag}\n" for k, part in enumerate(parts)]
        if lines:
            yield "".join(lines) + "\n"
