r"""CRFsuite's attribute files: labels, names, values and escapes, as its reader (iwa.c) takes them."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from sparsezo.errors import DataError, UsageError
from sparsezo.storage import limits
from sparsezo.tasks.chunking.features.attributes import ListedIndex
from sparsezo.tasks.chunking.io import files
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.io.crfsuite import looks_like_crfsuite, read_crfsuite, tagged_lines
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Files

TEXT = """\
B-NP	w=the	bias
I-NP	w=dog	bias	w=dog

\t
O		w=a\\:b	bias:0.5	c\\\\:2	odd\\n:	.:+1e-1
B-NP	w=the
O
"""
# token by token
ATTRIBUTES = [
    {"w=the": 1, "bias": 1},
    {"w=dog": 2, "bias": 1},
    {"w=a:b": 1, "bias": 0.5, "c\\": 2, "odd\\n": 1, ".": 0.1},
    {"w=the": 1},
    {},
]


@pytest.fixture
def path(tmp_path) -> str:
    (tmp_path / "train").write_text(TEXT)
    return str(tmp_path / "train")


def attributes(corpus: Corpus) -> list[dict[str, float]]:
    listed, found = corpus.listed, []
    for start, stop in zip(listed.starts[:-1].tolist(), listed.starts[1:].tolist(), strict=True):
        found.append({})
        for i, value in zip(listed.ids[start:stop].tolist(), listed.values[start:stop].tolist(), strict=True):
            found[-1][listed.names[i]] = found[-1].get(listed.names[i], 0) + value
    return [{name: pytest.approx(value) for name, value in each.items()} for each in found]


def test_reading(path):
    corpus = read_crfsuite(path)
    assert corpus.tags == ["B-NP", "I-NP", "O", "B-NP", "O"]
    assert corpus.offsets.tolist() == [0, 2, 5]
    assert corpus.lines.tolist() == [1, 2, 5, 6, 7]
    assert corpus.columns == ()
    assert attributes(corpus) == ATTRIBUTES
    assert attributes(corpus[1:]) == ATTRIBUTES[2:]
    assert attributes(corpus.take([1, 0])) == ATTRIBUTES[2:] + ATTRIBUTES[:2]
    assert corpus[1:].where(0) == f"{path}:5"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("B-NP\tw=http://x", r"'w=http://x': '//x' is no value of an attribute; write \: for a colon in its name"),
        ("B-NP\tw=a:1:2", r"'w=a:1:2': '1:2' is no value of an attribute; write \: for a colon in its name"),
        ("B-NP\tw:nan", r"'w:nan': 'nan' is no value of an attribute; write \: for a colon in its name"),
        ("B-NP\tw:1e39", r"'w:1e39': '1e39' is no value of an attribute; write \: for a colon in its name"),
        ("B-NP\tw:1_0", r"'w:1_0': '1_0' is no value of an attribute; write \: for a colon in its name"),
        ("B:NP\tw", r"label 'B:NP' has a colon in it; write \: for it"),
        ("@weight:2", "'@weight:2' is a declaration, and weights of sentences are not read here"),
    ],
)
def test_what_is_refused(tmp_path, line, said):
    (tmp_path / "f").write_text(f"O\tw\n{line}\n")
    with pytest.raises(DataError) as caught:
        read_crfsuite(tmp_path / "f")
    assert str(caught.value) == f"{tmp_path / 'f'}:2: {said}"


def test_nothing_to_read_and_too_much(tmp_path, monkeypatch):
    (tmp_path / "f").write_text("\n\n")
    with pytest.raises(DataError, match="holds no token; expected a label and its attributes a line"):
        read_crfsuite(tmp_path / "f")
    (tmp_path / "f").write_text("the DT B-NP\n")
    with pytest.raises(DataError, match="lists no attribute; in CRFsuite's format a tab stands before each of them"):
        read_crfsuite(tmp_path / "f")
    monkeypatch.setattr(limits, "TOKENS", 2)
    (tmp_path / "f").write_text("O\tw\nO\tw\n\nO\tw\nO\tw\n")
    assert len(read_crfsuite(tmp_path / "f")) == 2
    (tmp_path / "f").write_text("O\tw\nO\tw\nO\tw\n")
    with pytest.raises(DataError, match=r"f:3: more than 2 tokens in one sentence: is a blank line missing\?"):
        read_crfsuite(tmp_path / "f")


@pytest.mark.parametrize(
    ("text", "is_crfsuite"),
    [
        (TEXT, False),  # its last line has a label and nothing else: not sure enough
        ("B-NP\tw=a\nI-NP\tw=b\n\nO\tw=c\tx:2\n", True),
        ("B-NP\tw=a\nI-NP\tw=b\n", False),  # too little to tell by
        ("I\tPRP\tB-NP\nO\tUH\tO\nB\tNN\tB-NP\n", False),  # columns with odd words
        ("the\tDT\nO\tNN\nI\tVB\n", False),
        ("a DT B-NP\nb NN I-NP\nc . O\n", False),
        ("NN\tw=a\nVB\tw=b\nNN\tw=c\n", False),  # labels that may as well be words
        ("", False),
    ],
)
def test_the_format_is_found_where_it_can_be_told(text, is_crfsuite):
    assert looks_like_crfsuite(text) == is_crfsuite


def test_attributes_are_numbered_by_how_often_they_are_there(path, tmp_path):
    corpus = read_crfsuite(path)
    index = ListedIndex.fit(corpus)
    assert index.names() == ["bias", "w=the", "w=dog", "w=a:b", "c\\", "odd\\n", "."]
    assert ListedIndex.fit(corpus, 2).names() == ["bias", "w=the", "w=dog"]
    with pytest.raises(DataError, match="no attribute occurs 4 times"):
        ListedIndex.fit(corpus, 4)
    rows = ListedIndex.fit(corpus, 2).rows(corpus)
    assert rows.columns.tolist() == [1, 0, 2, 0, 2, 0, 1]
    assert rows.lengths.tolist() == [2, 3, 1, 1, 0]
    assert rows.values.tolist() == [1, 1, 1, 1, 1, 0.5, 1]
    ones = ListedIndex.fit(corpus[:1]).rows(corpus[:1])
    assert ones.values is None
    (path_of_others := tmp_path / "others").write_text("the\tDT\tB-NP\n")
    with pytest.raises(DataError, match="others: lists no attribute that training has seen; is it"):
        index.rows(read_crfsuite(path_of_others))
    with pytest.raises(UsageError, match="lists no attributes, and the model has no templates"):
        index.rows(Corpus("f", (), None, np.array([0])))


@pytest.mark.parametrize("order", [1, 2])
def test_a_task_of_listed_attributes(path, order):
    task, train = Chunking.fit(read_crfsuite(path), order=order)
    assert (task.tags, task.n_columns, task.listed) == (("B-NP", "I-NP", "O"), 0, True)
    settings, arrays = task.to_arrays()
    again = Chunking.from_arrays(json.loads(json.dumps(settings)), arrays)
    assert again.index.names() == task.index.names()
    for problem in (task.problem(train, learn=False), again.problem(train, learn=False)):
        inputs = problem.inputs
        found = []
        for start in inputs.row_start[:-1].tolist():
            for row in range(start, start + 2):
                entries = slice(*inputs.row_ptr[row : row + 2].tolist())
                names = [task.index.names()[i] for i in inputs.columns[entries].tolist()]
                found.append(dict(zip(names, inputs.values[entries].tolist(), strict=True)))
        found[1]["w=dog"] *= 2  # it is there twice
        assert found == [{name: pytest.approx(v) for name, v in each.items()} for each in ATTRIBUTES[:4]]
        assert problem.n_features == 7 + 3 * (order == 1)
        behind = inputs.values[inputs.row_ptr[2] : inputs.row_ptr[inputs.row_start[1]]]
        assert behind.tolist() == ([1, 1, 1] if order == 1 else [])


def test_files(tmp_path, path):
    (tmp_path / "sure").write_text("B-NP\tw=a\nI-NP\tw=b\n\nB-NP\tw=c\tx\n\n")
    sure = str(tmp_path / "sure")
    loaded = files.load(Files((sure,), "1", sure))
    assert loaded.task.listed
    assert (len(loaded.data.dev), len(loaded.data.test)) == (1, 2)
    assert files.load(Files((path,), path, None, {"format": "crfsuite"})).task.listed
    assert files.read(loaded.task, sure, {}).tags == ["B-NP", "I-NP", "B-NP"]
    for given, name in (({"features": "ner"}, "features"), ({"template": "t"}, "template")):
        with pytest.raises(UsageError, match=rf"CRFsuite's format\), so `{name}` has no place; leave it out"):
            files.load(Files((sure,), None, None, given))
    with pytest.raises(DataError, match="sure:4: has 3 columns where line 1 has 2"):
        files.load(Files((sure,), None, None, {"format": "columns"}))


def test_labels_are_written_as_crfsuite_writes_them():
    text = io.StringIO()
    text.writelines(tagged_lines(["B-NP", "O", "O"], np.array([0, 2, 3])))
    assert text.getvalue() == "B-NP\nO\n\nO\n\n"
