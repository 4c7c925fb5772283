"""serve: people answer in the browser, and the model learns from every answer as it comes."""

from __future__ import annotations

import contextlib
import gc
import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sparsezo.cli.from_answers import from_answers_parameters
from sparsezo.cli.options import command, given, insist_parameter, parameter, parameters
from sparsezo.options import described, make_options
from sparsezo.serve.options import ServeOptions
from sparsezo.serve.tokens import ADMIN, KEY
from sparsezo.settings import SETTINGS, Settings
from sparsezo.tasks.registry import kinds

if TYPE_CHECKING:
    from sparsezo.serve.folder import Contents
    from sparsezo.serve.session import Session
    from sparsezo.tasks.kind import TaskKind

SESSION = "Session"
_OPTIONS = described(ServeOptions)
_LEARNER = {name: SETTINGS[name] for name in ("rule", "about", "ask", "h", "step", "rater_error", "seed")}
_NOT_HERE = ("test_ref",)  # of a task's options: about files that serve does not read
_RATER_ERROR = "0.05"  # people err, until it is known how often
_FILES = ("model", "from_answers")  # options of a session that name what it starts from


def serve_app(*, whole: bool = True) -> typer.Typer:
    from sparsezo.cli.options import HELP, Group

    app = typer.Typer(
        help="Learn from people: questions in the browser, and a model that learns from every answer.",
        no_args_is_help=True,
        cls=Group,
        context_settings=HELP,
    )
    for kind in kinds() if whole else ():
        if kind.asks:
            about = f"Learn {kind.title.lower()} from people's answers."
            command(app, kind.name, _body(kind), _parameters(kind), about)
    return app


def _parameters(kind: TaskKind) -> list[inspect.Parameter]:
    several = ", one or several" if kind.several_files else ""
    inputs = typer.Option(
        "--inputs", help=f"What is asked about{several}; labels in it are not looked at.", metavar="FILE"
    )
    log = typer.Option(
        "--log", help="The session's folder; one that is there is gone on with.", show_default="INPUTS.serve"
    )
    model = typer.Option("--model", help="A model to start from, found again by its features' names.", metavar="FILE")
    dev = typer.Option("--dev", help="Labelled inputs to watch the model by.", metavar="FILE")
    copy = typer.Option("--backup", help="Copy the session to this new folder, also while it is served, and stop.")
    from_answers, passes = from_answers_parameters()
    browser = typer.Option("--open/--no-open", help="Open the first person's page.", show_default="on a terminal")
    h = ", ".join(f"{kind.defaults(rule, 'adagrad', None)[0]:g} for {rule}" for rule in kind.asks)
    texts = {"rule": kind.asks[0], "h": h, "step": "adagrad", "rater_error": f"{_RATER_ERROR}, until it is known"}
    learner = {**_LEARNER, "rule": replace(SETTINGS["rule"], about=replace(SETTINGS["rule"].about, choices=kind.asks))}
    own = {name: each for name, each in kind.options.items() if name not in _NOT_HERE}
    return [
        parameter("inputs", list[str] | None, inputs),
        parameter("log", Path | None, log),
        parameter("model", str | None, model),
        from_answers,
        passes,
        parameter("dev", str | None, dev),
        *parameters(_OPTIONS, SESSION),
        parameter("backup", Path | None, copy),
        parameter("open", bool | None, browser),
        *parameters(learner, "Learner", texts),
        *parameters(own, f"Task {kind.name}", kind.serve_defaults),
        insist_parameter(),
    ]


def _body(kind: TaskKind) -> Any:
    def serve(**values: Any) -> None:
        run_serve(kind, values)

    return serve


def run_serve(kind: TaskKind, values: Mapping[str, Any]) -> None:
    """``values``: the command line, by the parameters' names."""
    from sparsezo import extras
    from sparsezo.cli import show

    if values["backup"] is not None:
        _back_up(kind, values)
        return
    options = make_options(ServeOptions, given(values, _OPTIONS), "serve")
    _settings(kind, values)  # what does not go together is refused before anything is read
    extras.need("serve", kind.reading_extra, kind.metric_extra if values["dev"] else None)
    folder = _folder(kind, values)
    guidelines = _guidelines(options.guidelines)
    with contextlib.ExitStack() as starting:
        starting.enter_context(show.compiling_noted())
        with _nothing_collected():
            from sparsezo.serve.server import check_port, serve

            check_port(options.host, options.port)  # before a folder is made
            session = _session(kind, values, options, folder)
        with session:
            links = _links(session, options)
            if guidelines is not None:
                session.set_guidelines(guidelines)

            def ready(url: str) -> None:
                _introduce(session, url, links, values["open"])
                starting.close()

            try:
                serve(session, options.host, options.port, ready)
            finally:
                show.note(f"stopped: {session.status()['answers']:,} answers in {folder}; the same command goes on")


def _back_up(kind: TaskKind, values: Mapping[str, Any]) -> None:
    from sparsezo.cli import show
    from sparsezo.errors import UsageError
    from sparsezo.serve.folder import backup, is_log
    from sparsezo.words import counted

    folder = _folder(kind, values)
    if not is_log(folder):
        raise UsageError(f"{folder}: there is no session to back up; name its folder with `log`")
    events = backup(folder, values["backup"])
    show.note(f"copied {folder} to {values['backup']}: {counted(events, 'event')}")


@contextlib.contextmanager
def _nothing_collected() -> Iterator[None]:
    """What a start makes stays, so going through all of it for what could be freed only takes time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _settings(kind: TaskKind, values: Mapping[str, Any], task: Any = None) -> Settings:
    """``task``: where it is known, its own usual rule is the default."""
    from sparsezo.serve.folder import serving

    rule = kind.asks[0]
    if task is not None and values.get("about") is None and hasattr(serving(kind), "usual_rule"):
        rule = serving(kind).usual_rule(task)
    return Settings.complete({"rule": rule, "rater_error": _RATER_ERROR, **given(values, _LEARNER)}, *kind.usual)


def _folder(kind: TaskKind, values: Mapping[str, Any]) -> Path:
    from sparsezo.errors import UsageError
    from sparsezo.serve.folder import is_log

    if values["log"] is None and not values["inputs"] and values["from_answers"]:
        raise UsageError(f"`from_answers` {values['from_answers']}: name the new session's folder with `log`")
    if values["log"] is None and not values["inputs"]:
        raise UsageError("give `inputs`, a file to ask about, or `log`, a session to go on with")
    if values["passes"] is not None and values["from_answers"] is None and not is_log(values["log"] or Path()):
        raise UsageError("`passes` is of `from_answers`; leave it out")
    folder: Path = values["log"] or Path(Path(values["inputs"][0]).name.split(".")[0] + ".serve")
    if not values["inputs"] and not values["from_answers"] and not is_log(folder):
        raise UsageError(f"{folder}: there is no session to go on with; give `inputs`")
    return folder


def _session(kind: TaskKind, values: Mapping[str, Any], options: ServeOptions, folder: Path) -> Session:
    from sparsezo.cli import show
    from sparsezo.serve.folder import is_log
    from sparsezo.serve.session import Session

    own: dict[str, Any] = {}
    if is_log(folder):
        contents, dev = _known(kind, values, folder)
        show.note(f"going on with {folder}")
    elif values["from_answers"] is not None:
        contents, dev, own = _from_answers(kind, values)
    else:
        contents, dev = _loaded(kind, values)
    return Session(
        contents.kind,
        contents.task,
        contents.data,
        contents.settings,
        folder,
        W=contents.W,
        dev=dev,
        audit=options.audits(len(contents.data)),
        audit_whole=options.audits_whole(len(contents.data), chunks=contents.has_chunks),
        overlap=options.overlap,
        lease_seconds=options.lease_seconds,
        source=_source(options.source),
        about={**_about(kind, values), **own.pop("about", {})},
        **own,
    )


def _about(kind: TaskKind, values: Mapping[str, Any]) -> dict[str, Any]:
    """For the log: what the session is made with."""
    from sparsezo.serve.made_with import made_with

    options, files = _made_with(kind, values)
    return made_with({**kind.serve_defaults, **options}, inputs=values["inputs"] or (), files=files)


def _loaded(kind: TaskKind, values: Mapping[str, Any]) -> tuple[Contents, Any]:
    """From files: a session that begins."""
    from sparsezo.model import load_model
    from sparsezo.serve.folder import Contents, serving
    from sparsezo.tasks.loading import Files
    from sparsezo.warm_start import joined

    options = {**kind.serve_defaults, **given(values, kind.options)}
    model = load_model(values["model"], kind.name) if values["model"] else None
    if model is not None:
        options = {**kind.serve_defaults, **serving(kind).options_of(model.task), **given(values, kind.options)}
    loaded = kind.load(Files(tuple(values["inputs"]), values["dev"], None, options))
    W = loaded.W if model is None else joined(model, loaded.task).W
    settings = _settings(kind, values, loaded.task)
    return Contents(kind, loaded.task, loaded.data.train, settings, W), loaded.data.dev


def _from_answers(kind: TaskKind, values: Mapping[str, Any]) -> tuple[Contents, Any, dict[str, Any]]:
    """A session that begins with what another's answers teach; and what else it takes from there."""
    from sparsezo.cli import show
    from sparsezo.cli.from_answers import begun, introduced, learned, passes_of, taken_over
    from sparsezo.serve.answers import read_answers, settings_for
    from sparsezo.serve.folder import Contents

    passes = passes_of(values)
    answers = read_answers(values["from_answers"], kind.name)
    settings = settings_for(answers, given(values, _LEARNER))
    start = begun(answers, values, train=values["inputs"] or (), init=values["model"], defaults=kind.serve_defaults)
    show.note(introduced(start, passes))
    W = learned(replace(start, dev=None), settings, passes).W
    audits = not values["inputs"] and values["audit"] is None and values["audit_whole"] is None
    own = taken_over(start, passes, audits=audits)
    return Contents(kind, start.task, start.data, settings, W), start.dev, own


def _known(kind: TaskKind, values: Mapping[str, Any], folder: Path) -> tuple[Contents, Any]:
    """From its folder: a session that goes on. What is given must be as it was."""
    from sparsezo.errors import UsageError
    from sparsezo.serve.folder import open_log, read, serving
    from sparsezo.serve.made_with import differences, made_otherwise
    from sparsezo.tasks.loading import is_count

    contents = read(folder)
    if contents.kind.name != kind.name:
        raise UsageError(f"{folder}: is a session of task {contents.kind.name}; use serve {contents.kind.name}")
    log = open_log(folder)
    log.close()
    dev = values["dev"]
    if is_count(dev):
        raise UsageError(f"`dev` {dev}: the session in {folder} goes on without its file; name a dev file")
    of_dev = {"dev_ref", *described(kind.read_options)} if dev is not None else set()
    options, files = _made_with(kind, {**values, **dict.fromkeys(of_dev)})
    own = {name: log.meta.get(name, 0) for name in ("audit", "audit_whole", "overlap")}
    kept = {**contents.settings.as_dict(), **serving(kind).kept_options(contents.task), **own}
    options = {name: value for name, value in options.items() if name not in files}
    kept["passes"] = log.meta.get("from_answers", {}).get("passes")
    now = {**options, **given(values, {**_LEARNER, **own, "passes": None})}
    defaults = {name: each.default for name, each in kind.options.items()} | dict(kind.serve_defaults)
    found = differences(log.meta, kept, now, defaults, inputs=values["inputs"] or (), files=files)
    if found:
        raise made_otherwise(folder, found)
    if dev is None:
        return contents, None
    reading = given(values, described(kind.read_options))
    if values.get("dev_ref"):
        reading["ref"] = values["dev_ref"]
    return contents, kind.read(contents.task, dev, reading)


def _made_with(kind: TaskKind, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str | None]]:
    """(a task's options that were given, the files that options name: they are known by their content)"""
    own = {name: each for name, each in kind.options.items() if not each.about.place}
    options = given(values, own)
    files: dict[str, str | None] = {name: values[name] for name in _FILES if values[name] is not None}
    for name in [name for name in options if own[name].about.file and isinstance(options[name], str)]:
        if Path(options[name]).is_file():
            files[name] = options[name]
    return options, files


def _source(path: str | None) -> list[str] | None:
    from sparsezo.storage.files import numbered_lines

    return None if path is None else [line for _, line in numbered_lines(path)]


def _guidelines(path: str | None) -> str | None:
    """Text of a file, as it stands there."""
    from sparsezo.errors import DataError
    from sparsezo.serve.options import MOST_GUIDELINES
    from sparsezo.storage.files import numbered_lines

    if path is None:
        return None
    text = "".join(line + "\n" for _, line in numbered_lines(path))
    if len(text) > MOST_GUIDELINES:
        raise DataError(
            path, f"has {len(text):,} characters; guidelines have at most {MOST_GUIDELINES:,}: is this the file?"
        )
    return text


def _links(session: Session, options: ServeOptions) -> dict[str, str | None]:
    """Token by name, of all who answer and of the administrator, last. They are the same at every start; None: one that
    cannot be shown again.
    """
    from sparsezo.errors import UsageError

    admin = _administrator(session)
    known = [each.name for each in session.persons.values() if not each.admin]
    names = options.names() if options.person or options.people or not known else []
    wanted = list(dict.fromkeys([*known, *(name.strip() for name in names)]))
    new = {name.strip() for name in options.new_link or ()}
    if unknown := new - {*wanted, admin}:
        raise UsageError(f"`new_link` {sorted(unknown)[0]}: there is nobody of this name; `person` adds somebody")
    tokens = {name: (session.add_person if name in new else session.link)(name)["token"] for name in wanted}
    mine = None if admin in new else session.link(admin, admin=True)["token"]
    return tokens | {admin: mine or session.add_person(admin, admin=True)["token"]}


def _administrator(session: Session) -> str:
    """Its name: another one where, long ago, somebody who answers was called so."""
    mine = [each.name for each in session.persons.values() if each.admin]
    taken = any(each.name == ADMIN for each in session.persons.values())
    return mine[0] if mine else "administrator" if taken else ADMIN


def _introduce(session: Session, url: str, links: Mapping[str, str | None], wanted: bool | None) -> None:
    """Links are secrets: on standard output, and nowhere else."""
    import webbrowser

    from sparsezo.cli import show

    session.warm_up()
    admins = {each.name for each in session.persons.values() if each.admin}
    addresses = {
        name: f"{url}/{'admin' if name in admins else ''}#{token}" for name, token in links.items() if token is not None
    }
    show.lines(f"{name}\t{address}\n" for name, address in addresses.items())
    if unseen := [name for name in links if name not in addresses]:
        show.note(
            f"the links of {', '.join(unseen)} are as they were, but cannot be shown again: they were made without "
            f"{KEY}, or with another; `new_link` NAME makes a new one"
        )
    show.note(f"the log is in {session.folder}; Ctrl-C stops")
    if wanted or (wanted is None and sys.stdout.isatty()):
        webbrowser.open(next(iter(addresses.values())))
