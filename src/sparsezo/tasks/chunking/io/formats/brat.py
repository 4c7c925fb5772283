"""brat's stand-off files: NAME.txt, and beside it NAME.ann with a line for each span, in a folder or a .zip.

    T1	LOC 3 9	Madrid
    #1	AnnotatorNotes T1	0.93

Texts are read and written byte for byte, line ends as they are, since brat counts code points of the file. A span of
several parts (``0 5;10 15``) is read as one from its first to its last character; relations, events, attributes and
notes that are no probability are passed over. A text without an .ann file is one that nobody labelled.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO

from sparsezo.errors import DataError, SparsezoError, UsageError, quoted
from sparsezo.storage.files import READ_ERRORS, atomic_write, reading
from sparsezo.tasks.chunking.io.conll import AnyPath
from sparsezo.tasks.chunking.io.documents import Document, Span
from sparsezo.tasks.chunking.io.formats.spans import Given, Marked, Remarks, decoded, in_one_line, placed

TEXT, ANNOTATION = ".txt", ".ann"
CONFIGURATION = "annotation.conf"
_SPAN = re.compile(r"(T\S*)\t(\S+) (-?\d{1,15} -?\d{1,15}(?:;-?\d{1,15} -?\d{1,15})*)(?:\t(.*))?", re.DOTALL | re.ASCII)
_NOTE = re.compile(r"#\S*\t\S+ (T\S+)\t(\d(?:\.\d+)?(?:[eE]-?\d+)?)\s*", re.ASCII)
_OTHERS = "*REAMN#"  # what else a line may begin with: equivalences, relations, events, attributes, links, notes
_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]|^[.~]|[. ]$|^$')  # in a part of a file's name, here or elsewhere
_LONGEST = 200  # bytes of a part of a file's name
_EPOCH = (1980, 1, 1, 0, 0, 0)  # no time of day in a .zip: the same documents give the same file


def read_brat(path: AnyPath, stream: IO[bytes] | None, remarks: Remarks) -> Iterator[Document]:
    """A folder, a .zip (its ``stream``), a NAME.ann or a NAME.txt."""
    if stream is not None:
        yield from _read_zip(path, stream, remarks)
        return
    folder = Path(path)
    if folder.suffix in (TEXT, ANNOTATION):
        names, folder = [folder.stem], folder.parent
    else:
        with reading(path):
            names = _names(each.relative_to(folder).as_posix() for each in folder.rglob("*"))
    yield from _documents(path, names, lambda name: _content(folder / name), str(folder), remarks)


def _read_zip(path: AnyPath, stream: IO[bytes], remarks: Remarks) -> Iterator[Document]:
    with tempfile.TemporaryFile() as copy:  # the stream may be a pipe, and a .zip is read from its end
        with reading(path):
            shutil.copyfileobj(stream, copy)
        with _unpacking(path):
            packed = zipfile.ZipFile(copy)
            inside = {info.filename: info for info in packed.infolist()}

        def content(name: str) -> bytes | None:
            with _unpacking(path):
                return packed.read(inside[name]) if name in inside else None

        yield from _documents(path, _names(inside), content, str(path), remarks)


@contextlib.contextmanager
def _unpacking(path: AnyPath) -> Iterator[None]:
    try:
        yield
    except (*READ_ERRORS, zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, struct.error) as error:
        raise DataError(str(path), f"is no whole .zip file ({error}); pack it again") from None


def _names(paths: Iterable[str]) -> list[str]:
    shown = (each for each in paths if not any(part.startswith((".", "__MACOSX")) for part in each.split("/")))
    return sorted({each[:-4] for each in shown if each.endswith((TEXT, ANNOTATION))})


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(str(path), f"cannot be read ({error.strerror or error})") from None


def _documents(
    path: AnyPath, names: list[str], content: Callable[[str], bytes | None], folder: str, remarks: Remarks
) -> Iterator[Document]:
    if not names:
        raise DataError(
            str(path), f"has no NAME{TEXT} in it; brat has NAME{TEXT} and NAME{ANNOTATION} for each document"
        )
    for name in names:
        text, lines = content(name + TEXT), content(name + ANNOTATION)
        place = os.path.join(folder, name + ANNOTATION)
        if text is None:
            raise DataError(place, f"there is no {quoted(name)}{TEXT} beside it; brat needs both")
        document = Document(decoded(text, os.path.join(folder, name + TEXT)), name)
        if lines is not None:
            document = replace(document, spans=_spans(decoded(lines, place), document.text, place, remarks))
        yield document


def _spans(lines: str, text: str, where: str, remarks: Remarks) -> tuple[Span, ...]:
    marked: list[tuple[str, Marked]] = []
    probabilities: dict[str, float] = {}
    for number, line in enumerate(lines.removeprefix("\ufeff").split("\n"), start=1):
        line = line.rstrip("\r")
        if found := _SPAN.fullmatch(line):
            marked.append((found[1], _mark(found, text, remarks)))
            placed([marked[-1][1]], text, f"{where}:{number}", Remarks(where), in_one_line)  # says what is wrong
        elif (note := _NOTE.fullmatch(line)) and float(note[2]) <= 1:
            probabilities[note[1]] = float(note[2])
        elif line[:1] == "T" or (line.strip() and line[0] not in _OTHERS):
            raise DataError(
                f"{where}:{number}", f"'{quoted(line)}' is no line of brat; one of a span is T1 TAB LOC 3 9 TAB Madrid"
            )
        elif line.strip():
            remarks.count("line", "of brat that are no spans passed over")
    spans = [each._replace(probability=probabilities.get(name)) for name, each in marked]
    return placed(spans, text, where, remarks, in_one_line)


def _mark(found: re.Match[str], text: str, remarks: Remarks) -> Marked:
    parts = [(int(start), int(end)) for start, end in (part.split(" ") for part in found[3].split(";"))]
    start, end, own = min(a for a, _ in parts), max(b for _, b in parts), found[4]
    if len(parts) > 1:
        between = [text[max(a[1], 0) : max(b[0], 0)] for a, b in itertools.pairwise(parts)]
        if any(each.strip() for each in between):
            remarks.count("span", "of several parts, each read as one from its first to its last character")
        inside = all(0 <= a < b <= len(text) for a, b in parts)
        if inside and own is not None and in_one_line(" ".join(text[a:b] for a, b in parts)) == in_one_line(own):
            own = None  # it is what its parts say
    return Marked(start, end, found[2], None, own)


# ---- writing ----


def write_brat_folder(documents: Given, target: AnyPath, remarks: Remarks) -> None:
    """``target``: a folder that is not there yet or empty, or a .zip."""
    if Path(target).suffix.lower() == ".zip":
        with atomic_write(target) as stream:
            write_brat(documents, stream, remarks)
    else:
        _write_folder(documents, Path(target), remarks)


def write_brat(documents: Given, stream: IO[bytes], remarks: Remarks) -> None:
    """As a .zip."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in _files(documents, remarks):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(info, content)


def _write_folder(documents: Given, folder: Path, remarks: Remarks) -> None:
    """All of it, or nothing: written beside, and renamed in the end."""
    try:
        if folder.is_dir() and any(folder.iterdir()):
            raise UsageError(f"{folder}: is a folder with files in it; name one that is not there yet, or a .zip")
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder}: is a file; brat writes a folder: name one, or a .zip")
        beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".tmp"))
        try:
            made = beside / "made"  # with the rights of any new folder
            made.mkdir()
            for name, content in _files(documents, remarks):
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                (made / name).write_bytes(content)
            if folder.is_dir():
                folder.rmdir()
            made.rename(folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise SparsezoError(f"{folder}: cannot be written ({error.strerror or error}); name another place") from None


def _files(documents: Given, remarks: Remarks) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each file; in the end the labels, which brat wants to know."""
    taken: set[str] = set()
    labels: dict[str, None] = {}
    for number, (where, document) in enumerate(documents, start=1):
        name = _file_name(document, number, taken, remarks)
        remarks.without("brat has", document)
        remarks.count("document", "of which not all is known: brat takes the rest as outside", int(document.missing))
        yield name + TEXT, document.text.encode("utf-8")
        if document.spans is not None:
            labels.update(dict.fromkeys(span.label for span in document.spans))
            yield name + ANNOTATION, "".join(_lines(document, where)).encode("utf-8")
    entities = "".join(f"{label}\n" for label in labels)
    yield CONFIGURATION, f"[entities]\n{entities}[relations]\n[events]\n[attributes]\n".encode()


def _file_name(document: Document, number: int, taken: set[str], remarks: Remarks) -> str:
    name = document.id
    if name is not None and (not _is_name(name) or name.casefold() in taken):
        remarks.count("id", "that cannot name a file, or twice: a number stands for it")
        name = None
    while name is None or name.casefold() in taken:
        name = f"{number:06d}" if name is None else name + "_"
    taken.add(name.casefold())
    return name


def _is_name(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return (
        bool(parts)
        and "/".join(parts) == name
        and not name.startswith("/")
        and not any(_UNSAFE.search(part) or len(part.encode()) > _LONGEST for part in parts)
        and len(parts) < 10
    )


def _lines(document: Document, where: str) -> Iterator[str]:
    notes = 0
    for number, span in enumerate(document.spans or (), start=1):
        if not span.label or re.search(r"\s", span.label):
            raise DataError(where, f"label '{quoted(span.label)}': brat's labels are words without blanks; rename it")
        own = in_one_line(document.text[span.start : span.end])
        yield f"T{number}\t{span.label} {span.start} {span.end}\t{own}\n"
        if span.probability is not None:
            notes += 1
            yield f"#{notes}\tAnnotatorNotes T{number}\t{span.probability!r}\n"
