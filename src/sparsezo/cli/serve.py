"""serve: people answer in the browser, and the model learns from every answer as it comes."""

from __future__ import annotations

import contextlib
import gc
import inspect
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sized
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sparsezo.cli.from_answers import from_answers_parameters
from sparsezo.cli.options import command, flag, given, insist_parameter, parameter, parameters
from sparsezo.errors import DataError, UsageError, need
from sparsezo.messages import counted
from sparsezo.options import Values, described, make_options
from sparsezo.rules import RULES
from sparsezo.serve.options import ADMIN, LABEL_STUDIO_LINK, LABEL_STUDIO_TOKEN, MOST_GUIDELINES, ServeOptions
from sparsezo.settings import SETTINGS, Settings, rate_text
from sparsezo.tasks.registry import task_specs

if TYPE_CHECKING:
    from sparsezo.serve.folder import Contents
    from sparsezo.serve.label_studio import LabelStudio
    from sparsezo.serve.label_studio_client import Sync
    from sparsezo.serve.session import Session
    from sparsezo.tasks.base import Json, Task
    from sparsezo.tasks.spec import TaskSpec

SESSION = "Session"
_OPTIONS = described(ServeOptions)
_SETTINGS = ("rule", "about", "review", "ask", "h", "step", "rater_error", "rehearse", "seed")
_LEARNER = {name: SETTINGS[name] for name in _SETTINGS}
_NOT_HERE = ("test_ref",)  # of a task's options: about files that serve does not read
_RATER_ERROR = "0.05"  # people err, until it is known how often
_REVIEW_ERROR = "0.01"  # in a tag that they were shown among many others, most of which are right
_FILES = ("model", "from_answers")  # options of a session that name what it starts from


def serve_app(*, whole: bool = True) -> typer.Typer:
    from sparsezo.cli.options import HELP, Group

    app = typer.Typer(
        help="Learn from people: questions in the browser, and a model that learns from every answer.",
        no_args_is_help=True,
        cls=Group,
        context_settings=HELP,
    )
    for kind in task_specs() if whole else ():
        if kind.asks:
            about = f"Learn {kind.title.lower()} from people's answers."
            command(app, kind.name, lambda kind=kind, **values: run_serve(kind, values), _parameters(kind), about)
    return app


def _parameters(kind: TaskSpec) -> list[inspect.Parameter]:
    several = ", one or several" if kind.several_files else ""
    inputs = f"What is asked about{several}; labels in it are not looked at."
    log = "The session's folder, which has all that is answered; one that is there is gone on with."
    browser = typer.Option("--open/--no-open", help="Open the first person's page.", show_default="on a terminal")
    h = ", ".join(f"{rate_text(kind.defaults(rule, 'adagrad', None)[0])} for {rule}" for rule in kind.asks)
    reviews = "review" in kind.asks
    error = f"{_RATER_ERROR}{f' ({_REVIEW_ERROR} for review)' if reviews else ''}, until it is known"
    rule = "review" if reviews else kind.asks[0]
    rehearse = f"{RULES['review'].rehearse} for review, 0 for others"
    texts = {"rule": rule, "h": h, "step": "adagrad", "rater_error": error, "rehearse": rehearse}
    learner = {**_LEARNER, "rule": replace(SETTINGS["rule"], about=replace(SETTINGS["rule"].about, choices=kind.asks))}
    learner = {name: each for name, each in learner.items() if reviews or name not in ("review", "rehearse")}
    own = {name: each for name, each in kind.options.items() if name not in _NOT_HERE}
    return [
        flag("inputs", list[str] | None, inputs, metavar="FILE"),
        flag("log", Path | None, log, metavar="FOLDER", show_default="INPUTS.serve"),
        flag("model", str | None, "A model to start from, found again by its features' names.", metavar="FILE"),
        *from_answers_parameters(),
        flag("dev", str | None, "Labelled inputs to watch the model by.", metavar="FILE"),
        *parameters(_OPTIONS, SESSION),
        flag("backup", Path | None, "Copy the session to this new folder, also while it is served, and stop."),
        parameter("open", bool | None, browser),
        *parameters(learner, "Learner", texts),
        *parameters(own, f"Task {kind.name}", kind.serve_defaults),
        insist_parameter(),
    ]


def run_serve(kind: TaskSpec, values: Values) -> None:
    from sparsezo.cli import show

    if values["backup"] is not None:
        _back_up(_folder(values), values["backup"])
        return
    options = make_options(ServeOptions, given(values, _OPTIONS), "serve")
    studio = _label_studio(options)
    _settings(kind, values)  # what does not go together is refused before anything is read
    need("serve", kind.reading_extra, kind.metric_extra if values["dev"] else None)
    folder = _folder(values)
    guidelines = _guidelines(options.guidelines)
    with contextlib.ExitStack() as starting:
        starting.enter_context(show.compiling_noted())
        gc.disable()  # what a start makes stays: going through all of it for what could be freed only takes time
        try:
            from sparsezo.serve.label_studio import NAME, PREFIX, LabelStudio
            from sparsezo.serve.server import check_port, serve

            check_port(options.host, options.port)  # before a folder is made
            session = _session(kind, values, options, folder)
        finally:
            gc.enable()
        with session:
            links = _links(session, options)
            if guidelines is not None:
                session.set_guidelines(guidelines)

            def ready(url: str) -> None:
                _introduce(session, url, links, values["open"])
                if options.label_studio == LABEL_STUDIO_LINK:
                    show.lines([f"{NAME}\t{url}{PREFIX}{session.annotators.link(NAME)['token']}\n"])
                starting.close()

            try:
                more = {"label_studio": True} if options.label_studio == LABEL_STUDIO_LINK else {}
                with contextlib.nullcontext() if studio is None else studio(LabelStudio(session)) as sync:
                    if sync is not None:
                        show.lines([f"{NAME}\t{sync.url}\n"])
                    serve(session, options.host, options.port, ready, **more)
            finally:
                show.note(f"stopped: {session.status()['answers']:,} answers in {folder}; the same command goes on")


def _label_studio(options: ServeOptions) -> Callable[[LabelStudio], Sync] | None:
    """What connects a session with a Label Studio; what is wrong with its address is said before anything is read."""
    if options.label_studio in (None, LABEL_STUDIO_LINK):
        return None
    from sparsezo.serve.label_studio_client import Client, Sync, read_address

    address, project = read_address(options.label_studio)
    client = Client(address, options.label_studio_token or os.environ.get(LABEL_STUDIO_TOKEN, ""))
    return lambda studio: Sync(studio, client, project)


def _back_up(folder: Path, to: Path) -> None:
    from sparsezo.cli import show
    from sparsezo.serve.folder import backup, is_session

    if not is_session(folder):
        raise UsageError(f"{folder}: there is no session to back up; name its folder with `log`")
    show.note(f"copied {folder} to {to}: {counted(backup(folder, to), 'event')}")


def _settings(kind: TaskSpec, values: Values, task: Task | None = None) -> Settings:
    """``task``: where it is known, its own usual rule is the default."""
    chosen = given(values, _LEARNER)
    rule = kind.asks[0]
    if task is not None and values.get("about") is None:
        rule = kind.serving().usual_rule(task) or rule
    if "review" in kind.asks and ("review" in chosen or "rehearse" in chosen):
        rule = "review"
    rule = chosen.get("rule", rule)
    if chosen.get("rehearse") and rule != "review":
        raise UsageError(f"`rehearse` {chosen['rehearse']}: in a session only reviews are gone over again")
    error = _REVIEW_ERROR if rule == "review" else _RATER_ERROR
    return Settings.complete({"rater_error": error, **chosen, "rule": rule}, *kind.usual)


def _folder(values: Values) -> Path:
    from sparsezo.serve.folder import is_session

    if values["log"] is None and not values["inputs"] and values["from_answers"]:
        raise UsageError(f"`from_answers` {values['from_answers']}: name the new session's folder with `log`")
    if values["log"] is None and not values["inputs"]:
        raise UsageError("give `inputs`, a file to ask about, or `log`, a session to go on with")
    if values["passes"] is not None and values["from_answers"] is None and not is_session(values["log"] or Path()):
        raise UsageError("`passes` is of `from_answers`; leave it out")
    folder: Path = values["log"] or Path(Path(values["inputs"][0]).name.split(".")[0] + ".serve")
    if not values["inputs"] and not values["from_answers"] and not is_session(folder):
        raise UsageError(f"{folder}: there is no session to go on with; give `inputs`")
    return folder


def _session(kind: TaskSpec, values: Values, options: ServeOptions, folder: Path) -> Session:
    from sparsezo.cli import show
    from sparsezo.serve.folder import is_session, made_with
    from sparsezo.serve.session import Session
    from sparsezo.storage.files import numbered_lines

    own: Json = {}
    if is_session(folder):
        contents, dev = _known(kind, values, folder)
        show.note(f"going on with {folder}")
    elif values["from_answers"] is not None:
        contents, dev, own = _from_answers(kind, values)
    else:
        contents, dev = _loaded(kind, values)
    made, files = _made_with(kind, values)
    about = made_with({**kind.serve_defaults, **made}, values["inputs"] or (), files)
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
        until=options.aim(),
        source=None if options.source is None else [line for _, line in numbered_lines(options.source)],
        about={**about, **own.pop("about", {})},
        compile_ahead=True,
        **own,
    )


def _loaded(kind: TaskSpec, values: Values) -> tuple[Contents, Sized | None]:
    from sparsezo.model import load_model
    from sparsezo.serve.folder import Contents
    from sparsezo.tasks.loading import Files
    from sparsezo.training import joined

    model = load_model(values["model"], kind.name) if values["model"] else None
    its = {} if model is None else kind.serving().options_of(model.task)
    options = {**kind.serve_defaults, **its, **given(values, kind.options)}
    loaded = kind.load(Files(tuple(values["inputs"]), values["dev"], None, options))
    W = loaded.W if model is None else joined(model, loaded.task).W
    settings = _settings(kind, values, loaded.task)
    return Contents(kind, loaded.task, loaded.data.train, settings, W), loaded.data.dev


def _from_answers(kind: TaskSpec, values: Values) -> tuple[Contents, Sized | None, Json]:
    """A session that begins with what another's answers teach; and what else it takes from there."""
    from sparsezo.cli import show
    from sparsezo.cli.from_answers import begun, introduced, learned, passes_of, taken_over
    from sparsezo.serve.answers import PASSES, read_answers, settings_for
    from sparsezo.serve.folder import Contents

    passes = passes_of(values, PASSES)
    answers = read_answers(values["from_answers"], kind.name)
    chosen = given(values, _LEARNER)
    settings = settings_for(answers, chosen)
    start = begun(answers, values, train=values["inputs"] or (), init=values["model"], defaults=kind.serve_defaults)
    show.note(introduced(start, passes))
    W = learned(replace(start, dev=None), settings, passes).W
    audits = not values["inputs"] and values["audit"] is None and values["audit_whole"] is None
    own = taken_over(start, passes, audits=audits)
    if settings.rule == "review" and "rehearse" not in chosen:  # answers of other kinds were not gone over again
        settings = replace(settings, rehearse=settings.rehearse or RULES["review"].rehearse)
    return Contents(kind, start.task, start.data, settings, W), start.dev, own


def _known(kind: TaskSpec, values: Values, folder: Path) -> tuple[Contents, Sized | None]:
    """From its folder: a session that goes on. What is given must be as it was."""
    from sparsezo.serve.folder import differences, open_store, read
    from sparsezo.tasks.loading import is_count

    contents = read(folder)
    if contents.kind.name != kind.name:
        raise UsageError(f"{folder}: is a session of task {contents.kind.name}; use serve {contents.kind.name}")
    with contextlib.closing(open_store(folder)) as store:
        meta = store.meta
    dev = values["dev"]
    if is_count(dev):
        raise UsageError(f"`dev` {dev}: the session in {folder} goes on without its file; name a dev file")
    of_dev = {"dev_ref", *described(kind.read_options)} if dev is not None else set()
    options, files = _made_with(kind, {**values, **dict.fromkeys(of_dev)})
    own = {name: meta.get(name, 0) for name in ("audit", "audit_whole", "overlap")}
    kept = {**contents.settings.as_dict(), **kind.serving().kept_options(contents.task), **own}
    options = {name: value for name, value in options.items() if name not in files}
    kept["passes"] = meta.get("from_answers", {}).get("passes")
    now = {**options, **given(values, {**_LEARNER, **own, "passes": None})}
    defaults = {name: each.default for name, each in kind.options.items()} | dict(kind.serve_defaults)
    if found := differences(meta, kept, now, defaults, values["inputs"] or (), files):
        raise UsageError(
            f"{folder}: the session in it was made otherwise: {'; '.join(found)}. Leave out what differs to go on with "
            f"it, or begin a new session in another folder (`log`); `from_answers` {folder} takes the answers along"
        )
    if dev is None:
        return contents, None
    reading = given(values, described(kind.read_options))
    if values.get("dev_ref"):
        reading["ref"] = values["dev_ref"]
    return contents, kind.read(contents.task, dev, reading)


def _made_with(kind: TaskSpec, values: Values) -> tuple[Json, dict[str, str]]:
    """(a task's options that were given, the files that options name: they are known by their content)"""
    own = {name: each for name, each in kind.options.items() if not each.about.place}
    options = given(values, own)
    files: dict[str, str] = {name: values[name] for name in _FILES if values[name] is not None}
    for name in [name for name in options if own[name].about.file and isinstance(options[name], str)]:
        if Path(options[name]).is_file():
            files[name] = options[name]
    return options, files


def _guidelines(path: str | None) -> str | None:
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
    """Token by name, of all who answer and last of the administrator; None: one that cannot be shown again."""
    people = session.annotators
    known = [each.name for each in people.people.values() if not each.admin]
    admins = [each.name for each in people.people.values() if each.admin]
    # another name where, long ago, somebody who answers was called so
    admin = admins[0] if admins else "administrator" if ADMIN in known else ADMIN
    names = options.names() if options.person or options.people or not known else []
    programs = [name.strip() for name in options.program or ()]
    wanted = list(dict.fromkeys([*known, *(name.strip() for name in names), *programs]))
    new = {name.strip() for name in options.new_link or ()}
    if unknown := new - {*wanted, admin}:
        raise UsageError(f"`new_link` {sorted(unknown)[0]}: there is nobody of this name; `person` adds somebody")
    made = {name: (people.add if name in new else people.link)(name) for name in wanted}
    for name in programs:
        session.mark_program(made[name]["id"])
    tokens = {name: each["token"] for name, each in made.items()}
    mine = None if admin in new else people.link(admin, admin=True)["token"]
    return tokens | {admin: mine or people.add(admin, admin=True)["token"]}


def _introduce(session: Session, url: str, links: Mapping[str, str | None], wanted: bool | None) -> None:
    """Links are secrets: on standard output, and nowhere else."""
    import webbrowser

    from sparsezo.cli import show
    from sparsezo.serve.annotators import KEY

    question = session.warm_up()
    admins = {each.name for each in session.annotators.people.values() if each.admin}
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
    # The first question is there; what its answer needs is compiled while somebody reads it.
    threading.Thread(target=session.model.learn_in_vain, args=(question,), name="sparsezo answers").start()
