"""Feedback from anybody's program or function: a metric that nobody here knows can teach.

    with open_scorer("python metric.py --lenient", seconds=60) as scorer:      # or "my_metrics:judge"
        scorer({"rule": "two-point", "words": [...], "outputs": [[...], [...]], ...})       # (0.25, 0.5)

A program is kept running. It reads one JSON line for each question on its standard input and answers with one line on
its standard output: losses, a choice, yes or no, a label, as JSON or in plain words. A function is called with the same
as a dict and returns the answer. docs/answers.md has a request and a reply of every kind.

Whatever it does wrong (it cannot be started, ends, closes its output, is silent, talks nonsense, raises) is a
``ScorerError`` of one line with its own last line quoted. Its whole process group is ended with it.
"""

from __future__ import annotations

import importlib
import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from sparsezo.errors import SparsezoError, UsageError, quoted, shown
from sparsezo.options import check_options, option
from sparsezo.scorer_process import Process, ProcessError

Request = Mapping[str, Any]
_function = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")


@dataclass(frozen=True)
class ScorerOptions:
    """Of train."""

    scorer: str | None = option(
        None, "Feedback by a program (a JSON line in, a line out, kept running), or by module:function.", shown="gold"
    )
    scorer_seconds: float = option(60.0, "How long the program may take for one answer.", positive=True)

    def __post_init__(self) -> None:
        check_options(self)

    def open(self) -> Scorer | None:
        return None if self.scorer is None else open_scorer(self.scorer, self.scorer_seconds)


class ScorerError(SparsezoError):
    """A scorer failed: what is learned so far is whole. Exit code 1."""


class Scorer(Protocol):
    """Something that answers. ``text`` is how the user called it; a run is known by it."""

    text: str

    def __call__(self, request: Request, pause: Callable[[], None] = ...) -> Any:
        """What it says, as JSON or Python have it; ``pause`` is called now and then while it is waited for."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def open_scorer(text: str, seconds: float = ScorerOptions.scorer_seconds) -> Scorer:
    """The scorer that a text names: ``module:function``, or a program with its words."""
    if (found := _function.fullmatch(text)) and not Path(text).exists():
        return FunctionScorer(text, _imported(text, *found.groups()))
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"`scorer` {quoted(text)}: {error}; quote its words as a shell wants them") from None
    if not words:
        raise UsageError("`scorer` is empty; give a program, or module:function")
    return ProgramScorer(text, words, seconds)


class FunctionScorer:
    """``function(request)`` in this process. It may take its time: nobody can stop it."""

    def __init__(self, text: str, function: Callable[[dict[str, Any]], Any]) -> None:
        self.text, self._function = text, function

    def __call__(self, request: Request, pause: Callable[[], None] = lambda: None) -> Any:
        try:
            said = self._function(dict(request))
        except (Exception, SystemExit) as error:
            raise ScorerError(f"scorer {self.text}: raised {_of(error)}") from error
        pause()
        return said

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def _imported(text: str, module: str, name: str) -> Callable[[dict[str, Any]], Any]:
    """From the working folder, or installed."""
    sys.path.insert(0, "")
    try:
        found = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise ScorerError(f"scorer {text}: {module} cannot be imported ({_of(error)})") from error
    finally:
        sys.path.remove("")
    function = getattr(found, name, None)
    if not callable(function):
        raise ScorerError(f"scorer {text}: {module} has no function {name}")
    return function  # type: ignore[no-any-return]


def _of(error: BaseException) -> str:
    """An exception in one line."""
    first = shown(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


class ProgramScorer:
    """A program that is started when it is entered and ended, with all that it started, when it is left."""

    def __init__(self, text: str, words: list[str], seconds: float) -> None:
        self.text = text
        self._process = Process(words, seconds)
        try:
            self._process.find()
        except ProcessError as error:
            raise self._error(error) from None

    def __call__(self, request: Request, pause: Callable[[], None] = lambda: None) -> Any:
        try:
            line = self._process.exchange(json.dumps(request, ensure_ascii=False).encode() + b"\n", pause)
            return read_reply(line, request.get("choices", ()))
        except ProcessError as error:
            raise self._error(error) from None
        except UnicodeDecodeError:
            raise self._error(ProcessError(f"said '{quoted(line)}', which is not UTF-8 text")) from None

    def _error(self, error: ProcessError) -> ScorerError:
        return ScorerError(f"scorer '{self.text}': {error}")

    def __enter__(self) -> Self:
        try:
            self._process.start()
        except ProcessError as error:
            raise self._error(error) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._process.end()


def read_reply(line: bytes, choices: Any = ()) -> Any:
    """A reply as a value: one of the choices as it stands, else JSON, else numbers with blanks between, else a word."""
    text = line.decode("utf-8").strip()
    if text in choices:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    words = text.replace(",", " ").split()
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return text
    return numbers[0] if len(numbers) == 1 else numbers if numbers else text
