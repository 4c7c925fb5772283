"""Readers of documents: every format, every mistake with its file and line."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsezo.errors import DataError, UsageError
from sparsezo.tasks.text import svmlight as svmlight_module
from sparsezo.tasks.text.documents import class_numbers, classes_of, detect_format, read_documents, read_rcv1
from sparsezo.tasks.text.lyrl import read_topics
from sparsezo.tasks.text.svmlight import Vectors, parse_line, read_svmlight, write_svmlight

TSV = "rec\tthe puck\nsci\ta cell\t in space\n"
SVMLIGHT = "# made by hand\n1 1:0.5 3:-2e-1 # first\n\n-1\t7:1 2:.5 4:0\r\n"
TOKENS = ".I 2286\n.W\nrecov recov\nexcit\n\n.I 2287\n.W\nbank \n\n.I 2288\n.W\ngoal\n"
QRELS = "CCAT 2286 1\nC11 2286 1\nMCAT 2287 1\nCCAT 2287 1\nGCAT 2288 1\n"


def put(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    content = text.encode() if isinstance(text, str) else text
    packed = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
    path.write_bytes(packed(content))
    return path


# Label TAB text


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_label_tab_text(tmp_path: Path, ending: str) -> None:
    path = put(tmp_path, "a.tsv" + ending, "\ufeff" + TSV)
    documents = read_documents(path)
    assert detect_format(path) == "tsv"
    assert (documents.labels, documents.texts) == (["rec", "sci"], ["the puck", "a cell\t in space"])
    assert (documents.kind, len(documents), documents.where(1)) == ("text", 2, f"{path}:2")


def test_several_files_keep_their_own_lines(tmp_path: Path) -> None:
    paths = [put(tmp_path, "a.tsv", TSV), put(tmp_path, "b.tsv", "talk\tof the town\n")]
    documents = read_documents(paths)
    assert documents.labels == ["rec", "sci", "talk"]
    assert documents.where(2) == f"{paths[1]}:1"
    held_out = documents.take(slice(1, None))
    assert (held_out.texts, held_out.where(0)) == (["a cell\t in space", "of the town"], f"{paths[0]}:2")


def test_labels_are_shared_strings(tmp_path: Path) -> None:
    labels = read_documents(put(tmp_path, "a.tsv", "class one\tx y\nclass one\tz\n")).labels
    assert labels is not None
    assert labels[0] is labels[1]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("rec\ta b\nno label here\n", 2, "no TAB in 'no label here'; write label TAB text"),
        ("no label here\n", 1, "no TAB in 'no label here'; write label TAB text"),
        ("rec\ta b\n\nsci\tc\n", 2, "the line is blank; write label TAB text"),
        ("rec\ta b\n \tc d\n", 2, "the label before 'c d' is empty"),
        ("rec\ta b\nsci\t  \n", 2, "an empty document"),
        (b"rec\ta b\nsci\t\xff\n", 2, "is not UTF-8"),
    ],
)
def test_bad_lines(tmp_path: Path, text: str | bytes, line: int, what: str) -> None:
    path = put(tmp_path, "a.tsv", text)
    with pytest.raises(DataError) as caught:
        read_documents(path)
    assert str(caught.value).startswith(f"{path}:{line}: {what}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_file(tmp_path: Path, text: str) -> None:
    path = put(tmp_path, "a.tsv", text)
    with pytest.raises(DataError, match=r"a.tsv: is empty; a file of documents has at least one"):
        read_documents(path)
    with pytest.raises(DataError, match=r"b.tsv: is empty"):
        read_documents(put(tmp_path, "b.tsv", ""), "tsv")


def test_a_missing_file_and_a_cut_one(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none.tsv: no such file"):
        read_documents(tmp_path / "none.tsv")
    for ending, pack in ((".gz", gzip.compress), (".xz", lzma.compress)):
        path = tmp_path / ("cut.dat" + ending)
        rng = np.random.default_rng(0)
        text = "".join(f"1 1:{value}\n" for value in rng.random(20_000)).encode()
        path.write_bytes(pack(text)[:-2000])
        with pytest.raises(DataError, match=r"cut.dat\.[gx]z:\d+: cannot be read on .*is the file cut off\?"):
            read_documents(path, "svmlight")


def test_text_without_labels_is_for_predict_only(tmp_path: Path) -> None:
    path = put(tmp_path, "a.txt", "the puck\n\na cell\n")
    assert detect_format(path) == "text"
    documents = read_documents(path, labelled=False, allow_empty=True)
    assert (documents.labels, documents.texts) == (None, ["the puck", "", "a cell"])
    with pytest.raises(DataError, match=r"a.txt:2: an empty document"):
        read_documents(path, labelled=False)
    with pytest.raises(DataError, match=r"a.txt:1: no TAB"):
        read_documents(path)
    with pytest.raises(UsageError, match=r"the format text has no labels"):
        read_documents(path, "text")
    with pytest.raises(DataError, match=r"a.txt: has no labels"):
        class_numbers(documents, ["rec"])
    tabbed = put(tmp_path, "b.txt", "12 TAB\there\n")
    assert read_documents(tabbed, "text", labelled=False).texts == ["12 TAB\there"]
    assert read_documents(tabbed, labelled=False).labels == ["12 TAB"]


def test_wrong_calls(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tsv", TSV)
    with pytest.raises(UsageError, match=r"'csv' is no format of documents; choose one of tsv, text, svmlight, lyrl"):
        read_documents(path, "csv")
    with pytest.raises(UsageError, match=r"no file of documents"):
        read_documents([])
    with pytest.raises(DataError, match=r"b.dat: holds vectors, but .*a.tsv text; give files of one format"):
        read_documents([path, put(tmp_path, "b.dat", SVMLIGHT)])


def test_classes(tmp_path: Path) -> None:
    train = read_documents(put(tmp_path, "a.tsv", TSV + "rec\tgoal\n"))
    assert classes_of(train) == ["rec", "sci"]
    assert class_numbers(train, ["rec", "sci"]).tolist() == [0, 1, 0]
    test = read_documents(put(tmp_path, "b.tsv", "rec\ta\ntalk\tb\n"))
    with pytest.raises(
        DataError, match=r"b.tsv:2: label 'talk' was not in the training documents, which have rec, sci"
    ):
        class_numbers(test, ["rec", "sci"])
    with pytest.raises(DataError, match=r"a.tsv: only the class 'rec' in the training documents"):
        classes_of(train.take([0, 2]))


# svmlight


def test_svmlight(tmp_path: Path) -> None:
    path = put(tmp_path, "a.dat.gz", "\ufeff" + SVMLIGHT)
    documents = read_documents([path, put(tmp_path, "b.dat", "2 1:1")])
    assert detect_format(path) == "svmlight"
    assert documents.kind == "vectors"
    assert documents.labels == ["1", "-1", "2"]
    assert [documents.where(i).rsplit(":", 1)[1] for i in range(3)] == ["2", "4", "1"]
    vectors = documents.vectors
    assert vectors is not None
    assert vectors.indptr.tolist() == [0, 2, 4, 5]
    assert vectors.indices.tolist() == [0, 2, 1, 6, 0]  # index i is feature i - 1; a zero is not there
    assert vectors.values.tolist() == np.array([0.5, -0.2, 0.5, 1, 1], np.float32).tolist()
    assert vectors.n_features == 7
    last = documents.take([2, 0]).vectors
    assert last is not None
    assert (last.indptr.tolist(), last.indices.tolist()) == ([0, 1, 3], [0, 0, 2])


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("1 0:0.5", "index 0 in '0:0.5' is below 1; svmlight counts features from 1"),
        ("1 -3:0.5", "index -3 in '-3:0.5' is below 1"),
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
        ("1 2147483648:1", "index 2147483648 is above 2147483647"),
        ("1 99999999999999999999999:1", "index 99999999999999999999999 is above 2147483647"),
        ("1", "an empty document"),
        ("1 4:0", "an empty document"),
    ],
)
def test_bad_svmlight(tmp_path: Path, line: str, what: str) -> None:
    path = put(tmp_path, "a.dat", f"1 1:1\n2 2:1 # fine\n{line}\n1 1:1\n")
    assert detect_format(path) == "svmlight"
    with pytest.raises(DataError) as caught:
        read_documents(path)
    assert str(caught.value).startswith(f"{path}:3: {what}")


def test_detection_sees_svmlight_even_when_its_only_line_is_wrong(tmp_path: Path) -> None:
    for line in ("1 0:0.5", "1,2 3:0.5", "3:0.5 4:1", "1 3:nan", "1 1:0.5 2"):
        assert detect_format(put(tmp_path, "a.dat", line)) == "svmlight"
    assert detect_format(put(tmp_path, "a.tsv", "rec\t12:30\nrec\tat noon\nsci\tat 12:30\n")) == "tsv"


def test_empty_vectors_and_labels_that_are_not_text(tmp_path: Path) -> None:
    path = put(tmp_path, "a.dat", "1 1:1\n2\n")
    vectors = read_documents(path, allow_empty=True).vectors
    assert vectors is not None
    assert vectors.indptr.tolist() == [0, 1, 1]
    with pytest.raises(DataError, match=r"a.dat:2: label '.*' is not UTF-8"):
        read_documents(put(tmp_path, "a.dat", b"1 1:1\n\xff 1:1\n"))
    with pytest.raises(DataError, match=r"a.dat: is empty; an svmlight file"):
        read_documents(put(tmp_path, "a.dat", "# nothing\n"), "svmlight")


def test_lines_are_counted_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{k % 3} {k + 1}:{k}.25 {k + 9}:1\n" for k in range(100)]
    whole = read_svmlight(put(tmp_path, "a.dat", "".join(lines)))
    monkeypatch.setattr(svmlight_module, "_BLOCK", 50)
    parts = read_svmlight(tmp_path / "a.dat")
    for name in ("indptr", "indices", "values"):
        np.testing.assert_array_equal(getattr(whole.vectors, name), getattr(parts.vectors, name))
    assert (whole.labels, whole.lines.tolist()) == (parts.labels, parts.lines.tolist())
    path = put(tmp_path, "b.dat", "".join([*lines, "1 0:1\n"]))
    with pytest.raises(DataError, match=r"b.dat:101: index 0"):
        read_svmlight(path)


def test_the_plain_parser_counts_features_from_0() -> None:
    assert parse_line(b"-1 7:1 2:.5 4:0 # c\r\n") == (b"-1", [(1, 0.5), (6, 1.0)])
    assert parse_line(b" # nothing\n") is None
    with pytest.raises(ValueError, match="index 3 is there twice"):
        parse_line(b"1 3:1 3:1")


FIELD = st.one_of(
    st.from_regex(r"[0-9]{1,3}:[+-]?([0-9]{1,4}\.?[0-9]{0,9}|\.[0-9]{1,9})([eE][+-]?[0-9]{1,2})?", fullmatch=True),
    st.sampled_from(["#", "# 1:2", "3:nan", "0:1", "x", "1:", ":1", "2:1#", "\t", "\r", "1:1e400", "1:1e-400"]),
)
LINE = st.builds(
    lambda label, fields: " ".join([label, *fields]), st.sampled_from(["1", "-1", "", "a,b", "é"]), st.lists(FIELD)
)


@settings(max_examples=300, deadline=None)
@given(line=LINE)
def test_compiled_parser_is_the_plain_one(tmp_path_factory: pytest.TempPathFactory, line: str) -> None:
    path = tmp_path_factory.getbasetemp() / "twin.dat"
    path.write_bytes(b"7 1:1\n" + line.encode())
    plain, message = None, ""
    try:
        plain = parse_line(line.encode())
    except ValueError as error:
        message = str(error)
    if message:
        with pytest.raises(DataError) as caught:
            read_svmlight(path)
        assert str(caught.value) == f"{path}:2: {message}"
        return
    file = read_svmlight(path)
    assert len(file.labels) == (1 if plain is None else 2)
    if plain is not None:
        assert file.labels[1] == plain[0].decode()
        assert file.vectors.indices[1:].tolist() == [feature for feature, _ in plain[1]]
        expected = np.array([value for _, value in plain[1]], np.float32)
        np.testing.assert_allclose(file.vectors.values[1:], expected, rtol=1.2e-7)


ROW = st.dictionaries(
    st.integers(0, 2**31 - 2), st.floats(width=32, allow_nan=False, allow_infinity=False).filter(bool), max_size=8
)


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=6), ending=st.sampled_from(["", ".gz", ".xz"]))
def test_writing_and_reading_give_the_same_vectors(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[int, float]], ending: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"round.dat{ending}"
    pairs = [sorted(row.items()) for row in rows]
    vectors = Vectors(
        np.cumsum([0, *map(len, pairs)]),
        np.array([feature for row in pairs for feature, _ in row], np.int32),
        np.array([value for row in pairs for _, value in row], np.float32),
    )
    labels = ["é" if k % 2 else "+1" for k in range(len(rows))]
    write_svmlight(path, vectors, labels, rows=2)
    file = read_svmlight(path)
    assert file.labels == labels
    np.testing.assert_array_equal(file.vectors.indptr, vectors.indptr)
    np.testing.assert_array_equal(file.vectors.indices, vectors.indices)
    np.testing.assert_array_equal(file.vectors.values, vectors.values)


def test_scikit_learn_reads_what_is_written(tmp_path: Path) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    rng = np.random.default_rng(3)
    values = (rng.normal(size=3000) * 10.0 ** rng.integers(-30, 30, 3000)).astype(np.float32)
    indices = np.tile(np.arange(0, 900, 3, dtype=np.int32), 10)
    write_svmlight(tmp_path / "a.dat", Vectors(np.arange(0, 3001, 300), indices, values), ["1", "2"] * 5)
    X, y = datasets.load_svmlight_file(str(tmp_path / "a.dat"), dtype=np.float32, zero_based=False)
    assert y.tolist() == [1, 2] * 5
    np.testing.assert_array_equal(X.indices, indices)
    np.testing.assert_array_equal(X.data, values)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    vectors = Vectors(np.array([0, 1]), np.array([0], np.int32), np.array([1], np.float32))
    with pytest.raises(UsageError, match=r"label 'a b' cannot stand in an svmlight file"):
        write_svmlight(tmp_path / "a.dat", vectors, ["a b"])
    with pytest.raises(UsageError, match=r"2 labels for 1 documents"):
        write_svmlight(tmp_path / "a.dat", vectors, ["a", "b"])
    with pytest.raises(UsageError, match=r"not finite"):
        write_svmlight(tmp_path / "a.dat", Vectors(vectors.indptr, vectors.indices, vectors.values * np.inf), ["a"])
    assert list(tmp_path.iterdir()) == []


# RCV1-v2's own files


def test_tokens_with_exactly_one_topic_are_kept(tmp_path: Path) -> None:
    path = put(tmp_path, "tokens.dat", TOKENS)
    put(tmp_path, "rcv1-v2.topics.qrels.gz", QRELS)
    assert detect_format(path) == "lyrl"
    documents = read_documents(path)
    assert (documents.labels, documents.texts) == (["CCAT", "GCAT"], ["recov recov excit", "goal"])
    assert (documents.kind, documents.where(1)) == ("tokens", f"{path}:10")
    unlabelled = read_documents(path, labelled=False)
    assert (unlabelled.labels, unlabelled.texts) == (None, ["recov recov excit", "bank", "goal"])
    named = read_documents(path, topics=put(tmp_path, "other.qrels", "ECAT 2287 1\nGCAT 2288 0\n"))
    assert named.labels == ["ECAT"]


def test_each_of_the_four_topics_is_a_class(tmp_path: Path) -> None:
    one = "CCAT 1 1\nECAT 2 1\nGCAT 3 1\nMCAT 4 1\n"
    other = "C15 1 1\nE11 2 1\n\nCCAT 5 1\nECAT 5 1\nGCAT 6 1\nMCAT 6 1\nECAT 7 1\nGCAT 7 1\nM14 8 1\n"
    again = "CCAT 1 1\nMCAT 1 0\n"  # said twice, and not this
    path = put(tmp_path, "rcv1-v2.topics.qrels", one + other + again)
    assert read_topics(path) == {1: "CCAT", 2: "ECAT", 3: "GCAT", 4: "MCAT"}
    tokens = put(tmp_path, "tokens.dat", "".join(f".I {k}\n.W\nw{k}\n\n" for k in range(1, 9)))
    documents = read_documents(tokens)
    assert (documents.labels, documents.texts) == (["CCAT", "ECAT", "GCAT", "MCAT"], ["w1", "w2", "w3", "w4"])


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (".I one\n.W\na\n", ":1", "'.I one' has no document id"),
        (".I 2286\n.W\n\n", ":1", "document 2286 is an empty document"),
        (".I 2286\n.W\na\n\n.I 2288\n", ":5", "document 2288 has no .W; is the file cut off?"),
        (".I 2286\na b\n", ":2", "'a b' stands before .W"),
        (".I 2286\n.W\na\n.W\n", ":4", "a .W without its .I"),
        (".I 9\n.W\na\n", "", "no document has exactly one of CCAT, ECAT, GCAT, MCAT"),
    ],
)
def test_bad_tokens(tmp_path: Path, text: str, line: str, what: str) -> None:
    path = put(tmp_path, "tokens.dat", text)
    put(tmp_path, "rcv1-v2.topics.qrels", QRELS)
    with pytest.raises(DataError) as caught:
        read_documents(path)
    assert str(caught.value).startswith(f"{path}{line}: {what}")


def test_bad_topics(tmp_path: Path) -> None:
    path = put(tmp_path, "tokens.dat", TOKENS)
    with pytest.raises(
        DataError, match=r"tokens.dat: LYRL2004 tokens carry no labels; put rcv1-v2.topics.qrels beside"
    ):
        read_documents(path)
    with pytest.raises(DataError, match=r"a.qrels:2: 'CCAT 1' is not 'topic id 1'"):
        read_topics(put(tmp_path, "a.qrels", "CCAT 1 1\nCCAT 1\n"))
    with pytest.raises(DataError, match=r"b.qrels: names none of CCAT, ECAT, GCAT, MCAT"):
        read_topics(put(tmp_path, "b.qrels", "C11 1 1\n\n"))


def test_the_papers_split(tmp_path: Path) -> None:
    def block(document: int) -> str:
        return f".I {document}\n.W\nw{document}\n\n"

    starts = {f"test_pt{part}": 1000 * (part + 1) for part in range(4)} | {"train": 9000}
    for name, start in starts.items():
        ending = {"test_pt1": ".gz", "test_pt3": ".xz"}.get(name, "")
        text = "".join(block(start + k) for k in range(40 if name == "test_pt3" else 3))
        put(tmp_path, f"lyrl2004_tokens_{name}.dat{ending}", text)
    topics = [("CCAT", 1000 * part + k) for part in range(1, 10) for k in range(40)] + [("ECAT", 4000), ("MCAT", 2001)]
    put(tmp_path, "rcv1-v2.topics.qrels", "".join(f"{topic} {document} 1\n" for topic, document in topics))
    split = read_rcv1(tmp_path)
    assert split.train.texts == ["w1000", "w1001", "w1002", "w2000", "w2002", "w3000", "w3001", "w3002"]
    assert split.dev.texts == ["w4008", "w4016", "w4024", "w4032"]  # 4000 has two topics
    assert split.test.texts == ["w9000", "w9001", "w9002"]
    assert split.train.where(3) == f"{tmp_path / 'lyrl2004_tokens_test_pt1.dat.gz'}:1"
    (tmp_path / "lyrl2004_tokens_train.dat").unlink()
    with pytest.raises(DataError, match=r"lyrl2004_tokens_train.dat: no such file, nor with .gz or .xz"):
        read_rcv1(tmp_path)


@pytest.mark.data
def test_twenty_newsgroups(real_data: Path) -> None:
    train = read_documents(real_data / "text" / "20news4.train.tsv.gz")
    test = read_documents(real_data / "text" / "20news4.test.tsv.gz")
    assert (len(train), len(test)) == (9650, 6425)
    assert classes_of(train) == ["comp", "rec", "sci", "talk"]
    assert np.bincount(class_numbers(train, classes_of(train))).tolist() == [2936, 2389, 2373, 1952]
