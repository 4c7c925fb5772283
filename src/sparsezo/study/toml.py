"""TOML as experiments have it: tables whose keys are taken one by one, each of its kind, and the way back to text.

Whatever a file holds, what comes of it is a value of the kind that was asked for or a DataError that names the key.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from typing import Any

from sparsezo.errors import DataError, SparsezoError, quoted
from sparsezo.options import GONE, Values, gone
from sparsezo.storage import limits
from sparsezo.storage.checksummed import check_plain
from sparsezo.tasks.base import Json

NUMBERS = "tuple[float, ...]"
_ASKED = {  # a field's annotation -> the kinds of its value, or of each of its values; how a message names it
    "str": ((str,), "a string"),
    "bool": ((bool,), "true or false"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "float | str": ((int, float, str), "a number, or auto"),
    "tuple[int, ...]": ((int,), "a list of whole numbers"),
    NUMBERS: ((int, float), "a list of numbers"),
    "Mapping[str, str]": ((dict,), "a table"),
    "Mapping[str, object]": ((dict,), "a table"),
}
_WORD = r"""[^\s.,=\[\]{}#"']"""
_DOTTED = re.compile(rf"""(?<!{_WORD})(?:(?>"[^"\n]*"|'[^'\n]*'|{_WORD}+)[ \t]*+\.[ \t]*+){{100}}""")


def parse_toml(text: str, where: str) -> Json:
    """The plain values of a text; what TOML has beyond them (dates), or cannot hold (64 bits), is refused."""
    if len(text) > limits.PLAN:
        limits.refuse(where, f"an experiment of more than {limits.PLAN >> 10} kB: is this the right file?")
    if _DOTTED.search(text):  # tomllib would take memory for every part of such a key times every other
        raise DataError(where, "is not TOML: nested too deep")
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise DataError(where, "is not TOML: nested too deep") from None
    except ValueError as error:  # TOMLDecodeError among them, and numbers of more digits than Python converts
        raise DataError(where, f"is not TOML: {error}") from None
    try:
        check_plain(values)
    except ValueError as error:
        raise DataError(where, str(error)) from None
    return values


class Table:
    """A TOML table whose keys are taken one by one; ``finish`` refuses what is left."""

    def __init__(self, values: Values, where: str, title: str = "") -> None:
        self.values, self.where, self.title = dict(values), where, title
        self.known: list[str] = []

    def take(self, key: str, kinds: tuple[type, ...], what: str, *, required: bool = False) -> Any:
        """The key's value, of one of these kinds; None where it is not there. ``what``: how a message names it."""
        self.known.append(key)
        value = self.values.pop(key, None)
        if value is None:
            if required:
                raise DataError(self.where, f"{self._at(key)} is missing; give {what}")
        elif not _is(value, kinds):
            shown = quoted(json.dumps(value, default=str, ensure_ascii=False))
            raise DataError(self.where, f"{self._at(key)} is {shown}; give {what}")
        return value

    def get(self, key: str, kind: str, *, required: bool = False) -> Any:
        """The key's value by the annotation of the dataclass field that it goes to; None where it is not there."""
        kinds, what = _ASKED[kind.removesuffix(" | None")]
        several = kind.startswith("tuple")
        value = self.take(key, (list,) if several else kinds, what, required=required)
        if several and value is not None:
            self._each(key, value, kinds, what)
            return tuple(map(float, value) if kind == NUMBERS else value)
        return float(value) if float in kinds and not isinstance(value, str | None) else value

    def texts(self, key: str, what: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """One string, or a list of at least one."""
        values = self.take(key, (str, list), what)
        if values is None:
            return default
        values = [values] if isinstance(values, str) else values
        self._each(key, values, (str,), what, fits=bool(values))
        return tuple(values)

    def table(self, key: str) -> Table:
        return Table(self.take(key, (dict,), "a table") or {}, self.where, self._at(key))

    def tables(self, key: str) -> list[Table]:
        values = self.take(key, (list,), f"tables: [[{key}]]") or []
        self._each(key, values, (dict,), f"tables, [[{key}]]")
        return [Table(value, self.where, f"{key} {k}") for k, value in enumerate(values, start=1)]

    def finish(self) -> None:
        for key in self.values:
            at = quoted(self._at(key))
            if key in GONE:
                raise DataError(self.where, str(gone(at)))
            raise DataError(self.where, f"unknown key '{at}'; known are {', '.join(self.known)}")

    def _each(self, key: str, values: list[object], kinds: tuple[type, ...], what: str, *, fits: bool = True) -> None:
        if not fits or not all(_is(value, kinds) for value in values):
            raise DataError(self.where, f"{self._at(key)}: must be {what}")
        if len(values) > limits.RUNS:
            limits.refuse(self.where, f"{self._at(key)} has {len(values):,} values, more than {limits.RUNS:,}")

    def _at(self, key: str) -> str:
        return f"{self.title}.{key}" if self.title else key


def _is(value: object, kinds: tuple[type, ...]) -> bool:
    """True and False are no numbers here."""
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def pairs(values: Values, *, bare: bool = False) -> list[str]:
    """``key = value`` lines; what is None is left out."""
    return [f"{key if bare else toml_key(key)} = {_toml(v)}" for key, v in values.items() if v is not None]


def toml_key(key: str) -> str:
    """A key, in quotes where it needs them."""
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _toml(key)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(pairs(value))} }}"
    raise SparsezoError(f"{quoted(repr(value))} cannot be written to TOML")
