"""Feedback from programs and functions: what is asked, what counts as a reply, what goes wrong and what is left."""

from __future__ import annotations

import json
import math
import os
import select
import shlex
import signal
import sys
from dataclasses import replace

import numpy as np
import pytest

from sparsezo import scorers
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.kernels import loop
from sparsezo.query_learner import QueryLearner
from sparsezo.scorers import ScorerAnswers, ScorerError, consult, feedback_of, open_scorer, read_reply
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.loading import Data
from sparsezo.tasks.text.task import TextClassification
from sparsezo.training import Training

# ---- programs ----

READ = "import sys, os\nline = sys.stdin.buffer.readline()\n"


@pytest.fixture
def program(tmp_path):
    """program(code, seconds) -> a scorer that runs the code in Python."""

    def of(code, seconds=30.0):
        path = tmp_path / "scorer.py"
        path.write_text(code)
        return open_scorer(f"{shlex.quote(sys.executable)} -S -E {shlex.quote(str(path))} --word 'two words'", seconds)

    return of


def test_a_program_is_kept_running_and_answers_line_by_line(program):
    code = """
import json, sys
for number, line in enumerate(sys.stdin):
    request = json.loads(line)
    print(json.dumps([number, request["x"], sys.argv[1:]]), flush=True)
"""
    with program(code) as scorer:
        assert [scorer({"x": x}) for x in ("a\nb", "ü", "c")] == [
            [0, "a\nb", ["--word", "two words"]],
            [1, "ü", ["--word", "two words"]],
            [2, "c", ["--word", "two words"]],
        ]
    with pytest.raises(ScorerError, match="is not running"):
        scorer({})


GOES_WRONG = {
    "ends": ("sys.stderr.write('Traceback\\nKeyError: 7\\n\\n'); sys.exit(3)",
             "ended with exit code 3 after 0 answers; its last error: 'KeyError: 7'"),
    "ends without a word": ("sys.exit(0)", "ended with exit code 0 after 0 answers; it has said nothing"),
    "is ended": ("os.kill(os.getpid(), 9)", "was ended by signal 9 after 0 answers"),
    "closes its output": ("os.close(1); sys.stdin.read()", "closed its output after 0 answers"),
    "is silent": ("sys.stdin.read()", "no answer within 0.05 s; it has said nothing"),
    "says half a line": ("os.write(1, b'0.'); sys.stdin.read()", "no answer within"),
    "says too much": ("os.write(1, b'x' * (1 << 21)); sys.stdin.read()", "said 'xxxx.*', a line of more than 1 MB"),
    "is no text": ("os.write(1, b'\\xff\\xfe\\n'); sys.stdin.read()", "said '.*', which is not UTF-8 text"),
    "says nothing": ("os.write(1, b' \\n'); sys.stdin.read()", "answered with an empty line"),
}  # fmt: skip


@pytest.mark.parametrize("name", GOES_WRONG)
def test_a_program_that_goes_wrong_is_one_line_with_its_last_words(program, name, monkeypatch):
    monkeypatch.setattr(scorers, "_GRACE", 0.3 if name == "closes its output" else 30.0)
    code, why = GOES_WRONG[name]
    patient = 0.05 if "no answer" in why else 30.0
    scorer = program(READ + code, patient)
    with scorer, pytest.raises(ScorerError, match=r"scorer '.*': " + why) as raised:
        scorer({"x": 1})
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 1


def test_words_that_nobody_asked_for_are_refused(program):
    with program(READ + "os.write(1, b'0\\n1\\n'); sys.stdin.read()") as scorer:
        assert scorer({}) == 0
        with pytest.raises(ScorerError, match=r"said '1\\n' without being asked"):
            scorer({})


def test_the_answers_before_the_end_are_counted_and_the_last_is_quoted(program):
    with program(READ + "print('yes', flush=True)\nsys.stdin.readline(); os._exit(1)") as scorer:
        assert scorer({}) == "yes"
        with pytest.raises(ScorerError, match="exit code 1 after 1 answer; its last line: 'yes'"):
            scorer({})


def test_full_pipes_stop_nobody(program):
    code = "import sys\nsys.stderr.write('x' * (1 << 20) + '\\n')\nprint(len(sys.stdin.readline()), flush=True)\n"
    with program(code) as scorer:
        assert scorer({"x": "y" * (1 << 20)}) == (1 << 20) + len('{"x": ""}\n')


def test_of_standard_error_only_the_end_is_kept(program):
    """A program that complains at every question may run for days."""
    scorer = program(
        "import sys\nfor k, line in enumerate(sys.stdin):\n"
        "    sys.stderr.write('x' * (1 << 17) + f'\\ncomplaint {k}\\n'); sys.stderr.flush()\n"
        "    print('yes', flush=True)\n    if k == 9: sys.exit(4)\n"
    )
    with scorer:
        for _ in range(10):
            assert scorer({}) == "yes"
            assert len(scorer._complained) <= scorers._MOST_WORDS
        with pytest.raises(ScorerError, match="exit code 4 after 10 answers; its last error: 'complaint 9'"):
            scorer({})


def test_what_cannot_be_started(tmp_path):
    with pytest.raises(ScorerError, match=r"scorer 'no-such-program -x': cannot be started: there is no program"):
        open_scorer("no-such-program -x")
    odd = tmp_path / "odd"
    odd.write_bytes(b"\x00\x01")
    odd.chmod(0o755)
    with pytest.raises(ScorerError, match=r"cannot be started \("), open_scorer(str(odd)):
        pass
    for text in ("", "  ", "cat 'x"):
        with pytest.raises(UsageError, match="`scorer`"):
            open_scorer(text)


def test_its_whole_group_is_ended(program, tmp_path, monkeypatch):
    """What the program has started ends with it: the pipe that it holds open comes to its end."""
    monkeypatch.setattr(scorers, "_GRACE", 0.1)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    code = f"""
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
out = open({str(fifo)!r}, "wb")
subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(1000)"], stdout=out)
print(1, flush=True)
time.sleep(1000)
"""
    with program(code) as scorer:
        assert scorer({}) == 1
        child = scorer._child
    assert child.returncode == -signal.SIGKILL  # it would not go by itself
    assert select.select([reader], [], [], 60)[0]
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_program_that_ends_by_itself_is_not_hurried(program, tmp_path):
    with program(
        READ + f"print(1, flush=True); sys.stdin.read(); open({str(tmp_path / 'log')!r}, 'w').write('done')"
    ) as s:
        assert s({}) == 1
    assert (tmp_path / "log").read_text() == "done"


def test_the_user_can_stop_while_it_thinks(program):
    def stop():
        raise KeyboardInterrupt

    with program(READ + "sys.stdin.read()") as scorer, pytest.raises(KeyboardInterrupt):
        scorer({}, stop)


# ---- functions ----


@pytest.fixture
def module(tmp_path, monkeypatch):
    """module(code) -> the name of a module in the working folder."""
    monkeypatch.chdir(tmp_path)

    def of(code, name="own_metric_of_a_test"):
        (tmp_path / f"{name}.py").write_text(code)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return name

    yield of
    sys.modules.pop("own_metric_of_a_test", None)


def test_a_function_of_the_working_folder(module):
    path = list(sys.path)
    scorer = open_scorer(f"{module('def judge(request): return request.pop(chr(120)) + 1')}:judge")
    request = {"x": 1}
    with scorer:
        assert scorer(request) == 2
    assert request == {"x": 1}
    assert sys.path == path
    assert open_scorer("math:sqrt").text == "math:sqrt"


@pytest.mark.parametrize(
    ("code", "name", "why"),
    [
        ("def judge(request): raise KeyError('who')", "judge", "raised KeyError: 'who'"),
        ("def judge(request): raise ValueError('one\\ntwo')", "judge", "raised ValueError: one$"),
        ("def judge(request): exit(3)", "judge", "raised SystemExit: 3"),
        ("judge = 3", "judge", "has no function judge"),
        ("", "judge", "has no function judge"),
        ("import nothing_like_it", "judge", r"cannot be imported \(ModuleNotFoundError"),
        ("def", "judge", r"cannot be imported \(SyntaxError"),
    ],
)
def test_a_function_that_goes_wrong(module, code, name, why):
    with pytest.raises(ScorerError, match=why):
        open_scorer(f"{module(code)}:{name}")({})


def test_there_is_no_such_module():
    with pytest.raises(ScorerError, match=r"scorer nowhere.at_all:f: nowhere.at_all cannot be imported"):
        open_scorer("nowhere.at_all:f")


# ---- replies ----


@pytest.mark.parametrize(
    ("line", "choices", "value"),
    [
        (b"0.25", (), 0.25), (b"0.25 0.5", (), [0.25, 0.5]), (b"[0.25, 0.5]", (), [0.25, 0.5]), (b"1, 2", (), [1, 2]),
        (b"yes", ("yes", "no"), "yes"), (b'"yes"', ("yes", "no"), "yes"), (b"true", (), True), (b"1", ("1", "2"), "1"),
        (b"true", ("true", "false"), "true"), (b"B-NP\r", (), "B-NP"), (b"two words", (), "two words"),
    ],
)  # fmt: skip
def test_replies_in_json_or_plain_words(line, choices, value):
    assert read_reply(line, choices) == value


def asked(kind=None, choices=(), codes=()):
    if kind is None:
        from sparsezo.questions import Proposal

        return Proposal("me", 3, 0, np.zeros(2, np.int32), np.ones(2, np.int32))
    from sparsezo.questions import Question

    return Question("me", 3, 0, kind, "token", (0, 0, 0, 0), (), 1.0, tuple(choices), tuple(codes))


@pytest.mark.parametrize(
    ("rule", "said", "expected"),
    [
        ("two-point", [0.5, 0.25], [0.5, 0.25]), ("two-point", "0.5 0.25", [0.5, 0.25]), ("baseline", 0.5, 0.5),
        ("first-order", [0.5], 0.5), ("two-point", np.array([0.5, 0.25]), [0.5, 0.25]), ("baseline", np.float32(1), 1),
        ("comparison", "first", "candidate"), ("preference", "second", "incumbent"), ("preference", "tie", "tie"),
        ("preference", "candidate", "candidate"), ("preference", [0, 1], [0, 1]), ("comparison", True, True),
    ],
)  # fmt: skip
def test_feedback_to_proposals(rule, said, expected):
    assert feedback_of(rule, asked(), said) == expected


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("two-point", "maybe"), ("two-point", 0.5), ("two-point", [1, 2, 3]), ("two-point", "first"),
        ("two-point", [math.nan, 0]), ("baseline", math.inf), ("baseline", [1, 2]), ("preference", "third"),
        ("comparison", 0.5), ("two-point", {"losses": [0, 1]}), ("symmetric", [0, "x"]), ("baseline", True),
        ("baseline", None),
    ],
)  # fmt: skip
def test_nonsense_about_proposals(rule, said):
    with pytest.raises(SparsezoError):
        feedback_of(rule, asked(), said)


def test_answers_to_questions():
    part, label, rate = asked("part", ("yes", "no"), (1, 0)), asked("label", ("2", "1"), (0, 1)), asked("rate")
    assert feedback_of("part", part, "no") == "no"
    assert feedback_of("part", part, True) is True
    assert feedback_of("label", label, "1") == "1"  # the name, not the number
    assert feedback_of("label", label, 1) == 1
    assert feedback_of("rate", rate, "0.5") == feedback_of("rate", rate, [0.5]) == 0.5
    for question, said in [
        (part, "maybe"),
        (part, 1),
        (label, "3"),
        (rate, 1.5),
        (rate, -0.1),
        (rate, math.nan),
        (rate, "x"),
    ]:
        with pytest.raises(UsageError, match=f"a question of kind {question.kind} takes"):
            feedback_of(question.kind, question, said)


# ---- learning ----


@pytest.fixture(scope="module")
def tasks(small_tasks):
    """name -> (task, Data with train and dev, a judge that answers requests in words, from gold)"""
    (chunking, corpus), (text, documents), (rerank, store) = small_tasks.values()
    return {
        "chunking": (chunking, Data(corpus, chunking.seen(chunking_corpus(30, 2))), chunk_judge(chunking, corpus)),
        "text": (text, Data(documents, documents), text_judge(documents.documents.labels)),
        "rerank": (rerank, Data(store, store), rerank_judge(store)),
    }


def chunk_judge(task, corpus):
    problem, gold = task.problem(corpus), task.gold(corpus)
    _, compiled = problem.private()
    number = {tag: k for k, tag in enumerate(task.tags)}

    def loss(request, tags):
        return loop.loss(gold, compiled, request["input"], np.array([number[tag] for tag in tags], np.int32))

    def judge(request):
        begin, end = corpus.offsets[request["input"] : request["input"] + 2].tolist()
        assert request["words"] == corpus.columns[0][begin:end]
        correct = corpus.tags[begin:end]
        if request["rule"] == "part":
            return "yes" if correct[request["first"]] == request["tag"] else "no"
        if request["rule"] == "label":
            return correct[request["first"]]
        if request["rule"] == "review":
            assert request["marked"] == list(range(end - begin))
            return "right" if request["tags"] == correct else correct
        losses = [loss(request, tags) for tags in request["outputs"]]
        return losses if len(losses) > 1 else losses[0]

    return judge


def text_judge(labels):
    def judge(request):
        right = [name == labels[request["input"]] for name in request.get("classes", [request.get("class")])]
        if request["rule"] == "part":
            return right[0]
        if request["rule"] == "label":
            return labels[request["input"]]
        if request["rule"] == "pair":
            return "first" if right[0] else "second" if right[1] else "tie"
        losses = [1 - int(each) for each in right]
        return losses if len(losses) > 1 else losses[0]

    return judge


def rerank_judge(store):
    def judge(request):
        rows = store.list(request["input"])
        loss_of = {store.hypothesis(j): float(store.losses[j]) for j in range(rows.start, rows.stop)}
        losses = [loss_of[each] for each in request["hypotheses"]]
        if request["rule"] == "pair":
            first, second = losses
            return "first" if first < second else "second" if second < first else "tie"
        return losses if len(losses) > 1 else losses[0]

    return judge


class Judge:
    """A scorer of this test's own, which may break down."""

    text = "a judge"

    def __init__(self, judge, breaks=None, how=None):
        self.judge, self.breaks, self.how = judge, breaks, how
        self.requests, self.entered = [], 0

    def __call__(self, request, pause=lambda: None):
        json.dumps(request)
        self.requests.append(request)
        if len(self.requests) == self.breaks:
            if self.how is None:
                raise ScorerError("it broke")
            self.how()
        pause()
        return self.judge(request)

    def __enter__(self):
        self.entered += 1
        return self

    def __exit__(self, *_):
        self.entered -= 1


RUNS = [
    ("chunking", {"rule": "two-point", "perturb": "all", "step": "constant"}),
    ("chunking", {"rule": "symmetric"}),
    ("chunking", {"rule": "comparison"}),
    ("chunking", {"rule": "preference", "perturb": "active"}),
    ("chunking", {"rule": "baseline"}),
    ("chunking", {"rule": "first-order", "baseline": True}),
    ("chunking", {"rule": "part", "rehearse": 2}),
    ("chunking", {"rule": "label"}),
    ("text", {"rule": "part"}),
    ("text", {"rule": "pair"}),
    ("text", {"rule": "rate"}),
    ("text", {"rule": "preference", "perturb": "all", "step": "constant"}),
    ("rerank", {"rule": "pair"}),
    ("rerank", {"rule": "two-point"}),
    ("rerank", {"rule": "baseline"}),
    ("chunking", {"rule": "review", "ask": "random"}),
]
NAMES = [f"{name}-{given['rule']}" for name, given in RUNS]
LENGTHS = {"iterations": 150, "evaluate_every": 40}


def settings_of(task, given):
    return Settings.complete({"seed": 3, **given}, task.defaults)


def assert_same(one, other):
    np.testing.assert_array_equal(one.W, other.W)
    for name in ("iterations", "dev", "answers"):
        np.testing.assert_array_equal(one.curve[name], other.curve[name])
    for name in ("best_iteration", "iterations", "answers", "dev"):
        assert one.result[name] == other.result[name]


@pytest.mark.parametrize(("name", "given"), RUNS, ids=NAMES)
def test_a_scorer_that_says_what_gold_would_gives_the_same_run_bit_for_bit(tasks, name, given):
    task, data, judge = tasks[name]
    settings = settings_of(task, given)
    by_gold = Training(task, data, settings, **LENGTHS).learn()
    assert by_gold.result["update_fraction"] > 0
    scorer = Judge(judge)
    training = Training(task, data, settings, scorer=scorer, **LENGTHS)
    by_scorer = training.learn()
    assert_same(by_gold, by_scorer)
    assert len(scorer.requests) == by_scorer.result["answers"] > 0
    assert (scorer.entered, by_scorer.result["scorer"]) == (0, "a judge")
    assert training.gold is None
    lengths = {"answers": 30, "evaluate_every": 7}
    assert_same(
        Training(task, data, settings, **lengths).learn(),
        Training(task, data, settings, scorer=Judge(judge), **lengths).learn(),
    )


STOPPED = [RUNS[0], RUNS[2], RUNS[6], RUNS[9], RUNS[12], RUNS[15]]


@pytest.mark.parametrize("breaks", [1, 13])
@pytest.mark.parametrize(("name", "given"), STOPPED, ids=[f"{n}-{g['rule']}" for n, g in STOPPED])
def test_a_run_goes_on_exactly_where_its_scorer_broke_down(tasks, tmp_path, name, given, breaks):
    task, data, judge = tasks[name]
    settings = settings_of(task, given)
    how = {"checkpoint": tmp_path / "c", **LENGTHS}
    whole = Training(task, data, settings, scorer=Judge(judge), **LENGTHS).learn()
    broken = Training(task, data, settings, scorer=Judge(judge, breaks), **how)
    with pytest.raises(ScorerError, match="it broke"):
        broken.learn()
    assert broken.learner.open_proposals == []
    assert broken.learner.answers == breaks - 1
    scorer = Judge(judge)
    again = Training(task, data, settings, scorer=scorer, resume=True, **how)
    assert again.learner.step == broken.learner.step
    assert_same(whole, again.learn())
    assert len(scorer.requests) == whole.result["answers"] - breaks + 1


def test_a_signal_is_heard_while_the_scorer_thinks(tasks, tmp_path, monkeypatch):
    task, data, judge = tasks["text"]
    settings = settings_of(task, {"rule": "part"})
    how = {"checkpoint": tmp_path / "c", **LENGTHS}
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        stopped = Judge(judge, 7, lambda: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            Training(task, data, settings, scorer=stopped, **how).learn()
    finally:
        signal.signal(signal.SIGINT, before)
    assert stopped.entered == 0
    again = Training(task, data, settings, scorer=Judge(judge), resume=True, **how)
    assert again.learner.answers == 6
    assert_same(Training(task, data, settings, scorer=Judge(judge), **LENGTHS).learn(), again.learn())


def test_a_checkpoint_of_another_scorer_is_refused(tasks, tmp_path):
    task, data, judge = tasks["text"]
    settings, how = settings_of(task, {"rule": "part"}), {"checkpoint": tmp_path / "c", "iterations": 50}
    with pytest.raises(ScorerError):
        Training(task, data, settings, scorer=Judge(judge, 3), **how).learn()
    other = Judge(judge)
    other.text = "another"
    with pytest.raises(UsageError, match="is of a run with other scorer;"):
        Training(task, data, settings, scorer=other, resume=True, **how)
    with pytest.raises(UsageError, match="is of a run with other train, scorer;"):
        Training(task, data, settings, resume=True, **how)


@pytest.mark.parametrize("said", ["maybe", 17, [0, 1], None, math.nan])
def test_nonsense_stops_the_run_and_changes_nothing(tasks, said):
    task, data, judge = tasks["text"]
    learner = QueryLearner(task.problem(data.train, asks=True), settings_of(task, {"rule": "part", "rehearse": 1}))
    consult(learner, ScorerAnswers(task, data.train, Judge(judge), "part"), 500, 10)
    learner.ask(within=0)
    before = learner.to_bytes()
    step = learner.step
    with pytest.raises(ScorerError, match=r"scorer 'a judge', step [\d,]+: answer .*: a question of kind part takes"):
        consult(learner, ScorerAnswers(task, data.train, Judge(lambda request: said), "part"), 1000)
    counts = learner.state.counts.copy()
    assert learner.answers == 10
    learner.state.counts[[loop.ASKED, loop.STEP, loop.PASSED]] -= learner.step - step  # inputs that were passed over
    assert learner.to_bytes() == before
    learner.state.counts[:] = counts


def test_a_run_from_no_labels_keeps_the_last_weights(tasks):
    task, data, judge = tasks["text"]
    task, raw = TextClassification.fit(replace(data.train.documents, labels=None), classes=task.classes)
    training = Training(task, Data(raw), settings_of(task, {"rule": "label"}), answers=25, scorer=Judge(judge))
    model = training.learn()
    assert (model.result["dev"], model.result["best_iteration"]) == (None, training.learner.step)
    np.testing.assert_array_equal(model.W, training.learner.weights())
    with pytest.raises(SparsezoError, match=r"has no labels;.*`scorer`"):
        Training(task, Data(raw), settings_of(task, {"rule": "label"}), answers=25)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"rule": "supervised"}, "rule supervised learns from correct outputs"),
        ({"rule": "two-point", "criterion": "annealed"}, "annealed criterion needs the losses of all outputs"),
        ({"rule": "preference", "feedback": "flip:0.1"}, "`feedback` flip:0.1 simulates raters"),
    ],
)
def test_what_no_scorer_can_teach(tasks, given, why):
    task, data, judge = tasks["text"]
    with pytest.raises(UsageError, match=why):
        Training(task, data, settings_of(task, given), 10, scorer=Judge(judge))


def test_what_a_scorer_is_told(tasks):
    def told(name, **given):
        task, data, judge = tasks[name]
        scorer, settings = Judge(judge), settings_of(task, given)
        Training(task, Data(data.train), settings, 40, scorer=scorer).learn()
        return scorer.requests[0]

    request = told("chunking", rule="preference")
    assert list(request) == ["task", "rule", "step", "input", "words", "outputs", "question", "wanted", "choices"]
    assert request["choices"] == ["first", "second", "tie"]
    assert {len(tags) for tags in request["outputs"]} == {len(request["words"])}
    assert request["outputs"][0] != request["outputs"][1]
    request = told("chunking", rule="baseline")
    assert len(request["outputs"]) == 1
    assert (request["question"], request["wanted"]) == (
        "How bad is this, from 0 (all right) to 1 (all wrong)?",
        "the loss of the output",
    )
    assert "choices" not in request
    request = told("chunking", rule="part")
    assert (request["choices"], request["wanted"]) == (["yes", "no"], "yes or no")
    request = told("text", rule="two-point")
    assert len(request["classes"]) == 2
    assert request["wanted"] == "the losses of the two outputs"
    request = told("text", rule="first-order")
    assert len(request["classes"]) == 1
    request = told("rerank", rule="symmetric")
    assert len(request["hypotheses"]) == 2
    request = told("rerank", rule="first-order")
    assert request["question"] == "How bad is this translation, from 0 to 1?"


def test_only_the_last_question_can_be_taken_back(tasks):
    task, data, _ = tasks["text"]
    learner = QueryLearner(task.problem(data.train, asks=True), settings_of(task, {"rule": "part"}))
    first = learner.ask()
    learner.state.counts[loop.PASSED] = 5
    before = learner.state.counts.copy()
    second = learner.ask()
    passed = second.step - before[loop.ASKED]
    with pytest.raises(UsageError, match="only what was asked last"):
        learner.unask(first)
    learner.unask(second)
    assert (learner.state.counts - before).tolist() == [passed, passed, 0, 0, 0, 0, 0, passed, 0, 0, 0, 0, 0]
    with pytest.raises(UsageError, match="was never asked"):
        learner.unask(second)
    with pytest.raises(UsageError, match="only what was asked last"):
        learner.unask(first)
    assert learner.ask().as_json() == second.as_json()
