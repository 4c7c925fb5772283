"""Reranking as a task: features by name, learning, BLEU of what is chosen, and weights that go back to the decoder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sparsezo.errors import DivergedError, SparsezoError, UsageError
from sparsezo.kernels import loop
from sparsezo.learner import Learner, predict
from sparsezo.settings import Settings
from sparsezo.tasks.rerank.io.decoder_weights import read_weights
from sparsezo.tasks.rerank.io.importing import import_nbest
from sparsezo.tasks.rerank.io.nbest import NBestList, read_nbest
from sparsezo.tasks.rerank.metric import corpus_bleu
from sparsezo.tasks.rerank.task import Reranking

NAMES = [f"F{k}" for k in range(9)] + ["Late"]
SIZES = [12, 1, 3, 30, 17, 8]
WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "ran", ".", "here"]


def write_lists(folder: Path, name: str, sizes=SIZES, names=NAMES, seed=0) -> Path:
    """Lists of random sentences; every F is there from the first line, Late from the fourth list on."""
    rng = np.random.default_rng(seed)
    lines, references = [], []
    for i, size in enumerate(sizes):
        reference = rng.choice(WORDS, 8)
        references.append(" ".join(reference))
        for _ in range(size):
            words = np.where(rng.uniform(size=8) < 0.4, rng.choice(WORDS, 8), reference)[: rng.integers(4, 9)]
            values = rng.normal(0, 1, len(names)).round(3)
            pairs = [f"{n}={v}" for n, v in zip(names, values, strict=True) if n != "Late" or i > 2]
            lines.append(f"{i} ||| {' '.join(words)} ||| {' '.join(pairs)} ||| 0\n")
    (folder / f"{name}.nbest").write_text("".join(lines))
    (folder / f"{name}.ref").write_text("".join(line + "\n" for line in references))
    return folder / f"{name}.nbest"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rerank")


@pytest.fixture(scope="module")
def store(folder):
    return import_nbest(write_lists(folder, "train"), store_dir=folder / "stores")


@pytest.fixture(scope="module")
def task(store):
    return Reranking.fit(store, {"F1": 0.5, "F0": -1.0, "Late": 0.25})


def outputs_of(store, w):
    """The best candidate of every list, in plain NumPy; w: name -> weight."""
    v = np.array([w.get(name, 0.0) for name in store.names])
    return np.array([np.argmax(store.features[store.list(i)].astype(float) @ v) for i in range(len(store))], np.int32)


def start(task, problem, **settings):
    return Learner(problem, Settings(**settings), task.initial_weights())


# ---- features and weights by name ----


def test_initial_weights(store, task):
    assert task.names == tuple(NAMES)
    assert task.initial_weights().ravel().tolist() == [-1.0, 0.5, *[0.0] * 7, 0.25]
    assert task.initial_weights().dtype == np.float64
    assert Reranking.fit(store).initial_weights().tolist() == [[0.0]] * 10


def test_weights_of_another_decoder_are_refused(store):
    with pytest.raises(UsageError, match=r"they have F0, F1, F2, \.\.\., the weights are for LM0; is it another"):
        Reranking.fit(store, {"LM0": 1.0})


def test_problem(store, task):
    problem = task.problem(store)
    assert np.shares_memory(problem.inputs.features, store.features)
    assert len(problem) == len(SIZES)
    C = [store.features[store.list(i)].astype(float) for i in range(6)]
    assert problem.n_active.tolist() == [(c != 0).any(axis=0).sum() for c in C] == [9, 9, 9, 10, 10, 10]
    assert problem.n_score.tolist() == [np.linalg.matrix_rank(c) for c in C] == [9, 1, 3, 10, 10, 8]
    assert (problem.max_rows, problem.max_columns, problem.max_outputs) == (30, 10, 1)
    assert not task.problem(store, learn=False).n_score.any()


def test_other_lists_are_put_in_order_by_name(folder, task):
    """Their columns stand otherwise, one is missing, one is new and has no weight."""
    names = ["New", "Late", *NAMES[:8][::-1]]
    dev = import_nbest(write_lists(folder, "dev", names=names, seed=1), store_dir=folder / "stores")
    features = task.features(dev)
    for k, name in enumerate(NAMES):
        expected = dev.features[:, dev.names.index(name)] if name in names else 0
        np.testing.assert_array_equal(features[:, k], expected)
    W = task.initial_weights()
    W[:, 0] = np.linspace(-1, 1, 10)
    got = predict(task.problem(dev, learn=False), W)
    np.testing.assert_array_equal(got, outputs_of(dev, dict(zip(NAMES, W[:, 0], strict=True))))


def test_lists_with_the_first_features_only_are_not_copied(folder, task):
    """A store whose columns are the first of the model's, in order, is used as it lies on disk."""
    dev = import_nbest(write_lists(folder, "early", names=NAMES[:9], seed=2), store_dir=folder / "stores")
    problem = task.problem(dev, learn=False)
    assert np.shares_memory(problem.inputs.features, dev.features)
    W = np.linspace(-1, 1, 10)
    np.testing.assert_array_equal(predict(problem, W.reshape(10, 1)), outputs_of(dev, dict(zip(NAMES, W, strict=True))))


def test_weights_without_a_feature_in_train_are_kept(folder, store):
    """They do not move, count where other lists have the feature, and go back to the decoder."""
    task = Reranking.fit(store, {"F0": 1.0, "New": 3.0})
    assert task.names == (*NAMES, "New")
    problem = task.problem(store)
    assert np.shares_memory(problem.inputs.features, store.features)
    learner = start(task, problem, perturb="all", h=0.1, mu=0.5)
    learner.run(task.gold(store), 200)
    W = learner.weights()
    assert W[10, 0] == 3.0
    assert (W[:10] != task.initial_weights()[:10]).all()
    dev = import_nbest(write_lists(folder, "new", names=["New", "F0"], seed=3), store_dir=folder / "stores")
    expected = outputs_of(dev, {"New": 3.0, "F0": W[0, 0]})
    np.testing.assert_array_equal(predict(task.problem(dev, learn=False), W), expected)


def test_lists_that_share_no_feature_are_refused(folder, task):
    other = import_nbest(write_lists(folder, "other", names=["X", "Y"]), store_dir=folder / "stores")
    message = r"other\.nbest: its lists have X, Y, none of the model's features, F0, F1, F2, \.\.\.$"
    with pytest.raises(SparsezoError, match=message):
        task.problem(other)
    with pytest.raises(SparsezoError, match=message):
        list(task.known(other.source, read_nbest(folder / "other.nbest")))


def test_save_and_load(task):
    settings, arrays = task.to_arrays()
    again = Reranking.from_arrays(json.loads(json.dumps(settings)), arrays)
    assert again.names == task.names
    np.testing.assert_array_equal(again.initial_weights(), task.initial_weights())
    assert (again.n_features, again.n_labels) == (10, 1)
    assert again.init == (-1.0, 0.5, *[0.0] * 7, 0.25)
    assert (again.name, again.metric) == ("rerank", "bleu")
    assert task.feature_names() == tuple(NAMES)
    assert len(task.label_names()) == task.n_labels == 1


def test_gold_is_each_candidate_s_loss(store, task):
    """Its own list's, in the order of the store; the losses are 1 - the smoothed BLEU of the texts."""
    gold = task.gold(store)
    assert gold.offsets.tolist() == np.cumsum([0, *SIZES]).tolist()
    np.testing.assert_array_equal(gold.losses, store.losses)
    np.testing.assert_array_equal(gold.statistics, store.statistics)
    problem = task.problem(store)
    for x, j in ((0, 11), (3, 7), (5, 0)):
        assert loop.loss(gold, problem.task, x, np.array([j], np.int32)) == store.losses[gold.offsets[x] + j]


def test_weights_go_back_to_the_decoder(tmp_path, task):
    W = np.linspace(-1, 1, 10).reshape(10, 1) / 3
    cdec, moses = task.export(tmp_path / "model", W)
    assert (cdec.name, moses.name) == ("model.weights", "model.ini")
    assert moses.read_text().startswith("[weight]\n")
    for path in (cdec, moses):
        assert read_weights(path) == dict(zip(NAMES, W[:, 0].tolist(), strict=True))


# ---- learning ----


@pytest.mark.parametrize(
    "settings",
    [
        {"rule": "two-point", "perturb": "active", "h": 0.05, "mu": 0.3},
        {"rule": "symmetric", "perturb": "score", "h": 0.05, "mu": 0.3},
        {"rule": "two-point", "perturb": "score", "h": 0.05, "mu": 0.3, "criterion": "annealed", "gamma": 2.0},
        {"rule": "first-order", "perturb": None, "mu": None, "h": 0.3, "baseline": True},
        {"rule": "supervised", "perturb": None, "mu": None, "h": 0.3},
    ],
    ids=lambda s: f"{s['rule']}-{s.get('criterion', 'map')}",
)
def test_learners_lower_the_loss(store, task, settings):
    """Of the chosen candidates; the six lists can be fitted."""
    problem, gold = task.problem(store, risk=True), task.gold(store)
    learner = start(task, problem, **settings)
    learner.run(gold, 20_000)

    def loss(W):
        return gold.losses[gold.offsets[:-1] + predict(problem, W)].mean()

    best = np.mean([store.losses[store.list(i)].min() for i in range(6)])
    before, after = loss(task.initial_weights()) - best, loss(learner.weights()) - best
    assert after < 0.5 * before


# ---- what is chosen ----


def test_scores_are_sacrebleus(store, task):
    y = predict(task.problem(store, learn=False), task.initial_weights())
    np.testing.assert_array_equal(y, outputs_of(store, {"F1": 0.5, "F0": -1.0, "Late": 0.25}))
    texts = task.words(store, y)
    assert texts == [store.hypothesis(store.list(i).start + int(y[i])) for i in range(6)]
    result = task.scores(store, y)
    expected = corpus_bleu(texts, store.references)
    assert (result.metric, result.value) == ("bleu", expected.bleu)
    assert result.report["signature"] == expected.signature
    assert result.report["length_ratio"] == expected.length_ratio
    words = [sum(len(text.split()) for text in side) for side in (texts, store.references[0])]
    assert result.report["length_ratio"] == pytest.approx(words[0] / words[1])
    assert (result.report["bleu"], result.report["sentences"]) == (expected.bleu, 6)
    chosen = store.offsets[:-1] + y
    assert result.report["sentence_bleu"] == pytest.approx(1 - store.losses[chosen].mean(), abs=1e-12)
    assert task.quality(task.problem(store), task.gold(store), y) == pytest.approx(expected.bleu, abs=1e-12)


def test_reranked_lists(tmp_path, folder, store, task):
    W = np.linspace(-1, 1, 10).reshape(10, 1)
    lines = [line for nbest in read_nbest(folder / "train.nbest") for line in task.reranked(nbest, W)]
    assert len(lines) == store.n_candidates
    (tmp_path / "out.nbest").write_text("".join(line + "\n" for line in lines))
    best = predict(task.problem(store, learn=False), W)
    for nbest in read_nbest(tmp_path / "out.nbest"):
        rows = store.list(nbest.id)
        own = [line for line in lines if line.startswith(f"{nbest.id} |||")]
        scores = [float(line.split("|||")[3]) for line in own]
        assert scores == sorted(scores, reverse=True)
        assert nbest.hypotheses[0] == store.hypothesis(rows.start + int(best[nbest.id]))
        w = [W[NAMES.index(name), 0] for name in nbest.names]
        np.testing.assert_allclose(scores, nbest.features.astype(float) @ w, rtol=1e-8)
        assert sorted(nbest.hypotheses) == sorted(store.hypothesis(j) for j in range(rows.start, rows.stop))


def test_of_equal_candidates_the_first_comes_first(task):
    """The names may stand otherwise, and others may be among them."""
    features = np.array([[1, 2, 1], [9, 9, 1], [0, 0, 1]], np.float32)
    equal = NBestList(0, 1, ("Other", "F9", "F0"), list("abc"), features)
    assert task.order(equal, np.linspace(-1, 1, 10).reshape(10, 1))[0].tolist() == [0, 1, 2]


# ---- what it does not take ----


def nbest(i, names):
    return NBestList(i, i + 1, tuple(names), ["x"], np.ones((1, len(names)), np.float32))


def test_lists_are_held_back_until_one_has_a_known_feature(task):
    lists = [nbest(0, []), nbest(1, ["X"]), nbest(2, ["X", "F3"]), nbest(3, ["X", "F3"])]
    assert [each.id for each in task.known("here", lists)] == [0, 1, 2, 3]
    read = iter(nbest(i, ["X"]) for i in range(5000))
    with pytest.raises(SparsezoError, match=r"^here: its lists have X, none of"):
        next(task.known("here", read))
    assert 1000 <= next(read).id < 2000  # not all of a long file is kept in memory
    with pytest.raises(SparsezoError, match=r"^here: its lists have no features, none of"):
        next(task.known("here", [nbest(0, [])]))


CRAFTED = [
    ({"names": ["A", "A"]}, np.zeros(2)),
    ({"names": ["A", 1]}, np.zeros(2)),
    ({"names": "AB"}, np.zeros(2)),
    ({"names": []}, np.zeros(0)),
    ({"names": ["A", "B"]}, np.zeros(3)),
    ({"names": ["A", "B"]}, np.zeros((2, 1))),
    ({"names": ["A", "B"]}, np.array([0, np.nan])),
    ({"names": ["A", "B"]}, np.zeros(2, complex)),
    ({"names": ["A", "B"]}, np.array(["0", "1"])),
    ({}, np.zeros(2)),
]


@pytest.mark.parametrize(("settings", "init"), CRAFTED)
def test_a_model_that_was_made_up(settings, init):
    with pytest.raises((ValueError, TypeError, KeyError)):
        Reranking.from_arrays(settings, {"init": init})


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308])
def test_an_order_by_scores_that_are_not_finite_is_refused(task, bad):
    """Also where the list at hand does not have the feature, unless only its scores would overflow."""
    W = task.initial_weights()
    W[9] = bad
    with pytest.raises(DivergedError, match="scores that are not finite"):
        task.order(NBestList(0, 1, ("F0", "Late"), ["x"], np.array([[1, 1e10]], np.float32)), W)
    if bad != 1e308:
        with pytest.raises(DivergedError, match="scores that are not finite"):
            task.order(nbest(0, ["F0"]), W)
    with pytest.raises(UsageError, match="3 weights for 10 features; give one for each"):
        task.order(nbest(0, ["F0"]), np.zeros(3))


def test_features_without_an_initial_weight_are_named(store, said):
    Reranking.fit(store, dict.fromkeys(NAMES[:9], 1.0))
    Reranking.fit(store, {"F1": 1.0})
    Reranking.fit(store, dict.fromkeys(NAMES, 1.0))
    Reranking.fit(store)
    assert said == [
        f"{store.source}: Late has no initial weight and starts at 0",
        f"{store.source}: F0, F2, F3, ... have no initial weight and start at 0",
    ]
