"""Which engine does the work: the options of ``reproduce`` and ``tune``, and the engine that they ask for.

The engine itself is a choice of ``train``, too (workers/options.py).

where = Where(engine="ray", ray_address="auto", processes=4)
with where.open(out, load, say=print) as engine: ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsezo import extras
from sparsezo.errors import UsageError, shown
from sparsezo.options import check_options, described, option

if TYPE_CHECKING:
    from sparsezo.engines.base import Engine

LOCAL, RAY = "local", "ray"


@dataclass(frozen=True)
class EngineOptions:
    """What an engine needs is asked for here, before any work."""

    engine: str = option(LOCAL, "Who does the work: processes of this machine, or Ray.", choices=(LOCAL, RAY))
    ray_address: str | None = option(
        None, "Of a Ray cluster: auto or ray://HOST:PORT.", shown="a Ray of its own, on this machine"
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.engine == RAY:
            extras.need("ray")
        elif self.ray_address is not None:
            raise UsageError("`ray_address` goes with `engine` ray")
        if self.ray_address is not None and not _is_address(self.ray_address):
            raise UsageError(f"`ray_address` {shown(self.ray_address)}: give auto or ray://HOST:PORT")


@dataclass(frozen=True)
class Where(EngineOptions):
    processes: int | None = option(None, "How many runs at once.", least=1, shown="one for each core")

    def open(self, out: Path, load: Callable[[], Any], say: Callable[[str], None]) -> Engine:
        if self.engine == RAY:
            from sparsezo.engines.ray import RayEngine

            return RayEngine(out, load, self.processes, address=self.ray_address, say=say)
        from sparsezo.engines.local import LocalEngine

        return LocalEngine(out, load, self.processes, say=say)


WHERE = described(Where)


def _is_address(text: str) -> bool:
    if text == "auto":
        return True
    host, colon, port = text.removeprefix("ray://").rpartition(":")
    return text.startswith("ray://") and bool(host and colon) and port.isascii() and port.isdigit() and len(port) <= 5
