"""Files of an experiment: in a folder or generated, known by content, and a clear word where there are none."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from sparsezo.cli.experiments import bounds, load, run_reproduce

from sparsezo.collections import cache_folder
from sparsezo.errors import UsageError
from sparsezo.experiments import sources
from sparsezo.experiments.plan import DataSpec, builtin
from sparsezo.experiments.sources import generated, in_folder
from sparsezo.tasks.loading import Files


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    monkeypatch.setattr(sources, "_SIZES", {"chunking": (60, 20, 30), "text": (60, 20, 30), "rerank": (12, 6, 8)})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def small_plan(name: str):
    plan = builtin(name)
    return replace(plan, data=replace(plan.data, dev="20" if plan.data.dev == "1000" else plan.data.dev))


@pytest.mark.parametrize("name", ["chunking", "text", "smt"])
def test_generated_files_stand_where_the_plan_says_and_load(name, tmp_path):
    plan = small_plan(name)
    source = generated(plan, tmp_path / "data")
    assert in_folder(plan, tmp_path / "data") == source
    loaded = load(plan.task, Files(source.train, source.dev, source.test, dict(source.options)))
    sizes = [len(part) for part in (loaded.data.train, loaded.data.dev, loaded.data.test)]
    assert sizes == ([12, 6, 8] if name == "smt" else [60, 20, 30])
    assert (loaded.W is not None) == (name == "smt")


def test_data_is_known_by_content_not_by_place(tmp_path):
    plan = small_plan("chunking")
    here = generated(plan, tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    there = in_folder(plan, tmp_path / "b")
    assert here.identity == there.identity
    assert here.identity == generated(plan, tmp_path / "c").identity
    other = replace(plan, data=replace(plan.data, dev="10"))
    assert in_folder(other, tmp_path / "a").identity != here.identity
    assert replace(here, options={}).identity != here.identity
    with open(there.train[0], "ab") as stream:
        stream.write(b"\n")
    assert there.identity != here.identity


def test_a_store_is_a_place_and_references_are_data(tmp_path):
    source = generated(small_plan("smt"), tmp_path)
    assert replace(source, options={**source.options, "store": "x"}).identity == source.identity
    before = source.identity
    with open(source.train[0].replace(".nbest.xz", ".ref"), "a") as stream:
        stream.write("more\n")
    assert source.identity != before


def test_several_training_files(tmp_path):
    plan = small_plan("text")
    plan = replace(plan, data=DataSpec(("a.tsv", "b.tsv"), "dev.tsv", "test.tsv"))
    source = generated(plan, tmp_path)
    lines = [len((tmp_path / name).read_text().splitlines()) for name in ("a.tsv", "b.tsv", "dev.tsv", "test.tsv")]
    assert lines == [30, 30, 20, 30]
    assert not source.missing()


def test_the_range_between_bounds(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_SIZES", {"rerank": (12, 6, 60)})
    plan = small_plan("smt")
    source = generated(plan, tmp_path)
    found = bounds(load("rerank", Files(source.train, source.dev, source.test, dict(source.options))), source)
    assert list(found) == ["out-of-domain", "in-domain", "oracle"]
    assert found["out-of-domain"]["bleu"] < found["in-domain"]["bleu"] < found["oracle"]["bleu"]


def test_without_data_it_says_what_to_do(tmp_path):
    with pytest.raises(UsageError, match="--data DIR or the environment variable SPARSEZO_DATA, or use --data gen"):
        run_reproduce("chunking", None, out=tmp_path)
    with pytest.raises(
        UsageError, match=r"chunking needs .*train.txt.gz, which is not there; name the folder .*--data"
    ):
        run_reproduce("all", str(tmp_path), out=tmp_path)
    with pytest.raises(
        UsageError, match=r"experiment parsing: choose from chunking, smt, text, noise, all, or name a .toml"
    ):
        run_reproduce("parsing", str(tmp_path))
    with pytest.raises(UsageError, match="--phases warm: choose from fixed, tuned"):
        run_reproduce("chunking", str(tmp_path), phases="warm")
    with pytest.raises(UsageError, match="--seeds 0"):
        run_reproduce("chunking", str(tmp_path), seeds=0)


def test_what_data_get_has_fetched_is_used(tmp_path):
    generated(builtin("chunking"), cache_folder())
    run_reproduce("chunking", None, phases="fixed", seeds=1, iterations="100", processes=1, out=tmp_path / "out")
    assert len(list(tmp_path.glob("out/runs/*/run.json"))) == len(builtin("chunking").learners)
    with pytest.raises(UsageError, match="sparsezo data get conll2000"):
        run_reproduce("all", None, out=tmp_path / "other")
