"""brat, spaCy, columns and datasets: what these tools write is read, and what we write these tools read."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import lzma
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sparsezo import messages
from sparsezo.errors import DataError, NotInstalledError, SparsezoError, UsageError
from sparsezo.tasks.chunking.io.conll import read_conll
from sparsezo.tasks.chunking.io.documents import Document, Span, tagged
from sparsezo.tasks.chunking.io.formats import FORMATS, detect_format, read_documents, write_documents

TEXT = "😀 Ana  viu\r\nSão Paulo's\tmar\u00a0azul. E\u0301!"
TOKENS = ((0, 1), (2, 5), (7, 10), (12, 15), (16, 21), (21, 23), (24, 32), (32, 33), (34, 36), (36, 37))
SPANS = (Span(2, 5, "PER", 0.75), Span(12, 21, "LOC"))
WHOLE = Document(TEXT, "7", SPANS, tokens=TOKENS, sentences=(0, 8, 10), meta={"url": "u", "n": [1, None]})
TAGS = ["O", "B-PER", "O", "B-LOC", "I-LOC", *["O"] * 5]


def everything(path, format=None):
    with messages.gathered() as remarks:
        documents = list(read_documents(path, format))
    return documents, [remark.removeprefix(f"{path}: ") for remark in remarks]


# ---- brat ----


@pytest.fixture
def brat(tmp_path):
    def making(ann, text="In New York, 😀 Madrid\r\nand Rome"):
        (tmp_path / "a.txt").write_bytes(text.encode())
        (tmp_path / "a.ann").write_bytes(ann.encode())
        return tmp_path

    return making


def test_brat_as_brat_writes_it(brat):
    folder = brat(
        "T1\tLOC 3 11\tNew York\n"
        "T2\tLOC 15 21\tMadrid\n"
        "#1\tAnnotatorNotes T2\t0.93\n"
        "#2\tAnnotatorNotes T1\tis this one right?\n"
        "R1\tNear Arg1:T1 Arg2:T2\n"
        "A1\tNegation T1\n"
        "*\tEquiv T1 T2\n"
    )
    (folder / "b").mkdir()
    (folder / "b" / "c.txt").write_bytes(b"nobody labelled this")
    (folder / ".stats_cache").write_bytes(b"x")
    documents, remarks = everything(folder)
    assert documents == [
        Document("In New York, 😀 Madrid\r\nand Rome", "a", (Span(3, 11, "LOC"), Span(15, 21, "LOC", 0.93))),
        Document("nobody labelled this", "b/c"),
    ]
    assert remarks == ["4 lines of brat that are no spans passed over"]
    for name in ("a.ann", "a.txt"):
        assert everything(folder / name, "brat")[0] == documents[:1]
    assert everything(folder / "a.ann")[0] == documents[:1]


def test_brat_spans_of_several_parts(brat):
    folder = brat(
        "T1\tLOC 3 6;15 21\tNew Madrid\nT2\tLOC 15 21;23 26\tMadrid and\n"
        "T3\tLOC 15 26\tMadrid  and\nT4\tX 0 2;0 2\tIn In\n"
    )
    documents, remarks = everything(folder)
    assert documents[0].spans == (Span(3, 21, "LOC"), Span(15, 26, "LOC"), Span(15, 26, "LOC"), Span(0, 2, "X"))
    assert remarks == ["1 span of several parts, each read as one from its first to its last character"]


@pytest.mark.parametrize(
    ("ann", "words"),
    [
        ("T1\tLOC 3 11\tNew York\nT2\tLOC 3 11\tOld York", "a.ann:2: span 3 to 11 .* 'Old York' by its own words"),
        ("T1\tLOC 3 110\tNew York", "a.ann:1: span 3 to 110"),
        ("T1\tLOC -3 11", "a.ann:1: span -3 to 11"),
        ("T1\tLOC 3 6;15 99\tNew x", "a.ann:1: span 3 to 99"),
        ("T1 LOC 3 11 New York", "a.ann:1: .* is no line of brat"),
        ("T1\tLOC three 11\tNew York", "a.ann:1: .* is no line of brat"),
        ("hello", "a.ann:1: 'hello' is no line of brat"),
    ],
)
def test_what_is_wrong_in_brats_lines(brat, ann, words):
    with pytest.raises(DataError, match=words):
        everything(brat(ann))


def test_brat_without_its_text(tmp_path):
    (tmp_path / "a.ann").write_text("")
    with pytest.raises(DataError, match=r"a.ann: there is no a.txt beside it"):
        everything(tmp_path)
    (tmp_path / "a.ann").unlink()
    with pytest.raises(DataError, match=r"has no NAME.txt in it"):
        everything(tmp_path, "brat")


def test_brat_as_we_write_it(tmp_path):
    write_documents([WHOLE, Document("x", "a/b")], "brat", tmp_path / "out")
    assert (tmp_path / "out" / "7.txt").read_bytes() == TEXT.encode()
    assert (tmp_path / "out" / "7.ann").read_text("utf-8") == (
        "T1\tPER 2 5\tAna\n#1\tAnnotatorNotes T1\t0.75\nT2\tLOC 12 21\tSão Paulo\n"
    )
    assert (tmp_path / "out" / "annotation.conf").read_text("utf-8").startswith("[entities]\nPER\nLOC\n[relations]")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out"]
    assert not (tmp_path / "out" / "a" / "b.ann").exists()
    with pytest.raises(UsageError, match="is a folder with files in it"):
        write_documents([WHOLE], "brat", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    write_documents([WHOLE], "brat", tmp_path / "empty")
    assert [each.spans for each in everything(tmp_path / "empty")[0]] == [SPANS]


@pytest.mark.parametrize("id", ["..", "../x", "/x", "a//b", "a/./b", "", "x\ny", "a" * 300, ".x", "con:x"])
def test_ids_that_are_no_names_of_files(tmp_path, id):
    (tmp_path / "o").mkdir()
    with messages.gathered() as remarks:
        write_documents(
            [Document("x", id), Document("y", "000001"), Document("z", "000001")], "brat", tmp_path / "o" / "p"
        )
    assert sorted(each.name for each in tmp_path.iterdir()) == ["o"]
    documents, _ = everything(tmp_path / "o" / "p")
    assert sorted(each.text for each in documents) == ["x", "y", "z"]
    assert "that cannot name a file, or twice: a number stands for it" in remarks[0]


def test_brat_in_a_zip(tmp_path):
    write_documents([WHOLE], "brat", tmp_path / "out.zip")
    stream = io.BytesIO()
    write_documents([WHOLE], "brat", stream)
    assert stream.getvalue() == (tmp_path / "out.zip").read_bytes()  # and with no time of day in it
    assert sorted(zipfile.ZipFile(stream).namelist()) == ["7.ann", "7.txt", "annotation.conf"]
    assert everything(tmp_path / "out.zip")[0] == [Document(TEXT, "7", SPANS)]
    with pytest.raises(UsageError, match="brat is no text"):
        write_documents([WHOLE], "brat", io.StringIO())


@pytest.mark.parametrize("label", ["", "a b", "a\tb"])
def test_brats_labels_are_words(tmp_path, label):
    with pytest.raises(DataError, match=r"document 1 \('7'\): label '.*': brat's labels are words"):
        write_documents([Document("x", "7", (Span(0, 1, label),))], "brat", tmp_path / "out")
    assert not list(tmp_path.iterdir())  # nothing is left of what failed


# ---- spaCy ----


def docs(path):
    from spacy.tokens import DocBin
    from spacy.vocab import Vocab

    return list(DocBin().from_bytes(Path(path).read_bytes()).get_docs(Vocab()))


def test_spacy_loads_what_we_write(tmp_path):
    write_documents([WHOLE], "spacy", tmp_path / "x.spacy")
    (doc,) = docs(tmp_path / "x.spacy")
    assert doc.text == TEXT
    assert [(ent.start_char, ent.end_char, ent.label_, ent.text) for ent in doc.ents] == [
        (2, 5, "PER", "Ana"),
        (12, 21, "LOC", "São Paulo"),
    ]
    assert [token.text for token in doc if not token.text.isspace()] == WHOLE.words()
    assert {token.ent_iob_ for token in doc} == {"O", "B", "I"}
    assert [sentence.start_char for sentence in doc.sents] == [0, 34]
    assert doc.user_data["id"] == "7"
    assert list(doc.user_data["probabilities"]) == [0.75, None]
    assert everything(tmp_path / "x.spacy")[0] == [WHOLE]


def test_unknown_tokens_are_missing_in_spacy(tmp_path):
    unlabelled, some = Document("a b", tokens=((0, 1), (2, 3))), (Span(0, 1, "X"),)
    write_documents([unlabelled, Document("a b", spans=some, missing=True)], "spacy", tmp_path / "x.spacy")
    first, second = docs(tmp_path / "x.spacy")
    assert [token.ent_iob_ for token in first] == ["", ""]
    assert [token.ent_iob_ for token in second] == ["B", ""]
    found, _ = everything(tmp_path / "x.spacy")
    assert (found[0], found[1].spans, found[1].missing) == (unlabelled, some, True)


def test_spacys_own_files(tmp_path):
    """Written by spaCy alone: nothing of ours in it."""
    import spacy
    from spacy.tokens import DocBin

    nlp = spacy.blank("en")
    doc = nlp("Ana's in  New York.\n")
    doc.set_ents([doc.char_span(0, 3, "PER"), doc.char_span(10, 18, "LOC")])
    partly = nlp("a b c")
    partly.set_ents([partly.char_span(0, 1, "X")], outside=[partly[1:2]], default="missing")
    DocBin(docs=[doc, partly, nlp("new")]).to_disk(tmp_path / "x.spacy")
    first, second, third = everything(tmp_path / "x.spacy")[0]
    assert (first.text, first.spans, first.missing) == (
        "Ana's in  New York.\n",
        (Span(0, 3, "PER"), Span(10, 18, "LOC")),
        False,
    )
    assert first.words() == ["Ana", "'s", "in", "New", "York", "."]
    assert (second.spans, second.missing) == ((Span(0, 1, "X"),), True)
    assert (third.spans, third.id, third.sentences) == (None, None, (0, 1))


def test_spacy_tokens_are_cut_only_where_a_span_needs_it(tmp_path):
    spans = (Span(0, 4, "A"), Span(5, 8, "B"))
    write_documents([Document("Visca Barça!", spans=spans)], "spacy", tmp_path / "x.spacy")
    (doc,) = docs(tmp_path / "x.spacy")
    assert [token.text for token in doc] == ["Visc", "a", " ", "Ba", "rça", "!"]
    assert [(ent.start_char, ent.end_char) for ent in doc.ents] == [(0, 4), (5, 8)]


def test_spacy_needs_labels(tmp_path):
    with pytest.raises(DataError, match="document 1: a span without a label"):
        write_documents([Document("x", spans=(Span(0, 1, ""),))], "spacy", tmp_path / "x.spacy")


def test_no_docbin(tmp_path):
    (tmp_path / "x.spacy").write_bytes(b"no DocBin")
    with pytest.raises(DataError, match=r"x.spacy: is no whole DocBin of spaCy \(ValueError: "):
        everything(tmp_path / "x.spacy")


# ---- columns ----


def test_columns_as_we_write_them(tmp_path):
    write_documents([WHOLE], "conll", tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_text("utf-8") == (
        "😀 O\nAna B-PER\nviu O\nSão B-LOC\nPaulo I-LOC\n's O\nmar\u00a0azul O\n. O\n\nE\u0301 O\n! O\n\n"
    )
    write_documents([WHOLE, Document("b", "a  c", (), tokens=((0, 1),))], "conll", tmp_path / "y.txt")
    assert (tmp_path / "y.txt").read_text("utf-8").count("-DOCSTART-") == 2
    assert (tmp_path / "y.txt").read_text("utf-8").endswith("\n\n-DOCSTART- a c O\n\nb O\n\n")
    corpus = read_conll(tmp_path / "y.txt")
    assert (corpus.columns[0], corpus.tags) == ([*WHOLE.words(), "b"], [*TAGS, "O"])


def test_tokens_with_blanks_take_several_lines(tmp_path):
    text = "New  York\x85x, \n"
    document = Document(text, spans=(Span(0, 11, "LOC"), Span(11, 12, "X")), tokens=((0, 11), (11, 12), (13, 14)))
    with messages.gathered() as remarks:
        write_documents([document], "conll", tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_text("utf-8") == "New B-LOC\nYork I-LOC\nx I-LOC\n, B-X\n\n"
    assert remarks == [f"{tmp_path / 'x.txt'}: 2 tokens with blanks in it: a line for each of its parts"]


def test_a_chunk_that_begins_with_a_blank_token(tmp_path):
    document = Document("a\n b", spans=(Span(0, 1, "X"), Span(1, 4, "X")), tokens=((0, 1), (1, 2), (3, 4)))
    with messages.gathered():
        write_documents([document], "conll", tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_text("utf-8") == "a B-X\nb B-X\n\n"


def test_spans_over_the_end_of_a_sentence(tmp_path):
    document = Document("a b c", spans=(Span(0, 5, "X"),), tokens=((0, 1), (2, 3), (4, 5)), sentences=(0, 1, 3))
    with messages.gathered() as remarks:
        write_documents([document], "conll", tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_text("utf-8") == "a B-X\n\nb B-X\nc I-X\n\n"
    assert remarks[0].endswith("1 span cut in two where a sentence ends")


def test_columns_of_all_kinds_are_read(put):
    path = put("x.txt", "In IN O\nSan NNP B-LOC\nSebastián NNP E-LOC\n\n. . O\n")
    assert everything(path)[0][0].spans == (Span(3, 16, "LOC"),)
    path.write_text("In\nSan\n\n.\nx\n")
    assert [(each.text, each.spans) for each in everything(path)[0]] == [("In San", None), (". x", None)]
    path.write_text("In IN\nSan NNP\n\n. .\n")
    with pytest.raises(DataError, match=r"x.txt:1: 'IN' in the last column is no chunk tag"):
        everything(path, "conll")
    conllu = put("x.conllu", "1\tIn\tin\tADP\t_\t_\t0\t_\t_\t_\n")
    documents, remarks = everything(conllu)
    assert [(each.text, each.spans) for each in documents] == [("In", None)]
    assert remarks == ["1 sentence of CoNLL-U without chunk tags: only the words are read"]


@pytest.mark.parametrize("format", ["conll", "datasets"])
def test_tags_need_tokens(tmp_path, format):
    with pytest.raises(SparsezoError, match=r"document 2 \('8'\): has no tokens, which tags need"):
        write_documents([WHOLE, Document("x", "8", ())], format, tmp_path / "x")
    assert not list(tmp_path.iterdir())


# ---- datasets ----


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """Hugging Face's library, with a cache of its own and no network."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "hf" / "datasets"))
    datasets.disable_progress_bars()
    return datasets


ROWS = [
    {"id": "7-1", "tokens": WHOLE.words()[:8], "ner_tags": TAGS[:8]},
    {"id": "7-2", "tokens": WHOLE.words()[8:], "ner_tags": TAGS[8:]},
]


def test_datasets_loads_our_json(tmp_path, offline):
    write_documents([WHOLE], "datasets", tmp_path / "x.jsonl")
    loaded = offline.load_dataset("json", data_files=str(tmp_path / "x.jsonl"), split="train")
    assert loaded.to_list() == ROWS


def test_datasets_loads_our_parquet(tmp_path, offline):
    write_documents([WHOLE, Document("b", tokens=((0, 1),))], "datasets", tmp_path / "x.parquet")
    loaded = offline.load_dataset("parquet", data_files=str(tmp_path / "x.parquet"), split="train")
    labels = loaded.features["ner_tags"].feature
    assert labels.names == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    rows = loaded.to_list()
    assert rows.pop() == {"id": "2", "tokens": ["b"], "ner_tags": None}
    assert [{**row, "ner_tags": [labels.int2str(tag) for tag in row["ner_tags"]]} for row in rows] == ROWS
    first, second, third = everything(tmp_path / "x.parquet")[0]
    assert tagged(first, "x")[0] + tagged(second, "x")[0] == TAGS
    assert (first.id, first.words(), third.spans) == ("7-1", WHOLE.words()[:8], None)


def test_datasets_own_files(tmp_path, offline):
    labels = offline.Sequence(offline.ClassLabel(names=["O", "B-LOC", "I-LOC"]))
    word = offline.Value("string")
    columns = {"id": word, "tokens": offline.Sequence(word), "ner_tags": labels, "n": offline.Value("int64")}
    features = offline.Features(columns)
    rows = [
        {"id": "a", "tokens": ["In", "New", "York"], "ner_tags": [0, 1, 2], "n": 5},
        {"id": "b", "tokens": ["", "x"], "ner_tags": [0, 0], "n": 6},
    ]
    made = offline.Dataset.from_list(rows, features=features)
    wanted = [
        Document("In New York", "a", (Span(3, 11, "LOC"),), (), (), False, ((0, 2), (3, 6), (7, 11)), (0, 3), {"n": 5}),
        Document("x", "b", (), (), (), False, ((0, 1),), (0, 1), {"n": 6}),
    ]
    made.save_to_disk(tmp_path / "folder")
    made.to_parquet(tmp_path / "x.parquet")
    for path in (tmp_path / "folder", tmp_path / "x.parquet", *(tmp_path / "folder").glob("*.arrow")):
        assert detect_format(path) == "datasets"
        assert everything(path) == (wanted, ["1 empty token left out"])
    offline.DatasetDict({"train": made, "test": made}).save_to_disk(tmp_path / "both")
    with pytest.raises(DataError, match="holds several data sets; name one of them: test, train"):
        everything(tmp_path / "both")
    assert everything(tmp_path / "both" / "test")[0] == wanted


def test_numbers_without_names(put):
    path = put("x.jsonl", '{"tokens": ["a"], "ner_tags": [3]}')
    with pytest.raises(DataError, match=r"x.jsonl:1: tag 3 is a number, and nothing says what it means"):
        everything(path)
    path.write_text(
        '{"tokens": ["a", "b"], "ner_tags": ["B-X", null]}\n{"tokens": ["a", "b"], "ner_tags": ["O", -100]}'
    )
    documents, _ = everything(path)
    assert [(each.spans, each.missing) for each in documents] == [((Span(0, 1, "X"),), True), ((), True)]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"tokens": "a b"}, "has no 'tokens', a list of words; it has 'tokens'"),
        ({"tokens": ["a", None]}, "has no 'tokens', a list of words"),
        ({"tokens": ["a"], "ner_tags": ["O", "O"]}, "expected one for each of 1 tokens"),
        ({"tokens": ["a"], "ner_tags": ["NOUN"]}, "tag 'NOUN' is no chunk tag"),
        ({"tokens": ["a"], "ner_tags": [0.5]}, "tag '0.5': expected a word or a number"),
    ],
)
def test_what_is_wrong_in_rows(put, row, words):
    path = put("x.jsonl", json.dumps(row))
    with pytest.raises(DataError, match=f"x.jsonl:1: .*{words}"):
        everything(path, "datasets")


def test_a_broken_folder_of_datasets(tmp_path):
    (tmp_path / "state.json").write_text('{"_data_files": [{"filename": "../x"}]}')
    with pytest.raises(DataError, match=r"state.json: cannot be read"):
        everything(tmp_path)


# ---- all of them ----


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_wrong_is_not_written(tmp_path, format):
    (tmp_path / "x").mkdir() if format == "brat" else (tmp_path / "x").write_bytes(b"before")
    good, bad = WHOLE, Document("abc", "8", (Span(1, 9, "X"),), tokens=((0, 3),))
    with pytest.raises(DataError, match=r"document 2 \('8'\): span 1 to 9 \(X\) of a text of 3 characters"):
        write_documents([good, bad], format, tmp_path / "x")
    for document in (Document("a\ud800", tokens=()), Document("a", spans=(Span(0, 1, "\udc00"),), tokens=((0, 1),))):
        with pytest.raises(DataError, match="document 1: half of a surrogate pair"):
            write_documents([document], format, tmp_path / "x")
    with pytest.raises(DataError, match="document 1: token 0 to 9"):
        write_documents([Document("abc", tokens=((0, 9),))], format, tmp_path / "x")
    if format == "brat":
        assert not list((tmp_path / "x").iterdir())
    else:
        assert (tmp_path / "x").read_bytes() == b"before"
    assert [each.name for each in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("format", [each for each in FORMATS if each != "brat"])
@pytest.mark.parametrize(("suffix", "unpack"), [(".gz", gzip.decompress), (".xz", lzma.decompress)])
def test_packed_files(tmp_path, format, suffix, unpack):
    write_documents([WHOLE], format, tmp_path / f"x{suffix}")
    stream = io.BytesIO()
    write_documents([WHOLE], format, stream)
    assert unpack((tmp_path / f"x{suffix}").read_bytes()) == stream.getvalue()
    assert everything(tmp_path / f"x{suffix}", format)[0][0].spans is not None


@pytest.mark.parametrize("format", FORMATS)
def test_documents_are_written_as_they_come(format):
    """One is asked for when those before it are written; formats that need all of them say so by waiting."""
    out = io.BytesIO()
    sizes = []

    def coming():
        for number in range(6):
            sizes.append(len(out.getvalue()))
            yield Document("In Madrid", str(number), (Span(3, 9, "LOC"),), tokens=((0, 2), (3, 9)))

    write_documents(coming(), format, out)
    grows = all(a < b for a, b in itertools.pairwise(sizes[2:]))
    assert grows == (format != "spacy")


@pytest.mark.parametrize("format", ["jsonl", "prodigy", "label-studio", "datasets"])
def test_a_list_of_one_line_and_a_mark_of_order(tmp_path, format):
    path = tmp_path / "x"
    write_documents([WHOLE], format, path)
    wanted = everything(path, format)[0]
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert everything(path, format)[0] == wanted


def test_what_is_lost_is_said(tmp_path):
    document = Document("a b", None, (Span(0, 1, "X"),), (Span(0, 1, "X"),), (Span(2, 3, "X"),), True, ((0, 1), (2, 3)))
    for format in FORMATS:
        with messages.gathered() as remarks:
            write_documents([document, document], format, tmp_path / format)
        said = " ".join(remarks)
        keeps_all = format in ("jsonl", "spacy")
        assert ("2 suggested spans left out" in said) == (not keeps_all and format != "label-studio")
        assert ("2 rejected spans left out" in said) == (not keeps_all and format != "prodigy")
        assert ("2 documents of which not all is known" in said) == (not keeps_all and format != "prodigy")


def test_heavy_libraries_are_asked_for(tmp_path, monkeypatch):
    for name in ("spacy", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NotInstalledError, match="this needs spacy; install with: pip install spacy"):
        write_documents([WHOLE], "spacy", tmp_path / "x.spacy")
    with pytest.raises(NotInstalledError, match="this needs pyarrow; install with: pip install pyarrow"):
        write_documents([WHOLE], "datasets", tmp_path / "x.parquet")
    for format in ("jsonl", "conll", "brat", "prodigy", "label-studio", "datasets"):
        write_documents([WHOLE], format, tmp_path / format)
        assert everything(tmp_path / format, format)[0]


def test_nothing_heavy_is_loaded_by_itself():
    script = (
        "import sys; from sparsezo.tasks.chunking.io.formats import write_documents;"
        "print([each for each in ('spacy', 'pyarrow', 'datasets', 'pandas') if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
