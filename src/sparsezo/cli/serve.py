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

from sparsezo.cli.options import command, given, insist_parameter, parameter, parameters
from sparsezo.options import described, make_options
from sparsezo.serve.options import ServeOptions
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
ADMIN = "admin"


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
    browser = typer.Option("--open/--no-open", help="Open the first person's page.", show_default="on a terminal")
    h = ", ".join(f"{kind.defaults(rule, 'adagrad', None)[0]:g} for {rule}" for rule in kind.asks)
    texts = {"rule": kind.asks[0], "h": h, "step": "adagrad", "rater_error": f"{_RATER_ERROR}, until it is known"}
    learner = {**_LEARNER, "rule": replace(SETTINGS["rule"], about=replace(SETTINGS["rule"].about, choices=kind.asks))}
    own = {name: each for name, each in kind.options.items() if name not in _NOT_HERE}
    return [
        parameter("inputs", list[str] | None, inputs),
        parameter("log", Path | None, log),
        parameter("model", str | None, model),
        parameter("dev", str | None, dev),
        *parameters(_OPTIONS, SESSION),
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

    options = make_options(ServeOptions, given(values, _OPTIONS), "serve")
    _settings(kind, values)  # what does not go together is refused before anything is read
    extras.need("serve", kind.reading_extra, kind.metric_extra if values["dev"] else None)
    folder = _folder(kind, values)
    show.note_compiling()
    with _nothing_collected():
        from sparsezo.serve.server import serve

        session = _session(kind, values, options, folder)
    with session:
        links = _links(session, options)
        try:
            serve(session, options.host, options.port, lambda url: _introduce(session, url, links, values["open"]))
        finally:
            show.note(f"stopped: {session.status()['answers']:,} answers in {folder}; the same command goes on")


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

    if values["log"] is None and not values["inputs"]:
        raise UsageError("give `inputs`, a file to ask about, or `log`, a session to go on with")
    folder: Path = values["log"] or Path(Path(values["inputs"][0]).name.split(".")[0] + ".serve")
    if not values["inputs"] and not is_log(folder):
        raise UsageError(f"{folder}: there is no session to go on with; give `inputs`")
    return folder


def _session(kind: TaskKind, values: Mapping[str, Any], options: ServeOptions, folder: Path) -> Session:
    from sparsezo.cli import show
    from sparsezo.serve.folder import is_log
    from sparsezo.serve.session import Session

    if is_log(folder):
        contents, dev = _known(kind, values, folder)
        show.note(f"going on with {folder}")
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
        about={"inputs": _sums(values["inputs"] or ())},
    )


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


def _known(kind: TaskKind, values: Mapping[str, Any], folder: Path) -> tuple[Contents, Any]:
    """From its folder: a session that goes on. What is given must be as it was."""
    from sparsezo.errors import UsageError
    from sparsezo.serve.folder import LOG, read
    from sparsezo.serve.log import Log
    from sparsezo.tasks.loading import is_count

    contents = read(folder)
    if contents.kind.name != kind.name:
        raise UsageError(f"{folder}: is a session of task {contents.kind.name}; use serve {contents.kind.name}")
    was = contents.settings
    for name, value in given(values, _LEARNER).items():
        if getattr(was, name) != value:
            raise UsageError(f"`{name}` {value}: the session in {folder} has {getattr(was, name)}; leave it out")
    log = Log(folder / LOG)
    known = log.meta.get("inputs", [])
    log.close()
    for name, value in given(values, {"audit": None, "audit_whole": None, "overlap": None}).items():
        if log.meta.get(name, 0) != value:
            raise UsageError(f"`{name}` {value}: the session in {folder} has {log.meta.get(name, 0)}; leave it out")
    if values["inputs"] and known and _sums(values["inputs"]) != known:
        raise UsageError(f"{folder}: is a session about other inputs; name another folder with `log`")
    dev = values["dev"]
    if is_count(dev):
        raise UsageError(f"`dev` {dev}: the session in {folder} goes on without its file; name a dev file")
    if dev is None:
        return contents, None
    reading = given(values, described(kind.read_options))
    if values.get("dev_ref"):
        reading["ref"] = values["dev_ref"]
    return contents, kind.read(contents.task, dev, reading)


def _sums(paths: Any) -> list[str]:
    """What files are known by; standard input by nothing."""
    import hashlib

    from sparsezo.storage.files import STANDARD_INPUT

    found = []
    for path in paths:
        if path != STANDARD_INPUT and Path(path).is_file():
            with open(path, "rb") as stream:
                found.append(hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest())
    return found


def _source(path: str | None) -> list[str] | None:
    from sparsezo.storage.files import numbered_lines

    return None if path is None else [line for _, line in numbered_lines(path)]


def _links(session: Session, options: ServeOptions) -> dict[str, str]:
    """Token by name, of people who have none yet and of those that were named; the admin gets a new one each time."""
    named = set(options.person or ())
    known = {each.name for each in session.persons.values() if not each.admin}
    wanted = [name for name in options.names() if name not in known or name in named] if not known or named else []
    if not named and options.people and len(known) < options.people:
        wanted = [name for name in options.names() if name not in known]
    tokens = {name: session.add_person(name)["token"] for name in wanted}
    return tokens | {ADMIN: session.add_person(ADMIN, admin=True)["token"]}


def _introduce(session: Session, url: str, links: Mapping[str, str], wanted: bool | None) -> None:
    """Links are secrets: on standard output, once, and nowhere else."""
    import webbrowser

    from sparsezo.cli import show

    session.warm_up()
    addresses = {name: f"{url}/{'admin' if name == ADMIN else ''}#{token}" for name, token in links.items()}
    show.lines(f"{name}\t{address}\n" for name, address in addresses.items())
    others = [each.name for each in session.persons.values() if each.name not in links]
    if others:
        show.note(f"the links of {', '.join(others)} are as they were; --person NAME makes a new one")
    show.note(f"the log is in {session.folder}; Ctrl-C stops")
    if wanted or (wanted is None and sys.stdout.isatty()):
        webbrowser.open(next(iter(addresses.values())))
