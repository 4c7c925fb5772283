"""Commands and their options; those of dataclasses have their names, texts, choices and defaults from there.

    command(app, "chunking", train_chunking, [*parameters(SETTINGS, "Learner"), flag("test", str | None, "...")], "...")

A command gets what was given, and nothing for what was not: defaults are the dataclasses' own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from sparsezo.options import GONE, Described, Values, gone
from sparsezo.storage import limits

if TYPE_CHECKING:
    from sparsezo.settings import Rate
    from sparsezo.tasks.spec import TaskSpec

Clicks = Any  # what click has: Typer may bring a click of its own
REQUIRED = inspect.Parameter.empty
HELP = {"help_option_names": ["-h", "--help"]}
_FIRST = ("train", "serve", "join", "tune", "predict", "evaluate", "convert", "replay", "reproduce")  # of everyday use


def _parsed(parse: Callable[[Clicks, list[str]], list[str]], ctx: Clicks, args: list[str]) -> list[str]:
    """As ``parse`` does; an option of ``train`` or ``tune`` that there once was is said to be gone."""
    try:
        return parse(ctx, args)
    except Exception as error:  # click's NoSuchOption
        flag = str(getattr(error, "option_name", None))
        if flag.removeprefix("--").replace("-", "_") in GONE and ctx.command_path.split()[1:2] in (["train"], ["tune"]):
            raise gone(flag) from None
        raise


def _flags_without_values(params: list[Clicks]) -> list[Clicks]:
    """In a help text a flag is a flag, not a thing of type bool."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class Command(TyperCommand):
    def parse_args(self, ctx: Clicks, args: list[str]) -> list[str]:
        return _parsed(super().parse_args, ctx, args)

    def get_params(self, ctx: Clicks) -> list[Clicks]:
        return _flags_without_values(super().get_params(ctx))


class Group(TyperGroup):
    def parse_args(self, ctx: Clicks, args: list[str]) -> list[str]:
        return _parsed(super().parse_args, ctx, args)

    def get_params(self, ctx: Clicks) -> list[Clicks]:
        return _flags_without_values(super().get_params(ctx))

    def list_commands(self, ctx: Clicks) -> list[str]:
        found = super().list_commands(ctx)
        return sorted(found, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))


def parameter(name: str, kind: object, option: object, default: object = None) -> inspect.Parameter:
    annotation = Annotated[kind, option]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def argument(name: str, kind: object, help: str, metavar: str | None = None) -> inspect.Parameter:
    return parameter(name, kind, typer.Argument(help=help, metavar=metavar), REQUIRED)


def flag(name: str, kind: object, help: str, default: object = None, **how: Clicks) -> inspect.Parameter:
    """An option called as its parameter is; ``how``: as ``typer.Option`` takes it."""
    names = ("-o", "--output") if name == "output" else ("--" + name.replace("_", "-"),)
    return parameter(name, kind, typer.Option(*names, help=help, **how), default)


def parameters(
    options: Mapping[str, Described], panel: str | None = None, shown: Mapping[str, str] | None = None
) -> list[inspect.Parameter]:
    """One for each option of a dataclass; ``shown``: defaults in other words."""
    made = []
    for name, each in options.items():
        if each.kind is bool:
            made.append(flag(name, bool, each.about.help, False, rich_help_panel=panel, show_default=False))
            continue
        own = f"{each.default:g}" if isinstance(each.default, float) else str(each.default)
        default = (shown or {}).get(name) or each.about.shown or (each.default is not None and own)
        words = (*each.about.words, "FILE") if each.about.file else each.about.choices
        metavar = words and "|".join(map(str, words))
        how: dict[str, Clicks] = {"show_default": default, "metavar": metavar, "rich_help_panel": panel}
        if each.kind is float and each.about.words:
            how |= {"metavar": "|".join(("FLOAT", *each.about.words)), "parser": number_or_word}
        made.append(flag(name, (list[str] if each.several else each.kind) | None, each.about.help, **how))
    return made


def number_or_word(text: str) -> float | str:
    """What an option that also takes words is given; its own check says what is wrong with another word."""
    try:
        return float(text)
    except ValueError:
        return text


def insist_parameter() -> inspect.Parameter:
    about = "Read what looks like a mistake: sentences, lines and sizes beyond all measure (SPARSEZO_INSIST=1)."
    return flag("insist", bool, about, False)


def json_parameter() -> inspect.Parameter:
    return flag("json", bool, "End standard output with one JSON object.", False)


def given(values: Values, names: Iterable[str], but: Collection[str] = ()) -> dict[str, Clicks]:
    """Of the options named, those that were given on the command line."""
    taken = {name: values.get(name) for name in names if name not in but}
    return {name: value for name, value in taken.items() if value is not None and value is not False and value != []}


def group(help: str) -> typer.Typer:
    return typer.Typer(
        help=help, no_args_is_help=True, cls=Group, context_settings=HELP, pretty_exceptions_enable=False
    )


def command(
    app: typer.Typer, name: str, body: Callable[..., None], params: Sequence[inspect.Parameter], help: str
) -> None:
    """A command with exactly these parameters; what ``insist`` says holds while it works."""

    def call(**values: Clicks) -> None:
        with limits.insisting(values.pop("insist", False)):
            body(**values)

    required_first = sorted(params, key=lambda each: each.default is not REQUIRED)
    # Typer reads a command's options from its function's signature, so this one gets the signature that it stands for.
    call.__signature__ = inspect.Signature(required_first)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in params}
    app.command(name, help=help, cls=Command, context_settings=HELP)(call)


def default_texts(kind: TaskSpec) -> dict[str, str]:
    """The task's defaults of h and mu as numbers: which, and with what."""
    from sparsezo.rules import BUILT_IN, PERTURBATIONS
    from sparsezo.settings import STEPS, rate_text

    usual = kind.usual_step
    if usual != "constant":
        usual += f"; constant with --perturb {' or '.join(kind.constant_steps)}, or an h below a tenth of adagrad's"
    elif kind.asks:
        usual += f"; adagrad for {', '.join(kind.asks)}"
    by_value: dict[str, dict[Rate, dict[str, None]]] = {"h": {}, "mu": {}}  # with the names of those that have it
    for rule in BUILT_IN.values():
        if rule.asks and rule.name not in kind.asks:
            continue
        steps = ("adagrad",) if rule.asks else STEPS  # which these have by default
        for perturb, step in product(reversed(PERTURBATIONS) if rule.zeroth_order else [None], steps):
            if (step, perturb) == ("adagrad", "all"):
                continue
            its, others = (kind.defaults(name, step, perturb) for name in (rule.name, "two-point"))
            for name, value, other in zip(("h", "mu") if rule.zeroth_order else ("h",), its, others, strict=False):
                with_ = perturb or rule.name
                if perturb is not None and value != other:  # of this rule, not of the perturbation
                    with_ = f"{rule.name} {perturb}"
                if step != "constant" and not rule.asks:
                    with_ += f" {step}"
                by_value[name].setdefault(value, {})[with_] = None
    texts = {"step": usual}
    for name, found in by_value.items():
        each = (f"{rate_text(value)} for {', '.join(names)}" for value, names in found.items())
        texts[name] = rate_text(next(iter(found))) if len(found) == 1 else "; ".join(each)
    return texts
