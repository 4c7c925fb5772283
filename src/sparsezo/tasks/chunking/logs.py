"""Logs of shown spans or tags. The input is ``text``, or ``tokens``: words, or lists of a word and what else is known
of it, as columns have them. What was shown is

    "spans": [{"start": 3, "end": 9, "label": "LOC"}]       of text: characters, the end exclusive
    "spans": [{"first": 1, "last": 1, "label": "LOC"}]      of tokens: numbers from 0, the last one included
    "tags": ["O", "B-LOC", "O"]                             of tokens

and a span may have a "feedback" of its own, true or false. Corrected: {"spans": ...} or {"tags": ...}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, quoted, shown
from sparsezo.options import make_options
from sparsezo.tasks.base import Json, Read, Task
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.io.documents import Document, Span, tagged
from sparsezo.tasks.chunking.io.files import fit_options
from sparsezo.tasks.chunking.io.formats.json_formats import marked_object
from sparsezo.tasks.chunking.io.formats.spans import Remarks, placed
from sparsezo.tasks.chunking.io.segmentation import segment
from sparsezo.tasks.chunking.options import PLAIN, ChunkingOptions
from sparsezo.tasks.chunking.tags import IOB2, OUTSIDE, in_iob2, is_chunk_tag, spelled, understood
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.logs import FEEDBACK, Line, Logged, LoggedData, Part, Said, propensity, remark_unknown, said

FROM_FILE = False
TABLES = False
_TEXT, _TOKENS, _SPANS, _TAGS = "text", "tokens", "spans", "tags"
_Output = list[Span] | list[str]  # spans, or tags
_ONE_SEQUENCE = "lines"  # how a task splits texts that is made of a log: each is one input


@dataclass(frozen=True, eq=False)
class _Row:
    """A line as it was read. Spans are of characters where there is a text, else of tokens (first, last + 1)."""

    where: str
    text: str | None
    columns: list[list[str]]  # of tokens; none of a text
    output: _Output
    right: _Output | None
    said: Said
    of_spans: tuple[tuple[Span, bool], ...]  # feedback of single spans
    propensity: float | None


def read(lines: Sequence[Line], path: str, task: Task | None, data: Read, options: Mapping[str, object]) -> LoggedData:
    """The sentences of a log; a task that is made of it has the types that it names, or those of ``tags``."""
    remark_unknown(path, lines, (_TEXT, _TOKENS, _SPANS, _TAGS))
    remarks = Remarks(path)
    rows = [_read(where, row, remarks) for where, row in lines]
    remarks.say()
    for row in rows:
        if (row.text is None, len(row.columns)) != (rows[0].text is None, len(rows[0].columns)):
            raise DataError(row.where, f"'{_TEXT}', or tokens of another number of columns than on the lines before")
    known = None if task is None else cast("Chunking", task)
    cuts = [_cut(row, known) for row in rows]
    columns = tuple([word for cut in cuts for word in cut.columns[k]] for k in range(len(cuts[0].columns)))
    offsets = np.cumsum([0, *(size for cut in cuts for size in cut.sizes)]).astype(np.int64)
    corpus = Corpus(path, columns, None, offsets)
    outputs = [_tagged(row, cut, row.output, known) for row, cut in zip(rows, cuts, strict=True)]
    rights = [
        None if row.right is None else _tagged(row, cut, row.right, known) for row, cut in zip(rows, cuts, strict=True)
    ]
    if known is None:
        every = [*outputs, *rights]
        known, corpus = _fitted(corpus, rows, every, options)
        outputs, rights = every[: len(rows)], every[len(rows) :]
    numbers = {tag: k for k, tag in enumerate(known.tags)}
    at, made = 0, []
    for row, cut, output, right in zip(rows, cuts, outputs, rights, strict=True):
        shown_, right_ = _numbered(known, row, cut, output, numbers), _numbered(known, row, cut, right, numbers)
        reward = row.said.reward
        if row.said.corrected is not None:
            reward = float(output == right)
        parts = tuple(filter(None, (_part(row, cut, known, *each, numbers) for each in row.of_spans)))
        about = (row.where, at, at + len(cut.sizes), shown_, reward, row.said.thumb, right_, row.propensity)
        made.append(Logged(*about, parts))
        at += len(cut.sizes)
    return LoggedData(known, corpus, made)


def as_shown(task: Task, output: NDArray[np.int32]) -> NDArray[np.int32]:
    """An I that begins a chunk is shown as its B."""
    tags = cast("Chunking", task).tags
    if cast("Chunking", task).scheme == PLAIN:
        return output
    made = in_iob2([tags[k] for k in output.tolist()])
    return np.array([tags.index(tag) for tag in made], np.int32)


def _read(where: str, row: Json, remarks: Remarks) -> _Row:
    if (_TEXT in row) == (_TOKENS in row):
        raise DataError(where, f"give '{_TEXT}' or '{_TOKENS}', what was shown with labels, and not both")
    if (_SPANS in row) == (_TAGS in row):
        raise DataError(where, f"give '{_SPANS}' or '{_TAGS}', what was shown, and not both")
    text, columns = None, list[list[str]]()
    if _TEXT in row:
        if not isinstance(row[_TEXT], str) or not row[_TEXT].strip():
            raise DataError(where, f"'{_TEXT}' is {shown(row[_TEXT], repr)}; give a text with words in it")
        text = str(row[_TEXT])
    else:
        columns = _columns(where, row[_TOKENS])
    given = row.get(_SPANS)
    of_spans = [
        (k, each[FEEDBACK])
        for k, each in enumerate(given if isinstance(given, list) else [])
        if isinstance(each, dict) and each.get(FEEDBACK) is not None
    ]
    if odd := [answer for _, answer in of_spans if not isinstance(answer, bool)]:
        raise DataError(where, f"a span's feedback is {shown(odd[0], repr)}; give true or false")
    feedback = said(where, row, (_SPANS, _TAGS), required=not of_spans)
    spans = _output(where, row, text, columns, remarks)
    right = None if feedback.corrected is None else _output(where, feedback.corrected, text, columns, remarks)
    parts = tuple((cast(Span, spans[k]), answer) for k, answer in of_spans)
    return _Row(where, text, columns, spans, right, feedback, parts, propensity(where, row))


def _columns(where: str, given: object) -> list[list[str]]:
    """Columns of tokens: a list of words, or of lists of a word and what else is known of it."""
    rows = [[each] if isinstance(each, str) else each for each in given] if isinstance(given, list) else []
    texts = all(
        isinstance(each, list) and each and all(isinstance(cell, str) and cell for cell in each) for each in rows
    )
    if not rows or not texts or len({len(each) for each in rows}) > 1:
        raise DataError(where, f"'{_TOKENS}' is {shown(given, repr)}; give words, or lists of as many texts for each")
    return [list(column) for column in zip(*rows, strict=True)]


def _output(where: str, row: Json, text: str | None, columns: list[list[str]], remarks: Remarks) -> _Output:
    """Tags, or spans."""
    if (_SPANS in row) == (_TAGS in row):
        raise DataError(where, f"an output is '{_SPANS}' or '{_TAGS}', and not both")
    if _TAGS in row:
        tags = row[_TAGS]
        if text is not None:
            raise DataError(where, f"'{_TAGS}' are of '{_TOKENS}'; of a text give '{_SPANS}'")
        if not isinstance(tags, list) or not all(isinstance(tag, str) and tag for tag in tags):
            raise DataError(where, f"'{_TAGS}' is {shown(tags, repr)}; give a list of tags")
        if len(tags) != len(columns[0]):
            raise DataError(where, f"{len(tags)} tags for {len(columns[0])} tokens; give one for each")
        return list(tags)
    given = row[_SPANS]
    if not isinstance(given, list):
        raise DataError(where, f"'{_SPANS}' is {shown(given, repr)}; give a list of them")
    if text is not None:
        return list(placed([marked_object(each, where) for each in given], text, where, remarks))
    return [_of_tokens(where, each, len(columns[0])) for each in given]


def _of_tokens(where: str, given: object, size: int) -> Span:
    if isinstance(given, dict):
        first, last, name = (given.get(key) for key in ("first", "last", "label"))
        if type(first) is type(last) is int and 0 <= first <= last < size and isinstance(name, str):
            return Span(first, last + 1, name)
    raise DataError(
        where, f"a span is {shown(given, repr)}; of {size} tokens give first, last (the last is in it) and label"
    )


@dataclass(frozen=True, eq=False)
class _Cut:
    """The tokens of a line: columns, where each stands in the text (tokens alone: its number), and how many tokens each
    sentence has."""

    columns: list[list[str]]
    places: list[tuple[int, int]]
    sizes: list[int]


def _cut(row: _Row, task: Chunking | None) -> _Cut:
    """A task that is there cuts a text as it does everywhere; one that is made of the log takes each as one sequence,
    cut where a span begins or ends."""
    if row.text is None:
        n = len(row.columns[0])
        return _Cut(row.columns, [(i, i + 1) for i in range(n)], [n])
    if task is not None:
        found = segment(row.text, split=task.split or _ONE_SEQUENCE, language=task.language)
    else:
        spans = [(each.start, each.end) for each in (*row.output, *(row.right or ())) if isinstance(each, Span)]
        found = segment(row.text, split=_ONE_SEQUENCE, spans=spans)
    places = list(zip(found.starts.tolist(), found.ends.tolist(), strict=True))
    sizes = np.diff(found.sentences).tolist() if task is not None else [len(places)]
    return _Cut([[row.text[a:b] for a, b in places]], places, sizes)


def _tagged(row: _Row, cut: _Cut, output: _Output, task: Chunking | None) -> list[str] | None:
    """Tags of an output; None where they cannot say it: a span ends inside of a token of the task's."""
    if not all(isinstance(each, Span) for each in output):
        tags = cast(list[str], output)
        if task is not None and task.scheme != PLAIN:
            _check_chunk_tags(row.where, tags)
            tags = spelled(tags, np.array([0, len(tags)]), IOB2)
        return tags
    text = row.text if row.text is not None else " " * len(cut.places)
    document = Document(text, spans=tuple(cast(list[Span], output)), tokens=tuple(cut.places))
    try:
        return tagged(document, row.where)[0]
    except DataError:
        if task is None:
            raise
        return None


def _check_chunk_tags(where: str, tags: Sequence[str]) -> None:
    if odd := next((tag for tag in tags if not is_chunk_tag(tag)), None):
        raise DataError(
            where, f"tag '{quoted(odd)}' is no chunk tag: O, B-TYPE, I-TYPE and others of BIOES, BILOU, BMES"
        )


def _fitted(
    corpus: Corpus, rows: Sequence[_Row], outputs: list[list[str] | None], options: Mapping[str, object]
) -> tuple[Chunking, Corpus]:
    """The task of a log; ``outputs`` are the tags of all that was shown, then of what was corrected: IOB2 from now on,
    unless they are plain tags."""
    made = make_options(ChunkingOptions, options, "a log of task chunking")
    there = [(k, tags) for k, tags in enumerate(outputs) if tags is not None]
    ends = np.cumsum([0, *(len(tags) for _, tags in there)])
    every = [tag for _, tags in there for tag in tags]
    try:
        scheme, seen = understood(Corpus(corpus.path, (every,), every, ends), made.scheme)
    except DataError:
        for k, tags in there:
            _check_chunk_tags(rows[k % len(rows)].where, tags)
        raise
    for (k, _), begin, end in zip(there, ends, ends[1:], strict=False):
        outputs[k] = (seen.tags or [])[begin:end]
    found = dict.fromkeys(sorted({*(seen.tags or ())}))
    types = list(found) if scheme == PLAIN else list(dict.fromkeys(tag[2:] for tag in found if tag != OUTSIDE))
    named = made.tags if made.tags is not None else types
    if not named or named == [""]:
        what = "has no span, and every tag is O" if not named else "has spans without a label"
        raise DataError(corpus.path, f"{what}; name the types that there are with `tags`")
    how = fit_options(make_options(ChunkingOptions, {**options, "tags": None}, "a log of task chunking"), corpus)
    split = _ONE_SEQUENCE if rows[0].text is not None else None
    return Chunking.fit(corpus, tags=named, scheme=scheme, split=split, **{**how, "only": None})


def _numbered(
    task: Chunking, row: _Row, cut: _Cut, tags: Sequence[str] | None, numbers: Mapping[str, int]
) -> tuple[NDArray[np.int32], ...] | None:
    """An output of each sentence; None where it has tags that no output of the task has."""
    if tags is None:
        return None
    made, at = [], 0
    for size in cut.sizes:
        mine = tags[at : at + size]
        if task.scheme != PLAIN:
            mine = in_iob2(mine)
        if not {*mine} <= {*numbers}:
            return None
        made.append(np.array([numbers[tag] for tag in mine], np.int32))
        at += size
    return tuple(made)


def _part(row: _Row, cut: _Cut, task: Chunking, span: Span, right: bool, numbers: Mapping[str, int]) -> Part | None:
    """The question about one span; None where its ends are not those of tokens, or its type is not the task's."""
    tags = _tagged(row, cut, [span], task)
    begin = f"B-{span.label}" if span.label else "B"
    if tags is None or begin not in numbers or len(cut.sizes) > 1:
        return None
    first = next(i for i, tag in enumerate(tags) if tag != OUTSIDE)
    last = max(i for i, tag in enumerate(tags) if tag != OUTSIDE)
    return (first, numbers[begin], last, 0), right
