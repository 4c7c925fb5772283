"""Reading plain, .gz and .xz files alike, and writing files that are whole or not there at all.

for number, line in numbered_lines("train.txt.gz"): ...
with open_sniffed("train.txt") as (head, stream): ...      # a look at the beginning; stream gives it once more
with atomic_write("model.szo") as out: out.write(data)     # temporary name, fsync, rename

A file is opened once, so pipes work; ``-`` is standard input. What is not a regular file (a pipe, /dev/stdout) is
written through, and of a symbolic link the file that it points to is replaced.
"""

from __future__ import annotations

import contextlib
import glob
import gzip
import io
import lzma
import os
import re
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO, TypeVar, cast

from sparsezo.errors import DataError, SparsezoError, UsageError
from sparsezo.storage import limits, locks

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

STANDARD_INPUT = "-"
PACKED = (".gz", ".xz")
READ_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)  # of plain and packed files that cannot be read on
Name = str | os.PathLike[str]
Opener = Callable[..., object]
Seen = Callable[[memoryview], None]
Item = TypeVar("Item")
_ENDINGS: dict[str, Opener] = {".gz": gzip.open, ".xz": lzma.open}
_MAGIC: dict[bytes, Opener] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open}
_BLOCK = 1 << 17  # bytes read at a time
_taken: TextIO | None = None  # the standard input that was read already


def open_bytes(path: Name) -> IO[bytes]:
    """Open for reading, decompressed by the name's ending (standard input: by its content); or a clear error."""
    if os.fspath(path) == STANDARD_INPUT:
        return unpacked(_standard_input(), path, by_content=True)
    return _opened(path, _ENDINGS.get(Path(path).suffix, open))


def open_raw(path: Name) -> IO[bytes]:
    """Open for reading as the bytes are, packed or not; or a clear error."""
    return _standard_input() if os.fspath(path) == STANDARD_INPUT else _opened(path, open)


def unpacked(stream: IO[bytes], path: Name, *, by_content: bool) -> IO[bytes]:
    """A stream of ``open_raw`` as it is to be read: unpacked by the name's ending, or, that of a pipe, by its content.

    Closing it leaves ``stream`` open where it is packed.
    """
    opener = _ENDINGS.get(Path(path).suffix)
    if opener is None and by_content:
        with reading(path):
            head = stream.read(max(map(len, _MAGIC)))
        stream = with_head(head, stream)
        opener = next((opener for magic, opener in _MAGIC.items() if head.startswith(magic)), None)
    return stream if opener is None else cast(IO[bytes], opener(stream, "rb"))


def _opened(path: Name, opener: Opener) -> IO[bytes]:
    try:
        return cast(IO[bytes], opener(path, "rb"))
    except FileNotFoundError:
        raise DataError(str(path), "no such file; check the path") from None
    except IsADirectoryError:
        raise DataError(str(path), "is a folder; name a file in it") from None
    except (OSError, ValueError) as error:
        raise DataError(str(path), f"cannot be opened ({getattr(error, 'strerror', None) or error})") from None


def named(path: Name) -> str:
    """A file's name for a message."""
    return "standard input" if os.fspath(path) == STANDARD_INPUT else str(path)


def _standard_input() -> IO[bytes]:
    global _taken
    if sys.stdin is None:
        raise DataError(STANDARD_INPUT, "is closed; give a file")
    if sys.stdin is _taken:
        raise UsageError("standard input (-) can be read only once; give a file for the other")
    _taken = sys.stdin
    return io.BufferedReader(Wrapped(cast(IO[bytes], sys.stdin.buffer)))


class Wrapped(io.RawIOBase):
    """A stream over another: first ``head``, then what the other gives; ``seen`` gets all of that as it is read.

    Closing it closes the other only with ``closes``.
    """

    def __init__(self, stream: IO[bytes], *, head: bytes = b"", seen: Seen | None = None, closes: bool = False) -> None:
        self._stream = cast(io.BufferedReader, stream)
        self._head, self._seen, self._closes = memoryview(head), seen, closes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer)
        if self._head:
            size = min(len(self._head), len(room))
            room[:size] = self._head[:size]
            self._head = self._head[size:]
        else:
            size = self._stream.readinto(room)
        if self._seen is not None:
            self._seen(room[:size])
        return size

    def close(self) -> None:
        if self._closes:
            self._stream.close()
        super().close()


def with_head(head: bytes, rest: IO[bytes]) -> IO[bytes]:
    """A stream that gives ``head`` and then ``rest``; closing it closes ``rest``."""
    return io.BufferedReader(Wrapped(rest, head=head, closes=True), _BLOCK)


@contextlib.contextmanager
def open_sniffed(path: Name, size: int) -> Iterator[tuple[bytes, IO[bytes]]]:
    """The first ``size`` bytes (fewer where the file is shorter) and the whole stream, these bytes included."""
    with open_bytes(path) as stream:
        with reading(path, 1):
            head = stream.read(size)
        yield head, with_head(head, stream)


@contextlib.contextmanager
def reading(path: Name, line: int | None = None) -> Iterator[None]:
    """What can go wrong while reading, in our words."""
    try:
        yield
    except READ_ERRORS as error:
        where = f"{path}:{line}" if line is not None else str(path)
        raise DataError(where, f"cannot be read on ({error}); is the file cut off?") from None


def numbered_lines(path: Name, stream: IO[bytes] | None = None) -> Iterator[tuple[int, str]]:
    """Lines with their numbers from 1, without line ends; UTF-8, with or without a byte order mark.

    ``stream``: the open file, where somebody has opened it already; ``path`` then only names it.
    """
    number = 0
    with open_bytes(path) if stream is None else contextlib.nullcontext(stream) as source:
        try:
            for block in whole_lines(source, path):
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


def whole_lines(source: IO[bytes], path: Name) -> Iterator[bytes]:
    """What there is, as it comes, cut where lines end."""
    rest, lines, long = [b""], 0, 0
    while found := cast(io.BufferedReader, source).read1(_BLOCK):
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


def check_text(text: str, where: str) -> None:
    """JSON and Python can spell halves of characters, which no file of text can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(where, "half of a surrogate pair (\\ud800 to \\udfff), which is no character") from None


def refuse_line(path: Name, number: int) -> None:
    """A line longer than ``limits.LINE``, which no text has."""
    limits.refuse(f"{path}:{number}", f"a line of more than {limits.LINE >> 20} MB: is this a text file?")


@contextlib.contextmanager
def atomic_write(path: Name) -> Iterator[IO[bytes]]:
    """A binary stream that becomes ``path`` when the block ends well, and leaves nothing behind when not."""
    try:
        if (descriptor := _descriptor(path)) is not None:
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                yield stream
            return
        target = Path(os.path.realpath(path))  # of a link, what it points to
        with open(target, "wb") if is_special(target) else _replacing(target) as stream:
            yield stream
    except OSError as error:
        what = "make its folder first" if isinstance(error, FileNotFoundError) else "free some space"
        why = error.strerror or error
        raise SparsezoError(f"{path}: cannot be written ({why}); {what} or name another place") from error


def is_special(path: Name) -> bool:
    """There, and no regular file: a device, a pipe, a socket, or what this process has open already."""
    try:
        return _descriptor(path) is not None or not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _descriptor(path: Name) -> int | None:
    """Of /dev/stdout, /dev/fd/3 and links to them; opened once more, a file behind them would begin anew."""
    name = os.path.abspath(path)
    for _ in range(40):  # links one after the other, as the system has it
        if found := re.fullmatch(r"/dev/std(out|err)|/(?:dev|proc/self)/fd/(\d+)", name):
            return {"out": 1, "err": 2}[found[1]] if found[1] else int(found[2][:9])
        if not os.path.islink(name):
            break
        name = os.path.abspath(os.path.join(os.path.dirname(name), os.readlink(name)))
    return None


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    temporary: str | None = None
    remove_left_over(path)
    try:
        while True:
            descriptor, temporary = tempfile.mkstemp(".tmp", f".{path.name}.", path.parent)
            # held while we live: what is not locked was left by the dead, and another writer may have found it so
            if locks.take(descriptor) and locks.is_at(descriptor, Path(temporary)):
                break
            os.close(descriptor)
        with os.fdopen(descriptor, "w+b") as stream:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            os.replace(temporary, path)
        temporary = None
        try:
            folder = os.open(path.parent, os.O_RDONLY)
        except OSError:
            return  # a system that cannot make the rename itself durable
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def remove_left_over(path: Path) -> None:
    """Temporary files of ``path`` whose writers were killed."""
    _remove_unlocked(path.parent.glob(f".{glob.escape(path.name)}.*.tmp"))


@contextlib.contextmanager
def working_folder(folder: Path) -> Iterator[None]:
    """A folder of results, made where it is not there, for this process alone; what killed ones left is removed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SparsezoError(f"{folder}: cannot be made ({error.strerror}); name another folder with -o") from None
    with locks.locked(folder, "is working in it"):
        _remove_unlocked(folder.rglob(".*.tmp"))
        yield


def _remove_unlocked(found: Iterator[Path]) -> None:
    with contextlib.suppress(OSError):
        for left in list(found):
            with contextlib.suppress(OSError), open(left, "rb") as stream:
                if locks.take(stream.fileno()):
                    os.unlink(left)


def write_text(path: Name, text: str) -> None:
    """A whole file of UTF-8 text, or none."""
    with atomic_write(path) as stream:
        stream.write(text.encode("utf-8"))


def bare_name(path: Path) -> str:
    """The name without the packing: train.nbest for train.nbest.xz."""
    return path.stem if path.suffix in PACKED else path.name


def ending(path: Name) -> str:
    """Of a file's name, whether it is packed or not: .csv for TRAIN.CSV.gz."""
    return Path(bare_name(Path(path))).suffix.lower()


def write_packed(path: Path, texts: Iterable[str]) -> None:
    """A whole file of UTF-8 text, packed by its name's ending: the same bytes every time. Its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with packing(path) as stream:
        stream.writelines(text.encode() for text in texts)


@contextlib.contextmanager
def packing(path: Path) -> Iterator[IO[bytes]]:
    """A stream of bytes into a file that is packed as its name says: .gz, .xz, or not at all."""
    with contextlib.ExitStack() as opened:
        stream = opened.enter_context(atomic_write(path))
        if path.suffix == ".gz":
            packer = gzip.GzipFile(fileobj=stream, mode="wb", mtime=0, filename="")
            stream = cast(IO[bytes], opened.enter_context(packer))
        elif path.suffix == ".xz":
            stream = opened.enter_context(lzma.LZMAFile(stream, "wb", preset=1))
        yield stream


def share(paths: tuple[str, ...], items: list[Item], text: Callable[[list[Item]], str]) -> None:
    """The items in equal parts over the files."""
    for k, path in enumerate(paths):
        write_packed(Path(path), [text(items[k * len(items) // len(paths) : (k + 1) * len(items) // len(paths)])])
