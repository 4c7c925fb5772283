"""What a person types and sees: numbers with units, progress of runs and sweeps, results."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from sparsezo.cli import show
from sparsezo.cli.values import numbers, seconds, seed_list, whole_number
from sparsezo.errors import UsageError
from sparsezo.study.engines.base import Overview
from sparsezo.training import Progress

note_compiling = show.note_compiling  # the real one
pytestmark = pytest.mark.usefixtures("plain")

# Values as people type them


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("4M", 4_000_000),
        ("300K", 300_000),
        ("1e6", 1_000_000),
        ("1_000", 1000),
        ("0.5k", 500),
        ("1.0", 1),
    ],
)
def test_numbers_as_people_type_them(typed, value):
    number = whole_number(typed, "--iterations")
    assert (number, type(number)) == (value, int)


@pytest.mark.parametrize("typed", ["", "0", "k", "-1", "-1k", "1.5", "1e400", "inf", "nan", "ten", "4Q", "١٢", "²"])
def test_what_is_no_whole_number_is_named_with_its_option(typed):
    with pytest.raises(UsageError) as caught:
        whole_number(typed, "--evaluate-every")
    assert str(caught.value) == (
        f"--evaluate-every {typed}: must be a whole number of at least 1, such as 4M, 300k, 1e6 or 250000"
    )


# A run


def now(step: int, dev: float | None = None) -> Progress:
    return Progress(step, 10_000, 0.123449, dev, None if dev is None else 0.9, 100, 3.0, 250.0)


@pytest.fixture
def clock(monkeypatch):
    """The time that show reads, set by hand."""
    time = SimpleNamespace(now=100.0)
    monkeypatch.setattr(show, "time", SimpleNamespace(monotonic=lambda: time.now))
    return time


def test_a_log_has_a_line_every_ten_seconds(clock, capsys):
    with show.training_progress("two-point", 10_000, "f1") as progress:
        for seconds, step in [(9.9, 1000), (10.0, 2000), (19.9, 3000), (20.5, 4000), (30.0, 5000), (30.5, 9000)]:
            clock.now = 100 + seconds
            progress(now(step, dev=0.8125 if step > 3000 else None))
    assert capsys.readouterr().err.splitlines() == [
        "step 2,000 of 10,000  loss 0.1234  32 s left",
        "step 4,000 of 10,000  loss 0.1234  dev f1 0.8125 (best 0.9000)  24 s left",
        "step 9,000 of 10,000  loss 0.1234  dev f1 0.8125 (best 0.9000)  4 s left",
    ]


def terminal(monkeypatch) -> Console:
    console = Console(file=io.StringIO(), force_terminal=True, width=200, record=True, highlight=False)
    monkeypatch.setattr(show, "errors", console)
    return console


def test_a_terminal_has_a_live_line(monkeypatch):
    console = terminal(monkeypatch)
    with show.training_progress("two-point", 10_000, "f1") as progress:
        progress(now(2500, dev=0.8125))
        seen = show_bar(console)
    for words in ("two-point", "2500/10000", "250 steps/s", "loss 0.1234  dev f1 0.8125 (best 0.9000)"):
        assert words in seen


def show_bar(console: Console) -> str:
    """What stands on the screen at this moment."""
    console._record_buffer.clear()
    live = console._live_stack[-1] if hasattr(console, "_live_stack") else console._live
    live.refresh()
    return console.export_text()


def test_counting_is_a_bar_on_a_terminal_and_silence_elsewhere(monkeypatch, capsys):
    with show.counting("importing x", "lists") as count:
        count(1, 2)
    assert capsys.readouterr() == ("", "")
    console = terminal(monkeypatch)
    with show.counting("importing x", "lists") as count:
        count(3, 7)
        seen = show_bar(console)
    for words in ("importing x", "3/7", "lists"):
        assert words in seen


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "-"),
        (True, "True"),
        (1_234_567, "1,234,567"),
        (0.001, "0.0010"),
        (0.00099, "0.00099"),
        (10_000.0, "10000"),
        (1234567.891, "1.23457e+06"),
        ("f1", "f1"),
        ({"f1": 0.5, "gold": 1000}, "f1 0.5000  gold 1,000"),
    ],
)
def test_values_for_people(value, words):
    assert show._text(value) == words


def test_reports_within_a_result_are_rows_of_their_own(capsys):
    show.result({"f1": 0.25, "types": {"NP": {"f1": 0.5, "gold": 3}, "VP": 1}}, as_json=False, title="a [b] c")
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "a [b] c",
        "f1        0.2500",
        "types NP  f1 0.5000  gold 3",
        "types VP  1",
    ]


def test_compiling_is_said_only_where_it_is_done(monkeypatch, tmp_path, capsys):
    from sparsezo.kernels import jit

    monkeypatch.setattr(jit, "CACHE", tmp_path)
    note_compiling()
    assert capsys.readouterr().err == "compiling the training loop: some ten seconds, once on this machine\n"
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "loop.run-1.py311.nbi").touch()
    note_compiling()
    assert capsys.readouterr().err == ""


def test_compiling_is_said_when_it_begins_and_once(capsys):
    """Of whatever is compiled, whichever task needs it."""
    import numba

    kept = numba.njit(lambda x: x + 1)
    kept(1)
    with show.compiling_noted():
        kept(2)  # nothing is compiled
        assert capsys.readouterr().err == ""
        numba.njit(lambda x: x + 2)(1)
        numba.njit(lambda x: x + 3)(1)
        assert capsys.readouterr().err == "compiling, once on this machine: some ten seconds\n"
    numba.njit(lambda x: x + 4)(1)
    assert capsys.readouterr().err == ""


# A sweep

SWEEP = Overview(runs=4, done=1, failed=0, steps=2_000_000, steps_done=500_000, seconds_left=None, now=())


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "25% of 2M steps"),
        ({"failed": 2}, "2 failed, 25% of 2M steps"),
        ({"steps": 0, "steps_done": 0}, "0% of 0M steps"),
        ({"steps": 192_123_456, "steps_done": 0, "seconds_left": 0.0}, "0% of 192M steps, 0 s left"),
        ({"seconds_left": 89.9}, "25% of 2M steps, 90 s left"),
        ({"seconds_left": 89.4 * 60}, "25% of 2M steps, 89 min left"),
        ({"seconds_left": 90 * 60}, "25% of 2M steps, 1 h 30 min left"),
        ({"seconds_left": 125 * 60}, "25% of 2M steps, 2 h 05 min left"),
    ],
)
def test_how_far_a_sweep_is(changed, words):
    assert show._overview(replace(SWEEP, **changed)) == f"1 of 4 runs, {words}"


def test_a_sweep_on_a_terminal_has_a_live_line(monkeypatch):
    console = terminal(monkeypatch)
    with show.following("smt, tuning") as progress:
        assert "loading" in show_bar(console)
        progress(replace(SWEEP, steps=0, steps_done=0))
        progress(SWEEP)
        seen = show_bar(console)
    assert "smt, tuning" in seen
    assert "1 of 4 runs, 25% of 2M steps" in seen


def test_notes_are_for_people_and_not_markup(capsys):
    show.note("a [b] c: `min_count` is large")
    assert capsys.readouterr() == ("", "a [b] c: --min-count is large\n")


# Numbers as nobody means them


def test_no_count_is_beyond_counting():
    assert whole_number("1e15", "-n") == 10**15
    with pytest.raises(UsageError, match=r"^-n 1e300: must be at most 1e\+15$"):
        whole_number("1e300", "-n")
    assert whole_number("1e60", "--n", math.inf) == int(1e60)
    with pytest.raises(UsageError, match=rf"^-n {'9' * 40}\.\.\.: must be"):
        whole_number("9" * 5000, "-n")


@pytest.mark.parametrize("typed", ["", "0.1,", "0.1,nan", "inf", "1e400", "٠.١", "0.1;0.2"])
def test_a_list_of_numbers_is_of_finite_ones(typed):
    assert numbers("0.1,1e-3", "--grid-h") == (0.1, 0.001)
    with pytest.raises(UsageError) as caught:
        numbers(typed, "--grid-h")
    assert str(caught.value) == f"--grid-h {typed}: give numbers with commas between them, such as 0.01,0.001"


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_seconds_are_a_length_of_time(value):
    assert (seconds(0.0, "--seconds"), seconds(2.5, "--seconds")) == (0.0, 2.5)
    with pytest.raises(UsageError, match=f"^--seconds {value:g}: must be a number of seconds, 0 or more$"):
        seconds(value, "--seconds")


@pytest.mark.parametrize(
    ("typed", "seeds"), [("10", 10), ("0-3", (0, 1, 2, 3)), ("5-5", (5,)), ("3,8,4", (3, 8, 4)), ("0-1, 7", (0, 1, 7))]
)
def test_seeds_are_so_many_or_these(typed, seeds):
    assert seed_list(typed) == seeds


@pytest.mark.parametrize("typed", ["", "x", "1-", "-1", "1-2-3", "3-1", "1,,2", "1.5", "²", "0-99999999"])
def test_what_names_no_seeds_is_refused(typed):
    with pytest.raises(UsageError, match=r"^--seeds "):
        seed_list(typed)
