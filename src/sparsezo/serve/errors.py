"""What a session refuses, with the reason and a code for programs."""

from __future__ import annotations

from typing import Literal

from sparsezo.errors import SparsezoError

Code = Literal[
    "unknown-question",
    "not-yours",  # it is another person's
    "late",  # it went to another person meanwhile, or the answer was taken back since
    "already-answered",  # by this person, with another answer
    "bad-answer",
    "paused",
    "nothing-to-ask",
    "too-many",  # questions are open with this person
]


class Refused(SparsezoError):  # noqa: N818  (an answer to the caller, not a fault)
    """Nothing has changed. ``reason``: a sentence for people."""

    def __init__(self, reason: str, code: Code) -> None:
        super().__init__(reason)
        self.reason, self.code = str(self), code
