"""The n-best reader: every decoder's spelling, and every way a file can be wrong."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sparsezo.errors import DataError
from sparsezo.storage import limits
from sparsezo.tasks.rerank.io.nbest import NBestList, read_nbest, without_marks

Write = Callable[[str], Path]


@pytest.fixture
def write(put: Callable[[str, str], Path]) -> Write:
    return lambda text: put("x.nbest", text)


def columns(nbest: NBestList) -> dict[str, list[float]]:
    return {name: nbest.features[:, k].tolist() for k, name in enumerate(nbest.names)}


def test_cdec_with_missing_and_late_features(write: Write) -> None:
    path = write(
        "0 ||| the cat ||| A=1 B=-2.5 ||| -3.2\n"
        "0 ||| a cat ||| B=1e-1 ||| -4\n"
        "1 ||| dogs ||| A=3 C=7 ||| -1\n"
        "4 |||  ||| ||| 0\n"
    )
    first, second, third = read_nbest(path)
    assert (first.id, first.line, first.names, first.hypotheses) == (0, 1, ("A", "B"), ["the cat", "a cat"])
    assert columns(first) == {"A": [1, 0], "B": [-2.5, pytest.approx(0.1)]}
    assert first.features.dtype == np.float32
    assert (second.id, second.line, second.hypotheses) == (1, 3, ["dogs"])
    assert columns(second) == {"A": [3], "B": [0], "C": [7]}
    assert (third.id, third.hypotheses, columns(third)) == (4, [""], {"A": [0], "B": [0], "C": [0]})
    assert len(first) == 2


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ("LM0= -3 TM0= 1 2 3", {"LM0": [-3], "TM0_1": [1], "TM0_2": [2], "TM0_3": [3]}),
        ("d: 0 -1.5 lm: -3 w: -4", {"d_1": [0], "d_2": [-1.5], "lm": [-3], "w": [-4]}),
        ("tm_pt_0=-1.25 lm_0=-3", {"tm_pt_0": [-1.25], "lm_0": [-3]}),
        ("LM0= -3 sparse=2 TM0= 1 2", {"LM0": [-3], "sparse": [2], "TM0_1": [1], "TM0_2": [2]}),
        ("a=b=1 Src:x=2", {"a=b": [1], "Src:x": [2]}),
        ("", {}),
    ],
)
def test_spellings(write: Write, features: str, expected: dict[str, list[float]]) -> None:
    for line in (
        f"0 ||| x y ||| {features} ||| -1.5 ||| 0-0 1-1\n",
        f"0|||x y|||{features}|||-1\n",
        f"0 ||| x y ||| {features}\r\n",
    ):
        (nbest,) = read_nbest(write(line))
        assert columns(nbest) == expected
        assert nbest.hypotheses == ["x y"]


@pytest.mark.parametrize(
    ("hypothesis", "words"),
    [
        ("the cat |0-1| sat |2-2|", "the cat sat"),
        ("|0-0| a  |1-12|", "a"),
        ("|0-1|", ""),
        ("the cat |0-1,wa=0-0 1-1 ,total=-1.2,LM0= -3 TM0= 1 2| sat |2-2,wa=,total=0,|", "the cat sat"),
        ("the cat |0-1,LM0= -3 TM0= 1 2 | sat", "the cat sat"),
        ("a | b", "a | b"),
        ("a|0-1| b |0-1|c", "a|0-1| b |0-1|c"),
        ("|0-1 2-3| |0| |a-b| |-1-2| |0-1,2| |١-٢|", "|0-1 2-3| |0| |a-b| |-1-2| |0-1,2| |١-٢|"),
        ("two  spaces stay", "two  spaces stay"),
    ],
)
def test_marks_of_segmentation(write: Write, hypothesis: str, words: str) -> None:
    assert without_marks(hypothesis) == words
    path = write(f"0 ||| x ||| A=1 ||| 0\n1 ||| {hypothesis} ||| A=1 ||| 0\n2 ||| x ||| A=1 ||| 0\n")
    plain, marked, after = read_nbest(path)
    assert marked.hypotheses == [words]
    assert [nbest.segmented for nbest in (plain, marked, after)] == [False, words != hypothesis, False]
    _, kept, _ = read_nbest(path, keep_segmentation=True)
    assert kept.hypotheses == [hypothesis.strip()]
    assert not kept.segmented


def test_marks_are_found_in_one_go() -> None:
    """Time does not grow with the square of a line's length."""
    for text in (
        "|0-1,a" + "=" * 300_000,
        "|0-1,a=" * 100_000,
        " " * 300_000 + "|",
        "|1" * 200_000,
        "|" + "1" * 300_000,
    ):
        assert without_marks(text) == text


GOOD = "0 ||| the cat ||| A=1 B=2 ||| -3\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"x\.nbest: is empty; a line reads: id \|\|\| hypothesis \|\|\| features \|\|\| score"),
        (GOOD + "0 ||| a cat ||| A=1 B=", r":2: the last line has no line end: the file is cut off; copy it anew"),
        (GOOD + "0 ||| a cat ||| A=1 B=2 ||| -3", r":2: the last line has no line end"),
        (
            GOOD + "0 ||| a cat ||| A=1 B=2\n",
            r":2: has 3 fields between \|\|\|; the lines before have 4; is it cut off\?",
        ),
        (GOOD + "0\n", r":2: has 1 field between \|\|\|; the lines before have 4"),
        (GOOD + "\n" + GOOD, r":2: has nothing between \|\|\|"),
        ("0 ||| the cat\n", r":1: has 2 fields between \|\|\|; a line reads: id"),
        ("2" + GOOD[1:] + "1" + GOOD[1:], r":2: id 1 comes after id 2; sort the candidates by id"),
        (GOOD + "1" + GOOD[1:] + GOOD, r":3: id 0 comes after id 1; sort"),
        (GOOD[1:], r":1: a candidate without a list: its id is missing; a line reads: id"),
        (GOOD + GOOD[1:], r":2: a candidate without a list"),
        ("x" + GOOD[1:], r":1: the id 'x' is not a whole number from 0"),
        ("9" * 5000 + GOOD[1:], r":1: the id '9{40}\.\.\.' has 5,000 digits; ids are the sentences' numbers$"),
        (GOOD[:-3] + "\n0 ||| x ||| A=" + "9" * 5000 + " ||| 0\n", r":2: feature 'A' is inf; it must be a finite"),
        ("0 ||| x ||| A=1 B=" + "x" * 5000 + " ||| 0\n", r":1: feature 'B' has the value 'x{40}\.\.\.', which is not"),
        ("-1" + GOOD[1:], r":1: the id '-1' is not a whole number from 0"),
        ("0 ||| x ||| A=1 B=2 A=3 ||| 0\n", r":1: feature 'A' is named twice; name each feature once"),
        ("0 ||| x ||| T= 1 2 T_1=3 ||| 0\n", r":1: feature 'T_1' is named twice"),
        (GOOD + "0 ||| x ||| A=1 B=nan ||| 0\n", r":2: feature 'B' is nan; it must be a finite float32"),
        (GOOD + "0 ||| x ||| A=-inf ||| 0\n", r":2: feature 'A' is -inf; it must be a finite"),
        (GOOD + "0 ||| x ||| A=1e39 ||| 0\n", r":2: feature 'A' is 1e\+39; it must be a finite float32"),
        ("0 ||| x ||| lm: nan ||| 0\n", r":1: feature 'lm' is nan"),
        ("0 ||| x ||| A=1 B=two ||| 0\n", r":1: feature 'B' has the value 'two', which is not a number"),
        ("0 ||| x ||| lm: 1 two ||| 0\n", r":1: feature 'lm' has the value 'two', which is not a number"),
        ("0 ||| x ||| A=1 B=|||0\n", r":1: feature 'B' has no value; is the line cut off\?"),
        ("0 ||| x ||| A= B= 2 ||| 0\n", r":1: feature 'A' has no value"),
        ("0 ||| x ||| A=1 five ||| 0\n", r":1: 'five' is no feature; write name=value"),
        ("0 ||| x ||| A=1 5 ||| 0\n", r":1: '5' is no feature"),
        ("0 ||| x ||| =5 ||| 0\n", r":1: a feature has no name before its '='; write name=value"),
        ("0 ||| x ||| T= 1 2 ||| 0\n0 ||| x ||| T= 1 ||| 0\n", r":2: feature 'T' has 1 value here but 2 before"),
        (
            "0 ||| x ||| T=1 ||| 0\n1 ||| x ||| A=1 T= 1 2 ||| 0\n",
            r":2: feature 'T' has 2 values here but 1 before",
        ),
        ("0 ||| x ||| T= 1 2 ||| 0\n0 ||| x ||| T=1 ||| 0\n", r":2: feature 'T' has 1 value here but 2 before"),
        ("0 ||| x ||| T_1=1_000 ||| 0\n", r":1: feature 'T_1' has the value '1_000', which is not a number"),
        ("0 ||| x ||| A=1 T=\u0661 ||| 0\n", r":1: feature 'T' has the value '.', which is not a number"),
        ("0 ||| x ||| T= 1 2_0 ||| 0\n", r":1: feature 'T' has the value '2_0', which is not a number"),
    ],
)
def test_bad_input(write: Write, text: str, message: str) -> None:
    path = write(text)
    with pytest.raises(DataError, match=message) as caught:
        list(read_nbest(path))
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_not_utf8_and_not_there(tmp_path: Path, put) -> None:
    path = put("x.nbest", GOOD.encode() + b"0 ||| caf\xe9 ||| A=1 ||| 0\n")
    with pytest.raises(DataError, match=r"x\.nbest:2: is not UTF-8 text"):
        list(read_nbest(path))
    with pytest.raises(DataError, match=r"y\.nbest: no such file"):
        list(read_nbest(tmp_path / "y.nbest"))


def test_lists_before_a_bad_line_are_given(write: Write) -> None:
    lists = read_nbest(write(GOOD + "1" + GOOD[1:] + "1 ||| x ||| A=two ||| 0\n"))
    assert next(lists).id == 0
    with pytest.raises(DataError, match=r":3: feature 'A'"):
        next(lists)


def test_a_line_or_a_list_without_end(tmp_path: Path, put, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before it is all in memory; whoever insists gets it."""
    path = tmp_path / "x.nbest.gz"
    with gzip.open(path, "wb") as out:
        out.write(b"0 ||| " + b"a" * (1 << 20) + b" ||| A=1 ||| 0\n")
    monkeypatch.setattr(limits, "LINE", 1 << 16)
    with pytest.raises(
        DataError, match=r"x\.nbest\.gz:1: a line of more than 0 MB: is this a text file\?; .* `insist`"
    ):
        list(read_nbest(path))
    with limits.insisting():
        assert [len(nbest.hypotheses[0]) for nbest in read_nbest(path)] == [1 << 20]
    path = put("y.nbest", "0 ||| a ||| A=1 ||| 0\n" * 1000 + "1 ||| a ||| A=1 ||| 0\n")
    monkeypatch.setattr(limits, "LIST", 10_000)
    with pytest.raises(DataError, match=r"y\.nbest:455: list 0 has more than 0 MB: does its sentence's id begin each"):
        list(read_nbest(path))
    with limits.insisting():
        assert [len(nbest) for nbest in read_nbest(path)] == [1000, 1]


def test_too_many_features_for_a_list(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("".join(f"0 ||| a ||| f{k}=1 ||| 0\n" for k in range(200)))
    monkeypatch.setattr(limits, "ARRAYS", 100_000)
    with pytest.raises(DataError, match=r"x\.nbest:1: 200 candidates and 200 features take 0\.0 GB: reranking is for"):
        list(read_nbest(path))
    with limits.insisting():
        assert next(read_nbest(path)).features.sum() == 200
