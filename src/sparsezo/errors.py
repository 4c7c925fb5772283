"""What can go wrong for a user, each kind with its exit code.

The message is one line: what is wrong, where (``file:line`` when there is one) and what to do about it.
The command line prints it as it is, never with a traceback.
"""

from __future__ import annotations


class SparsezoError(Exception):
    """The work failed: bad data, a full disk, a loss that is not finite. Exit code 1."""

    exit_code = 1


class DataError(SparsezoError):
    """A file's content is not what its format asks for. ``where`` is a path, or ``path:line``."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")


class DivergedError(SparsezoError):
    """Scores or losses are not finite: the weights ran away, for a smaller h to mend. Exit code 1."""


class UsageError(SparsezoError):
    """The call was wrong: a setting out of range, parts that do not go together. Exit code 2."""

    exit_code = 2
