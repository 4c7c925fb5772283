"""Files of documents with spans, read and written: Python's, brat's, spaCy's, Prodigy's, Label Studio's, Hugging
Face's.

    for document in read_documents("export.json"): ...          # the format is found by name and content
    write_documents(documents, "spacy", "names.spacy")
    write_documents(read_documents("brat/"), "jsonl", sys.stdout)

=============  =========================================================================================================
jsonl          ours: an object a line, text and spans; also what doccano and spaCy's old trainer have
conll          a token and its IOB2 tag a line; read: any column file (conll.py), a document for each sentence
brat           a folder, or .zip, of NAME.txt and NAME.ann
spacy          a DocBin, what ``spacy train`` reads
prodigy        Prodigy's JSON lines
label-studio   tasks of Label Studio, with annotations and predictions
datasets       tokens and ner_tags: JSON lines, .parquet, .arrow and folders of Hugging Face's ``datasets``
=============  =========================================================================================================

docs/data.md says what each of them keeps. Offsets are checked wherever a file is read or written: they lie within the
text, and where the file has the span's own text, it is what stands there. Files may be packed as .gz and .xz.
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import io
import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, cast

from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.messages import counted, say
from sparsezo.storage.files import (
    STANDARD_INPUT,
    Wrapped,
    bare_name,
    ending,
    named,
    open_bytes,
    open_sniffed,
    packing,
    reading,
)
from sparsezo.tasks.base import Json
from sparsezo.tasks.chunking.io.conll import AnyPath, is_conllu, split_cells
from sparsezo.tasks.chunking.io.crfsuite import looks_like_crfsuite
from sparsezo.tasks.chunking.io.documents import Document
from sparsezo.tasks.chunking.io.formats import json_formats, token_rows
from sparsezo.tasks.chunking.io.formats.brat import CONFIGURATION, read_brat, write_brat, write_brat_folder
from sparsezo.tasks.chunking.io.formats.docbin import read_docbin, write_docbin
from sparsezo.tasks.chunking.io.formats.spans import Given, Remarks, check_document, read_text
from sparsezo.tasks.chunking.io.segmentation import documents_of, segment
from sparsezo.tasks.chunking.tags import is_chunk_tag
from sparsezo.tasks.tables import column_of_texts, table_rows

TEXT, COLUMNS, CRFSUITE, TABLE, UNKNOWN = "text", "columns", "crfsuite", "table", "unknown"
SNIFFED = 1 << 16  # bytes that tell a format
_ENDINGS = {
    ".spacy": "spacy",
    ".parquet": "datasets",
    ".arrow": "datasets",
    ".ann": "brat",
    ".zip": "brat",
    ".conllu": COLUMNS,
    ".jsonl": "",  # by content
}
_MAGIC = {
    (b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"): "datasets",
    (b"PK\x03\x04",): "brat",
    (b"x\x9c", b"x\x01", b"x\xda"): "spacy",
}
_MOST_COLUMNS = 3  # of a file without a blank line: more on each line are rather sentences
_ALIKE = 0.9  # of the lines have as many cells: columns, and the others are mistakes
_ROWS_LOOKED_AT = 200  # of a table, to find the column of texts
_LONGEST_NAME = 6  # words of a column's name
_PRODIGY = {"answer", "_view_id", "_input_hash", "_task_hash"}
_TASK = {"annotations", "predictions", "completions"}


def detect_format(path: AnyPath, head: bytes | None = None) -> str:
    """One of ``FORMATS`` (column files: "columns"), or "text", "table", "crfsuite", "unknown".

    ``head``: the first bytes, where somebody has them already; without them the file is opened, and standard input
    and pipes, which can be read only once, are "unknown". A folder is "brat", "datasets", or "text" where all it has
    is texts.
    """
    if head is None:
        if os.fspath(path) == STANDARD_INPUT:
            return UNKNOWN
        if os.path.isdir(path):
            return _of_folder(Path(path))
        if os.path.exists(path) and not os.path.isfile(path):
            return UNKNOWN
        with open_sniffed(path, SNIFFED) as (head, _):
            pass
    if found := _ENDINGS.get(ending(path)):
        return found
    if found := next((format for magic, format in _MAGIC.items() if head.startswith(magic)), None):
        return found
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        text = decoder.decode(head)  # the last character may be cut
    except UnicodeDecodeError:
        return UNKNOWN
    if "\0" in text:
        return UNKNOWN
    if re.match(r'\s*(\{\s*["}]|\[\s*[\]{])', text) or ending(path) in (".jsonl", ".json"):
        return _of_object(_first_object(text))
    return _of_lines(path, text, whole=len(head) < SNIFFED)


def is_prose(path: AnyPath) -> bool:
    """Whether a file is raw text for certain: no other format, and most of its lines have several words. False for
    standard input and pipes, which can be read only once, and for folders."""
    if os.fspath(path) == STANDARD_INPUT or not os.path.isfile(path):
        return False
    with open_sniffed(path, SNIFFED) as (head, _):
        return detect_format(path, head) == TEXT and looks_like_prose(head.decode("utf-8-sig", "ignore"))


def _of_folder(folder: Path) -> str:
    try:
        if any((folder / name).exists() for name in (token_rows.STATE, token_rows.INFO, token_rows.SPLITS)):
            return "datasets"
        if (folder / CONFIGURATION).exists() or next(folder.rglob("*.ann"), None) is not None:
            return "brat"
        return TEXT if next(folder.rglob("*.txt"), None) is not None else UNKNOWN
    except OSError as error:
        raise DataError(str(folder), f"cannot be read ({error.strerror})") from None


def _first_object(text: str) -> Json:
    """The first JSON object; of one that is cut off, the names in it, with nothing behind them."""
    begin = text.find("{")
    if begin < 0:
        return {}
    with contextlib.suppress(ValueError, RecursionError):
        found, _ = json.JSONDecoder().raw_decode(text, begin)
        return dict(found)
    line = text[begin:].split("\n", 1)[0] if not text.lstrip().startswith("[") else text
    return {name: {} if brace else None for name, brace in re.findall(r'"(\w+)"\s*:\s*(\{?)', line)}


def _of_object(found: Json) -> str:
    names = found.keys()
    if "data" in found and (isinstance(found["data"], dict) or names & _TASK):
        return "label-studio"
    if any(json_formats.are_labels(value[:1] if isinstance(value, list) else None) for value in found.values()):
        return "label-studio"  # JSON_MIN
    if names & _PRODIGY:
        return "prodigy"
    return "datasets" if "text" not in found and names & {*token_rows.TOKENS} else "jsonl"


def _of_lines(path: AnyPath, text: str, whole: bool) -> str:
    if not whole:
        text = text.rpartition("\n")[0] or text
    if looks_like_crfsuite(text):
        return CRFSUITE
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("-DOCSTART-")]
    if is_conllu(path, next((line for line in lines if not line.startswith("#")), "")):
        return COLUMNS
    rows = [split_cells(line.rstrip("\r")) for line in lines]
    parted = re.search(r"\S[ \t]*\r?\n[ \t]*\r?\n", text)
    tagged = bool(rows) and all(len(row) > 1 and is_chunk_tag(row[-1]) for row in rows)
    if tagged or (parted and len(rows) > 2 and looks_like_columns(text)):
        return COLUMNS
    return TABLE if ending(path) in (".csv", ".tsv", ".tab") else TEXT


def looks_like_columns(head: str) -> bool:
    """By a file's beginning: as many cells on each line, and few of them or blank lines between sentences."""
    lines = head.strip().splitlines()
    widths = [len(split_cells(line)) for line in lines if line.strip() and not line.startswith("-DOCSTART-")]
    if not widths:
        return True
    width, alike = Counter(widths).most_common(1)[0]
    parted = any(not line.strip() for line in lines)
    return alike >= _ALIKE * len(widths) and (parted or (width <= _MOST_COLUMNS and len(widths) > 1))


def looks_like_prose(head: str) -> bool:
    """By a file's beginning: most lines have several words, and none ends in a chunk tag."""
    rows = [split_cells(line) for line in head.splitlines() if line.strip()]
    several = sum(len(row) > _MOST_COLUMNS for row in rows)
    return several > len(rows) / 2 and not any(is_chunk_tag(row[-1]) for row in rows)


Reader = Callable[[AnyPath, IO[bytes], Remarks], Iterator[Document]]
Writer = Callable[[Given, IO[bytes], Remarks], None]
_FORMATS: dict[str, tuple[Reader, Writer | None]] = {
    "jsonl": (json_formats.read_jsonl, json_formats.write_jsonl),
    "conll": (token_rows.read_columns, token_rows.write_columns),
    "brat": (read_brat, write_brat),
    "spacy": (read_docbin, write_docbin),
    "prodigy": (json_formats.read_prodigy, json_formats.write_prodigy),
    "label-studio": (json_formats.read_label_studio, json_formats.write_label_studio),
    "datasets": (token_rows.read_datasets, token_rows.write_json_rows),
    COLUMNS: (token_rows.read_columns, None),
}
_FOLDERS = {"brat": read_brat, "datasets": token_rows.read_datasets}  # also without a stream
FORMATS = tuple(name for name, (_, write) in _FORMATS.items() if write is not None)
ENDINGS = {  # that we give files of each format
    "jsonl": ".jsonl",
    "conll": ".conll",
    "brat": ".zip",
    "spacy": ".spacy",
    "prodigy": ".prodigy.jsonl",
    "label-studio": ".label-studio.json",
    "datasets": ".datasets.jsonl",
}
_OTHER_ENDINGS = {".parquet": "datasets", ".iob": "conll", ".iob2": "conll", ".bio": "conll", ".json": "label-studio"}
_REFUSED = {
    TEXT: "is plain text, without spans; say with `format` which it is",
    TABLE: "is a table; of tables only texts can be taken, not spans",
    CRFSUITE: "has CRFsuite's attributes and no words, so there is no text to be made of it",
    UNKNOWN: f"has none of the formats {', '.join(FORMATS)}; say with `format` which it is",
}


def read_documents(
    path: AnyPath, format: str | None = None, stream: IO[bytes] | None = None, *, texts: bool = False
) -> Iterator[Document]:
    """The documents of a file or folder, one after the other, as they are read.

    ``format``: one of ``FORMATS``; by default found by name and content. ``stream``: the open file, where somebody
    has opened it already; ``path`` then only names it. ``-`` is standard input. ``texts``: plain text is read, too: a
    file is one document, or one document a line (``segmentation.documents_of`` tells which); of a folder every .txt
    file is one. What was left out or guessed is said when all is read.
    """
    if format is not None and format not in _FORMATS and not (texts and format in _REFUSED):
        raise UsageError(f"`format` {quoted(format)}: of documents with spans choose one of {', '.join(FORMATS)}")
    return _reading(path, format, stream, texts)


def _reading(path: AnyPath, format: str | None, stream: IO[bytes] | None, texts: bool) -> Iterator[Document]:
    remarks = Remarks(path)
    beside = Path(path).suffix == ".ann" or (format == "brat" and Path(path).suffix == ".txt")  # one of NAME.txt, .ann
    with contextlib.ExitStack() as stack:
        if stream is None and (os.path.isdir(path) or beside):
            found = format or detect_format(path)
            if texts and found == TEXT:
                yield from _text_files(Path(path))
            elif found not in _FOLDERS:
                raise DataError(str(path), "is a folder; of folders brat and datasets can be read: name a file in it")
            else:
                yield from _FOLDERS[found](path, None, remarks)
        else:
            if stream is None:
                head, stream = stack.enter_context(open_sniffed(path, SNIFFED))
            else:
                with reading(path):
                    head = stream.read(SNIFFED)
                stream = io.BufferedReader(Wrapped(stream, head=head))
            found = format or detect_format(path, head)
            if texts and found in (TEXT, UNKNOWN):
                yield from _of_text(path, stream)
            elif texts and found == TABLE:
                yield from _of_table(path, stream)
            elif found in _REFUSED:
                raise DataError(str(path), _REFUSED[found])
            else:
                yield from _FORMATS[found][0](path, stream, remarks)
    remarks.say()


def format_by_name(path: AnyPath) -> str | None:
    """The format that a file of this name should be written in; a folder, there or by its last slash, is brat's.

    >>> format_by_name("names.spacy"), format_by_name("x.prodigy.jsonl.gz"), format_by_name("x.txt")
    ('spacy', 'prodigy', None)
    """
    if os.fspath(path).endswith(("/", os.sep)) or os.path.isdir(path):
        return "brat"
    name = bare_name(Path(path)).lower()
    known = {**{end: format for format, end in ENDINGS.items()}, **_OTHER_ENDINGS}
    return next((known[end] for end in sorted(known, key=len, reverse=True) if name.endswith(end)), None)


def with_tokens(documents: Iterable[Document]) -> Iterator[Document]:
    """Documents of which nobody said where tokens are get them by rule, cut where a span begins or ends."""
    for each in documents:
        if each.tokens is None:
            spans = [(span.start, span.end) for span in (*(each.spans or ()), *each.suggested, *each.rejected)]
            starts, ends, sentences = (found.tolist() for found in segment(each.text, spans=spans))
            each = replace(each, tokens=tuple(zip(starts, ends, strict=True)), sentences=tuple(sentences))
        yield each


def _text_files(folder: Path) -> Iterator[Document]:
    files = sorted(folder.rglob("*.txt"))
    if not files:
        raise DataError(str(folder), "has no .txt file in it; name files, or a folder of .txt files")
    for file in files:
        with open_bytes(file) as stream:
            yield Document(read_text(file, stream).removeprefix("\ufeff"), id=str(file.relative_to(folder)))


def _of_text(path: AnyPath, stream: IO[bytes]) -> Iterator[Document]:
    text = read_text(path, stream).removeprefix("\ufeff")
    if documents_of(text) == "file":
        say(f"{path}: read as one document (paragraphs, or wrapped lines)")
        yield Document(text, id=Path(named(path)).name)
        return
    lines = enumerate(re.split(r"\r\n|\n|\r", text), start=1)
    found = [(number, line) for number, line in lines if line.strip()]
    say(f"{path}: read as {counted(len(found), 'document')}, one a line")
    yield from (Document(line, id=str(number)) for number, line in found)


def _of_table(path: AnyPath, stream: IO[bytes]) -> Iterator[Document]:
    """A row is a document; what stands in its other columns goes with it."""
    rows = table_rows(path, stream)
    _, header = next(rows, (1, []))
    first = list(itertools.islice(rows, _ROWS_LOOKED_AT))
    if not first:
        raise DataError(str(path), "is a table without rows; the first line is its header")
    column = column_of_texts(path, header, [row for _, row in first])
    if len(header[column].split()) > _LONGEST_NAME:
        raise DataError(f"{path}:1", f"'{quoted(header[column])}' is no column's name; the first line is the header")
    say(f"{path}: a table; its column '{quoted(header[column])}' is read, a text a row")
    for number, row in itertools.chain(first, rows):
        others = {name: cell for name, cell in zip(header, row, strict=True) if name and name != header[column]}
        yield Document(row[column], id=others.pop("id", str(number)), meta=others)


def write_documents(
    documents: Iterable[Document], format: str, target: AnyPath | IO[bytes] | IO[str], *, tokens: bool = False
) -> None:
    """Write documents in one of ``FORMATS``, as they come.

    ``target``: a path (.gz and .xz are packed; brat: a folder, or a .zip; datasets: JSON lines, or .parquet), or a
    stream of bytes or text. A file is whole or not there at all. ``tokens``: jsonl has them, too. What a format
    cannot keep is said.
    """
    if format not in FORMATS:
        raise UsageError(f"`format` {quoted(format)}: choose one of {', '.join(FORMATS)}")
    path = target if isinstance(target, str | os.PathLike) else None
    remarks = Remarks(format if path is None else path)
    checked = _checked(documents)
    if format == "brat" and path is not None:
        write_brat_folder(checked, path, remarks)
    else:
        write = cast(Writer, _FORMATS[format][1])
        if format == "jsonl" and tokens:
            write = functools.partial(json_formats.write_jsonl, tokens=True)
        elif format == "datasets" and path is not None and ending(path) == ".parquet":
            write = token_rows.write_parquet
        with packing(Path(path)) if path is not None else _bytes_of(target, format) as stream:
            write(checked, stream, remarks)
    remarks.say()


def _checked(documents: Iterable[Document]) -> Iterator[tuple[str, Document]]:
    for number, document in enumerate(documents, start=1):
        where = f"document {number}" + ("" if document.id is None else f" ('{quoted(document.id)}')")
        check_document(document, where)
        yield where, document


@contextlib.contextmanager
def _bytes_of(target: object, format: str) -> Iterator[IO[bytes]]:
    """A stream of bytes, whatever the target is; what a stream of text gets, it gets in the end."""
    if not isinstance(target, io.TextIOBase):
        yield cast(IO[bytes], target)
    elif isinstance(target, io.TextIOWrapper):
        target.flush()
        yield cast(IO[bytes], target.buffer)
    elif format in ("brat", "spacy"):
        raise UsageError(f"{format} is no text: give a path, or a stream of bytes")
    else:
        made = io.BytesIO()
        yield made
        target.write(made.getvalue().decode("utf-8"))
