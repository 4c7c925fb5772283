"""Tasks and rules of installed packages, by the entry points that these declare; each is imported when first used.

rules = EntryPoints("sparsezo.rules", "rule", Rule, built_in)
"parabola" in rules.names()
rules.load("parabola")              # SparsezoError, in one line, whatever goes wrong in somebody else's code
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from sparsezo.errors import SparsezoError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


class EntryPoints(Generic[T]):
    """The ``group`` of entry points whose objects are of class ``kind``; ``what`` they are, for messages.

    Names in ``built_in`` are not replaced. ``broken``: those that cannot be had, with the reason.
    """

    def __init__(self, group: str, what: str, kind: type[T], built_in: Collection[str]) -> None:
        self.group, self.what, self.kind, self.built_in = group, what, kind, built_in
        self.broken: dict[str, str] = {}

    @functools.cached_property
    def _found(self) -> dict[str, EntryPoint]:
        from importlib.metadata import entry_points  # takes 20 ms

        return {each.name: each for each in entry_points(group=self.group) if each.name not in self.built_in}

    def names(self) -> list[str]:
        """All but those that turned out to be broken."""
        return [name for name in self._found if name not in self.broken]

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def load(self, name: str) -> T:
        """The object of that name."""
        entry = self._found[name]
        if name not in self.broken:
            try:
                found = entry.load()
                if isinstance(found, self.kind) and found.name == name:
                    return found
                said = f"{self.what} '{found.name}'" if isinstance(found, self.kind) else type(found).__name__
                self.broken[name] = f"is a {said}, not the {self.kind.__name__} of that name"
            except Exception as error:
                self.broken[name] = f"{type(error).__name__}: {error}"
        package = entry.dist.name if entry.dist is not None else "a package"
        raise SparsezoError(f"{self.what} {name} of {package} cannot be used: {entry.value} {self.broken[name]}")
