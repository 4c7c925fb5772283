"""A file that is known by its content before it is read: opened once, and a pipe is a file like any other.

    with Source("train.nbest.xz", spool=cache) as source:
        if source.sum not in known:                         # blake2b of the bytes as they lie there
            with source.reading() as stream: ...            # unpacked

What cannot be read twice is copied first, into a file in the folder ``spool`` that has no name, so that nothing is left
of it however we end. A file that changes between its sum and its reading is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Self, cast

from sparsezo.errors import DataError
from sparsezo.storage import files
from sparsezo.storage.fingerprint import hasher

SUM_BYTES = 20
_BLOCK = 1 << 20


def new_sum() -> hashlib.blake2b:
    return hasher(SUM_BYTES)


class Source:
    """A file that is about to be imported."""

    def __init__(self, path: str | os.PathLike[str], spool: Path) -> None:
        self.path, self._spool = path, spool
        self.sum = ""
        self.bytes = 0
        self._copied = False

    def __enter__(self) -> Self:
        self._raw = files.open_raw(self.path)
        try:
            self._copied = not _can_be_read_again(self._raw)
            copy = None
            if self._copied:
                self._spool.mkdir(parents=True, exist_ok=True)
                copy = cast(IO[bytes], tempfile.TemporaryFile(dir=self._spool))
            digest = new_sum()
            for block in self._blocks():
                digest.update(block)
                self.bytes += len(block)
                if copy is not None:
                    copy.write(block)
            if copy is not None:
                self._raw.close()
                self._raw = copy
            self.sum = digest.hexdigest()
        except BaseException:
            self._raw.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def _blocks(self) -> Iterator[bytes]:
        while True:
            with files.reading(self.path):
                block = self._raw.read(_BLOCK)
            if not block:
                return
            yield block

    @contextlib.contextmanager
    def reading(self) -> Iterator[IO[bytes]]:
        """The content, unpacked; DataError at the end where it is not what the sum was of."""
        self._raw.seek(0)
        digest = new_sum()
        with io.BufferedReader(files.Wrapped(self._raw, seen=digest.update), 1 << 17) as stream:
            with files.unpacked(stream, self.path, by_content=self._copied) as content:
                yield content
            for block in self._blocks():  # the rest of it
                digest.update(block)
        if digest.hexdigest() != self.sum:
            raise DataError(str(self.path), "changed while it was read; begin again when it is written")


def _can_be_read_again(stream: IO[bytes]) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # standard input: our stream over it has no descriptor of its own
        return False
