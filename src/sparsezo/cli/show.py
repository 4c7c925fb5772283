"""What a person sees of runs and sweeps: a live line on a terminal, a line now and then elsewhere; a summary."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from sparsezo.cli import Terminated, with_flags
from sparsezo.errors import one_line

if TYPE_CHECKING:
    from sparsezo.study.engines.base import Overview
    from sparsezo.training import Progress as TrainingProgress

Now = TypeVar("Now")
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

    if not any(CACHE.rglob("loop.*run-*.nbi")):
        note("compiling the training loop: some ten seconds, once on this machine")


@contextmanager
def compiling_noted() -> Iterator[None]:
    """Say why nothing moves, when the first kernel is compiled rather than read from the cache."""
    from numba.core import event

    class FirstTime(event.Listener):  # type: ignore[misc]
        said = False

        def on_start(self, _compilation: event.Event) -> None:
            if not self.said:
                self.said = True
                note("compiling, once on this machine: some ten seconds")

        def on_end(self, _compilation: event.Event) -> None:
            """Only the beginning matters."""

    with event.install_listener("numba:compile", FirstTime()):
        yield


def _now_and_then(text: Callable[[Now], str]) -> Callable[[Now], None]:
    """Gives a function that says the text of what it is called with, unless it said one a moment ago."""
    last = time.monotonic()

    def say(now: Now) -> None:
        nonlocal last
        if time.monotonic() - last >= _LOG_SECONDS:
            last = time.monotonic()
            note(text(now))

    return say


def _bar(*columns: ProgressColumn) -> Progress:
    return Progress(TextColumn("{task.description}"), BarColumn(), *columns, console=errors, transient=True)


@contextmanager
def training_progress(
    title: str, iterations: int, metric: str, answers: int | None = None
) -> Iterator[Callable[[TrainingProgress], None]]:
    """Gives a function to call with the progress of a run."""
    if not errors.is_terminal:
        yield _now_and_then(lambda now: _log_line(now, metric))
        return
    text = TextColumn("{task.fields[speed]} {task.fields[quality]}")
    with _bar(MofNCompleteColumn(), text, TimeRemainingColumn()) as bar:
        unit = "steps" if answers is None else "answers"
        line = bar.add_task(f"{title}, {unit}", total=answers or iterations, speed="", quality="")

        def show(now: TrainingProgress) -> None:
            speed = f"{now.steps_per_second:,.0f} steps/s"
            done = now.step if answers is None else now.answers
            bar.update(line, completed=done, speed=speed, quality=_quality(now, metric))

        yield show


def _quality(now: TrainingProgress, metric: str) -> str:
    loss = f"loss {now.average_loss:.4f}"
    return loss if now.dev is None else f"{loss}  dev {metric} {now.dev:.4f} (best {now.best:.4f})"


def _log_line(now: TrainingProgress, metric: str) -> str:
    where, left = f"step {now.step:,} of {now.iterations:,}", (now.iterations - now.step) / now.steps_per_second
    if now.most_answers is not None:
        where = f"answer {now.answers:,} of {now.most_answers:,}, step {now.step:,}"
        left = min(left, now.seconds * (now.most_answers / max(now.answers, 1) - 1))
    return f"{where}  {_quality(now, metric)}  {left:.0f} s left"


@contextmanager
def following(title: str) -> Iterator[Callable[[Overview], None]]:
    """Gives a function to call with the overview of a sweep."""
    if not errors.is_terminal:
        yield _now_and_then(lambda now: f"{title}: {_overview(now)}")
        return
    with _bar(TextColumn("{task.fields[text]}")) as bar:
        line = bar.add_task(title, total=None, text="loading")
        yield lambda now: bar.update(line, total=max(now.steps, 1), completed=now.steps_done, text=_overview(now))


@contextmanager
def counting(title: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Gives a function to call with (done, all): a bar on a terminal, silence elsewhere."""
    if not errors.is_terminal:
        yield lambda done, total: None
        return
    with _bar(MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn()) as bar:
        line = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(line, completed=done, total=total)


def _overview(now: Overview) -> str:
    parts = [f"{now.done} of {now.runs} runs"]
    parts += [f"{now.failed} failed"] if now.failed else []
    parts += [f"{100 * now.steps_done / max(now.steps, 1):.0f}% of {now.steps / 1e6:,.3g}M steps"]
    if now.seconds_left is not None:
        minutes = round(now.seconds_left / 60)
        left = f"{now.seconds_left:.0f} s" if now.seconds_left < 90 else f"{minutes} min"
        parts += [f"{left if minutes < 90 else f'{minutes // 60} h {minutes % 60:02d} min'} left"]
    return ", ".join(parts)


@contextmanager
def stopping_cleanly() -> Iterator[None]:
    """Ctrl-C, or SIGTERM, ends in one line."""
    try:
        yield
    except KeyboardInterrupt as stop:
        note("stopped; the same command goes on from there")
        raise stopped(stop) from None


def stopped(stop: KeyboardInterrupt) -> typer.Exit:
    """The end of a command that was stopped, with its exit code."""
    return typer.Exit(128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT))


def line(text: str, style: str | None = None) -> None:
    """A line on standard output for people."""
    output.print(text, style=style, markup=False, soft_wrap=True)


def result(fields: Mapping[str, object], *, as_json: bool, title: str = "") -> None:
    """The result of a command on standard output: one JSON line, or a table for people."""
    if as_json:
        sys.stdout.write(json.dumps(fields) + "\n")
        sys.stdout.flush()
        return
    if title:
        line(title, style="bold")
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in fields.items():
        rows = (
            {f"{name} {inner}": inside for inner, inside in value.items()} if isinstance(value, dict) else {name: value}
        )
        for row, each in rows.items():
            table.add_row(row, _text(each))
    output.print(table)


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4f}" if 1e-3 <= abs(value) < 1e4 else f"{value:.6g}"
    if isinstance(value, dict):
        return "  ".join(f"{name} {_text(inside)}" for name, inside in value.items())
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
