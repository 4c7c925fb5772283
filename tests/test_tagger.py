"""Tagger: a model as a function of batches, in this process and in others, gives what ``Model.tag`` gives, in order."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from sparsezo import Chunking, Model, Reranking, Tagger, TextClassification, UsageError, load_model, read_documents
from sparsezo.tasks.chunking.io.documents import Document, Span
from sparsezo.tasks.chunking.io.raw import corpus_of

TEXTS = [f"Anna met Rome in {year}." if year % 3 else "" for year in range(2000, 2012)]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """Every word with a capital is a person, more or less."""
    labelled = Document("Anna went to Rome.", spans=(Span(0, 4, "PER"), Span(13, 17, "PER")))
    read = corpus_of([labelled], "x", labelled=True)
    task, _ = Chunking.fit(read, tags="PER", split="sentences")
    W = np.random.default_rng(1).normal(size=(task.n_features, task.n_labels)).astype(np.float32)
    path = tmp_path_factory.mktemp("model") / "m.szo"
    Model(task, W, {}, {}).save(path)
    return path


@pytest.fixture(scope="module")
def expected(model) -> list[list[dict[str, object]]]:
    spans = [[asdict(span) for span in found] for found in load_model(model).tag(TEXTS)]
    assert any(spans)
    assert not all(spans)
    return spans


def batches(size: int = 5) -> list[dict[str, list]]:
    rows = range(0, len(TEXTS), size)
    return [{"number": list(range(k, min(k + size, len(TEXTS)))), "text": TEXTS[k : k + size]} for k in rows]


def test_a_batch_comes_back_with_its_spans(model, expected):
    for tagger in (Tagger(model), load_model(model).tagger()):
        batch = {"number": np.arange(len(TEXTS)), "text": np.array(TEXTS, object)}
        found = tagger(batch)
        assert list(found) == ["number", "text", "spans"]
        assert found["number"] is batch["number"]
        assert found["spans"] == expected
        assert tagger({"text": []}) == {"text": [], "spans": []}
    likely = Tagger(model, threshold=0.5, column="body")({"body": TEXTS})["spans"]
    assert likely == [[span for span in spans if span["probability"] >= 0.5] for spans in expected]


def test_it_is_small_when_it_is_sent_and_loads_what_is_there_now(model, expected, tmp_path):
    tagger = Tagger(model)
    tagger({"text": TEXTS[:1]})
    assert len(pickle.dumps(tagger)) < 500
    carried = load_model(model).tagger()
    assert len(pickle.dumps(carried)) < model.stat().st_size + 500
    assert pickle.loads(pickle.dumps(carried))({"text": TEXTS})["spans"] == expected
    moved = tmp_path / "m.szo"
    moved.write_bytes(model.read_bytes())
    tagger = Tagger(moved)
    assert tagger({"text": TEXTS})["spans"] == expected
    known = load_model(model)
    Model(known.task, np.zeros_like(known.W), {}, {}).save(moved)
    assert tagger({"text": TEXTS})["spans"] != expected


def test_frames_one_after_the_other(model, expected):
    pandas = pytest.importorskip("pandas")
    frames = Tagger(model).frames(pandas.DataFrame(batch) for batch in batches())
    found = pandas.concat(list(frames))
    assert list(found.columns) == ["number", "text", "spans"]
    assert found["spans"].tolist() == expected


def test_a_pool_of_processes(model, expected):
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        found = [spans for batch in pool.map(Tagger(model), batches(2)) for spans in batch["spans"]]
    assert found == expected


def test_datasets(model, expected):
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"text": TEXTS}).map(Tagger(model), batched=True, batch_size=6)
    assert [[{**span, "probability": pytest.approx(span["probability"])} for span in row] for row in expected] == list(
        rows["spans"]
    )


@pytest.mark.filterwarnings("ignore")  # Ray Data warns of its own settings
def test_ray_data(model, expected, own_ray):
    import ray.data

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars, context.execution_options.preserve_order = False, True
    rows = ray.data.from_items([{"text": text} for text in TEXTS], override_num_blocks=3)
    found = rows.map_batches(load_model(model).tagger(), batch_size=4).take_all()
    assert [list(row["spans"]) for row in found] == expected


def test_classes_and_what_has_no_texts(tmp_path):
    (tmp_path / "train").write_text("A\tred red\nB\tblue\n")
    task, _ = TextClassification.fit(read_documents(str(tmp_path / "train")))
    column = {word: k for k, word in enumerate(task.feature_names())}
    W = np.zeros((task.n_features, 2), np.float32)
    W[column["red"], 0] = W[column["blue"], 1] = 1
    tagger = Model(task, W, {}, {}).tagger()
    assert tagger({"text": ["blue sky", "red"]})["label"] == ["B", "A"]
    assert tagger({"text": []})["label"] == []
    with pytest.raises(UsageError, match="column text: a value of type NoneType, where texts are meant"):
        tagger({"text": ["red", None]})
    reranker = Model(Reranking(("LM",), (0.0,)), np.ones((1, 1)), {}, {}).tagger()
    with pytest.raises(UsageError, match="task rerank is not offered for batches of texts"):
        reranker({"text": ["red"]})
