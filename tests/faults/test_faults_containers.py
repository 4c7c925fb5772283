"""Damaged and crafted models, checkpoints and states: refused in one line, or read as what they were."""

from __future__ import annotations

import io
import json
from functools import partial

import numpy as np
import pytest
from array_mutations import Members, damaged_zip, npy
from mutations import Anything, cases, damaged, endure, in_file

from sparsezo import messages
from sparsezo.errors import DamagedError
from sparsezo.learner import Learner
from sparsezo.model import Model, load_model
from sparsezo.optimizer import Optimizer
from sparsezo.settings import Settings
from sparsezo.storage import container
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data
from sparsezo.tasks.rerank.task import Reranking
from sparsezo.tasks.text.features.pieces import Pieces
from sparsezo.tasks.text.features.word_vectors import WordVectors
from sparsezo.tasks.text.io.documents import read_documents
from sparsezo.tasks.text.task import TextClassification
from sparsezo.training import Training

anything = lambda data: Anything  # noqa: E731


def with_sums(members: Members) -> Members:
    """A container's own sums put right, so that the damage is read."""
    head = json.loads(_content(members["meta.npy"]))
    arrays = {name.removesuffix(".npy"): _read(raw) for name, raw in members.items() if name != "meta.npy"}
    head["arrays"] = {name: container._fact(array) for name, array in arrays.items()}
    head.pop("sum", None)
    head["sum"] = container._head_sum(head)
    return {**members, "meta.npy": npy(np.frombuffer(json.dumps(head).encode(), np.uint8))}


def _read(raw: bytes) -> np.ndarray:
    return np.lib.format.read_array(io.BytesIO(raw), allow_pickle=False)


def _content(raw: bytes) -> bytes:
    return _read(raw).tobytes()


crafted = partial(damaged_zip, repair=with_sums)


def chunking(order=2):
    return Chunking.fit(chunking_corpus(4, seed=5), order=order, min_count=2)


def saved(model, tmp_path):
    path = tmp_path / "model.szo"
    model.save(path)
    return path.read_bytes()


@pytest.fixture
def model_file(tmp_path):
    """A small chunker, and what is read of it: enough to notice any change that counts."""
    task, corpus = chunking()
    W = np.random.default_rng(1).standard_normal((task.n_features, task.n_labels)).astype(np.float32)
    result = {"dev": 0.5, "metric": "f1", "iterations": 10}
    curve = {"iterations": np.arange(3), "average_loss": np.ones(3), "dev": np.full(3, np.nan)}
    raw = saved(Model(task, W, Settings().as_dict(), result, curve), tmp_path)

    def read(path):
        model = load_model(path)
        settings, arrays = model.task.to_arrays()
        outputs = model.predict(corpus)
        return model.W, model.settings, model.result, model.curve, settings, arrays, outputs

    return raw, in_file(tmp_path / "damaged.szo", read)


@pytest.mark.parametrize("n", cases(100))
def test_damaged_models(n, model_file):
    """No byte of a model goes wrong unnoticed."""
    raw, read = model_file
    endure(read, raw, damaged, n)


@pytest.mark.parametrize("n", cases(100))
def test_crafted_models(n, model_file):
    """Whatever is in it with right sums, a chunker is refused, or tags."""
    raw, read = model_file
    endure(read, raw, crafted, n, reference=anything)


def small_vectors(kind):
    """Of words, of pieces of words, or none."""
    table = np.arange(12, dtype=np.float16).reshape(6, 2) - 5
    if kind == "words":
        return WordVectors("x", table, ["red", "fox", "grey", "wolf", "the", "cat"])
    if kind == "pieces":
        words = ["<s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "r", "e", "d", "re", "red"]
        merges = np.array([(258, 259), (261, 260)], np.int32)
        return WordVectors("x", np.resize(table, (len(words), 2)), Pieces(words, merges, ["<s>"]))
    return None


@pytest.mark.parametrize("n", cases(40))
@pytest.mark.parametrize("vectors", [None, "words", "pieces"])
def test_crafted_models_of_text(n, vectors, tmp_path):
    (tmp_path / "train.tsv").write_text("x\ta red fox\ny\ta grey wolf\nx\tthe red cat<s>\n")
    documents = read_documents(tmp_path / "train.tsv")
    with messages.gathered():
        task, _ = TextClassification.fit(documents, vectors=small_vectors(vectors))
    raw = saved(Model(task, np.ones((task.n_features, 2), np.float32), {}, {}), tmp_path)

    def read(path):
        model = load_model(path)
        return model.task.words(model.predict(documents))

    endure(in_file(tmp_path / "damaged.szo", read), raw, crafted, n, reference=anything)


@pytest.mark.parametrize("n", cases(40))
def test_crafted_models_of_lists(n, tmp_path):
    task = Reranking(("LM", "Words", "Late"), (0.5, -1.0, 0.25))
    raw = saved(Model(task, np.ones((3, 1)), {}, {}), tmp_path)

    def read(path):
        model = load_model(path, "rerank")
        return model.task.export(tmp_path / "weights", model.W)

    endure(in_file(tmp_path / "damaged.szo", read), raw, crafted, n, reference=anything)


# ---- checkpoints ----


@pytest.fixture
def checkpoint(tmp_path):
    """A run that was stopped half way, and its end as it is read from there."""
    task, corpus = chunking()
    path = tmp_path / "run.checkpoint"

    def training(resume):
        settings = Settings("two-point", "all", h=0.01)
        return Training(task, Data(corpus, corpus), settings, 40, evaluate_every=20, checkpoint=path, resume=resume)

    half = training(False)
    half._evaluate()
    half.learner.run(half.gold, 20)
    half._evaluate()
    half._save()

    def read(_path):
        outcome = training(True).go()
        return outcome.model.W, {name: outcome.result[name] for name in ("dev", "best_iteration", "average_loss")}

    return path.read_bytes(), in_file(path, read)


@pytest.mark.parametrize("n", cases(40))
def test_damaged_checkpoints(n, checkpoint):
    """A run goes on as it would have, or not at all."""
    raw, read = checkpoint
    endure(read, raw, damaged, n)


@pytest.mark.parametrize("n", cases(70))
def test_crafted_checkpoints(n, checkpoint):
    raw, read = checkpoint
    endure(read, raw, crafted, n, reference=anything)


# ---- states of optimizers and learners ----


def optimizer_state(settings):
    optimizer = Optimizer(9, settings)
    open_ones = [optimizer.ask([k, k + 3, 8 - k], np.eye(3)[:2]) for k in range(3)]
    optimizer.tell(open_ones[1], (0.25, 0.75))
    return optimizer.to_bytes()


def go_on(optimizer):
    """Answer what is open, and learn once more."""
    for proposal in optimizer.open_proposals:
        optimizer.tell(proposal, 0.5 if proposal.incumbent is None else (0.25, 0.5))
    proposal = optimizer.ask(0) if isinstance(optimizer, Learner) else optimizer.ask([1, 2], np.eye(2))
    optimizer.tell(proposal, 0.5 if proposal.incumbent is None else (0.25, 0.5))
    return optimizer.weights(), optimizer.average_loss, optimizer.settings


STATES = [
    Settings("two-point", "score", h=0.1),
    Settings("symmetric", "all", h=0.1),
    Settings("preference", "active", h=0.1, step="adagrad"),
]


@pytest.mark.parametrize("n", cases(20))
@pytest.mark.parametrize("settings", STATES, ids=str)
def test_damaged_states(n, settings):
    endure(lambda data: go_on(Optimizer.from_bytes(data)), optimizer_state(settings), damaged, n)


@pytest.mark.parametrize("n", cases(30))
@pytest.mark.parametrize("settings", STATES, ids=str)
def test_crafted_states(n, settings):
    raw = optimizer_state(settings)
    endure(lambda data: go_on(Optimizer.from_bytes(data)), raw, crafted, n, reference=anything)


@pytest.mark.parametrize("n", cases(30))
@pytest.mark.parametrize(
    "settings", [Settings("two-point", "all", h=0.1), Settings("first-order", None, 0.1, None)], ids=str
)
def test_crafted_states_of_learners(n, settings):
    """An output in it that the model cannot have never reaches compiled code."""
    task, corpus = chunking(order=1)
    problem = task.problem(corpus)
    learner = Learner(problem, settings)
    asked = [learner.ask() for _ in range(3)]
    learner.tell(asked[1], 0.5 if asked[1].incumbent is None else (0.5, 0.25))
    raw = learner.to_bytes()
    endure(lambda data: go_on(Learner.from_bytes(data, problem)), raw, crafted, n, reference=anything)


@pytest.mark.parametrize("name", ["W", "q", "Q_row", "counts", "sums", "best"])
def test_a_checkpoint_of_another_shape_or_type_is_not_made_to_fit(name, checkpoint):
    """NumPy would spread one number over a whole array without a word."""
    raw, read = checkpoint
    meta, arrays = container.unpack(raw, "checkpoint", "it")
    for wrong in (np.zeros((1, 1)), np.zeros(1), arrays[name].astype(np.int8)):
        with pytest.raises(DamagedError, match=rf"run\.checkpoint: is damaged \({name} is .* of shape"):
            read(container.pack("checkpoint", meta, {**arrays, name: wrong}))
