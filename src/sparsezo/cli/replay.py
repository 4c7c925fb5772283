"""replay: the model of a session with people, from its log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparsezo.cli.options import HELP, Command


def add_replay(app: typer.Typer) -> None:
    app.command(cls=Command, context_settings=HELP)(replay)


def replay(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A session's folder, as serve made it.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the model goes.", metavar="FILE")],
    without: Annotated[
        str | None, typer.Option(metavar="ANNOTATOR", help="Leave out the answers of this person.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the model that is there.")] = False,
) -> None:
    """The model of a session with people, again from the log alone: the same bits."""
    from sparsezo.cli import show
    from sparsezo.errors import UsageError
    from sparsezo.serve.online_model import replay as from_log
    from sparsezo.storage.files import is_special

    if output.exists() and not (force or is_special(output)):
        raise UsageError(f"{output}: is there already; add --force to replace it, or name another file with -o")
    model = from_log(log, without)
    model.save(output)
    show.note(f"wrote {output}: {model.result['answers']:,} answers")
