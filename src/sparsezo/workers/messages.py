"""Messages as packed arrays: a head of whole numbers, then 16 bytes a step that moves (step, input, c).

    TURN        to a worker: apply the batch first..last-1, then evaluate turns begin..end-1 of the batch last..until-1
    SHARE       from a worker: what it has evaluated; where begin is end nothing is evaluated, and nothing comes back
    JOIN        to a worker: settings and the state to start from; from it: it has them
    DIGEST      to a worker: what are your weights known by?; from it: by this

A log of turns and a state that it begins at are the state at its end, for anybody who has the problem.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sparsezo.errors import SparsezoError
from sparsezo.kernels import batching
from sparsezo.kernels.batching import Batch

TURN, SHARE, JOIN, DIGEST = range(4)
_STEP_BYTES = 16


class Head(NamedTuple):
    kind: int
    first: int = 0
    last: int = 0
    until: int = 0
    begin: int = 0
    end: int = 0
    spent: int = 0  # of a share: nanoseconds of evaluating it,
    before: int = 0  # and between the message and that


_HEAD = len(Head._fields) * 8
_FIXED = _HEAD + batching.N_TALLY * 8


def pack(head: Head, batch: Batch) -> bytearray:
    """The head can be changed later (``address``): what workers are sent differs by it alone."""
    n = int(batch.tally[batching.MOVES])
    message = bytearray(_FIXED + n * _STEP_BYTES)
    address(message, head)
    message[_HEAD:_FIXED] = batch.tally.data
    message[_FIXED : _FIXED + n * 8] = batch.at[:n].reshape(-1).view(np.uint8).data
    message[_FIXED + n * 8 :] = batch.c[:n].view(np.uint8).data
    return message


def address(message: bytearray, head: Head) -> None:
    message[:_HEAD] = np.array(head, np.int64).data


def head_of(message: bytes) -> Head:
    if len(message) < _HEAD:
        raise _torn()
    return Head(*np.frombuffer(message, np.int64, len(Head._fields)).tolist())


def add(message: bytes, batch: Batch, most: int) -> None:
    """What a message says of at most so many steps, added to a batch that has room for them."""
    if len(message) < _FIXED:
        raise _torn()
    tally = np.frombuffer(message, np.int64, batching.N_TALLY, _HEAD)
    before, n = int(batch.tally[batching.MOVES]), int(tally[batching.MOVES])
    if not 0 <= n <= min(most, batch.c.size - before) or len(message) != _FIXED + n * _STEP_BYTES:
        raise _torn()
    if n:
        batch.at[before : before + n] = np.frombuffer(message, np.int32, 2 * n, _FIXED).reshape(n, 2)
        batch.c[before : before + n] = np.frombuffer(message, np.float64, n, _FIXED + n * 8)
    latest = max(batch.tally[batching.ASKED_LAST], tally[batching.ASKED_LAST])
    failed = batch.tally[batching.FAILED]  # the first that did
    batch.tally[:] += tally
    batch.tally[batching.ASKED_LAST] = latest
    batch.tally[batching.FAILED] = failed if failed >= 0 else tally[batching.FAILED]


def plain(kind: int, content: Any = b"") -> bytes:
    """A message that is no batch."""
    return np.array(Head(kind), np.int64).tobytes() + bytes(content)


def content_of(message: bytes) -> bytes:
    return message[_HEAD:]


def _torn() -> SparsezoError:
    return SparsezoError("a worker's message is not as it was sent; the same command with --resume goes on")
