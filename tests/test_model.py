"""A model in a file: what is in it, what comes back, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from sparsezo.errors import DamagedError, DataError, UsageError
from sparsezo.model import Model, load_model
from sparsezo.storage.container import read_container, write_container
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.rerank.task import Reranking

TASK = Reranking(("LM", "Words", "Late"), (0.5, -1.0, 0.25))
W = np.array([[1.5], [-2.5], [0.125]])
CURVE = {"iterations": np.array([10, 20]), "dev": np.array([0.25, 0.5])}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.szo"
    Model(TASK, W, {"h": 0.25}, {"dev": 0.5}, CURVE).save(path)
    return path


def changed(path, meta=(), arrays=(), without=()):
    """The file with some of its parts replaced or left out."""
    old_meta, old_arrays = read_container(path, "model")
    meta = {key: value for key, value in {**old_meta, **dict(meta)}.items() if key not in without}
    arrays = {key: value for key, value in {**old_arrays, **dict(arrays)}.items() if key not in without}
    write_container(path, "model", meta, arrays)
    return path


def test_everything_comes_back(path):
    for model in (load_model(path), load_model(str(path), "rerank")):
        assert isinstance(model.task, Reranking)
        assert (model.task.names, model.task.init) == (TASK.names, TASK.init)
        np.testing.assert_array_equal(model.W, W)
        assert model.W.dtype == W.dtype
        assert (model.settings, model.result) == ({"h": 0.25}, {"dev": 0.5})
        assert set(model.curve) == {"iterations", "dev"}
        for name, values in CURVE.items():
            np.testing.assert_array_equal(model.curve[name], values)
            assert model.curve[name].dtype == values.dtype


def test_what_is_in_the_file(path):
    meta, arrays = read_container(path, "model")
    names = ("task", "task_settings", "settings", "result")
    assert {name: meta[name] for name in names} == {
        "task": "rerank",
        "task_settings": {"names": ["LM", "Words", "Late"]},
        "settings": {"h": 0.25},
        "result": {"dev": 0.5},
    }
    assert sorted(arrays) == ["W", "curve.dev", "curve.iterations", "task.init"]
    np.testing.assert_array_equal(arrays["task.init"], [0.5, -1.0, 0.25])


@pytest.mark.parametrize("shape", [(2, 1), (4, 1), (3, 2), (3,), (1, 3)])
def test_weights_of_another_shape_are_refused(path, shape):
    changed(path, arrays={"W": np.zeros(shape)})
    with pytest.raises(DataError) as caught:
        load_model(path)
    why = f"weights of shape {shape} for 3 features, 1 labels"
    assert str(caught.value) == f"{path}: is damaged ({why}); make it anew or copy it again"


@pytest.mark.parametrize("part", ["W", "task_settings", "settings", "result", "task.init"])
def test_a_part_that_is_missing_is_named(path, part):
    changed(path, without=[part])
    with pytest.raises(DataError) as caught:
        load_model(path)
    missing = part.removeprefix("task.")
    assert str(caught.value) == f"{path}: is damaged ('{missing}'); make it anew or copy it again"


@pytest.mark.parametrize("part", ["task_settings", "settings", "result"])
@pytest.mark.parametrize("value", [None, 3, "x", [1]])
def test_parts_of_the_head_are_tables(path, part, value):
    changed(path, meta={part: value})
    with pytest.raises(DamagedError, match=rf"is damaged \({part} is no table\)"):
        load_model(path)


@pytest.mark.parametrize("kind", [np.int32, np.uint8, bool])
def test_weights_of_another_type_are_refused(path, kind):
    changed(path, arrays={"W": np.ones((3, 1), kind)})
    with pytest.raises(DamagedError, match=rf"weights of type {np.dtype(kind)}"):
        load_model(path)


@pytest.mark.parametrize("names", [["LM", "LM", "Late"], ["LM", 3, "Late"], ["LM", "Words"], [[], "a", "b"]])
def test_features_have_names_each_its_own(path, names):
    changed(path, meta={"task_settings": {"names": names}})
    with pytest.raises(DamagedError):
        load_model(path)


@pytest.mark.parametrize("init", [np.zeros(2), np.zeros((3, 1)), np.zeros(3, int), np.array([0, 0, np.nan])])
def test_initial_weights_that_do_not_fit(path, init):
    changed(path, arrays={"task.init": init})
    with pytest.raises(DamagedError):
        load_model(path)


@pytest.fixture
def chunker(tmp_path):
    task, corpus = Chunking.fit(chunking_corpus(5, seed=5), min_count=2)
    path = tmp_path / "chunker.szo"
    Model(task, np.zeros((task.n_features, task.n_labels), np.float32), {}, {}).save(path)
    load_model(path).predict(corpus)
    return path


def moved(name, change):
    def array(arrays):
        values = arrays[name].copy()
        change(values)
        return {name: values}

    return array


def put(place, value):
    def change(values):
        values[place] = value

    return change


@pytest.mark.parametrize(
    "craft",
    [
        moved("task.numbers", put(0, 10**6)),
        moved("task.numbers", put(0, -5)),
        moved("task.numbers", put(slice(0, 2), 1)),
        moved("task.keys", put(3, -1)),
        moved("task.keys", put(0, 2**62)),
        moved("task.key_stops", put(0, 10**6)),
        moved("task.key_stops", put(-1, 3)),
        moved("task.n_ranks", put(0, 1)),
        moved("task.n_ranks", put(0, -1)),
        lambda arrays: {"task.numbers": arrays["task.numbers"][:-1]},
        lambda arrays: {"task.numbers": arrays["task.numbers"].astype(np.float64)},
        lambda arrays: {"task.key_stops": arrays["task.key_stops"][:-1]},
        lambda arrays: {"task.n_ranks": arrays["task.n_ranks"][:-1]},
        lambda arrays: {"task.vocabulary_0": np.frombuffer(b"a\na", np.uint8)},
        lambda arrays: {"task.vocabulary_0": np.frombuffer(b"\xff", np.uint8)},
    ],
)
def test_a_chunker_whose_attributes_are_beyond_its_weights(chunker, craft):
    """Compiled code believes these numbers."""
    changed(chunker, arrays=craft(read_container(chunker, "model")[1]))
    with pytest.raises(DamagedError):
        load_model(chunker)


@pytest.mark.parametrize(
    "settings",
    [
        {"tags": ["B-NP", "I-NP"]},
        {"tags": []},
        {"tags": ["O", "O", "O"]},
        {"tags": ["B-NP", 3, "O"]},
        {"order": 3},
        {"order": "2"},
        {"n_columns": 7},
        {"only": 3},
        {"templates": ["U00:%x[0,9]"]},
        {"templates": ["U00:%x["]},
        {"templates": 5},
        {"templates": []},
    ],
    ids=str,
)
def test_a_chunker_whose_settings_cannot_be(chunker, settings):
    meta, _ = read_container(chunker, "model")
    changed(chunker, meta={"task_settings": {**meta["task_settings"], **settings}})
    with pytest.raises(DamagedError, match=r"chunker\.szo: is damaged"):
        load_model(chunker)


def test_a_model_of_another_task_is_refused(path):
    with pytest.raises(DataError) as caught:
        load_model(path, "chunking")
    assert str(caught.value) == f"{path}: is a model of task rerank, not of chunking"


def test_a_task_that_this_version_does_not_know(path):
    changed(path, meta={"task": "parsing"})
    with pytest.raises(UsageError) as caught:
        load_model(path)
    assert str(caught.value) == f"{path}: is a model of task parsing; this sparsezo knows chunking, text, rerank"
