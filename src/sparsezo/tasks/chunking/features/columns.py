"""Columns that are made of the words: their clusters, and what lists of names say of them.

Templates call them by name, ``%x[0,cluster]`` and ``%x[0,list]``. They are made whenever features are, in training and
in prediction alike, and what makes them is saved with the model, so that a prediction needs nothing else.

    columns = Columns(clusters=packaged("es"), gazetteer=read_gazetteer(["LOC=cities.txt"]))
    columns.names                       # ('cluster', 'list')
    cluster, known = columns.derived(corpus)
    Chunking.fit(corpus, columns=columns)
    columns = chosen_columns(corpus, "auto", ("LOC=cities.txt",))   # what the options say, or what suits the data

``auto`` is about data of words alone: clusters of its language, where the package has them. Clusters that are learned
from the text itself are for who names them: what they brought was within noise (docs/features.md).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparsezo.errors import UsageError, pip_install, quoted
from sparsezo.messages import say
from sparsezo.tasks.base import AnyArray, Arrays
from sparsezo.tasks.chunking.features.clusters import PACKAGED, Clusters, is_installed, learned, packaged, read_clusters
from sparsezo.tasks.chunking.features.gazetteer import Gazetteer, read_gazetteer
from sparsezo.tasks.chunking.features.templates import CLUSTER, LIST, NAMES, Template, built_in, usual_features
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.io.languages import guess_language
from sparsezo.tasks.chunking.options import AUTO, LEARNED, NO_CLUSTERS


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

    def to_arrays(self) -> Arrays:
        return {
            f"{name}_{key}": values
            for name, each in zip(NAMES, (self.clusters, self.gazetteer), strict=True)
            if each is not None
            for key, values in each.to_arrays().items()
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray]) -> Columns:
        """ValueError where these are not what ``to_arrays`` gave; nothing gives no columns."""
        clusters, lists = (of_prefix(f"{name}_", arrays) for name in NAMES)
        return cls(
            Clusters.from_arrays(clusters) if clusters else None, Gazetteer.from_arrays(lists) if lists else None
        )


NONE = Columns()


def of_prefix(prefix: str, arrays: Mapping[str, AnyArray]) -> Arrays:
    """The arrays whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): each for name, each in arrays.items() if name.startswith(prefix)}


_GAIN = "0.01 to 0.02"  # F1 after 400 to 2,000 answers, on a test set that chose nothing (docs/features.md)


def chosen_columns(
    corpus: Corpus,
    clusters: str,
    gazetteer: Sequence[str] | None,
    templates: Sequence[Template] | None = None,
    features: str | None = None,
    *,
    whole: bool = True,
) -> Columns:
    """The columns for a task that is fitted on the corpus with these templates, or with built-in features.

    ``whole``: the corpus is all of the data; otherwise its beginning, from which nothing is learned.
    """
    if corpus.listed is not None:
        return NONE
    if templates is None:
        templates = built_in(features or usual_features(len(corpus.columns)), len(corpus.columns), NAMES)
    read = {part.source.column for template in templates for part in template.parts}
    if gazetteer and LIST not in read:
        raise UsageError(f"`gazetteer` {quoted(gazetteer[0])}: no template reads it; {_remedy(LIST)}")
    if clusters not in (AUTO, NO_CLUSTERS) and CLUSTER not in read:
        raise UsageError(f"`clusters` {quoted(clusters)}: no template reads them; {_remedy(CLUSTER)}")
    lists = read_gazetteer(gazetteer) if gazetteer else None
    if clusters != AUTO:
        return Columns(_named(corpus, clusters, whole), lists)
    return Columns(_suitable(corpus) if CLUSTER in read and len(corpus.columns) == 1 else None, lists)


def _remedy(name: str) -> str:
    return f"use `features` ner, or a `template` with %x[0,{name}] in it"


def _named(corpus: Corpus, clusters: str, whole: bool) -> Clusters | None:
    if clusters == NO_CLUSTERS:
        return None
    if clusters in PACKAGED:
        return packaged(clusters)
    if clusters == LEARNED:
        if not whole:
            raise UsageError("`clusters` learned: needs all of the text, which a `stream` never has; give a file")
        return learned(corpus)
    if not os.path.exists(clusters):
        names = ", ".join((AUTO, *PACKAGED, LEARNED, NO_CLUSTERS))
        raise UsageError(f"`clusters` {quoted(clusters)}: there is no such file; name one, or choose from {names}")
    return read_clusters(clusters)


def _suitable(corpus: Corpus) -> Clusters | None:
    language = guess_language(corpus.columns[0])
    if language not in PACKAGED:
        return None
    if not is_installed():
        bring = f"those of {language}, the text's language, bring {_GAIN} F1: {pip_install('clusters')}"
        say(f"{corpus.path}: no `clusters`; {bring}")
        return None
    table = packaged(language)
    say(f"{corpus.path}: `clusters` {language}, by the text's language: {len(table):,} words")
    return table
