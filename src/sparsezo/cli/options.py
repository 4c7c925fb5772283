"""Options of dataclasses as options of commands: names, texts, choices and defaults are written in one place.

    command(app, "chunking", train_chunking, [*parameters(SETTINGS, "Learner"), ...], "Learn ...")

A command gets what was given, and nothing for what was not: defaults are the dataclasses' own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from sparsezo.options import Described
from sparsezo.storage import limits

if TYPE_CHECKING:
    from sparsezo.tasks.kind import TaskKind

HELP = {"help_option_names": ["-h", "--help"]}


def _flags_without_values(params: list[Any]) -> list[Any]:
    """In a help text a flag is a flag, not a thing of type bool."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _flags_without_values(super().get_params(ctx))


class Group(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        """Those of everyday use first."""
        first = ("train", "serve", "tune", "predict", "evaluate", "replay", "reproduce")
        found = super().list_commands(ctx)
        return [*(name for name in first if name in found), *(name for name in found if name not in first)]

    def get_params(self, ctx: Any) -> list[Any]:
        return _flags_without_values(super().get_params(ctx))


def parameter(name: str, kind: Any, option: Any, default: Any = None) -> inspect.Parameter:
    annotation = Annotated[kind, option]
    keyword = inspect.Parameter.KEYWORD_ONLY
    if default is inspect.Parameter.empty:
        return inspect.Parameter(name, keyword, annotation=annotation)
    return inspect.Parameter(name, keyword, default=default, annotation=annotation)


def parameters(
    options: Mapping[str, Described], panel: str, shown: Mapping[str, str] | None = None
) -> list[inspect.Parameter]:
    """One for each option; ``shown``: defaults in other words."""
    made = []
    for each in options.values():
        option = option_of(each, panel, (shown or {}).get(each.name))
        if each.kind is bool:
            made.append(parameter(each.name, bool, option, False))
        else:
            made.append(parameter(each.name, (list[str] if each.several else each.kind) | None, option))
    return made


def option_of(each: Described, panel: str | None = None, shown: str | None = None) -> Any:
    """As Typer has it; ``shown``: the default in other words."""
    if each.kind is bool:
        return typer.Option(each.flag, help=each.about.help, rich_help_panel=panel, show_default=False)
    default = shown or each.about.shown or _default_text(each)
    choices = each.about.choices
    metavar = "|".join(map(str, choices)) if choices is not None else None
    if each.about.file:
        metavar = "|".join((*each.about.words, "FILE"))
    return typer.Option(
        each.flag, help=each.about.help, rich_help_panel=panel, show_default=default or False, metavar=metavar
    )


def _default_text(each: Described) -> str | None:
    if each.default is None:
        return None
    return f"{each.default:g}" if isinstance(each.default, float) else str(each.default)


INSIST = typer.Option(
    "--insist",
    help="Read what looks like a mistake: sentences, lines and sizes beyond all measure (SPARSEZO_INSIST=1).",
)


def insist_parameter() -> inspect.Parameter:
    return parameter("insist", bool, INSIST, False)


def given(values: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """Of the options named, those that were given on the command line."""
    taken = {name: values[name] for name in names if name in values}
    return {name: value for name, value in taken.items() if value is not None and value is not False and value != []}


def command(
    app: typer.Typer, name: str, body: Callable[..., None], params: Sequence[inspect.Parameter], help: str
) -> None:
    """A command with exactly these parameters; what ``insist`` says holds while it works."""

    def call(**values: Any) -> None:
        with limits.insisting(values.pop("insist", False)):
            body(**values)

    required_first = sorted(params, key=lambda each: each.default is not inspect.Parameter.empty)
    call.__signature__ = inspect.Signature(required_first)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in params}
    app.command(name, help=help, cls=Command, context_settings=HELP)(call)


def default_texts(kind: TaskKind) -> dict[str, str]:
    """The task's defaults of h and mu as numbers: which, and with what."""
    from sparsezo.perturbations import PERTURBATIONS
    from sparsezo.rules import RULES
    from sparsezo.settings import STEPS

    usual = kind.usual_step
    if usual != "constant":
        usual += f"; constant with --perturb {' or '.join(kind.constant_steps)}, or an h below a tenth of adagrad's"
    if kind.asks and kind.usual_step == "constant":
        usual += f"; adagrad for {', '.join(kind.asks)}"
    texts = {"step": usual}
    for place, name in enumerate(("h", "mu")):
        by_value: dict[float, list[str]] = {}
        for rule in RULES.values():
            if rule.asks and rule.name not in kind.asks:
                continue
            for perturb in reversed(PERTURBATIONS) if rule.zeroth_order else [None]:
                for step in STEPS:
                    if (name == "mu" and not rule.zeroth_order) or (step, perturb) == ("adagrad", "all"):
                        continue
                    if rule.asks and step != "adagrad":  # which these have by default
                        continue
                    value = kind.defaults(rule.name, step, perturb)[place]
                    with_ = [perturb, *([step] if step != "constant" else [])] if perturb else [rule.name]
                    with_ += [step] if not perturb and step != "constant" and not rule.asks else []
                    by_value.setdefault(value, []).append(" ".join(filter(None, with_)))
        if len(by_value) == 1:
            texts[name] = f"{next(iter(by_value)):g}"
        else:
            each = (f"{value:g} for {', '.join(dict.fromkeys(names))}" for value, names in by_value.items())
            texts[name] = "; ".join(each)
    return texts
