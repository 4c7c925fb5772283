"""What data and settings are known by: a hash of all that they are.

>>> known_by({"order": 2}) == known_by({"order": 1})
False
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

_SCRATCH = "scratch"  # room to work in: no part of what a problem is


def known_by(*parts: Any) -> str:
    """A hash of arrays, NamedTuples and mappings of them, and plain values, each with its name, type and shape."""
    digest = hashlib.blake2b(digest_size=16)
    for number, part in enumerate(parts):
        _add(digest, str(number), part)
    return digest.hexdigest()


def _add(digest: Any, name: str, part: Any) -> None:
    if isinstance(part, np.ndarray):
        digest.update(f"{name} {part.dtype.str} {part.shape}\n".encode())
        digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
        return
    inner = part if isinstance(part, dict) else part._asdict() if hasattr(part, "_asdict") else None
    if inner is not None:
        digest.update(f"{name} {len(inner)}\n".encode())
        for key, value in inner.items():
            if key != _SCRATCH:
                _add(digest, str(key), value)
    else:
        value = part.item() if isinstance(part, np.generic) else part
        digest.update(f"{name} {json.dumps(value, sort_keys=True)}\n".encode())
