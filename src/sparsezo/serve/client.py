"""A learner elsewhere: ask and tell over HTTP, with the names that ``Learner`` has. Nothing but the standard library.

    learner = RemoteLearner("http://127.0.0.1:8000", token)          # or RemoteLearner(link), all in one
    question = learner.ask()
    learner.tell(question, "yes")                                    # returns once it is on disk
    learner.undo()                                                   # and the question again

What the service refuses, or a service that cannot be reached, is a ``RemoteError``. An answer whose reply was lost is
sent again with the same nonce, so it counts once.
"""

from __future__ import annotations

import http.client
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self
from urllib.parse import urlsplit

from sparsezo.errors import SparsezoError, UsageError, quoted

Question = dict[str, Any]

_TRIES = 5
_FIRST_WAIT = 0.1  # seconds before the second try; twice as long before each further one
_PASSING = (408, 429, 502, 503, 504)  # worth another try
_LASTING = ("paused", "nothing-to-ask")  # for longer than a call should take
_KNOCKING = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}


class RemoteError(SparsezoError):
    """``status`` as in HTTP, 0 where nobody answered; ``code`` a word for programs: late, bad-answer, paused, ..."""

    def __init__(self, status: int, code: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.code, self.reason = status, code, str(self)


class RemoteLearner:
    """One person at one service, over one connection that stays open. Not for several threads at once."""

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 30.0) -> None:
        parts = urlsplit(url)
        token = token or parts.fragment
        if parts.scheme not in _KNOCKING or not parts.hostname:
            raise UsageError(f"url {quoted(url)}: give a link such as http://127.0.0.1:8000/#TOKEN")
        if not token or not (token.isascii() and token.isprintable()):
            raise UsageError("a `token` is needed: the part of a person's link after #")
        self._connection = _KNOCKING[parts.scheme](parts.hostname, parts.port, timeout=timeout)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    # As in Learner

    def ask(self) -> Question:
        """One question. As long as it is not answered or skipped, it is nobody else's."""
        return self.ask_many(1)[0]

    def tell(
        self, question: Question | str, answer: str | int | Mapping[str, Any], seconds: float | None = None
    ) -> dict[str, Any]:
        """The service's reply, once the answer is on disk. ``answer``: one of the question's choices or labels, yes or
        no, a grade; or a span that touches the one asked about: {"first": 3, "last": 4, "label": "LOC"}, in tokens.
        """
        call = {"id": _id(question), "answer": answer, "seconds": seconds, "nonce": secrets.token_hex(8)}
        return self._call("POST", "tell", call)

    # What else a page does

    def ask_many(self, n: int, holding: Sequence[Question | str] = ()) -> list[Question]:
        """n more; those of ``holding`` come first, but for those that the model has become sure of."""
        call = {"n": n, "holding": [_id(each) for each in holding]}
        found: list[Question] = self._call("POST", "ask", call)["questions"]
        return found

    def skip(self, question: Question | str, why: str = "skip") -> dict[str, Any]:
        """``why``: skip, or cannot-tell."""
        return self._call("POST", "skip", {"id": _id(question), "why": why, "nonce": secrets.token_hex(8)})

    def flag(self, question: Question | str, note: str = "") -> dict[str, Any]:
        return self._call("POST", "flag", {"id": _id(question), "note": note})

    def undo(self, question: Question | str | None = None) -> Question:
        """Take back the last answer, or that of a question; returns the question."""
        id = None if question is None else _id(question)
        if id is None:  # named, so that a second try does not take back a second answer
            last = [each for each in self.recent() if not each["retracted"]]
            id = last[0]["id"] if last else None
        found: Question = self._call("POST", "undo", {"id": id})["question"]
        return found

    def recent(self, n: int = 20) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._call("GET", f"recent?n={n:d}")["recent"]
        return found

    def status(self) -> dict[str, Any]:
        return self._call("GET", "status")

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Again where it may help: all calls may be made twice."""
        content = None if body is None else json.dumps(body)
        wait = _FIRST_WAIT
        for left in reversed(range(_TRIES)):
            try:
                return self._once(method, path, content)
            except RemoteError as error:
                if not left or (error.status and error.status not in _PASSING) or error.code in _LASTING:
                    raise
            time.sleep(wait)
            wait *= 2
        raise AssertionError("the last try returns or raises")

    def _once(self, method: str, path: str, content: str | None) -> dict[str, Any]:
        try:
            self._connection.request(method, f"/api/{path}", content, self._headers)
            reply = self._connection.getresponse()
            said = reply.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            where = f"{self._connection.host}:{self._connection.port}"
            raise RemoteError(0, "no-connection", f"{where} does not answer: {error or type(error).__name__}") from None
        try:
            found = json.loads(said)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise RemoteError(reply.status, "not-ours", f"status {reply.status}, and no JSON: is this sparsezo serve?")
        if reply.status >= 400:
            raise RemoteError(reply.status, str(found.get("error")), str(found.get("reason")))
        return found


def _id(question: Question | str) -> str:
    return question if isinstance(question, str) else str(question["id"])
