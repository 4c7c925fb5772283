"""What a person sees of a run: a live line on a terminal, a line now and then in a log; a summary at the end."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from sparsezo.cli import with_flags
from sparsezo.errors import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparsezo.training import Progress as TrainingProgress

_LOG_SECONDS = 10.0  # between lines where there is no terminal

errors = Console(stderr=True, highlight=False)
output = Console(highlight=False)


def note(text: str) -> None:
    """A remark for the person, never part of the result: where nobody can hear it, the work goes on."""
    with suppress(OSError):
        sys.stderr.write(with_flags(one_line(text)) + "\n")
        sys.stderr.flush()


def lines(text: Iterable[str]) -> None:
    """Data on standard output: UTF-8, whatever the locale says, as in a file; a terminal shows what it can."""
    if sys.stdout.isatty():
        sys.stdout.writelines(text)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.writelines(line.encode() for line in text)
        sys.stdout.buffer.flush()


def note_compiling() -> None:
    """Say why nothing moves, where the loop has to be compiled first."""
    from sparsezo.kernels.jit import CACHE

    if not any(CACHE.rglob("loop.run-*.nbi")):
        note("compiling the training loop: about half a minute, once on this machine")


@contextmanager
def compiling_noted() -> Iterator[None]:
    """Say why nothing moves, when the first kernel is compiled rather than read from the cache."""
    from numba.core import event

    class FirstTime(event.Listener):  # type: ignore[misc]
        said = False

        def on_start(self, _compilation: event.Event) -> None:
            if not self.said:
                self.said = True
                note("compiling, once on this machine: about half a minute")

        def on_end(self, _compilation: event.Event) -> None:
            """Only the beginning matters."""

    with event.install_listener("numba:compile", FirstTime()):
        yield


@contextmanager
def training_progress(
    title: str, iterations: int, metric: str, answers: int | None = None
) -> Iterator[Callable[[TrainingProgress], None]]:
    """Gives a function to call with the progress of a run."""
    if not errors.is_terminal:
        yield _log_lines(metric)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        TextColumn("{task.fields[quality]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors, transient=True) as bar:
        unit = "steps" if answers is None else "answers"
        line = bar.add_task(f"{title}, {unit}", total=answers or iterations, speed="", quality="")

        def show(now: TrainingProgress) -> None:
            done = now.step if answers is None else now.answers
            bar.update(
                line, completed=done, speed=f"{now.steps_per_second:,.0f} steps/s", quality=_quality(now, metric)
            )

        yield show


def _quality(now: TrainingProgress, metric: str) -> str:
    loss = f"loss {now.average_loss:.4f}"
    return loss if now.dev is None else f"{loss}  dev {metric} {now.dev:.4f} (best {now.best:.4f})"


def _log_lines(metric: str) -> Callable[[TrainingProgress], None]:
    last = time.monotonic()

    def show(now: TrainingProgress) -> None:
        nonlocal last
        if time.monotonic() - last >= _LOG_SECONDS:
            last = time.monotonic()
            where, left = f"step {now.step:,} of {now.iterations:,}", (now.iterations - now.step) / now.steps_per_second
            if now.most_answers is not None:
                where = f"answer {now.answers:,} of {now.most_answers:,}, step {now.step:,}"
                left = min(left, now.seconds * (now.most_answers / max(now.answers, 1) - 1))
            note(f"{where}  {_quality(now, metric)}  {left:.0f} s left")

    return show


def result(fields: dict[str, Any], *, as_json: bool, title: str = "") -> None:
    """The result of a command on standard output: one JSON line, or a table for people."""
    if as_json:
        sys.stdout.write(json.dumps(fields) + "\n")
        sys.stdout.flush()
        return
    if title:
        output.print(title, style="bold", markup=False, soft_wrap=True)
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in fields.items():
        if isinstance(value, dict):
            for inner, inside in value.items():
                table.add_row(f"{name} {inner}", _text(inside))
        else:
            table.add_row(name, _text(value))
    output.print(table)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4f}" if 1e-3 <= abs(value) < 1e4 else f"{value:.6g}"
    if isinstance(value, dict):
        return "  ".join(f"{name} {_text(inside)}" for name, inside in value.items())
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


@contextmanager
def counting(title: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Gives a function to call with (done, all): a bar on a terminal, silence elsewhere."""
    if not errors.is_terminal:
        yield lambda done, total: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors, transient=True) as bar:
        line = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(line, completed=done, total=total)
