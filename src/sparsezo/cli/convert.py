"""convert: texts with spans, from one format to another.

sparsezo convert export.json names.spacy
sparsezo convert brat/ - --to prodigy | gzip > names.jsonl.gz
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from sparsezo.cli import show
from sparsezo.errors import UsageError
from sparsezo.messages import counted
from sparsezo.storage.files import STANDARD_INPUT as STANDARD
from sparsezo.tasks.chunking.io.documents import Document
from sparsezo.tasks.chunking.io.formats import FORMATS, format_by_name, read_documents, with_tokens, write_documents

_OF_TOKENS = ("conll", "datasets")


def run_convert(source: str, target: str, from_: str | None, to: str | None) -> None:
    formats = ", ".join(FORMATS)
    for flag, format in (("--from", from_), ("--to", to)):
        if format is not None and format not in FORMATS:
            raise UsageError(f"{flag} {format}: choose from {formats}")
    format = to or (format_by_name(target) if target != STANDARD else None)
    if format is None:
        place = "standard output" if target == STANDARD else target
        raise UsageError(f"{place}: the name does not tell its format; choose --to from {formats}")
    read = read_documents(source, from_, texts=True)
    documents = _Counted(with_tokens(read) if format in _OF_TOKENS else read)
    sys.stdout.flush()
    write_documents(documents, format, sys.stdout.buffer if target == STANDARD else target)
    sys.stdout.flush()
    if target != STANDARD:
        show.note(f"wrote {target}: {counted(documents.count, 'document')}, {format}")


class _Counted:
    """Documents, and how many there were so far."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents, self.count = documents, 0

    def __iter__(self) -> Iterator[Document]:
        for document in self._documents:
            self.count += 1
            yield document
