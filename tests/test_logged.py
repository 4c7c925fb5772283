"""Learning from a log of shown outputs, and evaluating by one."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from sparsezo import messages
from sparsezo.errors import DataError, UsageError
from sparsezo.kernels.coefficient import MOST_LATE
from sparsezo.learner import Learner, log_chances, predict
from sparsezo.logged import evaluate_log, go_over, learn_log, lessons, read_log, settings_for, usual_rule
from sparsezo.model import Model, load_model
from sparsezo.query_learner import QueryLearner, make_learner
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking

WORDS = {"sport": "ball goal match team", "law": "court judge trial crime", "food": "bread soup salt cook"}


def lines(n: int, seed: int = 0, *, propensity: bool = True, right: float = 0.6) -> list[dict[str, object]]:
    """A log of texts of three classes, shown by a system that draws the right one with a known probability."""
    chance = np.random.default_rng(seed)
    names, made = list(WORDS), []
    for _ in range(n):
        k = int(chance.integers(3))
        words = chance.choice(WORDS[names[k]].split(), 3).tolist() + chance.choice(["the", "a", "of"], 2).tolist()
        p = np.full(3, (1 - right) / 2)
        p[k] = right
        shown = int(chance.choice(3, p=p))
        row = {"text": " ".join(words), "label": names[shown], "feedback": bool(shown == k)}
        made.append(row | ({"propensity": float(p[shown])} if propensity else {}))
    return made


def written(path, rows) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


@pytest.fixture
def log(tmp_path):
    return lambda rows, kind="text", **how: read_log(written(tmp_path / "log.jsonl", rows), kind, **how)


def small_chain():
    task, corpus = Chunking.fit(chunking_corpus(3, 1), features="ner")
    return task, corpus


def constant(rule: str, **more: object) -> Settings:
    return Settings(rule, None, h=0.5, mu=None, step="constant", **more)


# ---- what one line does to the weights ----


def gradient(value, W, step=1e-2):
    """By central differences, weight by weight."""
    made = np.zeros(W.shape)
    for at in np.ndindex(W.shape):
        for sign in (1, -1):
            moved = W.copy()
            moved[at] += sign * step
            made[at] += sign * value(moved) / (2 * step)
    return made


@pytest.mark.parametrize("up", [True, False])
def test_a_thumb_on_a_whole_output_moves_up_the_gradient_of_its_likelihood(log, up):
    task, data = (made := log(lines(30))).task, made.data
    problem = task.problem(data, asks=True)
    W = np.random.default_rng(1).normal(size=(task.n_features, task.n_labels)).astype(np.float32)
    y, e0, e1 = np.array([2], np.int32), 0.1, 0.2

    def likelihood(at):
        p = np.exp(log_chances(problem, at, np.array([4]), [y])[0])
        return float(np.log(e0 + (1 - e0 - e1) * p if up else e1 + (1 - e0 - e1) * (1 - p)))

    learner = QueryLearner(problem, constant("part", rehearse=0), W)
    learner.learn_from_thumb(4, y, up, error=(e0, e1))
    assert learner.weights() - W == pytest.approx(0.5 * gradient(likelihood, W), abs=2e-4)
    # which is what rule part learns where an output is one label
    by_part = QueryLearner(problem, constant("part", rehearse=0), W)
    row = next(each for each in lessons(made, None, problem.questions) if each.question is not None)
    by_part.learn_from(
        type(row.question)(**{**vars(row.question), "x": 4, "numbers": (0, 2, 0, 0)}),
        "yes" if up else "no",
        error=(e0, e1),
    )
    assert by_part.weights() == pytest.approx(learner.weights(), abs=1e-6)


def test_a_thumb_on_a_sentence_moves_up_the_probability_of_all_its_tags():
    task, corpus = small_chain()
    problem = task.problem(corpus, asks=True)
    y = predict(problem, np.zeros((task.n_features, task.n_labels), np.float32))[: problem.output_start[1]]
    before = {}
    for up in (True, False):
        learner = QueryLearner(problem, constant("part", rehearse=0))
        W = learner.weights().copy()
        before[up] = log_chances(problem, W, np.array([0]), [y])[0]
        learner.learn_from_thumb(0, y, up)
        after = log_chances(problem, learner.weights(), np.array([0]), [y])[0]
        assert after > before[up] if up else after <= before[up]
    first = Learner(task.problem(corpus), constant("first-order"), W)
    first.learn_from_output(0, y, 1.0, 0.0)  # the same direction, p_w(y) / 1 times as long
    up = QueryLearner(problem, constant("part", rehearse=0), W)
    up.learn_from_thumb(0, y, True)
    moved, rho = first.weights() - W, np.exp(before[True])
    assert moved == pytest.approx(rho * (up.weights() - W), abs=1e-6)


def test_first_order_steps_are_the_gradient_of_the_expected_reward_in_the_mean_over_what_is_shown(log):
    """Enumerated: the sum over y of mu(y) times the step that y leads to is h d/dW sum over y of p_w(y) r(y)."""
    made = log(lines(30))
    problem = made.task.problem(made.data)
    W = np.random.default_rng(2).normal(size=(made.task.n_features, 3)).astype(np.float32)
    mu, gains, total = np.array([0.2, 0.5, 0.3]), [0.7, -0.3, 0.2], np.zeros_like(W)
    for k in range(3):
        learner = Learner(problem, constant("first-order"), W)
        learner.learn_from_output(7, [k], gains[k], float(np.log(mu[k])))
        total += mu[k] * (learner.weights() - W)

    def expected(at):
        p = np.exp(log_chances(problem, at, np.full(3, 7), [np.array([k], np.int32) for k in range(3)]))
        return float(p @ gains)

    assert total == pytest.approx(0.5 * gradient(expected, W), abs=2e-4)


def test_a_step_is_no_longer_than_so_many_times_one_of_the_models_own(log):
    made = log(lines(30))
    problem = made.task.problem(made.data)
    own, cut = (Learner(problem, constant("first-order")) for _ in range(2))
    own.learn_from_output(0, [1], 1.0, float(np.log(1 / 3)))  # W is 0: p_w is a third, rho is 1
    cut.learn_from_output(0, [1], 1.0, float(np.log(1e-9)))
    assert cut.weights() == pytest.approx(MOST_LATE * own.weights(), rel=1e-5)


# ---- a whole log ----


def test_the_rule_follows_the_feedback(log):
    assert usual_rule(log(lines(20))) == "part"
    assert usual_rule(log([{**row, "feedback": 0.25} for row in lines(20)])) == "rate"
    corrected = [{**row, "feedback": {"label": "law"}} for row in lines(20)]
    assert usual_rule(log(corrected)) == "label"
    tokens = {"tokens": ["In", "Madrid"], "tags": ["O", "B-LOC"]}
    assert usual_rule(log([{**tokens, "feedback": {"tags": ["O", "O"]}}], "chunking")) == "review"
    assert settings_for(log(lines(20)), {"rule": "first-order"}).baseline
    with pytest.raises(
        UsageError, match="`rule` two-point learns from no log; use label, part, pair, rate, first-order"
    ):
        settings_for(log(lines(20)), {"rule": "two-point"})


@pytest.mark.parametrize("rule", ["part", "rate", "label", "first-order"])
def test_a_model_is_learned_that_is_better_than_the_one_that_logged(log, rule):
    rows = lines(400)
    if rule == "label":
        right = [next(name for name in WORDS if row["text"].split()[0] in WORDS[name]) for row in rows]
        rows = [{**row, "feedback": {"label": name}} for row, name in zip(rows, right, strict=True)]
    made = log(rows)
    model = learn_log(made, settings_for(made, {"rule": rule}), passes=5, only=True)
    texts = ["goal the match", "judge of court", "soup a salt"]
    assert model.task.label(model.W, texts) == ["sport", "law", "food"]
    assert model.result["learned_from"] == 400
    assert model.result["log_id"] == made.id


def test_ups_are_taken_at_their_word_by_a_model_that_knows_nothing(log):
    """Though people are believed to err, and p_w of 25 tags is nothing at first; a model that knows better doubts."""
    row = {"tokens": ["the", "dog", "barks", "and", "so"] * 5, "tags": ["B-NP", "I-NP", "O", "O", "O"] * 5}
    made = log([{**row, "feedback": True}] * 10, "chunking")
    model = learn_log(made)
    assert (model.settings["rater_error"], model.result["passes"]) == ("0.1", 1)
    assert evaluate_log(model, made)["matches"] == 1.0
    other = -model.W
    doubted = learn_log(made, W=other).W
    assert doubted == pytest.approx(other, abs=1e-3)


def test_lines_are_learned_from_by_their_own_kind(log):
    rows = lines(6)
    rows[1]["feedback"], rows[2]["feedback"] = 0.5, {"label": "law"}
    made = log(rows)
    offered = made.task.problem(made.data, asks=True).questions
    assert [each.kind for each in lessons(made, None, offered)] == ["part", "rate", "label", "part", "part", "part"]
    assert [each.kind for each in lessons(made, "label", offered)] == ["label"]
    assert [each.kind for each in lessons(made, "rate", offered)] == ["rate"] * 6


def test_the_same_log_gives_the_same_bits_also_where_it_is_gone_on_with(log):
    made = log(lines(60))
    for given in ({}, {"rule": "first-order"}):
        settings = settings_for(made, given)
        whole, again = (learn_log(made, settings, passes=4).W for _ in range(2))
        assert np.array_equal(whole, again)
        learner = make_learner(made.task.problem(made.data, asks=not given), settings)
        go_over(learner, made, range(2))
        learner = type(learner).from_bytes(learner.to_bytes(), learner.problem)
        go_over(learner, made, range(2, 4))
        assert np.array_equal(whole, learner.weights())
        repeated = make_learner(learner.problem, settings)
        for _ in range(4):
            go_over(repeated, made, range(1))  # each time in the same order, and not in one of its own
        assert not np.array_equal(whole, repeated.weights())
        other = learn_log(made, settings_for(made, {**given, "seed": 1}), passes=4).W
        assert not np.array_equal(whole, other)


def test_self_normalised_steps_do_not_change_when_all_rewards_are_raised(log):
    rows = [{**row, "feedback": 0.5 * row["feedback"]} for row in lines(60)]
    raised = [{**row, "feedback": row["feedback"] + 0.5} for row in rows]
    for baseline, same in ((True, True), (False, False)):
        models = []
        for each in (rows, raised):
            made = log(each)
            models.append(learn_log(made, settings_for(made, {"rule": "first-order", "baseline": baseline})).W)
        assert np.allclose(*models, atol=1e-4) == same


def test_what_the_log_does_not_say_is_said(log):
    with messages.gathered() as said:
        made = log(lines(40, propensity=False))
        learn_log(made, settings_for(made, {"rule": "first-order"}), passes=1)
    assert any("a deterministic log" in each for each in said)
    with messages.gathered() as said:
        rows = lines(40)
        del rows[3]["propensity"]
        made = log(rows)
        learn_log(made, settings_for(made, {"rule": "first-order"}), passes=1)
    assert any("1 line of 40 left out" in each for each in said)
    with messages.gathered() as said:
        made = log([{**row, "propensity": 1e-9 if k == 0 else 1.0} for k, row in enumerate(lines(40))])
        learn_log(made, settings_for(made, {"rule": "first-order", "h": 1e-9}), passes=2)
    assert any("degenerate" in each for each in said)


# ---- evaluation ----


def classifier(made, flip: bool = False) -> Model:
    """A model of the log's task that names the class whose words stand in a text; flip: another one."""
    W = np.zeros((made.task.n_features, 3), np.float32)
    for row, word in enumerate(made.task.feature_names()):
        for k, name in enumerate(made.task.classes):
            W[row, (k + flip) % 3] += word in WORDS[name].split()
    return Model(made.task, W, {}, {})


def test_the_estimates_are_near_what_is_true(log):
    made = log(lines(3000, right=0.4))
    for flip, truth in ((False, 1.0), (True, 0.0)):
        report = evaluate_log(classifier(made, flip), made)
        for name in ("ips", "snips", "doubly_robust"):
            value, low, high = report[name]
            assert low <= truth + 0.02
            assert high >= truth - 0.02
            assert value == pytest.approx(truth, abs=0.12)
        assert report["mean_weight"] == pytest.approx(1, abs=0.15)
        assert report["warnings"] == []
    assert report["rows"] == 3000


def test_wrong_propensities_are_noticed_by_the_mean_of_the_weights(log):
    rows = lines(2000, right=0.4)
    made = log([{**row, "propensity": row["propensity"] ** 0.5} for row in rows])
    report = evaluate_log(classifier(made), made)
    assert any("propensities are wrong" in each for each in report["warnings"])


def test_a_deterministic_log_gives_bounds_and_no_estimate(log):
    for propensity in (None, 1):
        made = log([{**row, "propensity": propensity} for row in lines(200)])
        report = evaluate_log(classifier(made), made)
        assert "ips" not in report
        assert "snips" not in report
        low, high = report["bounds"]
        assert low == pytest.approx(report["reward_shown"])  # the model is right wherever somebody said so
        assert high == pytest.approx(1.0)
        assert any("deterministic" in each for each in report["warnings"])


def test_few_matches_are_said_to_be_few(log):
    made = log([{**row, "propensity": 0.9 if k % 10 else 0.001} for k, row in enumerate(lines(60))])
    report = evaluate_log(classifier(made), made)
    assert report["effective_size"] < 30
    assert any("too few" in each for each in report["warnings"])


def test_where_the_right_outputs_are_known_no_propensity_is_needed(log):
    rows = lines(50, propensity=False)
    right = [next(name for name in WORDS if row["text"].split()[0] in WORDS[name]) for row in rows]
    made = log([{**row, "feedback": row["feedback"] or {"label": name}} for row, name in zip(rows, right, strict=True)])
    assert evaluate_log(classifier(made), made)["known"][0] == 1.0
    assert evaluate_log(classifier(made, flip=True), made)["known"][0] == 0.0


def test_a_model_of_the_same_log_is_warned_of(log, tmp_path):
    made = log(lines(60))
    learn_log(made).save(tmp_path / "m.szo")
    model = load_model(tmp_path / "m.szo")
    report = evaluate_log(model, read_log(made.path, "text", model.task))
    assert any("this very log" in each for each in report["warnings"])
    other = read_log(written(tmp_path / "other.jsonl", lines(60, 1)), "text", model.task)
    assert not any("this very log" in each for each in evaluate_log(model, other)["warnings"])
    with pytest.raises(UsageError, match="read the log for the model"):
        evaluate_log(model, made)


# ---- formats ----

SPAN = {"start": 3, "end": 9, "label": "LOC"}
IN_MADRID = {"text": "In Madrid.", "spans": [SPAN], "feedback": True}


def test_spans_of_a_text(log):
    right = {"spans": [{"start": 3, "end": 10, "label": "ORG"}]}
    made = log([IN_MADRID, {**IN_MADRID, "feedback": right}, {**IN_MADRID, "feedback": 0.5}], "chunking")
    assert made.task.tags == ("B-LOC", "I-LOC", "B-ORG", "I-ORG", "O")
    first, second, third = made.rows
    assert made.task.words(first.shown[0], np.array([0, 3])) == ["O", "B-LOC", "O"]
    assert (first.reward, first.thumb, first.propensity) == (1.0, True, None)
    assert made.task.words(second.corrected[0], np.array([0, 3])) == ["O", "B-ORG", "I-ORG"]
    assert (second.reward, third.reward, third.thumb) == (0.0, 0.5, False)
    model = learn_log(made, passes=3)
    assert model.tag("In Madrid.") is not None
    later = read_log(written_beside(made, [IN_MADRID]), "chunking", model.task)
    assert evaluate_log(model, later)["rows"] == 1


def written_beside(made, rows):
    from pathlib import Path

    return written(Path(made.path).with_name("later.jsonl"), rows)


def test_a_text_of_several_sentences_is_cut_as_the_model_cuts_it(log, tmp_path):
    text = "He saw Madrid. She saw Rome."
    spans = [{"start": 7, "end": 13, "label": "LOC"}, {"start": 23, "end": 27, "label": "LOC"}]
    rows = [{"text": text, "spans": spans, "feedback": True, "propensity": 0.5}]
    made = log(rows, "chunking")
    assert [row.last - row.first for row in made.rows] == [1]
    from dataclasses import replace

    task = replace(made.task, split="sentences")
    cut = read_log(made.path, "chunking", task)
    assert [(row.first, row.last) for row in cut.rows] == [(0, 2)]
    W = learn_log(made, passes=20).W
    assert evaluate_log(Model(task, W, {}, {}), cut)["matches"] == 1.0
    with pytest.raises(UsageError, match="is of several sentences"):
        learn_log(cut)
    # an output that ends inside of the model's own tokens is none of its outputs
    inside = [{**rows[0], "spans": [{"start": 7, "end": 10, "label": "LOC"}]}]
    other = read_log(written(tmp_path / "inside.jsonl", inside), "chunking", task)
    assert other.rows[0].shown is None
    assert evaluate_log(Model(task, W, {}, {}), other)["matches"] == 0.0


def test_tokens_with_tags_or_spans_and_feedback_on_single_spans(log):
    row = {
        "tokens": [["In", "IN"], ["San", "NNP"], ["Juan", "NNP"]],
        "tags": ["O", "B-LOC", "E-LOC"],
        "feedback": False,
    }
    made = log([row], "chunking")
    assert made.task.n_columns == 2
    assert [made.task.tags[k] for k in made.rows[0].shown[0]] == ["O", "B-LOC", "I-LOC"]
    assert made.task.scheme == "bioes"
    spans = [{"first": 1, "last": 2, "label": "LOC", "feedback": True}, {"first": 0, "last": 0, "label": "LOC"}]
    made = log([{"tokens": ["In", "San", "Juan"], "spans": spans}], "chunking")
    assert made.rows[0].parts == (((1, 0, 2, 0), True),)
    assert made.rows[0].reward is None
    model = learn_log(made, passes=10)
    assert model.task.words(model.predict(made.data), made.data.offsets)[1:] == ["B-LOC", "I-LOC"]
    with pytest.raises(UsageError, match="no line has feedback on a whole output"):
        evaluate_log(model, made)


def test_plain_tags(log):
    rows = [{"tokens": ["a", "dog"], "tags": ["DET", "NOUN"], "feedback": True}] * 3
    made = log(rows, "chunking")
    assert made.task.metric == "accuracy"
    model = learn_log(made, passes=5)
    assert model.task.words(model.predict(made.data), made.data.offsets)[:2] == ["DET", "NOUN"]


@pytest.mark.parametrize(
    ("kind", "row", "message"),
    [
        ("text", '{"text": "a", "label": "x"', "is not JSON"),
        ("text", '{"text": "a", "label": "x"}', "has no 'feedback'; give true, false"),
        ("text", '{"text": "a", "label": "x", "feedback": NaN}', "feedback nan: give true"),
        ("text", '{"text": "a", "label": "x", "feedback": 1.5}', "feedback 1.5: give true"),
        ("text", '{"text": "a", "label": "x", "feedback": "up"}', "feedback 'up': give true"),
        ("text", '{"text": "a", "label": "x", "feedback": {"label": 3}}', "'label' is 3; give its name"),
        ("text", '{"text": "a", "label": "x", "feedback": true, "propensity": 0}', "propensity 0: it is the prob"),
        ("text", '{"text": "a", "label": "x", "feedback": true, "propensity": 1.01}', "propensity 1.01: it is the"),
        ("text", '{"text": "a", "label": "x", "feedback": true, "propensity": NaN}', "propensity nan: it is the"),
        ("text", '{"text": "a", "label": "x", "feedback": true, "propensity": "1"}', "propensity '1': it is the"),
        ("text", '{"text": "a", "feedback": true}', "'label' is None; give its name"),
        ("text", '{"label": "a", "feedback": true}', "has no 'text'"),
        ("text", "[1]", "is no object"),
        ("chunking", '{"tokens": ["a"], "tags": ["O", "O"], "feedback": true}', "2 tags for 1 tokens"),
        (
            "chunking",
            '{"tokens": ["a"], "spans": [{"first": 0, "last": 1, "label": "x"}], "feedback": true}',
            "a span is",
        ),
        ("chunking", '{"text": "a", "tags": ["O"], "feedback": true}', "'tags' are of 'tokens'"),
        (
            "chunking",
            '{"text": "ab", "spans": [{"start": 0, "end": 3, "label": "x"}], "feedback": true}',
            "span 0 to 3",
        ),
        ("chunking", '{"tokens": ["a"], "feedback": true}', "give 'spans' or 'tags'"),
        ("chunking", '{"text": " ", "spans": [], "feedback": true}', "give a text with words in it"),
        ("chunking", '{"tokens": ["a", ["b", "c"]], "tags": ["O", "O"], "feedback": true}', "'tokens' is"),
        ("chunking", '{"tokens": ["a"], "tags": ["O"], "feedback": {"spans": [], "tags": []}}', "and not both"),
        ("chunking", '{"tokens": [["a", "b"]], "tags": ["O"], "feedback": true}', "another number of columns"),
    ],
)
def test_a_line_that_is_none_is_refused_with_its_place(tmp_path, kind, row, message):
    good = {
        "text": '{"text": "a b", "label": "y", "feedback": true}',
        "chunking": '{"tokens": ["a"], "tags": ["B-X"], "feedback": true}',
    }[kind]
    if '"text": "ab"' in row or '"text": " "' in row or '"text": "a", "tags"' in row:
        good = json.dumps(IN_MADRID)
    path = tmp_path / "log.jsonl"
    path.write_text(f"{good}\n{row}\n")
    with pytest.raises(DataError) as error:
        read_log(path, kind)
    assert str(error.value).startswith(f"{path}:2: ")
    assert message in str(error.value)


@pytest.mark.parametrize(
    "thumbs", [("TRUE", "FALSE"), ("1", "0"), ("Yes", "no"), ("up", "down"), ("👍", "👎"), ("👍\ufe0f", "0")]
)
def test_a_spreadsheet_of_thumbs(tmp_path, thumbs):
    """The same log as its JSON lines, whatever the spreadsheet makes of thumbs and numbers."""
    rows = lines(30)
    rows[3]["text"] = 'the "ball", a\tgoal'
    del rows[4]["propensity"]
    json_lines = read_log(written(tmp_path / "x.jsonl", rows), "text")
    for name, by, point in (("x.csv", ",", "."), ("semicolons.csv", ";", ","), ("x.tsv", "\t", ".")):
        with open(tmp_path / name, "w", encoding="utf-8-sig", newline="") as stream:
            table = csv.writer(stream, delimiter=by)
            table.writerow(["Feedback", "label", "text", "propensity"])
            for row in rows:
                chance = str(row.get("propensity", "")).replace(".", point)
                table.writerow([thumbs[not row["feedback"]], row["label"], row["text"], chance])
        made = read_log(tmp_path / name, "text")
        for mine, own in zip(made.rows, json_lines.rows, strict=True):
            assert (mine.reward, mine.thumb, mine.propensity) == (own.reward, own.thumb, own.propensity)
            assert made.task.classes[mine.shown[0][0]] == json_lines.task.classes[own.shown[0][0]]
        texts = [text.replace("\t", " ") for text in json_lines.data.documents.texts]
        assert [text.replace("\t", " ") for text in made.data.documents.texts] == texts


def test_a_spreadsheet_of_scores(tmp_path):
    (tmp_path / "x.csv").write_text("text,label,feedback\na goal,sport,1\na judge,law,0.25\n")
    made = read_log(tmp_path / "x.csv", "text")
    assert [(row.reward, row.thumb) for row in made.rows] == [(1.0, False), (0.25, False)]


@pytest.mark.parametrize(
    ("table", "kind", "message"),
    [
        ("text,label,feedback\na goal,sport,VRAI\n", "text", ":2: feedback 'VRAI': give true or false"),
        ("text,label,feedback\na goal,sport,\n", "text", ":2: has no 'feedback'"),
        ("text,label\na goal,sport\n", "text", ":2: has no 'feedback'"),
        ("text,label,feedback\na goal,sport,4\n", "text", ":2: feedback 4.0: give true"),
        ("text,label,feedback\na, goal,sport,1\n", "text", ":2: 4 columns, but the header has 3"),
        ("text,label,feedback,Text\na goal,sport,1,b\n", "text", ": several columns are called 'text'"),
        ("text,label,feedback\n", "text", ": is empty"),
        ("text,spans,feedback\nIn Rome,,1\n", "chunking", ": is a table, which has no place for outputs of task chunk"),
    ],
)
def test_a_spreadsheet_that_is_no_log(tmp_path, table, kind, message):
    (tmp_path / "x.csv").write_text(table)
    with pytest.raises(DataError) as error:
        read_log(tmp_path / "x.csv", kind)
    assert str(error.value).startswith(f"{tmp_path / 'x.csv'}{message}")


def test_first_order_says_that_rewards_that_are_all_alike_teach_nothing(log):
    made = log([{**row, "feedback": False} for row in lines(40)])
    with pytest.raises(UsageError, match="every reward is 0; rule first-order learns from their differences"):
        learn_log(made, settings_for(made, {"rule": "first-order"}))
    without = learn_log(made, settings_for(made, {"rule": "first-order", "baseline": False}), passes=1)
    assert np.any(without.W)


def test_keys_that_nobody_knows_are_named(log):
    with messages.gathered() as said:
        log([{**row, "user": 3} for row in lines(5)])
    assert any("1 key that no log of this task has, not read: 'user'" in each for each in said)


def test_labels_must_be_known(log):
    with pytest.raises(DataError, match="every class in it is 'law'; name those that there are with `classes`"):
        log([{"text": "judge", "label": "law", "feedback": True}])
    named = log([{"text": "judge", "label": "law", "feedback": False}], options={"classes": "law,food"})
    assert named.task.classes == ("law", "food")
    with pytest.raises(UsageError, match="the log also has sport"):
        log(lines(20), options={"classes": "law,food"})
    with pytest.raises(DataError, match="name the types that there are with `tags`"):
        log([{"tokens": ["a"], "tags": ["O"], "feedback": True}], "chunking")
    tagged = log([{"tokens": ["a"], "tags": ["O"], "feedback": True}], "chunking", options={"tags": "LOC"})
    assert tagged.task.tags == ("B-LOC", "I-LOC", "O")


def test_a_class_with_white_space_around_it_is_that_class(tmp_path):
    """And no row is left out: it was, without a word, as one of a class that the task does not have."""
    lines = [
        '{"text": "won 3:0", "label": " sport ", "feedback": true}',
        '{"text": "the judge", "label": "law", "feedback": true}',
    ]
    (tmp_path / "x.jsonl").write_text("\n".join(lines) + "\n")
    log = read_log(str(tmp_path / "x.jsonl"), "text", options={"hash_bits": 10})
    assert [log.task.classes[row.shown[0][0]] for row in log.rows] == ["sport", "law"]
