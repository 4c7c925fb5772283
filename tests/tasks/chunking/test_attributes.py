"""Attributes against a twin that builds CRF++'s strings, token by token; the rows of C of order 1, one by one."""

from __future__ import annotations

import pickle
import re
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsezo.tasks.chunking.features.attributes as attributes
from sparsezo.errors import DataError, UsageError
from sparsezo.tasks.chunking.features import lookup
from sparsezo.tasks.chunking.features import templates as templates_module
from sparsezo.tasks.chunking.features.attributes import AttributeIndex, Rows, order_1
from sparsezo.tasks.chunking.features.templates import Part, Template, built_in, parse_templates
from sparsezo.tasks.chunking.io.conll import Corpus, read_conll

TEMPLATES = parse_templates(
    ["U0:%x[0,0]", "U1:%x[-1,0]/%x[0,0]", "U2:%x[2,1]/%x[-3,0]/%x[0,1]/%x[1,0]", "U3:%x[-2,1]q", "U4:"], "test"
)
SHARING = parse_templates(  # repeated, unnamed, of several columns and macros; a bias twice
    [
        *("U:%x[0,0]", "U:%x[-1,0]", "U:%x[1,1]", "U0:%x[0,0]", "U0:%x[0,0]", "U9", "U9"),
        *("U1:%x[0,0]/%x[0,1]", "U1:%x[1,1]/%x[0,1]", "U1:%X[-1,0]/%s[-3,1]"),
        "U2:%x[-1,1]",
    ],
    "test",
)
MACROS = parse_templates(
    [
        *("u:%X[0,0]", 'u:p=%m[-1,0,"^.?"]', 'u:s=%m[1,0,".?$"]/%x[0,1]', r'u:u=%t[0,0,"^\u"]'),
        *("u:%S[2,1]", "*:%s[0,0]"),
        *("u:f=%x[@1,0]", "u:l=%x[@-1,1]", "u:2=%x[@2,0]/%X[@-3,1]", r'u:n=%m[0,0,"\d\d*$"]'),
    ],
    "test",
)
FUNCTIONS = {
    "x": lambda word, _: word,
    "X": lambda word, _: word.lower(),
    "s": lambda word, _: "".join("d" if c in "12" else "X" if c in "AB" else "x" for c in word),
    "S": lambda word, _: re.sub(r"(.)\1*", r"\1", FUNCTIONS["s"](word, _)),
    "t": lambda word, _: str(word[0] in "AB").lower(),
    "m": lambda word, pattern: (
        word[:1] if pattern == "^.?" else word[-1:] if pattern == ".?$" else re.search("[12]*$", word)[0]
    ),
}


def corpus_of(sentences: list[list[tuple[str, ...]]], n_columns: int = 2) -> Corpus:
    rows = [row for sentence in sentences for row in sentence]
    columns = tuple([row[j] for row in rows] for j in range(n_columns))
    return Corpus("f.txt", columns, None, np.cumsum([0, *map(len, sentences)]))


def place(part: Part, i: int, start: int, stop: int) -> int:
    if not part.absolute:
        return i + part.row
    return start + part.row - 1 if part.row > 0 else stop + part.row


def strings(corpus: Corpus, templates: tuple[Template, ...]) -> list[list[str]]:
    """Each token's attributes, as CRF++ writes them."""
    result = []
    for s in range(len(corpus)):
        start, stop = corpus.offsets[s : s + 2].tolist()
        for i in range(start, stop):
            row_of_names = []
            for template in templates:
                text = str(template)
                for part in template.parts:
                    at = place(part, i, start, stop)
                    if at < start:
                        value = f"_B-{start - at}"
                    elif at >= stop:
                        value = f"_B+{at - stop + 1}"
                    else:
                        column, macro, pattern = part.source
                        value = FUNCTIONS[macro](corpus.columns[column][at], pattern)
                    text = text.replace(str(part), value, 1)
                row_of_names.append(text)
            result.append(row_of_names)
    return result


words = st.sampled_from(["a", "b", "B", "Aab", "é", "A12", "ab2"])
corpora = st.lists(st.lists(st.tuples(words, words), min_size=1, max_size=5), min_size=1, max_size=5).map(corpus_of)


@pytest.mark.parametrize("templates", [TEMPLATES, SHARING, MACROS], ids=["plain", "sharing", "macros"])
@pytest.mark.parametrize("limit", [2**62, 100, 1])  # small limits make it rank after every other part, or each
@settings(deadline=None, max_examples=25)
@given(train=corpora, test=corpora, min_count=st.integers(1, 3))
def test_against_strings(limit, templates, train, test, min_count):
    """Equal strings are one attribute, whichever templates they come from."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attributes, "_KEY_LIMIT", limit)
        train_names, test_names = strings(train, templates), strings(test, templates)
        counts = Counter(name for row in train_names for name in row)
        kept = {name for name, count in counts.items() if count >= min_count}
        if not kept:
            with pytest.raises(DataError, match="no attribute occurs"):
                AttributeIndex.fit(train, templates, min_count)
            return
        index = AttributeIndex.fit(train, templates, min_count)
        names = index.names()
        assert len(index) == len(names) == len(kept)
        assert set(names) == kept
        assert [counts[name] for name in names] == sorted((counts[name] for name in kept), reverse=True)
        number = {name: i for i, name in enumerate(names)}
        expected = [[number.get(name, -1) for name in row] for row in train_names]
        assert index.transform(train).tolist() == expected
        assert index.rows(test).columns.tolist() == [
            number[name] for row in test_names for name in row if name in number
        ]
        rows = index.rows(train)  # which fit has ready
        assert rows.columns.tolist() == [i for row in expected for i in row if i >= 0]
        assert rows.lengths.tolist() == [sum(i >= 0 for i in row) for row in expected]
        assert index.transform(test).tolist() == [[number.get(name, -1) for name in row] for row in test_names]
        restored = AttributeIndex.from_arrays(templates, index.to_arrays())
        assert restored.names() == names
        assert restored.transform(test).tolist() == index.transform(test).tolist()


def test_types_and_ties():
    corpus = corpus_of([[("a", "x"), ("b", "x")]])
    index = AttributeIndex.fit(corpus, parse_templates(["U0:%x[0,0]", "U1:%x[0,1]", "U2:%x[1,0]"], "t"))
    C = index.transform(corpus)
    assert C.dtype == np.int32
    assert index.names() == ["U1:x", "U0:a", "U0:b", "U2:_B+1", "U2:b"]  # by count, then template, then code
    assert C.tolist() == [[1, 0, 4], [2, 0, 3]]


def test_keys_past_int64_are_ranked():
    """Ten parts of 1000 words: 1000^10 combinations."""
    rng = np.random.default_rng(0)
    sentence = [(f"w{i}", "x") for i in rng.permutation(np.repeat(np.arange(1000), 2))]
    corpus = corpus_of([sentence, sentence[:50]])
    text = "U0:" + "/".join(f"%x[{row},0]" for row in range(-5, 5))
    templates = parse_templates([text], "test")
    index = AttributeIndex.fit(corpus, templates)
    assert index.to_arrays()["n_ranks"].tolist() == [1]
    names = index.names()
    assert [[names[i] for i in row] for row in index.transform(corpus).tolist()] == strings(corpus, templates)
    other = corpus_of([[*sentence[:20], ("new", "x"), *sentence[21:40]]])
    number = {name: i for i, name in enumerate(names)}
    assert index.transform(other).ravel().tolist() == [number.get(row[0], -1) for row in strings(other, templates)]


def test_a_slash_in_a_word_mixes_nothing_up():
    corpus = corpus_of([[("a/b", "c"), ("a", "b/c")]])
    index = AttributeIndex.fit(corpus, parse_templates(["U0:%x[0,0]/%x[0,1]"], "t"))
    assert len(index) == 2
    assert len(np.unique(index.transform(corpus))) == 2


def test_unused_columns_take_no_room():
    index = AttributeIndex.fit(corpus_of([[("a", "x", "z")]], 3), parse_templates(["U0:%x[0,1]"], "t"))
    arrays = index.to_arrays()
    assert [len(arrays[f"vocabulary_{j}"]) for j in range(3)] == [0, 1, 0]
    assert AttributeIndex.from_arrays(index.templates, arrays).names() == ["U0:x"]


def test_refusals():
    corpus = corpus_of([[("a", "x")]])
    with pytest.raises(DataError, match=r"^f.txt: no attribute occurs 2 times"):
        AttributeIndex.fit(corpus, TEMPLATES, 2)
    with pytest.raises(DataError, match=r"^test:3: %x\[2,1\] reads column 1, but f.txt has 1 before the tag"):
        AttributeIndex.fit(corpus_of([[("a",)]], 1), TEMPLATES)
    with pytest.raises(UsageError, match="column 0 holds a word with a line end in it; it cannot be saved"):
        AttributeIndex.fit(corpus_of([[("a\nb", "x")]]), TEMPLATES).to_arrays()


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("numbers", lambda a: a[:-1], "the attributes' numbers are not one each"),
        ("numbers", lambda a: a * 0, "the attributes' numbers are not one each"),
        ("numbers", lambda a: a * 1.0, "numbers is no list of whole numbers"),
        ("keys", lambda a: a[::-1], "are out of order"),
        ("keys", lambda a: a + 10**6, "are out of order"),
        ("keys", lambda a: a[:-1], "key_stops does not fit the keys"),
        ("key_stops", lambda a: a[::-1], "key_stops does not fit the keys"),
        ("n_ranks", lambda a: a + 1, "n_ranks is not as the templates want it"),
        ("n_ranks", lambda a: np.array([1, -1, *a[2:]]), "n_ranks is not as the templates want it"),
        ("n_ranks", lambda a: np.full_like(a, 2**63 - 1), "n_ranks is not as the templates want it"),
        ("vocabulary_0", lambda a: np.frombuffer(b"a\na", np.uint8), "a word of vocabulary_0 is there twice"),
    ],
)
def test_arrays_that_are_no_index(name, change, said):
    arrays = AttributeIndex.fit(corpus_of([[("a", "x"), ("b", "y")]]), SHARING).to_arrays()
    arrays[name] = change(arrays[name])
    with pytest.raises(ValueError, match=said):
        AttributeIndex.from_arrays(SHARING, arrays)


def lines_run(call) -> int:
    """How many lines of attributes.py, lookup.py and templates.py a call goes through."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if frame.f_code.co_filename not in (attributes.__file__, lookup.__file__, templates_module.__file__):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("features", ["chunking", "ner"])
def test_no_loop_goes_over_tokens(features):
    """With the same words, a corpus ten times as long takes as many lines of Python; only arrays are longer."""
    sentence = [("a", "x"), ("b", "y"), ("a", "y"), ("c", "x")]
    few, many = corpus_of([sentence] * 300), corpus_of([sentence] * 3000)
    templates = built_in(features, 2)
    index = AttributeIndex.fit(few, templates)
    index.transform(few)  # what it finds of each word is kept
    for call in (lambda corpus: AttributeIndex.fit(corpus, templates), index.transform):
        counts = [lines_run(lambda corpus=corpus, call=call: call(corpus)) for corpus in (few, many)]
        assert counts[0] == counts[1] > 20


def test_the_words_that_are_kept_do_not_matter(monkeypatch):
    """Whatever it has seen before, and however many words are kept of that; in several threads, too."""
    monkeypatch.setattr(lookup, "_KEPT", 3)
    rng = np.random.default_rng(1)
    some = ["a", "b", "B", "Aab", "é", "A12", "ab2"]
    corpora = [
        corpus_of([[tuple(rng.choice(some, 2).tolist()) for _ in range(n)] for n in rng.integers(1, 4, 3)])
        for _ in range(30)
    ]
    for templates in (TEMPLATES, SHARING, MACROS):
        index = AttributeIndex.fit(corpora[0], templates)
        expected = [AttributeIndex.from_arrays(templates, index.to_arrays()).transform(each) for each in corpora]
        with ThreadPoolExecutor(4) as pool:
            for got, want in zip(pool.map(index.transform, corpora), expected, strict=True):
                np.testing.assert_array_equal(got, want)
        again = pickle.loads(pickle.dumps(index))
        np.testing.assert_array_equal(again.transform(corpora[1]), expected[1])


@pytest.mark.data
def test_conll2000(real_data):
    corpus = read_conll(real_data / "conll2000" / "train.txt.gz")
    templates = built_in("chunking", 2)
    dev, train = corpus[:1000], corpus[1000:]
    index = AttributeIndex.fit(train, templates)
    D = index.transform(dev)
    assert len(index) == 312_522
    number = {name: i for i, name in enumerate(index.names())}
    few = dev[:50]
    expected = [[number.get(name, -1) for name in row] for row in strings(few, templates)]
    assert D[: few.n_tokens].tolist() == expected


def rows_of(*rows: list[tuple[int, float]]) -> Rows:
    entries = [entry for row in rows for entry in row]
    values = np.array([value for _, value in entries], np.float32)
    columns = np.array([column for column, _ in entries], np.int32)
    return Rows(columns, np.array([*map(len, rows)], np.int64), None if (values == 1).all() else values)


def dense(rows: Rows, n_columns: int) -> np.ndarray:
    """C itself; a column that a row has twice counts twice."""
    C = np.zeros((len(rows.lengths), n_columns))
    owner = np.repeat(np.arange(len(rows.lengths)), rows.lengths)
    np.add.at(C, (owner, rows.columns), 1.0 if rows.values is None else rows.values)
    return C


def literal(tokens, bigrams, offsets, n_attributes, n_bigrams, K, start):
    """The docstring's page, row by row."""
    n_columns = n_attributes + K + K * n_bigrams
    C, starts = [], [0]
    for begin, end in pairwise(offsets):
        for i in range(begin, end):
            C.append(np.r_[tokens[i], np.zeros(n_columns - n_attributes)])
        C += [np.eye(n_columns)[n_attributes + a] for a in range(K)]
        for a in range(K if bigrams is not None else 0):
            for i in range(begin, end):
                row = np.zeros(n_columns)
                for j in range(n_bigrams):
                    row[n_attributes + K + j * K + a] = bigrams[i][j] * (i > begin or a == start)
                C.append(row)
        starts.append(len(C))
    return np.array(C), starts


@pytest.mark.parametrize("with_bigrams", [False, True])
@pytest.mark.parametrize("value", [1.0, 0.5])
def test_order_1(with_bigrams, value):
    offsets = np.array([0, 2, 3, 6])
    tokens = rows_of([(0, 1), (2, value)], [(1, 1)], [], [(0, 1), (0, 1)], [(2, 1)], [(1, value)])
    bigrams = rows_of([(0, 1)], [(1, 1), (1, 1)], [(0, 1), (1, 1)], [], [(0, 1)], [(1, 1)]) if with_bigrams else None
    for K, start in ((3, 2), (2, 0)):
        rows, row_start = order_1(tokens, bigrams, offsets, 3, K, start)
        n_bigrams = 2 if with_bigrams else 0
        by_token = dense(bigrams, 2) if with_bigrams else None
        C, starts = literal(dense(tokens, 3), by_token, offsets, 3, n_bigrams, K, start)
        np.testing.assert_array_equal(dense(rows, C.shape[1]), C)
        assert row_start.tolist() == starts
        assert rows.row_ptr()[-1] == len(rows.columns)
        assert (rows.columns.dtype, rows.values is None) == (np.int32, value == 1)
