"""AttributeIndex against a twin that builds CRF++'s strings, token by token."""

from __future__ import annotations

import re
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsezo.tasks.chunking.attributes as attributes
from sparsezo.errors import DataError, UsageError
from sparsezo.tasks.chunking import observed, patterns
from sparsezo.tasks.chunking.attributes import AttributeIndex
from sparsezo.tasks.chunking.conll import Corpus, read_conll
from sparsezo.tasks.chunking.feature_sets import built_in
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.templates import Part, Template, parse_templates

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
        *(
            "u:%X[0,0]",
            'u:p=%m[-1,0,"^.?"]',
            'u:s=%m[1,0,".?$"]/%x[0,1]',
            r'u:u=%t[0,0,"^\u"]',
            "u:%S[2,1]",
            "*:%s[0,0]",
        ),
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
        index, fitted = AttributeIndex.fit_transform(train, templates, min_count)
        names = index.names()
        assert len(index) == len(names) == len(kept)
        assert set(names) == kept
        assert [counts[name] for name in names] == sorted((counts[name] for name in kept), reverse=True)
        number = {name: i for i, name in enumerate(names)}
        assert fitted.tolist() == [[number.get(name, -1) for name in row] for row in train_names]
        assert index.transform(train).tolist() == fitted.tolist()
        assert index.transform(test).tolist() == [[number.get(name, -1) for name in row] for row in test_names]
        restored = AttributeIndex.from_arrays(templates, index.to_arrays())
        assert restored.names() == names
        assert restored.transform(test).tolist() == index.transform(test).tolist()


def test_a_bag_of_words():
    """CRF++'s way to say that it does not matter where a word stands: templates without names."""
    corpus = corpus_of([[("a", "x"), ("b", "x"), ("a", "b")]])
    index, C = AttributeIndex.fit_transform(corpus, parse_templates(["U:%x[-1,0]", "U:%x[0,0]", "U:%x[0,1]"], "t"))
    assert index.names() == ["U:a", "U:b", "U:x", "U:_B-1"]
    assert C.tolist() == [[3, 0, 2], [0, 1, 2], [1, 0, 1]]
    rows = index.rows(corpus)
    assert rows.columns.tolist() == [3, 0, 2, 0, 1, 2, 1, 0, 1]  # b twice at the last token: it counts twice
    assert (rows.lengths.tolist(), rows.values) == ([3, 3, 3], None)
    restored = AttributeIndex.from_arrays(index.templates, index.to_arrays())
    assert restored.transform(corpus).tolist() == C.tolist()


def test_a_template_that_is_there_twice_counts_twice():
    corpus = corpus_of([[("a", "x"), ("b", "x")]])
    index, C = AttributeIndex.fit_transform(corpus, parse_templates(["U0:%x[0,0]", "U0:%x[0,0]"], "t"))
    assert index.names() == ["U0:a", "U0:b"]
    assert C.tolist() == [[0, 0], [1, 1]]
    assert len(AttributeIndex.fit(corpus, index.templates, 2)) == 2  # as CRF++ counts


def test_an_affix_of_a_word_that_training_lacks():
    train, test = corpus_of([[("walking", "x")]]), corpus_of([[("talking", "x"), ("", "x")]])
    index = AttributeIndex.fit(train, parse_templates(['u:s=%m[0,0,".?.?.?$"]', 'u:n=%m[0,0,"\\d"]', "u:%x[0,0]"], "t"))
    assert index.names() == ["u:s=ing", "u:n=", "u:walking"]
    restored = AttributeIndex.from_arrays(index.templates, index.to_arrays())  # with a vocabulary of one empty value
    assert restored.names() == index.names()
    assert index.transform(test).tolist() == restored.transform(test).tolist() == [[0, 1, -1], [-1, 1, -1]]


def test_types_and_ties():
    corpus = corpus_of([[("a", "x"), ("b", "x")]])
    index, C = AttributeIndex.fit_transform(corpus, parse_templates(["U0:%x[0,0]", "U1:%x[0,1]", "U2:%x[1,0]"], "t"))
    assert C.dtype == index.transform(corpus).dtype == np.int32
    assert index.names() == ["U1:x", "U0:a", "U0:b", "U2:_B+1", "U2:b"]  # by count, then template, then code
    assert C.tolist() == [[1, 0, 4], [2, 0, 3]]


def test_keys_past_int64_are_ranked():
    """Ten parts of 1000 words: 1000^10 combinations."""
    rng = np.random.default_rng(0)
    sentence = [(f"w{i}", "x") for i in rng.permutation(np.repeat(np.arange(1000), 2))]
    corpus = corpus_of([sentence, sentence[:50]])
    text = "U0:" + "/".join(f"%x[{row},0]" for row in range(-5, 5))
    templates = parse_templates([text], "test")
    index, C = AttributeIndex.fit_transform(corpus, templates)
    assert index.to_arrays()["n_ranks"].tolist() == [1]
    names = index.names()
    assert [[names[i] for i in row] for row in C.tolist()] == strings(corpus, templates)
    assert (index.transform(corpus) == C).all()
    other = corpus_of([[*sentence[:20], ("new", "x"), *sentence[21:40]]])
    number = {name: i for i, name in enumerate(names)}
    assert index.transform(other).ravel().tolist() == [number.get(row[0], -1) for row in strings(other, templates)]


def test_a_slash_in_a_word_mixes_nothing_up():
    corpus = corpus_of([[("a/b", "c"), ("a", "b/c")]])
    index, C = AttributeIndex.fit_transform(corpus, parse_templates(["U0:%x[0,0]/%x[0,1]"], "t"))
    assert len(index) == 2
    assert len(np.unique(C)) == 2


def test_unused_columns_take_no_room():
    index = AttributeIndex.fit(corpus_of([[("a", "x", "z")]], 3), parse_templates(["U0:%x[0,1]"], "t"))
    arrays = index.to_arrays()
    assert [len(arrays[f"vocabulary_{j}"]) for j in range(3)] == [0, 1, 0]
    assert AttributeIndex.from_arrays(index.templates, arrays).names() == ["U0:x"]


def test_survives_npz_without_pickle(tmp_path):
    corpus = corpus_of([[("é", "x"), ("b\u2028", "y")]])
    index = AttributeIndex.fit(corpus, TEMPLATES)
    np.savez(tmp_path / "index.npz", **index.to_arrays())
    with np.load(tmp_path / "index.npz", allow_pickle=False) as arrays:
        assert AttributeIndex.from_arrays(TEMPLATES, arrays).names() == index.names()


def test_refusals():
    corpus = corpus_of([[("a", "x")]])
    index = AttributeIndex.fit(corpus, TEMPLATES)
    with pytest.raises(UsageError, match="smallest count of an attribute is 0; give 1 or more"):
        AttributeIndex.fit(corpus, TEMPLATES, 0)
    with pytest.raises(DataError, match=r"^f.txt: no attribute occurs 2 times"):
        AttributeIndex.fit(corpus, TEMPLATES, 2)
    with pytest.raises(DataError, match=r"^test:3: %x\[2,1\] reads column 1, but f.txt has 1 before the tag"):
        AttributeIndex.fit(corpus_of([[("a",)]], 1), TEMPLATES)
    with pytest.raises(DataError, match=r"^f.txt: columns before the tag: 1, in the training data: 2"):
        index.transform(corpus_of([[("a",)]], 1))
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
        ("vocabulary_0", lambda a: np.frombuffer(b"a\na", np.uint8), "a word of vocabulary_0 is there twice"),
    ],
)
def test_arrays_that_are_no_index(name, change, said):
    arrays = AttributeIndex.fit(corpus_of([[("a", "x"), ("b", "y")]]), SHARING).to_arrays()
    arrays[name] = change(arrays[name])
    with pytest.raises(ValueError, match=said):
        AttributeIndex.from_arrays(SHARING, arrays)


def lines_run(call) -> int:
    """How many lines of attributes.py, observed.py and patterns.py a call goes through."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if frame.f_code.co_filename not in (attributes.__file__, observed.__file__, patterns.__file__):
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
    few, many = corpus_of([sentence] * 3), corpus_of([sentence] * 30)
    templates = built_in(features, 2)
    index = AttributeIndex.fit(few, templates)
    for call in (lambda corpus: AttributeIndex.fit_transform(corpus, templates), index.transform):
        counts = [lines_run(lambda corpus=corpus, call=call: call(corpus)) for corpus in (few, many)]
        assert counts[0] == counts[1] > 50


def test_windows_stop_at_sentences_and_padding_tells_how_far():
    corpus = corpus_of([[("a", "x"), ("b", "y")], [("c", "z")]])
    index, C = AttributeIndex.fit_transform(corpus, parse_templates(["U0:%x[-2,0]", "U1:%x[1,1]", "U2:%x[2,0]"], "t"))
    names = index.names()
    assert [[names[i] for i in row] for row in C.tolist()] == [
        ["U0:_B-2", "U1:y", "U2:_B+1"],
        ["U0:_B-1", "U1:_B+1", "U2:_B+2"],
        ["U0:_B-2", "U1:_B+1", "U2:_B+2"],
    ]


def test_an_attribute_as_frequent_as_the_smallest_count_is_kept():
    corpus = corpus_of([[("a", "x"), ("b", "x"), ("a", "x"), ("c", "x"), ("b", "x"), ("a", "x")]])
    templates = parse_templates(["U0:%x[0,0]"], "t")
    assert AttributeIndex.fit(corpus, templates).names() == ["U0:a", "U0:b", "U0:c"]
    index, C = AttributeIndex.fit_transform(corpus, templates, 2)
    assert index.names() == ["U0:a", "U0:b"]
    assert C.ravel().tolist() == index.transform(corpus).ravel().tolist() == [0, 1, 0, -1, 1, 0]
    assert AttributeIndex.fit(corpus, templates, 3).names() == ["U0:a"]


@pytest.mark.data
def test_conll2000(real_data):
    corpus = read_conll(real_data / "conll2000" / "train.txt.gz")
    templates = built_in("chunking", 2)
    dev, train = corpus[:1000], corpus[1000:]
    index, C = AttributeIndex.fit_transform(train, templates)
    D = index.transform(dev)
    assert len(index) == 312_522
    assert C.min() == 0
    number = {name: i for i, name in enumerate(index.names())}
    few = dev[:50]
    expected = [[number.get(name, -1) for name in row] for row in strings(few, templates)]
    assert D[: few.n_tokens].tolist() == expected


def test_rows_that_fit_has_ready_are_those_of_transform():
    templates = parse_templates(["U0:%x[-1,0]", "U1:%x[0,0]/%x[0,1]"], "t")
    train, other = chunking_corpus(30, 1), chunking_corpus(30, 2)
    index = AttributeIndex.fit(train, templates, 2)
    of_other = index.rows(other)  # of another corpus: nothing is ready
    ready, anew = index.rows(train), index.rows(train)
    for got, want in ((ready, anew), (of_other, index.rows(other))):
        np.testing.assert_array_equal(got.columns, want.columns)
        np.testing.assert_array_equal(got.row_ptr(), want.row_ptr())
    assert len(ready.columns) != len(of_other.columns)
