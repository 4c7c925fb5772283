"""The learner: ask for a proposal, tell it the feedback, and the weights move. Or ``run`` it on simulated feedback.

    learner = Learner(problem, Settings(rule="preference", perturb="score", h=0.001, mu=0.1))
    proposal = learner.ask()                            # two outputs for some input
    learner.tell(proposal, "candidate")                 # a person liked the first better
    learner.run(gold, steps=100_000)                    # the same, compiled, with gold as the judge
    learner.run(gold, answers=1000)                     # until a person would have answered so many in all

A proposal can be answered at any later time: its perturbation is a function of the run's seed, its step and its input.
``ask``/``tell`` and ``run`` give the same weights bit for bit (Algorithm 1, SZO-SP). Nobody is asked which of two equal
outputs is better. ``predict`` and its like say what a model makes of a problem's inputs, and learn nothing.
"""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, NoReturn, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsezo import validation
from sparsezo.errors import AllReviewedError, DivergedError, SparsezoError, UsageError, shown
from sparsezo.kernels import codes, loop, protocol, random
from sparsezo.optimizer import Arrays, AskTell, Event, Features, P, not_finite, state_of, whole, workspace
from sparsezo.questions import Feedback, Info, Json, Proposal
from sparsezo.rules import FIRST_ORDER, RULES
from sparsezo.settings import AUTO, Settings
from sparsezo.steps import automatic
from sparsezo.tasks.base import Compiled, Problem
from sparsezo.validation import Array

NO_END = 2**62
_SLICE = 1_000_000  # steps between looks at whether there is anything to ask at all
_LOOKS = 10_000  # likewise in ``ask``, where a person may lose patience
_SILENCE, _SILENCE_A_INPUT = 1_000_000, 20  # steps in a row without a question, from which on there will be none
_TRIES = 100  # to find two outputs for an input that was named


class TaskLearner(AskTell[P]):
    """What ``Learner`` and ``QueryLearner`` share: they learn on one problem, which they only read, so that it serves
    any number of learners and threads.

    ``W``: the weights to start from. ``copy`` false: learn in W itself, say a mapped file (``mapped_weights``).
    """

    _run_compiled: ClassVar[Callable[..., bool]]  # steps with feedback from gold; False where a number is not finite
    _seek_compiled: ClassVar[Callable[..., tuple[int, float]]]  # the next input to ask about

    def __init__(self, problem: Problem, settings: Settings, W: ArrayLike | None = None, *, copy: bool = True) -> None:
        if not problem.learn:
            raise UsageError("this problem was made to decode only; make it by task.problem(data)")
        if settings.criterion == "annealed" and not problem.risk:
            raise UsageError("the annealed criterion needs task.problem(data, risk=True)")
        if not len(problem):
            raise UsageError("the problem has no inputs to learn from")
        super().__init__(settings, problem.n_features, problem.n_labels, problem.dtype, W, copy=copy)
        if settings.h == AUTO:
            h, unit = automatic(settings, problem)
            self._params = self._params._replace(h=h, unit=unit)
        self._look_at(problem)
        self._gold: object = self  # the one that was checked
        self._looked = 0  # inputs passed over before the last question
        self._passed: int | None = None  # State.counts[PASSED] when the last question was found

    def _look_at(self, problem: Problem) -> None:
        self.problem = problem
        rule = RULES[self.settings.rule]
        spread = self.settings.perturb in ("active", "all") or self.settings.step == "adagrad"
        self._inputs, self._task = problem.private(factors=rule.zeroth_order, places=spread)
        protocol.need(self._inputs, protocol.OF_INPUTS, "learning")
        protocol.need(self._task, [protocol.decode], f"rule {rule.name}")
        if rule.family == FIRST_ORDER and rule.name != "supervised":
            protocol.need(self._task, protocol.SAMPLING, f"rule {rule.name}")
        self.workspace = workspace_of(problem)

    # Learning from gold

    def run(self, gold: object, steps: int | None = None, answers: int | None = None) -> None:
        """``steps`` steps on inputs drawn at random, with feedback computed from gold (``task.gold(data)``).

        ``answers``: the run ends when so many have been given in all, also before; it then needs no ``steps``.
        """
        if answers is not None and not self.asks_people:
            raise UsageError(f"`answers` {shown(answers)}: {self.nobody}; give `steps` alone")
        if steps is None and answers is None:
            raise UsageError("give `steps`, `answers` or both")
        with self._lock:
            if gold is not self._gold:
                self._check(gold)
            stop = min(self.step + whole("steps", NO_END if steps is None else steps, 0), NO_END)
            end = NO_END if answers is None else whole("answers", answers, 0)
            while True:
                last, most = min(stop, self.step + _SLICE), min(end, self._room_for_answers(end))
                if not self._run_compiled(*self.parts(gold), last, most, self.state, self.workspace):
                    raise self.not_finite()
                if answers is not None and self.answers < end:
                    self.refuse_silence()
                if self.step >= stop or self.answers >= end:
                    return

    def _room_for_answers(self, wanted: int) -> int:
        """Make room for more answers; returns how many there may be in all before the next call."""
        return NO_END

    def parts(self, gold: object) -> tuple[object, object, object, loop.StepParams, int]:
        """All that compiled code reads of a run and never writes, but for scratch."""
        return self._inputs, self._task, gold, self._params, len(self.problem)

    @property
    def asks_people(self) -> bool:
        """Whether a person could answer: not for gold itself, nor for expected losses."""
        return self.settings.rule != "supervised" and self.settings.criterion == "map"

    @property
    def nobody(self) -> str:
        """Why no person is asked, where none is."""
        return f"{'rule supervised' if self.settings.rule == 'supervised' else 'the annealed criterion'} asks nobody"

    def refuse_silence(self) -> None:
        """SparsezoError where nothing has been asked for so long that nothing will be."""
        n, review = len(self.problem), self.settings.rule == "review"
        # reviews: in so many steps every input comes, and nothing changes without an answer
        most = 2 * n if review else _SILENCE + _SILENCE_A_INPUT * n
        if self.asks_people and self.state.counts[loop.PASSED] > most:
            passed = int(self.state.counts[loop.PASSED])
            found = f"looked at {passed:,} inputs in a row and found nothing to ask"
            if review:
                raise AllReviewedError(
                    f"{found}: each is reviewed, and the model agrees; give fewer `answers`, or more inputs"
                )
            why = "the model says the same of each" if RULES[self.settings.rule].incumbent else "it is sure of all"
            raise SparsezoError(f"{found}: {why}")

    def _check(self, gold: object) -> None:
        """Compiled code believes that gold is of this problem's inputs."""
        if not (isinstance(gold, tuple) and hasattr(gold, "_fields")):  # a NamedTuple, as compiled code knows it
            raise UsageError(f"gold is a {type(gold).__name__}; give what task.gold(data) gives")
        supervised, annealed = self.settings.rule == "supervised", self.settings.criterion == "annealed"
        protocol.need(gold, [protocol.delta], f"rule {self.settings.rule}")
        if RULES[self.settings.rule].asks:
            protocol.need(gold, protocol.ANSWERING, f"rule {self.settings.rule}")
        if annealed:
            protocol.need(gold, [protocol.risk_gradient if supervised else protocol.risk], "the annealed criterion")
        elif supervised:
            protocol.need(gold, [protocol.supervise], "rule supervised")
        if hasattr(gold, "check"):
            gold.check(self.problem, supervised)
        self._gold = gold

    @abstractmethod
    def next_input(self) -> int:
        """The input that ``run`` would look at next."""

    # Asking

    @overload
    def ask(self, x: int | None = None) -> P: ...

    @overload
    def ask(self, x: int | None = None, *, within: int) -> P | None: ...

    def ask(self, x: int | None = None, *, within: int | None = None) -> P | None:
        """What somebody is to be asked about input x.

        Without x it is about the one that is next in the run's own order, or the next after it where there is something
        to ask: no two outputs shown are the same. ``within``: so many inputs at most, and None where that is none.
        """
        if self.settings.rule == "supervised":
            raise UsageError("rule supervised asks for no feedback; use run() with gold")
        if self.settings.criterion != "map":
            raise UsageError("the annealed criterion needs the losses of all outputs; ask() goes with criterion map")
        if within is not None:
            within = whole("`within`", within, 0)
        with self._lock:
            before = int(self.state.counts[loop.ASKED])
            found, value = self._seek(-1 if x is None else self._input(x), within)
            if found < 0:
                return None
            self._looked = int(self.state.counts[loop.ASKED]) - before
            self._passed = int(self.state.counts[loop.PASSED])
            asked = self._made(int(self.state.counts[loop.ASKED]), found, self._length(found), value)
            return self._opened(asked, own=x is None)

    @abstractmethod
    def _made(self, step: int, x: int, n: int, value: float) -> P:
        """What compiled code has left in the workspace, about input x whose outputs have n numbers."""

    def ask_again(self, event: Event, features: Features | None) -> P:
        return self.ask(None if event.get("next") else event["x"])

    def unask(self, proposal: P) -> None:
        """Take back what was asked last, as if it had not been: it is what ``ask`` asks next."""
        with self._lock:
            step, counts = self._asked(proposal).step, self.state.counts
            if step != counts[loop.ASKED] - 1 or self._passed is None:
                raise UsageError(f"step {step}: only what was asked last can be taken back")
            del self._open[step]
            counts[loop.ASKED] -= 1
            counts[loop.QUESTIONS] -= 1
            if self.settings.rule == "review":  # it was the best of those that were looked at, which come again
                counts[[loop.ASKED, loop.STEP]] -= self._looked
                self._passed -= self._looked
            counts[loop.PASSED], self._passed = self._passed, None

    def _seek(self, x: int, within: int | None) -> tuple[int, float]:
        """(input, score or chance) of what is to be asked next, about x or, where that is -1, about any; (-1, 0)."""
        params, most = (self._params._replace(ask=codes.AT_RANDOM), _TRIES) if x >= 0 else (self._params, _LOOKS)
        left = NO_END if within is None else within
        while True:
            args = (self._inputs, self._task, params, len(self.problem), x, min(most, left))
            found, value = self._seek_compiled(*args, self.state, self.workspace)
            if found >= 0:
                break
            if x >= 0:
                raise UsageError(f"input {x}: the model has one output for it in {_TRIES} tries; ask about another")
            self.refuse_silence()
            left -= min(most, left)
            if left == 0:
                return -1, 0.0
        if not math.isfinite(value):
            raise self.not_finite()
        return int(found), float(value)

    def _input(self, x: object) -> int:
        number = operator.index(x) if isinstance(x, int | np.integer) else -1
        if not 0 <= number < len(self.problem):
            raise UsageError(f"there is no input {shown(x)}; inputs are 0 to {len(self.problem) - 1}")
        return number

    def _length(self, x: int) -> int:
        return int(self.problem.output_start[x + 1] - self.problem.output_start[x])

    def _most(self, x: int) -> int:
        """The numbers of an output are below this."""
        return int(self._task.most(x)) if hasattr(self._task, "most") else 2**31

    def _output(self, x: int, given: Array) -> NDArray[np.int32]:
        validation.array("an output", given, "iu", (self._length(x),))
        validation.below("an output", given, self._most(x))
        return given.astype(np.int32)

    def not_finite(self, step: int | None = None) -> DivergedError:
        """What to say when compiled code has stopped; of the next step, where none is given."""
        step = int(self.state.counts[loop.ASKED]) if step is None else step
        return not_finite(self.settings, step, self.workspace.S, self.workspace.T)

    # To bytes and back

    @classmethod
    def from_bytes(cls, raw: bytes, problem: Problem | None = None) -> Self:
        """The learner that ``to_bytes`` made ``raw`` of, on the same problem; it goes on bit for bit."""
        if problem is None:
            raise UsageError("a learner's state needs its problem: Learner.from_bytes(raw, problem)")
        meta, arrays, settings = state_of(raw)
        learner = cls(problem, settings)
        learner._restore(meta, arrays)
        return learner

    def _from_own_bytes(self, raw: bytes) -> Self:
        return self.from_bytes(raw, self.problem)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise UsageError(
            "a learner is not pickled, its problem would go with it; keep learner.to_bytes(), and make it again by "
            "Learner.from_bytes(raw, problem)"
        )


class Learner(TaskLearner[Proposal]):
    """A learner of a task's outputs from their losses, or from which of two is better: rules that perturb the weights,
    and first-order ones. ``problem`` is ``task.problem(data)``.

    >>> from sparsezo.tasks.chunking.synthetic import chunking_corpus
    >>> from sparsezo.tasks.chunking.task import Chunking
    >>> task, corpus = Chunking.fit(chunking_corpus(20, 1))
    >>> learner = Learner(task.problem(corpus), Settings("preference", "score", h=0.01, mu=0.1))
    >>> proposal = learner.ask()
    >>> len(proposal.outputs)
    2
    >>> learner.tell(proposal, "candidate").step
    0
    >>> learner.run(task.gold(corpus), steps=100)
    >>> learner.step > 100
    True
    """

    _run_compiled = staticmethod(loop.run)
    _seek_compiled = staticmethod(loop.seek)

    def __init__(self, problem: Problem, settings: Settings, W: ArrayLike | None = None, *, copy: bool = True) -> None:
        if RULES[settings.rule].asks:
            raise UsageError(
                f"rule {settings.rule} learns from answers to questions: use QueryLearner, or make_learner"
            )
        super().__init__(problem, settings, W, copy=copy)

    def look_in_turn(self, steps: int = 0) -> None:
        """Look at each input once in as many steps as there are inputs, in an order of its own each time, instead of
        drawing them; ``steps``: a learner before this one has done so many with the same seed."""
        self._params = self._params._replace(shift=len(self.problem) * (1 + steps // len(self.problem)))

    def next_input(self) -> int:
        key, step = self._params.keys[random.INPUTS], self.state.counts[loop.ASKED]
        return int(random.input_at(key, self._params.shift, step, len(self.problem)))

    def _made(self, step: int, x: int, n: int, value: float) -> Proposal:
        rule, work = RULES[self.settings.rule], self.workspace
        y = work.y[:n].copy()
        incumbent = work.incumbent[:n].copy() if rule.incumbent else None
        drawn = None if rule.zeroth_order else self._drawn(x, step, y, y if incumbent is None else incumbent)
        if len(rule.points) > 2:
            loop.decode_further(self._inputs, self._task, self._params, x, work)
        others = tuple(work.more[k, :n].copy() for k in range(len(rule.points) - 2))
        return Proposal(self.id, step, x, y, incumbent, drawn, others)

    def _drawn(self, x: int, step: int, y: Array, other: Array) -> float:
        """How likely the outputs of a first-order rule were when they were drawn: just now."""
        return float(loop.log_chance(self._inputs, self._task, self._params, x, step, y, other, self.workspace))

    def tell(self, proposal: Proposal, feedback: Feedback) -> Info:
        """Learn from the answer to a proposal. What an answer is depends on the rule (``RULES[...].feedback``):

        two-point, symmetric: the two losses (candidate, incumbent); baseline, first-order, cross-entropy: one;
        comparison, preference, pairwise: "candidate", "incumbent", "tie" (True, False: the first two), or two losses.
        """
        with self._lock:
            info = self._learn_from_losses(proposal, feedback, self._move)
            self.state.counts[loop.TOKENS] += self._length(proposal.x)
            self.state.counts[loop.LOOKED] += 1
            return info

    def _move(self, asked: Proposal, c: float) -> float:
        """Move the weights for what was asked earlier; returns c as it was applied."""
        y = asked.candidate.copy()  # writeable, as compiled code has them
        other = y if asked.incumbent is None else asked.incumbent.copy()
        args = (self._inputs, self._task, self._params, asked.x, asked.step, y, other)
        return float(loop.answer(*args, float(asked.log_chance or 0.0), c, self.state, self.workspace))

    def learn_from_output(self, x: int, output: ArrayLike, gain: float, log_propensity: float) -> None:
        """Rule first-order, of an output that somebody else's system has shown: W += h gain rho d log p_w(output) / dW,
        with rho = p_w(output) / propensity, at most ``MOST_LATE``. ``gain``: how much less its loss was than some mean.
        Nothing is counted as told."""
        if self.settings.rule != "first-order":
            raise UsageError(
                f"rule {self.settings.rule} learns from no log; use first-order, or one that asks questions"
            )
        if not (math.isfinite(gain) and log_propensity <= 0 and math.isfinite(log_propensity)):
            raise UsageError(f"a gain of {gain} and a propensity of exp({log_propensity}); give finite ones, at most 1")
        with self._lock:
            y = self._output(self._input(x), np.asarray(output, np.int32))
            args = (self._inputs, self._task, self._params, x, 0, y, y, float(log_propensity))
            c = loop.answer(*args, self._params.h * float(gain), self.state, self.workspace)
            if not math.isfinite(c):
                raise self.not_finite()

    def _reopened(self, given: Json, arrays: Arrays) -> Proposal:
        proposal = Proposal.from_json(given)
        x = self._input(proposal.x)
        outputs = [self._output(x, each) for each in proposal.outputs]
        incumbent = outputs[1] if len(outputs) > 1 else None
        if (proposal.log_chance is None) != RULES[self.settings.rule].zeroth_order or (proposal.log_chance or 0) > 0:
            raise ValueError("an output that was drawn with no probability")
        return replace(proposal, x=x, candidate=outputs[0], incumbent=incumbent, others=tuple(outputs[2:]))


# What a model makes of inputs


def predict(problem: Problem, W: Array) -> NDArray[np.int32]:
    """The best output of every input under weights W, one after the other: input x has those from
    ``problem.output_start[x]`` to ``problem.output_start[x + 1]``."""
    W = _weights(problem, W)
    if not validation.all_finite(W):
        raise _scores_not_finite()
    out = np.empty(int(problem.output_start[-1]), np.int32)
    Decoder(problem).decode(W, 0, len(problem), out)
    return out


def mean_loss(problem: Problem, gold: Compiled, outputs: NDArray[np.int32]) -> float:
    """What the task's own loss makes of these outputs, an input in the mean."""
    return float(loop.mean_loss(gold, problem.task, problem.output_start, outputs))


class Decoder:
    """``predict`` a part at a time, with scratch of its own."""

    def __init__(self, problem: Problem) -> None:
        protocol.need(problem.task, [protocol.decode], "predicting")
        self.problem = problem
        self._parts, self._work = problem.private(), workspace_of(problem)

    def decode(self, W: Array, first: int, last: int, out: NDArray[np.int32]) -> None:
        """The best outputs of inputs first to last (exclusive), at their places in ``out``."""
        work = self._work
        if not loop.decode_all(*self._parts, W, work.S, work.y, first, last, self.problem.output_start, out):
            raise _scores_not_finite()

    def one(self, W: Array, x: int) -> NDArray[np.int32]:
        """The best output of input x."""
        begin, end = self.problem.output_start[x : x + 2].tolist()
        out = np.empty(end, np.int32)  # not touched before x: no memory is taken for it
        self.decode(W, x, x + 1, out)
        return out[begin:].copy()


def confidence(problem: Problem, W: Array) -> NDArray[np.float64]:
    """log p_w of the best output of every input: how sure a model is of it, at most 0."""
    protocol.need(problem.task, [protocol.confidence], "how sure a model is")
    work, out = workspace_of(problem), np.empty(len(problem))
    if not loop.confidences(*problem.private(), _weights(problem, W), work.S, work.y, len(problem), out):
        raise _scores_not_finite()
    return out


def log_chances(
    problem: Problem, W: Array, x_of: NDArray[np.int64], outputs: Sequence[NDArray[np.int32]]
) -> NDArray[np.float64]:
    """log p_w of outputs that are there already, the r-th one of input ``x_of[r]``."""
    validation.below("the inputs", x_of, len(problem))
    lengths = np.diff(problem.output_start)[x_of]
    if lengths.tolist() != [each.size for each in outputs]:
        raise UsageError("an output has as many numbers as its input says")
    start, given = np.append(0, np.cumsum(lengths)), np.concatenate([*outputs, np.zeros(0, np.int32)])
    parts, work, out = problem.private(), workspace_of(problem), np.empty(len(x_of))
    for x, each in zip(x_of.tolist(), outputs, strict=True):
        validation.below("an output", each, int(parts[1].most(x)) if hasattr(parts[1], "most") else 2**31)
    key = np.uint64(0)  # what is drawn is not looked at
    if not loop.log_chances(*parts, key, _weights(problem, W), work.S, work.y, x_of, start, given, out):
        raise _scores_not_finite()
    return out


def span_chances(
    problem: Problem, W: Array, fixed: NDArray[np.int16] | None = None
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The best outputs of all inputs, and where a span of one begins how likely that span is; both as they stand at
    Problem.output_start, as does ``fixed``, what is known of each output (``tasks.chunking.kernels.events``)."""
    protocol.need(problem.task, [protocol.span_chances], "how likely spans are")
    fixed = np.zeros(0, np.int16) if fixed is None else fixed
    work, start = workspace_of(problem), problem.output_start
    out, chances = np.empty(int(start[-1]), np.int32), np.zeros(int(start[-1]), np.float32)
    args = (*problem.private(), _weights(problem, W), work.S, work.y, len(problem), start)
    if not loop.span_chances(*args, fixed, out, chances):
        raise _scores_not_finite()
    return out, chances


def workspace_of(problem: Problem) -> loop.Workspace:
    """Scratch for any input of a problem."""
    return workspace(problem.max_rows, problem.max_columns, problem.n_labels, problem.max_outputs, problem.dtype)


def _weights(problem: Problem, W: Array) -> Array:
    return validation.weights("the weights", W, (problem.n_features, problem.n_labels), problem.dtype)


def _scores_not_finite() -> DivergedError:
    return DivergedError("the model's weights give scores that are not finite; train it again with a smaller h")
