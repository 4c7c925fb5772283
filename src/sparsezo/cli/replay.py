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
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Where the model goes.", metavar="FILE")] = None,
    without: Annotated[
        str | None, typer.Option(metavar="ANNOTATOR", help="Leave out the answers of this person.")
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw quality against minutes that people spent (.png, .svg, .pdf; a .csv beside it).",
        ),
    ] = None,
    dev: Annotated[
        str | None, typer.Option(metavar="FILE", help="Labelled inputs for --figure; without it, what serve measured.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the files that are there.")] = False,
) -> None:
    """The model of a session with people, again from the log alone: the same bits."""
    from sparsezo.cli import show
    from sparsezo.errors import UsageError, need
    from sparsezo.serve.online_model import replay as from_log
    from sparsezo.storage.files import is_special

    if output is None and figure is None:
        raise UsageError("say what to make: a model with -o FILE, a figure with --figure FILE, or both")
    if dev is not None and figure is None:
        raise UsageError("`dev` is what --figure is drawn of; add --figure FILE")
    for path, option in ((output, "-o"), (figure, "--figure")):
        if path is not None and path.exists() and not (force or is_special(path)):
            raise UsageError(f"{path}: is there already; add --force to replace it, or name another file with {option}")
    if figure is not None:
        need("report")
        from sparsezo.serve.minutes import session_minutes, write_minutes

        looks = session_minutes(log, dev)
        write_minutes(looks, figure)
        last = looks[-1]
        show.note(f"wrote {figure}: {last.metric} {last.value:.3f} after {last.minutes:.1f} minutes of people's time")
    if output is not None:
        model = from_log(log, without)
        model.save(output)
        show.note(f"wrote {output}: {model.result['answers']:,} answers")
