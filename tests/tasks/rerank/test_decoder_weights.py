"""Decoder weights: both forms read and written, and every way a file can be wrong."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsezo.errors import DataError, UsageError
from sparsezo.tasks.rerank.io.decoder_weights import read_weights, write_cdec_weights, write_moses_weights

OLD = """\
# a decoder's configuration of 2010
[ttable-file]
0 0 0 5 phrase-table
[distortion-file]
0-0 msd-bidirectional-fe 6 reordering-table

[weight-d]  # distance, then the orientations
0.3
0.1
-0.2

[weight-l]
0.5000 # the one language model

[weight-t]
0.2
0.1 0.3
[weight-w]
-1
[weight-generation]
[weight-i]
0.7
[distortion-limit]
6
[weight-t]
0.4
"""


def test_reads_the_old_moses_ini(tmp_path: Path, put) -> None:
    """Names are the short ones, those of old n-best lists; a section may come in pieces."""
    path = put("moses.ini", OLD)
    weights = read_weights(path)
    assert weights == {
        "d_1": 0.3,
        "d_2": 0.1,
        "d_3": -0.2,
        "lm": 0.5,
        "tm_1": 0.2,
        "tm_2": 0.1,
        "tm_3": 0.3,
        "tm_4": 0.4,
        "w": -1,
        "I": 0.7,
    }
    write_moses_weights(tmp_path / "back.ini", list(weights), np.array(list(weights.values())))
    text = (tmp_path / "back.ini").read_text()
    assert text.startswith("[weight-d]\n0.3\n0.1\n-0.2\n\n[weight-l]\n0.5\n")
    assert read_weights(tmp_path / "back.ini") == weights
    for names in (["d", "LM0"], ["d", "d_1", "d_2"], ["lm", "d_1", "d_3"]):  # not all of them old Moses' own
        write_moses_weights(tmp_path / "new.ini", names, np.arange(len(names)))
        assert (tmp_path / "new.ini").read_text().startswith("[weight]\n")
        assert list(read_weights(tmp_path / "new.ini")) == names


@pytest.mark.parametrize(
    ("section", "label"),
    [("d", "d"), ("lr", "lr"), ("l", "lm"), ("t", "tm"), ("w", "w"), ("generation", "g"), ("i", "I"), ("lex", "lex")]
    + [(name, name) for name in ("glm", "dlm", "slm", "u", "e", "wt", "pp", "pb", "bl")],
)
def test_sections_of_the_old_moses_ini(put, section: str, label: str) -> None:
    path = put("moses.ini", f"[weight-{section}]\n0.25\n")
    assert read_weights(path) == {label: 0.25}


def test_moses_groups_are_joined_again(tmp_path: Path) -> None:
    path = tmp_path / "moses.ini"
    long = "X_" + "9" * 5000
    names = ["TM0_2", "LM0", "TM0_1", "X_1", "Y_2", "TM0_4", "Z_01", long]
    write_moses_weights(path, names, np.arange(8) / 4)
    lines = ["LM0= 0.25", "TM0= 0.5 0.0", "X_1= 0.75", "Y_2= 1.0", "TM0_4= 1.25", "Z_01= 1.5", f"{long}= 1.75"]
    assert path.read_text().splitlines() == ["[weight]", *lines]
    assert read_weights(path) == {name: k / 4 for k, name in enumerate(names)}


names = st.lists(st.from_regex(r"[A-Z][a-z:]{0,2}(_[0-3]){0,2}", fullmatch=True), min_size=1, max_size=12, unique=True)


@settings(max_examples=100, deadline=None)
@given(names, st.data())
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], data: st.DataObject
) -> None:
    w = data.draw(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=len(names), max_size=len(names)))
    folder = tmp_path_factory.mktemp("weights")
    write_cdec_weights(folder / "cdec", names, np.array(w))
    assert list(read_weights(folder / "cdec").items()) == list(zip(names, w, strict=True))
    write_moses_weights(folder / "moses.ini", names, np.array(w))
    assert read_weights(folder / "moses.ini") == dict(zip(names, w, strict=True))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"weights: has no weights; write 'Name value' lines \(cdec\) or a \[weight\] section \(moses\.ini\)"),
        ("# nothing\n", r"weights: has no weights"),
        ("[feature]\nLM0= 1\n[weight]\n", r"weights: no weight stands in its \[weight\] section"),
        ("A 1\nB nan\n", r":2: weight 'B' is nan; it must be finite"),
        ("A -inf\n", r":1: weight 'A' is -inf; it must be finite"),
        ("A one\n", r":1: weight 'A' has the value 'one', which is not a number"),
        ("A 1_000\n", r":1: weight 'A' has the value '1_000', which is not a number"),
        ("[weight]\nLM0= \u0661\n", r":2: weight 'LM0' has the value '.', which is not a number"),
        ("A 1\nB 2\nA 1\n", r":3: weight 'A' is given twice; keep one of them"),
        ("A " + "9" * 5000 + "\n", r":1: weight 'A' is 9{40}\.\.\.; it must be finite"),
        ("A" * 5000 + " x\n", r":1: weight 'A{40}\.\.\.' has the value 'x', which is not a number"),
        ("[weight-d]\n0.3\none\n", r":3: weight 'd_2' has the value 'one', which is not a number"),
        (
            "[weight-d]\n0.3\n[weight]\nLM0= 1\n",
            r":3: has weights of both forms, \[weight\] and \[weight-\.\.\.\]; keep",
        ),
        ("[weight]\nLM0= 1\n[weight-d]\n0.3\n", r":4: has weights of both forms"),
        (
            "[weight-d]\n1\n[weight-file]\nx\n",
            r":3: section \[weight-file\] is not known, so its weights",
        ),
        ("[weight-d]\n", r"weights: no weight stands in its \[weight\] section"),
        ("A 1 2\n", r":1: 'A 1 2' is no weight; write a name and a value: Name value"),
        ("A\n", r":1: 'A' is no weight"),
        ("[weight]\nLM0 0.5\n", r":2: 'LM0 0\.5' is no weight; write Name= value \[value \.\.\.\]"),
        ("[weight]\nLM0=\n", r":2: 'LM0=' is no weight"),
        ("[weight]\nLM0= 1\nTM= 1 2\nTM_2= 3\n", r":4: weight 'TM_2' is given twice"),
        ("[weight]\nLM0= 1\nTM= 1 NaN\n", r":3: weight 'TM_2' is NaN; it must be finite"),
    ],
)
def test_bad_files(put, text: str, message: str) -> None:
    path = put("weights", text)
    with pytest.raises(DataError, match=message) as caught:
        read_weights(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("write", [write_cdec_weights, write_moses_weights])
def test_weights_that_are_not_finite_are_not_written(tmp_path: Path, write) -> None:
    with pytest.raises(UsageError, match="weight 'A' is nan; it must be finite"):
        write(tmp_path / "weights", ["A"], [math.nan])
    assert list(tmp_path.iterdir()) == []
