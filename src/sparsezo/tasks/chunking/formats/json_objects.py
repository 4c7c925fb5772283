"""JSON objects of a file, one a line or as one list, each with its place in words; and objects written one a line.

for where, found in json_objects("export.json", stream): ...        # "export.json:3", or "export.json: object 3"
stream.write(json_line({"text": "In Madrid."}))
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import IO, Any

from sparsezo.errors import DataError, quoted, shown
from sparsezo.storage.files import READ_ERRORS, numbered_lines, with_head
from sparsezo.tasks.chunking.documents import Span
from sparsezo.tasks.chunking.formats.places import Marked, check_text

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_ENDS_LINES = {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}  # for readers that split at them
_ESCAPED = str.maketrans(_ENDS_LINES)
_LOOKED_AT = 1 << 12  # bytes in which a list begins


def json_objects(path: str | os.PathLike[str], stream: IO[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each object and where it stands. Lines are read one by one, a list as a whole."""
    head = _peek(path, stream)
    stream = with_head(head, stream)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        text = _all(path, stream)
        found = _parsed(text, str(path))
        for number, each in enumerate(found, start=1):
            where = f"{path}: object {number}"
            yield where, _object(each, where)
        return
    for number, line in numbered_lines(path, stream):
        if line and not line.isspace():
            where = f"{path}:{number}"
            yield where, _object(_parsed(line, where), where)


def _peek(path: str | os.PathLike[str], stream: IO[bytes]) -> bytes:
    try:
        return stream.read(_LOOKED_AT)
    except READ_ERRORS as error:
        raise DataError(f"{path}:1", f"cannot be read on ({error}); is the file cut off?") from None


def _all(path: str | os.PathLike[str], stream: IO[bytes]) -> str:
    try:
        return stream.read().decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise DataError(str(path), f"is not UTF-8 text ({error.reason}); convert it first") from None
    except READ_ERRORS as error:
        raise DataError(str(path), f"cannot be read on ({error}); is the file cut off?") from None


def _parsed(text: str, where: str) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of too many digits, and brackets too deep
        raise DataError(
            where, f"'{quoted(text)}' is not JSON ({error}); expected one object a line, or one list of objects"
        ) from None
    if _HALF.search(text):
        check_text(json.dumps(found, ensure_ascii=False), where)
    return found


def _object(found: Any, where: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise DataError(where, f"'{shown(found, repr)}' is no object; expected {{\"text\": ..., ...}}")
    return found


def json_line(found: dict[str, Any]) -> bytes:
    """One line, UTF-8, and no character within that any reader could take for a line end."""
    try:
        text = json.dumps(found, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError("a document's `meta`", f"cannot be written as JSON ({error}); keep what JSON has") from None
    if not text.isascii():
        text = text.translate(_ESCAPED)
    try:
        return text.encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        raise DataError("a document's `meta`", "half of a surrogate pair, which is no character") from None


def text_field(found: dict[str, Any], where: str, name: str = "text") -> str:
    """The document's text, which must be there and a string."""
    if name not in found:
        fields = ", ".join(f"'{quoted(key)}'" for key in list(found)[:20]) or "nothing"
        raise DataError(where, f"has no '{name}'; it has {fields}. Name the text '{name}'")
    if not isinstance(found[name], str):
        raise DataError(where, f"'{name}' is {shown(found[name], repr)}; a document's text is a string")
    return str(found[name])


def id_of(found: dict[str, Any]) -> str | None:
    """A document's id, taken out of its fields; what is neither a string nor a number stays where it is."""
    if isinstance(found.get("id"), str) or type(found.get("id")) is int:
        return str(found.pop("id"))
    if found.get("id", ...) is None:
        del found["id"]
    return None


def marked_object(found: Any, where: str) -> Marked:
    """A span that is an object: start, end, label, and perhaps a probability and its own text."""
    if not isinstance(found, dict):
        raise DataError(where, f'a span is \'{shown(found, repr)}\'; expected {{"start": 3, "end": 9, "label": ...}}')
    start, end = found.get("start", found.get("start_offset")), found.get("end", found.get("end_offset"))
    own = found.get("text")
    return Marked(start, end, found.get("label"), found.get("probability"), own if isinstance(own, str) else None)


def as_object(span: Span) -> dict[str, Any]:
    found: dict[str, Any] = {"start": span.start, "end": span.end, "label": span.label}
    return found if span.probability is None else {**found, "probability": span.probability}
