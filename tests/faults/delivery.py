"""Damaged text of readers: handed over as people hand it over, and compared with a plain reader in both directions.

    agree(delivered(tmp_path / "x.tsv", read), SAMPLE, n, plain_tsv)

How a case is handed over (a file, a packed file, a pipe, standard input) follows from its bytes, so that a case that
failed fails again. What the plain reader reads must be read, and what it refuses (ValueError) refused.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mutations import Damage, damaged, damaged_text, endure

from sparsezo import messages
from sparsezo.errors import SparsezoError

_IN_A_PIPE = 1 << 15  # bytes that a pipe surely takes before anybody reads it
_FILE, _GZ, _XZ, _PIPE, _INPUT = range(5)
_OF_20 = (_GZ, _XZ, _PIPE, _INPUT, *([_FILE] * 16))
PACKED = {".gz": (gzip.compress, gzip.decompress), ".xz": (lzma.compress, lzma.decompress)}


def plain_lines(data: bytes) -> list[str]:
    """Lines of UTF-8 text without their ends; UnicodeDecodeError is a ValueError."""
    lines = data.decode("utf-8").removeprefix("\ufeff").split("\n")
    return [line.rstrip("\r") for line in (lines if lines[-1] else lines[:-1])]


def agree(
    read: Callable[[bytes], Any], original: bytes, n: int, plain: Callable[[bytes], Any], damage: Damage = damaged_text
) -> None:
    """``endure``, and nothing that the plain reader reads is refused."""

    def reading(data: bytes) -> Any:
        try:
            return read(data)
        except SparsezoError as error:
            with contextlib.suppress(ValueError):
                plain(data)
                raise AssertionError(f"refused, although a plain reader reads it: {error}") from error
            raise

    assert plain(original)  # neither may refuse what is whole
    endure(reading, original, damage, n, reference=plain)


def agree_packed(
    path: Path, read: Callable[[Path | str], Any], original: bytes, n: int, plain: Callable[[bytes], Any]
) -> None:
    """A packed file with any bytes changed: cut, patched together, with a wrong sum."""
    pack, unpack = PACKED[path.suffix]

    def plain_unpacked(data: bytes) -> Any:
        try:
            content = unpack(data)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise ValueError(error) from None
        return plain(content)

    def reading(data: bytes) -> Any:
        path.write_bytes(data)
        with messages.gathered():
            return read(path)

    agree(reading, pack(original), n, plain_unpacked, damaged)


def delivered(path: Path, read: Callable[[Path | str], Any], standard_input: bool = True) -> Callable[[bytes], Any]:
    """A reader of files as a reader of bytes; remarks go nowhere. ``standard_input`` has no name to go by."""

    def reading(data: bytes) -> Any:
        way = _OF_20[zlib.crc32(data) % len(_OF_20)]
        with contextlib.ExitStack() as stack:
            stack.enter_context(messages.gathered())
            if way in (_GZ, _XZ):
                packed = path.with_name(path.name + (".gz" if way == _GZ else ".xz"))
                packed.write_bytes(gzip.compress(data, 1) if way == _GZ else lzma.compress(data, preset=0))
                return read(packed)
            if way == _PIPE and len(data) <= _IN_A_PIPE:
                return read(stack.enter_context(_pipe(path, data)))
            if way == _INPUT and standard_input:
                stack.enter_context(_input(data))
                return read("-")
            path.write_bytes(data)
            return read(path)

    return reading


@contextlib.contextmanager
def _pipe(path: Path, data: bytes) -> Iterator[Path]:
    """As a shell's <(...) gives it, but under a name of our own."""
    source, target = os.pipe()
    name = path.with_name("pipe-" + path.name)
    try:
        os.write(target, data)
        os.close(target)
        os.symlink(f"/dev/fd/{source}", name)
        yield name
    finally:
        name.unlink(missing_ok=True)
        os.close(source)


@contextlib.contextmanager
def _input(data: bytes) -> Iterator[None]:
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(data))
    try:
        yield
    finally:
        sys.stdin = before
