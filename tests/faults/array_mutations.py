"""Damage to arrays, and to files of arrays (.npz, models, checkpoints, states) whose outer sums are put right again.

endure(in_file(path, load_model), path.read_bytes(), damaged_zip, n, reference=lambda data: Anything)
"""

from __future__ import annotations

import contextlib
import io
import random
import re
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
from mutations import damaged, damaged_json, draw, flip_bits


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def damaged_array(array: np.ndarray, rng: random.Random) -> Any:
    """Another array that is well formed in itself."""
    flat = array.reshape(-1).copy()
    what = rng.randrange(8)
    if what == 0:  # values
        if flat.size and flat.dtype.kind in "iuf":
            for _ in range(rng.choice((1, 1, 3))):
                odd = (np.nan, np.inf, -np.inf, 1e30, -1.0) if flat.dtype.kind == "f" else (-1, 2**31 - 1, 2**63 - 1, 5)
                with np.errstate(all="ignore"):
                    flat[rng.randrange(flat.size)] = np.array(rng.choice(odd)).astype(flat.dtype)
        return flat.reshape(array.shape)
    if what == 1:  # bits
        changed = np.frombuffer(flip_bits(flat.tobytes(), rng), flat.dtype)
        return changed.reshape(array.shape)
    if what == 2:  # another length
        some = rng.choice((0, 1, flat.size // 2, flat.size + 1, 2 * flat.size))
        return (
            np.resize(array, (some, *array.shape[1:])) if array.size else np.zeros((some, *array.shape[1:]), flat.dtype)
        )
    if what == 3:  # another shape or order
        return rng.choice(
            (array.T, flat, flat[:, None], array[None], np.asfortranarray(array), flat[:1].reshape(-1)[0:0])
        )
    if what == 4:  # another type
        kinds = ("f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u8", "?", "c8", "c16", ">f4", ">f8", ">i4", "g")
        kinds += ("U3", "S4", "M8[s]", "V4") if flat.dtype.kind in "iub" else ("U3", "S4", "M8[s]")
        with np.errstate(all="ignore"):
            return array.real.astype(rng.choice(kinds))
    if what == 5:
        return rng.choice(
            (np.array(3.5), np.zeros((0, 0)), np.array([None]), np.zeros(3, [("a", "i4")]), np.array(["x"]))
        )
    if what == 6 and flat.size > 1:  # another order
        i, j = rng.randrange(flat.size), rng.randrange(flat.size)
        flat[[i, j]] = flat[[j, i]]
        return flat.reshape(array.shape)
    return array[::-1].copy() if array.ndim else array


Members = dict[str, bytes]


def members_of(data: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def zipped(members: Members | list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    """With right check sums of the zip's own."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items() if isinstance(members, dict) else members:
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=compression)
    return stream.getvalue()


def damaged_zip(
    data: bytes, case: int, head: str = "meta.npy", repair: Callable[[Members], Members] | None = None
) -> bytes:
    """A .npz in which the members are damaged and all sums are right: the damage gets past the outer checks.

    ``head``: the member with JSON as an array of bytes. ``repair(members)``: puts sums of one's own right.
    """
    rng = draw("zip", case)
    members = members_of(data)
    for _ in range(rng.choice((1, 1, 2))):
        members = _damaged_member(members, head, rng)
    if repair is not None and rng.random() < 0.9:
        with contextlib.suppress(Exception):  # there is nothing left to put right
            members = repair(members)
    packing = rng.choice((*(zipfile.ZIP_STORED,) * 40, *(zipfile.ZIP_DEFLATED,) * 9, zipfile.ZIP_LZMA))
    raw = zipped(members, packing)
    if rng.random() < 0.1:  # a flag (of encryption, of compression) or a size in the headers
        at = rng.choice([found.start() for found in re.finditer(rb"PK(?:\x03\x04|\x01\x02)", raw)])
        at += rng.randrange(4, 30)
        raw = raw[:at] + bytes([raw[at] ^ (1 << rng.randrange(8))]) + raw[at + 1 :]
    return raw


def _damaged_member(members: Members, head: str, rng: random.Random) -> Members:
    changed = dict(members)
    name = rng.choice(sorted(changed)) if rng.random() < 0.6 or head not in changed else head
    what = rng.random()
    if what < 0.05:
        del changed[name]
    elif what < 0.1:
        changed[rng.choice((name + "x", "../" + name, "/etc/x.npy", name.removesuffix(".npy"), ".npy"))] = changed[name]
    elif what < 0.2:
        changed[name] = damaged(changed[name], rng.randrange(2**32))
    elif what < 0.25:
        changed[name] = changed[rng.choice(sorted(changed))]
    else:
        with contextlib.suppress(Exception):  # no array any more
            array = np.lib.format.read_array(io.BytesIO(changed[name]), allow_pickle=False)
            if name == head:
                text = damaged_json(array.tobytes(), rng.randrange(2**32))
                changed[name] = npy(np.frombuffer(text, np.uint8))
            else:
                changed[name] = npy(damaged_array(array, rng))
    return changed or {"empty": b""}
