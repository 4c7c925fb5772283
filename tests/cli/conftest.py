"""For tests of the command line: a screen that is no terminal, and the commands as Typer has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
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


@pytest.fixture(scope="session")
def sentences(tmp_path_factory) -> Path:
    """A folder with train, dev and test, generated columns."""
    from sparsezo.tasks.chunking.synthetic import chunking_columns, generate_chunking

    folder = tmp_path_factory.mktemp("chunking")
    for name, n, seed in [("train", 40, 1), ("dev", 10, 2), ("test", 10, 3)]:
        (folder / name).write_text(chunking_columns(generate_chunking(n, seed)))
    return folder


@pytest.fixture
def lists(tmp_path) -> Path:
    """A folder with two n-best lists, their references and a decoder's weights."""
    (tmp_path / "x.nbest").write_text(
        "0 ||| the small house ||| LM=1.5 TM=0.25 ||| 0\n0 ||| a small house ||| LM=-2 TM=0.5 Extra=3 ||| 0\n"
        "1 ||| we go home now ||| TM=2 ||| 0\n1 ||| go we home ||| LM=1 TM=-1 ||| 0\n"
    )
    (tmp_path / "x.ref").write_text("a small house\nwe go home now\n")
    (tmp_path / "weights").write_text("TM -0.5\nLM 0.25\nUnseen 4\n")
    return tmp_path


@pytest.fixture
def last_json() -> Any:
    """The JSON object that standard output ends with."""
    return lambda out: json.loads(out.splitlines()[-1])


RAW = "The cat sat on the mat .\nA dog saw the red house .\nHer house was small .\nThe dog ate a fish .\n" * 10


@pytest.fixture
def served(monkeypatch, program, tmp_path):
    """Run serve on raw.txt with somebody who answers so many questions; (code, links, standard error).

    ``served.asked``: the rows of these questions; answers.jsonl has the answers.
    """
    from sparsezo.serve import server

    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw.txt").write_text(RAW)
    monkeypatch.setattr(server, "check_port", lambda host, port: None)  # nobody listens here

    def run(*words, answers=3, ends=None, look=lambda session: None):
        def serve(session, host, port, ready):
            ready(f"http://{host}:{port}")
            look(session)
            run.asked = []
            person = next(each for each in session.annotators.people.values() if not each.admin)
            for _ in range(answers):
                question = session.ask(person)[0]
                run.asked.append(session.queue.row(int(question["id"][1:])))
                session.tell(person, question["id"], (question["choices"] or [3])[0])
            name, _, pieces = session.export("answers.jsonl")
            (tmp_path / name).write_bytes(b"".join(pieces))
            if ends is not None:
                raise ends

        monkeypatch.setattr(server, "serve", serve)
        code, out, err = program("serve", *words)
        return code, dict(line.split("\t") for line in out.splitlines()), err

    return run
