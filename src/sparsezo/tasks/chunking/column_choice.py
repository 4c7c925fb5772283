"""Which derived columns (columns.py) data gets: what the options ``clusters`` and ``gazetteer`` say, or what suits it.

    columns = chosen_columns(corpus, "auto", ("LOC=cities.txt",), templates=None, features=None)

``auto`` is about data of words alone: clusters of its language, where the package has them. Clusters that are learned
from the text itself are for who names them: what they brought was within noise (docs/features.md).
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from sparsezo import extras
from sparsezo.errors import UsageError, quoted
from sparsezo.notes import say
from sparsezo.tasks.chunking.cluster_learning import learned
from sparsezo.tasks.chunking.clusters import PACKAGED, Clusters, is_installed, packaged, read_clusters
from sparsezo.tasks.chunking.columns import CLUSTER, LIST, NAMES, NONE, Columns
from sparsezo.tasks.chunking.conll import Corpus
from sparsezo.tasks.chunking.feature_sets import built_in, usual_features
from sparsezo.tasks.chunking.gazetteer import read_gazetteer
from sparsezo.tasks.chunking.languages import guess_language
from sparsezo.tasks.chunking.options import AUTO, LEARNED, NO_CLUSTERS
from sparsezo.tasks.chunking.templates import Template

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
    """What the option names."""
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
    """What suits the words; says what that is."""
    words = corpus.columns[0]
    language = guess_language(words)
    if language in PACKAGED:
        if not is_installed():
            say(
                f"{corpus.path}: no `clusters`; those of {language}, the text's language, bring {_GAIN} F1: "
                f"{extras.pip_install('clusters')}"
            )
            return None
        table = packaged(language)
        say(f"{corpus.path}: `clusters` {language}, by the text's language: {len(table):,} words")
        return table
    return None
