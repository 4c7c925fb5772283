"""Ask and tell for anyone's function, and what holds for the learner too: answers once, readings, threads, bytes."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sparsezo.errors import DamagedError, DataError, SparsezoError, UsageError
from sparsezo.kernels import loop, random
from sparsezo.learner import Learner
from sparsezo.optimizer import Optimizer, replay
from sparsezo.questions import Proposal
from sparsezo.rules import PERTURBATIONS, RULES
from sparsezo.settings import Settings
from sparsezo.storage.container import pack, unpack
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking

N = 30
ZEROTH = [rule.name for rule in RULES.values() if rule.zeroth_order]
COMBINATIONS = [
    Settings(rule, perturb, h=0.3, mu=0.5, step=step, seed=5)
    for rule in ZEROTH
    for perturb in PERTURBATIONS
    for step in ("constant", "adagrad")
    if (perturb, step) != ("all", "adagrad")
]


def actives(k):
    return np.random.default_rng(k).choice(N, 4, replace=False)


def features(active):
    return np.random.default_rng(int(np.sum(active))).standard_normal((2, 4))


def loss(values, active):
    return float(np.abs(features(active) @ (values - np.sin(active))).sum())


def answer(rule, proposal):
    F_plus = loss(proposal.candidate, proposal.x)
    return F_plus if proposal.incumbent is None else (F_plus, loss(proposal.incumbent, proposal.x))


def normals(seed, stream, step, size):
    out = np.empty(size)
    random.fill_normals(random.stream_key(seed, stream), step, out)
    return out


class Literal:
    """Algorithm 1 taken literally, on the same draws: full vectors, dense algebra, debts paid by their definition."""

    def __init__(self, settings):
        self.s, self.w, self.q = settings, np.zeros(N), np.zeros(N)
        self.owed_from, self.Q, self.paid, self.losses = np.zeros(N), 0.0, 0, []

    def step(self, k, active, C):
        s, seed = self.s, self.s.seed
        if s.perturb == "all" and (self.owed_from[active] < self.Q).any():
            self.w[active] += np.sqrt(self.Q - self.owed_from[active]) * normals(seed, random.DEBT, self.paid, 4)
            self.owed_from[active] = self.Q
            self.paid += 1
        u = normals(seed, random.PERTURBATION, k, 4)
        if s.perturb == "score":
            K = np.linalg.cholesky(C @ C.T)
            u = C.T @ np.linalg.solve(K.T, normals(seed, random.PERTURBATION, k, 2))
        w = self.w[active]
        F_plus = loss(w + s.mu * u, active)
        self.losses.append(F_plus)
        F_w, F_minus = loss(w, active), loss(w - s.mu * u, active)
        c = {
            "two-point": -s.h * (F_plus - F_w) / s.mu,
            "symmetric": -s.h * (F_plus - F_minus) / (2 * s.mu),
            "comparison": s.h / s.mu * (F_plus < F_w),
            "preference": s.h / s.mu * np.sign(F_w - F_plus),
            "baseline": -s.h * (F_plus - np.mean(self.losses)) / s.mu,
        }[s.rule]
        if s.step == "adagrad":
            g = u * c / s.h
            self.q[active] += g**2
            self.w[active] += s.h * g / np.sqrt(1 + self.q[active])
        else:
            self.w[active] += c * u
        if c != 0:
            self.Q += c**2
            self.owed_from[active] = self.Q
        return c


@pytest.mark.parametrize("settings", COMBINATIONS, ids=str)
def test_a_step_is_algorithm_1_taken_literally(settings):
    """Each step from a shared state: the literal one takes over the optimizer's weights and sums before it."""
    optimizer, literal = Optimizer(N, settings), Literal(settings)
    moved = 0
    for k in range(40):
        active = actives(k)
        literal.w, literal.q = optimizer.state.W[:, 0].copy(), literal.q
        proposal = optimizer.ask(active, features(active))
        info = optimizer.tell(proposal, answer(settings.rule, proposal))
        expected = literal.step(k, active, features(active))
        assert info.c == pytest.approx(expected, rel=1e-9, abs=1e-12)
        np.testing.assert_allclose(optimizer.state.W[:, 0], literal.w, rtol=1e-9, atol=1e-12)
        moved += info.c != 0
    assert moved > 5
    assert optimizer.average_loss == pytest.approx(np.mean(literal.losses))
    assert (optimizer.step, optimizer.updates) == (40, moved)


# Answered once


@pytest.fixture(scope="module")
def problem():
    task, corpus = Chunking.fit(chunking_corpus(30, seed=4), only="NP")
    return task.problem(corpus), task.gold(corpus)


def both(problem, settings):
    """An optimizer and a learner, and how each is asked."""
    optimizer, learner = Optimizer(N, settings), Learner(problem[0], settings)
    return [(optimizer, lambda k: optimizer.ask(actives(k), features(actives(k)))), (learner, lambda k: learner.ask())]


def test_a_proposal_is_answered_once(problem):
    for optimizer, ask in both(problem, Settings(h=0.1)):
        first, second = ask(0), ask(1)
        assert optimizer.open_proposals == [first, second]
        optimizer.tell(second, (0.5, 1.0))
        before = optimizer.to_bytes()
        with pytest.raises(UsageError, match="step 1: has been answered already"):
            optimizer.tell(second, (0.5, 1.0))
        with pytest.raises(UsageError, match="step 7: was never asked"):
            optimizer.tell(replace(first, step=7), (0.5, 1.0))
        with pytest.raises(UsageError, match="step -1: was never asked"):
            optimizer.tell(replace(first, step=-1), (0.5, 1.0))
        with pytest.raises(UsageError, match="step 0: this is not what was asked"):
            optimizer.tell(replace(first, candidate=first.candidate + 1), (0.5, 1.0))
        with pytest.raises(UsageError, match="step 0: this is not what was asked"):
            optimizer.tell(replace(first, x=second.x), (0.5, 1.0))
        assert optimizer.to_bytes() == before
        optimizer.tell(first, (0.5, 1.0))
        assert optimizer.open_proposals == []


# A reading is an event


@pytest.mark.parametrize("perturb", [*PERTURBATIONS])
def test_readings_change_the_run_under_all_alone(problem, perturb):
    settings = Settings(perturb=perturb, h=0.1)
    for (read, ask), (unread, ask_too) in zip(*(both(problem, settings) for _ in range(2)), strict=True):
        for k in range(12):
            for optimizer, each in ((read, ask), (unread, ask_too)):
                optimizer.tell(each(k), (0.0, 1.0))
            if k in (4, 5):
                first = read.weights()
                np.testing.assert_array_equal(read.weights(), first)  # the second has nothing to pay
        same = np.array_equal(read.weights(), unread.weights())
        assert same == (perturb != "all")
        assert (read.readings, unread.readings) == ((3, 1) if perturb == "all" else (0, 0))


def test_two_readings_have_the_right_joint_law():
    """What a reading paid stays paid: a sleeping weight's later value is the earlier one plus what came since."""
    settings = Settings("two-point", "all", h=1.0, mu=1.0)
    early, later = [], []
    for seed in range(400):
        optimizer = Optimizer(12, replace(settings, seed=seed))
        for k in range(2):
            optimizer.tell(optimizer.ask([0]), (float(k + 1), 0.0))  # c = -1, then -2
            (early if k == 0 else later).append(optimizer.weights()[1:])
    first, second = np.ravel(early), np.ravel(later)
    n = first.size
    for value, expected in ((np.var(first), 1), (np.var(second - first), 4)):
        assert abs(value - expected) < 6 * expected * np.sqrt(2 / n)
    assert abs(np.mean(first * (second - first))) < 6 * 2 / np.sqrt(n)  # independent of each other


@pytest.mark.parametrize("perturb", [*PERTURBATIONS])
@pytest.mark.parametrize("rule", ["two-point", "preference"])
def test_a_log_is_the_model(problem, rule, perturb):
    """Late, out of order, with readings in between: replayed from the log, the same bits."""
    settings = Settings(rule, perturb, h=0.1, mu=0.3)
    for number, (optimizer, ask) in enumerate(both(problem, settings)):
        log, rng, waiting = [], np.random.default_rng(1), []
        optimizer.on_event = log.append
        for k in range(40):
            waiting.append(ask(k))
            if k % 3:
                late = waiting.pop(int(rng.integers(len(waiting))))
                optimizer.tell(late, (float(rng.random()), float(rng.random())))
            if k % 11 == 5:
                optimizer.weights()
        again = both(problem, settings)[number][0]
        replay(again, json.loads(json.dumps(log)), features if number == 0 and perturb == "score" else None)
        np.testing.assert_array_equal(again.weights(), optimizer.weights())
        assert again.readings == optimizer.readings
        assert again.step == optimizer.step > 0


def test_a_log_that_does_not_fit_is_refused():
    optimizer = Optimizer(N, Settings("two-point", "active", h=0.1))
    with pytest.raises(UsageError, match="step 3: the log answers what it never asked"):
        replay(optimizer, [{"event": "tell", "step": 3, "feedback": [0, 1]}])
    with pytest.raises(UsageError, match="step 4 of the log would be step 0 here"):
        replay(optimizer, [{"event": "ask", "step": 4, "x": [1, 2]}])


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ({"event": "sing"}, "it is 'sing', and a log has ask, tell, finish, read"),
        ({"event": ["ask"]}, "and a log has ask, tell, finish, read"),
        ({}, "it is None, and a log has"),
        (None, "it is None"),
        ("ask", "it is 'ask'"),
        ({"event": "ask", "step": 0}, "it has no x"),
        ({"event": "tell", "feedback": [0, 1]}, "it has no step"),
        ({"event": "tell", "step": 0}, "it has no feedback"),
        ({"event": "tell", "step": [0], "feedback": [0, 1]}, r"its step is \[0\]"),
        ({"event": "ask", "step": True, "x": [1]}, "its step is True"),
        ({"event": "ask", "step": "0", "x": [1]}, "its step is '0'"),
    ],
)
def test_an_event_that_none_is_is_damage(event, why):
    optimizer = Optimizer(N, Settings("two-point", "active", h=0.1))
    good = {"event": "ask", "step": 0, "x": [1, 2]}
    with pytest.raises(DamagedError, match=rf"event 2 of the log: is damaged \(.*{why}"):
        replay(optimizer, [good, event])
    assert (optimizer.step, len(optimizer.open_proposals)) == (0, 1)


# To bytes and back


@pytest.mark.parametrize("settings", COMBINATIONS[::3], ids=str)
def test_state_goes_to_bytes_and_back_with_its_open_proposals(problem, settings):
    for number, (optimizer, ask) in enumerate(both(problem, settings)):
        proposals = [ask(k) for k in range(6)]
        for proposal in proposals[1:4]:
            optimizer.tell(proposal, 0.7 if proposal.incumbent is None else (0.7, 0.2))
        raw = optimizer.to_bytes()
        other = Optimizer.from_bytes(raw) if number == 0 else Learner.from_bytes(raw, problem[0])
        assert (other.id, other.step, other.settings) == (optimizer.id, 3, settings)
        assert [each.step for each in other.open_proposals] == [0, 4, 5]
        for proposal in (proposals[5], proposals[0]):
            as_sent = Proposal.from_json(json.loads(json.dumps(proposal.as_json())))
            feedback = 0.1 if proposal.incumbent is None else (0.1, 0.9)
            assert other.tell(as_sent, feedback).c == optimizer.tell(proposal, feedback).c
        np.testing.assert_array_equal(other.weights(), optimizer.weights())
        assert b"cpickle" not in raw.lower()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("settings", COMBINATIONS[::5], ids=str)
def test_a_copy_has_weights_of_its_own_and_goes_on_alike(problem, settings, copied):
    for optimizer, ask in both(problem, settings):
        first, second = ask(0), ask(1)
        optimizer.tell(first, 0.7 if first.incumbent is None else (0.7, 0.2))
        other = copied(optimizer)
        before = other.weights().copy()
        optimizer.weights()  # a reading, which both have then
        feedback = 0.1 if second.incumbent is None else (0.1, 0.9)
        optimizer.tell(second, feedback)
        np.testing.assert_array_equal(other.weights(), before)
        other = copied(optimizer)
        assert type(other) is type(optimizer)
        np.testing.assert_array_equal(other.weights(), optimizer.weights())


def test_an_optimizer_is_pickled_as_its_bytes_and_a_learner_is_not(problem):
    optimizer = Optimizer(N, Settings(h=0.3, mu=0.5, perturb="active"))
    proposal = optimizer.ask(actives(0))
    other = pickle.loads(pickle.dumps(optimizer))
    assert other.to_bytes() == optimizer.to_bytes()
    other.tell(proposal, (0.1, 0.9))
    assert other.weights().any()
    assert not optimizer.weights().any()
    with pytest.raises(UsageError, match=r"keep learner\.to_bytes\(\), and make it again by Learner\.from_bytes"):
        pickle.dumps(Learner(problem[0], Settings()))


def test_bytes_that_do_not_fit_are_refused(problem):
    raw = Learner(problem[0], Settings()).to_bytes()
    with pytest.raises(DataError, match="the state: is damaged"):
        Optimizer.from_bytes(raw[: len(raw) // 2])
    task, corpus = Chunking.fit(chunking_corpus(10, seed=9), only="NP")
    smaller = task.problem(corpus)
    with pytest.raises(DataError, match="is of another problem or settings: W does not fit"):
        Learner.from_bytes(raw, smaller)
    for wrong in ({}, {"owner": "a", "step": "x", "x": 1, "candidate": [], "incumbent": None}):
        with pytest.raises(UsageError, match="not a proposal"):
            Proposal.from_json(wrong)


# Threads


def test_learners_in_threads_share_a_problem_and_do_not_meet(problem):
    """Eight learners of all kinds on one problem, each equal to its own run alone, bit for bit."""
    data, gold = problem
    kinds = [
        Settings("two-point", "all", 0.01, 0.1, seed=1),
        Settings("two-point", "score", 0.01, 0.1, seed=2),
        Settings("symmetric", "active", 0.01, 0.1, step="adagrad", seed=3),
        Settings("comparison", "active", 0.01, 0.1, seed=4),
        Settings("preference", "score", 0.01, 0.1, seed=5),
        Settings("first-order", None, 0.05, None, seed=6),
        Settings("supervised", None, 0.05, None, seed=7),
        Settings("baseline", "score", 0.01, 0.1, seed=8),
    ]

    def run(settings):
        learner = Learner(data, settings)
        for _ in range(30):
            learner.run(gold, 100)
        return learner.weights()

    alone = [run(settings) for settings in kinds]
    together = [None] * len(kinds)
    start = threading.Barrier(len(kinds))

    def work(number):
        start.wait()
        together[number] = run(kinds[number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(kinds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_threads_that_ask_and_tell_never_see_a_step_twice(problem):
    for optimizer, ask in both(problem, Settings(h=0.01)):
        seen, start = [], threading.Barrier(4)

        def work(number, optimizer=optimizer, ask=ask, seen=seen, start=start):
            start.wait()
            for k in range(100):
                proposal = ask(100 * number + k)
                seen.append(proposal.step)
                optimizer.tell(proposal, (0.3, 0.6))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(seen)) == optimizer.answers == 400
        assert optimizer.open_proposals == []
        if type(optimizer) is Optimizer:  # a learner passes steps over whose outputs are the same
            assert sorted(seen) == list(range(400))
        assert optimizer.average_loss == pytest.approx(0.3)


# What is refused


@pytest.mark.parametrize(
    ("active", "message"),
    [
        ([2, 3, 2], "active names a weight twice; np.unique makes them distinct"),
        ([5, N, 0], f"active has {N}; the {N} weights are 0 to {N - 1}"),
        ([-2, 3, N], f"active has -2; the {N} weights are 0 to {N - 1}"),
        ([0.0, 1.0], "active must be one row of whole numbers, not float64 of shape (2,)"),
        ([True, False], "active must be one row of whole numbers, not bool of shape (2,)"),
        (np.array([[0, 1]], np.int64), "active must be one row of whole numbers, not int64 of shape (1, 2)"),
        (np.int64(3), "active must be one row of whole numbers, not int64 of shape ()"),
        *((active, "active ") for active in (1.5, "a", 10**30, [10**30], [2**63], [[1], [1, 2]], {1}, ["1"])),
    ],
)
def test_active_weights_that_cannot_be(active, message):
    optimizer = Optimizer(N, Settings("two-point", "active"))
    with pytest.raises(UsageError) as caught:
        optimizer.ask(active)
    assert str(caught.value).startswith(message)
    assert optimizer.state.counts[loop.ASKED] == 0


def test_what_an_optimizer_needs():
    with pytest.raises(UsageError, match="first-order needs a model's own distribution"):
        Optimizer(N, Settings("first-order", None, 0.1, None))
    with pytest.raises(UsageError, match="annealed is about a model's outputs"):
        Optimizer(N, Settings(criterion="annealed"))
    with pytest.raises(UsageError, match="n 0: must be a whole number, 1 or more"):
        Optimizer(0, Settings())
    with pytest.raises(UsageError, match="perturb score needs C"):
        Optimizer(N, Settings()).ask([1])
    with pytest.raises(UsageError, match="make it rows x 2"):
        Optimizer(N, Settings()).ask([1, 2], np.ones((1, 3)))
    with pytest.raises(SparsezoError, match="C is not finite"):
        Optimizer(N, Settings()).ask([1], [[np.nan]])
    with pytest.raises(UsageError, match="shape"):
        Optimizer(N, Settings(), np.zeros(N + 1))
    with pytest.raises(UsageError, match="finite"):
        Optimizer(N, Settings(), np.full(N, np.inf))


# Odd types


@pytest.mark.parametrize("half", [0.5, np.float32(0.5), np.float64(0.5), np.array(0.5), Fraction(1, 2), Decimal("0.5")])
def test_numbers_of_all_kinds_are_losses(half):
    optimizer, log = Optimizer(N, Settings("baseline", "active")), []
    optimizer.on_event = log.append
    optimizer.tell(optimizer.ask([1, 2]), half)
    assert optimizer.average_loss == 0.5
    assert json.loads(json.dumps(log[-1])) == {"event": "tell", "step": 0, "feedback": 0.5}


@pytest.mark.parametrize("losses", [(1e308, -1e308), (1.7e308, 0.0)])
def test_losses_that_make_a_step_without_end_change_nothing(losses):
    optimizer = Optimizer(N, Settings("two-point", "active", h=10.0))
    proposal = optimizer.ask([1, 2])
    before = optimizer.to_bytes()
    with pytest.raises(SparsezoError, match=r"it is not finite; `h` .* is probably too large"):
        optimizer.tell(proposal, losses)
    assert optimizer.to_bytes() == before


@pytest.mark.parametrize("x", [1.5, "a", -1, 10**30, 10**5000, np.array([1]), b"1", {}], ids=lambda x: "")
def test_a_learner_asked_with_odd_types(problem, x):
    with pytest.raises(UsageError, match=r"there is no input .{,60}; inputs are 0 to 29"):
        Learner(problem[0], Settings()).ask(x)


@pytest.mark.parametrize("C", ["a", [[1], [1, 2]], [["a", "b"]], [[1j, 2]], [[None, 1]], 5])
def test_a_basis_of_odd_types(C):
    with pytest.raises(UsageError, match="C "):
        Optimizer(N, Settings()).ask([1, 2], C)


@pytest.mark.parametrize("n", [10**30, 10**5000, 2**62, 1.5, "3", None, True], ids=lambda n: "")
def test_a_number_of_weights_that_cannot_be(n):
    with pytest.raises(UsageError, match=r"^n .{,60}: "):
        Optimizer(n, Settings("two-point", "active"))


def test_what_was_asked_cannot_be_changed(problem):
    """First-order follows the output that it is told: a tag that there is not would be read from anywhere."""
    for optimizer, ask in both(problem, Settings(h=0.1)):
        proposal = ask(0)
        for part in (proposal.candidate, proposal.incumbent):
            with pytest.raises(ValueError, match="read-only"):
                part[0] = 99
        optimizer.tell(proposal, (0.0, 1.0))


@pytest.mark.parametrize("raw", ["a", None, 3, [1, 2]])
def test_a_state_is_bytes(raw, problem):
    with pytest.raises(UsageError, match="a state is bytes"):
        Optimizer.from_bytes(raw)
    with pytest.raises(UsageError, match="a state is bytes"):
        Learner.from_bytes(raw, problem[0])


@pytest.mark.parametrize(
    "change",
    [
        {"candidate": [3]},
        {"candidate": [-1]},
        {"candidate": [0.5]},
        {"candidate": []},
        {"x": 30},
        {"x": [1]},
        {"step": 5},
        {"step": -1},
        {"incumbent": [99]},
    ],
    ids=str,
)
def test_an_open_proposal_in_a_state_is_checked(problem, change):
    learner = Learner(problem[0], Settings(h=0.1))
    learner.ask()
    meta, arrays = unpack(learner.to_bytes(), "state", "it")
    given = dict(meta["open"][0])
    for name, value in change.items():
        given[name] = value * len(given[name]) if isinstance(value, list) and name != "x" and len(value) else value
    with pytest.raises(DamagedError, match="the state: is damaged"):
        Learner.from_bytes(pack("state", {**meta, "open": [given]}, arrays), problem[0])


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("W", 0, np.nan),
        ("q", 0, -1.0),
        ("sums", 0, np.inf),
        ("counts", 0, -1),
        *(("counts", place, 2**63 - 1) for place in (loop.ANSWERS, loop.READINGS, loop.SETTLEMENTS)),
    ],
)
def test_numbers_of_a_state_are_checked(name, place, value):
    """Among them counts that the next step would overflow."""
    optimizer = Optimizer(N, Settings("two-point", "active", step="adagrad"))
    meta, arrays = unpack(optimizer.to_bytes(), "state", "it")
    arrays[name].reshape(-1)[place] = value
    with pytest.raises(DamagedError):
        Optimizer.from_bytes(pack("state", meta, arrays))


@pytest.mark.parametrize(
    "settings",
    [None, [], {"g": 1}, {"h": 10**400}, {"h": "x"}, {"rule": []}, {"seed": 1.5}, {"feedback": 3}, {"baseline": "x"}],
    ids=str,
)
def test_settings_of_a_state_are_checked(settings):
    meta, arrays = unpack(Optimizer(N, Settings("two-point", "active")).to_bytes(), "state", "it")
    given = {**meta["settings"], **settings} if isinstance(settings, dict) else settings
    with pytest.raises(DamagedError):
        Optimizer.from_bytes(pack("state", {**meta, "settings": given}, arrays))
