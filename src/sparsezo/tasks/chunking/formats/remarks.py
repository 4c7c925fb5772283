"""What a reader or a writer left out or guessed, counted, and said once in the end.

remarks = Remarks("export.json")
remarks.count("span", "left out: of spans that overlap the longest is kept")
remarks.say()                               # export.json: 2 spans left out: of spans that ...
"""

from __future__ import annotations

import os
from collections import Counter

from sparsezo import notes
from sparsezo.storage.files import named
from sparsezo.tasks.chunking.documents import Document, tagged_sentences
from sparsezo.words import counted


class Remarks:
    """Of one file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = named(path)
        self._counts: Counter[tuple[str, str]] = Counter()

    def count(self, noun: str, what: str, times: int = 1) -> None:
        """One more, or ``times`` more, of what ``noun`` names."""
        if times:
            self._counts[noun, what] += times

    def say(self) -> None:
        for (noun, what), count in self._counts.items():
            notes.say(f"{self._path}: {counted(count, noun)} {what}")


def as_tags(document: Document, where: str, remarks: Remarks) -> list[tuple[list[str], list[str]]]:
    """Words and IOB2 tags of each sentence; what tags cannot say of the document is counted in the remarks."""
    sentences, left_out, cut = tagged_sentences(document, where)
    remarks.count("span", "left out: of spans that overlap the longest is kept", left_out)
    remarks.count("span", "cut in two where a sentence ends", cut)
    for noun, spans in (("suggested span", document.suggested), ("rejected span", document.rejected)):
        remarks.count(noun, "left out: tags have no place for them", len(spans))
    remarks.count("document", "of which not all is known: what no span covers is O", int(document.missing))
    return sentences
