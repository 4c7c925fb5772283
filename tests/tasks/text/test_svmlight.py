"""svmlight files: what is read, what is refused with its line, and the compiled parser against the plain one."""

from __future__ import annotations

import gzip
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsezo.errors import DataError, UsageError
from sparsezo.storage import files, limits
from sparsezo.tasks.tables import Columns
from sparsezo.tasks.text.io.documents import detect_format, read_documents
from sparsezo.tasks.text.io.svmlight import MAX_INDEX, read_svmlight, write_svmlight

SVMLIGHT = "# made by hand\n1 1:0.5 3:-2e-1 # first\n\n-1\t7:1 2:.5 4:0\r\n"


def detected(text: str) -> str:
    return detect_format("a", text.encode(), Columns())


def test_svmlight(put):
    path = put("a.dat.gz", "\ufeff" + SVMLIGHT)
    documents = read_documents([path, put("b.dat", "2 1:1")])
    assert detected("\ufeff" + SVMLIGHT) == "svmlight"
    assert documents.kind == "vectors"
    assert documents.labels == ["1", "-1", "2"]
    assert [documents.where(i).rsplit(":", 1)[1] for i in range(3)] == ["2", "4", "1"]
    vectors = documents.vectors
    assert vectors is not None
    assert vectors.indptr.tolist() == [0, 2, 4, 5]
    assert vectors.indices.tolist() == [1, 3, 2, 7, 1]  # as they are written; a value of zero is not there
    assert vectors.data.tolist() == np.array([0.5, -0.2, 0.5, 1, 1], np.float32).tolist()
    assert vectors.indices.dtype == np.int32
    last = documents.take([2, 0]).vectors
    assert last is not None
    assert (last.indptr.tolist(), last.indices.tolist()) == ([0, 1, 3], [1, 1, 3])


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("1 -3:0.5", "index -3 in '-3:0.5' is below 0"),
        ("1 -0:0.5", "index -0 in '-0:0.5' is below 0"),
        ("1 0:1 0:1", "index 0 is there twice"),
        ("1,2 3:0.5", "'1,2' is several labels; keep only documents with exactly one"),
        ("3:0.5 4:1", "no label before '3:0.5'"),
        ("1 3:0.5 3:0.5", "index 3 is there twice"),
        ("1 5:1 3:0.5 4:1 5:2", "index 5 is there twice"),
        ("1 3:nan", "value nan of index 3 is not finite"),
        ("1 3:-Inf", "value -Inf of index 3 is not finite"),
        ("1 3:1e39", "value 1e39 of index 3 is too large for float32"),
        ("1 2:1 3:", "value '' of index 3 is not a number; is the line cut off?"),
        ("1 2:1 3:0.5x", "value '0.5x' of index 3 is not a number"),
        ("1 2:1 3:1e", "value '1e' of index 3 is not a number"),
        ("1 2:1 3", "'3' is not index:value; is the line cut off?"),
        ("1 2:1 qid:3", "'qid:3' is not index:value"),
        ("1 qid:3 qid:4 2:1", "'qid:4' is not index:value"),
        ("1 qid:x 2:1", "'qid:x' is not index:value"),
        ("qid:3 2:1", "no label before 'qid:3'"),
        ("1 1000000000000000000:1", "index 1000000000000000000 is above 999999999999999999"),
        ("1 99999999999999999999999:1", "index 99999999999999999999999 is above 999999999999999999"),
        (f"1 {'9' * 5000}:1", f"index {'9' * 40}... is above 999999999999999999"),
        (f"1 1:{'9' * 5000}", f"value {'9' * 40}... of index 1 is too large for float32"),
    ],
)
def test_bad_svmlight(put, line, what):
    path = put("a.dat", f"1 1:1\n2 2:1 # fine\n{line}\n1 1:1\n")
    assert detected(path.read_text()) == "svmlight"
    with pytest.raises(DataError) as caught:
        read_documents(path)
    assert str(caught.value).startswith(f"{path}:3: {what}")


def test_detection_sees_svmlight_even_when_its_only_line_is_wrong():
    for line in ("1 0:0.5", "1,2 3:0.5", "3:0.5 4:1", "1 3:nan", "1 1:0.5 2", "1 qid:7 3:1"):
        assert detected(line) == "svmlight"
    assert detected("rec\t12:30\nrec\tat noon\nsci\tat 12:30\n") == "tsv"


def test_empty_vectors_and_labels_that_are_not_text(put):
    path = put("a.dat", "1 1:1\n2\n1 4:0\n")
    documents = read_documents(path)
    assert documents.vectors is not None
    assert (documents.vectors.indptr.tolist(), documents.labels) == ([0, 1, 1, 1], ["1", "2", "1"])
    with pytest.raises(DataError, match=r"a.dat:2: label '.*' is not UTF-8"):
        read_documents(put("a.dat", b"1 1:1\n\xff 1:1\n"))
    with pytest.raises(DataError, match=r"a.dat: is empty; an svmlight file"):
        read_documents(put("a.dat", "# nothing\n"), "svmlight")


def test_lines_are_counted_across_blocks(put, tmp_path, monkeypatch):
    lines = [f"{k % 3} {k + 1}:{k}.25 {k + 9}:1\n" for k in range(100)]
    whole = read_svmlight(put("a.dat", "".join(lines)))
    monkeypatch.setattr(files, "_BLOCK", 50)
    parts = read_svmlight(tmp_path / "a.dat")
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(whole.vectors, name), getattr(parts.vectors, name))
    assert (whole.labels, whole.lines.tolist()) == (parts.labels, parts.lines.tolist())
    path = put("b.dat", "".join([*lines, "1 -2:1\n"]))
    with pytest.raises(DataError, match=r"b.dat:101: index -2"):
        read_svmlight(path)


ROW = st.dictionaries(
    st.one_of(st.integers(0, 2**31 + 2), st.integers(0, 10**18 - 1)),
    st.floats(width=32, allow_nan=False, allow_infinity=False).filter(bool),
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=6), ending=st.sampled_from(["", ".gz", ".xz"]))
def test_writing_and_reading_give_the_same_vectors(tmp_path_factory, rows, ending):
    path = tmp_path_factory.getbasetemp() / f"round.dat{ending}"
    pairs = [sorted(row.items()) for row in rows]
    indices = np.array([index for row in pairs for index, _ in row], np.int64)
    values = np.array([value for row in pairs for _, value in row], np.float32)
    vectors = csr_array((values, indices, np.cumsum([0, *map(len, pairs)])), (len(rows), MAX_INDEX + 1))
    labels = ["é" if k % 2 else "+1" for k in range(len(rows))]
    write_svmlight(path, vectors, labels)
    file = read_svmlight(path)
    assert file.labels == labels
    np.testing.assert_array_equal(file.vectors.indptr, vectors.indptr)
    np.testing.assert_array_equal(file.vectors.indices, vectors.indices)
    np.testing.assert_array_equal(file.vectors.data, vectors.data)


def test_scikit_learn_reads_what_is_written(tmp_path):
    datasets = pytest.importorskip("sklearn.datasets")
    rng = np.random.default_rng(3)
    values = (rng.normal(size=3000) * 10.0 ** rng.integers(-30, 30, 3000)).astype(np.float32)
    indices = np.tile(np.arange(1, 901, 3, dtype=np.int32), 10)
    write_svmlight(tmp_path / "a.dat", csr_array((values, indices, np.arange(0, 3001, 300))), ["1", "2"] * 5)
    X, y = datasets.load_svmlight_file(str(tmp_path / "a.dat"), dtype=np.float32, zero_based=False)
    assert y.tolist() == [1, 2] * 5
    np.testing.assert_array_equal(X.indices, indices - 1)
    np.testing.assert_array_equal(X.data, values)


def test_what_cannot_be_written(tmp_path):
    vectors = csr_array(np.ones((1, 1), np.float32))
    with pytest.raises(UsageError, match=r"label 'a b' cannot stand in an svmlight file"):
        write_svmlight(tmp_path / "a.dat", vectors, ["a b"])
    with pytest.raises(UsageError, match=r"2 labels for 1 documents"):
        write_svmlight(tmp_path / "a.dat", vectors, ["a", "b"])
    with pytest.raises(UsageError, match=r"not finite"):
        write_svmlight(tmp_path / "a.dat", vectors * np.inf, ["a"])
    assert list(tmp_path.iterdir()) == []


def test_qid_is_passed_over_and_said_once_for_a_file(put, said):
    """LETOR's and SVM-rank's files have it after the label."""
    path = put("a.dat", "2 qid:10 1:0.5 3:1\n1 qid:10 # nothing\n1\tqid:0011\t2:1\r\n1 2:1\n")
    vectors = read_documents(path).vectors
    assert vectors is not None
    assert (vectors.indptr.tolist(), vectors.indices.tolist()) == ([0, 2, 2, 3, 4], [1, 3, 2, 2])
    assert said == [f"{path}: qid: of 3 documents is passed over; each document is classified by itself"]


def test_huge_indices_cost_what_small_ones_do(put):
    path = put("a.dat", "1 1000000000:1 999999999999999999:2\n2 3:1\n")
    tracemalloc.start()
    vectors = read_svmlight(path).vectors
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (vectors.indices.tolist(), vectors.indices.dtype) == ([10**9, 10**18 - 1, 3], np.dtype(np.int64))
    assert peak < 50 << 20  # a block of the file, and no table of a billion


def test_a_line_without_an_end_is_refused_before_it_fills_memory(tmp_path):
    path = tmp_path / "a.dat.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(b"1 1:1\n")
        for _ in range(40):
            stream.write(b"1" * (1 << 20))
    for format in (None, "svmlight"):
        with pytest.raises(DataError, match=r"a.dat.gz:2: a line of more than 16 MB: is this a text file\?"):
            read_documents(path, format)
    with limits.insisting():
        assert len(read_svmlight(path).labels[1]) == 40 << 20
