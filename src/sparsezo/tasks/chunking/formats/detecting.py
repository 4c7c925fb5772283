"""Which format a file of documents has, by its name and its first bytes.

detect_format("export.json")            # 'label-studio'
detect_format("news.txt")               # 'text': plain text, which readers of spans do not read
"""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from sparsezo.errors import DataError
from sparsezo.storage.files import STANDARD_INPUT, open_sniffed
from sparsezo.tasks.chunking import conllu
from sparsezo.tasks.chunking.conll import split_cells
from sparsezo.tasks.chunking.crfsuite import looks_like_crfsuite
from sparsezo.tasks.chunking.formats.brat import CONFIGURATION
from sparsezo.tasks.chunking.formats.hugging_face import INFO, SPLITS, STATE, TAGS, TOKENS
from sparsezo.tasks.chunking.tags import is_chunk_tag
from sparsezo.tasks.chunking.unlabelled import looks_like_columns

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
    b"PAR1": "datasets",
    b"ARROW1": "datasets",
    b"\xff\xff\xff\xff": "datasets",
    b"PK\x03\x04": "brat",
    b"x\x9c": "spacy",
    b"x\x01": "spacy",
    b"x\xda": "spacy",
}
_PRODIGY = ("answer", "_view_id", "_input_hash", "_task_hash")
_TASK = ("annotations", "predictions", "completions")


def detect_format(path: str | os.PathLike[str], head: bytes | None = None) -> str:
    """One of ``FORMATS`` (column files: "columns"), or "text", "table", "crfsuite", "unknown".

    ``head``: the first bytes, where somebody has them already; without them the file is opened, and standard input
    and pipes, which can be read only once, are "unknown". A folder is "brat", "datasets", or "text" where all it has
    is texts.
    """
    if head is None:
        if os.fspath(path) == STANDARD_INPUT:
            return UNKNOWN
        mode = _mode(path)
        if stat.S_ISDIR(mode):
            return _of_folder(Path(path))
        if not stat.S_ISREG(mode):
            return UNKNOWN
        with open_sniffed(path, SNIFFED) as (head, _):
            return _of_content(path, head)
    return _of_content(path, head)


def _mode(path: str | os.PathLike[str]) -> int:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        raise DataError(str(path), "no such file; check the path") from None
    except (OSError, ValueError) as error:
        raise DataError(str(path), f"cannot be opened ({getattr(error, 'strerror', None) or error})") from None


def _of_folder(folder: Path) -> str:
    try:
        if any((folder / name).exists() for name in (STATE, INFO, SPLITS)):
            return "datasets"
        if (folder / CONFIGURATION).exists() or next(folder.rglob("*.ann"), None) is not None:
            return "brat"
        return TEXT if next(folder.rglob("*.txt"), None) is not None else UNKNOWN
    except OSError as error:
        raise DataError(str(folder), f"cannot be read ({error.strerror})") from None


def ending(path: str | os.PathLike[str]) -> str:
    """Of a file's name, whether it is packed or not."""
    name = Path(path)
    return (name.with_suffix("") if name.suffix in (".gz", ".xz") else name).suffix.lower()


def _of_content(path: str | os.PathLike[str], head: bytes) -> str:
    if found := _ENDINGS.get(ending(path)):
        return found
    if found := next((format for magic, format in _MAGIC.items() if head.startswith(magic)), None):
        return found
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(head) - error.start > 3:  # else the last character is only cut
            return UNKNOWN
        text = head[: error.start].decode("utf-8")
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        return UNKNOWN
    if re.match(r'\s*(\{\s*["}]|\[\s*[\]{])', text) or ending(path) in (".jsonl", ".json"):
        return _of_object(_first_object(text))
    return _of_lines(path, text, whole=len(head) < SNIFFED)


def _first_object(text: str) -> dict[str, Any]:
    """The first JSON object; of one that is cut off, the names in it, with nothing behind them."""
    begin = re.search(r"\{", text)
    if begin is None:
        return {}
    try:
        found, _ = json.JSONDecoder().raw_decode(text, begin.start())
        if isinstance(found, dict):
            return found
    except (ValueError, RecursionError):
        pass
    line = text[begin.start() :].split("\n", 1)[0] if not text.lstrip().startswith("[") else text
    return {name: {} if brace else None for name, brace in re.findall(r'"(\w+)"\s*:\s*(\{?)', line)}


def _of_object(found: dict[str, Any]) -> str:
    if "data" in found and (isinstance(found["data"], dict) or any(name in found for name in _TASK)):
        return "label-studio"
    if any(
        isinstance(value, list) and value and isinstance(value[0], dict) and "labels" in value[0]
        for value in found.values()
    ):
        return "label-studio"  # JSON_MIN
    if any(name in found for name in _PRODIGY):
        return "prodigy"
    if (
        "text" not in found
        and any(name in found for name in TOKENS)
        and any(name in found for name in (*TAGS, *TOKENS))
    ):
        return "datasets"
    return "jsonl"


def _of_lines(path: str | os.PathLike[str], text: str, whole: bool) -> str:
    if not whole:
        text = text.rpartition("\n")[0] or text
    if looks_like_crfsuite(text):
        return CRFSUITE
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("-DOCSTART-")]
    first = next((line for line in lines if not line.startswith("#")), "")
    if conllu.is_conllu(path, first):
        return COLUMNS
    rows = [split_cells(line.rstrip("\r")) for line in lines]
    parted = bool(re.search(r"\S[ \t]*\r?\n[ \t]*\r?\n", text))
    tagged = bool(rows) and all(len(row) > 1 and is_chunk_tag(row[-1]) for row in rows)
    if tagged or (rows and parted and looks_like_columns(text) and len(rows) > 2):
        return COLUMNS
    return TABLE if ending(path) in (".csv", ".tsv", ".tab") else TEXT
