"""The options of a session and its server; light to import, for --help."""

from __future__ import annotations

from dataclasses import dataclass

from sparsezo.errors import UsageError
from sparsezo.options import check_options, option
from sparsezo.serve.tokens import checked_name

AUDIT = 200  # parts, where there are inputs enough
AUDIT_WHOLE = 10  # inputs, likewise
LEASE_SECONDS = 600.0
MAX_AHEAD = 3
MOST_GUIDELINES = 200_000  # characters


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
    people: int | None = option(None, "So many who answer: person-1, person-2, ...", least=1)
    new_link: tuple[str, ...] | None = option(
        None, "Somebody who gets a new link, their old one being of no use then; may be given again."
    )
    guidelines: str | None = option(
        None, "A file in Markdown that says how to answer, for all who do; kept with the session."
    )
    source: str | None = option(None, "What was translated, or anything to show beside each input: a line each.")
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
        for name in self.person or ():
            checked_name(name)
        for name in self.new_link or ():
            checked_name(name, admin=True)

    def names(self) -> list[str]:
        """Who answers."""
        return list(self.person or (f"person-{k}" for k in range(1, (self.people or 1) + 1)))

    def audits(self, inputs: int) -> int:
        return min(AUDIT, inputs // 10) if self.audit is None else self.audit

    def audits_whole(self, inputs: int, *, chunks: bool) -> int:
        if self.audit_whole is not None:
            return self.audit_whole
        return min(AUDIT_WHOLE, inputs // 100) if chunks and self.audit != 0 else 0
