"""The commands (DESIGN 5). Each imports what it needs when it is called, so that --help answers at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparsezo.cli.data import data_app
from sparsezo.cli.theory import theory
from sparsezo.experiments import CHECKPOINT_SECONDS

app = typer.Typer(
    help="Learn structured predictors from feedback on their outputs alone, by sparse zeroth-order optimisation.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_LEARNER, _CHUNKING, _TEXT, _RERANK = "Learner", "Task chunking", "Task text", "Task rerank"

TaskName = Annotated[str, typer.Argument(metavar="TASK", help="chunking, text or rerank.")]
Json = Annotated[bool, typer.Option("--json", help="End standard output with one JSON object.")]


# Options that several commands have
Rule = Annotated[
    str,
    typer.Option(
        help="two-point, symmetric, comparison, preference, baseline, first-order or supervised.",
        rich_help_panel=_LEARNER,
    ),
]
Perturb = Annotated[
    str | None,
    typer.Option(help="all, active or score. (default: score)", rich_help_panel=_LEARNER, show_default=False),
]
Criterion = Annotated[str, typer.Option(help="map, or annealed: the expected loss.", rich_help_panel=_LEARNER)]
Gamma = Annotated[float, typer.Option(help="Temperature of annealed.", rich_help_panel=_LEARNER)]
Step = Annotated[str, typer.Option(help="constant or adagrad.", rich_help_panel=_LEARNER)]
Baseline = Annotated[
    bool, typer.Option("--baseline", help="first-order: subtract the mean loss.", rich_help_panel=_LEARNER)
]
Feedback = Annotated[
    str,
    typer.Option(
        help="How the simulated rater answers: exact, binary, flip:P (comparisons wrong with probability P), "
        "rating:5 (grades).",
        rich_help_panel=_LEARNER,
    ),
]
Only = Annotated[str | None, typer.Option(help="Keep one chunk type, such as NP.", rich_help_panel=_CHUNKING)]
Order = Annotated[
    int | None,
    typer.Option(
        help="2: weights for tag bigrams (the paper, and the default); 1: for tags, plus bigrams.",
        rich_help_panel=_CHUNKING,
    ),
]
TemplateFile = Annotated[
    str | None, typer.Option(help="Feature templates in CRF++'s notation.", rich_help_panel=_CHUNKING)
]
MinCount = Annotated[
    int | None, typer.Option(help="Leave out features seen less often (also text).", rich_help_panel=_CHUNKING)
]
Format = Annotated[str | None, typer.Option(help="tsv, svmlight or lyrl. (default: by content)", rich_help_panel=_TEXT)]
Topics = Annotated[str | None, typer.Option(help="RCV1's topics qrels file, for lyrl.", rich_help_panel=_TEXT)]
RawTf = Annotated[
    bool, typer.Option("--raw-tf", help="tf-idf with tf as it is, not 1 + log tf.", rich_help_panel=_TEXT)
]
TrainRef = Annotated[
    list[str] | None,
    typer.Option(help="References, one or several. (default: .ref for .nbest)", rich_help_panel=_RERANK),
]
DevRef = Annotated[list[str] | None, typer.Option(rich_help_panel=_RERANK)]
Init = Annotated[
    str | None, typer.Option(help="A decoder's weights to start from (cdec, moses.ini).", rich_help_panel=_RERANK)
]
Store = Annotated[
    str | None, typer.Option(help="Where imported lists are kept. (default: cache)", rich_help_panel=_RERANK)
]


def _version(show: bool) -> None:
    if show:
        from sparsezo import __version__

        typer.echo(f"sparsezo {__version__}")
        raise typer.Exit


@app.callback()
def top(
    _version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    pass


@app.command()
def train(
    task: TaskName,
    train: Annotated[list[str], typer.Option(help="Training file (plain, .gz or .xz); text: one or several.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the model goes.")],
    dev: Annotated[
        str | None, typer.Option(help="Dev file; or N: the first N inputs of train (chunking, text).")
    ] = None,
    test: Annotated[str | None, typer.Option(help="Test file, looked at once, by the best model.")] = None,
    rule: Rule = "two-point",
    perturb: Perturb = None,
    criterion: Criterion = "map",
    gamma: Gamma = 1.0,
    h: Annotated[
        float | None,
        typer.Option(help="Learning rate. (default: by task, rule and perturbation)", rich_help_panel=_LEARNER),
    ] = None,
    mu: Annotated[
        float | None, typer.Option(help="Size of the perturbation. (default: by task)", rich_help_panel=_LEARNER)
    ] = None,
    step: Step = "constant",
    baseline: Baseline = False,
    feedback: Feedback = "exact",
    iterations: Annotated[str, typer.Option(help="4M, 300k, 1e6, ...", rich_help_panel=_LEARNER)] = "1M",
    seed: Annotated[int, typer.Option(help="Same seed, same run, bit for bit.", rich_help_panel=_LEARNER)] = 0,
    only: Only = None,
    order: Order = None,
    template: TemplateFile = None,
    min_count: MinCount = None,
    format: Format = None,
    topics: Topics = None,
    raw_tf: RawTf = False,
    train_ref: TrainRef = None,
    dev_ref: DevRef = None,
    test_ref: Annotated[list[str] | None, typer.Option(rich_help_panel=_RERANK)] = None,
    init: Init = None,
    store: Store = None,
    evaluate_every: Annotated[
        str | None, typer.Option(help="Steps between looks at dev. (default: a hundredth of the run)")
    ] = None,
    checkpoint_seconds: Annotated[float, typer.Option(help="Seconds between checkpoints.")] = CHECKPOINT_SECONDS,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint of a stopped run.")] = False,
    as_json: Json = False,
) -> None:
    """Learn from simulated feedback: gold is looked at only to compute losses of outputs."""
    from sparsezo.cli.commands import TrainCall, run_train
    from sparsezo.tasks.loading import Files

    options = _given(
        only=only,
        order=order,
        template=template,
        min_count=min_count,
        format=format,
        topics=topics,
        raw_tf=raw_tf,
        train_ref=train_ref,
        dev_ref=dev_ref,
        test_ref=test_ref,
        init=init,
        store=store,
    )
    run_train(
        TrainCall(
            task=task,
            files=Files(tuple(train), dev, test, options),
            output=output,
            rule=rule,
            perturb=perturb,
            criterion=criterion,
            gamma=gamma,
            h=h,
            mu=mu,
            step=step,
            baseline=baseline,
            feedback=feedback,
            iterations=iterations,
            seed=seed,
            evaluate_every=evaluate_every,
            checkpoint_seconds=checkpoint_seconds,
            resume=resume,
            as_json=as_json,
        )
    )


@app.command()
def tune(
    task: TaskName,
    train: Annotated[list[str], typer.Option(help="Training file, as in train; text: one or several.")],
    dev: Annotated[str, typer.Option(help="Dev file, which decides; or N: the first N inputs of train.")],
    rule: Rule = "two-point",
    perturb: Perturb = None,
    criterion: Criterion = "map",
    gamma: Gamma = 1.0,
    step: Step = "constant",
    baseline: Baseline = False,
    feedback: Feedback = "exact",
    grid_h: Annotated[
        str | None, typer.Option(help="Values of h, such as 0.01,0.001. (default: the paper's for the task)")
    ] = None,
    grid_mu: Annotated[
        str | None, typer.Option(help="Values of mu, such as 0.1,0.01. (default: the paper's for the task)")
    ] = None,
    full_grid: Annotated[
        bool, typer.Option("--full-grid", help="Try every point to the end; without it, a search.")
    ] = False,
    iterations: Annotated[
        str, typer.Option(help="Of the run that is tuned for: 4M, 300k, ...", rich_help_panel=_LEARNER)
    ] = "1M",
    seed: Annotated[int, typer.Option(help="Of the trials.", rich_help_panel=_LEARNER)] = 0,
    seeds: Annotated[
        int,
        typer.Option(min=1, help="More than 1: the best three are tried with so many.", rich_help_panel=_LEARNER),
    ] = 1,
    only: Only = None,
    order: Order = None,
    template: TemplateFile = None,
    min_count: MinCount = None,
    format: Format = None,
    topics: Topics = None,
    raw_tf: RawTf = False,
    train_ref: TrainRef = None,
    dev_ref: DevRef = None,
    init: Init = None,
    store: Store = None,
    processes: Annotated[int | None, typer.Option(min=1, help="Default: one for each core.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder of the trials. (default: tune-TASK)")
    ] = None,
    as_json: Json = False,
) -> None:
    """Search for h and mu on dev; prints them and the command that trains with them. Stopped, it goes on."""
    from sparsezo.cli.experiments import TuneCall, run_tune
    from sparsezo.tasks.loading import Files

    options = _given(
        only=only,
        order=order,
        template=template,
        min_count=min_count,
        format=format,
        topics=topics,
        raw_tf=raw_tf,
        train_ref=train_ref,
        dev_ref=dev_ref,
        init=init,
        store=store,
    )
    run_tune(
        TuneCall(
            task=task,
            files=Files(tuple(train), dev, None, options),
            rule=rule,
            perturb=perturb,
            criterion=criterion,
            gamma=gamma,
            step=step,
            baseline=baseline,
            feedback=feedback,
            grid_h=grid_h,
            grid_mu=grid_mu,
            iterations=iterations,
            seeds=tuple(range(seed, seed + seeds)),
            full_grid=full_grid,
            processes=processes,
            output=output,
            as_json=as_json,
        )
    )


@app.command()
def reproduce(
    name: Annotated[
        str, typer.Argument(metavar="NAME|FILE.toml", help="chunking, smt, text, all; noise, scaling; or a file.")
    ],
    data: Annotated[
        str | None,
        typer.Option(envvar="SPARSEZO_DATA", help="Folder with the data; or 'generated': the built-in generators."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder of the results. (default: results/NAME)")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="How many: 0, 1, ... (default: the experiment's, 3)")] = None,
    iterations: Annotated[str | None, typer.Option(help="4M, 300k, ... (default: the experiment's)")] = None,
    phases: Annotated[
        str, typer.Option(help="fixed: the paper's figure; tuned: its table, h and mu searched on dev.")
    ] = "fixed,tuned",
    full_grid: Annotated[
        bool, typer.Option("--full-grid", help="tuned: try every point of the grids to the end.")
    ] = False,
    processes: Annotated[int | None, typer.Option(min=1, help="Default: one for each core.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="scaling: a few seconds instead of a minute.")] = False,
) -> None:
    """The paper's experiments and the report, with one command. Interrupted or killed, it goes on from there."""
    from sparsezo.cli.experiments import run_reproduce

    run_reproduce(
        name,
        data,
        seeds=seeds,
        iterations=iterations,
        phases=phases,
        full_grid=full_grid,
        processes=processes,
        out=output,
        quick=quick,
    )


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A model that train wrote.")],
    input: Annotated[str, typer.Argument(help="The inputs, with or without the correct outputs.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="(default: standard output)")] = None,
    format: Format = None,
    labels_only: Annotated[
        bool, typer.Option("--labels-only", help="Labels without the texts.", rich_help_panel=_TEXT)
    ] = False,
    nbest: Annotated[
        bool, typer.Option("--nbest", help="The whole lists, reranked, not only the best.", rich_help_panel=_RERANK)
    ] = False,
) -> None:
    """Write the best outputs: columns with the predicted tag appended, label TAB text, or the 1-best translations."""
    from sparsezo.cli.commands import run_predict

    run_predict(model, input, output, _given(format=format, labels_only=labels_only, nbest=nbest))


@app.command()
def evaluate(
    model: Annotated[Path, typer.Argument(help="A model that train wrote.")],
    test: Annotated[str, typer.Argument(help="A file with the correct outputs.")],
    format: Format = None,
    topics: Topics = None,
    ref: Annotated[
        list[str] | None, typer.Option(help="References. (default: .ref for .nbest)", rich_help_panel=_RERANK)
    ] = None,
    store: Store = None,
    as_json: Json = False,
) -> None:
    """Evaluate a model on a test file, by the task's own metric."""
    from sparsezo.cli.commands import run_evaluate

    run_evaluate(model, test, _given(format=format, topics=topics, ref=ref, store=store), as_json=as_json)


def _given(**options: object) -> dict[str, object]:
    """Only what was given on the command line."""
    return {name: value for name, value in options.items() if value is not None and value is not False}


@app.command()
def demo(
    seconds: Annotated[float, typer.Option(help="About how long the runs of the table may take together.")] = 30.0,
    report: Annotated[bool, typer.Option(help="End with a report on generated data for all three tasks.")] = True,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the report goes.")] = Path("demo-report"),
    as_json: Json = False,
) -> None:
    """A tour on generated data: every rule with every perturbation, ranked; then a report on all three tasks."""
    from sparsezo.cli.demo import run_demo

    run_demo(seconds, output if report else None, as_json=as_json)


@app.command()
def bench(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="chunking, text or rerank.")],
    data: Annotated[
        Path | None,
        typer.Option(envvar="SPARSEZO_DATA", help="Folder with conll2000/ and smt/; without it, generated data."),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Interleaved rounds; the best of each counts.")] = 5,
    as_json: Json = False,
) -> None:
    """What a step costs, as a ratio to a yardstick in the same run: NumPy's normals, Vowpal Wabbit, features @ w."""
    from sparsezo.bench.clock import run_bench

    run_bench(what, data, rounds, as_json=as_json)


app.command()(theory)
app.add_typer(data_app, name="data")
