"""Who answers, and by which links they come in.

    annotators = Annotators(store, folder, writer.put)
    ann = annotators.add("Ann")                 # {id, name, token}: a new link; the one before is of no use then
    annotators.link("Ann")                      # the same again, at every start
    annotators.by_token(ann["token"])           # Person(id=1, name='Ann', admin=False)

Who somebody is, is known by a secret: the store keeps only its hash, and all are compared, in the same time whatever
comes. Tokens are made with a key that is kept in the session's folder, for its owner alone.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from sparsezo.errors import DamagedError, SparsezoError, UsageError
from sparsezo.serve.options import checked_name
from sparsezo.serve.store import PersonRow, Row, Store, TokenRow
from sparsezo.tasks.base import Json

KEY = "links.key"
_KEY_BYTES = 32
_TOKEN_BYTES = 24


@dataclass(frozen=True)
class Person:
    id: int
    name: str
    admin: bool = False


class Annotators:
    """All people of a session. ``put`` writes rows, as ``store.Writer`` does."""

    def __init__(
        self,
        store: Store,
        folder: Path,
        put: Callable[[Sequence[Row]], Future[None]],
        clock: Callable[[], float] = time.time,
        lock: threading.RLock | None = None,
    ) -> None:
        self._put, self._clock, self._lock = put, clock, lock or threading.RLock()
        self._key = session_key(folder)
        self.people = {row.id: Person(row.id, row.name, bool(row.admin)) for row in store.rows(PersonRow)}
        self._tokens: dict[int, TokenRow] = {}  # by person: the newest counts
        self._replaced: list[bytes] = []
        for row in store.rows(TokenRow):
            self._take(row)

    def _take(self, row: TokenRow) -> None:
        before = self._tokens.get(row.person)
        if before is not None and before.hash is not None:
            self._replaced = [*self._replaced, before.hash]
        self._tokens = {**self._tokens, row.person: row}

    def by_token(self, token: object) -> Person | None:
        """Whose token it is; None where it is nobody's."""
        given, match = _hash(token), None
        for person, row in self._tokens.items():
            if row.hash is not None and hmac.compare_digest(given, row.hash):
                match = self.people[person]
        return match

    def was_replaced(self, token: object) -> bool:
        """Whether it was once the token of a person who has another one now."""
        given = _hash(token)
        return sum(hmac.compare_digest(given, known) for known in self._replaced) > 0  # all of them are compared

    def link_made(self, person: int) -> float | None:
        row = self._tokens.get(person)
        return None if row is None else row.at

    def link(self, name: str, *, admin: bool = False) -> Json:
        """A person's link as it is, a first one for somebody new: {id, name, token}. The token is None where it cannot
        be shown again: it was made with another key than the folder has now.
        """
        with self._lock:
            known = self._named(checked_name(name, admin=admin), admin)
            made = None if known is None else self._tokens.get(known.id)
        if known is None or made is None:
            return self.add(name, admin=admin)
        token = _token(self._key, known.id, made.number)
        same = made.hash is not None and hmac.compare_digest(_hash(token), made.hash)
        return {"id": known.id, "name": known.name, "token": token if same else None}

    def add(self, name: str, *, admin: bool = False) -> Json:
        """A new person, or a new link for one who is known: {id, name, token}."""
        name = checked_name(name, admin=admin)
        with self._lock:
            known = self._named(name, admin)
            rows: list[Row] = []
            if known is None:
                known = Person(max(self.people, default=0) + 1, name, admin)
                rows.append(PersonRow(known.id, name, int(admin), self._clock()))
            number = 1 + max((row.number for row in self._tokens.values()), default=0)
            token = _token(self._key, known.id, number)
            made = TokenRow(number, known.id, _hash(token), self._clock())
            done = self._put([*rows, made])
            self.people = {**self.people, known.id: known}
            self._take(made)
        done.result()
        return {"id": known.id, "name": known.name, "token": token}

    def _named(self, name: str, admin: bool) -> Person | None:
        known = next((each for each in self.people.values() if each.name == name), None)
        if known is not None and known.admin != admin:
            whose = "the administrator's" if known.admin else "that of a person who answers"
            raise UsageError(f"name {name!r}: is {whose}; take another name")
        return known


def session_key(folder: Path) -> bytes:
    """What a session's tokens are made with: a file that only its owner can read, made where there is none."""
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
        why = f"has {len(key)} bytes, not {_KEY_BYTES}"
        raise DamagedError(str(path), why, "remove it: links that are out work on")
    return key


def _token(key: bytes, person: int, number: int) -> str:
    """A person's token; ``number``: of all tokens of the session, so that each is another one."""
    made = hmac.digest(key, f"sparsezo token {number} of person {person}".encode(), "sha256")
    return base64.urlsafe_b64encode(made[:_TOKEN_BYTES]).decode()


def _hash(token: object) -> bytes:
    """Tokens are random and long, so a plain hash gives nothing away."""
    return hashlib.sha256((token if isinstance(token, str) else "").encode("utf-8", "replace")).digest()
