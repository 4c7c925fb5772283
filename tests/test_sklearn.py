"""The estimators for scikit-learn: as its own checks want them, and by enumeration where the model says a number."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from sparsezo.errors import UsageError
from sparsezo.sklearn import BanditClassifier, SequenceLabeller
from sparsezo.tasks.chunking.synthetic import chunking_corpus

EXAMPLES = Path(__file__).parent.parent / "examples"


def sentences(n: int, seed: int) -> tuple[list[list[tuple[str, ...]]], list[list[str]]]:
    corpus = chunking_corpus(n, seed)
    rows = list(zip(*corpus.columns, strict=True))
    places = list(itertools.pairwise(corpus.offsets.tolist()))
    return [rows[a:b] for a, b in places], [corpus.tags[a:b] for a, b in places]


def as_dicts(X: list[list[tuple[str, ...]]]) -> list[list[dict[str, object]]]:
    made = []
    for sentence in X:
        places = range(len(sentence))
        made.append(
            [
                {"word": sentence[i][0], "pos": sentence[i][1], "around": {"before": sentence[i - 1][1] if i else "-"}}
                for i in places
            ]
        )
    return made


@pytest.fixture(scope="module")
def data():
    return sentences(300, 1), sentences(60, 2)


@pytest.fixture(scope="module")
def labeller(data):
    (X, y), _ = data
    return SequenceLabeller(passes=5).fit(as_dicts(X), y)


# Sequences: a tiny model, by enumeration


def path_scores(labeller: SequenceLabeller, sentence: list[dict[str, object]]) -> dict[tuple[str, ...], float]:
    """The score of every path of labels, from the weights as docs/design.md has them."""
    tags, W, number = labeller._tags, labeller._weights.astype(float), labeller._index.numbers
    K = len(tags)
    tokens = [[number[name] for name in labeller._view.listed([[token]]).names if name in number] for token in sentence]
    scores = {}
    for path in itertools.product(range(K), repeat=len(sentence)):
        total, before = 0.0, K - 1
        for ids, tag in zip(tokens, path, strict=True):
            if labeller._task.order == 2:
                total += W[ids, before * K + tag].sum()
            else:
                total += W[ids, tag].sum() + W[labeller._index.room + before, tag]
            before = tag
        scores[tuple(tags[k] for k in path)] = total
    return scores


def probabilities(labeller, sentence, known=None):
    scores = path_scores(labeller, sentence)
    known = known or [None] * len(sentence)
    kept = {
        path: np.exp(score)
        for path, score in scores.items()
        if all(b in (None, a) for a, b in zip(path, known, strict=True))
    }
    total = sum(kept.values())
    return {path: each / total for path, each in kept.items()}


WORDS = [{"w": "a"}, {"w": "b", "cap": True}, {"w": "c"}, {"w": "a"}]


@pytest.mark.parametrize("order", [1, 2])
def test_marginals_and_best_labels_are_those_of_enumeration(order):
    X, y = [WORDS, WORDS[::-1]], [["O", "B", "I", "O"], ["B", "O", "I", "I"]]
    labeller = SequenceLabeller(order=order, passes=3).fit(X, y)
    for known in (None, [None, "I", None, None]):
        paths = probabilities(labeller, WORDS, known)
        found = labeller.predict_marginals_single(WORDS, known)
        for i, token in enumerate(found):
            assert set(token) == {"B", "I", "O"}
            for label, p in token.items():
                assert p == pytest.approx(sum(q for path, q in paths.items() if path[i] == label), abs=1e-5)
        assert tuple(labeller.predict_single(WORDS, known)) == max(paths, key=paths.get)


def test_the_score_of_a_path_is_the_sum_of_the_features_that_are_shown():
    X, y = [WORDS, WORDS[::-1]], [["O", "B", "I", "O"], ["B", "O", "I", "O"]]
    labeller = SequenceLabeller(order=1, passes=3).fit(X, y).partial_fit([[{"new": "x"}]], [["C"]])
    assert set(labeller.attributes_) == {"w:a", "w:b", "w:c", "cap", "new:x"}
    state, transition = labeller.state_features_, labeller.transition_features_
    of_token = [["w:a"], ["w:b", "cap"], ["w:c"], ["w:a"]]
    for path, score in path_scores(labeller, WORDS).items():
        total = sum(transition.get(pair, 0) for pair in itertools.pairwise(("O", *path)))  # O ends most sentences
        total += sum(state.get((name, label), 0) for names, label in zip(of_token, path, strict=True) for name in names)
        assert total == pytest.approx(score, abs=1e-5)
    with pytest.raises(UsageError, match="`order` 1"):
        _ = SequenceLabeller(order=2).fit(X, y).state_features_


def test_a_step_on_partly_known_labels_climbs_their_exact_probability():
    """d log P(what is known): by differences of the probability that enumeration gives."""
    labeller = SequenceLabeller(order=1, passes=2).fit([WORDS], [["O", "B", "I", "O"]])
    known = ["O", None, None, "B"]

    def log_likelihood() -> float:
        paths = path_scores(labeller, WORDS)
        of_known = [s for path, s in paths.items() if path[0] == "O" and path[3] == "B"]
        return float(np.logaddexp.reduce(of_known) - np.logaddexp.reduce(list(paths.values())))

    W, squares = labeller._weights.copy(), labeller._squares.copy()
    gradient = np.zeros(W.shape)
    for place in np.ndindex(*W.shape):
        ends = []
        for e in (0.01, -0.01):
            labeller._weights[place] = W[place] + e
            ends.append(log_likelihood())
        labeller._weights[place] = W[place]
        gradient[place] = (ends[0] - ends[1]) / 0.02
    labeller.partial_fit([WORDS], [known])
    step = labeller.h * gradient / np.sqrt(1 + squares + gradient**2)
    np.testing.assert_allclose(labeller._weights - W, step, atol=2e-4)
    assert np.abs(step).max() > 0.02


# Sequences: what they are for


def test_tokens_and_dicts_are_learned(data, labeller):
    (X, y), (X_test, y_test) = data
    of_tokens = SequenceLabeller(passes=5).fit(X, y)
    assert of_tokens.chunk_f1(X_test, y_test) > 0.9
    assert labeller.chunk_f1(as_dicts(X_test), y_test) > 0.8
    right = [np.equal(labels, own) for labels, own in zip(y_test, of_tokens.predict(X_test), strict=True)]
    assert of_tokens.score(X_test, y_test) == pytest.approx(np.concatenate(right).mean())
    words = SequenceLabeller(passes=3).fit([[token[0] for token in each] for each in X], y)
    assert words.score([[token[0] for token in each] for each in X_test], y_test) > 0.8


def test_attributes_are_python_crfsuites():
    token = {"w": "x", "n": 2, "f": 0.5, "t": True, "no": False, "l": ["a", "b"], "d": {"k": "v", "deep": {"m": 3.0}}}
    labeller = SequenceLabeller().fit([[token, {"w": "y"}]], [["A", "B"]])
    listed = labeller._view.listed([[token]])
    assert dict(zip(listed.names, listed.values.tolist(), strict=True)) == {
        "w:x": 1.0,
        "n": 2.0,
        "f": 0.5,
        "t": 1.0,
        "l:a": 1.0,
        "l:b": 1.0,
        "d:k:v": 1.0,
        "d:deep:m": 3.0,
    }
    assert labeller.predict([[{"new": "z"}], [], [token]])[1:] == [[], ["A"]]


def test_known_labels_stay(data, labeller):
    _, (X_test, y_test) = data
    wrong = ["B-NP" if label == "O" else "O" for label in y_test[0]]
    known = [[wrong[0], *[None] * (len(y_test[0]) - 2), wrong[-1]], *([None] * len(labels) for labels in y_test[1:])]
    found = labeller.predict(as_dicts(X_test), known=known)
    assert (found[0][0], found[0][-1]) == (wrong[0], wrong[-1])
    assert found[1:] == labeller.predict(as_dicts(X_test))[1:]


@pytest.mark.parametrize("order", [1, 2])
def test_later_batches_may_bring_attributes_and_labels(order):
    labeller = SequenceLabeller(order=order).fit([[{"w": "a"}, {"w": "b"}]], [["A", "B"]])
    before = labeller.predict_marginals_single([{"w": "a"}])[0]
    labeller.partial_fit([], [], classes=["C"])
    assert labeller.classes_ == ["A", "B", "C"]
    after = labeller.predict_marginals_single([{"w": "a"}])[0]  # what was learned stays: the odds of A and B
    assert after["A"] / after["B"] == pytest.approx(before["A"] / before["B"], rel=1e-4)
    old, new = [{"w": "a"}, {"w": "b"}], [{"w": "a"}, {"w": "c"}, {"w": "d"}]
    for _ in range(40):
        labeller.partial_fit([old, new], [["A", "B"], ["A", "C", "D"]])
    assert labeller.classes_ == ["A", "B", "C", "D"]
    assert labeller.predict([old, new]) == [["A", "B"], ["A", "C", "D"]]


def test_learning_goes_on_in_later_batches(data):
    (X, y), (X_test, y_test) = data
    labeller = SequenceLabeller().partial_fit(X[:20], y[:20])
    first = labeller.score(X_test, y_test)
    for k in range(20, 300, 20):
        labeller.partial_fit(X[k : k + 20], y[k : k + 20])
    assert labeller.score(X_test, y_test) > max(first + 0.02, 0.9)


def test_sequences_in_scikit_learn(data, labeller):
    (X, y), (X_test, _) = data
    again = pickle.loads(pickle.dumps(labeller))
    assert again.predict(as_dicts(X_test)) == labeller.predict(as_dicts(X_test))
    again.partial_fit([[{"word": "new"}]], [["O"]])
    assert clone(labeller).get_params() == {**SequenceLabeller().get_params(), "passes": 5}
    search = GridSearchCV(SequenceLabeller(), {"passes": [1, 3]}, cv=2, scoring=SequenceLabeller.chunk_f1)
    assert search.fit(X[:60], y[:60]).best_score_ > 0.5


@pytest.mark.parametrize(
    ("X", "y", "why"),
    [
        ([["a", "b"]], [["A"]], "sentence 0 has 2 tokens, and `y` has 1"),
        ([["a"]], [["A"], ["B"]], "1 sentences, and `y` has 2"),
        ([["a", "b"]], [["A", "A"]], "two labels or more"),
        (["ab"], [["A", "B"]], "sentence 0 is a text"),
        ([["a", ("b", "c")]], [["A", "B"]], "the first one was a text"),
        ([[{"a": None}, {}]], [["A", "B"]], "attribute a: a value of type NoneType"),
    ],
)
def test_what_cannot_be_learned_from_is_one_line(X, y, why):
    with pytest.raises(UsageError, match=why):
        SequenceLabeller().fit(X, y)


# Classes from feedback


@pytest.mark.filterwarnings("ignore")  # a check that is skipped says so
def test_check_estimator():
    check_estimator(BanditClassifier(passes=5))


@pytest.fixture(scope="module")
def classes():
    X, y = make_classification(1200, 20, n_informative=8, n_classes=3, class_sep=2.0, random_state=0)
    return X[:900], np.array(["x", "y", "z"])[y[:900]], X[900:], np.array(["x", "y", "z"])[y[900:]]


def test_feedback_alone_teaches(classes):
    """Right or wrong of what was shown, in batches: near what all labels give; and what it says has to be true."""
    X, y, X_test, y_test = classes
    full = BanditClassifier().fit(X, y).score(X_test, y_test)
    told, misled = BanditClassifier(), BanditClassifier()
    for k in range(0, 900, 30):
        batch, right = X[k : k + 30], y[k : k + 30]
        for learner, sign in ((told, True), (misled, False)):
            names = {"classes": ["x", "y", "z"]} if k == 0 else {}
            shown = learner.predict(batch) if k else np.repeat("x", 30)
            learner.partial_fit(batch, feedback=(shown == right) == sign, shown=shown, **names)
    assert told.score(X_test, y_test) > full - 0.1 > 0.72  # chance is 0.33
    assert misled.score(X_test, y_test) < 0.34


@pytest.mark.parametrize("reward", [0.0, 0.3, 1.0])
def test_a_reward_climbs_its_likelihood(reward):
    """One step on one row: d of r log p + (1 - r) log(1 - p), by Adagrad."""
    x = np.array([[1.0, -2.0]])
    learner = BanditClassifier(h=0.1, fit_intercept=False)
    learner.partial_fit(x, feedback=[0.7], shown=["b"], classes=["a", "b", "c"])
    W, squares, p = learner._table.astype(float), learner._squares.copy(), learner.predict_proba(x)[0]
    learner.partial_fit(x, feedback=[reward], shown=["b"])
    slope = (reward - p[1]) / (1 - p[1])  # in the score of b it is r - p, of another class k -p_k times this
    D = -p * slope
    D[1] = reward - p[1]
    g = x.T * D
    np.testing.assert_allclose(learner._table - W, 0.1 * g / np.sqrt(1 + squares + g**2), atol=1e-5)


def test_the_scale_of_x_has_no_meaning(classes):
    X, y, X_test, _ = classes
    for scale in (1e-3, 1e3):
        same = BanditClassifier(fit_intercept=False).fit(X * scale, y).predict(X_test * scale)
        assert np.mean(same == BanditClassifier(fit_intercept=False).fit(X, y).predict(X_test)) > 0.99


def test_sparse_rows_pipelines_and_searches(classes):
    X, y, X_test, y_test = classes
    dense = BanditClassifier().fit(X, y)
    np.testing.assert_allclose(
        BanditClassifier().fit(csr_array(X), y).predict_proba(X_test), dense.predict_proba(X_test)
    )
    search = GridSearchCV(
        make_pipeline(StandardScaler(), BanditClassifier()), {"banditclassifier__passes": [1, 5]}, cv=2
    )
    assert search.fit(X[:300], y[:300]).score(X_test, y_test) > 0.7
    texts = make_pipeline(TfidfVectorizer(), BanditClassifier()).fit(
        ["a cat", "a dog", "my cat", "my dog"], [1, 2, 1, 2]
    )
    assert texts.predict(["his cat", "his dog"]).tolist() == [1, 2]
    again = pickle.loads(pickle.dumps(dense)).partial_fit(X[:5], y[:5])
    assert (again.predict(X_test) == dense.predict(X_test)).mean() > 0.9


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"feedback": [1]}, "classes must be given"),
        ({"classes": "ab"}, "give y, the right classes, or feedback"),
        ({"feedback": [2.0], "shown": ["a"], "classes": ["a", "b"]}, "a reward from 0 to 1"),
        ({"feedback": [1], "shown": ["c"], "classes": ["a", "b"]}, "'c'.* is none of the classes"),
        ({"feedback": [1, 0], "shown": ["a"], "classes": ["a", "b"]}, "1 rows, feedback on 2"),
    ],
)
def test_what_is_no_feedback(given, why):
    with pytest.raises(ValueError, match=why):
        BanditClassifier().partial_fit([[1.0, 2.0]], **given)


# The package around them


def test_without_scikit_learn_it_says_so_in_one_line():
    code = "import sys; sys.modules['sklearn'] = None\nimport sparsezo\nimport sparsezo.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert last.endswith("NotInstalledError: this needs scikit-learn; install with: pip install scikit-learn")


@pytest.mark.parametrize("name", ["sequence_labeller.py", "bandit_classifier.py"])
def test_examples_run(name):
    done = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
