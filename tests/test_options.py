"""Options as fields of a dataclass: described once, checked when made, and refused with the reason."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest

from sparsezo.errors import UsageError
from sparsezo.options import Option, check_options, described, make_options, option
from sparsezo.settings import Settings


@dataclass(frozen=True)
class Shop:
    colour: str = option("red", "Of the door.", choices=("red", "blue"))
    price: float = option(1.0, "Of an apple.", positive=True)
    shelves: int = option(3, "How many.", least=2)
    owner: str | None = option(None, "Who has it.", choices=("Ann", "Bob"))
    shut_on: tuple[str, ...] | None = option(None, "Days.", file=True)
    big_sign: bool = option(False, "Whether there is one.")
    rent: float | None = option(None, "If it is not theirs.", positive=True, shown="theirs")
    secret: int = 5
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_options(self)


def test_an_option_is_described_by_its_field():
    known = described(Shop)
    assert list(known) == ["colour", "price", "shelves", "owner", "shut_on", "big_sign", "rent"]
    assert [each.name for each in known.values()] == list(known)
    assert [each.kind for each in known.values()] == [str, float, int, str, tuple[str, ...], bool, float]
    assert [each.default for each in known.values()] == ["red", 1.0, 3, None, None, False, None]
    assert [name for name, each in known.items() if each.optional] == ["owner", "shut_on", "rent"]
    assert [name for name, each in known.items() if each.several] == ["shut_on"]
    assert (known["shut_on"].flag, known["price"].flag) == ("--shut-on", "--price")
    assert known["rent"].about == Option("If it is not theirs.", positive=True, shown="theirs")
    assert known["colour"].about.word("red") is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"colour": "green"}, "`colour` green: choose from red, blue"),
        ({"owner": "Cid"}, "`owner` Cid: choose from Ann, Bob"),
        ({"price": 0.0}, "`price` 0.0: must be positive and finite"),
        ({"price": -1}, "`price` -1: must be positive and finite"),
        ({"price": math.nan}, "`price` nan: must be positive and finite"),
        ({"price": math.inf}, "`price` inf: must be positive and finite"),
        ({"price": "1"}, "`price` 1: must be positive and finite"),
        ({"price": True}, "`price` True: must be positive and finite"),
        ({"rent": 0.0}, "`rent` 0.0: must be positive and finite"),
        ({"shelves": 1}, "`shelves` 1: must be a whole number, 2 or more"),
        ({"shelves": 2.5}, "`shelves` 2.5: must be a whole number, 2 or more"),
        ({"shelves": True}, "`shelves` True: must be a whole number, 2 or more"),
    ],
)
def test_every_option_asks_something_of_its_value(given, message):
    with pytest.raises(UsageError) as caught:
        Shop(**given)
    assert str(caught.value) == message


def test_none_passes_only_where_the_field_may_be_none():
    assert Shop(owner=None, rent=None) == Shop()
    for name in ("colour", "price", "shelves"):
        with pytest.raises(UsageError, match=f"^`{name}` None: "):
            Shop(**{name: None})


def test_options_are_made_of_what_was_given():
    made = make_options(Shop, {"price": 2, "owner": None, "big_sign": True}, "a shop")
    assert made == Shop(price=2, big_sign=True)
    assert make_options(Shop, {}, "a shop") == Shop()


@pytest.mark.parametrize("name", ["window", "secret", "notes", "big-sign"])
def test_a_name_that_is_not_known_is_refused(name):
    """A field that is no option is none of the user's business."""
    with pytest.raises(UsageError) as caught:
        make_options(Shop, {"price": 2.0, name: 1}, "task shop")
    assert str(caught.value) == f"`{name}` does not belong to task shop"


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("colour", 3, "text"),
        ("colour", None, "text"),
        ("owner", ["Ann"], "text"),
        ("price", "2", "a number"),
        ("price", True, "a number"),
        ("rent", "2", "a number"),
        ("shelves", 3.0, "a whole number"),
        ("shelves", True, "a whole number"),
        ("shelves", None, "a whole number"),
        ("big_sign", 1, "true or false"),
        ("big_sign", "yes", "true or false"),
        ("shut_on", "Mon", "a list of texts"),
        ("shut_on", [1], "a list of texts"),
        ("shut_on", ["Mon", 1], "a list of texts"),
    ],
)
def test_a_value_of_another_type_is_refused(name, value, wanted):
    with pytest.raises(UsageError) as caught:
        make_options(Shop, {name: value}, "a shop")
    assert str(caught.value) == f"`{name}` {value!r}: give {wanted}"


@pytest.mark.parametrize(
    ("name", "value"),
    [("price", 2), ("price", 2.5), ("shelves", 4), ("rent", None), ("shut_on", ["Mon"])],
)
def test_a_value_of_its_type_passes(name, value):
    made = make_options(Shop, {name: value}, "a shop")
    assert getattr(made, name) == (tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize("value", [10**400, 10**5000, -(10**5000), float("inf"), float("nan")], ids=lambda _: "")
def test_numbers_beyond_a_float_are_refused_in_one_line(value):
    """Python writes no whole number of more than 4,300 digits, not even into a message."""
    for name in ("h", "mu", "gamma"):
        with pytest.raises(UsageError, match=rf"^`{name}` .*: must be positive and finite$"):
            Settings(**{name: value})
    if isinstance(value, int):
        with pytest.raises(UsageError, match=r"^`seed` .*: must be a whole number from 0 to 2\^63 - 1$"):
            Settings(seed=value)
