"""Text classification from documents to figures, on generated data; and on 20 Newsgroups where it is at hand."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import numpy as np
import pytest

from sparsezo.errors import DataError, SparsezoError, UsageError
from sparsezo.learner import Learner, predict
from sparsezo.perturbations import PERTURBATIONS
from sparsezo.rules import RULES
from sparsezo.settings import Settings
from sparsezo.tasks.text import task as module
from sparsezo.tasks.text.documents import Documents, read_documents
from sparsezo.tasks.text.generate import generate_text, generate_texts
from sparsezo.tasks.text.task import Prepared, TextClassification


def settings(rule, perturb=None, step="constant", **others):
    mu = 1.0 if RULES[rule].zeroth_order else None
    return Settings(rule=rule, perturb=perturb, h=0.1, mu=mu, step=step, **others)


COMBINATIONS = [
    settings(rule, perturb, step)
    for rule in RULES
    if rule != "span"  # which a text has none of
    for perturb in (PERTURBATIONS if RULES[rule].zeroth_order else [None])
    for step in ("constant", "adagrad")
    if (perturb, step) != ("all", "adagrad")
]
COMBINATIONS.append(settings("first-order", baseline=True))


@pytest.fixture(scope="module")
def some():
    """800 training documents and 400 others, of 30 words."""
    documents = generate_text(1200, seed=2, vocabulary=3000, words=30, label_noise=0).documents()
    task, train = TextClassification.fit(documents.take(slice(0, 800)))
    test = task.seen(documents.take(slice(800, None)))
    return SimpleNamespace(
        task=task, train=train, test=test, problem=task.problem(train), gold=task.gold(train), documents=documents
    )


def accuracy(some, W):
    outputs = predict(some.task.problem(some.test, learn=False), W)
    return some.task.scores(some.test, outputs).value


def majority(some):
    labels = some.test.documents.labels
    return max(labels.count(name) for name in set(labels)) / len(labels)


def test_problem(some):
    problem, matrix = some.problem, some.train.matrix
    assert len(problem) == len(some.train) == 800
    assert (problem.n_features, problem.n_labels) == (matrix.shape[1], 4)
    np.testing.assert_array_equal(problem.n_active, 4 * np.diff(matrix.indptr))
    np.testing.assert_array_equal(problem.n_score, 4)
    assert problem.max_outputs == problem.max_rows == 1
    assert problem.max_columns == np.diff(matrix.indptr).max()


def test_vectors_reach_the_loop_without_a_copy(some):
    """Of their values; columns are new, for only the indices that train has get one."""
    assert np.shares_memory(some.problem.inputs.values, some.train.documents.vectors.values)
    assert np.shares_memory(some.problem.inputs.columns, some.train.matrix.indices)
    assert some.task.n_features == len(np.unique(some.train.documents.vectors.indices))


def test_documents_and_prepared_are_the_same_problem(some):
    one, other = some.task.problem(some.test), some.task.problem(some.test.documents)
    for a, b in zip(one.inputs, other.inputs, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(some.task.gold(some.test).labels, some.task.gold(some.test.documents).labels)


TOLD = [c for c in COMBINATIONS if c.rule != "supervised" and not RULES[c.rule].asks]  # test_asking.py has the others


@pytest.mark.parametrize("chosen", TOLD, ids=str)
def test_ask_and_tell_is_run(some, chosen):
    steps = 120
    run, told = Learner(some.problem, chosen), Learner(some.problem, chosen)
    run.run(some.gold, answers=steps)  # nobody is asked about two equal outputs
    for _ in range(steps):
        proposal = told.ask()
        losses = [
            float(output[0] != some.gold.labels[proposal.x])
            for output in (proposal.candidate, proposal.incumbent)
            if output is not None
        ]
        told.tell(proposal, (losses[0], losses[1]) if len(losses) == 2 else losses[0])
    assert run.updates > 0
    np.testing.assert_array_equal(run.weights(), told.weights())
    np.testing.assert_array_equal(run.state.q, told.state.q)
    assert run.step == told.step


# "all" needs more steps than a test has time for: one weight in thirty is active
@pytest.mark.parametrize("chosen", [c for c in COMBINATIONS if c.perturb != "all"], ids=str)
def test_learns(some, chosen):
    learner = Learner(some.problem, chosen)
    learner.run(some.gold, 60_000)
    assert accuracy(some, learner.weights()) > majority(some) + 0.1


@pytest.mark.parametrize("rule", ["two-point", "symmetric", "baseline"])
def test_learns_under_the_annealed_criterion(some, rule):
    problem = some.task.problem(some.train, risk=True)
    learner = Learner(problem, settings(rule, "score", criterion="annealed", gamma=2.0))
    learner.run(some.gold, 40_000)
    assert accuracy(some, learner.weights()) > majority(some) + 0.1


def test_scores_lead_with_what_quality_gives(some):
    gold = some.task.gold(some.test)
    outputs = gold.labels.copy()
    outputs[:40] = (outputs[:40] + 1) % 4
    scores = some.task.scores(some.test, outputs)
    assert (scores.metric, scores.value) == ("accuracy", 0.9)
    assert some.task.quality(some.task.problem(some.test), gold, outputs) == 0.9
    assert scores.report["accuracy"] == 0.9
    assert scores.report["documents"] == 400
    assert set(scores.report["classes"]) == set(some.task.classes)
    told = np.array(some.task.words(outputs))
    f1 = []
    for name in some.task.classes:
        right = sum(a == b == name for a, b in zip(told, some.test.documents.labels, strict=True))
        f1.append(2 * right / ((told == name).sum() + some.test.documents.labels.count(name)))
    assert scores.report["macro_f1"] == pytest.approx(np.mean(f1))
    assert some.task.words(gold.labels) == some.test.documents.labels
    assert [some.task.classes[k] for k in gold.labels] == some.test.documents.labels
    assert (some.task.name, some.task.metric) == ("text", "accuracy")


def test_defaults(some):
    """Each is what Settings takes, and the more weights move, the smaller their steps."""
    for chosen in COMBINATIONS:
        h, mu = some.task.defaults(chosen.rule, chosen.step, chosen.perturb)
        if RULES[chosen.rule].asks:
            wanted = {"label": 0.6, "part": 1.0}.get(chosen.rule, 0.3)
        elif chosen.perturb is None:
            wanted = 0.3 if chosen.rule == "pairwise" else 1.0
        elif chosen.step == "adagrad":
            wanted = 0.3
        else:
            wanted = {"all": 0.001, "active": 0.01, "score": 0.1}[chosen.perturb]
        assert (h, mu) == (wanted, 1.0)
        settings = Settings(chosen.rule, chosen.perturb, h, mu if chosen.perturb else None, chosen.step)
        assert settings.h == wanted


def restored(task):
    """The task after a trip through JSON and a .npz file without pickle."""
    told, arrays = task.to_arrays()
    file = io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        return TextClassification.from_arrays(json.loads(json.dumps(told)), dict(stored))


def same_problem(task, other, documents):
    one, two = task.problem(documents, learn=False), other.problem(documents, learn=False)
    assert (one.n_features, one.n_labels) == (two.n_features, two.n_labels)
    for a, b in zip(one.inputs, two.inputs, strict=True):
        np.testing.assert_array_equal(a, b)


def test_saved_and_restored(some):
    other = restored(some.task)
    assert other.classes == some.task.classes
    same_problem(some.task, other, some.test.documents)


def test_texts_saved_and_restored(tmp_path):
    path = tmp_path / "some.tsv"
    path.write_text("".join(f"{label}\t{text}\n" for label, text in generate_texts(300, seed=1)))
    documents = read_documents(path)
    task, train = TextClassification.fit(documents.take(slice(0, 200)), min_count=2)
    assert isinstance(train, Prepared)
    same_problem(task, restored(task), documents.take(slice(200, None)))
    learner = Learner(task.problem(train), settings("two-point", "score"))
    learner.run(task.gold(train), 2000)
    assert task.quality(learner.problem, task.gold(train), predict(learner.problem, learner.weights())) > 0.6


def test_a_document_without_known_words_is_a_row_of_zeros(tmp_path):
    path = tmp_path / "some.tsv"
    path.write_text("a\tone two\nb\tthree four\na\tone four\n")
    task, _ = TextClassification.fit(read_documents(path))
    path.write_text("unheard words\none more\n")
    problem = task.problem(read_documents(path, labelled=False), learn=False)
    assert problem.n_score.tolist() == [0, 2]
    assert problem.n_active.tolist() == [0, 2]
    assert task.words(predict(problem, np.eye(task.n_features, 2, dtype=np.float32)))[0] == "a"


def test_unseen_label_is_an_error_at_its_line(some):
    test = some.test.documents
    odd = Documents(test.paths, test.file_of, test.lines, ["ODD", *test.labels[1:]], vectors=test.vectors)
    with pytest.raises(DataError, match=r"generated:801: label 'ODD' is none of the model's classes"):
        some.task.gold(odd)


def test_documents_without_labels_cannot_be_scored(some):
    test = some.test.documents
    bare = Documents(test.paths, test.file_of, test.lines, None, vectors=test.vectors)
    for ask in (some.task.gold, lambda data: some.task.scores(data, np.zeros(400, np.int32))):
        with pytest.raises(DataError, match="no labels"):
            ask(bare)


# A step on one document, in plain NumPy


def row_of(some, x):
    return some.train.matrix[[x]].toarray()[0].astype(float)


def started(some, *given, **settings_given):
    W = np.random.default_rng(3).standard_normal((some.task.n_features, 4)).astype(np.float32)
    return Learner(some.problem, Settings(*given, **settings_given), W), W.astype(float)


def test_a_first_order_step_is_the_gradient_of_log_p(some):
    """d log p(y) / dW = x (onehot(y) - p), at the weights when the answer comes; c = -h times the loss, and for a late
    answer times p(y) now over p(y) then."""
    learner, W = started(some, "first-order", None, 0.5, None, seed=3)

    def probabilities(x):
        scores = row_of(some, x) @ W
        p = np.exp(scores - scores.max())
        return p / p.sum()

    waiting = learner.ask(17)
    then = probabilities(17)[waiting.candidate[0]]
    for x, late in ((4, None), (17, waiting)):
        proposal = late or learner.ask(x)
        p = probabilities(x)
        y = proposal.candidate[0]
        ratio = p[y] / then if late else 1.0
        learner.tell(proposal, 0.75)
        W += -0.5 * 0.75 * ratio * np.outer(row_of(some, x), np.eye(4)[y] - p)
        np.testing.assert_allclose(learner.weights(), W, atol=1e-5)
    assert proposal.incumbent is None


def test_a_supervised_step_is_the_gradient_of_the_right_class(some):
    learner, W = started(some, "supervised", None, 0.5, None, seed=3)
    x = learner.next_input()
    row = row_of(some, x)
    p = np.exp(row @ W - np.max(row @ W))
    p /= p.sum()
    learner.run(some.gold, 1)
    W += 0.5 * np.outer(row, np.eye(4)[some.gold.labels[x]] - p)
    np.testing.assert_allclose(learner.weights(), W, atol=1e-5)


@pytest.mark.parametrize("perturb", [*PERTURBATIONS])
@pytest.mark.parametrize("rule", ["two-point", "symmetric", "comparison", "preference", "baseline"])
def test_outputs_are_the_best_classes_where_the_step_goes(some, rule, perturb):
    differ = 0
    for x in range(0, 60, 3):
        learner, W = started(some, rule, perturb, 2.0, 2.0, seed=x)
        if rule == "baseline":
            learner.tell(learner.ask(1), 1.0)
        proposal = learner.ask(x)
        c = learner.tell(proposal, 0.0 if rule == "baseline" else (0.0, 1.0)).c
        u = (learner.weights() - W) / c
        row = row_of(some, x)
        assert proposal.candidate.tolist() == [np.argmax(row @ (W + 2 * u))]
        if rule == "baseline":
            assert proposal.incumbent is None
        else:
            assert proposal.incumbent.tolist() == [np.argmax(row @ (W - 2 * u if rule == "symmetric" else W))]
        differ += np.argmax(row @ W) != proposal.candidate[0]
    assert differ > 5


def test_predict_refuses_scores_that_are_not_finite(some):
    W = np.zeros((some.task.n_features, 4), np.float32)
    W[some.problem.inputs.columns[-1]] = np.nan  # a word of the last document
    with pytest.raises(SparsezoError, match="scores that are not finite"):
        predict(some.problem, W)


# Options that reach the features


TEXTS = "a\tone two two two\nb\ttwo three\na\tone One four\n"


def fitted(tmp_path, **options):
    path = tmp_path / "some.tsv"
    path.write_text(TEXTS)
    return TextClassification.fit(read_documents(path), **options)


def test_min_count_drops_words_of_few_documents(tmp_path):
    assert fitted(tmp_path)[0].vectoriser.vocabulary == ["four", "one", "three", "two"]
    task, train = fitted(tmp_path, min_count=2)
    assert task.vectoriser.vocabulary == ["one", "two"]
    assert task.n_features == train.matrix.shape[1] == task.problem(train).n_features == 2


@pytest.mark.parametrize(("sublinear", "tf"), [(True, 1 + np.log(3)), (False, 3.0)])
def test_raw_counts_or_their_logarithm(tmp_path, sublinear, tf):
    """The first document has 'one' once and 'two' three times; both words are in two documents of three."""
    _, train = fitted(tmp_path, sublinear_tf=sublinear)
    _, one, _, two = train.matrix.toarray()[0]
    assert two / one == pytest.approx(tf, rel=1e-5)
    assert np.linalg.norm(train.matrix.toarray(), axis=1) == pytest.approx(1, abs=1e-6)


def test_capitals_and_patterns(tmp_path):
    kept, _ = fitted(tmp_path, lowercase=False)
    assert kept.vectoriser.vocabulary == ["One", "four", "one", "three", "two"]
    first, _ = fitted(tmp_path, token_pattern=r"\b[a-z]")
    assert first.vectoriser.vocabulary == ["f", "o", "t"]


def test_options_are_saved(tmp_path):
    given = {"sublinear_tf": False, "min_count": 2, "lowercase": False, "token_pattern": r"\w+"}
    told, _ = fitted(tmp_path, **given)[0].to_arrays()
    assert told == {"classes": ["a", "b"], "vectoriser": {**given, "kind": "text"}}


def test_too_many_weights_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_WEIGHTS", 8)
    assert fitted(tmp_path)[0].n_features == 4  # x 2 classes
    monkeypatch.setattr(module, "_MOST_WEIGHTS", 7)
    with pytest.raises(UsageError) as caught:
        fitted(tmp_path)
    assert str(caught.value) == (
        "4 features x 2 classes are 8 weights of at most 7; leave out rare features with a higher `min_count`, "
        "or join rare classes"
    )


@pytest.mark.data
def test_newsgroups(real_data):
    """A tenth of the published number of iterations; the whole gives 0.936."""
    folder = real_data / "text"
    task, train = TextClassification.fit(read_documents(folder / "20news4.train.tsv.gz").take(slice(1000, None)))
    test = task.seen(read_documents(folder / "20news4.test.tsv.gz"))
    learner = Learner(task.problem(train), settings("two-point", "score"))
    learner.run(task.gold(train), 200_000)
    assert task.scores(test, predict(task.problem(test, learn=False), learner.weights())).value > 0.9
