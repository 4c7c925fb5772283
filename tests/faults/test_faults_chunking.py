"""Damaged files of chunking: refused in one line, or read as a plain reader of the format reads them."""

from __future__ import annotations

import functools
import re
import unicodedata

import numpy as np
import pytest
from delivery import agree, agree_packed, delivered, plain_lines
from mutations import Anything, cases, damaged_text, endure, in_file

from sparsezo.storage import limits
from sparsezo.tasks.chunking.features.attributes import AttributeIndex
from sparsezo.tasks.chunking.features.templates import read_templates
from sparsezo.tasks.chunking.io.conll import Corpus, read_conll
from sparsezo.tasks.chunking.io.crfsuite import read_crfsuite
from sparsezo.tasks.chunking.io.raw import corpus_of, read_raw
from sparsezo.tasks.chunking.io.segmentation import documents_of
from sparsezo.tasks.chunking.tags import understood

COLUMNS = (
    "-DOCSTART- -X- O\n\n"
    "Zürich\tNNP  B-LOC\r\n10,000 CD O\n日本 NNP B-LOC\nno\u00a0break NN I-LOC\n\n\n"
    "# NN B-X\n1e5 CD\t\tE-X\n  saw VBD S\nher PRP$ I \n \t \n"
    "😀 SYM O\n𝐱 99999999999999999999 U-Ö\ny NN I-Ö\nz NN L-Ö\nz NN I-Ö\na NN M-Ö\na NN E-Ö\na NN M-Ö\n"
).encode()

CONLLU = (
    "# sent_id = 1\n# text = Vámonos al mar\n"
    "1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tVamos\tir\tVERB\tv1\tMood=Imp|Number=Plur\t0\troot\t0:root\t_\n"
    "2\tnos\tnosotros\tPRON\t_\tCase=Acc\t1\tobj\t_\tSpaceAfter=No\n"
    "2.1\t_\t_\tVERB\t_\t_\t_\t_\t1:conj\t_\n"
    "3\tno break 10\u00a0000\tno\tNUM\t_\t_\t1\tnummod\t_\t_\n\n"
    "# sent_id = 2\n1\t日本\t日本\tPROPN\tn\t_\t0\troot\t_\t_\r\n\n"
).encode()

CRFSUITE = (
    "B-NP\tw[0]=An\tpos[0]=DT\t__BOS__\r\nI-NP\tw[0]=10\\:30\\\\x\tlength:0.5\t\tw[1]=é:-1.25e-3\nO\n\n"
    "O\t日本\\a:\tnum:100000000000000000001\n\n\nB-Ö\\:x\tw[0]=\u00a0y \tz:+.5\n"
).encode()

CRFPP = (
    "# Unigram\nU00:%x[-2,0]\nU01:%x[0,0]/%x[+1, 1] # word\n\n  U02:é%x[ 0 ,0]b  \nU\nU:%x[1,0]\nU:%x[0,0]\n"
    "U99:\r\nB\nB01:%x[-100,1]\n"
).encode()

WAPITI = (
    'u:suf=%m[0,0,".?.?$"] # the end\nu:%X[-1,0]/%x[@1,1]\n*:%t[0,0,"^\\u"]\nb\nu:shape=%s[+1,0]%S[@-1,0]\n'
    'U01:%x[0,0]\nu:%M[0,1,"^\\d*[é]\\p?x"]\nb:%T[0,0,"\\"\\."]\n'
).encode()


def plain_sentences(rows):
    """(line, cells) of the tokens of each sentence; no cells end one."""
    sentences = [[]]
    for number, cells in [*enumerate(rows, start=1), (0, [])]:
        if cells is None:
            continue  # a line that is not there
        if cells:
            sentences[-1].append((number, cells))
        elif sentences[-1]:
            sentences.append([])
    sentences = [each for each in sentences if each and not (len(each) == 1 and each[0][1][0] == "-DOCSTART-")]
    if not sentences or max(map(len, sentences)) > limits.TOKENS:
        raise ValueError("no token, or a sentence without end")
    if len({len(cells) for sentence in sentences for _, cells in sentence}) > 1:
        raise ValueError("columns differ")
    return sentences


def table(sentences):
    """Columns, where sentences stop, and lines."""
    tokens = [token for sentence in sentences for token in sentence]
    stops = np.cumsum([0, *map(len, sentences)]).tolist()
    return [list(column) for column in zip(*(cells for _, cells in tokens), strict=True)], stops, [n for n, _ in tokens]


def as_conlleval(tags, stops):
    """Chunks in IOB2: one starts at B, S and U, behind E, S, L and U, behind O, and where the type changes."""
    spelled = []
    for i, tag in enumerate(tags):
        if not re.fullmatch(r"O|[BIESLUM](-.+)?", tag, re.DOTALL):
            raise ValueError(f"{tag} is no tag of chunks")
        before = tags[i - 1] if i not in stops else "O"
        starts = tag[0] in "BSU" or before == "O" or before[0] in "ESLU" or before[2:] != tag[2:]
        spelled.append("O" if tag == "O" else ("B" if starts else "I") + tag[1:])
    return spelled


def plain_columns(data, tagged=True):
    columns, stops, lines = table(plain_sentences([re.findall("[^ \t]+", line) for line in plain_lines(data)]))
    if not tagged:
        tags = columns.pop() if len(columns) == 3 else None
        if len(columns) != 2:
            raise ValueError("not 2 columns")
        return columns, tags, stops, lines
    if len(columns) < 2:
        raise ValueError("no tags")
    return columns[:-1], as_conlleval(columns[-1], stops), stops, lines


def content(corpus):
    return list(corpus.columns), corpus.tags, corpus.offsets.tolist(), corpus.lines.tolist()


def read_chunks(path):
    return content(understood(read_conll(path), "iob2")[1])


@pytest.mark.parametrize("n", cases(50))
@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_damaged_packed_columns(n, ending, tmp_path):
    agree_packed(tmp_path / f"x.txt{ending}", read_chunks, COLUMNS, n, plain_columns)


def plain_text(data):
    """The documents of a text file, and all that is not white space of each."""
    text = data.decode("utf-8").removeprefix("\ufeff")
    texts = [text] if documents_of(text) == "file" else [each for each in re.split("\r\n|\r|\n", text) if each.strip()]
    seen = ["".join(c for c in each if visible(c)) for each in texts]
    if not any(seen):
        raise ValueError("no word")
    return texts, seen


def visible(c):
    return not c.isspace() and unicodedata.category(c) not in ("Cc", "Cf", "Cn", "Cs", "Mn")


def read_text(path):
    corpus = corpus_of(read_raw([str(path)], "text"), str(path))
    source, words = corpus.source, [""] * len(corpus.source.documents)
    for sentence in range(len(corpus)):
        for i in range(*corpus.offsets[sentence : sentence + 2].tolist()):
            assert corpus.columns[0][i] == source.text(sentence, i, i)
            words[source.of_sentence[sentence]] += "".join(c for c in corpus.columns[0][i] if visible(c))
    return [each.text for each in source.documents], words


TEXT = "Zürich is\tno\u00a0break.\r\n\n  日本 😀\n \t \none (or 2,5 %)\n".encode()


def plain_conllu(data, kept=(1, 3)):
    rows = []
    for line in plain_lines(data):
        cells = line.split("\t")
        if not line.strip():
            rows.append([])
        elif line.startswith("#"):
            rows.append(None)
        elif len(cells) != 10 or not re.fullmatch("[0-9]+([-.][0-9]+)?", cells[0]):
            raise ValueError("no line of CoNLL-U")
        elif not cells[0].isdigit():
            rows.append(None)
        elif "" in cells:
            raise ValueError("an empty cell")
        else:
            rows.append([cells[column] for column in kept])
    columns, stops, lines = table(plain_sentences(rows))
    if set(columns[-1]) == {"_"}:
        raise ValueError("no tags")
    return columns[:-1], columns[-1], stops, lines


def read_columns(path, **how):
    return content(read_conll(path, **how))


partial = functools.partial
FORMATS = {  # the file's name, a sample, how it is read, and how a plain reader reads it
    "columns": ("x.txt", COLUMNS, read_chunks, plain_columns),
    "no tags": (
        "x.txt",
        COLUMNS,
        partial(read_columns, tagged=False, n_columns=2),
        partial(plain_columns, tagged=False),
    ),
    "text": ("x.txt", TEXT, read_text, plain_text),
    "conllu": ("x.conllu", CONLLU, read_columns, plain_conllu),
    "deprel": ("x.conllu", CONLLU, partial(read_columns, column="DEPREL"), partial(plain_conllu, kept=(1, 3, 7))),
}


@pytest.mark.parametrize("n", cases(100))
@pytest.mark.parametrize("format", FORMATS)
def test_damaged_files(n, format, tmp_path):
    name, sample, read, plain = FORMATS[format]
    agree(delivered(tmp_path / name, read, standard_input=name == "x.txt"), sample, n, plain)


def read_attributes(path):
    corpus = read_crfsuite(path)
    some = corpus.listed
    entries = [(some.names[i], value) for i, value in zip(some.ids.tolist(), some.values.tolist(), strict=True)]
    tokens = [entries[a:b] for a, b in zip(some.starts[:-1].tolist(), some.starts[1:].tolist(), strict=True)]
    return corpus.tags, tokens, corpus.offsets.tolist(), corpus.lines.tolist()


@pytest.mark.parametrize("n", cases(100))
def test_damaged_crfsuite(n, tmp_path):
    reading = delivered(tmp_path / "x.crfsuite", read_attributes)
    endure(reading, CRFSUITE, damaged_text, n, reference=lambda data: Anything)


# ---- templates: read, and filled with three sentences, or refused; test_templates.py says what they mean ----

SENTENCES = [
    [("Zürich", "NNP"), ("10,000", "7é"), ("saw", "12x")],
    [("日本.", "NN")],
    [('a"b', "x"), ("USA-Today", "1é!x"), ("été", "ÉTÉ"), ("saw", "#")],
]
_tokens = [token for sentence in SENTENCES for token in sentence]
CORPUS = Corpus(
    "x", tuple(map(list, zip(*_tokens, strict=True))), None, np.cumsum([0, *map(len, SENTENCES)]).astype(np.int64)
)


def read_template_attributes(path):
    templates = read_templates(path)
    index = AttributeIndex.fit(CORPUS, templates)
    names = [name[0].lower() + name[1:] for name in index.names()]
    return [[names[number] for number in row] for row in index.transform(CORPUS).tolist()]


@pytest.mark.parametrize("n", cases(100))
@pytest.mark.parametrize("sample", [CRFPP, WAPITI], ids=["crfpp", "wapiti"])
def test_damaged_templates(n, sample, tmp_path):
    reading = in_file(tmp_path / "template", read_template_attributes)
    endure(reading, sample, damaged_text, n, reference=lambda data: Anything)
