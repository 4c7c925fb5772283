"""The options of a session and its server; light to import, for --help."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Self

from sparsezo.errors import UsageError, quoted
from sparsezo.options import check_options, option

ADMIN = "admin"
_RESERVED = (ADMIN, "administrator")  # names of whoever runs the session
AUDIT = 200  # parts, where there are inputs enough
AUDIT_WHOLE = 10  # inputs, likewise
LEASE_SECONDS = 600.0
MAX_AHEAD = 3
MOST_GUIDELINES = 200_000  # characters
MOST_NAME, MOST_NONCE, MOST_NOTE = 80, 80, 2000  # characters
LABEL_STUDIO_TOKEN, LABEL_STUDIO_LINK = "LABEL_STUDIO_API_KEY", "link"  # a variable of the environment; no address
MOST_SECONDS = 86400.0  # that an answer took
_until = re.compile(r"\s*(f1|accuracy)\s*>=\s*(0?\.\d+|\d+(?:\.\d+)?%)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Until:
    """What a session waits for: ``metric`` (f1 of spans, or accuracy of parts) is at least ``target`` with 95%."""

    metric: str
    target: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        >>> Until.parse("f1>=0.85")
        Until(metric='f1', target=0.85)
        """
        found = _until.fullmatch(text)
        target = 0.0 if found is None else float(found[2].rstrip("%")) / (100 if found[2].endswith("%") else 1)
        if found is None or not 0 < target < 1:
            raise UsageError(f"`until` {quoted(text)}: give f1>=0.85 or accuracy>=0.9, with a share between 0 and 1")
        return cls(found[1].lower(), target)

    def __str__(self) -> str:
        return f"{self.metric}>={self.target:g}"


@dataclass(frozen=True)
class ServeOptions:
    audit: int | None = option(
        None,
        "Parts set aside at random to measure the model by: asked about now and then, never learned from.",
        least=0,
        shown=f"{AUDIT}, at most a tenth of the inputs",
    )
    audit_whole: int | None = option(
        None,
        "Sentences set aside as well, and asked about whole, in turn with the parts: for F1 of spans.",
        least=0,
        shown=f"{AUDIT_WHOLE} with spans, at most a hundredth of the inputs",
    )
    overlap: float = option(0.0, "Share of the questions, drawn at random, that a second person is asked, too.")
    person: tuple[str, ...] | None = option(None, "Somebody who answers; may be given again.", shown="person-1")
    program: tuple[str, ...] | None = option(
        None, "A program that answers (sparsezo join LINK), watched by people; may be given again."
    )
    people: int | None = option(None, "So many who answer: person-1, person-2, ...", least=1)
    new_link: tuple[str, ...] | None = option(
        None, "Somebody who gets a new link, their old one being of no use then; may be given again."
    )
    guidelines: str | None = option(
        None, "A file in Markdown that says how to answer, for all who do; kept with the session."
    )
    source: str | None = option(None, "What was translated, or anything to show beside each input: a line each.")
    until: str | None = option(
        None, "Pause when the audit says, with 95% and however often it is looked at: f1>=0.85, accuracy>=0.9."
    )
    label_studio: str | None = option(
        None,
        "The address of a Label Studio, or of a project in it, where people annotate: its tasks are made and ranked, "
        "and every annotation is learned from at once. link: print an address for its model settings instead.",
    )
    label_studio_token: str | None = option(
        None, "A token of your account there, best given by the environment.", shown=LABEL_STUDIO_TOKEN
    )
    lease_seconds: float = option(LEASE_SECONDS, "After so long without an answer others are asked.", positive=True)
    host: str = option("127.0.0.1", "Where to listen; 0.0.0.0: for other machines, too.")
    port: int = option(8765, "0: any that is free.", least=0)

    def __post_init__(self) -> None:
        check_options(self)
        if not 0 <= self.overlap <= 1:
            raise UsageError(f"`overlap` {self.overlap:g}: give a share from 0 to 1")
        if self.port > 65535:
            raise UsageError(f"`port` {self.port}: must be at most 65535")
        if self.person and self.people:
            raise UsageError("`person` and `people` both say who answers; give one of them")
        for name in (*(self.person or ()), *(self.program or ())):
            checked_name(name)
        if both := {name.strip() for name in self.person or ()} & {name.strip() for name in self.program or ()}:
            raise UsageError(f"`program` {min(both)}: `person` names the same; give it another name")
        for name in self.new_link or ():
            checked_name(name, admin=True)
        self.aim()

    def aim(self) -> Until | None:
        return None if self.until is None else Until.parse(self.until)

    def names(self) -> list[str]:
        return list(self.person or (f"person-{k}" for k in range(1, (self.people or 1) + 1)))

    def audits(self, inputs: int) -> int:
        return min(AUDIT, inputs // 10) if self.audit is None else self.audit

    def audits_whole(self, inputs: int, *, chunks: bool) -> int:
        if self.audit_whole is not None:
            return self.audit_whole
        return min(AUDIT_WHOLE, inputs // 100) if chunks and self.audit != 0 else 0


def checked_name(name: object, *, admin: bool = False) -> str:
    """A name as it is kept, without blanks around it. The administrator's is nobody else's, however it is written."""
    if not isinstance(name, str) or not name.strip() or len(name) > MOST_NAME or not name.isprintable():
        raise UsageError(f"name {quoted(str(name))!r}: give 1 to {MOST_NAME} printable characters")
    if not admin and unicodedata.normalize("NFKC", name).strip().casefold() in _RESERVED:
        raise UsageError(f"name {quoted(name)!r}: is kept for whoever runs the session; take another name")
    return name.strip()
