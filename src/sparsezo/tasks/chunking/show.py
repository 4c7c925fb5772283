"""A question about tags, in words that somebody who has never heard of tags understands.

>>> with_article("organisation"), with_article("place")
('an organisation', 'a place')
>>> type_words("LOC", {}), type_words("DRUG", {"DRUG": "medicine"}), type_words("GENE", {})
('place', 'medicine', 'GENE')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

_OF_OUTPUTS = {
    1: "How bad is this, from 0 (all right) to 1 (all wrong)?",
    2: "Which is better, the first or the second?",
}


def shown(task: Chunking, data: Corpus, question: Question | Proposal) -> dict[str, Any]:
    """words, question; part, label and span: first, last (places of tokens), part, tag; others: outputs, tags of each.

    Of raw text also ``gaps``: what stands behind each token, and ``where``: the document and the sentence's place.
    """
    begin, end = data.offsets[question.x : question.x + 2].tolist()
    words = _words(data, begin, end)
    made: dict[str, Any] = {"words": words}
    if data.source is not None:
        made["gaps"] = data.source.gaps(question.x, begin, end)
        made["where"] = data.source.where(question.x, begin, end)
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


def in_words(task: Chunking, output: NDArray[Any]) -> list[str]:
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
        return f"Is '{part}' {NOTHING}: {_all_types(task, 'or')}?"
    what = described(task, tag[2:])
    if about == "chunk":
        return f"Is '{part}' {what}?"
    if tag[0] == "B":
        return f"Is '{part}' the first word of {what}?"
    return f"Is '{part}' a later word of {what}?"


def _of_label(task: Chunking, question: Question, part: str) -> str:
    if task.scheme == PLAIN:
        return f"What is the tag of '{part}': {', '.join(question.choices)}?"
    if question.about == "chunk":
        return f"What is '{part}': {_all_types(task, 'or')}, or {NOTHING}?"
    return f"What is '{part}': a word of {_all_types(task, 'or')}, or of {NOTHING}?"


def _all_types(task: Chunking, joint: str) -> str:
    kinds = [tag[2:] for tag in task.tags if tag[0] == "B"]
    names = [described(task, kind) for kind in kinds]
    if len(names) > 8:
        names = [*names[:7], "..."]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {joint} {names[-1]}"


def _words(data: Corpus, begin: int, end: int) -> list[str]:
    if data.columns:
        return data.columns[0][begin:end]
    listed = data.listed  # attributes are all that is known of a token
    if listed is None:
        return [""] * (end - begin)
    spans = zip(listed.starts[begin:end].tolist(), listed.starts[begin + 1 : end + 1].tolist(), strict=True)
    return [" ".join(listed.names[k] for k in listed.ids[a:b].tolist()) for a, b in spans]
