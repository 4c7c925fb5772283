"""What docs/scaling.md says of several perturbations is what docs/results/samples has."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results" / "samples"


@pytest.fixture(scope="module")
def benchmark_samples():
    spec = importlib.util.spec_from_file_location("samples_benchmark", ROOT / "benchmarks" / "samples.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_that_of_the_runs(benchmark_samples):
    """If this fails: python benchmarks/samples.py --draw prints it."""
    table = benchmark_samples.markdown(benchmark_samples.read(RESULTS / "samples.csv"))
    assert table in (ROOT / "docs" / "scaling.md").read_text("utf-8")


def test_all_ways_were_run_to_an_equal_number_of_losses(benchmark_samples):
    rows = benchmark_samples.read(RESULTS / "samples.csv")
    for way in benchmark_samples.WAYS:
        mine = benchmark_samples.of_way(rows, way)
        assert {row["seed"] for row in mine} == {"0", "1", "2"}
        assert len({row["h"] for row in mine}) == len(benchmark_samples.TIMES)
        assert len(mine) == 3 * len(benchmark_samples.TIMES) * benchmark_samples.LOOKS
        ends = {int(row["losses"]) for row in mine if row["test"]}
        assert len(ends) == 1
        assert 399_900 < min(ends) <= 400_000


def test_a_run_asks_for_as_many_losses_as_it_is_given(benchmark_samples):
    from sparsezo.settings import Settings

    for settings in (Settings("two-point", samples=16), Settings("symmetric"), Settings("baseline", samples=4)):
        steps = benchmark_samples.looks(settings, 10_000)
        assert len(steps) == benchmark_samples.LOOKS
        assert all(each % settings.samples == 0 for each in steps)
        assert 0 <= 10_000 - settings.losses(steps[-1]) < settings.losses(settings.samples)
