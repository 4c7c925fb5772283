"""A session's inputs in one file of its folder, for tasks whose inputs are arrays (``tasks.*.serving``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sparsezo.identity import known_by
from sparsezo.storage.container import damage, read_container, write_container

_FILE = "inputs.szo"
Made = tuple[Mapping[str, Any], Mapping[str, NDArray[Any]]]  # what to say of them, and their arrays


def write_inputs(folder: Path, kind: str, made: Made) -> str:
    """Returns what they are known by."""
    write_container(folder / _FILE, kind, *made)
    return identity_of(made)


def identity_of(made: Made) -> str:
    return known_by(made[1])


@contextmanager
def read_inputs(folder: Path, kind: str) -> Iterator[tuple[dict[str, Any], dict[str, NDArray[Any]]]]:
    """What does not fit together within is damage to the file."""
    found = read_container(folder / _FILE, kind)
    with damage(folder / _FILE):
        yield found
