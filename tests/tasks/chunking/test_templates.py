"""CRF++ template files: what they mean, and what is refused."""

from __future__ import annotations

import pytest

from sparsezo.errors import DataError
from sparsezo.tasks.chunking.templates import (
    DEFAULT_TEMPLATES,
    Template,
    check_columns,
    default_templates,
    parse_templates,
    read_templates,
)


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
    templates = default_templates()
    assert {template.name: list(template.parts) for template in templates} == expected
    assert len(templates) == 19
    assert all(t.text == "/".join(f"%x[{row},{column}]" for row, column in t.parts) for t in templates)


def test_parses_names_texts_and_parts(tmp_path):
    path = tmp_path / "my.template"
    path.write_text("# comment\n\nU00:%x[-2,0]\n  U05:%x[-1,0]/%x[0,10] \nB\nU12:%x[0,1]q\nU99:\n")
    templates = read_templates(path)
    assert templates == (
        Template("U00", "%x[-2,0]", ((-2, 0),)),
        Template("U05", "%x[-1,0]/%x[0,10]", ((-1, 0), (0, 10))),
        Template("U12", "%x[0,1]q", ((0, 1),)),
        Template("U99", "", ()),
    )
    assert templates[1].where == f"{path}:4"
    assert templates[1].fill(["the", r"\1dog"]) == r"U05:the/\1dog"
    assert templates[2].fill(["NN"]) == "U12:NNq"
    assert templates[3].fill([]) == "U99:"


def test_lines_come_back():
    templates = default_templates()
    assert parse_templates(map(str, templates), "again") == templates
    assert [str(t) for t in templates] == [x for x in DEFAULT_TEMPLATES.splitlines() if x.startswith("U")]


@pytest.mark.parametrize(
    "line",
    [
        "U1:%x[0]",
        "U1:%x[0,]",
        "U1:%x[a,0]",
        "U1:%x[0,-1]",
        "U1:%x[0, 1]",
        "U1:%y[0,0]",
        "U1:x[0,0]",
        "U1:%x[0,0",
        "U1:%",
    ],
)
def test_malformed_macros(line):
    assert refused("# first", line) == (
        f"my.template:2: '{line}' has a malformed macro, which is %x[row,column] in whole numbers; "
        "write it like U05:%x[-1,0]/%x[0,0]"
    )


@pytest.mark.parametrize("line", ["%x[0,0]", "U%x[0,0]", "U01", "V01:%x[0,0]", "U 1:%x[0,0]", "nonsense"])
def test_not_a_template(line):
    assert refused(line) == f"my.template:1: '{line}' is not a template; write it like U05:%x[-1,0]/%x[0,0]"


@pytest.mark.parametrize("line", ["B01:%x[0,0]", "B00:"])
def test_label_bigrams_of_their_own(line):
    text = refused("B", line)
    assert text.startswith(f"my.template:2: '{line}' asks for label bigrams of its own;")
    assert "`order`" in text


def test_duplicate_names():
    assert refused("U01:%x[0,0]", "", "U01:%x[0,1]") == (
        "my.template:3: template name 'U01' is taken by my.template:1; give it another"
    )


def test_too_far():
    assert refused("U01:%x[-101,0]") == (
        "my.template:1: 'U01:%x[-101,0]' looks 101 tokens away; at most 100 are possible"
    )


@pytest.mark.parametrize("lines", [[], ["# only", "", "B"]])
def test_no_template(lines):
    assert refused(*lines).startswith("my.template: holds no template; write it like")


def test_a_column_that_does_not_exist():
    templates = parse_templates(["U00:%x[0,0]", "U01:%x[0,0]/%x[-1,2]"], "my.template")
    check_columns(templates, 3, "train.txt")
    with pytest.raises(DataError) as error:
        check_columns(templates, 2, "train.txt")
    assert str(error.value) == (
        "my.template:2: %x[-1,2] reads column 2, but train.txt has 2 before the tag, counted from 0; "
        "change the template or the data"
    )
