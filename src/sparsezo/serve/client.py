"""A learner elsewhere: ask and tell over HTTP, with the names that ``QueryLearner`` has.

Nothing but the standard library is needed.

    learner = RemoteLearner("http://127.0.0.1:8000", token)          # or RemoteLearner(link), all in one
    question = learner.ask()
    learner.tell(question, "yes")                                    # returns once it is on disk
    learner.undo()                                                   # and the question again
    learner.tell(question, review(question, right, lambda fixed: learner.decode(question, fixed)))   # of a review

What the service refuses, or a service that cannot be reached, is a ``RemoteError``. An answer whose reply was lost is
sent again with the same nonce, so it counts once.
"""

from __future__ import annotations

import http.client
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self
from urllib.parse import urlsplit

from sparsezo.errors import SparsezoError, UsageError, quoted

Json = dict[str, Any]
Question = Json

_TRIES = 5
_FIRST_WAIT = 0.1  # seconds before the second try; twice as long before each further one
_PASSING = (408, 429, 502, 503, 504)  # worth another try
_LASTING = ("paused", "nothing-to-ask")  # for longer than a call should take
_SPAN = ("first", "last", "label")
_KNOCKING = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}


class RemoteError(SparsezoError):
    """``status`` as in HTTP, 0 where nobody answered; ``code`` a word for programs: late, bad-answer, paused, ..."""

    def __init__(self, status: int, code: str, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.status, self.code, self.reason = status, code, str(self)
        self.retry_after = retry_after  # seconds, where the service says so


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

    # As in QueryLearner

    def ask(self) -> Question:
        """One question. As long as it is not answered or skipped, it is nobody else's."""
        return self.ask_many(1)[0]

    def tell(
        self,
        question: Question | str,
        answer: str | int | Mapping[str, object],
        seconds: float | None = None,
        away: float | None = None,
    ) -> Json:
        """The service's reply, once the answer is on disk. ``answer``: one of the question's choices or labels, yes or
        no, a grade; or a span that touches the one asked about: {"first": 3, "last": 4, "label": "LOC"}, in tokens.
        To a review "right", or {"spans": [...], "corrected": [3, 4]}: all spans as they should be, and the tokens that
        were set by hand. ``away``: of ``seconds``, those spent elsewhere.
        """
        call = {"id": _id(question), "answer": answer, "seconds": seconds, "nonce": secrets.token_hex(8)}
        return self._call("POST", "tell", call if away is None else {**call, "away": away})

    def decode(self, question: Question | str, fixed: Sequence[Mapping[str, object]]) -> Json:
        """Of a sentence that is reviewed: ``spans`` and ``unsure`` as the model has them around what is fixed, spans
        as above, with the label None where nothing is."""
        return self._call("POST", "decode", {"id": _id(question), "fixed": list(fixed)})

    # What else a page does

    def ask_many(self, n: int, holding: Sequence[Question | str] = ()) -> list[Question]:
        """n more; those of ``holding`` come first, but for those that the model has become sure of."""
        call = {"n": n, "holding": [_id(each) for each in holding]}
        found: list[Question] = self._call("POST", "ask", call)["questions"]
        return found

    def skip(self, question: Question | str, why: str = "skip") -> Json:
        """``why``: skip, or cannot-tell."""
        return self._call("POST", "skip", {"id": _id(question), "why": why, "nonce": secrets.token_hex(8)})

    def flag(self, question: Question | str, note: str = "") -> Json:
        return self._call("POST", "flag", {"id": _id(question), "note": note})

    def undo(self, question: Question | str | None = None) -> Question:
        """Take back the last answer, or that of a question; returns the question."""
        id = None if question is None else _id(question)
        if id is None:  # named, so that a second try does not take back a second answer
            last = [each for each in self.recent() if not each["retracted"]]
            id = last[0]["id"] if last else None
        found: Question = self._call("POST", "undo", {"id": id})["question"]
        return found

    def recent(self, n: int = 20) -> list[Json]:
        found: list[Json] = self._call("GET", f"recent?n={n:d}")["recent"]
        return found

    def status(self) -> Json:
        return self._call("GET", "status")

    def be_program(self) -> Json:
        """Say that a program answers here, which is asked no audits; who that is: session, person, name."""
        return self._call("POST", "me", {"program": True})

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Json:
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

    def _once(self, method: str, path: str, content: str | None) -> Json:
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
            later = reply.getheader("Retry-After", "")
            wait = float(later) if later.isascii() and later.isdigit() else None
            raise RemoteError(reply.status, str(found.get("error")), str(found.get("reason")), wait)
        return found


def review(
    question: Question, right: Sequence[Mapping[str, object]], decode: Callable[[list[Json]], Json]
) -> str | Json:
    """What somebody answers to a review who knows the ``right`` spans: the first that is wrong is set right, the rest
    is decoded again around all that was set (``decode(fixed)``), and so on until nothing is wrong."""
    wanted = [{name: span[name] for name in _SPAN} for span in right]
    covered = {place for span in wanted for place in _places(span)}
    spans: list[Json] = question["shown"]["spans"]
    fixed: list[Json] = []
    corrected: set[int] = set()
    while True:
        spans = [{name: span[name] for name in _SPAN} for span in spans]
        missing = [span for span in wanted if span not in spans]
        wrong = [span for span in spans if span not in wanted and not covered.issuperset(_places(span))]
        if not missing and not wrong:
            break
        first: Json = min(missing + wrong, key=lambda span: (span["first"], span not in wanted))
        if first not in wanted:  # nothing that is right is there
            begin = end = next(place for place in _places(first) if place not in covered)
            while end < first["last"] and end + 1 not in covered:
                end += 1
            first = {"first": begin, "last": end, "label": None}
        fixed = [each for each in fixed if {*_places(each)}.isdisjoint(_places(first))] + [first]
        corrected.update(_places(first))
        spans = decode(fixed)["spans"]
    return {"spans": spans, "corrected": sorted(corrected)} if corrected else "right"


def _places(span: Json) -> range:
    return range(span["first"], span["last"] + 1)


def _id(question: Question | str) -> str:
    return question if isinstance(question, str) else str(question["id"])
