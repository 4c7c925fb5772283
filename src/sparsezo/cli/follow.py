"""What a person sees of a sweep: a live line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from rich.progress import BarColumn, Progress, TextColumn

from sparsezo.cli import Terminated, show

if TYPE_CHECKING:
    from sparsezo.engines.base import Overview

_LOG_SECONDS = 10.0  # between lines where there is no terminal


@contextmanager
def stopping_cleanly() -> Iterator[None]:
    """Ctrl-C, or SIGTERM, ends in one line."""
    try:
        yield
    except KeyboardInterrupt as stop:
        show.note("stopped; the same command goes on from there")
        code = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
        raise typer.Exit(128 + code) from None


@contextmanager
def following(title: str) -> Iterator[Callable[[Overview], None]]:
    """Gives a function to call with the overview."""
    if not show.errors.is_terminal:
        yield _log_lines(title)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
    with Progress(*columns, console=show.errors, transient=True) as bar:
        line = bar.add_task(title, total=None, text="loading")

        def update(now: Overview) -> None:
            bar.update(line, total=max(now.steps, 1), completed=now.steps_done, text=_text(now))

        yield update


def _log_lines(title: str) -> Callable[[Overview], None]:
    last = time.monotonic()

    def update(now: Overview) -> None:
        nonlocal last
        if time.monotonic() - last >= _LOG_SECONDS:
            last = time.monotonic()
            show.note(f"{title}: {_text(now)}")

    return update


def _text(now: Overview) -> str:
    parts = [f"{now.done} of {now.runs} runs"]
    parts += [f"{now.failed} failed"] if now.failed else []
    parts += [f"{100 * now.steps_done / max(now.steps, 1):.0f}% of {now.steps / 1e6:,.3g}M steps"]
    parts += [f"{_duration(now.seconds_left)} left"] if now.seconds_left is not None else []
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
