"""Reading compressed or not, with the place of what is wrong; writing whole files or none, durably."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import stat
import sys
import threading
import zlib

import pytest

from sparsezo.errors import DataError, SparsezoError, UsageError
from sparsezo.storage import files, limits, locks
from sparsezo.storage.files import (
    atomic_write,
    is_special,
    numbered_lines,
    open_bytes,
    open_sniffed,
    working_folder,
    write_text,
)

WRITERS = {"": open, ".gz": gzip.open, ".xz": lzma.open}


# Reading


@pytest.mark.parametrize("ending", WRITERS)
def test_lines_are_numbered_from_one(tmp_path, ending):
    path = tmp_path / f"file{ending}"
    with WRITERS[ending](path, "wb") as stream:
        stream.write("\ufeffone\r\ntwo\n\nünë".encode())
    assert list(numbered_lines(path)) == [(1, "one"), (2, "two"), (3, ""), (4, "ünë")]
    assert next(numbered_lines(str(path))) == (1, "one")
    with open_bytes(path) as stream:
        assert stream.read() == "\ufeffone\r\ntwo\n\nünë".encode()


@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_a_cut_off_or_damaged_archive(tmp_path, ending):
    path = tmp_path / f"file{ending}"
    with WRITERS[ending](path, "wb") as stream:
        stream.write(b"".join(b"line %d\n" % (i * i) for i in range(20_000)))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"file\.[gx]z:\d+: cannot be read on .*; is the file cut off\?$"):
        list(numbered_lines(path))
    broken = bytearray(whole)
    broken[len(whole) // 2 : len(whole) // 2 + 64] = bytes(64)
    path.write_bytes(broken)
    with pytest.raises(DataError, match="cannot be read on"):
        list(numbered_lines(path))


@pytest.mark.parametrize("kind", [OSError, EOFError, lzma.LZMAError, zlib.error])
def test_what_cannot_be_read_on_is_said_with_the_line_after_the_last_good_one(monkeypatch, kind):
    class Failing(io.BytesIO):
        def read1(self, size=-1):
            found = super().read1(10)
            if found == b"ree\n":
                raise kind("bad sector")
            return found

    monkeypatch.setattr(files, "open_bytes", lambda path: Failing(b"one\ntwo\nthree\n"))
    lines = numbered_lines("some.gz")
    assert [next(lines), next(lines)] == [(1, "one"), (2, "two")]
    with pytest.raises(DataError) as caught:
        next(lines)
    assert str(caught.value) == "some.gz:3: cannot be read on (bad sector); is the file cut off?"


class Pieces(io.BytesIO):
    """Gives what it has in pieces of one size, as a slow pipe does."""

    def __init__(self, content, size):
        super().__init__(content)
        self.size = size

    def read1(self, size=-1):
        return super().read1(self.size)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbf\n\xef\xbb\xbfb",
        b"a",
        b"a\n\n\nb\r\nc\r\r\n\rd\n",
        "å\nbø\n\u2028x\x0cy\x85z\n".encode(),
    ],
)
def test_lines_are_the_same_in_whatever_pieces_a_file_comes(content, size):
    plain = content.removeprefix(b"\xef\xbb\xbf")
    expected = [line.decode().rstrip("\r\n") for line in io.BytesIO(plain)]
    assert list(numbered_lines("some.txt", Pieces(content, size))) == list(enumerate(expected, 1))


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_lines_before_one_that_is_no_text_are_given(size):
    lines = numbered_lines("some.txt", Pieces(b"one\r\ntwo\nthr\xffee\nfour\n", size))
    assert [next(lines), next(lines)] == [(1, "one"), (2, "two")]
    with pytest.raises(DataError, match=r"^some\.txt:3: is not UTF-8 text \(invalid start byte\); convert it first$"):
        next(lines)


@pytest.mark.parametrize("ending", WRITERS)
def test_what_cannot_be_opened(tmp_path, ending):
    missing, folder = tmp_path / f"none{ending}", tmp_path / f"folder{ending}"
    folder.mkdir()
    for path, what in ((missing, "no such file; check the path"), (folder, "is a folder; name a file in it")):
        with pytest.raises(DataError) as caught:
            open_bytes(path)
        assert str(caught.value) == f"{path}: {what}"


# Writing


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_there_when_it_is_whole(tmp_path):
    """Until then the old one is, and the new one lies beside it under a hidden name of its own."""
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with atomic_write(path) as stream:
        stream.write(b"new")
        assert path.read_bytes() == b"old"
        (temporary,) = set(names_in(tmp_path)) - {"out"}
        assert temporary.startswith(".out.")
        assert temporary.endswith(".tmp")
    assert path.read_bytes() == b"new"
    assert names_in(tmp_path) == ["out"]


def test_two_writers_do_not_share_a_temporary_file(tmp_path):
    with atomic_write(tmp_path / "out") as one, atomic_write(tmp_path / "out") as other:
        one.write(b"one")
        other.write(b"other")
    assert (tmp_path / "out").read_bytes() == b"one"  # it ended last
    assert names_in(tmp_path) == ["out"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("half"), SparsezoError("half")])
def test_a_write_that_fails_leaves_nothing_behind(tmp_path, error):
    """And the error is the caller's own."""
    path = tmp_path / "out"
    path.write_bytes(b"old")

    def interrupted():
        with atomic_write(path) as stream:
            stream.write(b"half")
            raise error

    with pytest.raises(type(error)) as caught:
        interrupted()
    assert caught.value is error
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["out"]


@pytest.mark.parametrize("culprit", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize(
    ("error", "said"), [(OSError(28, "No space left on device"), "No space left on device"), (OSError("odd"), "odd")]
)
def test_a_disk_that_is_full_is_said_in_a_line_and_leaves_nothing_behind(tmp_path, monkeypatch, culprit, error, said):
    path = tmp_path / "out"
    path.write_bytes(b"old")

    def fail(*_args):
        raise error

    monkeypatch.setattr(os, culprit, fail)
    with pytest.raises(SparsezoError) as caught:
        write_text(path, "new")
    assert str(caught.value) == f"{path}: cannot be written ({said}); free some space or name another place"
    assert caught.value.__cause__ is error
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["out"]


@pytest.fixture
def calls(monkeypatch):
    """What is made durable and renamed, in order; for a file, how much of it the system has."""
    seen = []
    fsync, replace = os.fsync, os.replace

    def recorded_fsync(descriptor):
        status = os.fstat(descriptor)
        seen.append(("folder", status.st_ino) if stat.S_ISDIR(status.st_mode) else ("file", status.st_size))
        fsync(descriptor)

    def recorded_replace(source, target):
        seen.append(("rename", os.fspath(target)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "replace", recorded_replace)
    return seen


def test_the_file_then_its_name_are_made_durable(tmp_path, calls):
    path = tmp_path / "out"
    write_text(path, "12345")
    assert calls == [("file", 5), ("rename", str(path)), ("folder", tmp_path.stat().st_ino)]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600), (0, 0o666)])
def test_others_may_read_a_file_as_the_umask_says(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        write_text(tmp_path / "out", "new")
        assert os.umask(mask) == mask  # as it was
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == mode


# Pipes, standard input, and a look at the beginning


@pytest.fixture
def typed(monkeypatch):
    """Standard input with this content."""

    def give(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


@pytest.mark.parametrize("packed", [bytes, gzip.compress, lzma.compress])
def test_standard_input_is_a_file_called_dash(typed, packed):
    typed(packed(b"one\ntwo\n"))
    assert list(numbered_lines("-")) == [(1, "one"), (2, "two")]
    assert not sys.stdin.buffer.closed


def test_standard_input_is_read_once(typed):
    typed(b"one\n")
    list(numbered_lines("-"))
    with pytest.raises(UsageError, match=r"standard input \(-\) can be read only once"):
        open_bytes("-")
    typed(b"two\n")  # another one
    assert list(numbered_lines("-")) == [(1, "two")]


def test_standard_input_is_named_in_messages(typed, monkeypatch):
    typed(b"fine\n\xff\n")
    with pytest.raises(DataError, match=r"^standard input:2: is not UTF-8 text"):
        list(numbered_lines("-"))
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match=r"^standard input: is closed; give a file"):
        open_bytes("-")


@pytest.mark.parametrize("size", [0, 1, 5, 70_000, 300_000])
def test_a_pipe_is_sniffed_without_losing_a_byte(size):
    """A pipe gives 64 KiB at a time and cannot be opened twice."""
    data = bytes(range(256)) * 1000
    reading, writing = os.pipe()
    writer = threading.Thread(target=_write_all, args=(writing, data))
    writer.start()
    with open_sniffed(f"/dev/fd/{reading}", size) as (head, stream):
        assert head == data[:size]
        assert stream.read() == data
    writer.join()
    os.close(reading)


def _write_all(descriptor, data):
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)


def test_lines_of_an_open_stream_leave_it_open(tmp_path):
    stream = io.BytesIO(b"one\ntwo\n")
    assert list(numbered_lines("named", stream)) == [(1, "one"), (2, "two")]
    assert not stream.closed


def test_a_line_without_end_is_refused_and_can_be_insisted_on(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "LINE", 10)
    path = tmp_path / "file"
    path.write_bytes(b"short\n" + b"x" * 9 + b"\n" + b"y" * 25 + b"\nend\n")
    lines = numbered_lines(path)
    assert [next(lines), next(lines)] == [(1, "short"), (2, "x" * 9)]
    with pytest.raises(DataError, match=r"file:3: a line of more than .*; if it is meant, add `insist`"):
        next(lines)
    with limits.insisting():
        assert [line for _, line in numbered_lines(path)] == ["short", "x" * 9, "y" * 25, "end"]


def test_insisting_ends_with_its_block(monkeypatch):
    monkeypatch.delenv(limits.VARIABLE, raising=False)
    assert not limits.insisted()
    with limits.insisting():
        assert limits.insisted()
        limits.refuse("here", "anything")
        with limits.insisting(False):
            assert limits.insisted()
    assert not limits.insisted()
    monkeypatch.setenv(limits.VARIABLE, "0")
    assert not limits.insisted()
    with limits.insisting():
        assert limits.insisted()
    assert os.environ[limits.VARIABLE] == "0"


# Writing to what is no regular file


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "model", tmp_path / "link"
    link.symlink_to(target)
    for text in ("first", "second"):  # when it is not there, and when it is
        write_text(link, text)
        assert link.is_symlink()
        assert target.read_text() == text
    assert names_in(tmp_path / "real") == ["model"]


def test_a_fifo_is_written_through(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    got = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    write_text(path, "through")
    reader.join()
    assert got == [b"through"]
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert names_in(tmp_path) == ["fifo"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_devices_are_written_through():
    write_text("/dev/null", "gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(SparsezoError, match="/dev/full: cannot be written"):
        write_text("/dev/full", "no room")


# What the dead leave behind


def test_files_of_killed_writers_are_removed_and_those_of_living_ones_are_not(tmp_path):
    (tmp_path / ".out.dead.tmp").write_bytes(b"half")
    (tmp_path / ".other.dead.tmp").write_bytes(b"half")
    with atomic_write(tmp_path / "out") as living:
        assert ".out.dead.tmp" not in names_in(tmp_path)
        write_text(tmp_path / "out", "second")
        living.write(b"first")
    assert (tmp_path / "out").read_text() == "first"
    assert names_in(tmp_path) == [".other.dead.tmp", "out"]
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / ".deep.dead.tmp").write_bytes(b"half")
    with atomic_write(tmp_path / "other"):
        (tmp_path / ".third.dead.tmp").write_bytes(b"half")
        with working_folder(tmp_path):
            assert len([name for name in names_in(tmp_path) if name.endswith(".tmp")]) == 1
    assert names_in(tmp_path) == ["below", "other", "out"]
    assert names_in(tmp_path / "below") == []


def test_a_file_that_another_writer_takes_for_a_left_over_is_made_again(tmp_path, monkeypatch):
    """It is there for a moment before it is locked."""
    take, removed = locks.take, []

    def late(descriptor):
        if not removed:
            (mine,) = tmp_path.glob(".model.*.tmp")
            removed.append(mine)
            monkeypatch.setattr(locks, "take", take)
            files.remove_left_over(tmp_path / "model")  # as the other writer does
            assert not mine.exists()
        return take(descriptor)

    monkeypatch.setattr(locks, "take", late)
    with atomic_write(tmp_path / "model") as stream:
        stream.write(b"whole")
    assert len(removed) == 1
    assert (tmp_path / "model").read_bytes() == b"whole"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_left_overs_of_a_name_with_stars_are_its_own(tmp_path):
    (tmp_path / ".out.dead.tmp").write_bytes(b"half")
    (tmp_path / ".o*t.dead.tmp").write_bytes(b"half")
    write_text(tmp_path / "o*t", "new")
    assert names_in(tmp_path) == [".out.dead.tmp", "o*t"]


@pytest.mark.parametrize("name", ["/dev/fd/{}", "/proc/self/fd/{}", "{}/link"])
def test_what_is_open_already_is_written_on_not_anew(tmp_path, name):
    with open(tmp_path / "file", "wb") as file:
        file.write(b"before ")
        file.flush()
        (tmp_path / "link").symlink_to(f"/dev/fd/{file.fileno()}")
        path = name.format(tmp_path if "link" in name else file.fileno())
        assert is_special(path)
        with atomic_write(path) as stream:
            stream.write(b"within ")
        file.write(b"after")
    assert (tmp_path / "file").read_bytes() == b"before within after"


def test_links_that_go_round_are_no_descriptor(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert not is_special(tmp_path / "a")


def test_a_folder_is_worked_in_by_one_alone(tmp_path):
    folder = tmp_path / "new" / "results"
    with working_folder(folder):
        assert [path.name for path in folder.iterdir()] == [".lock"]
        with pytest.raises(SparsezoError, match=r"results: another process is working in it; wait for it, or name"):
            working_folder(folder).__enter__()
    assert not list(folder.iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(SparsezoError, match=r"file: cannot be made \(File exists\); name another folder with -o"):
        working_folder(tmp_path / "file").__enter__()
