"""For tests of the command line: a screen that is no terminal, and the commands as Typer has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """No terminal, whatever the environment says; no data and no cache but the test's own."""
    from sparsezo.cli import show

    monkeypatch.setattr(show, "errors", Console(stderr=True, highlight=False, force_terminal=False, width=300))
    monkeypatch.setattr(show, "output", Console(highlight=False, force_terminal=False, width=120))
    monkeypatch.setattr(show, "note_compiling", lambda: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARSEZO_DATA", raising=False)


@pytest.fixture(scope="session")
def commands() -> dict[str, Any]:
    """All commands, groups among them, by what is typed: "", "train", "train chunking", ..."""
    import typer

    from sparsezo.cli.app import make_app

    def walk(words: str, command: Any) -> Iterator[tuple[str, Any]]:
        yield words, command
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(f"{words} {name}".strip(), inner)

    return dict(walk("", typer.main.get_command(make_app())))
