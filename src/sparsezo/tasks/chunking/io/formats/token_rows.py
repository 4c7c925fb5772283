"""Tokens and their tags: column files, and rows as Hugging Face's ``datasets`` has them.

Columns are read by conll.py, a document for each sentence, and written as a token and its IOB2 tag a line. Where there
are several documents, each begins with a -DOCSTART- line that has its id. A token with blanks or line ends in it takes
a line for each of its parts.

Rows are ``{"id": "7", "tokens": [...], "ner_tags": [...]}``; JSON lines have tags as words. Parquet, Arrow and the
folders of ``save_to_disk`` are read and written with pyarrow alone; their tags are numbers with names (ClassLabel), or
words. A row is a sentence: its text is the tokens with single spaces between them. A tag of -100 or null is one that
nobody knows.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from sparsezo.errors import DataError, UsageError, need, quoted, shown
from sparsezo.storage.files import check_text, open_bytes, reading, with_head
from sparsezo.tasks.base import Json
from sparsezo.tasks.chunking.io.conll import AnyPath, read_conll
from sparsezo.tasks.chunking.io.documents import Document, documents_from_columns, pasted, spans_of
from sparsezo.tasks.chunking.io.formats.json_formats import id_of, json_line, json_objects
from sparsezo.tasks.chunking.io.formats.spans import Given, Remarks, as_tags
from sparsezo.tasks.chunking.tags import IOB2, OUTSIDE, is_chunk_tag, understood

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Schema

# What a reader of columns may take for the end of a cell or of a line; a no-break space may stand in a token.
_MARK = "\ufeff"
_PARTS = re.compile(r"[^ \t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")


def read_columns(path: AnyPath, stream: IO[bytes], remarks: Remarks) -> Iterator[Document]:
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


def write_columns(documents: Given, stream: IO[bytes], remarks: Remarks) -> None:
    given = iter(documents)
    first = list(itertools.islice(given, 2))
    several, begun = len(first) > 1, False
    for where, document in itertools.chain(first, given):
        lines = [_start(document)] if several else []
        lines += _column_lines(document, where, remarks)
        text = "".join(lines)
        if not begun and text.startswith(_MARK):  # readers take the first one for a byte order mark, and drop it
            text = _MARK + text
        begun = begun or bool(text)
        stream.write(text.encode("utf-8"))


def _start(document: Document) -> str:
    id = "" if document.id is None else " ".join(_PARTS.findall(document.id))
    return " ".join(part for part in ("-DOCSTART-", id, "O") if part) + "\n\n"


def _column_lines(document: Document, where: str, remarks: Remarks) -> Iterator[str]:
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


TOKENS, TAGS = ("tokens", "words"), ("ner_tags", "tags", "labels", "ner")  # names of columns; the first of each is ours
STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"  # files in a folder of save_to_disk
_IGNORED = -100  # what trainers leave out of the loss
_ROWS = 1000  # of Parquet at a time
_METADATA = b"huggingface"


def read_datasets(path: AnyPath, stream: IO[bytes] | None, remarks: Remarks) -> Iterator[Document]:
    """A folder (no ``stream``), or a file of JSON, Parquet or Arrow."""
    if stream is None:
        yield from _folder(Path(path), remarks)
        return
    with reading(path):
        head = stream.read(8)
    stream = with_head(head, stream)
    if head[:4] == b"PAR1" or head[:6] == b"ARROW1" or head[:4] == b"\xff\xff\xff\xff":
        yield from _table(path, stream, head, remarks)
        return
    for where, row in json_objects(path, stream):
        yield _document(row, None, where, remarks)


def _folder(folder: Path, remarks: Remarks) -> Iterator[Document]:
    if (folder / SPLITS).exists():
        inside = sorted(each.parent.name for each in folder.glob(f"*/{STATE}"))
        raise DataError(str(folder), f"holds several data sets; name one of them: {', '.join(map(quoted, inside))}")
    state = folder / STATE
    try:
        files = [each["filename"] for each in json.loads(state.read_bytes())["_data_files"]]
        if not all(isinstance(each, str) and Path(each).name == each for each in files):
            raise ValueError("names of files")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(str(state), f"cannot be read ({error}); write the folder anew with `save_to_disk`") from None
    for name in files:
        with open_bytes(folder / name) as stream:
            yield from read_datasets(folder / name, stream, remarks)


def _table(path: AnyPath, stream: IO[bytes], head: bytes, remarks: Remarks) -> Iterator[Document]:
    need("datasets")
    import pyarrow as pa

    numbers = itertools.count(1)
    batches = _batches(path, stream, head)
    while True:
        try:
            batch = next(batches, None)
            if batch is None:
                return
            batch.validate(full=True)
            names, rows = _class_names(batch.schema), batch.to_pylist()
        except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
            raise DataError(str(path), f"is no whole file of Parquet or Arrow ({error}); write it anew") from None
        for row in rows:
            yield _document(row, names, f"{path}: row {next(numbers)}", remarks)


def _batches(path: AnyPath, stream: IO[bytes], head: bytes) -> Iterator[RecordBatch]:
    """Parts of the table. Parquet is read from its end, so a stream is taken into memory; Arrow as it comes."""
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet

    if head[:4] == b"\xff\xff\xff\xff":  # what save_to_disk writes
        yield from pa.ipc.open_stream(pa.PythonFile(stream))
        return
    with reading(path):
        data = pa.BufferReader(stream.read())
    if head[:6] == b"ARROW1":
        file = pa.ipc.open_file(data)
        yield from (file.get_batch(i) for i in range(file.num_record_batches))
    else:
        yield from pa.parquet.ParquetFile(data).iter_batches(_ROWS)


def _class_names(schema: Schema) -> list[str] | None:
    """What the numbers of a column of tags mean, where the table says so."""
    try:
        features = json.loads((schema.metadata or {})[_METADATA])["info"]["features"]
        column = next(features[name] for name in TAGS if name in features)
        inner = column if isinstance(column, dict) else {"feature": column[0]}
        names = inner["feature"]["names"]
    except (KeyError, ValueError, TypeError, IndexError, StopIteration, RecursionError):
        return None
    return names if isinstance(names, list) and all(isinstance(each, str) for each in names) else None


def _document(row: Json, names: list[str] | None, where: str, remarks: Remarks) -> Document:
    rest = dict(row)
    words = _taken(rest, TOKENS)
    if not isinstance(words, list) or not all(isinstance(each, str) for each in words):
        have = ", ".join(f"'{quoted(key)}'" for key in list(row)[:20])
        raise DataError(where, f"has no 'tokens', a list of words; it has {have or 'nothing'}")
    tags = _taken(rest, TAGS)
    kept = [i for i, word in enumerate(words) if word]
    remarks.count("empty token", "left out", len(words) - len(kept))
    text, tokens = pasted([words[i] for i in kept])
    check_text(text, where)
    spans, missing = None, False
    if tags is not None:
        if not isinstance(tags, list) or len(tags) != len(words):
            raise DataError(where, f"its tags are '{shown(tags, repr)}'; expected one for each of {len(words)} tokens")
        spelled = [_tag(tags[i], names, where) for i in kept]
        missing = None in spelled
        try:
            spans = spans_of(tokens, [OUTSIDE if tag is None else tag for tag in spelled])
        except UsageError as error:
            raise DataError(where, str(error)) from None
    sentences = (0, len(tokens)) if tokens else (0,)
    return Document(text, id_of(rest), spans, missing=missing, tokens=tokens, sentences=sentences, meta=rest)


def _taken(rest: Json, names: tuple[str, ...]) -> object:
    return next((rest.pop(name) for name in names if name in rest), None)


def _tag(tag: object, names: list[str] | None, where: str) -> str | None:
    if isinstance(tag, str):
        return tag
    if type(tag) is int and names is not None and 0 <= tag < len(names):
        return names[tag]
    if tag is None or (type(tag) is int and tag == _IGNORED):
        return None
    if type(tag) is int and names is None:
        raise DataError(
            where,
            f"tag {shown(tag)} is a number, and nothing says what it means; give tags as words, or a Parquet file or "
            "folder of `datasets` whose tags have names",
        )
    raise DataError(where, f"tag '{shown(tag, repr)}': expected a word or a number that has a name")


# ---- writing ----


def write_json_rows(documents: Given, stream: IO[bytes], remarks: Remarks) -> None:
    """A line for each sentence, tags as words."""
    for row in _rows(documents, remarks):
        stream.write(json_line(row))


def write_parquet(documents: Given, stream: IO[bytes], remarks: Remarks) -> None:
    """A row for each sentence, tags as numbers with names, as ``datasets`` has them."""
    need("datasets")
    import pyarrow as pa
    import pyarrow.parquet

    rows = list(_rows(documents, remarks))
    types = sorted({tag[2:] for row in rows for tag in row["ner_tags"] or () if tag != OUTSIDE})
    names = [OUTSIDE, *(letter + (f"-{each}" if each else "") for each in types for letter in "BI")]
    number = {name: i for i, name in enumerate(names)}
    for row in rows:
        row["ner_tags"] = None if row["ner_tags"] is None else [number[tag] for tag in row["ner_tags"]]
    features = {
        "id": {"dtype": "string", "_type": "Value"},
        "tokens": {"feature": {"dtype": "string", "_type": "Value"}, "_type": "Sequence"},
        "ner_tags": {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "Sequence"},
    }
    schema = pa.schema(
        [("id", pa.string()), ("tokens", pa.list_(pa.string())), ("ner_tags", pa.list_(pa.int64()))],
        metadata={_METADATA: json.dumps({"info": {"features": features}}).encode()},
    )
    with pa.parquet.ParquetWriter(pa.PythonFile(stream, "w"), schema) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema=schema))


def _rows(documents: Given, remarks: Remarks) -> Iterator[Json]:
    for number, (where, document) in enumerate(documents, start=1):
        sentences = as_tags(document, where, remarks)
        name = str(number) if document.id is None else document.id
        for part, (words, tags) in enumerate(sentences, start=1):
            yield {
                "id": name if len(sentences) == 1 else f"{name}-{part}",
                "tokens": words,
                "ner_tags": None if document.spans is None else tags,
            }
