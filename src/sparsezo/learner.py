"""The learner: ask for a proposal, tell it the feedback, and the weights move. Or ``run`` it on simulated feedback.

    learner = Learner(problem, Settings(rule="preference", perturb="score", h=0.001, mu=0.1))
    proposal = learner.ask()                            # two outputs for some input
    learner.tell(proposal, "candidate")                 # a person liked the first better
    learner.run(gold, steps=100_000)                    # the same, compiled, with gold as the judge
    learner.run(gold, answers=1000)                     # until a person would have answered so many in all

It is an ``Optimizer`` whose proposals are a model's outputs. ``tell`` never sees gold. A proposal can be answered at
any later time: its perturbation is a function of the run's seed, its step and its input. ``ask``/``tell`` and ``run``
give the same weights bit for bit (Algorithm 1, SZO-SP). Nobody is asked which of two equal outputs is better.

Rules part, label, pair and rate ask a ``Question`` instead, where the model is unsure, and climb the likelihood of its
answer under the model's own distribution (docs/answers.md).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparsezo import bounds
from sparsezo.decoding import predict, workspace_of
from sparsezo.divergence import not_finite
from sparsezo.errors import DivergedError, SparsezoError, UsageError, shown
from sparsezo.kernels import answering, batching, codes, loop, random
from sparsezo.optimizer import Asked, Optimizer, state_of, whole
from sparsezo.proposals import Info, Proposal
from sparsezo.questions import WHICH, Question, answer_code, answer_name, check_offered, span_of, told_loss
from sparsezo.raters import checked_error
from sparsezo.rules import RULES
from sparsezo.settings import ABOUT, Settings
from sparsezo.tasks.base import Problem

__all__ = ["Learner", "predict"]

NO_END = 2**62
_SLICE = 1_000_000  # steps between looks at whether there is anything to ask at all
_LOOKS = 10_000  # likewise in ``ask``, where a person may lose patience
_SILENCE, _SILENCE_A_INPUT = 1_000_000, 20  # steps in a row without a question, from which on there will be none
_TRIES = 100  # to find two outputs for an input that was named
_LEAST_MEMORY = 1024  # answers
_SHOWN = {"pair": 2, "rate": 1}  # outputs that a question shows; the others are about a part


class Learner(Optimizer):
    """One learner on one problem, which it only reads: a problem serves any number of learners and threads."""

    def __init__(self, problem: Problem, settings: Settings, W: Any = None, *, copy: bool = True) -> None:
        """W: the weights to start from. ``copy`` false: learn in W itself, say a mapped file (``mapped_weights``)."""
        if not problem.learn:
            raise UsageError("this problem was made to decode only; make it by task.problem(data)")
        if settings.criterion == "annealed" and not problem.risk:
            raise UsageError("the annealed criterion needs task.problem(data, risk=True)")
        if not len(problem):
            raise UsageError("the problem has no inputs to learn from")
        self._begin(settings, problem.n_features, problem.n_labels, problem.dtype, W, copy)
        self.problem = problem
        self._inputs, self._task = problem.private()
        self.workspace = workspace_of(problem)
        self._asks = RULES[settings.rule].asks
        self._compiled = answering.run if self._asks else batching.runner(settings.batch)
        if self._asks:
            check_offered(problem.questions, settings.rule, settings.about)
            self.state.q[...] = problem.adagrad_start - 1
            if W is None:
                self.begin_again()
        self._gold: Any = object()  # the one that was checked
        self._passed: int | None = None  # State.counts[PASSED] when the last question was found

    def begin_again(self) -> None:
        """The weights that the problem starts from where none are given: 0, but for what it knows of its labels."""
        self.state.W[...] = 0
        if self.problem.start is not None and self._asks:
            rows, values = self.problem.start
            self.state.W[rows] = values

    def _copy(self) -> NDArray[Any]:
        """Features x labels."""
        return self.state.W.copy()

    # Learning

    def run(self, gold: Any, steps: int | None = None, answers: int | None = None) -> None:
        """``steps`` steps on inputs drawn at random, with feedback computed from gold.

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
            self.settings.check_start(self.step)
            batch = self.settings.batch
            while True:
                last = min(stop, (self.step + _SLICE) // batch * batch)  # batches stay whole
                self._run(gold, last, min(end, self._room_for_answers(end)))
                if answers is not None and self.answers < end:
                    self.refuse_silence()
                if self.step >= stop or self.answers >= end:
                    return

    def _run(self, gold: Any, stop: int, answers: int) -> None:
        if not self._compiled(*self.parts(gold), stop, answers, self.state, self.workspace):
            raise self.not_finite()

    def parts(self, gold: Any) -> tuple[Any, Any, Any, Any, int]:
        """All that compiled code reads of a run and never writes, but for scratch."""
        return self._inputs, self._task, gold, self._params, len(self.problem)

    @property
    def asks_people(self) -> bool:
        """Whether a person could answer: not for gold itself, nor for expected losses."""
        return self.settings.rule != "supervised" and self.settings.criterion == "map"

    @property
    def nobody(self) -> str:
        """Why no person is asked, where none is."""
        supervised = self.settings.rule == "supervised"
        return f"{'rule supervised' if supervised else 'the annealed criterion'} asks nobody"

    def refuse_silence(self) -> None:
        """Where nothing has been asked for so long that nothing will be."""
        if self.asks_people and self.state.counts[loop.PASSED] > _SILENCE + _SILENCE_A_INPUT * len(self.problem):
            passed = int(self.state.counts[loop.PASSED])
            why = "the model says the same of each" if RULES[self.settings.rule].incumbent else "it is sure of all"
            raise SparsezoError(f"looked at {passed:,} inputs in a row and found nothing to ask: {why}")

    def _check(self, gold: Any) -> None:
        """Compiled code believes that gold is of this problem's inputs."""
        if not (isinstance(gold, tuple) and hasattr(gold, "_fields")):  # a NamedTuple, as compiled code knows it
            raise UsageError(f"gold is a {type(gold).__name__}; give what task.gold(data) gives")
        if hasattr(gold, "check"):
            gold.check(self.problem, self.settings.rule == "supervised")
        self._gold = gold

    def next_input(self) -> int:
        """The input that ``run`` would look at next."""
        step, N = self.state.counts[loop.ASKED], len(self.problem)
        if self._asks:
            return int(random.permuted(self._params.keys[random.INPUTS], step, N))
        return int(batching.input_of(self._params, step, N))

    def ask(self, x: int | None = None, *, within: int | None = None) -> Any:  # type: ignore[override]
        """A ``Proposal``, or a ``Question`` where the rule asks them, about input x.

        Without x it is about the one that is next in the run's own order, or the next after it where there is something
        to ask: no two outputs shown are the same. ``within``: so many inputs at most, and None where that is none.
        """
        if self.settings.rule == "supervised":
            raise UsageError("rule supervised asks for no feedback; use run() with gold")
        if self.settings.criterion != "map":
            raise UsageError("the annealed criterion needs the losses of all outputs; ask() goes with criterion map")
        self.settings.refuse_batch("is of run(); leave it out: ask several before you tell")
        if within is not None:
            within = whole("`within`", within, 0)
        with self._lock:
            own = x is None
            x, value = self._seek(-1 if x is None else self._input(x), within)
            if x < 0:
                return None
            self._passed = int(self.state.counts[loop.PASSED])
            step, work, n = int(self.state.counts[loop.ASKED]), self.workspace, self._length(x)
            if self._asks:
                return self._opened(self._question(step, x, n, value), own=own)
            y = work.y[:n].copy()
            incumbent = work.incumbent[:n].copy() if RULES[self.settings.rule].incumbent else None
            return self._opened(Proposal(self.id, step, x, y, incumbent, self._drawn(x, step, y, incumbent)), own=own)

    def _drawn(self, x: int, step: int, y: NDArray[Any], incumbent: NDArray[Any] | None) -> float | None:
        """How likely the outputs of a first-order rule were when they were drawn: just now."""
        if RULES[self.settings.rule].zeroth_order:
            return None
        other = y if incumbent is None else incumbent
        args = (self._inputs, self._task, self._params, x, step, y, other)
        return float(loop.log_chance(*args, self.workspace))

    def unask(self, proposal: Any) -> None:
        """Take back what was asked last, as if it had not been: it is what ``ask`` asks next."""
        with self._lock:
            step, counts = self._asked(proposal).proposal.step, self.state.counts
            if step != counts[loop.ASKED] - 1 or self._passed is None:
                raise UsageError(f"step {step}: only what was asked last can be taken back")
            del self._open[step]
            counts[loop.ASKED] -= 1
            counts[loop.QUESTIONS] -= 1
            counts[loop.PASSED], self._passed = self._passed, None

    def _seek(self, x: int, within: int | None = None) -> tuple[int, float]:
        """(input, score or chance) of what is to be asked next, about x or, where that is -1, about any; (-1, 0)."""
        params, most = self._params, _LOOKS
        if x >= 0:
            params, most = params._replace(ask=codes.AT_RANDOM), _TRIES
        compiled = answering.seek if self._asks else loop.seek
        left = NO_END if within is None else within
        while True:
            args = (self._inputs, self._task, params, len(self.problem), x, min(most, left))
            found, value = compiled(*args, self.state, self.workspace)
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

    def _question(self, step: int, x: int, n: int, chance: float) -> Question:
        """What compiled code has left in the workspace."""
        settings, work = self.settings, self.workspace
        outputs = (work.y, work.incumbent)[: _SHOWN.get(settings.rule, 0)]
        content = tuple(work.q.tolist()), tuple(output[:n].copy() for output in outputs)
        question = Question(self.id, step, x, settings.rule, settings.about, *content, chance, (), ())
        return question.offering(self.problem.questions[settings.rule, settings.about]).frozen()

    def tell(self, proposal: Any, feedback: Any) -> Info:
        """Learn from the answer: to a ``Question`` one of its choices; to a ``Proposal`` as in ``Optimizer.tell``."""
        if not self._asks:
            return super().tell(proposal, feedback)
        with self._lock:
            question: Question = self._asked(proposal).proposal
            code = self._code(question, feedback)
            self._learn(question, code, self._params)
            self._close(question)
            if self.on_event is not None:
                said = answer_name(question, code)
                self.on_event({"event": "tell", "step": question.step, "feedback": said})
            return Info(question.step, self._params.h, self.average_loss)

    def _code(self, question: Question, answer: Any) -> float:
        """The number of an answer, checked: compiled code believes it."""
        code = answer_code(question, answer)
        if question.kind == "span" and code and span_of(code)[1] >= self._length(question.x):
            raise UsageError(
                f"a span that ends at token {span_of(code)[1]}: there are {self._length(question.x)} tokens"
            )
        return code

    def _learn(self, question: Question, code: float, params: Any) -> None:
        self._room_for_answers(self.answers + 1)
        if not answering.answered(*self._laid_out(question, code, params)):
            raise self.not_finite(question.step)
        self.state.sums[loop.LOSS] += told_loss(question, code)

    def _laid_out(self, question: Question, code: float, params: Any) -> tuple[Any, ...]:
        """A question with an answer as compiled code takes them."""
        work = self.workspace
        work.q[:] = question.numbers
        for room, output in zip((work.y, work.incumbent), question.outputs, strict=False):
            room[: output.size] = output
        return self._inputs, self._task, params, question.x, code, self.state, work

    def _close(self, question: Question) -> None:
        self.state.counts[loop.STEP] += 1
        del self._open[question.step]

    # Questions that somebody else keeps: a log of answers, say

    def let_go(self, question: Question) -> None:
        """An open question whose answer is not waited for here any more; ``learn_from`` still takes its answer."""
        with self._lock:
            self._close(self._asked(question).proposal)

    def learn_from(
        self, question: Question, answer: Any, *, kind: str | None = None, error: tuple[float, float] | None = None
    ) -> Info:
        """As ``tell`` learns, from a question known by its content: it need not be open, nor be of this learner.

        ``kind``: what it was answered as, its own unless given (a part may be answered by the label's name);
        ``error``: (e0, e1) believed of who answered, instead of the settings'.
        """
        with self._lock:
            question, params = self._posed(question, kind, error)
            own = self._params
            if own.rehearse and (params.rule, params.e0, params.e1) != (own.rule, own.e0, own.e1):
                raise UsageError("`rehearse` goes over answers of one kind and one error; set it to 0")
            self._learn(question, self._code(question, answer), params)
            return Info(question.step, self._params.h, self.average_loss)

    def probability(self, question: Question, answer: Any, *, kind: str | None = None) -> float:
        """Of an answer that never errs, under the present weights; of a loss (rate), its likelihood."""
        with self._lock:
            question, params = self._posed(question, kind, (0.0, 0.0))
            return float(answering.likelihood(*self._laid_out(question, self._code(question, answer), params)))

    def _posed(self, question: Question, kind: str | None, error: tuple[float, float] | None) -> tuple[Question, Any]:
        """The question as one of that kind, checked, and the numbers of a step that learns from it."""
        kind = kind or question.kind
        answers = self.problem.questions.get((kind, question.about))
        if answers is None or not self._asks:
            raise UsageError(f"a question of kind {kind} about a {question.about}: this learner has no such")
        e0, e1 = (self._params.e0, self._params.e1) if error is None else checked_error(kind, *error)
        try:
            self._check_shown(self._input(question.x), question.numbers, question.outputs, kind)
        except ValueError as wrong:
            raise UsageError(f"not a question of these inputs: {wrong}") from None
        posed = replace(question, kind=kind).offering(answers)
        return posed, self._params._replace(rule=RULES[kind].code, about=ABOUT[question.about], e0=e0, e1=e1)

    # Answers that are gone over again

    def _room_for_answers(self, wanted: int) -> int:
        """Grow the memory of answers, towards so many; returns how many there may be in all before the next call."""
        if not self._params.rehearse or not self._asks:
            return NO_END
        size = self.state.said.size
        if size <= self.answers:
            self._resize(min(max(2 * size, _LEAST_MEMORY), max(wanted, self.answers + 1)))
        return self.state.said.size

    def _resize(self, size: int) -> None:
        width = answering.QUESTION + (2 * self.problem.max_outputs if self.settings.rule in _SHOWN else 0)
        self.state = answering.with_room(self.state, size, width)

    def make_room_for(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        if self._params.rehearse and self._asks and "said" in arrays and arrays["said"].size:
            self._resize(arrays["said"].size)

    def _input(self, x: object) -> int:
        try:
            number = operator.index(x)  # type: ignore[arg-type]
        except TypeError:
            number = -1
        if not 0 <= number < len(self.problem):
            raise UsageError(f"there is no input {shown(x)}; inputs are 0 to {len(self.problem) - 1}")
        return number

    def _move(self, asked: Asked, c: float) -> float:
        proposal = asked.proposal
        y = proposal.candidate.copy()  # writeable, as compiled code has them
        other = y if proposal.incumbent is None else proposal.incumbent.copy()
        args = (self._inputs, self._task, self._params, proposal.x, proposal.step, y, other)
        return float(loop.answer(*args, float(proposal.log_chance or 0.0), c, self.state, self.workspace))

    def not_finite(self, step: int | None = None) -> DivergedError:
        """What to say when compiled code has stopped; of the next step, where none is given."""
        step = int(self.state.counts[loop.ASKED]) if step is None else step
        return not_finite(self.settings, step, self.workspace.S, self.workspace.T)

    @classmethod
    def from_bytes(cls, raw: bytes, problem: Problem | None = None) -> Self:
        if problem is None:
            raise UsageError("a learner's state needs its problem: Learner.from_bytes(raw, problem)")
        meta, arrays, settings = state_of(raw)
        learner = cls(problem, settings)
        learner._restore(meta, arrays)
        return learner

    def __copy__(self) -> Self:
        """A learner of its own on the same problem, which is only read; what is open at one is open at the other."""
        return type(self).from_bytes(self.to_bytes(), self.problem)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise UsageError(
            "a learner is not pickled, its problem would go with it; keep learner.to_bytes(), and make it again by "
            "Learner.from_bytes(raw, problem)"
        )

    def _reopened(self, proposal: Any, basis: NDArray[Any] | None) -> Asked:
        """As ``ask`` made it, from bytes."""
        if isinstance(proposal, Question) != self._asks:
            raise ValueError("an open proposal of another rule")
        x = self._input(proposal.x)
        if isinstance(proposal, Question):
            answers = self.problem.questions[self.settings.rule, self.settings.about]
            if (proposal.kind, proposal.about) != (self.settings.rule, self.settings.about):
                raise ValueError("an open question of another rule")
            if (proposal.choices, proposal.codes) != (tuple(answers), tuple(answers.values())):
                raise ValueError("an open question with other answers")
            self._check_shown(x, proposal.numbers, proposal.outputs, proposal.kind)
            return Asked(proposal)
        outputs = [self._output(x, each) for each in (proposal.candidate, proposal.incumbent) if each is not None]
        incumbent = outputs[1] if len(outputs) > 1 else None
        if (proposal.log_chance is None) != RULES[self.settings.rule].zeroth_order or (proposal.log_chance or 0) > 0:
            raise ValueError("an output that was drawn with no probability")
        return Asked(replace(proposal, x=x, candidate=outputs[0], incumbent=incumbent).frozen())

    def _output(self, x: int, given: NDArray[Any]) -> NDArray[np.int32]:
        """An output of x as somebody else has it."""
        bounds.array("an output", given, "iu", (self._length(x),))
        bounds.below("an output", given, self._most(x))
        return given.astype(np.int32)

    def _length(self, x: int) -> int:
        return int(self.problem.output_start[x + 1] - self.problem.output_start[x])

    def _most(self, x: int) -> int:
        """The numbers of an output are below this."""
        return int(self._task.most(x)) if hasattr(self._task, "most") else 2**31

    def _check_shown(self, x: int, numbers: Sequence[int], outputs: Sequence[NDArray[Any]], kind: str) -> None:
        """A question from elsewhere: compiled code believes its numbers."""
        if len(numbers) != answering.QUESTION or len(outputs) != _SHOWN.get(kind, 0):
            raise ValueError("a question of another rule")
        first, label, last, rest = numbers
        if not (0 <= first <= last < self._length(x) and 0 <= label < self._most(x) and rest == 0):
            raise ValueError("a question about what is not there")
        for output in outputs:
            self._output(x, output)

    def check_state(self) -> None:
        super().check_state()
        state, n = self.state, self.answers
        if not state.said.size:
            return
        said = state.said[:n]
        if n > state.said.size:
            raise ValueError("answers that nobody has given")
        if self.settings.rule == "span":
            self._check_spans(said, state.about[:n])
        elif not ((said >= 0) & (said < self.problem.n_labels + len(WHICH))).all():
            raise ValueError("answers that nobody has given")
        begin, shown_outputs = answering.QUESTION, _SHOWN.get(self.settings.rule, 0)
        for x, row in zip(state.about[:n].tolist(), state.questions[:n], strict=True):
            size = self._length(self._input(x))
            outputs = [row[begin + k * size : begin + (k + 1) * size] for k in range(shown_outputs)]
            self._check_shown(x, row[:begin].tolist(), outputs, self.settings.rule)

    def _check_spans(self, said: NDArray[Any], about: NDArray[Any]) -> None:
        for code, x in zip(said.tolist(), about.tolist(), strict=True):
            first, last, tag = span_of(code) if code != codes.NO_SPAN else (0, 0, 0)
            known = tag in self.problem.questions["span", "chunk"].values()
            if not (code == int(code) and 0 <= first <= last < self._length(self._input(x)) and known):
                raise ValueError("answers that nobody has given")
