"""The vectoriser against scikit-learn's own, before and after saving."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsezo.errors import DataError, UsageError
from sparsezo.tasks.text.features import tfidf
from sparsezo.tasks.text.features.tfidf import TextVectoriser, columns_of, kept_indices
from sparsezo.tasks.text.io.documents import Documents
from sparsezo.tasks.text.task import TextClassification

sklearn_text = pytest.importorskip("sklearn.feature_extraction.text")
TRAIN = ["The puck, the goal and a puck", "A cell in Space", "the goal of a cell; the END", "Ünïcode puck"]
TEST = ["goal goal PUCK unseen", "nothing shared", "cell the cell"]


def words(texts: list[str], tokenised: bool = False) -> Documents:
    n = len(texts)
    return Documents(("a.tsv",), np.zeros(n, np.int32), np.arange(1, n + 1), None, texts, tokenised=tokenised)


def vectors(rows: list[dict[int, float]]) -> Documents:
    n, indices = len(rows), [index for row in rows for index in sorted(row)]
    values = np.array([row[index] for row in rows for index in sorted(row)], np.float32)
    held = csr_array((values, indices, np.cumsum([0, *map(len, rows)])), (n, max(indices, default=0) + 1))
    return Documents(("a.dat",), np.zeros(n, np.int32), np.arange(1, n + 1), None, vectors=held)


def restored(vectoriser: TextVectoriser) -> TextVectoriser:
    settings = json.loads(json.dumps(vectoriser.settings))
    return TextVectoriser.from_arrays(vectoriser.to_arrays(), settings)


def assert_same(X: Any, Y: Any) -> None:
    assert X.shape == Y.shape
    assert (X.dtype, X.indices.dtype) == (np.float32, np.int32)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(X, name), getattr(Y, name))


@pytest.mark.parametrize(
    ("options", "theirs"),
    [
        ({}, {"sublinear_tf": True}),
        ({"sublinear_tf": False, "min_count": 2}, {"min_df": 2}),
        ({"lowercase": False}, {"lowercase": False, "sublinear_tf": True}),
        ({"token_pattern": r"\S+"}, {"token_pattern": r"\S+", "sublinear_tf": True}),
    ],
)
def test_text_is_scikit_learns_tfidf(options: dict[str, Any], theirs: dict[str, Any]) -> None:
    reference = sklearn_text.TfidfVectorizer(dtype=np.float32, **theirs)
    vectoriser = TextVectoriser(**options)
    assert_same(vectoriser.fit_transform(words(TRAIN)), reference.fit_transform(TRAIN))
    assert vectoriser.vocabulary == reference.get_feature_names_out().tolist()
    assert vectoriser.n_features == len(reference.vocabulary_)
    for one in (vectoriser, restored(vectoriser)):
        assert_same(one.transform(words(TEST)), reference.transform(TEST))
        assert one.settings == vectoriser.settings
    assert np.diff(vectoriser.transform(words(TEST)).indptr)[1] == 0  # no word shared with train: zeros


def test_the_task_passes_its_options_on() -> None:
    documents = replace(words(["Aa aa bb", "bb ccc"]), labels=["x", "y"])
    task, _ = TextClassification.fit(documents, sublinear_tf=False, min_count=1, lowercase=False, token_pattern="a+|cc")
    given = {"sublinear_tf": False, "min_count": 1, "lowercase": False, "token_pattern": "a+|cc", "kind": "text"}
    assert task.vectoriser.settings == given
    assert task.vectoriser.vocabulary == ["a", "aa", "cc"]
    assert TextClassification.fit(documents, min_count=2)[0].vectoriser.vocabulary == ["bb"]
    assert TextClassification.fit(documents)[0].vectoriser.settings["sublinear_tf"] is True


def test_tokens_are_taken_as_they_are() -> None:
    texts = ["a B-c b", "a,a x"]
    vectoriser = TextVectoriser()
    vectoriser.fit_transform(words(texts, tokenised=True))
    assert vectoriser.vocabulary == ["B-c", "a", "a,a", "b", "x"]
    assert (vectoriser.kind, restored(vectoriser).kind) == ("tokens", "tokens")
    assert_same(restored(vectoriser).transform(words(texts)), vectoriser.transform(words(texts, tokenised=True)))


def test_vectors_are_used_as_they_are() -> None:
    vectoriser = TextVectoriser()
    X = vectoriser.fit_transform(vectors([{1: 2.0, 10**12: -1.0}, {3: 3.0}, {}]))
    assert X.toarray().tolist() == [[2, 0, -1], [0, 3, 0], [0, 0, 0]]
    assert (X.dtype, X.indices.dtype) == (np.float32, np.int32)
    assert (vectoriser.n_features, vectoriser.vocabulary) == (3, ["1", "3", str(10**12)])
    for one in (vectoriser, restored(vectoriser)):
        test = [{2: 9.0, 3: 1.0, 7: 1.0}, {}, {1: 1.0, 10**12: 5.0}, {10**13: 1.0}]  # 2, 7 and 10^13 train has not
        X = one.transform(vectors(test))
        assert X.toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 5], [0, 0, 0]]
        assert X.nnz == 3


def test_min_count_leaves_out_rare_indices() -> None:
    vectoriser = TextVectoriser(min_count=2)
    X = vectoriser.fit_transform(vectors([{1: 2.0, 5: 1.0}, {5: 3.0}, {7: 1.0}]))
    assert (vectoriser.vocabulary, X.toarray().tolist()) == (["5"], [[1], [3], [0]])
    with pytest.raises(DataError, match=r"a.dat: no feature is left; lower `min_count`"):
        TextVectoriser(min_count=3).fit_transform(vectors([{1: 2.0, 5: 1.0}, {5: 3.0}]))


def test_an_older_model_of_vectors_is_read() -> None:
    """A column for every index from 1 to the highest; those that train did not have stay unused."""
    told = TextVectoriser().settings | {"kind": "vectors"}
    arrays = {"seen": np.array([True, False, True])}
    old = TextVectoriser.from_arrays(arrays, told)
    assert (old.n_features, old.vocabulary) == (3, ["1", "2", "3"])
    assert old.transform(vectors([{1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0}])).toarray().tolist() == [[1, 0, 3]]
    np.testing.assert_array_equal(restored(old).to_arrays()["seen"], arrays["seen"])


def test_files_that_count_from_0(said: list[str]) -> None:
    """An index is a name, so nothing moves; what looks like two ways of counting is said."""
    vectoriser = TextVectoriser()
    vectoriser.fit_transform(vectors([{0: 1.0, 2: 1.0}, {1: 1.0}]))
    assert said.pop() == "a.dat: has an index 0, so features are counted from 0, not from 1"
    for one in (vectoriser, restored(vectoriser)):  # a test file without a 0 in it
        assert one.transform(vectors([{1: 5.0, 2: 6.0}])).toarray().tolist() == [[0, 5, 6]]
    assert said == []
    vectoriser.fit_transform(vectors([{1: 1.0, 2: 1.0}]))
    assert said == []
    assert vectoriser.transform(vectors([{0: 5.0, 2: 6.0}])).toarray().tolist() == [[0, 6]]
    assert said == [
        "a.dat: has an index 0, which the training documents do not have; are its features counted from 0, "
        "and theirs from 1?"
    ]


def test_documents_without_words() -> None:
    X = TextVectoriser().fit_transform(words(["some words", "a ! b", ""]))
    assert (np.diff(X.indptr).tolist(), X.shape) == ([2, 0, 0], (3, 2))
    assert np.isfinite(X.data).all()
    rare = words(["common words", "rare", "common sense"])
    assert np.diff(TextVectoriser(min_count=2).fit_transform(rare).indptr).tolist() == [1, 0, 1]
    with pytest.raises(DataError, match=r"a.tsv: no word is left .*lower `min_count`"):
        TextVectoriser(min_count=3).fit_transform(words(TEST))
    with pytest.raises(DataError, match=r"a.tsv: no word is left"):
        TextVectoriser().fit_transform(words(["a", "b"]))
    with pytest.raises(DataError, match=r"a.dat: no feature is left"):
        TextVectoriser().fit_transform(vectors([{}, {}]))


def test_wrong_calls() -> None:
    with pytest.raises(UsageError, match=r"min_count is 0"):
        TextVectoriser(min_count=0)
    with pytest.raises(UsageError, match=r"token_pattern '\(' is not a regular expression"):
        TextVectoriser(token_pattern="(")
    with pytest.raises(UsageError, match=r"has 2 groups"):
        TextVectoriser(token_pattern="(a)(b)")
    for pattern in ("a{99999999999}", "(" * 100_000 + ")" * 100_000):
        with pytest.raises(UsageError, match=r"is not a regular expression|groups"):
            TextVectoriser(token_pattern=pattern)
    with pytest.raises(UsageError, match=r"not fitted"):
        TextVectoriser().transform(words(TEST))
    with pytest.raises(UsageError, match=r"no training documents"):
        TextVectoriser().fit_transform(words([]))
    vectoriser = TextVectoriser()
    vectoriser.fit_transform(words(TRAIN))
    with pytest.raises(DataError, match=r"a.dat: holds vectors, but the training documents were text"):
        vectoriser.transform(vectors([{0: 1.0}]))
    vectoriser.fit_transform(vectors([{0: 1.0}]))
    with pytest.raises(DataError, match=r"a.tsv: holds text, but the training documents were vectors \(svmlight\)"):
        vectoriser.transform(words(TEST))
    lines = TextVectoriser(token_pattern=r"a\nb")
    lines.fit_transform(words(["a\nb"]))
    with pytest.raises(UsageError, match=r"a word has a line end in it"):
        lines.to_arrays()


INDICES = st.lists(st.one_of(st.integers(0, 12), st.sampled_from([10**9, 2**40, 10**18 - 1])), max_size=40)


@pytest.mark.parametrize("small", [0, 1 << 22])
@settings(max_examples=100, deadline=None)
@given(train=INDICES, test=INDICES, least=st.integers(1, 3))
def test_indices_are_kept_as_a_dictionary_would(small: int, train: list[int], test: list[int], least: int) -> None:
    """Small ones by a table, huge ones by sorting."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tfidf, "_SMALL", small)
        features = kept_indices(np.array(train, np.int64), least)
        assert features.tolist() == sorted(index for index, n in Counter(train).items() if n >= least)
        place = {index: column for column, index in enumerate(features.tolist())}
        columns = columns_of(np.array(test, np.int64), features)
        assert (columns.tolist(), columns.dtype) == ([place.get(index, -1) for index in test], np.int32)
