"""Files under sums: read as they were written or not at all; from before there were sums, as they are."""

from __future__ import annotations

import json

import pytest

from sparsezo.errors import DamagedError
from sparsezo.storage.checksummed import (
    check_plain,
    checksummed_toml,
    read_checksummed,
    verified_toml,
    write_checksummed,
)
from sparsezo.storage.fingerprint import fingerprint

VALUE = {"b": [1, 0.1, None, {"ä": True}], "a": "text", "n": float("inf"), "2": {"10": 1, "9": 2}}
NO_SUM = "it does not have the sum that it was written with"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.json"
    write_checksummed(path, VALUE)
    return path


def test_what_is_written_is_read(path, tmp_path):
    assert read_checksummed(path) == VALUE
    assert list(read_checksummed(path)) == list(VALUE)  # in its order
    assert read_checksummed(tmp_path / "nowhere.json") is None
    assert read_checksummed(path / "below a file.json") is None
    assert fingerprint(b"") == "cae66941d9efbd404e4d88758ea67670"  # for ever


def test_a_file_is_written_so_for_ever(path):
    """What an earlier version wrote must have the sum that this one finds."""
    write_checksummed(path, {"b": [1, "ä"], "a": {"d": None, "c": 0.5}})
    assert path.read_text() == (
        '{\n "sealed": "blake2b",\n "b": [\n  1,\n  "\\u00e4"\n ],\n "a": {\n  "d": null,\n  "c": 0.5\n },\n'
        ' "sum": "ca251a324fdc17541dfcd2069f511136"\n}\n'
    )


def test_a_file_of_ours_has_a_size_to_be_looked_at(path, monkeypatch):
    monkeypatch.setattr("sparsezo.storage.checksummed._MOST", 1 << 20)
    path.write_text('{"a": 1}'.ljust(1 << 20))
    assert read_checksummed(path) == {"a": 1}
    path.write_text('{"a": 1}'.ljust((1 << 20) + 1))
    with pytest.raises(DamagedError, match=r"x\.json: is damaged \(it has more than 1 MB\); make it anew$"):
        read_checksummed(path)


def test_keys_that_are_no_texts_are_as_json_has_them(path):
    write_checksummed(path, {"report": {10: "ten", 9: "nine"}})
    assert read_checksummed(path) == {"report": {"10": "ten", "9": "nine"}}


def test_before_there_were_sums(path):
    path.write_text(json.dumps({"a": 1}))
    assert read_checksummed(path) == {"a": 1}


def test_a_layout_of_somebody_elses_is_no_damage(path):
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    assert read_checksummed(path) == VALUE


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("0.1", "0.2", NO_SUM),
        ('"a"', '"c"', NO_SUM),
        ('"sealed"', '"sealer"', NO_SUM),
        ('"sum"', '"sun"', NO_SUM),
        ("blake2b", "blake3", NO_SUM),
        ("}\n", "", "Expecting"),
        ("0.1", "9" * 5000, "Exceeds the limit"),
        ("0.1", "9" * 30, "b.2 is a whole number of 101 bits; 64 are the most"),
        ("0.1", "[" * 100_000 + "]" * 100_000, "nested too deep"),
        ("0.1", "[" * 50 + "]" * 50, "nested too deep"),
        ('"text"', r'"\u0000"', "a is a text with a NUL character"),
        (r'"\u00e4"', r'"\u0000"', "b.4 is a text with a NUL character"),
        ('"text"', r'"\ud800"', "surrogates not allowed"),
    ],
)
def test_damage_is_said(path, old, new, why):
    text = path.read_text()
    assert old in text
    path.write_text(text[::-1].replace(old[::-1], new[::-1], 1)[::-1])
    with pytest.raises(DamagedError) as caught:
        read_checksummed(path, "do it again")
    assert str(caught.value).startswith(f"{path}: is damaged (")
    assert why in str(caught.value)
    assert str(caught.value).endswith("; do it again")


def test_a_sum_whose_names_are_both_damaged_is_no_file_from_before_there_were_sums(path):
    path.write_text(path.read_text().replace('"sealed"', '"se`led"').replace('"sum"', '"rum"'))
    with pytest.raises(DamagedError, match="its sum has another name"):
        read_checksummed(path)


@pytest.mark.parametrize(("raw", "why"), [(b"[1]", "no JSON object"), (b"\xff", "not UTF-8"), (b"", "Expecting")])
def test_what_is_no_such_file(path, raw, why):
    path.write_bytes(raw)
    with pytest.raises(DamagedError, match=rf"x\.json: is damaged \(.*{why}.*\); do it again$"):
        read_checksummed(path, "do it again")


def test_a_folder_in_its_place(tmp_path):
    with pytest.raises(DamagedError) as caught:
        read_checksummed(tmp_path, "do it again")
    assert str(caught.value) == f"{tmp_path}: is damaged (Is a directory); do it again"


def test_a_sum_in_toml_is_its_first_line():
    sealed = checksummed_toml('a = "ä"\n')
    assert sealed.splitlines()[1:] == ['a = "ä"', "# sealed"]
    assert verified_toml(sealed, "x.toml") == 'a = "ä"\n'
    assert verified_toml("a = 1\n", "x.toml") == "a = 1\n"  # from before there were sums
    for damaged in (sealed[:-1], sealed.replace("ä", "ö"), sealed + "b = 1\n", sealed.partition("\n")[2]):
        with pytest.raises(DamagedError, match=r"^x\.toml: is damaged \(it does not have the sum .*\); do it again$"):
            verified_toml(damaged, "x.toml", "do it again")


def test_whole_numbers_have_64_bits():
    check_plain([2**63 - 1, -(2**63), True])
    for number in (2**63, -(2**63) - 1):
        with pytest.raises(ValueError, match="64 are the most"):
            check_plain({"a": [number]})
