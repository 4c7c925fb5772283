"""The commands and their options. What a command does is imported when it is called, so that --help answers at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparsezo.cli.from_answers import from_answers_parameters
from sparsezo.cli.log import log_parameter
from sparsezo.cli.options import (
    REQUIRED,
    argument,
    command,
    default_texts,
    flag,
    group,
    insist_parameter,
    json_parameter,
    parameter,
    parameters,
)
from sparsezo.cli.replay import add_replay
from sparsezo.cli.serve import serve_app
from sparsezo.cli.values import ITERATIONS, N_BAR, R_BAR, N
from sparsezo.options import Described, described
from sparsezo.scorers import ScorerOptions
from sparsezo.settings import SETTINGS
from sparsezo.signals import CHECKPOINT_SECONDS
from sparsezo.study.engines.base import ENGINE_OPTIONS
from sparsezo.tasks.chunking.options import SPAN_FORMATS
from sparsezo.tasks.registry import names, task_specs
from sparsezo.tasks.streams import StreamOptions

if TYPE_CHECKING:
    from sparsezo.tasks.spec import TaskSpec

GROUPS = ("train", "tune", "serve")  # whose commands, one a task, have some thirty options each
LEARNER = "Learner"
SEARCHED = ("h", "mu", "seed")  # settings that are not tune's to be given
Parameters = list[inspect.Parameter]


def make_app(whole: Collection[str] = GROUPS) -> typer.Typer:
    """All commands; made anew, so that tasks registered meanwhile are among them.

    ``whole``: the words of the call, by which those groups and tasks are made that are asked for. Making them all would
    cost a third of the time that --help has.
    """
    app = group(
        "Learn structured predictors from feedback on their outputs alone, by sparse zeroth-order optimisation."
    )
    app.callback()(_top)
    named = [kind for kind in task_specs() if kind.name in whole] or task_specs()
    _add_train(app, named if "train" in whole else ())
    _add_tune(app, named if "tune" in whole else ())
    app.add_typer(serve_app(whole="serve" in whole), name="serve")
    _add_join(app)
    add_replay(app)
    for add in (
        _add_predict,
        _add_evaluate,
        _add_convert,
        _add_reproduce,
        _add_demo,
        _add_bench,
        _add_theory,
        _add_doctor,
        _add_data,
    ):
        add(app)
    return app


def _version(show: bool) -> None:
    if show:
        from sparsezo import __version__

        typer.echo(f"sparsezo {__version__}")
        raise typer.Exit


def _top(
    _version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    pass


def _later(place: str) -> Callable[..., None]:
    """The function at ``place``, such as train.run_train, of a module that is imported when it is called."""
    module, name = place.split(".")

    def call(*first: object, **values: object) -> None:
        getattr(import_module(f"sparsezo.cli.{module}"), name)(*first, **values)

    return call


def _with_values(place: str, *first: object) -> Callable[..., None]:
    """The same, for a function that takes the command line as one mapping."""
    return lambda **values: _later(place)(*first, values)


# ---- train and tune ----


def _data(kind: TaskSpec, train: tuple[object, object], dev: tuple[object, object]) -> Parameters:
    several = "one or several." if kind.several_files else "one."
    hold_out = "; or N: the first N inputs of train" if kind.hold_out else ""
    about = f"Dev file{hold_out}. The best model on dev is kept."
    return [
        flag("train", train[0], f"Training file (plain, .gz or .xz), {several}", train[1], metavar="FILE"),
        flag("dev", dev[0], about, dev[1], metavar="FILE|N"),
    ]


def _length(iterations: str, answers: str) -> Parameters:
    shown = f"{ITERATIONS}; no end with --answers"
    return [
        flag("iterations", str | None, iterations, show_default=shown, rich_help_panel=LEARNER, metavar="N"),
        flag("answers", str | None, answers, rich_help_panel=LEARNER, metavar="N"),
    ]


def _add_train(app: typer.Typer, kinds: Iterable[TaskSpec]) -> None:
    train = group("Learn from simulated feedback: gold is looked at only to compute losses of outputs.")
    app.add_typer(train, name="train")
    for kind in kinds:
        about = f"Learn {kind.title.lower()} from simulated feedback."
        command(train, kind.name, _with_values("train.run_train", kind), _train_parameters(kind), about)


def _train_parameters(kind: TaskSpec) -> Parameters:
    panel, options, logs = f"Task {kind.name}", dict(kind.options), kind.log_module is not None
    own = options.pop("init", None)
    init = (
        "A model that train wrote, to start from." if own is None else f"{own.about.help} Or a model that train wrote."
    )
    every = "Steps (with --answers: answers) between looks at dev."
    return [
        *_data(kind, (list[str] | None, None) if kind.asks else (list[str], REQUIRED), (str | None, None)),
        *(from_answers_parameters(logs) if kind.asks else ()),
        *(
            [log_parameter("Learn from a file of outputs that were shown, and thumbs, scores or corrections on them.")]
            if logs
            else ()
        ),
        flag("output", Path, "Where the model goes.", REQUIRED, metavar="FILE"),
        flag("test", str | None, "Test file, looked at once, by the best model.", metavar="FILE"),
        *parameters(SETTINGS, LEARNER, default_texts(kind)),
        *_length(
            "How many steps at most: 4M, 300k, 1e6, ...",
            "End when a person would have answered so many questions: 1k, 5000, ...",
        ),
        *parameters(described(ScorerOptions), LEARNER),
        *parameters(options, panel),
        *(parameters(described(StreamOptions), panel) if kind.streams else ()),
        flag("init", str | None, f"{init} Its features are found again by name.", metavar="FILE", show_default="0"),
        flag("evaluate_every", str | None, every, show_default="a hundredth of the run"),
        flag("checkpoint_seconds", float, "Seconds between checkpoints.", CHECKPOINT_SECONDS),
        flag("resume", bool, "Go on from the checkpoint of a stopped run.", False),
        flag("force", bool, "Replace the model that is there.", False),
        insist_parameter(),
        json_parameter(),
    ]


def _add_tune(app: typer.Typer, kinds: Iterable[TaskSpec]) -> None:
    about = "Search for h and mu on dev; prints them and the command that trains with them. Stopped, it goes on."
    tune = group(about)
    app.add_typer(tune, name="tune")
    for kind in kinds:
        about = f"Search for h and mu: {kind.title.lower()}."
        command(tune, kind.name, _with_values("tune.run_tune", kind), _tune_parameters(kind), about)


def tune_options(kind: TaskSpec) -> dict[str, Described]:
    """The task's, but for the test file's. A search needs labels: nobody would answer all of its trials."""
    return {name: each for name, each in kind.options.items() if name != "test_ref" and not each.about.unlabelled}


def _tune_parameters(kind: TaskSpec) -> Parameters:
    gamma = "annealed criterion: values of gamma, such as 1,10. (default: --gamma alone)"
    best = "More than 1: the best three are tried with so many."
    return [
        *_data(kind, (list[str], REQUIRED), (str, REQUIRED)),
        *parameters({name: each for name, each in SETTINGS.items() if name not in SEARCHED}, LEARNER),
        *_length("Of the run that is tuned for: 4M, 300k, ...", "Of the run that is tuned for, where answers end it."),
        flag("seed", int, "Of the trials.", 0, rich_help_panel=LEARNER),
        flag("seeds", int, best, 1, min=1, rich_help_panel=LEARNER),
        flag("grid_h", str | None, "Values of h, such as 0.01,0.001.", show_default="the task's own"),
        flag("grid_mu", str | None, "Values of mu, such as 0.1,0.01.", show_default="the task's own"),
        flag("grid_gamma", str | None, gamma, show_default=False),
        flag("full_grid", bool, "Try every point to the end; without it, a search.", False),
        *parameters(tune_options(kind), f"Task {kind.name}"),
        *parameters(ENGINE_OPTIONS, "Where"),
        flag("output", Path | None, "Folder of the trials.", show_default=f"tune-{kind.name}"),
        insist_parameter(),
        json_parameter(),
    ]


# ---- what a model does ----


def _of_all_tasks(options: Callable[[TaskSpec], dict[str, Described]], panel: str = "Task") -> Parameters:
    """The command line does not know the task yet: options of all of them, each once."""
    found: dict[str, inspect.Parameter] = {}
    for kind in task_specs():
        for each in parameters(options(kind), f"{panel} {kind.name}"):
            found.setdefault(each.name, each)
    return list(found.values())


def _add_predict(app: typer.Typer) -> None:
    at_once = ENGINE_OPTIONS["processes"]
    at_once = replace(at_once, about=replace(at_once.about, help="How many files at once."))
    where = "Where it goes; of several files, a folder."
    params = [
        argument("model", Path, "A model that train wrote."),
        argument("input", list[str], "The inputs, with or without the correct outputs: a file, or many."),
        flag("output", Path | None, where, show_default="standard output"),
        *parameters({**ENGINE_OPTIONS, "processes": at_once}, "Many files"),
        insist_parameter(),
        *_of_all_tasks(lambda kind: described(kind.predict_options)),
    ]
    about = "Write the best outputs: spans of texts, columns with a predicted tag, label TAB text, 1-best translations."
    command(app, "predict", _with_values("predict.run_predict"), params, about)


def _add_evaluate(app: typer.Typer) -> None:
    params = [
        argument("model", Path, "A model that train wrote."),
        parameter("test", str | None, typer.Argument(help="A file with the correct outputs.", show_default=False)),
        log_parameter(
            "Or: what people would say of the model, by a file of what another system has shown and people said of it."
        ),
        *_of_all_tasks(lambda kind: described(kind.read_options)),
        insist_parameter(),
        json_parameter(),
    ]
    about = "Evaluate a model on a test file, by the task's own metric."
    command(app, "evaluate", _with_values("predict.run_evaluate"), params, about)


def _add_convert(app: typer.Typer) -> None:
    formats = "|".join(("jsonl", "conll", *SPAN_FORMATS[1:]))
    params = [
        argument("source", str, "Texts with spans (or plain text): a file, a folder, or - for standard input.", "IN"),
        argument("target", str, "Where they go; - is standard output. Packed if it ends in .gz or .xz.", "OUT"),
        parameter(
            "from_",
            str | None,
            typer.Option("--from", help="Format of IN.", metavar=formats, show_default="by name and content"),
        ),
        flag("to", str | None, "Format of OUT.", metavar=formats, show_default="by name"),
        insist_parameter(),
    ]
    about = "Texts with spans from one tool's format to another's: Label Studio, Prodigy, brat, spaCy, columns, ..."
    command(app, "convert", _later("convert.run_convert"), params, about)


# ---- people's questions ----


def _add_join(app: typer.Typer) -> None:
    options = described(ScorerOptions)
    scorer = "Who answers: a program (a JSON line in, a line out, kept running), or module:function."
    params = [
        argument("link", str, "A link that serve printed (serve --program NAME makes one for a program).", "LINK"),
        flag("scorer", str, scorer, REQUIRED, metavar="CMD|MODULE:FUNCTION"),
        *parameters({"scorer_seconds": options["scorer_seconds"]}),
        flag("rate", float | None, "Answers a minute, at most.", show_default="as fast as it can"),
    ]
    about = "Have a program answer a running serve's questions, as one more annotator."
    command(app, "join", _with_values("join.run_join"), params, about)


# ---- studies ----


def _add_reproduce(app: typer.Typer) -> None:
    name = "chunking, smt, text, all; answers, noise, scaling; or a file of your own."
    data = "Folder with the data; or 'generated': the built-in generators."
    out = "Folder of the results. (default: results/NAME)"
    phases = (
        "fixed: the paper's figure; tuned: its table, h and mu searched on dev; speed: searched for the fastest; "
        "undivided, gamma: docs/experiments.md. (default: the experiment's)"
    )
    engine = {option: ENGINE_OPTIONS[option] for option in ("processes", "engine", "ray_address")}
    params = [
        argument("name", str, name, "NAME|FILE.toml"),
        flag("data", str | None, data, envvar="SPARSEZO_DATA"),
        parameter("out", Path | None, typer.Option("-o", "--output", help=out)),
        flag("seeds", str | None, "How many, or which: 10, 0-9 or 3,8,4. (default: the experiment's)"),
        flag("iterations", str | None, "4M, 300k, ... (default: the experiment's)"),
        flag("answers", str | None, "answers: 5k, ... (default: the experiment's)"),
        flag("phases", str | None, phases),
        flag("full_grid", bool, "tuned: try every point of the grids to the end.", False),
        *parameters(engine),
        flag("quick", bool, "scaling: a few seconds instead of a minute.", False),
        insist_parameter(),
    ]
    about = "The paper's experiments and the report, with one command. Interrupted or killed, it goes on from there."
    command(app, "reproduce", _later("reproduce.run_reproduce"), params, about)


def _add_demo(app: typer.Typer) -> None:
    params = [
        flag("seconds", float, "About how long the runs of the table may take together.", 30.0),
        parameter("report", bool, typer.Option(help="End with a report on generated data for all three tasks."), True),
        flag("output", Path, "Where the report goes.", Path("demo-report")),
        json_parameter(),
    ]
    about = "A tour on generated data: every rule with every perturbation, ranked; then a report on all three tasks."
    command(app, "demo", _later("demo.run_demo"), params, about)


def _add_bench(app: typer.Typer) -> None:
    data = "Folder with conll2000/ and smt/; without it, generated data."
    params = [
        argument("what", str, "chunking, text, rerank or limit.", "WHAT"),
        flag("data", Path | None, data, envvar="SPARSEZO_DATA"),
        flag("rounds", int, "Interleaved rounds; the best of each counts.", 5, min=1),
        flag("quick", bool, "Of reproduce scaling alone.", False, hidden=True),
        json_parameter(),
    ]
    about = (
        "What a step costs, as a ratio to a yardstick in the same run: NumPy's normals, Vowpal Wabbit, features @ w; "
        "limit: what this machine needs at least."
    )
    command(app, "bench", _later("demo.run_bench"), params, about)


def _add_theory(app: typer.Typer) -> None:
    panel = {"rich_help_panel": "A data file's own n, n_bar and r_bar"}
    others = ("dev_ref", "test_ref", "init")  # options about anything but the training file
    params = [
        flag("n", str | None, "All weights, such as 2.8M.", show_default=N),
        flag("n_bar", float | None, "Active weights of an input.", show_default=f"{N_BAR:g}"),
        flag("r_bar", float | None, "Scores of an input.", show_default=f"{R_BAR:g}"),
        flag("L0", float, "Lipschitz constant of F(., x).", 1.0),
        flag("R", float, "Distance of the start from a minimiser.", 1.0),
        flag("alpha", float, "How far f_mu may be from f.", 0.1),
        flag("epsilon", float, "Average squared gradient norm to reach.", 0.1),
        flag("mu", float, "Any loss in [0, 1]: size of the perturbation.", 0.1),
        flag("iterations", str, "Any loss in [0, 1]: of the run.", "4M"),  # the paper's run on CoNLL-2000
        flag("task", str | None, f"{', '.join(names())}; with --data.", **panel),
        flag("data", list[str] | None, "A training file; text: one or several.", metavar="FILE", **panel),
        *_of_all_tasks(
            lambda kind: {name: each for name, each in kind.options.items() if name not in others},
            "How it is read: task",
        ),
        insist_parameter(),
        json_parameter(),
    ]
    about = "What the theory asks for: h, mu and iterations of all, active and score, for Lipschitz losses and for any."
    command(app, "theory", _with_values("theory.run_theory"), params, about)


# ---- data ----


def _add_data(app: typer.Typer) -> None:
    data = group("Where the data is, how to get it, and generated data.")
    app.add_typer(data, name="data")
    folder = flag("data", Path | None, "Look here first, then in SPARSEZO_DATA and in the cache.")
    name = argument("name", str, "conll2000, rcv1, wmt07 or 20news.", "NAME")
    about = "The collections known: what they are, whether they are here, where to get them."
    command(data, "list", _later("data.list_collections"), [folder, json_parameter()], about)
    about = "Fetch a collection from its public home into the user's cache, and print the folder."
    command(data, "get", _later("data.get"), [name], about)
    command(data, "path", _later("data.path"), [name, folder], "Print the folder where a collection is.")
    place = (
        "A file, packed if it ends in .gz or .xz; rerank: NAME.nbest, and NAME.ref and weights beside it. "
        "A folder (there, or ending in /): train, dev and test, with n, n/4 and n/2 inputs of seeds S, S+1, S+2."
    )
    sizes = "2000 sentences, 4000 documents, 300 lists"
    params = [
        argument("task", str, "chunking, text or rerank.", "TASK"),
        flag("output", str, place, REQUIRED, metavar="FILE|DIR"),
        parameter("n", str | None, typer.Option("-n", help="Inputs: 500, 20k, ...", show_default=sizes)),
        flag("seed", int, "Another seed, other data of the same law.", 0, min=0),
        flag("format", str | None, "text: tsv (label TAB text) or svmlight (RCV1's shape).", show_default="tsv"),
    ]
    about = "Write generated data: CoNLL columns, documents, or n-best lists with references and weights."
    command(data, "make", _later("data.make"), params, about)


def _add_doctor(app: typer.Typer) -> None:
    about = "What this installation has, what it lacks and for what, and what would go wrong here."
    command(app, "doctor", _later("doctor.run_doctor"), [json_parameter()], about)
