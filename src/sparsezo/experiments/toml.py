"""TOML as experiments have it: tables whose keys are taken one by one, each of its kind, and the way back to text.

    top = read_table(text, "mine.toml")
    top.text("task", required=True)
    top.finish()                            # a key that nobody took is an error

Whatever a file holds, what comes of it is a value of the kind that was asked for or a DataError that names the key.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from sparsezo.errors import DataError, SparsezoError, quoted
from sparsezo.storage import limits
from sparsezo.storage.sealed import check_plain

_NUMBER = (int, float)
_WORD = r"""[^\s.,=\[\]{}#"']"""
_DOTTED = re.compile(rf"""(?<!{_WORD})(?:(?>"[^"\n]*"|'[^'\n]*'|{_WORD}+)[ \t]*+\.[ \t]*+){{100}}""")


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Plain values: what TOML has beyond them (dates), or cannot hold (numbers beyond 64 bits), is refused."""
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

    def __init__(self, values: Mapping[str, Any], where: str, title: str = "") -> None:
        self.values, self.where, self.title = dict(values), where, title
        self.known: list[str] = []

    def take(self, key: str, kinds: tuple[type, ...], what: str, *, required: bool = False) -> Any:
        self.known.append(key)
        value = self.values.pop(key, None)
        if value is None:
            if required:
                raise DataError(self.where, f"{self._at(key)} is missing; give {what}")
        elif not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            shown = quoted(json.dumps(value, default=str, ensure_ascii=False))
            raise DataError(self.where, f"{self._at(key)} is {shown}; give {what}")
        return value

    def text(self, key: str, *, required: bool = False) -> Any:
        return self.take(key, (str,), "a string", required=required)

    def whole(self, key: str) -> Any:
        return self.take(key, (int,), "a whole number")

    def number(self, key: str) -> float | None:
        value = self.take(key, _NUMBER, "a number")
        return None if value is None else float(value)

    def numbers(self, key: str) -> tuple[float, ...]:
        values = self.take(key, (list,), "a list of numbers") or []
        if not all(isinstance(value, _NUMBER) and not isinstance(value, bool) for value in values):
            raise DataError(self.where, f"{self._at(key)}: must be a list of numbers")
        self._refuse_length(key, values)
        return tuple(float(value) for value in values)

    def wholes(self, key: str) -> tuple[int, ...]:
        values = self.take(key, (list,), "a list of whole numbers") or []
        if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            raise DataError(self.where, f"{self._at(key)}: must be a list of whole numbers")
        self._refuse_length(key, values)
        return tuple(values)

    def texts(self, key: str, what: str, default: str | None = None) -> tuple[str, ...]:
        values = self.take(key, (str, list), what)
        if values is None:
            return () if default is None else (default,)
        values = [values] if isinstance(values, str) else values
        if not values or not all(isinstance(value, str) for value in values):
            raise DataError(self.where, f"{self._at(key)}: must be {what}")
        self._refuse_length(key, values)
        return tuple(values)

    def table(self, key: str) -> Table:
        return Table(self.take(key, (dict,), "a table") or {}, self.where, self._at(key))

    def tables(self, key: str) -> list[Table]:
        values = self.take(key, (list,), f"tables: [[{key}]]") or []
        if not all(isinstance(value, dict) for value in values):
            raise DataError(self.where, f"{key}: must be tables, [[{key}]]")
        self._refuse_length(key, values)
        return [Table(value, self.where, f"{key} {k}") for k, value in enumerate(values, start=1)]

    def all(self) -> dict[str, Any]:
        return self.values

    def finish(self) -> None:
        for key in self.values:
            at = quoted(self._at(key))
            raise DataError(self.where, f"unknown key '{at}'; known are {', '.join(self.known)}")

    def _refuse_length(self, key: str, values: list[Any]) -> None:
        if len(values) > limits.RUNS:
            limits.refuse(self.where, f"{self._at(key)} has {len(values):,} values, more than {limits.RUNS:,}")

    def _at(self, key: str) -> str:
        return f"{self.title}.{key}" if self.title else key


def pairs(values: Mapping[str, Any], *, bare: bool = False) -> list[str]:
    """``key = value`` lines; what is None is left out."""
    return [f"{key if bare else _key(key)} = {_toml(v)}" for key, v in values.items() if v is not None]


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _toml(key)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    raise SparsezoError(f"{quoted(repr(value))} cannot be written to TOML")
