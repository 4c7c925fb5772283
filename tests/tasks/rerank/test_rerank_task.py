"""Reranking as a task: features by name, learning, BLEU of what is chosen, and weights that go back to the decoder."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.kernels import loop
from sparsezo.learner import Learner, predict
from sparsezo.settings import Settings
from sparsezo.tasks.rerank.decoder_weights import read_weights
from sparsezo.tasks.rerank.importing import import_nbest
from sparsezo.tasks.rerank.metric import corpus_bleu
from sparsezo.tasks.rerank.nbest import NBestList, read_nbest
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

ZEROTH = ["two-point", "symmetric", "comparison", "preference", "baseline"]
COMBINATIONS = [
    *((rule, perturb, step) for rule in ZEROTH for perturb in ("active", "score") for step in ("constant", "adagrad")),
    *((rule, "all", "constant") for rule in ZEROTH),
    ("first-order", None, "constant"),
    ("first-order", None, "adagrad"),
]


def settings_of(rule, perturb, step):
    return {"rule": rule, "perturb": perturb, "step": step, "h": 0.05, "mu": 0.5 if perturb else None, "seed": 4}


@pytest.mark.parametrize(("rule", "perturb", "step"), COMBINATIONS)
def test_ask_and_tell_is_run(store, task, rule, perturb, step):
    problem, gold = task.problem(store), task.gold(store)
    steps = 60
    one, other = (start(task, problem, **settings_of(rule, perturb, step)) for _ in range(2))
    one.run(gold, answers=steps)  # nobody is asked about two equal outputs
    for _ in range(steps):
        proposal = other.ask()
        first = gold.offsets[proposal.x]
        loss = float(gold.losses[first + proposal.candidate[0]])
        if proposal.incumbent is None:
            other.tell(proposal, loss)
        else:
            other.tell(proposal, (loss, float(gold.losses[first + proposal.incumbent[0]])))
    assert one.updates == other.updates > 0
    np.testing.assert_array_equal(one.weights(), other.weights())
    assert np.isfinite(one.weights()).all()


def moves_of(task, problem, perturb, x, seeds):
    """(w - w0) / c after one answer about list x, for each seed."""
    moves = []
    for seed in range(seeds):
        learner = start(task, problem, rule="baseline", perturb=perturb, h=1.0, mu=0.5, seed=seed)
        learner.tell(learner.ask(1), 0.5)  # a mean to compare with; it moves nothing
        before = learner.weights()
        c = learner.tell(learner.ask(x), 1.0).c
        moves.append((learner.weights() - before)[:, 0] / c)
    return np.array(moves)


@pytest.mark.parametrize("perturb", ["all", "active"])
def test_u_is_normal_on_all_weights_or_on_those_of_the_lists_features(store, task, perturb):
    """By mean and covariance, to 5 standard errors; list 0 has no Late, list 3 has."""
    problem, seeds = task.problem(store), 600
    for x in (0, 3):
        u = moves_of(task, problem, perturb, x, seeds)
        present = (list_features(store, x) != 0).any(axis=0)
        assert present.sum() == (9 if x == 0 else 10)
        wanted = np.ones(10) if perturb == "all" else present.astype(float)
        assert (u[:, wanted == 0] == 0).all()
        assert (np.abs(u.mean(axis=0)) < 5 / np.sqrt(seeds)).all()
        off = 5 * np.sqrt((1 + np.eye(10)) / seeds)
        assert (np.abs(u.T @ u / seeds - np.diag(wanted)) < off).all()


def test_a_weight_that_sleeps_is_paid_what_it_missed(store, task):
    """all: after lists without Late its weight has the variance of all their steps; active leaves it alone."""
    problem = task.problem(store)
    paid = []
    for seed in range(600):
        learner = start(task, problem, rule="baseline", perturb="all", h=1.0, mu=0.5, seed=seed)
        learner.tell(learner.ask(1), 0.5)
        c = [learner.tell(learner.ask(x), loss).c for x, loss in ((0, 1.0), (2, 0.1), (0, 0.9))]
        assert learner.state.W[9, 0] == 0.25  # not yet
        paid.append((learner.weights()[9, 0] - 0.25) / np.sqrt(np.sum(np.square(c))))
    paid = np.array(paid)
    assert abs(paid.mean()) < 5 / np.sqrt(600)
    assert abs((paid**2).mean() - 1) < 5 * np.sqrt(2 / 600)
    active = start(task, problem, rule="baseline", perturb="active", h=1.0, mu=0.5)
    for x, loss in ((1, 0.5), (0, 1.0), (2, 0.1)):
        active.tell(active.ask(x), loss)
    assert active.weights()[9, 0] == 0.25


def test_all_and_active_are_one_where_every_list_has_every_feature(folder):
    names = NAMES[:9]
    full = import_nbest(write_lists(folder, "full", names=names, seed=4), store_dir=folder / "stores")
    whole = Reranking.fit(full)
    problem, gold = whole.problem(full), whole.gold(full)
    one, other = (start(whole, problem, **settings_of("two-point", p, "constant")) for p in ("all", "active"))
    one.run(gold, 300)
    other.run(gold, 300)
    np.testing.assert_array_equal(one.weights(), other.weights())


def test_score_leaves_out_what_a_list_does_not_see(store, task):
    """One step on each list; what differs from ACTIVE is orthogonal to the list's features."""
    problem, seen = task.problem(store), 0
    for x in range(len(problem)):
        moves = []
        for perturb in ("active", "score"):
            learner = start(task, problem, **settings_of("two-point", perturb, "constant"))
            with contextlib.suppress(UsageError):  # a list whose best candidate no perturbation changes
                learner.tell(learner.ask(x), (0.2, 0.7))
            moves.append(learner.weights() - task.initial_weights())
        seen += bool(moves[0].any())
        C = store.features[store.list(x)].astype(float)
        np.testing.assert_allclose(moves[1], np.linalg.pinv(C, rcond=1e-9) @ C @ moves[0], atol=1e-9)
    assert seen > 2


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


def test_order_of_a_list_as_it_was_read(folder, store, task):
    """Without a store: the names may stand otherwise and others may be among them; the first of equals comes first."""
    W = np.linspace(-1, 1, 10).reshape(10, 1)
    best = predict(task.problem(store, learn=False), W)
    for nbest in read_nbest(folder / "train.nbest"):
        order, totals = task.order(nbest, W)
        assert order[0] == best[nbest.id]
        assert sorted(order.tolist()) == list(range(len(nbest)))
        w = [W[NAMES.index(name), 0] for name in nbest.names]
        np.testing.assert_allclose(totals, nbest.features.astype(float) @ w, rtol=0, atol=1e-12)
        assert (np.diff(totals[order]) <= 0).all()
    equal = NBestList(0, 1, ("Other", "F9", "F0"), list("abc"), np.array([[1, 2, 1], [9, 9, 1], [0, 0, 1]], np.float32))
    assert task.order(equal, W)[0].tolist() == [0, 1, 2]


def test_defaults(task):
    """Each is what Settings takes: the paper's largest mu, and small steps from weights that are good already."""
    for rule, perturb, step in COMBINATIONS:
        h, mu = task.defaults(rule, step, perturb)
        if rule == "first-order":
            wanted = 0.01 if step == "adagrad" else 0.001
        elif step == "adagrad":
            wanted = 0.1
        else:
            wanted = {"two-point": 1e-4, "symmetric": 1e-4}.get(rule, 1e-5)
        assert (h, mu) == (wanted, 0.01)
        assert Settings(rule, perturb, h, mu if perturb else None, step).h == wanted
    assert task.defaults("supervised", "constant", None) == task.defaults("supervised", "adagrad", None) == (0.01, 0.01)


# ---- a step on one list, in plain NumPy ----


def list_features(store, x):
    return store.features[store.list(x)].astype(float)


@pytest.mark.parametrize("perturb", ["all", "active", "score"])
@pytest.mark.parametrize("rule", ZEROTH)
def test_outputs_are_the_best_candidates_where_the_step_goes(store, task, rule, perturb):
    """u is what the step then moves by; lists with fewer candidates than features, and with more."""
    problem, w = task.problem(store), task.initial_weights()[:, 0]
    differ = 0
    for seed in range(4):
        for x in (0, 2, 3, 4, 5):
            learner = start(task, problem, rule=rule, perturb=perturb, h=1.0, mu=0.5, seed=seed)
            if rule == "baseline":
                learner.tell(learner.ask(1), 1.0)
            proposal = learner.ask(x)
            before = learner.weights()[:, 0].copy()
            c = learner.tell(proposal, 0.0 if rule == "baseline" else (0.0, 1.0)).c
            u = (learner.weights()[:, 0] - before) / c
            C = list_features(store, x)
            assert proposal.candidate.tolist() == [np.argmax(C @ (w + 0.5 * u))]
            if rule == "baseline":
                assert proposal.incumbent is None
            else:
                assert proposal.incumbent.tolist() == [np.argmax(C @ (w - 0.5 * u if rule == "symmetric" else w))]
            differ += np.argmax(C @ w) != proposal.candidate[0]
    assert differ > 5


def test_a_first_order_step_is_the_gradient_of_log_p(store, task):
    """d log p(y) / dw = C' (onehot(y) - p)."""
    problem, w = task.problem(store), task.initial_weights()[:, 0]
    learner = start(task, problem, rule="first-order", perturb=None, mu=None, h=0.5)
    for x in (3, 0, 1):
        proposal = learner.ask(x)
        C = list_features(store, x)
        p = np.exp(C @ w - np.max(C @ w))
        p /= p.sum()
        learner.tell(proposal, 0.25)
        w = w - 0.125 * C.T @ (np.eye(len(C))[proposal.candidate[0]] - p)
        np.testing.assert_allclose(learner.weights()[:, 0], w, atol=1e-6)
    assert proposal.incumbent is None


def test_predict_refuses_scores_that_are_not_finite(store, task):
    W = task.initial_weights()
    W[9] = np.inf  # Late: no earlier list has it
    with pytest.raises(SparsezoError, match="scores that are not finite"):
        predict(task.problem(store, learn=False), W)


@pytest.mark.data
def test_real_lists(real_data, tmp_path):
    """The decoder's own weights choose what the data's notes say, and a short run at the defaults adapts others."""
    smt = real_data / "smt"
    store = import_nbest(smt / "ep-dev.nbest.xz", store_dir=tmp_path)
    task = Reranking.fit(store, read_weights(smt / "weights.out-of-domain"))
    problem, gold = task.problem(store), task.gold(store)
    y = predict(problem, task.initial_weights())
    result = task.scores(store, y)
    assert (round(result.value, 4), round(result.report["length_ratio"], 3)) == (0.2962, 0.990)
    assert task.quality(problem, gold, y) == pytest.approx(result.value, abs=1e-12)
    assert problem.n_score.max() <= 14 < problem.max_rows
    task = Reranking.fit(store, read_weights(smt / "weights.in-domain"))  # here the other domain's
    h, mu = task.defaults("two-point", "constant", "score")
    learner = start(task, problem, h=h, mu=mu)

    def loss():
        return gold.losses[gold.offsets[:-1] + predict(problem, learner.weights())].mean()

    before = loss()
    learner.run(gold, 100_000)
    assert loss() < before - 0.004
