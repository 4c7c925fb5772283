"""Which attributes there are, and how they are saved: those that go with labels, and those that go with tag bigrams.

    index, bigrams = make_indices(corpus, templates=None, features="chunking", order=1, min_count=1, hash_bits=None)
    settings, arrays = indices_to_arrays(index, bigrams)
    index, bigrams = indices_from_arrays(settings, arrays)

An index numbers attributes by a vocabulary that training made, or by hashes of their names; of templates, or of what
the data lists (CRFsuite's format). ``rows(corpus)`` gives the rows of C.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from sparsezo.errors import DataError
from sparsezo.tasks.chunking.attributes import AttributeIndex
from sparsezo.tasks.chunking.columns import NONE, Columns
from sparsezo.tasks.chunking.conll import Corpus
from sparsezo.tasks.chunking.crfsuite import ListedIndex
from sparsezo.tasks.chunking.feature_sets import built_in
from sparsezo.tasks.chunking.hashed import HashedListed, HashedTemplates
from sparsezo.tasks.chunking.templates import Template, parse_templates
from sparsezo.tasks.hash_bits import check_hash_bits

OfTemplates = AttributeIndex | HashedTemplates
Index = OfTemplates | ListedIndex | HashedListed

_OF_MODEL = "the model's templates"
_BIGRAMS = "bigrams_"  # what the arrays of their attributes are called in a saved task
_COLUMNS = "columns_"  # and those of derived columns


def make_indices(
    corpus: Corpus,
    templates: Sequence[Template] | None,
    features: str,
    order: int,
    min_count: int,
    hash_bits: int | None,
    n_tags: int,
    columns: Columns = NONE,
) -> tuple[Index, OfTemplates | None]:
    """In order 2 every label is a tag bigram, so that all attributes go with labels. ``columns``: the derived ones."""
    if corpus.listed is not None:
        return (ListedIndex.fit(corpus, min_count) if hash_bits is None else HashedListed(hash_bits)), None
    if templates is None:
        templates = built_in(features, len(corpus.columns), columns.names, order)
    with_bigrams = [each for each in templates if order == 1 and each.kind in "b*" and each.parts]
    templates = [each for each in templates if order == 2 or each.kind in "u*"]
    if not templates:
        raise DataError(with_bigrams[0].where, "only tag bigrams have attributes; add a template such as U00:%x[0,0]")
    if hash_bits is not None:
        # a bigram attribute has a row for each tag before it: all of them together take as many rows as the others
        fewer = HashedTemplates.of(corpus, with_bigrams, max(hash_bits - (n_tags - 1).bit_length(), 0), columns)
        return HashedTemplates.of(corpus, templates, hash_bits, columns), fewer if with_bigrams else None
    bigrams = AttributeIndex.fit(corpus, with_bigrams, min_count, columns) if with_bigrams else None
    return AttributeIndex.fit(corpus, templates, min_count, columns), bigrams


def is_listed(index: Index) -> bool:
    return isinstance(index, ListedIndex | HashedListed)


def indices_to_arrays(index: Index, bigrams: OfTemplates | None) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """(settings as JSON, arrays)."""
    settings: dict[str, Any] = {}
    if isinstance(index, HashedTemplates | HashedListed):
        settings["hash_bits"] = index.bits
    if isinstance(index, AttributeIndex | HashedTemplates):
        settings["templates"] = [str(template) for template in index.templates]
    arrays = index.to_arrays()
    if isinstance(index, AttributeIndex | HashedTemplates):
        arrays |= {_COLUMNS + name: values for name, values in index.columns.to_arrays().items()}
    if bigrams is not None:
        settings["bigram_templates"] = [str(template) for template in bigrams.templates]
        if isinstance(bigrams, HashedTemplates):
            settings["bigram_hash_bits"] = bigrams.bits
        arrays |= {_BIGRAMS + name: values for name, values in bigrams.to_arrays().items()}
    return settings, arrays


def indices_from_arrays(
    settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> tuple[Index, OfTemplates | None]:
    """ValueError where these are not what ``indices_to_arrays`` can have given."""
    columns = Columns.from_arrays(_of_prefix(_COLUMNS, arrays))
    if "hash_bits" in settings:
        return _hashed_from(settings, columns)
    index: Index
    if "templates" in settings:
        index = AttributeIndex.from_arrays(parse_templates(settings["templates"], _OF_MODEL), arrays, columns)
    else:
        index = ListedIndex.from_arrays(arrays)
    if "bigram_templates" not in settings:
        return index, None
    own = _of_prefix(_BIGRAMS, arrays)
    return index, AttributeIndex.from_arrays(parse_templates(settings["bigram_templates"], _OF_MODEL), own, columns)


def _of_prefix(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): each for name, each in arrays.items() if name.startswith(prefix)}


def _hashed_from(settings: Mapping[str, Any], columns: Columns) -> tuple[Index, OfTemplates | None]:
    bits, n_columns = settings["hash_bits"], settings["n_columns"]
    check_hash_bits(bits)
    if "templates" not in settings:
        return HashedListed(bits), None
    if not isinstance(n_columns, int) or n_columns < 1:
        raise ValueError(f"{n_columns} columns")
    index = HashedTemplates.saved(parse_templates(settings["templates"], _OF_MODEL), n_columns, bits, columns)
    if "bigram_templates" not in settings:
        return index, None
    fewer = settings["bigram_hash_bits"]
    if not isinstance(fewer, int) or not 0 <= fewer <= bits:
        raise ValueError(f"{fewer} bits of bigram attributes")
    bigrams = parse_templates(settings["bigram_templates"], _OF_MODEL)
    return index, HashedTemplates.saved(bigrams, n_columns, fewer, columns)
