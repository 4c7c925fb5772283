"""Damaged lists, references, weights and stores: refused in one line, read as a plain reader reads them, or rebuilt."""

from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np
import pytest
from delivery import agree, agree_packed, delivered, plain_lines
from mutations import cases, damaged, endure

from sparsezo import messages
from sparsezo.errors import DataError
from sparsezo.tasks.rerank.io.decoder_weights import read_weights
from sparsezo.tasks.rerank.io.importing import NBestStore, import_nbest
from sparsezo.tasks.rerank.io.nbest import read_nbest

CDEC = (
    "0 ||| Zürich  won ||| LM=-1.25 Words=-2 ||| -3.5\n0|||日本 |0-x| 😀|||Words=1e-3  LM=12345678.123456789|||0\n"
    " 1 ||| ||| LM=0 \t Late_1=+.5 a:b=3 ||| 1 ||| 0-0\n3 ||| a\u00a0b 3.0 \r||| ||| x\n"
).encode()
MOSES = (
    "0 ||| the |0-0| cät |1-2,wa=0 0-0| ||| LM0= -1.5 TM0= 0.25 1e2\tWP0= -2 ||| -3\n"
    "0 ||| |0-1| x ||| TM0= 99999999999999999999 -0 LM0= 7 ||| -3\n12 ||| a | b ||| WP0= 1 ||| 0\n"
).encode()
OLD_MOSES = (
    "0 ||| the cät ||| d: 0 -1.5 lm: -3.25 w: -2 ||| -3\n0 ||| x ||| lm: 1 d: 2 3 w: 0 ||| -3\n"
    "7 ||| 日本 ||| w: 4 ||| 0\n"
).encode()
REFERENCES = "heute Zürich  won\r\n\n日本 3.0 \u2028 x\n99999999999999999999  3.0 a\u00a0b\t.\n".encode()
CDEC_WEIGHTS = "# cdec\nLM 0.39\n Words\t-1e-3 \r\n\nÜ:x=1 12345678901234567890.5\nLate_1 +.5\n".encode()
MOSES_INI = (
    "[input-factors]\n0\n[weight] # here\nLM0= 0.5\nTM0= 0.2 -3e-1 1.\n\n"
    "# no more\nÜ0 = 7 # but this\n[ttable-limit]\n20\n"
).encode()
OLD_INI = b"# old\n[weight-l]\n0.5\n\n[weight-d]\n0.25 -1e-3\n3\n[ ttable-limit ]\n20\n[weight-l]\n99999999999.5\n"
LARGEST = float(np.finfo(np.float32).max)
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
OLD_NAMES = dict(re.findall(r"(\S+)=(\S+)", "d=d lr=lr l=lm t=tm w=w generation=g i=I lex=lex glm=glm dlm=dlm slm=slm"))
OLD_NAMES |= {name: name for name in ("u", "e", "wt", "pp", "pb", "bl")}


def number_of(text, largest=math.inf):
    if not NUMBER.fullmatch(text) or not abs(float(text)) <= largest or math.isinf(float(text)):
        raise ValueError(f"{text[:20]} is no number")
    return float(text)


def numbered(name, values):
    return {name: values[0]} if len(values) == 1 else {f"{name}_{k}": value for k, value in enumerate(values, 1)}


def plain_nbest(data):
    """The id, the hypotheses and the features of each list."""
    if not data.endswith(b"\n"):
        raise ValueError("cut off")
    lists, columns, sizes, parts = [], [], {}, 0
    for line in data.decode("utf-8").removeprefix("\ufeff").split("\n")[:-1]:
        fields = line.split("|||")
        parts = parts or len(fields)
        name = fields[0].strip()
        if len(fields) < max(3, parts) or not re.fullmatch("[0-9]{1,18}", name):
            raise ValueError("no line of a list")
        if not lists or name != lists[-1][0]:
            if lists and int(name) <= int(lists[-1][0]):
                raise ValueError("not sorted")
            lists.append((name, [], []))
        hypothesis = fields[1].strip()
        words = re.sub(r"(?<!\S)\|[0-9]+-[0-9]+(,[^|=]*=[^|]*)?\|(?!\S)", "", hypothesis)
        lists[-1][1].append(hypothesis if words == hypothesis else " ".join(words.split()))
        lists[-1][2].append(features_of(fields[2].split(), sizes))
        columns += [each for each in lists[-1][2][-1] if each not in columns]
    return [
        (int(name), words, [[row.get(column, 0.0) for column in columns] for row in rows])
        for name, words, rows in lists
    ], columns


def features_of(tokens, sizes):
    groups = []
    for token in tokens:
        if len(token) > 1 and token[-1] in "=:":
            groups.append((token[:-1], []))
        elif "=" in token:
            name, _, value = token.rpartition("=")
            groups.append((name, (number_of(value, LARGEST),)))
        elif groups and isinstance(groups[-1][1], list):
            groups[-1][1].append(number_of(token, LARGEST))
        else:
            raise ValueError("no feature")
    features = {}
    for name, values in groups:
        found = numbered(name, values) if values else {}
        if not name or not values or sizes.setdefault(name, len(values)) != len(values) or found.keys() & features:
            raise ValueError("a feature without name or value, of another size, or twice")
        features |= found
    return {name: float(np.float32(value)) for name, value in features.items()}


def read_lists(path):
    lists = list(read_nbest(path))
    names = lists[-1].names
    wide = [np.pad(each.features, ((0, 0), (0, len(names) - len(each.names)))).tolist() for each in lists]
    found = [(each.id, each.hypotheses, rows) for each, rows in zip(lists, wide, strict=True)]
    return found, list(names)


LISTS = {"cdec": CDEC, "moses": MOSES, "old moses": OLD_MOSES}


@pytest.mark.parametrize("n", cases(100))
@pytest.mark.parametrize("sample", LISTS.values(), ids=LISTS)
def test_damaged_lists(n, sample, tmp_path):
    agree(delivered(tmp_path / "x.nbest", read_lists), sample, n, plain_nbest)


@pytest.mark.parametrize("n", cases(50))
@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_damaged_packed_lists(n, ending, tmp_path):
    agree_packed(tmp_path / f"x.nbest{ending}", read_lists, MOSES, n, plain_nbest)


# ---- weights ----


def plain_weights(data):
    lines = [line.strip() for line in plain_lines(data)]
    lines = [line for line in lines if line and not line.startswith("#")]
    bare = [line.split("#")[0].strip() for line in lines]
    groups = [line.split() for line in lines]
    if bare and bare[0].startswith("[") and bare[0].endswith("]"):
        groups = plain_ini(bare)
    elif any(len(group) != 2 for group in groups):
        raise ValueError("no name and value")
    weights = {}
    for name, *values in groups:
        found = numbered(name, [number_of(value) for value in values])
        if found.keys() & weights:
            raise ValueError("twice")
        weights |= found
    if not weights:
        raise ValueError("no weight")
    return weights


def plain_ini(lines):
    groups, old, section, seen = [], {}, "", set()
    for line in lines:
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
            seen |= {section} & {"weight"}
            if section.startswith("weight-") and section[7:] not in OLD_NAMES:
                raise ValueError("an unknown section")
        elif section == "weight":
            name, equals, values = line.partition("=")
            if not equals or len(name.split()) != 1 or not values.split():
                raise ValueError("no weight")
            groups.append([name.strip(), *values.split()])
        elif section.startswith("weight-"):
            old.setdefault(OLD_NAMES[section[7:]], []).extend(line.split())
    if seen and old:
        raise ValueError("both forms")
    return [*groups, *([name, *values] for name, values in old.items())]


WEIGHTS = {"cdec": CDEC_WEIGHTS, "moses.ini": MOSES_INI, "old moses.ini": OLD_INI}


@pytest.mark.parametrize("n", cases(100))
@pytest.mark.parametrize("sample", WEIGHTS.values(), ids=WEIGHTS)
def test_damaged_weights(n, sample, tmp_path):
    def read(path):
        return list(read_weights(path).items())

    agree(delivered(tmp_path / "weights", read), sample, n, lambda data: list(plain_weights(data).items()))


# ---- references and stores ----


def content(store):
    rows = [store.list(i) for i in range(len(store))]
    words = [[store.hypothesis(j) for j in range(some.start, some.stop)] for some in rows]
    features = [store.features[some].tolist() for some in rows]
    losses = [[round(loss, 9) for loss in store.losses[some].tolist()] for some in rows]
    return list(zip(words, features, losses, strict=True)), list(store.names), store.references


def plain_store(lists, references):
    """What is in a store of these files."""
    (found, names), lines = plain_nbest(lists), plain_lines(references)
    if not names or found[-1][0] >= len(lines):
        raise ValueError("no feature, or too few references")
    kept = [(words, rows, [plain_loss(each, lines[i]) for each in words]) for i, words, rows in found]
    return kept, names, (tuple(lines[i] for i, _, _ in found),)


def plain_loss(hypothesis, reference):
    """1 - BLEU of a sentence; 0.01 for an order without a match, none for one without n-grams."""
    words, wanted, logs = hypothesis.split(), reference.split(), []
    for n in range(1, min(4, len(words)) + 1):
        ours, theirs = (Counter(zip(*(some[k:] for k in range(n)), strict=False)) for some in (words, wanted))
        logs.append(math.log(((ours & theirs).total() or 0.01) / ours.total()))
    if not set(words) & set(wanted):
        return 1.0
    return round(1 - math.exp(sum(logs) / len(logs) + min(0, 1 - len(wanted) / len(words))), 9)


@pytest.mark.parametrize("n", cases(50, 6_000))
def test_damaged_references(n, tmp_path):
    (tmp_path / "x.nbest").write_bytes(CDEC)

    def read(path):
        return content(import_nbest(tmp_path / "x.nbest", path, tmp_path / "stores"))

    agree(delivered(tmp_path / "x.ref", read), REFERENCES, n, lambda data: plain_store(CDEC, data))


@pytest.mark.parametrize("n", cases(50, 6_000))
def test_damaged_lists_in_a_store(n, tmp_path):
    """What the import makes of lists is what is in them."""
    (tmp_path / "x.ref").write_bytes(REFERENCES)

    def read(path):
        return content(import_nbest(path, tmp_path / "x.ref", tmp_path / "stores"))

    agree(delivered(tmp_path / "x.nbest", read), CDEC, n, lambda data: plain_store(data, REFERENCES))


STORED = ("features.f32", "statistics.i16", "losses.f64", "offsets.i64", "hypotheses.i64", "hypotheses.txt")


@pytest.mark.parametrize("n", cases(13, 2_000))
@pytest.mark.parametrize("name", [*STORED, "references.1.txt", "meta.json"])
def test_damaged_stores(n, name, tmp_path):
    """Named where there is nothing else, and built anew where the lists are there; what is read is as it was."""
    (tmp_path / "x.nbest").write_bytes(CDEC)
    (tmp_path / "x.ref").write_bytes(REFERENCES)
    store = import_nbest(tmp_path / "x.nbest", store_dir=tmp_path / "stores")
    file, statistics = store.folder / name, store.statistics.tolist()

    def read(data):
        file.unlink()
        if data:  # of nothing, no file at all
            file.write_bytes(data)
        try:
            opened, damage = NBestStore.open(store.folder), ""
        except DataError as error:
            damage = str(error)
            assert name in damage or (name == "meta.json" and "no finished n-best store" in damage)
        with messages.gathered() as remarks:
            opened = import_nbest(tmp_path / "x.nbest", store_dir=tmp_path / "stores")
        assert ["built anew" in remark for remark in remarks if str(store.folder) in remark] == [True] * bool(damage)
        assert opened.statistics.tolist() == statistics
        return content(opened)

    endure(read, file.read_bytes(), damaged, n)
