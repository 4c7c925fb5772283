"""Files of an experiment: in a folder or generated, known by content, and a clear word where there are none."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
from dataclasses import replace
from pathlib import Path

import pytest

from sparsezo.cli import reproduce as command
from sparsezo.cli.reproduce import run_reproduce
from sparsezo.errors import DataError, UsageError
from sparsezo.storage.cache import cache_folder
from sparsezo.study import reproduce as reproducing
from sparsezo.study import sources
from sparsezo.study.plan import DataSpec, Experiment, LearnerSpec, builtin
from sparsezo.study.reports.reading import read_experiment
from sparsezo.study.sources import Source, generated, in_folder, on_data, present
from sparsezo.tasks.chunking import synthetic as making_sentences
from sparsezo.tasks.chunking.synthetic import chunking_columns, generate_chunking
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import task_spec
from sparsezo.tasks.rerank import synthetic as making_lists
from sparsezo.tasks.rerank.synthetic import IN_DOMAIN, OUT_OF_DOMAIN, generate_nbest
from sparsezo.tasks.text import synthetic as making_documents
from sparsezo.tasks.text.synthetic import generate_texts


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    monkeypatch.setattr(making_sentences, "_PARTS", (60, 20, 30))
    monkeypatch.setattr(making_documents, "_PARTS", (60, 20, 30))
    monkeypatch.setattr(making_lists, "_PARTS", (12, 6, 8))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)  # where no file has a number for its name


def plan_of(task: str, data: DataSpec, **fields) -> Experiment:
    return Experiment("mine", task, data, (LearnerSpec("first-order", None, 0.1, None),), 100, (3,), **fields)


def small_plan(name: str) -> Experiment:
    plan = builtin(name)
    return replace(plan, data=replace(plan.data, dev="20" if plan.data.dev == "1000" else plan.data.dev))


def loaded(source: Source):
    return task_spec(source.task).load(Files(source.train, source.dev, source.test, dict(source.options)))


# Where files are


@pytest.mark.parametrize("train", ["../../outside.txt", "/tmp/sparsezo-outside.txt", "a/../../outside.txt"])
def test_nothing_is_generated_outside_of_the_folder(train, tmp_path):
    """Nor over somebody's own file."""
    plan = plan_of("chunking", DataSpec((train,), "5"))
    with pytest.raises(UsageError, match=r"is outside of .*data, where data is generated; use `data` DIR"):
        generated(plan, tmp_path / "out/data")
    assert not any(tmp_path.rglob("outside.txt"))
    assert not Path("/tmp/sparsezo-outside.txt").exists()


def test_every_path_of_a_plan_is_placed_in_the_folder():
    options = {"train_ref": ["a", "b"], "dev_ref": ["c"], "test_ref": ["d"], "store": "place"}
    data = DataSpec(("x.nbest", "sub/y.nbest"), "dev.nbest", "test.nbest", options)
    plan = plan_of("rerank", data, init="w", bounds={"low": "l", "high": "h"})
    folder = Path("some") / "where"
    assert sources._placed(plan, folder) == Source(
        task="rerank",
        train=("some/where/x.nbest", "some/where/sub/y.nbest"),
        dev="some/where/dev.nbest",
        test="some/where/test.nbest",
        options={
            "train_ref": ["some/where/a", "some/where/b"],
            "dev_ref": ["some/where/c"],
            "test_ref": ["some/where/d"],
            "store": "place",  # a place to write, not a file of the data
            "init": "some/where/w",
        },
        bounds={"low": "some/where/l", "high": "some/where/h"},
    )
    bare = sources._placed(plan_of("chunking", DataSpec(("x",), "17")), folder)
    assert bare == Source("chunking", ("some/where/x",), "17", None, {}, {})
    assert bare.held_out == "17"


def test_what_is_missing_is_every_file_that_is_named(tmp_path):
    """Train, dev, test, with their references in rerank, options that name files, and bounds; in this order."""
    data = DataSpec(("a.nbest",), "b.nbest.xz", "c.nbest.gz", {"test_ref": ["r1", "r2"], "store": "s"})
    plan = plan_of("rerank", data, init="w", bounds={"low": "l"})
    names = ["a.nbest", "a.ref", "b.nbest.xz", "b.ref", "c.nbest.gz", "w", "r1", "r2", "l"]
    source = sources._placed(plan, tmp_path)
    while names:
        assert source.missing() == [str(tmp_path / name) for name in names]
        assert not present(plan, tmp_path)
        with pytest.raises(UsageError) as caught:
            in_folder(plan, tmp_path)
        assert str(caught.value) == (
            f"mine needs {tmp_path / names[0]}, which is not there; name the folder that has the data with "
            "`data` DIR or SPARSEZO_DATA ('sparsezo data list' says how to get it), or use `data` generated"
        )
        (tmp_path / names.pop(0)).touch()
    assert source.missing() == []
    assert present(plan, tmp_path)
    assert in_folder(plan, tmp_path) == source


def test_a_number_of_inputs_to_hold_out_is_no_file():
    source = Source("chunking", ("train.txt",), "12")
    assert source.held_out == "12"
    assert source.missing() == ["train.txt"]
    Path("12").touch()  # but one that is there is one
    assert source.held_out is None
    assert Source("chunking", ("train.txt",), "dev12").held_out is None
    assert Source("chunking", ("train.txt",)).held_out is None


# What the data is known by


def digest(*contents: bytes) -> str:
    whole = hashlib.blake2b(digest_size=16)
    for content in contents:
        whole.update(hashlib.blake2b(content).digest())
    return whole.hexdigest()


def test_the_identity_is_a_hash_of_content_and_options(tmp_path):
    """Spelled out: folders of runs that were begun earlier are known by it."""
    for name in ("a", "b", "dev", "test", "w", "topics"):
        (tmp_path / name).write_text(f"content of {name}\n")
    data = DataSpec(("a", "b"), "dev", "test", {"raw_tf": True, "min_count": 2, "topics": "topics"})
    source = in_folder(plan_of("text", data), tmp_path)
    parts = [
        ["train", digest(b"content of a\n")],
        ["train", digest(b"content of b\n")],
        ["dev", digest(b"content of dev\n")],
        ["test", digest(b"content of test\n")],
        ["topics", digest(b"content of topics\n")],
    ]
    known_by = {"dev": None, "options": {"min_count": 2, "raw_tf": True}, "parts": parts, "task": "text"}
    expected = hashlib.blake2b(json.dumps(known_by, sort_keys=True).encode(), digest_size=16).hexdigest()
    assert source.identity == expected
    held_out = replace(source, dev="17")
    del parts[2]
    known_by["dev"] = "17"
    expected = hashlib.blake2b(json.dumps(known_by, sort_keys=True).encode(), digest_size=16).hexdigest()
    assert held_out.identity == expected


def test_whatever_changes_the_data_changes_the_identity(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.nbest").write_text(name)
        (tmp_path / f"{name}.ref").write_text(f"{name}'s")
    for name in ("w", "r"):
        (tmp_path / name).write_text(name)
    source = in_folder(plan_of("rerank", DataSpec(("a.nbest",), "b.nbest", "c.nbest"), init="w"), tmp_path)
    named = replace(source, options={**source.options, "train_ref": [str(tmp_path / "r")]})
    known = [source.identity, named.identity]
    for name in ("a.nbest", "a.ref", "b.nbest", "b.ref", "c.nbest", "c.ref", "w"):
        (tmp_path / name).write_text("other")
        known.append(source.identity)
    (tmp_path / "a.ref").write_text("no longer read: another file is named")
    known.append(named.identity)
    (tmp_path / "r").write_text("other")
    assert named.identity != known[-1]
    known += [
        replace(source, options={}).identity,
        replace(source, task="text").identity,
        replace(source, dev=None).identity,
        replace(source, dev=source.test, test=source.dev).identity,
        replace(source, test=None).identity,
    ]
    assert len(set(known)) == len(known) == 15


def test_bounds_and_a_store_are_no_part_of_the_data(tmp_path):
    source = generated(small_plan("smt"), tmp_path)
    assert replace(source, options={**source.options, "store": "x"}).identity == source.identity
    assert replace(source, bounds={}).identity == source.identity


def test_a_folder_is_known_by_all_files_in_it_in_order(tmp_path):
    topics = tmp_path / "topics"
    (topics / "sub").mkdir(parents=True)
    (topics / "b").write_text("2")
    (topics / "a").write_text("1")
    (topics / "sub" / "c").write_text("3")
    assert sources._content(topics) == digest(b"1", b"2", b"3")


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(DataError) as caught:
        Source("chunking", (str(tmp_path / "no"),)).identity  # noqa: B018
    assert str(caught.value) == f"{tmp_path / 'no'}: no such file; check the path"


# Where learning starts


def test_the_papers_reranking_starts_from_the_out_of_domain_weights(tmp_path):
    plan = builtin("smt")
    source = generated(plan, tmp_path)
    assert source.options == {"init": str(tmp_path / "smt" / "weights.out-of-domain")}
    assert in_folder(plan, tmp_path).options == source.options
    start = loaded(source)
    names = start.task.names
    assert {name: float(weight) for name, weight in zip(names, start.W[:, 0], strict=True)} == OUT_OF_DOMAIN


# Generated files


def text_of(path) -> str:
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(Path(path).suffix, open)
    with opened(path, "rt", encoding="utf-8") as stream:
        return stream.read()


def tsv(pairs) -> str:
    return "".join(f"{label}\t{text}\n" for label, text in pairs)


def test_generated_sentences_are_where_the_plan_says(tmp_path):
    source = generated(small_plan("chunking"), tmp_path)
    assert source.train == (str(tmp_path / "conll2000" / "train.txt.gz"),)
    assert text_of(source.train[0]) == chunking_columns(generate_chunking(80, 1))  # with 20 to hold out
    assert text_of(source.test) == chunking_columns(generate_chunking(30, 3))
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["test.txt.gz", "train.txt.gz"]
    assert Path(source.test).read_bytes()[4:8] == bytes(4)  # no time of day in it
    data = loaded(source).data
    assert [len(part) for part in (data.train, data.dev, data.test)] == [60, 20, 30]
    apart = generated(plan_of("chunking", DataSpec(("train.txt",), "deep/er/dev.txt")), tmp_path / "apart")
    assert text_of(apart.train[0]) == chunking_columns(generate_chunking(60, 1))
    assert text_of(apart.dev) == chunking_columns(generate_chunking(20, 2))
    assert len([path for path in (tmp_path / "apart").rglob("*") if path.is_file()]) == 2


def test_generated_documents_are_where_the_plan_says(tmp_path):
    """One stream of documents, cut into train, dev and test: no document is in two of them."""
    data = DataSpec(("a.tsv", "sub/b.tsv", "c.tsv"), "dev.tsv", "test.tsv.gz")
    source = generated(plan_of("text", data), tmp_path)
    every = list(generate_texts(110, seed=1))
    shares = [every[:20], every[20:40], every[40:60]]
    assert [text_of(path) for path in source.train] == [tsv(share) for share in shares]
    assert text_of(source.dev) == tsv(every[60:80])
    assert text_of(source.test) == tsv(every[80:110])
    held = generated(small_plan("text"), tmp_path / "held")
    every = list(generate_texts(130, seed=1))
    assert text_of(held.train[0]) == tsv(every[:80])  # with 20 to hold out
    assert text_of(held.test) == tsv(every[100:130])
    data = loaded(held).data
    assert [len(part) for part in (data.train, data.dev, data.test)] == [60, 20, 30]


def test_generated_lists_are_where_the_plan_says(tmp_path):
    source = generated(builtin("smt"), tmp_path)
    for path, size, seed in ((source.train[0], 12, 1), (source.dev, 6, 2), (source.test, 8, 3)):
        assert text_of(path) == generate_nbest(size, seed).nbest()
        assert text_of(path.replace(".nbest.xz", ".ref")) == generate_nbest(size, seed).ref()
    for name, weights in (("out-of-domain", OUT_OF_DOMAIN), ("in-domain", IN_DOMAIN)):
        lines = text_of(source.bounds[name]).splitlines()
        assert {key: float(value) for key, value in map(str.split, lines)} == weights
    data = loaded(source).data
    assert [len(part) for part in (data.train, data.dev, data.test)] == [12, 6, 8]
    plan = plan_of("rerank", DataSpec(("a.nbest",)), init="start", bounds={"without": "o", "in": "i"})
    alone = generated(plan, tmp_path / "alone")
    assert sorted(path.name for path in (tmp_path / "alone").iterdir()) == ["a.nbest", "a.ref", "i", "o", "start"]
    for path, name in (("start", "out-of-domain"), ("o", "out-of-domain"), ("i", "in-domain")):
        assert text_of(tmp_path / "alone" / path) == text_of(source.bounds[name])
    assert alone.options == {"init": str(tmp_path / "alone" / "start")}


def test_files_that_are_there_are_not_generated_again(tmp_path):
    plan = small_plan("chunking")
    source = generated(plan, tmp_path)
    Path(source.train[0]).write_bytes(b"mine")
    assert generated(plan, tmp_path) == source
    assert Path(source.train[0]).read_bytes() == b"mine"
    Path(source.test).unlink()
    generated(plan, tmp_path)
    assert Path(source.train[0]).read_bytes() != b"mine"  # whole or not at all: parts of one law


@pytest.mark.parametrize(
    ("task", "options", "name"),
    [
        ("chunking", {"only": "NP", "template": "t"}, "template"),
        ("text", {"topics": "t"}, "topics"),
        ("rerank", {"dev_ref": ["r"]}, "dev_ref"),
    ],
)
def test_there_is_no_generator_for_other_files(task, options, name, tmp_path):
    with pytest.raises(UsageError) as caught:
        generated(plan_of(task, DataSpec(("a.nbest",), "b.nbest", "c.nbest", options)), tmp_path)
    assert str(caught.value) == f"{name} names a file, and there is no generator for it; use `data` DIR"


# reproduce


def test_without_data_it_says_what_to_do(tmp_path):
    with pytest.raises(UsageError, match="`data` DIR or the environment variable SPARSEZO_DATA, or use `data` gen"):
        run_reproduce("chunking", None, out=tmp_path)
    with pytest.raises(
        UsageError, match=r"chunking needs .*train.txt.gz, which is not there; name the folder .*`data`"
    ):
        run_reproduce("all", str(tmp_path), out=tmp_path)


def test_what_data_get_has_fetched_is_used(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(reproducing, "_reproduce", lambda plan, out, source, *_, **__: done.append(source) or [])
    monkeypatch.setattr(command, "write_report", lambda *_, **__: tmp_path / "report")
    generated(builtin("chunking"), cache_folder("data"))
    run_reproduce("chunking", None, out=tmp_path / "out")
    assert done == [in_folder(builtin("chunking"), cache_folder("data"))]
    with pytest.raises(UsageError, match="sparsezo data get conll2000"):
        run_reproduce("all", None, out=tmp_path / "other")
    assert len(done) == 1


# The paper's own text data, where the user has it


def write_rcv1(folder: Path, documents: int = 24) -> None:
    """Small files in RCV1-v2's form: each topic has words of its own."""
    folder.mkdir(parents=True)
    topics = ("CCAT", "ECAT", "GCAT", "MCAT")
    qrels, number = [], 0
    for name in (*(f"test_pt{part}" for part in range(4)), "train"):
        blocks = []
        for _ in range(documents):
            topic = topics[number % 4]
            blocks.append(f".I {number}\n.W\n{topic.lower()} word{number % 7} word{number % 5}\n\n")
            qrels.append(f"{topic} {number} 1\n")
            number += 1
        (folder / f"lyrl2004_tokens_{name}.dat").write_text("".join(blocks))
    (folder / "rcv1-v2.topics.qrels").write_text("".join(qrels))


def folder_of_20news(folder: Path) -> Path:
    (folder / "text").mkdir(parents=True)
    for name in ("train", "test"):
        lines = "".join(f"{label}\t{text}\n" for label, text in generate_texts(40, seed=1))
        with gzip.open(folder / "text" / f"20news4.{name}.tsv.gz", "wt", encoding="utf-8") as stream:
            stream.write(lines)
    return folder


def test_text_is_on_rcv1_where_the_folder_has_it(tmp_path):
    plan, folder = small_plan("text"), folder_of_20news(tmp_path / "data")
    usual = on_data(plan, folder)
    assert (usual.data, usual.note) == (replace(plan.data, instead=None), plan.note)
    write_rcv1(folder / "rcv1")
    papers = on_data(plan, folder)
    assert (papers.data, papers.note) == (DataSpec(("rcv1",), split=True), None)
    assert on_data(plan, None) == usual  # generated data stands for what is free
    source = in_folder(papers, folder)
    assert source.identity != in_folder(usual, folder).identity
    data = loaded(source).data
    assert [len(part) for part in (data.train, data.dev, data.test)] == [72, 3, 24]  # the paper's split


def test_rcv1_alone_is_enough(tmp_path):
    plan = small_plan("text")
    assert not present(plan, tmp_path)
    write_rcv1(tmp_path / "rcv1")
    assert present(plan, tmp_path)


def test_reproduce_text_tunes_and_tests_on_rcv1(tmp_path):
    write_rcv1(tmp_path / "data" / "rcv1")
    plan = small_plan("text")
    learner = replace(plan.learners[2], grid_h=(0.1,), grid_mu=(1.0,))
    plan = replace(plan, learners=(learner,), seeds=(0,), iterations=3000)
    done = reproducing.reproduce(plan, str(tmp_path / "data"), out=tmp_path / "out", processes=1)
    assert not done.failures
    found = read_experiment(tmp_path / "out")
    assert found.data == "rcv1"
    assert 'train = ["rcv1"]' in found.declared_text
    (one,) = found.learners
    assert one.spread("tuned", "test").values[0] > 0.5
    assert {run.seed for run in one.runs("tuned")} == {0}
    assert found.tuning_seeds == {1000, 1001, 1002}
    assert not found.gaps


def test_a_part_of_rcv1_is_an_error_that_names_the_file(tmp_path):
    write_rcv1(tmp_path / "rcv1")
    (tmp_path / "rcv1" / "lyrl2004_tokens_test_pt3.dat").unlink()
    with pytest.raises(DataError, match=r"lyrl2004_tokens_test_pt3\.dat: no such file"):
        loaded(in_folder(on_data(small_plan("text"), tmp_path), tmp_path))
