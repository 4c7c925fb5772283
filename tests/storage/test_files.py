"""Reading compressed or not, with the place of what is wrong."""

from __future__ import annotations

import gzip
import lzma

import pytest

from sparsezo.errors import DataError
from sparsezo.storage.files import atomic_write, numbered_lines

WRITERS = {"": open, ".gz": gzip.open, ".xz": lzma.open}


@pytest.mark.parametrize("ending", WRITERS)
def test_lines_are_numbered_from_one(tmp_path, ending):
    path = tmp_path / f"file{ending}"
    with WRITERS[ending](path, "wb") as stream:
        stream.write("\ufeffone\r\ntwo\n\nünë".encode())
    assert list(numbered_lines(path)) == [(1, "one"), (2, "two"), (3, ""), (4, "ünë")]


@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_a_cut_off_or_damaged_archive(tmp_path, ending):
    path = tmp_path / f"file{ending}"
    with WRITERS[ending](path, "wb") as stream:
        stream.write(b"".join(b"line %d\n" % (i * i) for i in range(20_000)))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"file\.[gx]z:\d+: cannot be read on .*cut off"):
        list(numbered_lines(path))
    broken = bytearray(whole)
    broken[len(whole) // 2 : len(whole) // 2 + 64] = bytes(64)
    path.write_bytes(broken)
    with pytest.raises(DataError, match="cannot be read on"):
        list(numbered_lines(path))


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(DataError, match="no such file; check the path"):
        list(numbered_lines(tmp_path / "none"))
    with pytest.raises(DataError, match="is a folder"):
        list(numbered_lines(tmp_path))


def test_not_utf8(tmp_path):
    path = tmp_path / "latin"
    path.write_bytes(b"fine\nna\xefve\n")
    with pytest.raises(DataError, match=r"latin:2: is not UTF-8"):
        list(numbered_lines(path))


def test_atomic_write_is_all_or_nothing(tmp_path):
    path = tmp_path / "out"
    with atomic_write(path) as stream:
        stream.write(b"new")
    assert path.read_bytes() == b"new"

    def interrupted():
        with atomic_write(path) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
