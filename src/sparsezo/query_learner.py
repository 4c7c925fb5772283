"""Learning from answers to questions (docs/answers.md): rules part, label, span, review, pair, best and rate.

    learner = QueryLearner(task.problem(data, asks=True), Settings("part", None, h=0.2, mu=None, step="adagrad"))
    question = learner.ask()                            # where the model is unsure
    learner.tell(question, "yes")                       # one of question.choices, a span, or a loss (rate)
    learner.learn_from(question, "no", error=(0, 0.1))  # a question that somebody else keeps: a log of answers, say
    learner.finish(5)                                   # go over all answers again, when nobody waits

An answer's likelihood under the model's own distribution is climbed, and earlier answers are gone over again
(``rehearse``). ``make_learner`` gives the right learner for a rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from sparsezo import validation
from sparsezo.errors import UsageError
from sparsezo.kernels import answering, codes, loop, protocol, random
from sparsezo.learner import NO_END, Learner, TaskLearner
from sparsezo.optimizer import Arrays, whole
from sparsezo.questions import (
    WHICH,
    Answer,
    Answers,
    Effort,
    Info,
    Json,
    Question,
    answer_code,
    answer_name,
    check_offered,
    effort_of,
    reviewed,
    span_of,
    told_loss,
)
from sparsezo.raters import checked_error
from sparsezo.rules import RULES
from sparsezo.settings import ABOUT, Settings, parse_seconds
from sparsezo.tasks.base import Problem
from sparsezo.validation import Array

_LEAST_MEMORY = 1024  # answers
NOBODY = -1  # in State.about: the answer is not remembered
_SHOWN = {"pair": 2, "rate": 1, "review": 2}  # outputs of a question (review: and what is marked); best: see _shown


def make_learner(
    problem: Problem, settings: Settings, W: ArrayLike | None = None, *, copy: bool = True
) -> Learner | QueryLearner:
    """The learner of a rule: a ``QueryLearner`` where it asks questions, else a ``Learner``."""
    if RULES[settings.rule].asks:
        return QueryLearner(problem, settings, W, copy=copy)
    return Learner(problem, settings, W, copy=copy)


class QueryLearner(TaskLearner[Question]):
    """A learner of a task's outputs from answers to questions about them. ``problem`` is
    ``task.problem(data, asks=True)``.

    >>> from sparsezo.tasks.chunking.synthetic import chunking_corpus
    >>> from sparsezo.tasks.chunking.task import Chunking
    >>> task, corpus = Chunking.fit(chunking_corpus(20, 1))
    >>> settings = Settings("part", None, h=0.2, mu=None, step="adagrad")
    >>> learner = QueryLearner(task.problem(corpus, asks=True), settings)
    >>> question = learner.ask()
    >>> question.choices
    ('yes', 'no')
    >>> learner.tell(question, "yes").average_loss
    0.0
    """

    _run_compiled = staticmethod(answering.run)
    _seek_compiled = staticmethod(answering.seek)

    def __init__(self, problem: Problem, settings: Settings, W: ArrayLike | None = None, *, copy: bool = True) -> None:
        if not RULES[settings.rule].asks:
            raise UsageError(f"rule {settings.rule} asks no questions: use Learner, or make_learner")
        super().__init__(problem, settings, W, copy=copy)
        self._alike = True  # answers so far were of the rule's own kind
        check_offered(problem.questions, settings.rule, settings.about)
        protocol.need(self._task, protocol.ASKING, f"rule {settings.rule}")
        self.state.q[...] = problem.adagrad_start - 1
        if W is None:
            self.begin_again()

    def begin_again(self) -> None:
        """The weights that the problem starts from where none are given: 0, but for what it knows of its labels."""
        self.state.W[...] = 0
        if self.problem.start is not None:
            rows, values = self.problem.start
            self.state.W[rows] = values

    @property
    def told_losses(self) -> tuple[float, int]:
        return float(self.state.sums[loop.LOSS]), self.answers

    def next_input(self) -> int:
        key, step = self._params.keys[random.INPUTS], self.state.counts[loop.ASKED]
        return int(random.permuted(key, step, len(self.problem)))

    def _made(self, step: int, x: int, n: int, value: float) -> Question:
        """``value``: the probability with which the question was chosen."""
        rule, about, work = self.settings.rule, self.settings.about, self.workspace
        if rule == "best":
            outputs = tuple(work.y[k : k + 1].copy() for k in range(self._shown(rule, x)))
        else:
            outputs = tuple(output[:n].copy() for output in (work.y, work.incumbent)[: _SHOWN.get(rule, 0)])
        question = Question(self.id, step, x, rule, about, tuple(work.q.tolist()), outputs, value, (), ())
        return question.offering(self._choices(rule, about, x))

    def any_question(self) -> Question:
        """About the first input, made up: for who wants to know what a question looks like. It was not asked."""
        with self._lock:
            n, work = self._length(0), self.workspace
            for numbers in (work.q, work.y[:n], work.incumbent[:n]):
                numbers[:] = 0
            return self._made(0, 0, n, 0.5)

    def _shown(self, kind: str, x: int) -> int:
        """Outputs of a question about x."""
        return min(codes.CANDIDATES, self._most(x)) if kind == "best" else _SHOWN.get(kind, 0)

    def _choices(self, kind: str, about: str, x: int) -> Answers:
        """Of a question about x: of the best of some, as many as there are."""
        answers = self.problem.questions[kind, about]
        n = self._shown(kind, x)
        return {name: k for name, k in answers.items() if k < n} if kind == "best" else answers

    def tell(self, proposal: Question, feedback: Answer) -> Info:
        """Learn from the answer to a question: one of its ``choices``; part also True and False; label also a label's
        number; span also {"first": 3, "last": 4, "label": "LOC"}; rate: a loss from 0 to 1; review: "right", or the
        labels as they should be; best: a place, from 1."""
        with self._lock:
            asked = self._asked(proposal)
            question, code, effort = self._answered(asked, feedback)
            self._learn(question, code, effort, self._params)
            self._close(question)
            said = answer_name(question, code)
            if isinstance(said, dict) and question.kind == "review":
                said["corrections"] = effort.corrections
            self._tell_of({"event": "tell", "step": question.step, "feedback": said})
            return Info(question.step, self._params.h, self.average_loss)

    def _code(self, question: Question, answer: Answer) -> float:
        """The number of an answer, checked: compiled code believes it."""
        code, n = answer_code(question, answer), self._length(question.x)
        if question.kind == "span" and code and span_of(code)[1] >= n:
            raise UsageError(f"a span that ends at token {span_of(code)[1]}: there are {n} tokens")
        return code

    def _answered(self, question: Question, answer: Answer) -> tuple[Question, float, Effort]:
        """A question, its answer's number, and what that took; a review has the outputs that the answer leaves, to be
        learned from."""
        code = self._code(question, answer)
        effort = effort_of(question, answer, code)
        if question.kind == "review":
            question = replace(question, outputs=reviewed(question, answer))
        return question, code, effort

    def _learn(
        self, question: Question, code: float, effort: Effort, params: loop.StepParams, instead_of: Sequence[int] = ()
    ) -> None:
        self._room_for_answers(self.answers + 1 + self.answers // 4)
        inputs, task, _, x, _, state, work = self._laid_out(question, code, params)
        self._replace(instead_of, x, code, params)
        if not answering.answered(inputs, task, params, x, code, effort.looked, effort.corrections, state, work):
            raise self.not_finite(question.step)
        self.state.sums[loop.LOSS] += told_loss(question, code)

    def _laid_out(
        self, question: Question, code: float, params: loop.StepParams
    ) -> tuple[object, object, loop.StepParams, int, float, loop.State, loop.Workspace]:
        work = self.workspace
        work.q[:] = question.numbers
        rooms: tuple[Array, ...] = (work.y, work.incumbent)
        if question.kind == "best":
            work.y[: codes.CANDIDATES] = 0
            rooms = tuple(work.y[k : k + 1] for k in range(codes.CANDIDATES))
        for room, output in zip(rooms, question.outputs, strict=False):
            room[: output.size] = output
        return self._inputs, self._task, params, question.x, code, self.state, work

    def _close(self, question: Question) -> None:
        self.state.counts[loop.STEP] += 1
        del self._open[question.step]

    # Questions that somebody else keeps: a log of answers, say

    def let_go(self, question: Question) -> None:
        """An open question whose answer is not waited for here any more; ``learn_from`` still takes its answer."""
        with self._lock:
            self._close(self._asked(question))

    def learn_from(
        self,
        question: Question,
        answer: Answer,
        *,
        kind: str | None = None,
        error: tuple[float, float] | None = None,
        again: bool = False,
        instead_of: Sequence[int] = (),
    ) -> Info:
        """As ``tell`` learns, from a question known by its content: it need not be open, nor be of this learner.

        ``kind``: what it was answered as, its own unless given (a part may be answered by the label's name);
        ``error``: (e0, e1) believed of who answered, instead of the settings'. ``again``: it has been learned from
        before; nothing is counted, and no earlier answers follow. ``instead_of``: numbers, from 0, of earlier answers
        that are gone over as this one from now on.
        """
        with self._lock:
            question, params = self._posed(question, kind, error)
            question, code, effort = self._answered(question, answer)
            own = self._params
            alike = params.rule == own.rule
            if again:
                if not np.isfinite(answering.learn(*self._laid_out(question, code, params))):
                    raise self.not_finite(question.step)
            elif own.rehearse and not alike:
                raise UsageError("`rehearse` goes over answers of one kind; set it to 0")
            else:
                self._alike = self._alike and alike
                self._learn(question, code, effort, params, instead_of)
                if params.rule != own.rule and self.state.about.size:
                    self.state.about[self.answers - 1] = NOBODY  # remembered are those of the rule's own kind
            return Info(question.step, self._params.h, self.average_loss)

    def learn_from_thumb(
        self, x: int, output: ArrayLike, up: bool, *, error: tuple[float, float] | None = None
    ) -> Info:
        """Learn from a thumb on a whole output of input x, whoever showed it: Pr(up) = e0 + (1 - e0 - e1) p_w(output).

        ``error``: (e0, e1) believed of who gave it, instead of the settings'. Earlier answers are not gone over."""
        with self._lock:
            e0, e1 = (self._params.e0, self._params.e1) if error is None else checked_error("part", *error)
            y = self._output(self._input(x), np.asarray(output, np.int32))
            params = self._params._replace(e0=e0, e1=e1)
            if not np.isfinite(
                answering.learn_thumb(self._inputs, self._task, params, x, y, bool(up), self.state, self.workspace)
            ):
                raise self.not_finite()
            return Info(self.step, self._params.h, self.average_loss)

    def _replace(self, places: Sequence[int], x: int, code: float, params: loop.StepParams) -> None:
        """Have the answer that is laid out in the places of earlier ones, which are not gone over any more."""
        counts, given = self.state.counts, self.answers
        for place in places:
            if whole("`instead_of`", place, 0) >= given:
                raise UsageError(f"`instead_of` {place}: there are {given} answers, from 0")
            counts[loop.ANSWERS] = place
            answering.remember(self._task, params, x, code, self.state, self.workspace)
            counts[loop.ANSWERS] = given

    def remember(
        self,
        question: Question,
        answer: Answer,
        *,
        error: tuple[float, float] | None = None,
        instead_of: Sequence[int] = (),
    ) -> None:
        """An answer that the weights have learned from already, of the learner's own kind: to be gone over again,
        ``instead_of`` earlier ones where they are named."""
        with self._lock:
            question, params = self._posed(question, None, error)
            if question.kind != self.settings.rule:
                raise UsageError(f"an answer to {question.kind}; this learner remembers those to {self.settings.rule}")
            self._room_for_answers(self.answers + 1 + self.answers // 4)
            question, code, _ = self._answered(question, answer)
            _, task, _, x, _, state, work = self._laid_out(question, code, params)
            self._replace(instead_of, x, code, params)
            answering.remember(task, params, x, code, state, work)
            state.counts[loop.ANSWERS] += 1

    def probability(self, question: Question, answer: Answer, *, kind: str | None = None) -> float:
        """Of an answer that never errs, under the present weights; of a loss (rate), its likelihood."""
        with self._lock:
            question, params = self._posed(question, kind, (0.0, 0.0))
            question, code, _ = self._answered(question, answer)
            return float(answering.likelihood(*self._laid_out(question, code, params)))

    def known_answer(self, question: Question, gold: object) -> Answer:
        """What somebody answers who knows the correct outputs (``task.gold(data)``): a simulated person, asked once.

        Of a review: with what `feedback` flip:P says that is overlooked.
        """
        with self._lock:
            if gold is not self._gold:
                self._check(gold)
            inputs, task, params, x, _, state, work = self._laid_out(question, 0.0, self._params)
            if question.kind != "review":
                return answer_name(question, float(answering.truth(gold, task, params, x, work)))
            made = answering.reviewed(inputs, task, gold, params, x, question.step, state, work)
            n = self._length(question.x)
            output, how = work.y[:n].tolist(), work.incumbent[:n]
            corrected = np.flatnonzero(how == codes.CORRECTED).tolist()
            return {"output": output, "corrected": corrected, "corrections": int(made)}

    def _posed(
        self, question: Question, kind: str | None, error: tuple[float, float] | None
    ) -> tuple[Question, loop.StepParams]:
        """The question as one of that kind, checked, and the numbers of a step that learns from it."""
        kind = kind or question.kind
        answers = self.problem.questions.get((kind, question.about))
        if answers is None:
            raise UsageError(f"a question of kind {kind} about a {question.about}: this learner has no such")
        e0, e1 = (self._params.e0, self._params.e1) if error is None else checked_error(kind, *error)
        try:
            self._check_shown(self._input(question.x), question.numbers, question.outputs, kind)
        except ValueError as wrong:
            raise UsageError(f"not a question of these inputs: {wrong}") from None
        posed = replace(question, kind=kind).offering(self._choices(kind, question.about, question.x))
        return posed, self._params._replace(rule=RULES[kind].code, about=ABOUT[question.about], e0=e0, e1=e1)

    def set_seconds(self, seconds: Sequence[float]) -> None:
        """The time of whoever is asked next, by which a review is chosen: seconds for each review, a token of a whole
        one, a marked part and a correction. It says what ``ask`` asks, and nothing of what is learned from answers."""
        with self._lock:
            self._params = self._params._replace(seconds=parse_seconds(seconds))

    # Answers that are gone over again

    def finish(self, passes: int = 5) -> None:
        """Go over all remembered answers so many times more, each time in an order of its own: when nobody waits,
        before an export or an evaluation. An event like ``tell``."""
        passes = whole("`passes`", passes, 0)
        with self._lock:
            if not self._remembers:
                raise UsageError("with `rehearse` 0 no answers are remembered that could be gone over")
            if not self._alike:
                raise UsageError("answers of several kinds: go over them by learn_from(..., again=True)")
            for turn in range(passes):
                args = (self._inputs, self._task, self._params, turn, self.state, self.workspace)
                if not answering.go_over_all(*args):
                    raise self.not_finite()
            self._tell_of({"event": "finish", "passes": passes})

    def _room_for_answers(self, wanted: int) -> int:
        if not self._remembers:
            return NO_END
        size = self.state.said.size
        if size <= self.answers:
            self._resize(min(max(2 * size, _LEAST_MEMORY), max(wanted, self.answers + 1)))
        return self.state.said.size

    @property
    def _remembers(self) -> bool:
        """Answers are kept: to be gone over again, and since a review that the model agrees with is not asked again."""
        return bool(self._params.rehearse) or self.settings.rule == "review"

    def _resize(self, size: int) -> None:
        shown = {"best": codes.CANDIDATES}.get(self.settings.rule, 2 * self.problem.max_outputs)
        width = answering.QUESTION + (shown if self.settings.rule in ("best", *_SHOWN) else 0)
        self.state = answering.with_room(self.state, size, width)

    def make_room_for(self, arrays: Arrays) -> None:
        if self._remembers and "said" in arrays and arrays["said"].size:
            self._resize(arrays["said"].size)

    # What comes from elsewhere

    def _reopened(self, given: Json, arrays: Arrays) -> Question:
        question, rule, about = Question.from_json(given), self.settings.rule, self.settings.about
        answers = self._choices(rule, about, self._input(question.x))
        if (question.kind, question.about) != (rule, about):
            raise ValueError("an open question of another rule")
        if (question.choices, question.codes) != (tuple(answers), tuple(answers.values())):
            raise ValueError("an open question with other answers")
        self._check_shown(self._input(question.x), question.numbers, question.outputs, question.kind)
        return question

    def _check_shown(self, x: int, numbers: Sequence[int], outputs: Sequence[Array], kind: str) -> None:
        """Compiled code believes a question's numbers."""
        if len(numbers) != answering.QUESTION or len(outputs) != self._shown(kind, x):
            raise ValueError("a question of another rule")
        first, label, last, rest = numbers
        most = len(outputs) if kind == "best" else self._most(x)
        if not (0 <= first <= last < self._length(x) and 0 <= label < most and rest == 0):
            raise ValueError("a question about what is not there")
        if kind == "best" and len({int(each[0]) for each in outputs if each.size}) < max(most, 2):
            raise ValueError("a question about fewer outputs than it shows")
        if kind == "review":
            validation.array("what a review says", outputs[1], "iu", (self._length(x),))
            validation.below("what a review says", outputs[1], codes.CORRECTED + 1)
            outputs = outputs[:1]
        for output in outputs:
            self._output(x, output)

    def check_state(self) -> None:
        super().check_state()
        state, n, rule = self.state, self.answers, self.settings.rule
        if not state.said.size:
            return
        if n > state.said.size:
            raise ValueError("answers that nobody has given")
        begin = answering.QUESTION
        if (state.errors[:n] < 0).any() or (state.errors[:n].sum(axis=1) >= 1).any():
            raise ValueError("answers of somebody who errs more than anybody can")
        for x, code, row in zip(state.about[:n].tolist(), state.said[:n].tolist(), state.questions[:n], strict=True):
            if x == NOBODY:
                self._alike = False
                continue
            size, shown = self._length(self._input(x)), self._shown(rule, x)
            most = shown if rule == "best" else self.problem.n_labels + len(WHICH)
            known = self._is_span(code, size) if rule == "span" else 0 <= code < most
            if not known:
                raise ValueError("answers that nobody has given")
            outputs = [row[begin + k * size : begin + (k + 1) * size] for k in range(shown)]
            self._check_shown(x, row[:begin].tolist(), outputs, rule)

    def _is_span(self, code: float, size: int) -> bool:
        """Whether this is the number of a span in so many tokens, or of none."""
        first, last, tag = span_of(code) if code != codes.NO_SPAN else (0, 0, 0)
        known = tag in self.problem.questions["span", "chunk"].values()
        return code == int(code) and 0 <= first <= last < size and known
