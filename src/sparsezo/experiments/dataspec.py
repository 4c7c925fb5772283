"""The data of an experiment: files by their paths in a folder of data, and what comes first where the folder has it.

DataSpec(("text/train.tsv",), "1000", "text/test.tsv", instead=DataSpec(("rcv1",), split=True))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sparsezo.errors import UsageError
from sparsezo.experiments.toml import Table


@dataclass(frozen=True)
class DataSpec:
    """``dev`` may be a number: that many inputs at the start of train."""

    train: tuple[str, ...]
    dev: str | None = None
    test: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)  # of the task, as on train's command line
    split: bool = False  # train is a folder that brings dev and test of its own (text: RCV1's)
    instead: DataSpec | None = None  # comes first where the folder of data has it

    @property
    def has_dev(self) -> bool:
        return self.dev is not None or self.split

    def check(self) -> None:
        if not self.train or not all(self.train):
            raise UsageError("data has no train; name a file")
        if self.dev is not None and self.dev.isdigit() and len(self.dev) >= 19:
            raise UsageError("data.dev: no data has so many inputs")
        if self.split and (self.dev or self.test):
            raise UsageError("data.split: train brings dev and test; leave them out")
        if self.instead is not None:
            self.instead.check()


def data_of(table: Table) -> DataSpec:
    """From the table [data] of a TOML file."""
    instead = table.table("instead")
    other = _spec(instead)
    instead.finish()
    return replace(_spec(table), options=table.table("options").all(), instead=other if other.train else None)


def _spec(table: Table) -> DataSpec:
    dev = table.take("dev", (str, int), "a path, or a number of inputs")
    return DataSpec(
        table.texts("train", "a path, or a list of them"),
        None if dev is None else str(dev),
        table.text("test"),
        split=bool(table.take("split", (bool,), "true or false")),
    )


def data_keys(data: DataSpec) -> dict[str, Any]:
    """As a TOML file has them, without tables."""
    return {"train": data.train, "dev": data.dev, "test": data.test, "split": data.split or None}
