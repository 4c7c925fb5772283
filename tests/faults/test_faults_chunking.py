"""Damaged files of chunking: refused in one line, or read as a plain reader of the format reads them."""

from __future__ import annotations

import functools
import re
import unicodedata

import numpy as np
import pytest
from delivery import agree, agree_packed, delivered, plain_lines
from mutations import cases

from sparsezo.storage import limits
from sparsezo.tasks.chunking.attributes import AttributeIndex
from sparsezo.tasks.chunking.conll import Corpus, read_conll
from sparsezo.tasks.chunking.crfsuite import read_crfsuite
from sparsezo.tasks.chunking.raw import corpus_of, read_raw
from sparsezo.tasks.chunking.segmentation import documents_of
from sparsezo.tasks.chunking.tags import understood
from sparsezo.tasks.chunking.templates import read_templates

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


@pytest.mark.parametrize("n", cases(300))
def test_damaged_columns(n, tmp_path):
    agree(delivered(tmp_path / "x.txt", read_chunks), COLUMNS, n, plain_columns)


@pytest.mark.parametrize("n", cases(300))
def test_damaged_columns_without_tags(n, tmp_path):
    def read(path):
        return content(read_conll(path, tagged=False, n_columns=2))

    agree(delivered(tmp_path / "x.txt", read), COLUMNS, n, functools.partial(plain_columns, tagged=False))


@pytest.mark.parametrize("n", cases(150))
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


@pytest.mark.parametrize("n", cases(300))
def test_damaged_running_text(n, tmp_path):
    sample = "Zürich is\tno\u00a0break.\r\n\n  日本 😀\n \t \none (or 2,5 %)\n".encode()
    agree(delivered(tmp_path / "x.txt", read_text), sample, n, plain_text)


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


@pytest.mark.parametrize("n", cases(300))
@pytest.mark.parametrize(("column", "kept"), [(None, (1, 3)), ("DEPREL", (1, 3, 7))])
def test_damaged_conllu(n, column, kept, tmp_path):
    def read(path):
        return content(read_conll(path, column=column))

    reading = delivered(tmp_path / "x.conllu", read, standard_input=False)
    agree(reading, CONLLU, n, functools.partial(plain_conllu, kept=kept))


def plain_crfsuite(data):
    tags, tokens, rows = [], [], []
    for line in plain_lines(data):
        fields = [named(field) for field in line.split("\t") if field] if line.strip() else []
        rows.append(fields)
        if fields:
            if fields[0][1] is not None or line.lstrip("\t").startswith("@"):
                raise ValueError("no label")
            tags.append(fields[0][0])
            tokens.append([(name, value_of(value)) for name, value in fields[1:]])
    sentences = plain_sentences([[0] if fields else [] for fields in rows])
    if not any(tokens):
        raise ValueError("no attribute")
    return tags, tokens, *table(sentences)[1:]


def named(field):
    """A field up to its colon, and what is behind it; a backslash takes the meaning from a colon and a backslash."""
    name, at = "", 0
    while at < len(field):
        if field[at] == "\\" and field[at + 1 : at + 2] in (":", "\\"):
            at += 1
        elif field[at] == ":":
            return name, field[at + 1 :]
        name += field[at]
        at += 1
    return name, None


def value_of(text):
    if not text:
        return 1.0
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text) or abs(float(text)) >= 1e30:
        raise ValueError("no value")
    return float(np.float32(float(text)))


def read_attributes(path):
    corpus = read_crfsuite(path)
    some = corpus.listed
    entries = [(some.names[i], value) for i, value in zip(some.ids.tolist(), some.values.tolist(), strict=True)]
    tokens = [entries[a:b] for a, b in zip(some.starts[:-1].tolist(), some.starts[1:].tolist(), strict=True)]
    return corpus.tags, tokens, corpus.offsets.tolist(), corpus.lines.tolist()


@pytest.mark.parametrize("n", cases(300))
def test_damaged_crfsuite(n, tmp_path):
    agree(delivered(tmp_path / "x.crfsuite", read_attributes), CRFSUITE, n, plain_crfsuite)


# ---- templates: what they make of three sentences ----

SENTENCES = [
    [("Zürich", "NNP"), ("10,000", "7é"), ("saw", "12x")],
    [("日本.", "NN")],
    [('a"b', "x"), ("USA-Today", "1é!x"), ("été", "ÉTÉ"), ("saw", "#")],
]
_tokens = [token for sentence in SENTENCES for token in sentence]
CORPUS = Corpus(
    "x", tuple(map(list, zip(*_tokens, strict=True))), None, np.cumsum([0, *map(len, SENTENCES)]).astype(np.int64)
)
MACRO = re.compile(r'%([xXmMtTsS])\[ *(@?)([+-]?[0-9]+) *, *([0-9]+) *(?:, *"((?:[^"\\]|\\.)*)" *)?\]')
CLASSES = {
    "a": str.isalpha,
    "d": str.isdecimal,
    "l": str.islower,
    "p": lambda c: unicodedata.category(c)[0] in "PS",
    "s": str.isspace,
    "u": str.isupper,
    "w": lambda c: c.isalpha() or c.isdecimal(),
}


def plain_templates(data):
    """The attributes of each token of ``SENTENCES``."""
    lines = [line.strip() for line in plain_lines(data)]
    lines = [line for line in lines if line and not line.startswith("#")]
    if any(line[0] in "ub*" or re.search(r"%[XmMtTsS]\[", line) for line in lines):
        lines = [line.split("#")[0].rstrip() for line in lines]  # Wapiti's comments
    templates = [parsed(line) for line in lines]
    templates = [each for each in templates if len(each) > 1 or each[0][0] not in "bB"]
    if not templates:
        raise ValueError("no template")
    return [
        ["".join(filled(part, sentence, i) for part in each) for each in templates]
        for sentence in SENTENCES
        for i in range(len(sentence))
    ]


def parsed(line):
    """Text and macros by turns."""
    parts, at = [], 0
    for found in MACRO.finditer(line):
        parts += [line[at : found.start()], checked(found)]
        at = found.end()
    parts += [line[at:]] if line[at:] or not parts else []
    if line[0] not in "UBub*" or (len(parts) == 1 and re.match(r"[A-Za-z]{2,}\s", line)):
        raise ValueError("no template")
    rest = "".join(part for part in parts if isinstance(part, str))
    if "%" in rest or re.search(r"[xXmMtTsS]\[ *@?[+-]?[0-9]+ *,", rest):
        raise ValueError("a macro that is none")
    return [line[0].lower() + parts[0][1:], *parts[1:]]


def checked(found):
    macro, at, row, column, pattern = found.groups()
    if len(row.lstrip("+-0")) > 3 or len(column.lstrip("0")) > 1:
        raise ValueError("too far away")
    row, column = int(row), int(column)
    if abs(row) > 100 or column > 1 or (at and row == 0) or (pattern is None) == (macro in "mMtT"):
        raise ValueError("out of range, or with a pattern that is not there")
    if pattern is not None and not re.fullmatch(r"\^?+(?:(?:\\.|[^*?\\])[*?]?+)*+", pattern):
        raise ValueError("no pattern")
    return macro, at, row, column, pattern


def filled(part, sentence, i):
    if isinstance(part, str):
        return part
    macro, at, row, column, pattern = part
    place = i + row if not at else row - 1 if row > 0 else len(sentence) + row
    if place < 0:
        return f"_B{place}"
    if place >= len(sentence):
        return f"_B+{place - len(sentence) + 1}"
    word = sentence[place][column]
    if macro in "sS":
        word = "".join("X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdecimal() else c for c in word)
        return word if macro == "s" else re.sub(r"(.)\1+", r"\1", word)
    if macro in "mMtT":
        found = matched(pattern, word)
        if macro in "tT":
            return "false" if found is None else "true"
        return (found or "").lower() if macro == "M" else found or ""
    return word.lower() if macro == "X" else word


def matched(pattern, word):
    """The first part that matches: ? takes a character if it can, * as few as it can."""
    start, body = pattern.startswith("^"), pattern.removeprefix("^")
    end = bool(re.fullmatch(r"(?:\\.|[^\\])*\$", body)) and not re.fullmatch(r"(?:\\.|[^\\])*?\\\$", body)
    items = re.findall(r"(\\.|.)([*?]?)", body[:-1] if end else body)

    @functools.cache
    def ends(k, at):
        if k == len(items):
            return at if at == len(word) or not end else None
        one, often = items[k]
        fits = at < len(word) and is_one(one, word[at])
        later = functools.partial(ends, k + 1)
        ways = {
            "": lambda: later(at + 1) if fits else None,
            "?": lambda: taken if fits and (taken := later(at + 1)) is not None else later(at),
            "*": lambda: none if (none := later(at)) is not None else ends(k, at + 1) if fits else None,
        }
        return ways[often]()

    for begin in range(1 if start else len(word) + 1):
        if (stop := ends(0, begin)) is not None:
            return word[begin:stop]
    return None


def is_one(one, c):
    if one == "." or one[-1].lower() not in CLASSES or one[0] != "\\":
        return one == "." or c == one[-1]
    return CLASSES[one[-1].lower()](c) != (one[-1] not in CLASSES)


def read_template_attributes(path):
    templates = read_templates(path)
    index, numbers = AttributeIndex.fit_transform(CORPUS, templates)
    names = [name[0].lower() + name[1:] for name in index.names()]
    return [[names[number] for number in row] for row in numbers.tolist()]


@pytest.mark.parametrize("n", cases(300))
@pytest.mark.parametrize("sample", [CRFPP, WAPITI], ids=["crfpp", "wapiti"])
def test_damaged_templates(n, sample, tmp_path):
    agree(delivered(tmp_path / "template", read_template_attributes), sample, n, plain_templates)
