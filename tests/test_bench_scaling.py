"""bench scaling on a little generated data: what it counts and writes. How long things take is not tested here."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from types import SimpleNamespace

import pytest

from sparsezo.bench import clock, scaling, scaling_costs, scaling_tables
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.learner import Learner
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.theory.workers import Link, Work, speedup


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench") / "made"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scaling.Scale, "of", lambda rounds, steps, quick: scaling.Scale(60, 500, steps, (64,), rounds))
        patch.setattr(scaling_costs, "_BATCH", 512)
        absent = scaling.Transport(lambda: pytest.fail("it is not there"), ("no_such_module",))
        patch.setattr(scaling, "TRANSPORTS", {"local": scaling.TRANSPORTS["local"], "absent": absent})
        return folder, scaling_tables.measured_into(folder, lambda: scaling.measure(None, 1, 128, quick=True))


def rows(path):
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_two_workers_stand_beside_the_model(found):
    folder, fields = found
    (point,) = fields["points"]
    assert (point["transport"], point["batch"], point["workers"]) == ("local", 64, 2)
    assert point["times_one"] == pytest.approx(point["two_steps"] / point["one_steps"])
    assert point["times_plain"] == pytest.approx(point["two_steps"] / point["plain_steps"])
    work, link = Work(**fields["work"]), Link(**fields["links"]["local"])
    assert point["model"] == pytest.approx(speedup(work, link, 64, 2), rel=0.2)  # but for checks, of a small table here
    assert point["off"] == pytest.approx(point["times_one"] / point["model"] - 1)
    assert rows(folder / "points.csv")[0]["batch"] == "64"


def test_all_sizes_are_predicted(found):
    folder, fields = found
    work, local = Work(**fields["work"]), Link(**fields["links"]["local"])
    curve = {(row["link"], row["batch"], row["workers"]): row["times_one"] for row in fields["curves"]}
    assert curve["this machine", 1024, 16] == speedup(work, local, 1024, 16)
    assert max(workers for _, _, workers in curve) == 1024
    assert max(workers for _, batch, workers in curve if batch == 64) == 64
    assert [row["n"] for row in fields["sizes"]][-1] == 10**9
    assert fields["sizes"][-1]["bytes_a_worker"] == 4 * 10**9
    assert len(rows(folder / "curves.csv")) == len(fields["curves"])
    assert len(rows(folder / "limits.csv")) == 10
    assert {row["what"] for row in rows(folder / "costs.csv")} >= {"evaluate", "apply", "moves", "local bandwidth"}
    assert (folder / "workers.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "workers.svg").read_text("utf-8")


def test_it_is_shown_as_tables(found):
    from rich.console import Console

    console = Console(width=160, record=True, file=io.StringIO())
    console.print(scaling.table(found[1]))
    text = console.export_text()
    for words in (
        "evaluate a step",
        "once for all steps of an input",
        "within 15% of the wall",
        "10 Gb/s",
        "where it stops paying",
        "1,000M",
    ):
        assert words in text


def test_what_is_counted_of_the_steps_is_what_a_run_does():
    task, corpus = Chunking.fit(chunking_corpus(60, 1), only="NP")
    problem, gold = task.problem(corpus), task.gold(corpus)
    W = Learner(problem, scaling.SETTINGS).weights()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scaling_costs, "_BATCH", 128)
        work = scaling_costs.measure_work(problem, gold, scaling.SETTINGS, W, 3)
    learner = Learner(problem, replace(scaling.SETTINGS, batch=128), W)
    learner.run(gold, 3 * 128)
    assert work.moves == learner.updates / (3 * 128) > 0
    assert min(work.evaluate, work.apply, work.turn, work.spread, work.saved) >= 0
    assert (work.saved <= work.evaluate, work.inputs) == (True, 60)


class Slow:
    """A channel whose clock goes on by what its messages cost."""

    name = "slow"

    def __init__(self, link: Link, evaluate: float) -> None:
        self.link, self.evaluate, self.now = link, evaluate, 0.0

    def send(self, message):
        self.now += self.link.message + len(message) / self.link.bandwidth

    def receive(self):
        self.now += self.evaluate + 2 * self.link.latency + self.link.message
        return b""


def test_a_links_costs_are_told_apart(monkeypatch):
    slow = Slow(Link(message=1e-3, latency=2e-2, bandwidth=1e8), evaluate=5e-6)
    monkeypatch.setattr(clock, "time", SimpleNamespace(perf_counter=lambda: slow.now))
    link = scaling_costs.measure_link(slow, 0, slow.evaluate, rounds=1)
    assert link.message == pytest.approx(1e-3, rel=0.01)
    assert link.latency == pytest.approx(2e-2, rel=0.01)
    assert link.bandwidth == pytest.approx(1e8, rel=0.01)


@pytest.mark.parametrize("words", [{"steps": 5}, {"quick": True}, {"out": "there"}])
def test_other_benches_have_none_of_its_options(words):
    with pytest.raises(UsageError, match="bench text: --steps, --quick and -o belong to bench scaling"):
        clock.run_bench("text", None, 1, as_json=False, **words)


def test_a_folder_that_cannot_be_made_is_told_before_anything_is_measured(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SparsezoError, match="cannot be made"):
        scaling_tables.measured_into(tmp_path / "file" / "in", lambda: pytest.fail("it measured"))
