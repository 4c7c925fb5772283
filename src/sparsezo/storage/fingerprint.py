"""What data and settings are known by: a hash (BLAKE2b) of all that they are.

>>> fingerprint("dog"), fingerprint(b"dog", size=4)
('a554429c71093400717011e2bdf97353', 'f73e71a0')

>>> known_by({"order": 2}) == known_by({"order": 1})
False
"""

from __future__ import annotations

import hashlib
import json

import numpy as np


def fingerprint(content: bytes | str | memoryview, *, size: int = 16) -> str:
    """The hash of bytes, or of a text as UTF-8, in ``size`` bytes, as hexadecimal digits.

    Sizes are part of names and files: where one was written, it stays.
    """
    data = content.encode() if isinstance(content, str) else content
    return hashlib.blake2b(data, digest_size=size).hexdigest()


def hasher(size: int = 16) -> hashlib.blake2b:
    """A hash of ``size`` bytes of what comes piece by piece: its ``update`` and ``hexdigest``."""
    return hashlib.blake2b(digest_size=size)


def known_by(*parts: object) -> str:
    """A hash of arrays, NamedTuples and mappings of them, and plain values, each with its name, type and shape; and of
    what has a ``known_by`` of its own. A NamedTuple's ``parts()``, where it has them, stand for all its fields."""
    digest = hasher()
    for number, part in enumerate(parts):
        _add(digest, str(number), part)
    return digest.hexdigest()


def _add(digest: hashlib.blake2b, name: str, part: object) -> None:
    if isinstance(part, np.ndarray):
        digest.update(f"{name} {part.dtype.str} {part.shape}\n".encode())
        digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
        return
    inner = part if isinstance(part, dict) else None
    if inner is None and hasattr(part, "_asdict"):
        inner = part.parts() if hasattr(part, "parts") else part._asdict()
    if inner is not None:
        digest.update(f"{name} {len(inner)}\n".encode())
        for key, value in inner.items():
            if key != "scratch":  # room to work in: no part of what a problem is
                _add(digest, str(key), value)
    else:
        value = part.item() if isinstance(part, np.generic) else getattr(part, "known_by", part)
        digest.update(f"{name} {json.dumps(value, sort_keys=True)}\n".encode())
