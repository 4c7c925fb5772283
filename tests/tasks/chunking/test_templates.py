"""Template files in CRF++'s and Wapiti's notation: what they mean, what is refused, and what patterns match."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from sparsezo import messages
from sparsezo.errors import DataError
from sparsezo.tasks.chunking.features.columns import NAMES
from sparsezo.tasks.chunking.features.templates import (
    CHUNKING,
    NER,
    Part,
    Pattern,
    Source,
    Template,
    built_in,
    check_columns,
    parse_templates,
    read_templates,
    shape,
    values_of,
)
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import task_spec

ROOT = Path(__file__).parents[3]
PAPER = str(ROOT / "examples" / "paper.template")


def plain(*places: tuple[int, int]) -> tuple[Part, ...]:
    """Parts of %x[row,column]."""
    return tuple(Part(row, Source(column)) for row, column in places)


def lines(*texts: str) -> list[str]:
    return [str(template) for template in parse_templates(texts, "my.template")]


def refused(*lines: str) -> str:
    with pytest.raises(DataError) as error:
        parse_templates(lines, "my.template")
    return str(error.value)


def test_default_templates():
    """CRF++'s own for CoNLL-2000: words and parts of speech in a window of two, bigrams and trigrams of neighbours."""
    word, pos = 0, 1
    expected = {f"U0{k}": [(k - 2, word)] for k in range(5)}
    expected |= {f"U0{k}": [(k - 6, word), (k - 5, word)] for k in (5, 6)}
    expected |= {f"U1{k}": [(k - 2, pos)] for k in range(5)}
    expected |= {f"U1{k}": [(k - 7, pos), (k - 6, pos)] for k in range(5, 9)}
    expected |= {f"U2{k}": [(k - 2, pos), (k - 1, pos), (k, pos)] for k in range(3)}
    templates = built_in("chunking", 2)
    assert {
        t.line.partition(":")[0]: [(row, source.column) for row, source, _ in t.parts] for t in templates
    } == expected
    assert len(templates) == 19
    assert all(t.line.partition(":")[2] == "/".join(map(str, t.parts)) for t in templates)


def test_parses_names_texts_and_parts(put):
    path = put("my.template", "# comment\n\nU00:%x[-2,0]\n  U05:%x[-1,0]/%x[0,10] \nB\nU12:%x[0,1]q\nU99:\n")
    templates = read_templates(path)
    assert templates == (
        Template("U00:%x[-2,0]", plain((-2, 0))),
        Template("U05:%x[-1,0]/%x[0,10]", plain((-1, 0), (0, 10))),
        Template("U12:%x[0,1]q", plain((0, 1))),
        Template("U99:", ()),
    )
    assert templates[1].where == f"{path}:4"
    assert templates[1].fill(["the", r"\1dog"]) == r"U05:the/\1dog"
    assert templates[2].fill(["NN"]) == "U12:NNq"
    assert templates[3].fill([]) == "U99:"


def test_lines_come_back():
    for name, text in (("chunking", CHUNKING), ("ner", NER)):
        templates = built_in(name, 3, NAMES)
        assert parse_templates(map(str, templates), "again") == templates
        assert [str(t) for t in templates] == text


# Derived columns


def test_derived_columns_have_names():
    (template,) = parse_templates(['u:%x[-1,cluster]/%m[ @1 , list ,"^B"]'], "my.template")
    assert template.parts == (Part(-1, Source("cluster")), Part(1, Source("list", "m", "^B"), absolute=True))
    assert [str(part) for part in template.parts] == ["%x[-1,cluster]", '%m[@1,list,"^B"]']
    assert template.text == "u:%/%"
    assert template.fill(["0110", "B"]) == "u:0110/B"
    check_columns([template], 1, "train.txt", ("cluster", "list"))


def test_a_column_of_another_name():
    assert refused("U1:%x[0,0]", "U2:%x[0,pos]") == (
        "my.template:2: 'U2:%x[0,pos]': there is no column 'pos'; they have numbers from 0, and those that are made "
        "the names cluster and list"
    )


@pytest.mark.parametrize(
    ("line", "names", "remedy"),
    [
        ("U1:%x[0,cluster]", ("list",), "give `clusters`"),
        ('u:%m[1,list,"^B"]', ("cluster",), "give `gazetteer`"),
        ("U1:%x[0,0]/%x[0,list]", (), "give `gazetteer`"),
    ],
)
def test_a_derived_column_that_is_not_made(line, names, remedy):
    (template,) = parse_templates([line], "my.template")
    part = template.parts[-1]
    with pytest.raises(DataError) as error:
        check_columns([template], 3, "train.txt", names)
    assert str(error.value) == (
        f"my.template:1: {part} reads the column '{part.source.column}', which is not made; {remedy}"
    )


def test_built_in_templates_of_derived_columns_are_there_where_these_are():
    def read(*names: str) -> set[int | str]:
        return {part.source.column for template in built_in("ner", 1, names) for part in template.parts}

    assert read() == {0}
    assert read("cluster") == {0, "cluster"}
    assert read("list") == {0, "list"}
    assert read("cluster", "list") == {0, "cluster", "list"}


# CRF++


def test_spaces_in_macros():
    """Wapiti has them, CRF++ does not; nothing else could be meant."""
    for line in ("U1:%x[ 0,1]", "U1:%x[0, 1]", "U1:%x[ 0 , 1 ]", "U1:%x[+0,01]"):
        (template,) = parse_templates([line], "t")
        assert template.parts == plain((0, 1))
        assert template.fill(["NN"]) == "U1:NN"


def test_the_name_is_only_text_in_front():
    """CRF++ asks for nothing but the letter; names may be missing, or repeated, with or without another text."""
    given = ["U:%x[0,0]", "U:%x[-1,0]", "U%x[0,0]", "U01", "U 1:%x[0,0]", "U[0]=%x[0,0]", "U01:%x[0,0]", "U01:%x[0,0]"]
    assert lines(*given) == given
    texts = [template.text for template in parse_templates(given, "t")]
    assert texts == ["u:%", "u:%", "u%", "u01", "u 1:%", "u[0]=%", "u01:%", "u01:%"]


def test_a_comment_is_a_whole_line_in_crfpp_and_the_rest_of_one_in_wapiti():
    """CRF++ passes over a line only where its first character says so: feature_index.cpp, openTemplate."""
    assert lines("# all", "U00:%x[0,0] # word", "B # bigrams") == ["U00:%x[0,0] # word"]
    (template,) = parse_templates(["U00:%x[0,0] # word"], "t")
    assert template.fill(["dog"]) == "U00:dog # word"
    assert lines("# all", "U00:%x[0,0] # word, 100%", "u:%x[0,0]#", "b # bigrams") == ["U00:%x[0,0]", "u:%x[0,0]"]
    assert lines("U00:%X[0,0] # word") == ["U00:%X[0,0]"]
    again = lines("U00:%x[0,0] # word")
    assert lines(*again) == again  # as a model keeps it


def test_a_comment_that_is_none_is_remarked_on(put):
    path = put("t", "U00:%x[0,0] # word\nU01:%x[0,0]#word\n")
    with messages.gathered() as said:
        read_templates(path)
    what = "is part of its text, as CRF++ has it; put comments on lines of their own"
    assert said == [f"{path}:1: what follows # in a template {what}"]
    path.write_text("u:%x[0,0] # word\n# U00:%x[0,0] # word\n")
    with messages.gathered() as said:
        read_templates(path)
    assert said == []


def test_bigram_templates():
    given = ["U00:%x[0,0]", "B", "B00:", "B01:%x[0,0]", "b:%x[-1,0]", "*:%x[0,1]", "*", "b"]
    kept = parse_templates(given, "t")
    assert [(str(t), t.kind) for t in kept] == [
        ("U00:%x[0,0]", "u"),
        ("B01:%x[0,0]", "b"),
        ("b:%x[-1,0]", "b"),
        ("*:%x[0,1]", "*"),
        ("*", "*"),
    ]


# Wapiti


def test_wapitis_macros():
    given = [
        "u:wrd-1=%x[-1,0]",
        "U:low=%X[ 0,0]",
        r'*:Pre-2 X=%m[ 0,0,"^.?.?"]',
        r'*:suf=%M[+1,0,".?.?$"]',
        r'u:is upper=%t[0,0,"^\u"]/%T[0,1,"\"]"]',
        "u:%s[0,0]%S[-1,0]",
        'u:first=%x[@1,0] last=%m[@-2,1,"a"]',
    ]
    parts = [template.parts for template in parse_templates(given, "t")]
    assert parts == [
        (Part(-1, Source(0)),),
        (Part(0, Source(0, "X")),),
        (Part(0, Source(0, "m", "^.?.?")),),
        (Part(1, Source(0, "M", ".?.?$")),),
        (Part(0, Source(0, "t", r"^\u")), Part(0, Source(1, "T", r"\"]"))),
        (Part(0, Source(0, "s")), Part(-1, Source(0, "S"))),
        (Part(1, Source(0), absolute=True), Part(-2, Source(1, "m", "a"), absolute=True)),
    ]
    assert lines(*given) == given
    assert [str(part) for part in parts[6]] == ["%x[@1,0]", '%m[@-2,1,"a"]']


# What is refused


MALFORMED = ["%x[0]", "%x[0,]", "%x[a,0]", "%x[0,-1]", "%y[0,0]", "x[0,0]", "%x[0,0", "%m[0,0,a]", "%"]


@pytest.mark.parametrize("macro", [*MALFORMED, "%x[0 0]", "%x[- 1,0]", '%m[0,0,"a]'])
def test_malformed_macros(macro):
    line = f"U1:{macro}"
    assert refused("# first", line) == (
        f"my.template:2: '{line}' has a malformed macro, which is %x[row,column] in whole numbers, or "
        '%m[row,column,"pattern"]; write it like U05:%x[-1,0]/%x[0,0]'
    )


@pytest.mark.parametrize("line", ["%x[0,0]", "V01:%x[0,0]", "nonsense", "Unigrams of words", "but not this"])
def test_not_a_template(line):
    assert refused(line) == f"my.template:1: '{line}' is not a template; write it like U05:%x[-1,0]/%x[0,0]"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('u:%x[0,0,"a"]', "the macro %x is written %x[row,column]"),
        ("u:%m[0,0]", 'the macro %m is written %m[row,column,"pattern"]'),
        ('u:%t[0,0,"*"]', r'pattern "*": * stands after no character; write \* for the character itself'),
        ("u:%x[@0,0]", "@1 is a sentence's first token and @-1 its last; there is no @0"),
    ],
)
def test_macros_that_cannot_be(line, said):
    assert refused(line) == f"my.template:1: '{line}': {said}"


def test_too_far():
    for row in ("-101", "101", "@101", "9" * 5000, "-" + "9" * 5000):
        text = refused(f"U01:%x[{row},0]")
        assert text.startswith("my.template:1: 'U01:%x[" + row[:5])
        assert text.endswith("' looks more than 100 tokens away; at most that is possible")
    assert lines("U01:%x[-100,0]", f"U01:%x[{'0' * 5000}1,0]")


def test_columns_that_no_file_has():
    for column in ("10000", "1" * 5000):
        text = refused(f"U01:%x[0,{column}]")
        assert text.endswith("' reads a column that no file has; they are counted from 0")
        assert len(text) < 150


@pytest.mark.parametrize("texts", [[], ["# only", "", "B"]])
def test_no_template(texts):
    assert refused(*texts).startswith("my.template: holds no template; write it like")


def test_a_column_that_does_not_exist():
    templates = parse_templates(["U00:%x[0,0]", "U01:%x[0,0]/%x[-1,2]"], "my.template")
    check_columns(templates, 3, "train.txt")
    with pytest.raises(DataError) as error:
        check_columns(templates, 2, "train.txt")
    assert str(error.value) == (
        "my.template:2: %x[-1,2] reads column 2, but train.txt has 2 before the tag, counted from 0; "
        "change the template or the data"
    )
    templates = parse_templates(['u:%m[0,3,"^.?"]'], "my.template")
    with pytest.raises(DataError, match=r'^my.template:1: %m\[0,3,"\^\.\?"\] reads column 3, but f has 1 before'):
        check_columns(templates, 1, "f")


def test_built_in_sets_read_the_columns_that_are_there():
    for name, counts in (("chunking", [7, 19, 19]), ("ner", [32, 39, 42])):
        assert [len(built_in(name, n)) for n in (1, 2, 3)] == counts
    macros = {part.source.macro for template in built_in("ner", 1) for part in template.parts}
    assert macros == {"x", "X", "m", "s", "S", "t"}
    assert [str(each) for each in {*built_in("ner", 1, order=2)} - {*built_in("ner", 1)}] == ["u:bias="]


@pytest.mark.parametrize(
    ("pattern", "word", "matched"),
    [
        ("^.?.?.?.?", "Wapiti", "Wapi"),  # the manual's own: a prefix of at most four characters
        ("^.?.?.?.?", "Wa", "Wa"),
        (".?.?$", "Wapiti", "ti"),
        ("", "Wapiti", ""),
        ("a*", "aaa", ""),  # a star takes as little as it can
        ("a?a", "aa", "aa"),  # a question mark takes what it can
        ("a^b$c", "xa^b$cx", "a^b$c"),  # in the middle they are characters
        ("^$", "", ""),
        ("^$", "a", None),
        (r"\*\?\\", r"x*?\y", r"*?" + "\\"),
        (r"\"", 'say"', '"'),
        (r"\n", "lan\n", "n"),  # no class: the character itself
        (r"\u\u", "McDONALD", "DO"),
        (r"\l", "ABcD", "c"),
        (r"\p.", "re-do", "-d"),
        (r"\p", "5€", "€"),
        (r"\a\d\w\s", "é7Ñ ", "é7Ñ "),
        (r"\A\D\L\U\P\S\W", "7a7a7a-", "7a7a7a-"),
        (r"\W", "a_b", "_"),
        ("^..", "éß", "éß"),  # characters, not bytes
    ],
)
def test_matches(pattern, word, matched):
    compiled = Pattern.compile(pattern)
    assert compiled.first(word) == (matched or "")
    assert (compiled.search(word) is None) == (matched is None)
    assert values_of("m", pattern)(word) == (matched or "")
    assert values_of("M", pattern)(word) == (matched or "").lower()
    for macro in "tT":
        assert values_of(macro, pattern)(word) == ("false" if matched is None else "true")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("*a", r"* stands after no character; write \* for the character itself"),
        ("^?", r"? stands after no character; write \? for the character itself"),
        ("a**", r"* stands after no character; write \* for the character itself"),
        ("ab\\", "ends in a single backslash"),
    ],
)
def test_what_is_no_pattern(pattern, said):
    with pytest.raises(ValueError) as caught:
        values_of("m", pattern)
    assert str(caught.value) == said


ITEMS = {".": ".", "a": "a", "b": "b", r"\d": "[0-9]", r"\D": "[^0-9]", r"\.": r"\.", r"\a": "[a-zA-Z]", r"\u": "[A-Z]"}


def test_against_pythons_own():
    """Where the characters are ASCII: ? is Python's ?, * its *?."""
    draw = random.Random(1)
    found = 0
    for _ in range(5000):
        chosen = [(draw.choice(sorted(ITEMS)), draw.choice(["", "?", "*"])) for _ in range(draw.randrange(7))]
        start, end = draw.random() < 0.5, draw.random() < 0.5
        word = "".join(draw.choices("abA1.", k=draw.randrange(9)))
        pattern = "^" * start + "".join(item + often for item, often in chosen) + "$" * end
        python = "^" * start + "".join(ITEMS[item] + {"*": "*?"}.get(often, often) for item, often in chosen)
        expected = re.search(python + r"\Z" * end, word)
        found += expected is not None
        assert Pattern.compile(pattern).search(word) == (expected.span() if expected else None), (pattern, word)
        assert values_of("m", pattern)(word) == (expected[0] if expected else ""), (pattern, word)
    assert 1000 < found < 4000


def test_no_pattern_takes_long():
    """These take other matchers years: 2^40 ways to leave characters out, n^9 ways to share them."""
    for pattern in (".?" * 40 + r"\d", "a*" * 9 + r"\d", ".*" * 9 + "x$"):
        assert values_of("t", pattern)("a" * 200) == "false"


def test_shapes_and_cases():
    assert shape("McDonald's-747é") == "XxXxxxxx'x-dddx"
    assert values_of("s")("U.S.") == "X.X."
    assert values_of("S")("McDonald's--747") == "XxXx'x-d"
    assert values_of("S")("") == ""
    assert values_of("x")("Éa") == "Éa"
    assert values_of("X")("ÉA-b") == "éa-b"


def test_words_are_for_names_without_the_other_columns():
    for order in (1, 2):
        words, names = (built_in(name, n, NAMES, order) for name, n in (("words", 3), ("ner", 1)))
        assert [each.line for each in words] == [each.line for each in names]


# A file near the paper's sparsity


def weights_and_share(task, train):
    problem = task.problem(train)
    n = problem.n_features * problem.n_labels
    return n, problem.n_active.mean() / n


def test_the_papers_template_has_fewer_weights_and_more_of_them_active_on_generated_data():
    own = weights_and_share(*Chunking.fit(chunking_corpus(500, seed=1), only="NP"))
    near = weights_and_share(*Chunking.fit(chunking_corpus(500, seed=1), only="NP", templates=read_templates(PAPER)))
    assert near[0] < 0.8 * own[0]
    assert near[1] > 1.5 * own[1]


@pytest.mark.data
def test_the_papers_template_comes_near_its_sparsity(real_data):
    """1.5M weights, 0.25% active, on what the experiments learn from."""
    source = Files((str(real_data / "conll2000" / "train.txt.gz"),), "1000", None, {"only": "NP", "template": PAPER})
    loaded = task_spec("chunking").load(source)
    n, share = weights_and_share(loaded.task, loaded.data.train)
    assert abs(n / 1.5e6 - 1) < 0.05
    assert abs(share / 0.0025 - 1) < 0.1
    assert f"{n:,} weights, {share:.3%} active" in (ROOT / "docs" / "deviations.md").read_text("utf-8")
