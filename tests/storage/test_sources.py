"""Files that are known by their content before they are read."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import threading
from pathlib import Path

import pytest

from sparsezo.errors import DataError
from sparsezo.storage.sources import Source

TEXT = b"".join(b"line %d\n" % k for k in range(50_000))


def content(source: Source) -> bytes:
    with source.reading() as stream:
        return stream.read()


def write_and_close(descriptor: int, raw: bytes) -> None:
    with open(descriptor, "wb") as stream:
        stream.write(raw)


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_a_file_and_a_pipe_are_alike(tmp_path: Path, ending: str, pack) -> None:
    """The sum is of the bytes as they lie there; a file is unpacked by its name, a pipe by its content."""
    path, spool = tmp_path / f"x{ending}", tmp_path / "spool"
    raw = pack(TEXT)
    path.write_bytes(raw)
    end, other = os.pipe()
    writer = threading.Thread(target=write_and_close, args=(other, raw))
    writer.start()
    with Source(path, spool) as file, Source(f"/dev/fd/{end}", spool) as pipe:
        assert not spool.exists() or not list(spool.iterdir())
        for source in (file, pipe):
            assert source.sum == hashlib.blake2b(raw, digest_size=20).hexdigest()
            assert source.bytes == len(raw)
            assert content(source) == content(source) == TEXT  # as often as one likes
    writer.join()
    os.close(end)
    assert list(spool.iterdir()) == []


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(TEXT)
    with Source(path, tmp_path) as source:
        path.write_bytes(TEXT[:-2] + b"!\n")
        with pytest.raises(DataError, match=r"x: changed while it was read; begin again when it is written"):
            content(source)
        path.write_bytes(TEXT)
        with source.reading() as stream:
            assert stream.readline() == b"line 0\n"  # the rest is looked at all the same
        path.write_bytes(TEXT + b"more\n")
        with pytest.raises(DataError, match="changed while it was read"), source.reading() as stream:
            stream.readline()


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"), Source(tmp_path / "x", tmp_path):
        pass
    with pytest.raises(DataError, match="is a folder"), Source(tmp_path, tmp_path):
        pass
