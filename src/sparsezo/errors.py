"""What can go wrong for a user, each kind with its exit code.

The message is one line: what is wrong, where (``file:line`` when there is one) and what to do about it.
The command line prints it as it is, never with a traceback. What comes from data is made harmless here, for all of
them: control characters are escaped, and what is too long for a screen is cut.

    need("rerank", "report")            # NotInstalledError with the line that installs them, where one is not there
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec

MOST_QUOTED = 40  # characters of a file's content in a message
_MOST_SHOWN = 1200  # characters of a whole message


def quoted(data: str | bytes) -> str:
    """The beginning of a piece of data, for a message.

    >>> quoted("a line of " + "many " * 20)
    'a line of many many many many many many ...'
    """
    text = data[: 4 * MOST_QUOTED + 4].decode("utf-8", "replace") if isinstance(data, bytes) else data
    return text if len(text) <= MOST_QUOTED else text[:MOST_QUOTED] + "..."


def some(names: Iterable[str], most: int = 3) -> str:
    """The first of these names, for a message.

    >>> some("abcd")
    'a, b, c, ...'
    """
    first = [quoted(name) for name in itertools.islice(names, most + 1)]
    return ", ".join([*first[:most], "..."] if len(first) > most else first)


def shown(value: object, how: Callable[[object], str] = str) -> str:
    """Anything that a caller gave, for a message: short, and also where it has no words of its own."""
    try:
        return quoted(how(value))
    except Exception:  # a number of more than 4,300 digits, or an object whose __repr__ fails
        return f"of type {type(value).__name__}"


def one_line(message: str) -> str:
    """Nothing in it that a terminal would obey, and no more than a screen can show."""
    if len(message) > _MOST_SHOWN:
        message = f"{message[: _MOST_SHOWN - 300]} [...] {message[-290:]}"
    if message.isprintable():
        return message
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)


class SparsezoError(Exception):
    """The work failed: bad data, a full disk, a loss that is not finite. Exit code 1."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class DataError(SparsezoError):
    """A file's content is not what its format asks for. ``where`` is a path, or ``path:line``."""

    def __init__(self, where: str, what: str) -> None:
        if where == "-" or where.startswith("-:"):
            where = "standard input" + where[1:]
        super().__init__(f"{where}: {what}")


MEND = "make it anew or copy it again"


class DamagedError(DataError):
    """What this package wrote is not as it was written: a model, a checkpoint, a store, a log, a run's results."""

    def __init__(self, where: str, why: object, mend: str = MEND) -> None:
        super().__init__(where, f"is damaged ({why}); {mend}")


class DivergedError(SparsezoError):
    """Scores or losses are not finite: the weights ran away, for a smaller h to mend. Exit code 1."""


class AllReviewedError(SparsezoError):
    """Every input is reviewed, and the model agrees: there is nothing more to ask."""


class UsageError(SparsezoError):
    """The call was wrong: a setting out of range, parts that do not go together. Exit code 2."""

    exit_code = 2


class NotInstalledError(UsageError):
    """An optional package is needed and is not there."""


# Libraries that only some of the work needs: the one place that knows them, beside pyproject.toml

_UVLOOP = () if sys.platform == "win32" else ("uvloop",)
EXTRAS = {  # pip's name of the extra -> the modules that it brings
    "text": ("sklearn",),
    "clusters": ("spacy_lookups_data",),
    "vectors": ("wordllama",),
    "rerank": ("sacrebleu",),
    "report": ("matplotlib", "jinja2"),
    "data": ("pooch",),
    "ray": ("ray", "grpc"),
    "spacy": ("spacy",),
    "torch": ("torch",),
    "datasets": ("pyarrow",),  # the files of Hugging Face's datasets are Arrow's; its own library is not needed
    "serve": ("starlette", "pydantic", "uvicorn", "jinja2", "httptools", "threadpoolctl", *_UVLOOP),
}
_PACKAGES = {"sklearn": "scikit-learn", "grpc": "grpcio", "spacy_lookups_data": "spacy-lookups-data"}


def package_of(module: str) -> str:
    """What pip calls the package that brings a module."""
    return _PACKAGES.get(module, module)


def need(*extras: str | None) -> None:
    """Ask for the libraries of these extras before work starts; None asks for nothing.

    NotInstalledError names the packages themselves, so its line works wherever sparsezo came from.
    """
    modules = dict.fromkeys(each for name in extras if name is not None for each in EXTRAS[name])
    missing = [package_of(each) for each in modules if find_spec(each) is None]
    if missing:
        raise NotInstalledError(f"this needs {', '.join(missing)}; install with: pip install {' '.join(missing)}")


def pip_install(name: str) -> str:
    """The command that brings an extra, wherever sparsezo came from."""
    return f"pip install {' '.join(map(package_of, EXTRAS[name]))}"
