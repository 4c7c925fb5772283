"""Reading plain, .gz and .xz files alike, and writing files that are whole or not there at all.

for number, line in numbered_lines("train.txt.gz"): ...
with atomic_write("model.szo") as out: out.write(data)     # temporary name, fsync, rename
"""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from sparsezo.errors import DataError, SparsezoError


def open_bytes(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open for reading, decompressed by the name's ending; a clear error where that cannot be."""
    path = Path(path)
    try:
        if path.suffix == ".gz":
            return gzip.open(path, "rb")  # type: ignore[return-value]  # a GzipFile is one in all but name
        if path.suffix == ".xz":
            return lzma.open(path, "rb")
        return open(path, "rb")
    except FileNotFoundError:
        raise DataError(str(path), "no such file; check the path") from None
    except IsADirectoryError:
        raise DataError(str(path), "is a folder; name a file in it") from None
    except OSError as error:
        raise DataError(str(path), f"cannot be opened ({error.strerror or error})") from None


def numbered_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Lines with their numbers from 1, without line ends; UTF-8, with or without a byte order mark."""
    number = 0
    with open_bytes(path) as stream:
        try:
            for number, raw in enumerate(stream, start=1):
                if number == 1:
                    raw = raw.removeprefix(b"\xef\xbb\xbf")
                yield number, raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(f"{path}:{number}", f"is not UTF-8 text ({error.reason}); convert it first") from None
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            raise DataError(f"{path}:{number + 1}", f"cannot be read on ({error}); is the file cut off?") from None


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary stream that becomes ``path`` when the block ends well, and leaves nothing behind when not."""
    path = Path(path)
    temporary: str | None = None
    try:
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", suffix=".tmp", delete=False
        ) as stream:
            temporary = stream.name
            os.chmod(temporary, 0o666 & ~_umask())
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
        temporary = None
        _fsync_folder(path.parent)
    except OSError as error:
        raise SparsezoError(
            f"{path}: cannot be written ({error.strerror or error}); free some space or name another place with -o"
        ) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


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
