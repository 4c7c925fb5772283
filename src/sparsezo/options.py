"""What an option is: a field of a dataclass that knows its own text, its choices and its bounds.

    h: float = option(0.001, "Learning rate.", positive=True)       # __post_init__ calls check_options(self)

The command line, experiments in TOML, signatures and help are made from these fields, so an option is written once.
Messages name options in backticks, as in "`min_count` 0: must be at least 1"; the command line shows --min-count.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
import sys
import types
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from sparsezo.errors import UsageError, shown

GONE = ("workers", "samples", "antithetic", "batch", "engine", "ray_address")  # what train and tune once had


def gone(what: str) -> UsageError:
    """The error that says that there is no ``what`` any more, and where it is told why."""
    return UsageError(f"{what} is gone: it did not pay; docs/scaling.md says why")


@dataclass(frozen=True)
class Option:
    """What a field is to a user, beside its name, its type and its default."""

    help: str
    choices: Collection[object] | None = None
    positive: bool = False  # a finite number above 0
    least: int | None = None
    file: bool = False  # names a file (or several) that is read: part of what the data is
    families: tuple[str, ...] = ()  # of rules that have it; none: all of them
    words: tuple[str, ...] = ()  # values that name no file, or are no number, where others do and are
    unlabelled: bool = False  # says what to learn where train has no labels
    place: bool = False  # names a place to write to: no part of it
    word: Callable[[Any], str | None] = lambda value: None  # in a learner's name; None: not worth a word
    sign: Callable[[Any], str | None] | None = None  # in a signature, where that says it another way
    shown: str | None = None  # the default as help shows it, where it is not the field's own


@dataclass(frozen=True)
class Described:
    """An option with what the dataclass says of it."""

    name: str
    kind: Any  # its type without None
    default: Any
    about: Option
    optional: bool

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def several(self) -> bool:
        return get_origin(self.kind) is tuple


def option(default: Any, help: str, **about: Any) -> Any:
    """A field with an ``Option``."""
    return field(default=default, metadata={"option": Option(help, **about)})


@functools.cache
def described(cls: Any) -> dict[str, Described]:
    """All options of a dataclass, in their order."""
    hints = get_type_hints(cls)
    found = {}
    for each in dataclasses.fields(cls):
        if about := each.metadata.get("option"):
            kind, optional = _without_none(hints[each.name])
            found[each.name] = Described(each.name, kind, each.default, about, optional)
    return found


def _without_none(hint: object) -> tuple[object, bool]:
    if get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    optional = type(None) in get_args(hint)
    if kinds == [float, str]:  # a number, or one of the option's words
        return float, optional
    return kinds[0] if len(kinds) == 1 else Union[tuple(kinds)], optional  # noqa: UP007


def check_options(given: object) -> None:
    """What each option asks of its value; None passes where the field may be None."""
    for name, each in described(type(given)).items():  # type: ignore[arg-type]
        check_option(each, getattr(given, name))


def check_option(known: Described, value: Any) -> None:
    """What one option asks of its value."""
    name, about = known.name, known.about
    if value is None and known.optional:
        return
    if about.choices is not None and not any(value == each for each in about.choices):  # it may be of any type
        raise UsageError(f"`{name}` {shown(value)}: choose from {', '.join(map(str, about.choices))}")
    if isinstance(value, str) and value in about.words:
        return
    if about.positive and not (_is(int | float, value) and 0 < value <= sys.float_info.max):
        others = "".join(f", or {each}" for each in about.words) if isinstance(value, str) else ""
        raise UsageError(f"`{name}` {shown(value)}: must be positive and finite{others}")
    if about.least is not None and not (_is(int, value) and value >= about.least):
        raise UsageError(f"`{name}` {shown(value)}: must be a whole number, {about.least} or more")


T = TypeVar("T")
Json = dict[str, Any]  # an object that goes into JSON, or came from it
Values = Mapping[str, Any]  # options by name, as a command line, a file or a caller gives them


def make_options(cls: Callable[..., T], given: Values, what: str) -> T:
    """The dataclass with what was given; a name that it does not have is a mistake, not something to pass over."""
    known = described(cls)
    for name, value in given.items():
        if name not in known:
            raise UsageError(f"`{name}` does not belong to {what}")
        _check_kind(known[name], value)
    return cls(**{name: tuple(v) if isinstance(v, list) else v for name, v in given.items()})


def _check_kind(known: Described, value: object) -> None:
    """From a TOML file or a caller a value may be of any type."""
    if known.several:
        wanted, fits = "a list of texts", isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)
    elif known.kind is bool:
        wanted, fits = "true or false", isinstance(value, bool)
    elif known.kind is int:
        wanted, fits = "a whole number", _is(int, value)
    elif known.kind is float:
        wanted = " or ".join(["a number", *known.about.words])
        fits = _is(int | float, value) or (isinstance(value, str) and value in known.about.words)
    else:
        wanted, fits = "text", isinstance(value, str)
    if not (fits or (value is None and known.optional)):
        raise UsageError(f"`{known.name}` {shown(value, repr)}: give {wanted}")


def _is(kind: type | types.UnionType, value: object) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


_function = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")


def names_function(text: str) -> bool:
    """Whether a text is ``module:function``, and no file.

    >>> names_function("my_package.metrics:judge"), names_function("python judge.py")
    (True, False)
    """
    return bool(_function.fullmatch(text)) and not Path(text).exists()


def named_function(text: str) -> Callable[..., object]:
    """The function that ``module:function`` names, from the working folder or installed; UsageError where none is."""
    module, _, name = text.partition(":")
    sys.path.insert(0, "")
    try:
        found = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise UsageError(f"{module} cannot be imported ({in_one_line(error)})") from error
    finally:
        sys.path.remove("")
    function = getattr(found, name, None)
    if not callable(function):
        raise UsageError(f"{module} has no function {name}")
    return function  # type: ignore[no-any-return]


def in_one_line(error: BaseException) -> str:
    """What somebody else's code raised: its type and the first line of what it says."""
    first = shown(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
