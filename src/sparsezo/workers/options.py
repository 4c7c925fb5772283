"""What a user may say about workers. Results do not depend on it, so it is no part of ``Settings``."""

from __future__ import annotations

from dataclasses import dataclass

from sparsezo.errors import UsageError, shown
from sparsezo.options import check_options, option
from sparsezo.settings import Settings

MOST_WORKERS = 1024


@dataclass(frozen=True)
class WorkerOptions:
    workers: int = option(
        1,
        "Processes that share the steps of each batch; it has at least as many. The model does not depend on it.",
        least=1,
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.workers > MOST_WORKERS:
            raise UsageError(f"`workers` {shown(self.workers)}: must be at most {MOST_WORKERS:,}")

    def check(self, settings: Settings) -> None:
        """Whether there is anything to share."""
        inputs = settings.batch // settings.samples
        if self.workers > inputs:
            steps = f"{settings.batch}" if settings.samples == 1 else f"{inputs} of {settings.samples} `samples` each"
            raise UsageError(
                f"`workers` {self.workers}: share the {'steps' if settings.samples == 1 else 'inputs'} of a `batch`, "
                f"which has {steps}; give a larger one, such as 1024"
            )
