"""Damage by rule, and what must come of it: the common part of the fuzzers.

    @pytest.mark.parametrize("n", cases(100))           # 100 in `make test`, many more in `make torture`
    def test_damaged_templates(n, tmp_path):
        endure(in_file(tmp_path / "template", read_templates), SAMPLE, damaged_text, n, reference=plain_reader)

A case is a number: ``damaged_text(SAMPLE, 17)`` is the same bytes wherever and whenever it is made. ``endure`` wants of
each case a SparsezoError in one line, or a result that is what ``reference`` says; any other exception, a case without
end or a silent difference is a fault, and is named by its number.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import os
import random
import signal
import struct
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsezo.errors import SparsezoError

TIMES = int(os.environ.get("SPARSEZO_TORTURE_TIMES", "150"))  # as many cases in `make torture`; 600 make some 10^6
SECONDS = 60.0  # that one case may take; none takes one, and a loop without end is found all the same
_MOST_TOLD = 5  # faults in one message

Damage = Callable[[bytes, int], bytes]


def cases(quick: int, many: int | None = None) -> list[Any]:
    """The two sizes of a test, to parametrise it by; ``many``: where one case takes long, how many in torture."""
    many = quick * TIMES if many is None else many
    return [pytest.param(quick, id="some"), pytest.param(many, id="many", marks=pytest.mark.torture)]


# ---- what must come of damage ----


def endure(
    read: Callable[[bytes], Any],
    original: bytes,
    damage: Damage,
    n: int,
    reference: Callable[[bytes], Any] | None = None,
) -> None:
    """n cases of damage. What is read without complaint must be what ``reference`` makes of the same bytes; without
    one, what the original reads as. A reference that raises ValueError says that the bytes must be refused; one that
    gives ``Anything`` leaves it open (``read`` then has only to survive, so let it use what it has read)."""
    whole = read(original)  # compiles, where that is still to do, and must not fail
    if reference is None:
        reference = lambda data: whole  # noqa: E731
    faults = []
    for case in range(n):
        data = damage(original, case)
        if fault := _fault(read, data, reference):
            faults.append(f"case {case}: {fault}")
            if len(faults) == _MOST_TOLD:
                break
    if faults:
        pytest.fail("\n".join(faults), pytrace=False)


class _Anything:
    """Equal to all."""


Anything = _Anything()


def _fault(read: Callable[[bytes], Any], data: bytes, reference: Callable[[bytes], Any]) -> str | None:
    try:
        with _limited():
            got = read(data)
    except SparsezoError as error:
        return _bad_message(error)
    except TooLong as error:
        return f"no end within {SECONDS:g} s, at {_place(error)}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]!r} at {_place(error)}"
    try:
        wanted = reference(data)
    except ValueError as error:
        return f"was read, although {str(error)[:200]!r}"
    return None if wanted is Anything or same(got, wanted) else f"was read as something else: {got!r:.300}"


def _bad_message(error: SparsezoError) -> str | None:
    message = str(error)
    if not message or not message.isprintable() or len(message) > 2000 or error.exit_code not in (1, 2):
        return f"a message that is not one printable line: {message!r:.300}"
    return None


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "sparsezo" in f.filename] or frames
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"


class TooLong(BaseException):
    """Not an Exception: nobody may take it for an error of the data."""


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def stop(*_args: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def in_file(path: Path, read: Callable[[Path], Any]) -> Callable[[bytes], Any]:
    """A reader of files as a reader of bytes."""

    def reading(data: bytes) -> Any:
        path.write_bytes(data)
        return read(path)

    return reading


def same(a: Any, b: Any) -> bool:
    """Equal to the last bit, arrays and NaN included."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if dataclasses.is_dataclass(a) and type(a) is type(b):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)
    return type(a) is type(b) and bool(a == b)


# ---- bytes ----


def draw(name: str, case: int) -> random.Random:
    return random.Random(f"{name} {case}")


def damaged(data: bytes, case: int) -> bytes:
    """Any bytes: one to three changes."""
    rng = draw("bytes", case)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(_BYTES)(data, rng)
    return data


def _span(data: bytes, rng: random.Random) -> tuple[int, int]:
    begin = rng.randint(0, len(data))
    return begin, min(len(data), begin + int(2 ** rng.uniform(0, 12)))


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _other_bytes(data: bytes, rng: random.Random) -> bytes:
    begin, end = _span(data, rng)
    end = min(end, begin + 16)
    filler = rng.choice((b"\0", b"\xff", None))
    return data[:begin] + (filler * (end - begin) if filler else rng.randbytes(end - begin)) + data[end:]


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randint(0, len(data))]


def _drop(data: bytes, rng: random.Random) -> bytes:
    begin, end = _span(data, rng)
    return data[:begin] + data[end:]


def _insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice((rng.randbytes(rng.randint(1, 32)), b"\0" * 64, b"\xff" * 8)) + data[at:]


def _double(data: bytes, rng: random.Random) -> bytes:
    begin, end = _span(data, rng)
    return data[:end] + data[begin:end] * rng.choice((1, 1, 2, 20)) + data[end:]


def _swap(data: bytes, rng: random.Random) -> bytes:
    a, b, c, d = sorted(rng.randint(0, len(data)) for _ in range(4))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def _huge_word(data: bytes, rng: random.Random) -> bytes:
    """Sizes and offsets that are far too large, as binary numbers."""
    word = struct.pack("<q", rng.choice((-1, -(2**63), 2**63 - 1, 2**31, 2**32 - 1, 10**15)))[: rng.choice((2, 4, 8))]
    at = rng.randint(0, len(data))
    return data[:at] + word + data[at + len(word) :]


_BYTES = (flip_bits, _other_bytes, _cut, _drop, _insert, _double, _swap, _huge_word)


# ---- text ----

NUMBERS = (
    *("-1", "0", "1e400", "-1e400", "nan", "inf", "1e-400", "9" * 19, "9" * 400, "9" * 5000, "1" + "0" * 5000),
    *("2147483648", "4294967296", "9223372036854775808", "0x10", "1_000", "²", "١", "+1", "1.", ".5", "--1", "1e5"),
)
PIECES = (
    *("\0", "\x1b[31m", "\x85", "\u2028", "\ufeff", "\u00a0", "\u3000", "\t", "  ", "\r", "\r\n", "\n", "\n\n", "\v\f"),
    *("|||", ":", "=", "#", "[", "]", "{", "}", '"', "\\", ",", "/", "%x[0,0]", "%x[99,99]", "\U0001f600", "a" * 3000),
)


def damaged_text(data: bytes, case: int) -> bytes:
    """Text of lines, fields and numbers: changes that a reader of text will look at, and now and then any bytes."""
    rng = draw("text", case)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(_TEXT)(data, rng)
    return data


def _number(data: bytes, rng: random.Random) -> bytes:
    places = _runs(data, b"0123456789.-+e") or [(len(data), len(data))]
    begin, end = rng.choice(places)
    return data[:begin] + rng.choice(NUMBERS).encode() + data[end:]


def _runs(data: bytes, kinds: bytes) -> list[tuple[int, int]]:
    """Where digits and their signs stand."""
    found, begin = [], None
    for at, byte in enumerate(data[:100_000] + b" "):
        if byte in kinds:
            begin = at if begin is None else begin
        elif begin is not None:
            if any(48 <= each <= 57 for each in data[begin:at]):
                found.append((begin, at))
            begin = None
    return found


def _piece(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    end = at + rng.choice((0, 0, 1, 3))
    return data[:at] + rng.choice(PIECES).encode() + data[end:]


def _lines(data: bytes, rng: random.Random) -> bytes:
    """Lines left out, doubled, swapped, emptied, cut or joined with the next."""
    lines = data.split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    what = rng.randrange(6)
    if what == 0:
        del lines[at]
    elif what == 1:
        lines.insert(at, lines[at])
    elif what == 2:
        lines[at], lines[other] = lines[other], lines[at]
    elif what == 3:
        lines[at] = rng.choice((b"", b" ", b"\t", b"\r"))
    elif what == 4:
        lines[at] = _cut(lines[at], rng)
    else:
        lines[at : at + 2] = [b"".join(lines[at : at + 2])]
    return b"\n".join(lines)


def _fields(data: bytes, rng: random.Random) -> bytes:
    """A field left out, emptied, doubled, or swapped with another of its line."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    separator = rng.choice([each for each in (b" ", b"\t", b",", b":", b"|||", b"=") if each in lines[at]] or [b" "])
    fields = lines[at].split(separator)
    i, j = rng.randrange(len(fields)), rng.randrange(len(fields))
    what = rng.randrange(4)
    if what == 0:
        del fields[i]
    elif what == 1:
        fields[i] = b""
    elif what == 2:
        fields.insert(i, fields[j])
    else:
        fields[i], fields[j] = fields[j], fields[i]
    lines[at] = separator.join(fields)
    return b"\n".join(lines)


def _encoding(data: bytes, rng: random.Random) -> bytes:
    what = rng.randrange(5)
    if what == 0:
        return b"\xef\xbb\xbf" + data
    if what == 1:
        return data.replace(b"\n", rng.choice((b"\r\n", b"\r")))
    if what == 2:
        return data.decode("utf-8", "replace").encode("utf-16")
    if what == 3:
        at = rng.randint(0, len(data))
        return data[:at] + rng.choice((b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80")) + data[at:]
    return data.rstrip(b"\n")


def _any_bytes(data: bytes, rng: random.Random) -> bytes:
    return rng.choice(_BYTES)(data, rng)


_TEXT = (_number, _number, _piece, _lines, _fields, _encoding, _any_bytes)


# ---- JSON ----

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**30, 10**400, 0.5, 1e308, float("nan"), float("inf")),
    *("", "x", "O", "B-NP", "candidate", "\0\x1b", "1"),
    *([], {}, [None], [[]], {"a": 1}, [0.5, "x"], ["x"], [-1], [2**70]),
)
_DEEP = 30_000  # brackets


def damaged_json(data: bytes, case: int) -> bytes:
    """JSON text that is still JSON: a value of another type or size, a name left out or doubled; or damaged text."""
    rng = draw("json", case)
    if rng.random() < 0.2:
        return damaged_text(data, case)
    root = [json.loads(data)]
    for _ in range(rng.choice((1, 1, 2))):
        _change(root, rng)
    text = json.dumps(root[0])
    if rng.random() < 0.03:
        at = text.find(":") + 1 if ":" in text else 0
        text = text[:at] + "[" * _DEEP + rng.choice(("]" * _DEEP, "")) + text[at:]
    return text.encode()


def _change(root: list[Any], rng: random.Random) -> None:
    places: list[tuple[Any, Any]] = []
    _walk(root, places)
    holder, key = rng.choice(places)
    what = rng.random()
    if what < 0.7:
        holder[key] = copy.deepcopy(rng.choice(VALUES))
    elif what < 0.85 and holder is not root:
        del holder[key]
    elif isinstance(holder, dict):
        holder[rng.choice(("", "x", key + "x"))] = holder[key]
    else:
        holder.insert(key, holder[key])
        if holder is root:
            root.pop()


def _walk(node: Any, places: list[tuple[Any, Any]]) -> None:
    for key in node if isinstance(node, dict) else range(len(node)):
        places.append((node, key))
        if isinstance(node[key], dict | list):
            _walk(node[key], places)


def damaged_lines(data: bytes, case: int) -> bytes:
    """One of the lines as damaged JSON, or any text."""
    rng = draw("lines", case)
    if rng.random() < 0.4:
        return damaged_text(data, case)
    lines = [line for line in data.split(b"\n") if line.strip()]
    at = rng.randrange(len(lines))
    lines[at] = damaged_json(lines[at], case).replace(b"\n", b" ")
    return b"\n".join(lines)
