"""Decoder weights: both forms read and written, and every way a file can be wrong."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsezo.errors import DataError, UsageError
from sparsezo.tasks.rerank.decoder_weights import read_weights, write_cdec_weights, write_moses_weights

MOSES = """\
# a decoder's configuration
[input-factors]
0
[feature]
KENLM name=LM0 factor=0 order=4
[weight]
LM0= 0.5
Distortion0= 0.3 0.1
TranslationModel0= 0.2 0.3 -1e-3

[ttable-limit]
20
"""


def test_reads_cdec(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_text("# tuned\nLanguageModel 0.39\nGlue\t-1e-3\n\n  Arity_1 2  \n")
    assert list(read_weights(path).items()) == [("LanguageModel", 0.39), ("Glue", -0.001), ("Arity_1", 2.0)]


def test_reads_moses_ini(tmp_path: Path) -> None:
    path = tmp_path / "moses.ini"
    path.write_text(MOSES)
    assert read_weights(path) == {
        "LM0": 0.5,
        "Distortion0_1": 0.3,
        "Distortion0_2": 0.1,
        "TranslationModel0_1": 0.2,
        "TranslationModel0_2": 0.3,
        "TranslationModel0_3": -0.001,
    }


def test_moses_groups_are_joined_again(tmp_path: Path) -> None:
    path = tmp_path / "moses.ini"
    names = ["TM0_2", "LM0", "TM0_1", "X_1", "Y_2", "TM0_4", "Z_01"]
    write_moses_weights(path, names, np.arange(7) / 4)
    assert path.read_text() == "[weight]\nLM0= 0.25\nTM0= 0.5 0.0\nX_1= 0.75\nY_2= 1.0\nTM0_4= 1.25\nZ_01= 1.5\n"
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
        ("A 1\nB 2\nA 1\n", r":3: weight 'A' is given twice; keep one of them"),
        ("A 1 2\n", r":1: 'A 1 2' is no weight; write a name and a value: Name value"),
        ("A\n", r":1: 'A' is no weight"),
        ("[weight]\nLM0 0.5\n", r":2: 'LM0 0\.5' is no weight; write Name= value \[value \.\.\.\]"),
        ("[weight]\nLM0=\n", r":2: 'LM0=' is no weight"),
        ("[weight]\nLM0= 1\nTM= 1 2\nTM_2= 3\n", r":4: weight 'TM_2' is given twice"),
        ("[weight]\nLM0= 1\nTM= 1 NaN\n", r":3: weight 'TM_2' is NaN; it must be finite"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "weights"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        read_weights(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("write", [write_cdec_weights, write_moses_weights])
@pytest.mark.parametrize(
    ("names", "w", "message"),
    [
        (["A"], [1.0, 2.0], "1 names but 2 weights; give one weight for each name"),
        (["A", "A"], [1.0, 2.0], "a weight is named twice"),
        (["A"], [math.nan], "weight 'A' is nan; it must be finite"),
        (["A B"], [1.0], "'A B' cannot name a weight"),
    ],
)
def test_bad_weights_are_not_written(tmp_path: Path, write, names, w, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        write(tmp_path / "weights", names, w)
    assert list(tmp_path.iterdir()) == []
