"""Columns that are made of the words: their clusters, and what lists of names say of them.

Templates call them by name, ``%x[0,cluster]`` and ``%x[0,list]``. They are made whenever features are, in training and
in prediction alike, and what makes them is saved with the model, so that a prediction needs nothing else.

    columns = Columns(clusters=packaged("es"), gazetteer=read_gazetteer(["LOC=cities.txt"]))
    columns.names                       # ('cluster', 'list')
    cluster, known = columns.derived(corpus)
    Chunking.fit(corpus, columns=columns)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from sparsezo.tasks.chunking.clusters import Clusters
from sparsezo.tasks.chunking.conll import Corpus
from sparsezo.tasks.chunking.gazetteer import Gazetteer

CLUSTER, LIST = "cluster", "list"
NAMES = (CLUSTER, LIST)
REMEDIES = {CLUSTER: "give `clusters`", LIST: "give `gazetteer`"}  # where a template reads one that is not there


@dataclass(frozen=True, eq=False)
class Columns:
    """What makes the derived columns of a corpus."""

    clusters: Clusters | None = None
    gazetteer: Gazetteer | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns that there are, in the order of NAMES."""
        made = zip(NAMES, (self.clusters, self.gazetteer), strict=True)
        return tuple(name for name, each in made if each is not None)

    def derived(self, corpus: Corpus) -> tuple[list[str], ...]:
        """One column for each name, one string a token; of the words in the first column."""
        made = []
        if self.clusters is not None:
            made.append(self.clusters.paths_of(corpus.columns[0]))
        if self.gazetteer is not None:
            made.append(self.gazetteer.column(corpus))
        return tuple(made)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {
            f"{name}_{key}": values
            for name, each in zip(NAMES, (self.clusters, self.gazetteer), strict=True)
            if each is not None
            for key, values in each.to_arrays().items()
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Columns:
        """ValueError where these are not what ``to_arrays`` gave; nothing gives no columns."""
        own = {
            name: {key.removeprefix(f"{name}_"): each for key, each in arrays.items() if key.startswith(f"{name}_")}
            for name in NAMES
        }
        return cls(
            Clusters.from_arrays(own[CLUSTER]) if own[CLUSTER] else None,
            Gazetteer.from_arrays(own[LIST]) if own[LIST] else None,
        )


NONE = Columns()
