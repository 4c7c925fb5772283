"""Reading plain, .gz and .xz files alike, and writing files that are whole or not there at all.

for number, line in numbered_lines("train.txt.gz"): ...
with open_sniffed("train.txt") as (head, stream): ...      # a look at the beginning; stream gives it once more
with atomic_write("model.szo") as out: out.write(data)     # temporary name, fsync, rename

A file is opened once, so pipes work; ``-`` is standard input. What is not a regular file (a pipe, /dev/stdout) is
written through, and of a symbolic link the file that it points to is replaced.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import os
import re
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from sparsezo.errors import DataError, SparsezoError, UsageError
from sparsezo.storage import limits, locks

STANDARD_INPUT = "-"
READ_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)  # of plain and packed files that cannot be read on
_ENDINGS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
_MAGIC: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open}
_MOST_MAGIC = max(map(len, _MAGIC))
_BLOCK = 1 << 17  # bytes read at a time
_MOST_LINKS = 40  # one after the other, as the system has it
_taken: Any = None  # the standard input that was read already


def open_bytes(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open for reading, decompressed by the name's ending (standard input: by its content); or a clear error."""
    if os.fspath(path) == STANDARD_INPUT:
        return unpacked(_standard_input(), path, by_content=True)
    with _opening(path):
        return cast(IO[bytes], _ENDINGS.get(Path(path).suffix, open)(path, "rb"))


def open_raw(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open for reading as the bytes are, packed or not; or a clear error."""
    if os.fspath(path) == STANDARD_INPUT:
        return _standard_input()
    with _opening(path):
        return open(path, "rb")


def unpacked(stream: IO[bytes], path: str | os.PathLike[str], *, by_content: bool) -> IO[bytes]:
    """A stream of ``open_raw`` as it is to be read: unpacked by the name's ending, or, that of a pipe, by its content.

    Closing it leaves ``stream`` open where it is packed.
    """
    opener = _ENDINGS.get(Path(path).suffix)
    if opener is None and by_content:
        with reading(path):
            head = stream.read(_MOST_MAGIC)
        stream = with_head(head, stream)
        opener = next((opener for magic, opener in _MAGIC.items() if head.startswith(magic)), None)
    return stream if opener is None else cast(IO[bytes], opener(stream, "rb"))


@contextlib.contextmanager
def _opening(path: str | os.PathLike[str]) -> Iterator[None]:
    """What can go wrong while opening, in our words."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(str(path), "no such file; check the path") from None
    except IsADirectoryError:
        raise DataError(str(path), "is a folder; name a file in it") from None
    except (OSError, ValueError) as error:
        raise DataError(str(path), f"cannot be opened ({getattr(error, 'strerror', None) or error})") from None


def named(path: str | os.PathLike[str]) -> str:
    """A file's name for a message."""
    return "standard input" if os.fspath(path) == STANDARD_INPUT else str(path)


def _standard_input() -> IO[bytes]:
    global _taken
    if sys.stdin is None:
        raise DataError(STANDARD_INPUT, "is closed; give a file")
    if sys.stdin is _taken:
        raise UsageError("standard input (-) can be read only once; give a file for the other")
    _taken = sys.stdin
    return io.BufferedReader(_Kept(sys.stdin.buffer))


class _WithHead(io.RawIOBase):
    """What was read of a stream already, and then the rest of it."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = memoryview(head), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._head:
            return cast(int, cast(Any, self._rest).readinto(buffer))
        size = min(len(self._head), len(buffer))
        buffer[:size] = self._head[:size]
        self._head = self._head[size:]
        return size

    def close(self) -> None:
        self._rest.close()
        super().close()


class _Kept(io.RawIOBase):
    """Standard input, which stays open when we are done with it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return cast(int, self._stream.readinto(buffer))


def with_head(head: bytes, rest: IO[bytes]) -> IO[bytes]:
    """A stream that gives ``head`` and then ``rest``; closing it closes ``rest``."""
    return io.BufferedReader(_WithHead(head, rest), 1 << 17)


@contextlib.contextmanager
def open_sniffed(path: str | os.PathLike[str], size: int) -> Iterator[tuple[bytes, IO[bytes]]]:
    """The first ``size`` bytes (fewer where the file is shorter) and the whole stream, these bytes included."""
    with open_bytes(path) as stream:
        with reading(path, 1):
            head = stream.read(size)
        yield head, with_head(head, stream)


@contextlib.contextmanager
def reading(path: str | os.PathLike[str], line: int | None = None) -> Iterator[None]:
    """What can go wrong while reading, in our words."""
    try:
        yield
    except READ_ERRORS as error:
        where = f"{path}:{line}" if line is not None else str(path)
        raise DataError(where, f"cannot be read on ({error}); is the file cut off?") from None


def numbered_lines(path: str | os.PathLike[str], stream: IO[bytes] | None = None) -> Iterator[tuple[int, str]]:
    """Lines with their numbers from 1, without line ends; UTF-8, with or without a byte order mark.

    ``stream``: the open file, where somebody has opened it already; ``path`` then only names it.
    """
    number = 0
    with open_bytes(path) if stream is None else contextlib.nullcontext(stream) as source:
        try:
            for block in _whole_lines(source, path):
                large = len(block) > limits.LINE
                for line in _texts(block if number else block.removeprefix(b"\xef\xbb\xbf")):
                    number += 1
                    if large and len(line.encode()) >= limits.LINE:
                        refuse_line(path, number)
                    yield number, line
        except UnicodeDecodeError as error:
            raise DataError(f"{path}:{number + 1}", f"is not UTF-8 text ({error.reason}); convert it first") from None
        except READ_ERRORS as error:
            raise DataError(f"{path}:{number + 1}", f"cannot be read on ({error}); is the file cut off?") from None


def _whole_lines(source: IO[bytes], path: str | os.PathLike[str]) -> Iterator[bytes]:
    """What there is, as it comes, cut where lines end."""
    rest, lines, long = [b""], 0, 0
    while found := cast(Any, source).read1(_BLOCK):
        end = found.rfind(b"\n") + 1
        if end:
            block = b"".join([*rest, found[:end]])
            lines += block.count(b"\n")
            yield block
            rest, found = [], found[end:]
        rest.append(found)
        long = len(found) if end else long + len(found)
        if long > limits.LINE:
            refuse_line(path, lines + 1)
    if block := b"".join(rest):
        yield block


def _texts(block: bytes) -> Iterator[str]:
    """Line by line, up to one that is no text."""
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError:
        for raw in io.BytesIO(block):
            yield raw.decode("utf-8").rstrip("\r\n")
        return
    lines = text.removesuffix("\n").split("\n") if text else []
    yield from [line.rstrip("\r") for line in lines] if "\r" in text else lines


def refuse_line(path: str | os.PathLike[str], number: int) -> None:
    """A line longer than ``limits.LINE``, which no text has."""
    limits.refuse(f"{path}:{number}", f"a line of more than {limits.LINE >> 20} MB: is this a text file?")


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary stream that becomes ``path`` when the block ends well, and leaves nothing behind when not."""
    try:
        if (descriptor := _descriptor(path)) is not None:
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                yield stream
            return
        target = Path(os.path.realpath(path))  # of a link, what it points to
        with _through(target) if is_special(target) else _replacing(target) as stream:
            yield stream
    except OSError as error:
        raise SparsezoError(
            f"{path}: cannot be written ({error.strerror or error}); free some space or name another place with -o"
        ) from error


def is_special(path: str | os.PathLike[str]) -> bool:
    """There, and no regular file: a device, a pipe, a socket, or what this process has open already."""
    try:
        return _descriptor(path) is not None or not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _descriptor(path: str | os.PathLike[str]) -> int | None:
    """Of /dev/stdout, /dev/fd/3 and links to them; opened once more, a file behind them would begin anew."""
    name = os.path.abspath(path)
    for _ in range(_MOST_LINKS):
        if found := re.fullmatch(r"/dev/std(out|err)|/(?:dev|proc/self)/fd/(\d+)", name):
            return {"out": 1, "err": 2}[found[1]] if found[1] else int(found[2][:9])
        if not os.path.islink(name):
            break
        name = os.path.abspath(os.path.join(os.path.dirname(name), os.readlink(name)))
    return None


@contextlib.contextmanager
def _through(path: Path) -> Iterator[IO[bytes]]:
    with open(path, "wb") as stream:
        yield stream


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    temporary: str | None = None
    remove_left_over(path)
    try:
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", suffix=".tmp", delete=False
        ) as stream:
            temporary = stream.name
            locks.take(stream.fileno())  # held while we live: what is not locked was left by the dead
            os.chmod(temporary, 0o666 & ~_umask())
            yield cast(IO[bytes], stream)
            stream.flush()
            os.fsync(stream.fileno())
            os.replace(temporary, path)
        temporary = None
        _fsync_folder(path.parent)
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def remove_left_over(path: Path) -> None:
    """Temporary files of ``path`` whose writers were killed."""
    _remove_unlocked(path.parent.glob(f".{_literal(path.name)}.*.tmp"))


def remove_all_left_over(folder: Path) -> None:
    """Temporary files of all that is written in a folder and below it."""
    _remove_unlocked(folder.rglob(".*.tmp"))


@contextlib.contextmanager
def working_folder(folder: Path) -> Iterator[None]:
    """A folder of results, made where it is not there, for this process alone; what killed ones left is removed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SparsezoError(f"{folder}: cannot be made ({error.strerror}); name another folder with -o") from None
    with locks.locked(folder, "is working in it"):
        remove_all_left_over(folder)
        yield


def _remove_unlocked(found: Iterator[Path]) -> None:
    with contextlib.suppress(OSError):
        for left in list(found):
            with contextlib.suppress(OSError), open(left, "rb") as stream:
                if locks.take(stream.fileno()):
                    os.unlink(left)


def _literal(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """A whole file of UTF-8 text, or none."""
    with atomic_write(path) as stream:
        stream.write(text.encode("utf-8"))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _fsync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
