"""Readers of documents: every format, every mistake with its file and line."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest

from sparsezo.errors import DataError, UsageError
from sparsezo.tasks.text.documents import class_numbers, classes_of, detect_format, read_documents, read_rcv1
from sparsezo.tasks.text.lyrl import read_topics
from sparsezo.tasks.text.tables import Columns

TSV = "rec\tthe puck\nsci\ta cell\t in space\n"
TOKENS = ".I 2286\n.W\nrecov recov\nexcit\n\n.I 2287\n.W\nbank \n\n.I 2288\n.W\ngoal\n"
QRELS = "CCAT 2286 1\nC11 2286 1\nMCAT 2287 1\nCCAT 2287 1\nGCAT 2288 1\n"


def put(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    content = text.encode() if isinstance(text, str) else text
    packed = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
    path.write_bytes(packed(content))
    return path


def detected(content: str | bytes, name: str = "a", columns: Columns = Columns()) -> str:  # noqa: B008
    return detect_format(name, content.encode() if isinstance(content, str) else content, columns)


# Label TAB text


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_label_tab_text(tmp_path: Path, ending: str) -> None:
    path = put(tmp_path, "a.tsv" + ending, "\ufeff" + TSV)
    documents = read_documents(path)
    assert detected(TSV, path.name) == "tsv"
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
        (b"rec\ta b\nsci\t\xff\n", 2, "is not UTF-8"),
    ],
)
def test_bad_lines(tmp_path: Path, text: str | bytes, line: int, what: str) -> None:
    path = put(tmp_path, "a.tsv", text)
    with pytest.raises(DataError) as caught:
        read_documents(path)
    assert str(caught.value).startswith(f"{path}:{line}: {what}")
    assert "\n" not in str(caught.value)


def test_an_empty_file(tmp_path: Path) -> None:
    for labelled in (True, False):
        with pytest.raises(DataError, match=r"a.tsv: is empty; a file of documents has at least one"):
            read_documents(put(tmp_path, "a.tsv", ""), labelled=labelled)
    with pytest.raises(DataError, match=r"a.tsv:1: the line is blank"):
        read_documents(put(tmp_path, "a.tsv", "\n \n"))
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
    assert detected("the puck\n\na cell\n", "a.txt") == "text"
    documents = read_documents(path, labelled=False)
    assert (documents.labels, documents.texts) == (None, ["the puck", "", "a cell"])
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
    with pytest.raises(UsageError, match=r"'xml' is no format of documents; choose one of tsv, text, csv, jsonl, svm"):
        read_documents(path, "xml")
    with pytest.raises(UsageError, match=r"`text_column` and `label_column` are for csv and jsonl, not for tsv"):
        read_documents(path, "tsv", text_column="2")
    with pytest.raises(UsageError, match=r"no file of documents"):
        read_documents([])
    with pytest.raises(DataError, match=r"b.dat: holds vectors, but .*a.tsv text; give files of one format"):
        read_documents([path, put(tmp_path, "b.dat", "1 1:0.5\n")])


def test_classes(tmp_path: Path) -> None:
    train = read_documents(put(tmp_path, "a.tsv", TSV + "rec\tgoal\n"))
    assert classes_of(train) == ["rec", "sci"]
    assert class_numbers(train, ["rec", "sci"]).tolist() == [0, 1, 0]
    test = read_documents(put(tmp_path, "b.tsv", "rec\ta\ntalk\tb\n"))
    with pytest.raises(DataError, match=r"b.tsv:2: label 'talk' is none of the model's classes, which are rec, sci"):
        class_numbers(test, ["rec", "sci"])
    with pytest.raises(DataError, match=r"a.tsv: only the class 'rec' in the training documents"):
        classes_of(train.take([0, 2]))


# RCV1-v2's own files


def test_tokens_with_exactly_one_topic_are_kept(tmp_path: Path) -> None:
    path = put(tmp_path, "tokens.dat", TOKENS)
    put(tmp_path, "rcv1-v2.topics.qrels.gz", QRELS)
    assert detected(TOKENS) == "lyrl"
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
        (f".I {'7' * 5000}\n.W\na\n", ":1", "'.I 7777777777777777777777777777777777777...' has no document id"),
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
    with pytest.raises(DataError, match=r"a.qrels:1: 'CCAT 7+\.\.\.' is not 'topic id 1'"):
        read_topics(put(tmp_path, "a.qrels", f"CCAT {'7' * 5000} 1\n"))
    for line in ("CCAT 1 nan", "CCAT 1 -1", "CCAT \u0661 1"):  # an Arabic one is no id of RCV1's
        with pytest.raises(DataError, match=r"a.qrels:1: 'CCAT .+' is not 'topic id 1'"):
            read_topics(put(tmp_path, "a.qrels", f"{line}\n"))
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
