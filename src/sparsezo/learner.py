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
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparsezo import bounds
from sparsezo.divergence import not_finite
from sparsezo.errors import DivergedError, SparsezoError, UsageError, shown
from sparsezo.kernels import answering, codes, loop, random
from sparsezo.optimizer import Asked, Optimizer, state_of, whole, workspace
from sparsezo.proposals import Info, Proposal
from sparsezo.questions import WHICH, Question, answer_code, answer_name
from sparsezo.rules import RULES
from sparsezo.settings import Settings
from sparsezo.tasks.base import Problem

NO_END = 2**62
_SLICE = 1_000_000  # steps between looks at whether there is anything to ask at all
_LOOKS = 10_000  # likewise in ``ask``, where a person may lose patience
_SILENCE, _SILENCE_A_INPUT = 1_000_000, 20  # steps in a row without a question, from which on there will be none
_TRIES = 100  # to find two outputs for an input that was named
_LEAST_MEMORY = 1024  # answers
_SHOWN = {"pair": 2, "rate": 1}  # outputs that a question shows; the others are about a part
_REHEARSED = 32  # steps


class Learner(Optimizer):
    """One learner on one problem, which it only reads: a problem serves any number of learners and threads."""

    def __init__(self, problem: Problem, settings: Settings, W: NDArray[Any] | None = None) -> None:
        if not problem.learn:
            raise UsageError("this problem was made to decode only; make it by task.problem(data)")
        if settings.criterion == "annealed" and not problem.risk:
            raise UsageError("the annealed criterion needs task.problem(data, risk=True)")
        if not len(problem):
            raise UsageError("the problem has no inputs to learn from")
        self._begin(settings, problem.n_features, problem.n_labels, problem.dtype, W)
        self.problem = problem
        self._inputs, self._task = problem.private()
        self.workspace = _workspace(problem)
        self._asks = RULES[settings.rule].asks
        if self._asks:
            _check_offered(problem, settings)
            self.state.q[...] = problem.adagrad_start - 1
        self._gold: Any = object()  # the one that was checked

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
            while True:
                last = min(stop, self.step + _SLICE)
                self._run(gold, last, min(end, self._room_for_answers(end)))
                if answers is not None and self.answers < end:
                    self._refuse_silence()
                if self.step >= stop or self.answers >= end:
                    return

    def _run(self, gold: Any, stop: int, answers: int) -> None:
        args = (self._inputs, self._task, gold, self._params, len(self.problem), stop, answers)
        compiled = answering.run if self._asks else loop.run
        if not compiled(*args, self.state, self.workspace):
            raise self._not_finite(int(self.state.counts[loop.ASKED]))

    @property
    def asks_people(self) -> bool:
        """Whether a person could answer: not for gold itself, nor for expected losses."""
        return self.settings.rule != "supervised" and self.settings.criterion == "map"

    @property
    def nobody(self) -> str:
        """Why no person is asked, where none is."""
        supervised = self.settings.rule == "supervised"
        return f"{'rule supervised' if supervised else 'the annealed criterion'} asks nobody"

    def _refuse_silence(self) -> None:
        if self.asks_people and self.state.counts[loop.PASSED] > _SILENCE + _SILENCE_A_INPUT * len(self.problem):
            passed = int(self.state.counts[loop.PASSED])
            why = "the model says the same of each" if RULES[self.settings.rule].incumbent else "it is sure of all"
            raise SparsezoError(f"looked at {passed:,} inputs in a row and found nothing to ask: {why}")

    def _check(self, gold: Any) -> None:
        """Compiled code believes that gold is of this problem's inputs."""
        if not isinstance(gold, tuple):
            raise UsageError(f"gold is a {type(gold).__name__}; give what task.gold(data) gives")
        if hasattr(gold, "check"):
            gold.check(self.problem, self.settings.rule == "supervised")
        self._gold = gold

    def next_input(self) -> int:
        """The input that ``run`` would look at next."""
        step = self.state.counts[loop.ASKED]
        order = random.permuted if self._asks else random.below
        return int(order(self._params.keys[random.INPUTS], step, len(self.problem)))

    def ask(self, x: int | None = None) -> Any:  # type: ignore[override]
        """A ``Proposal``, or a ``Question`` where the rule asks them, about input x.

        Without x it is about the one that is next in the run's own order, or the next after it where there is something
        to ask: no two outputs shown are the same.
        """
        if self.settings.rule == "supervised":
            raise UsageError("rule supervised asks for no feedback; use run() with gold")
        if self.settings.criterion != "map":
            raise UsageError("the annealed criterion needs the losses of all outputs; ask() goes with criterion map")
        with self._lock:
            own = x is None
            x, value = self._seek(-1 if x is None else self._input(x))
            step, work, n = int(self.state.counts[loop.ASKED]), self.workspace, self._length(x)
            if self._asks:
                return self._opened(self._question(step, x, n, value), own=own)
            incumbent = work.incumbent[:n].copy() if RULES[self.settings.rule].incumbent else None
            return self._opened(Proposal(self.id, step, x, work.y[:n].copy(), incumbent), own=own)

    def _seek(self, x: int) -> tuple[int, float]:
        """(input, score or chance) of what is to be asked next, about x or, where that is -1, about any."""
        params, most = self._params, _LOOKS
        if x >= 0:
            params, most = params._replace(ask=codes.AT_RANDOM), _TRIES
        compiled = answering.seek if self._asks else loop.seek
        while True:
            args = (self._inputs, self._task, params, len(self.problem), x, most)
            found, value = compiled(*args, self.state, self.workspace)
            if found >= 0:
                break
            if x >= 0:
                raise UsageError(f"input {x}: the model has one output for it in {_TRIES} tries; ask about another")
            self._refuse_silence()
        if not math.isfinite(value):
            raise self._not_finite(int(self.state.counts[loop.ASKED]))
        return int(found), float(value)

    def _question(self, step: int, x: int, n: int, chance: float) -> Question:
        """What compiled code has left in the workspace."""
        settings, work = self.settings, self.workspace
        outputs = (work.y, work.incumbent)[: _SHOWN.get(settings.rule, 0)]
        answers = self.problem.questions[settings.rule, settings.about]
        return Question(
            self.id,
            step,
            x,
            settings.rule,
            settings.about,
            tuple(work.q.tolist()),
            tuple(output[:n].copy() for output in outputs),
            chance,
            tuple(answers),
            tuple(answers.values()),
        ).frozen()

    def tell(self, proposal: Any, feedback: Any) -> Info:
        """Learn from the answer: to a ``Question`` one of its choices; to a ``Proposal`` as in ``Optimizer.tell``."""
        if not self._asks:
            return super().tell(proposal, feedback)
        with self._lock:
            question: Question = self._asked(proposal).proposal
            code = answer_code(question, feedback)
            self._room_for_answers(self.answers + 1)
            work, state = self.workspace, self.state
            work.q[:] = question.numbers
            for room, output in zip((work.y, work.incumbent), question.outputs, strict=False):
                room[: output.size] = output
            args = (self._inputs, self._task, self._params, question.x, code, state, work)
            if not answering.answered(*args):
                raise self._not_finite(question.step)
            state.counts[loop.STEP] += 1
            state.sums[loop.LOSS] += _told_loss(question, code)
            del self._open[question.step]
            if self.on_event is not None:
                said = answer_name(question, code)
                self.on_event({"event": "tell", "step": question.step, "feedback": said})
            return Info(question.step, self._params.h, self.average_loss)

    # Answers that are gone over again

    def _room_for_answers(self, wanted: int) -> int:
        """Grow the memory of answers, towards so many; returns how many there may be in all before the next call."""
        if not self.settings.rehearse or not self._asks:
            return NO_END
        size = self.state.said.size
        if size <= self.answers:
            self._resize(min(max(2 * size, _LEAST_MEMORY), max(wanted, self.answers + 1)))
        return self.state.said.size

    def _resize(self, size: int) -> None:
        width = answering.QUESTION + (2 * self.problem.max_outputs if self.settings.rule in _SHOWN else 0)
        old = self.state
        questions = np.zeros((size, width), np.int32)
        about, said = np.zeros(size, np.int32), np.zeros(size)
        n = min(size, old.said.size)
        if n:
            questions[:n], about[:n], said[:n] = old.questions[:n], old.about[:n], old.said[:n]
        self.state = old._replace(questions=questions, about=about, said=said)

    def make_room_for(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        if self.settings.rehearse and self._asks and "said" in arrays:
            self._resize(arrays["said"].size)

    def _input(self, x: object) -> int:
        try:
            number = operator.index(x)  # type: ignore[arg-type]
        except TypeError:
            number = -1
        if not 0 <= number < len(self.problem):
            raise UsageError(f"there is no input {shown(x)}; inputs are 0 to {len(self.problem) - 1}")
        return number

    def _move(self, asked: Asked, c: float) -> None:
        proposal = asked.proposal
        y = proposal.candidate.copy()  # writeable, as compiled code has them
        other = y if proposal.incumbent is None else proposal.incumbent.copy()
        args = (self._inputs, self._task, self._params, proposal.x, proposal.step, y, other, c)
        loop.answer(*args, self.state, self.workspace)

    def rehearse(self, gold: Any) -> tuple[float, bool]:
        """Some of the next steps, on a copy: the share of scores that mu u changes, and whether weights move."""
        with self._lock:
            state = loop.State._make(part.copy() for part in self.state)
            args = (self._inputs, self._task, gold, self._params, len(self.problem))
            perturbed = changed = 0
            for _ in range(_REHEARSED):
                work = _workspace(self.problem)  # 0 but for the rows of this one step's input
                if not loop.run(*args, state.counts[loop.STEP] + 1, NO_END, state, work):
                    raise self._not_finite(int(state.counts[loop.ASKED]))
                perturbed += int(np.count_nonzero(work.V))
                changed += int(np.count_nonzero(work.S != work.T))
            return changed / max(perturbed, 1), bool(state.counts[loop.UPDATES] > self.updates)

    def _not_finite(self, step: int) -> DivergedError:
        return not_finite(self.settings, step, self.workspace.S, self.workspace.T)

    @classmethod
    def from_bytes(cls, raw: bytes, problem: Problem | None = None) -> Self:
        if problem is None:
            raise UsageError("a learner's state needs its problem: Learner.from_bytes(raw, problem)")
        meta, arrays, settings = state_of(raw)
        learner = cls(problem, settings)
        learner._restore(meta, arrays)
        return learner

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
            self._check_shown(x, proposal.numbers, proposal.outputs)
            return Asked(proposal)
        outputs = [self._output(x, each) for each in (proposal.candidate, proposal.incumbent) if each is not None]
        incumbent = outputs[1] if len(outputs) > 1 else None
        return Asked(Proposal(proposal.owner, proposal.step, x, outputs[0], incumbent).frozen())

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

    def _check_shown(self, x: int, numbers: Sequence[int], outputs: Sequence[NDArray[Any]]) -> None:
        """A question from elsewhere: compiled code believes its numbers."""
        if len(numbers) != answering.QUESTION or len(outputs) != _SHOWN.get(self.settings.rule, 0):
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
        if n > state.said.size or not ((state.said >= 0) & (state.said < self.problem.n_labels + len(WHICH))).all():
            raise ValueError("answers that nobody has given")
        begin, shown_outputs = answering.QUESTION, _SHOWN.get(self.settings.rule, 0)
        for x, row in zip(state.about[:n].tolist(), state.questions[:n], strict=True):
            size = self._length(self._input(x))
            outputs = [row[begin + k * size : begin + (k + 1) * size] for k in range(shown_outputs)]
            self._check_shown(x, row[:begin].tolist(), outputs)


def predict(problem: Problem, W: NDArray[Any]) -> NDArray[np.int32]:
    """The best output of every input, one after the other, as Problem.output_start says."""
    W = bounds.weights("the weights", W, (problem.n_features, problem.n_labels), problem.dtype)
    if not bounds.all_finite(W):
        raise _not_finite()
    inputs, task = problem.private()
    work = _workspace(problem)
    out = np.empty(int(problem.output_start[-1]), np.int32)
    if not loop.decode_all(inputs, task, W, work.S, work.y, 0, len(problem), problem.output_start, out):
        raise _not_finite()
    return out


def _check_offered(problem: Problem, settings: Settings) -> None:
    offered = problem.questions
    if (settings.rule, settings.about) in offered:
        return
    rules = list(dict.fromkeys(rule for rule, _ in offered))
    if settings.rule in rules:
        raise UsageError(f"`about` {settings.about}: there are no chunks here to ask about; use `about` token")
    here = f"it asks {', '.join(rules)}" if rules else "it asks no questions"
    made = "; was it made by task.problem(data, asks=True)?" if settings.rule == "rate" else ""
    raise UsageError(f"rule {settings.rule} is not offered by this problem; {here}{made}")


def _told_loss(question: Question, code: float) -> float:
    """Of what was shown, by the answer; of two outputs a worse one has lost."""
    if question.kind == "rate":
        return code
    right = {"part": codes.YES, "label": question.numbers[1]}.get(question.kind)
    return float(code == codes.SECOND if right is None else code != right)


def _not_finite() -> DivergedError:
    return DivergedError("the model's weights give scores that are not finite; train it again with a smaller h")


def _workspace(problem: Problem) -> loop.Workspace:
    return workspace(problem.max_rows, problem.max_columns, problem.n_labels, problem.max_outputs, problem.dtype)
