"""What a user may say about workers. Results do not depend on it, so it is no part of ``Settings``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sparsezo.engines.choice import RAY, EngineOptions
from sparsezo.errors import UsageError, shown
from sparsezo.options import option
from sparsezo.settings import Settings

if TYPE_CHECKING:
    from sparsezo.learner import Learner
    from sparsezo.workers.crew import Crew

MOST_WORKERS = 1024


@dataclass(frozen=True)
class WorkerOptions(EngineOptions):
    workers: int = option(
        1,
        "Processes that share the steps of each batch; it has at least as many. The model does not depend on it.",
        least=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.workers > MOST_WORKERS:
            raise UsageError(f"`workers` {shown(self.workers)}: must be at most {MOST_WORKERS:,}")

    def check(self, settings: Settings) -> None:
        """Whether there is anything to share, and somebody to share it with."""
        if self.engine == RAY and self.workers == 1:
            raise UsageError("`engine` ray is for several `workers`, and there is 1; give 2 or more, or leave it out")
        if self.workers > settings.batch:
            raise UsageError(
                f"`workers` {self.workers}: share the steps of a `batch`, which has {settings.batch}; "
                "give a larger one, such as 1024"
            )

    def reach(self) -> None:
        """Before anything is read: is there a Ray where it is said to be?"""
        if self.ray_address is not None:
            from sparsezo.engines.ray_connection import reach

            reach(self.ray_address)

    def crew(self, learner: Learner, gold: Any) -> Crew:
        """This process and the others."""
        from sparsezo.workers.crew import Crew

        if self.engine == RAY:
            from sparsezo.workers.ray import RayAgency

            return Crew(learner, gold, self.workers, RayAgency(self.ray_address, self.workers))
        return Crew(learner, gold, self.workers)
