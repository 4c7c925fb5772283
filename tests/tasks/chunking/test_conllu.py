"""CoNLL-U: words without comments, ranges and empty nodes; the tag by its column; written back with it filled."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from sparsezo.errors import DataError, UsageError
from sparsezo.storage import limits
from sparsezo.tasks.chunking.conll import read_conll
from sparsezo.tasks.chunking.conllu import NAMES, filled

TEXT = """\
# sent_id = 1
# text = Vámonos al mar
1-2	Vámonos	_	_	_	_	_	_	_	_
1	Vamos	ir	VERB	V	Mood=Imp	0	root	0:root	_
2	nos	nosotros	PRON	P	_	1	obj	_	NE=O
3-4	al	_	_	_	_	_	_	_	_
3	a	a	ADP	E	_	5	case	_	_
4	el	el	DET	D	_	5	det	_	_
5	mar azul	mar	NOUN	S	Number=Sing	1	obl	_	SpaceAfter=No

# sent_id = 2
1	Sí	sí	INTJ	I	_	0	root	_	_
1.1	voy	ir	VERB	V	_	_	_	0:root	_

"""


@pytest.fixture
def write(tmp_path: Path):
    def _write(text: str, name: str = "train.conllu") -> Path:
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return _write


def test_words_and_their_lines(write):
    corpus = read_conll(write(TEXT))
    assert corpus.columns == (["Vamos", "nos", "a", "el", "mar azul", "Sí"],)
    assert corpus.tags == ["VERB", "PRON", "ADP", "DET", "NOUN", "INTJ"]
    assert corpus.offsets.tolist() == [0, 5, 6]
    assert corpus.lines.tolist() == [4, 5, 7, 8, 9, 12]
    assert (corpus.column, corpus.text) == ("UPOS", None)
    assert corpus[1:].column == "UPOS"


@pytest.mark.parametrize(
    ("column", "name", "observed", "first"),
    [
        (None, "UPOS", ["FORM"], "VERB"),
        ("UPOS", "UPOS", ["FORM"], "VERB"),
        ("upos", "UPOS", ["FORM"], "VERB"),
        ("4", "UPOS", ["FORM"], "VERB"),
        ("XPOS", "XPOS", ["FORM"], "V"),
        ("LEMMA", "LEMMA", ["FORM"], "ir"),
        ("FEATS", "FEATS", ["FORM"], "Mood=Imp"),
        ("DEPREL", "DEPREL", ["FORM", "UPOS"], "root"),
        ("10", "MISC", ["FORM", "UPOS"], "_"),
    ],
)
def test_the_tag_and_what_is_observed(write, column, name, observed, first):
    corpus = read_conll(write(TEXT), column=column)
    assert (corpus.column, corpus.tags[0]) == (name, first)
    cells = TEXT.splitlines()[3].split("\t")
    assert [words[0] for words in corpus.columns] == [cells[NAMES.index(each)] for each in observed]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("POS", "`column` POS: choose from ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC, or 1 to 10"),
        ("11", "`column` 11: choose from ID, FORM,"),
        ("²", "`column` ²: choose from ID, FORM,"),
        ("FORM", "`column` FORM: tags are told from FORM; choose another column"),
        ("1", "`column` 1: tags are told from ID; choose another column"),
    ],
)
def test_other_columns_are_refused(write, column, message):
    with pytest.raises(UsageError) as error:
        read_conll(write(TEXT), column=column)
    assert str(error.value).startswith(message)


def test_by_the_name_or_by_the_content(write, tmp_path):
    assert read_conll(write(TEXT, "words.txt")).column == "UPOS"
    (tmp_path / "a.conllu.gz").write_bytes(gzip.compress(TEXT.encode()))
    assert read_conll(tmp_path / "a.conllu.gz").tags[0] == "VERB"
    # the word '#', and ten columns of which the first is no number, are no CoNLL-U
    assert read_conll(write("# # O\na b O\n", "a")).columns[0] == ["#", "a"]
    ten = "\t".join(["word", *"bcdefghij"])
    assert read_conll(write(f"{ten}\n", "b")).tags == ["j"]
    no_head = "\t".join(["1", *"bcdefghij"])
    assert read_conll(write(f"{no_head}\n", "c")).tags == ["j"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("\tADP\t", " ADP "), ":7: has 8 columns with tabs between them; CoNLL-U has 10"),
        (lambda text: text.replace("\n3\ta\t", "\n3\t\t"), ":7: FORM is empty; CoNLL-U has _ for that"),
        (lambda text: text.replace("\n3\t", "\nx\t"), ":7: ID 'x' is none; give 1, 1-2 or 1.1"),
        (lambda text: "# nothing\n\n", ": holds no token; expected one token a line"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(write, change, message):
    path = write(change(TEXT))
    with pytest.raises(DataError) as error:
        read_conll(path)
    assert str(error.value).startswith(f"{path}{message}")


def test_a_column_that_is_empty_throughout_has_no_tags(write):
    path = write(TEXT)
    with pytest.raises(DataError) as error:
        read_conll(write("1\ta\t_\t_\t_\t_\t0\t_\t_\t_\n", "empty.conllu"))
    assert str(error.value).endswith("empty.conllu: column UPOS is _ throughout; choose another with `column`")
    assert read_conll(path.with_name("empty.conllu"), tagged=False).tags is None


def test_the_file_with_its_column_filled(write):
    corpus = read_conll(write(TEXT), tagged=False, n_columns=1)
    written = "".join(filled(corpus.text, corpus.lines.tolist(), ["A", "B", "C", "D", "E", "F"], corpus.column))
    expected = TEXT
    for tag, new in zip(corpus.tags, "ABCDEF", strict=True):
        expected = expected.replace(f"\t{tag}\t", f"\t{new}\t", 1)
    assert written == expected
    assert written.count("\tVERB\t") == 1  # of the empty node


def test_a_model_of_other_columns(write):
    with pytest.raises(DataError, match=r"train.conllu: has FORM before UPOS; expected 2 columns before the tag"):
        read_conll(write(TEXT), tagged=False, n_columns=2)
    assert len(read_conll(write(TEXT), tagged=False, n_columns=2, column="DEPREL").columns) == 2


def test_the_training_files_column_counts_in_a_file_of_its_kind(write):
    path, columns = write(TEXT), write("a N 1 O\n", "columns")
    assert read_conll(path, trained_column="XPOS").column == "XPOS"
    assert read_conll(path, column="UPOS", trained_column="XPOS").column == "UPOS"
    assert read_conll(path, trained_column="3").column == "UPOS"
    assert read_conll(columns, trained_column="3").tags == ["1"]
    assert read_conll(columns, trained_column="XPOS").tags == ["O"]


def test_too_long_a_sentence(write, monkeypatch):
    monkeypatch.setattr(limits, "TOKENS", 4)
    with pytest.raises(DataError, match=r"train.conllu:4: more than 4 tokens in one sentence: is a blank"):
        read_conll(write(TEXT))
