"""Column files, and CoNLL-U among them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsezo.errors import DataError, UsageError
from sparsezo.storage import limits
from sparsezo.tasks.chunking.io.conll import CONLLU_NAMES as NAMES
from sparsezo.tasks.chunking.io.conll import Corpus, filled, read_conll, write_conll

TWO_SENTENCES = "The DT B-NP\ndog NN I-NP\nbarks VBZ O\n\nIt PRP B-NP\n"


@pytest.fixture
def write(put):
    return lambda text, name="train.txt": put(name, text)


def message(path: Path, **options: object) -> str:
    with pytest.raises(DataError) as error:
        read_conll(path, **options)
    return str(error.value)


def test_reads_columns_tags_offsets_and_lines(write):
    corpus = read_conll(write(TWO_SENTENCES))
    assert corpus.columns == (["The", "dog", "barks", "It"], ["DT", "NN", "VBZ", "PRP"])
    assert corpus.tags == ["B-NP", "I-NP", "O", "B-NP"]
    assert corpus.offsets.tolist() == [0, 3, 4]
    assert corpus.lines.tolist() == [1, 2, 3, 5]
    assert (len(corpus), corpus.n_tokens) == (2, 4)
    assert corpus.where(3).endswith("train.txt:5")


def test_equal_strings_are_one_object(write):
    words = read_conll(write("dog NN O\ndog NN O\n\ndog NN O\n")).columns[0]
    assert words[0] is words[1] is words[2]


@pytest.mark.parametrize(
    "text",
    [
        "\n\n" + TWO_SENTENCES.replace("\n\n", "\n\n \t\n\n") + "\n\n",
        TWO_SENTENCES.replace(" ", "\t"),
        TWO_SENTENCES.replace(" ", " \t  "),
        TWO_SENTENCES.replace("\n", "  \n"),
        TWO_SENTENCES.replace("\n", "\r\n"),
        TWO_SENTENCES.removesuffix("\n"),
        "\ufeff" + TWO_SENTENCES,
    ],
    ids=["blank lines", "tabs", "mixed", "trailing spaces", "CRLF", "no last line end", "byte order mark"],
)
def test_spacing_does_not_matter(write, text):
    corpus = read_conll(write(text))
    assert corpus.columns == (["The", "dog", "barks", "It"], ["DT", "NN", "VBZ", "PRP"])
    assert corpus.tags == ["B-NP", "I-NP", "O", "B-NP"]
    assert corpus.offsets.tolist() == [0, 3, 4]


def test_a_no_break_space_stays_inside_its_token(write):
    assert read_conll(write("a\u00a0b NN O\n")).columns[0] == ["a\u00a0b"]


def test_document_starts_are_left_out_only_where_alone(write):
    path = write("-DOCSTART- O\n\n" + TWO_SENTENCES + "\n-DOCSTART- -X- O\n\n-DOCSTART- NN O\nhere RB O\n")
    assert read_conll(path).columns[0] == ["The", "dog", "barks", "It", "-DOCSTART-", "here"]


def test_ragged(write):
    path = write(TWO_SENTENCES + "\nnow RB O x\n")
    assert message(path).startswith(f"{path}:7: has 4 columns where line 1 has 3;")
    path = write("\nThe DT B-NP\ndog I-NP\n")
    assert message(path) == (
        f"{path}:3: has 2 columns where line 2 has 3; every token needs the same columns, separated by spaces or tabs"
    )


@pytest.mark.parametrize("text", ["", "\n \n\n", "-DOCSTART- -X- O\n"])
def test_no_token(write, text):
    path = write(text)
    assert message(path).startswith(f"{path}: holds no token; expected one token a line")


def test_one_column_has_no_tag(write):
    path = write("The\ndog\n")
    assert message(path) == f"{path}:1: has 1 column where at least 2 are needed; the last one must be the tag"


def test_input_for_prediction(write):
    path = write(TWO_SENTENCES)
    with_tags = read_conll(path, tagged=False, n_columns=2)
    assert with_tags.tags == ["B-NP", "I-NP", "O", "B-NP"]
    assert len(with_tags.columns) == 2
    without = read_conll(path, tagged=False, n_columns=3)
    assert without.tags is None
    assert len(without.columns) == 3
    assert len(read_conll(path, tagged=False).columns) == 3
    assert message(path, tagged=False, n_columns=1) == (f"{path}:1: has 3 columns; expected 1, or 2 with the tag last")
    assert message(path, tagged=False, n_columns=4).startswith(f"{path}:1: has 3 columns; expected 4, or 5")
    assert message(path, n_columns=3) == f"{path}:1: has 3 columns; expected 4, 3 and the tag"


def test_the_tag_in_another_column(write):
    """What stands before it is observed; what stands behind it is nobody's business."""
    path = write(TWO_SENTENCES)
    corpus = read_conll(path, column="2")
    assert (corpus.columns, corpus.tags, corpus.column) == (
        (["The", "dog", "barks", "It"],),
        ["DT", "NN", "VBZ", "PRP"],
        "2",
    )
    assert read_conll(path, column="3").tags == read_conll(path).tags
    for tagged in (True, False):
        assert read_conll(path, tagged, 1, "2").tags == corpus.tags
    bare = write("The\ndog\n", "bare")
    assert read_conll(bare, tagged=False, n_columns=1, column="2").tags is None
    assert message(bare, column="2") == f"{bare}:1: has 1 column, and `column` 2 is the tag's"
    assert message(bare, tagged=False, column="3") == f"{bare}:1: has 1 column, and `column` 3 is the tag's"
    assert message(path, tagged=False, n_columns=2, column="2") == (
        f"{path}:1: `column` 2: the model has 2 columns before the tag"
    )
    for column in ("0", "1", "-1", "²", "x", "1" * 5000):
        with pytest.raises(UsageError, match="give a number from 2; the columns before the tag are observed"):
            read_conll(path, column=column)
    with pytest.raises(UsageError, match="`column` UPOS: columns have names in CoNLL-U only; give its number, from 2"):
        read_conll(path, column="UPOS")


def test_a_sentence_without_end_is_refused_at_its_first_line(write, monkeypatch):
    monkeypatch.setattr(limits, "TOKENS", 3)
    path = write(TWO_SENTENCES + "\n" + "so RB O\n" * 4)
    assert message(path).startswith(f"{path}:7: more than 3 tokens in one sentence: is a blank line missing?")
    monkeypatch.setenv(limits.VARIABLE, "1")
    assert read_conll(path).offsets.tolist() == [0, 3, 4, 8]
    assert read_conll(write(TWO_SENTENCES)).n_tokens == 4


def test_parts(write):
    corpus = read_conll(write(TWO_SENTENCES + "\nnow RB O\nthen RB O\n"))
    part = corpus[1:]
    assert part.columns[0] == ["It", "now", "then"]
    assert part.tags == ["B-NP", "O", "O"]
    assert part.offsets.tolist() == [0, 1, 3]
    assert part.lines.tolist() == [5, 7, 8]
    assert corpus[:2].columns[0] == ["The", "dog", "barks", "It"]
    assert corpus[-1:].columns[0] == ["now", "then"]
    assert len(corpus[2:99]) == 1
    assert len(corpus[3:]) == 0
    assert corpus[3:].n_tokens == 0
    some = corpus.take([2, 0])
    assert (some.columns[0], some.tags) == (["now", "then", "The", "dog", "barks"], ["O", "O", "B-NP", "I-NP", "O"])
    assert (some.offsets.tolist(), some.lines.tolist()) == ([0, 2, 5], [7, 8, 1, 2, 3])
    with pytest.raises(UsageError, match="step 2; use step 1"):
        corpus[::2]


def test_writes_what_conlleval_reads(write, tmp_path):
    corpus = read_conll(write(TWO_SENTENCES))
    predicted = ["B-NP", "O", "O", "O"]
    stream = io.StringIO()
    write_conll(stream, corpus, predicted)
    assert stream.getvalue() == "The DT B-NP B-NP\ndog NN I-NP O\nbarks VBZ O O\n\nIt PRP B-NP O\n\n"
    for name in ("out.txt", "out.gz", "out.xz"):
        write_conll(tmp_path / name, corpus, predicted)
        assert read_conll(tmp_path / name).tags == predicted
    without = io.StringIO()
    write_conll(without, read_conll(write("The DT\n"), tagged=False), ["O"])
    assert without.getvalue() == "The DT O\n\n"
    with pytest.raises(UsageError, match="1 predicted tags for 4 tokens; give one a token"):
        write_conll(io.StringIO(), corpus, ["O"])


# Anything but what separates columns and lines; \ufeff alone would be taken for a byte order mark.
cells = st.text(st.characters(codec="utf-8", exclude_characters=" \t\n\r\ufeff"), min_size=1, max_size=4)
sentences = st.lists(st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=4), min_size=1, max_size=4)


@settings(deadline=None)
@given(sentences)
def test_round_trip(tmp_path_factory, sentences):
    rows = [row for sentence in sentences for row in sentence]
    words, pos, tags = (list(column) for column in zip(*rows, strict=True))
    offsets = np.cumsum([0, *map(len, sentences)])
    path = tmp_path_factory.mktemp("round") / "trip.txt"
    write_conll(path, Corpus("made", (words, pos), None, offsets), tags)
    kept = [s for s in sentences if len(s) > 1 or s[0][0] != "-DOCSTART-"]
    if not kept:
        return
    corpus = read_conll(path)
    assert list(zip(*corpus.columns, corpus.tags, strict=True)) == [row for s in kept for row in s]
    assert corpus.offsets.tolist() == np.cumsum([0, *map(len, kept)]).tolist()


@pytest.mark.data
def test_conll2000(real_data):
    folder = real_data / "conll2000"
    train, test = read_conll(folder / "train.txt.gz"), read_conll(folder / "test.txt.gz")
    assert (len(train), train.n_tokens) == (8936, 211727)
    assert (len(test), test.n_tokens) == (2012, 47377)


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
def write_u(write):
    return lambda text, name="train.conllu": write(text, name)


def test_words_and_their_lines(write_u):
    corpus = read_conll(write_u(TEXT))
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
def test_the_tag_and_what_is_observed(write_u, column, name, observed, first):
    corpus = read_conll(write_u(TEXT), column=column)
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
def test_other_columns_are_refused(write_u, column, message):
    with pytest.raises(UsageError) as error:
        read_conll(write_u(TEXT), column=column)
    assert str(error.value).startswith(message)


def test_by_the_name_or_by_the_content(write_u):
    assert read_conll(write_u(TEXT, "words.txt")).column == "UPOS"
    assert read_conll(write_u(TEXT, "a.conllu.gz")).tags[0] == "VERB"
    # the word '#', and ten columns of which the first is no number, are no CoNLL-U
    assert read_conll(write_u("# # O\na b O\n", "a")).columns[0] == ["#", "a"]
    ten = "\t".join(["word", *"bcdefghij"])
    assert read_conll(write_u(f"{ten}\n", "b")).tags == ["j"]
    no_head = "\t".join(["1", *"bcdefghij"])
    assert read_conll(write_u(f"{no_head}\n", "c")).tags == ["j"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("\tADP\t", " ADP "), ":7: has 8 columns with tabs between them; CoNLL-U has 10"),
        (lambda text: text.replace("\n3\ta\t", "\n3\t\t"), ":7: FORM is empty; CoNLL-U has _ for that"),
        (lambda text: text.replace("\n3\t", "\nx\t"), ":7: ID 'x' is none; give 1, 1-2 or 1.1"),
        (lambda text: "# nothing\n\n", ": holds no token; expected one token a line"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(write_u, change, message):
    path = write_u(change(TEXT))
    with pytest.raises(DataError) as error:
        read_conll(path)
    assert str(error.value).startswith(f"{path}{message}")


def test_a_column_that_is_empty_throughout_has_no_tags(write_u):
    path = write_u(TEXT)
    with pytest.raises(DataError) as error:
        read_conll(write_u("1\ta\t_\t_\t_\t_\t0\t_\t_\t_\n", "empty.conllu"))
    assert str(error.value).endswith("empty.conllu: column UPOS is _ throughout; choose another with `column`")
    assert read_conll(path.with_name("empty.conllu"), tagged=False).tags is None


def test_the_file_with_its_column_filled(write_u):
    corpus = read_conll(write_u(TEXT), tagged=False, n_columns=1)
    written = "".join(filled(corpus.text, corpus.lines.tolist(), ["A", "B", "C", "D", "E", "F"], corpus.column))
    expected = TEXT
    for tag, new in zip(corpus.tags, "ABCDEF", strict=True):
        expected = expected.replace(f"\t{tag}\t", f"\t{new}\t", 1)
    assert written == expected
    assert written.count("\tVERB\t") == 1  # of the empty node


def test_a_model_of_other_columns(write_u):
    with pytest.raises(DataError, match=r"train.conllu: has FORM before UPOS; expected 2 columns before the tag"):
        read_conll(write_u(TEXT), tagged=False, n_columns=2)
    assert len(read_conll(write_u(TEXT), tagged=False, n_columns=2, column="DEPREL").columns) == 2


def test_the_training_files_column_counts_in_a_file_of_its_kind(write_u):
    path, columns = write_u(TEXT), write_u("a N 1 O\n", "columns")
    assert read_conll(path, trained_column="XPOS").column == "XPOS"
    assert read_conll(path, column="UPOS", trained_column="XPOS").column == "UPOS"
    assert read_conll(path, trained_column="3").column == "UPOS"
    assert read_conll(columns, trained_column="3").tags == ["1"]
    assert read_conll(columns, trained_column="XPOS").tags == ["O"]


def test_a_corpus_is_gone_through_sentence_by_sentence(write):
    corpus = read_conll(write("The DT B-NP\ncat NN I-NP\n\nsleeps VBZ O\n"))
    sentences = [[("The", "DT", "B-NP"), ("cat", "NN", "I-NP")], [("sleeps", "VBZ", "O")]]
    assert list(corpus) == sentences
    assert [corpus[0], corpus[-1]] == sentences
    assert list(corpus[1:]) == sentences[1:]
    with pytest.raises(IndexError):
        corpus[2]
