"""A question about tags, in words.

>>> chunk_words("NP"), chunk_words("LOC"), chunk_words("")
('a noun phrase (NP)', 'a LOC', 'a chunk')
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.proposals import Proposal
from sparsezo.tasks.chunking.options import PLAIN
from sparsezo.tasks.chunking.tags import IOB2, OUTSIDE, in_iob2

if TYPE_CHECKING:
    from sparsezo.questions import Question
    from sparsezo.tasks.chunking.conll import Corpus
    from sparsezo.tasks.chunking.task import Chunking

_PHRASES = {
    "NP": "noun phrase",
    "VP": "verb phrase",
    "PP": "prepositional phrase",
    "ADJP": "adjective phrase",
    "ADVP": "adverb phrase",
}

_OF_OUTPUTS = {
    1: "How bad is this, from 0 (all right) to 1 (all wrong)?",
    2: "Which is better, the first or the second?",
}


def shown(task: Chunking, data: Corpus, question: Question | Proposal) -> dict[str, Any]:
    """words, question; part and label: first, last (places of tokens), tag; others: outputs, the tags of each."""
    begin, end = data.offsets[question.x : question.x + 2].tolist()
    words = _words(data, begin, end)
    if isinstance(question, Proposal) or question.outputs:
        outputs = [in_words(task, each) for each in question.outputs]
        text = _OF_OUTPUTS[len(outputs)]
        return {"words": words, "outputs": outputs, "question": text}
    first, label, last, _ = question.numbers
    tag = task.tags[label]
    part = " ".join(words[first : last + 1])
    text = _of_label(question, part) if question.kind == "label" else _of_part(task, question.about, part, tag)
    return {"words": words, "first": first, "last": last, "tag": tag, "question": text}


def in_words(task: Chunking, output: NDArray[Any]) -> list[str]:
    """The tags of an output, as people see them."""
    if task.scheme == IOB2:
        return in_iob2([task.tags[k] for k in output.tolist()])
    return task.words(output, np.array([0, len(output)]))


def chunk_words(kind: str) -> str:
    if kind in _PHRASES:
        phrase = _PHRASES[kind]
        return f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase} ({kind})"
    return f"a {kind}" if kind else "a chunk"


def _of_part(task: Chunking, about: str, part: str, tag: str) -> str:
    if task.scheme == PLAIN:
        return f"Is '{part}' a {tag}?"
    if tag == OUTSIDE:
        return f"Is '{part}' outside of every chunk?"
    what = chunk_words(tag[2:])
    if about == "chunk":
        return f"Is '{part}' {what}?"
    if tag[0] == "B":
        return f"Does {what} start at '{part}'?"
    return f"Is '{part}' inside {what} that starts before it?"


def _of_label(question: Question, part: str) -> str:
    if question.about == "chunk":
        names = ", ".join(name for name in question.choices if name != OUTSIDE)
        return f"What is '{part}': {names}, or none of these ({OUTSIDE})?"
    return f"What is the tag of '{part}': {', '.join(question.choices)}?"


def _words(data: Corpus, begin: int, end: int) -> list[str]:
    if data.columns:
        return data.columns[0][begin:end]
    listed = data.listed  # attributes are all that is known of a token
    if listed is None:
        return [""] * (end - begin)
    spans = zip(listed.starts[begin:end].tolist(), listed.starts[begin + 1 : end + 1].tolist(), strict=True)
    return [" ".join(listed.names[k] for k in listed.ids[a:b].tolist()) for a, b in spans]
