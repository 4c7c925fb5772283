"""How a rater is written on the command line: what each number means, and what is refused."""

from __future__ import annotations

import pytest

from sparsezo.errors import UsageError
from sparsezo.kernels import codes
from sparsezo.raters import MODELS, Feedback, parse_feedback


@pytest.mark.parametrize(
    ("text", "model", "noise", "bias", "levels"),
    [
        ("exact", "exact", 0.0, 0.0, 0),
        ("binary", "binary", 0.0, 0.0, 0),
        ("flip:0", "flip", 0.0, 0.0, 0),
        ("flip:0.25", "flip", 0.25, 0.0, 0),
        ("flip:1", "flip", 1.0, 0.0, 0),
        ("rating:2", "rating", 0.1, 0.1, 2),
        ("rating:5", "rating", 0.1, 0.1, 5),
        ("rating:5.0", "rating", 0.1, 0.1, 5),
        ("rating:7,0.2", "rating", 0.2, 0.1, 7),
        ("rating:3,0.3,0.5", "rating", 0.3, 0.5, 3),
        ("rating:3,0,0", "rating", 0.0, 0.0, 3),
        ("rating:1000", "rating", 0.1, 0.1, 1000),
    ],
)
def test_what_is_written_is_what_is_meant(text, model, noise, bias, levels):
    parsed = parse_feedback(text)
    assert (parsed.model, parsed.noise, parsed.bias, parsed.levels) == (model, noise, bias, levels)
    assert parsed == Feedback(model, noise, bias, levels)
    assert type(parsed.levels) is int


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "nice",
        "Exact",
        "exact:1",
        "binary:0.5",
        "flip",
        "flip:",
        "flip:1.5",
        "flip:1.0001",
        "flip:-0.1",
        "flip:x",
        "flip:nan",
        "flip:0.1,0.2",
        "rating",
        "rating:1",
        "rating:0",
        "rating:-3",
        "rating:2.5",
        "rating:inf",
        "rating:nan",
        "rating:5,-1",
        "rating:5,0.1,-1",
        "rating:5,inf",
        "rating:5,0.1,nan",
        "rating:5,0.1,0.1,0.1",
        "rating:5,",
        "rating:1001",
        "rating:1e300",
        "rating:٥",
        "rating:²",
        "exact:²",
    ],
)
def test_what_is_refused_says_what_can_be_written(text):
    with pytest.raises(UsageError) as caught:
        parse_feedback(text)
    assert str(caught.value) == (
        f"`feedback` {text}: write exact, binary, flip:P with P from 0 to 1, or rating:K[,NOISE,BIAS] with K "
        "from 2 to 1000"
    )


def test_each_model_has_its_own_code():
    assert {"exact": codes.EXACT, "flip": codes.FLIP, "rating": codes.RATING, "binary": codes.BINARY} == MODELS
    assert len(set(MODELS.values())) == 4
    assert [parse_feedback(text).code for text in ("exact", "flip:0.1", "rating:5", "binary")] == [
        codes.EXACT,
        codes.FLIP,
        codes.RATING,
        codes.BINARY,
    ]
    assert Feedback() == Feedback("exact", 0.0, 0.0, 0)
