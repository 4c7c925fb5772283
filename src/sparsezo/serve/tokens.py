"""Who somebody is, by a secret: only its hash is kept, and all are compared, in the same time whatever comes."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from sparsezo.errors import UsageError, quoted

ADMIN = "admin"
_RESERVED = (ADMIN, "administrator")  # whoever runs the session
_MOST_NAME = 80  # characters


@dataclass(frozen=True)
class Person:
    id: int
    name: str
    admin: bool = False


def new_token() -> str:
    return secrets.token_urlsafe(24)


def hash_of(token: str) -> bytes:
    """Tokens are random and long, so a plain hash gives nothing away."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def found(token: object, people: Mapping[int, Person], hashes: Mapping[int, bytes]) -> Person | None:
    given = hash_of(token if isinstance(token, str) else "")
    match: Person | None = None
    for number, known in hashes.items():
        if hmac.compare_digest(given, known):
            match = people[number]
    return match


def checked_name(name: object, *, admin: bool = False) -> str:
    """A name as it is kept, without blanks around it. The administrator's is nobody else's, however it is written."""
    if not isinstance(name, str) or not name.strip() or len(name) > _MOST_NAME or not name.isprintable():
        raise UsageError(f"name {quoted(str(name))!r}: give 1 to {_MOST_NAME} printable characters")
    if not admin and unicodedata.normalize("NFKC", name).strip().casefold() in _RESERVED:
        raise UsageError(f"name {quoted(name)!r}: is kept for whoever runs the session; take another name")
    return name.strip()
