"""Who somebody is, by a secret: the log keeps only its hash, and all are compared, in the same time whatever comes.

key = session_key(folder)               # made where there is none; for its owner's eyes
token = token_of(key, person, number)   # the same again at the next start, so a link can be shown again
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sparsezo.errors import DamagedError, SparsezoError, UsageError, quoted

ADMIN = "admin"
_RESERVED = (ADMIN, "administrator")  # whoever runs the session
_MOST_NAME = 80  # characters
KEY = "links.key"
_KEY_BYTES = 32
_TOKEN_BYTES = 24


@dataclass(frozen=True)
class Person:
    id: int
    name: str
    admin: bool = False


def session_key(folder: Path) -> bytes:
    """What a session's tokens are made with: a file of its folder that only its owner can read."""
    path = folder / KEY
    try:
        if not path.exists():
            new = path.with_name(f"{KEY}.new")
            new.unlink(missing_ok=True)
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                stream.write(secrets.token_bytes(_KEY_BYTES))
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(new, path)
        key = path.read_bytes()
        if path.stat().st_mode & 0o077:  # of a copy that others could read
            path.chmod(0o600)
    except OSError as error:
        raise SparsezoError(f"{path}: cannot be used ({error.strerror}); make it yours to read and write") from None
    if len(key) != _KEY_BYTES:
        raise DamagedError(
            str(path), f"has {len(key)} bytes, not {_KEY_BYTES}", "remove it: links that are out work on"
        )
    return key


def token_of(key: bytes, person: int, number: int) -> str:
    """A person's token; ``number``: of all tokens of the session, so that each is another one."""
    made = hmac.digest(key, f"sparsezo token {number} of person {person}".encode(), "sha256")
    return base64.urlsafe_b64encode(made[:_TOKEN_BYTES]).decode()


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


def is_among(token: object, hashes: Iterable[bytes]) -> bool:
    given = hash_of(token if isinstance(token, str) else "")
    return sum(hmac.compare_digest(given, known) for known in hashes) > 0  # all of them, as in ``found``


def checked_name(name: object, *, admin: bool = False) -> str:
    """A name as it is kept, without blanks around it. The administrator's is nobody else's, however it is written."""
    if not isinstance(name, str) or not name.strip() or len(name) > _MOST_NAME or not name.isprintable():
        raise UsageError(f"name {quoted(str(name))!r}: give 1 to {_MOST_NAME} printable characters")
    if not admin and unicodedata.normalize("NFKC", name).strip().casefold() in _RESERVED:
        raise UsageError(f"name {quoted(name)!r}: is kept for whoever runs the session; take another name")
    return name.strip()
