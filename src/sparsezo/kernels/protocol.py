"""What the training loop asks of inputs and of tasks: the only things a new task has to bring.

The loop (``loop.py``) is written once, against the names below. Each name is chosen at compile time by the type of
its first argument, a NamedTuple of arrays: ``@implements(scores, SparseInputs)`` says how sparse inputs do it. An
addition therefore never touches the loop, and costs nothing at run time.

Inputs (the matrix C of each input x, design 1); S, V, D are R x L, Z is whatever ``draw`` filled:

    rows(inputs, x)                            R
    scores(inputs, x, W, S)                    S = C W
    prefetch(inputs, soon, later, W)           ask memory for the next inputs; changes nothing
    draw(inputs, x, key, step, Z)              Z ~ N(0, I), as many as the next three need
    scores_with(inputs, x, W, Z, S, V)         S = C W and V = C u, V ~ N(0, C C') column by column
    project(inputs, x, Z, D)                   D with C' D = E[u given V]                        (design 2.3)
    draw_complement(inputs, x, key, step, Z, D, U, row)    D, U with U + C' D ~ u given V; uses up Z     (design 2.1)
    move(inputs, x, c, h, D, U, whole, W, q)        W += c (C' D + U if whole), or Adagrad's form of it if q.size
    settle(inputs, x, key, count, Q, Q_row, U, W)   give x's rows what ALL owes them             (design 2.2)
    mark_settled(inputs, x, Q, Q_row)               say that they are owed nothing

Tasks (what the scores mean) and gold (what only the feedback knows):

    outputs(task, x)                       how many numbers an output has
    decode(task, x, S, y)                  y = the best output; returns its score
    sample(task, x, S, key, step, y)       y ~ p_w(. given x)
    score_gradient(task, x, S, y, D)       D = d log p_w(y given x) / dS, once ``sample`` was called with this S
    log_probability(task, x, S, y)         log p_w(y given x), likewise
    supervise(gold, task, x, S, D)         D = the direction of ascent that full information gives
    delta(gold, task, x, y)                the loss of output y, in [0, 1]
    risk(gold, task, x, S, gamma)          the expected loss under p_{w,gamma}                   (eq. annealed)
    risk_gradient(gold, task, x, S, gamma, D)    D = - d risk / dS; returns the risk

Tasks whose outputs people are asked about (design 4); q is the question, of pairs and ratings with y and other:

    look(task, x, S, kind, about, mode, seconds, key, step, q, y, other)     choose a question; the probability of
                                           asking it, 0 where the input is passed over; of a review its gain by the
                                           second, by a table of seconds
    evidence(task, x, S, kind, about, q, y, other, answer, e0, e1, D)    D = d log Pr(answer) / dS; returns Pr(answer)
    options(task, x, kind, about)          how many answers there are to choose from
    option(task, x, kind, about, k)        the number that stands for the k-th of them, the smallest first
    truth(gold, task, x, kind, about, q, y, other)       what somebody answers who knows
    review(gold, task, x, S, overlooks, key, step, y, how)    likewise corrects the output y; how: what a review says of
                                           each part (codes); returns the number of corrections
    confidence(task, x, S, y)              log p_w of the best output, which is left in y
    span_chances(task, x, S, fixed, y, out)     likewise decodes, around labels that are fixed; out = the probability
                                           of each span of it, where that begins

A task has to bring ``decode``, its gold ``delta``. What else it lacks has a stand-in below, so that the loop can be
compiled, and is asked for by name before that (``need``) where a rule or a criterion calls for it.

Compiled code checks no bounds. Each NamedTuple may have, as plain methods, what is called once before it gets there:

    inputs.check(problem), task.check(problem)      UsageError where arrays and the problem's numbers do not fit
    gold.check(problem, supervised)                 likewise, for gold of other inputs
    task.most(x)                                    the numbers of an output of x are below this
    inputs.sizes()                                  sums of |x| and of x^2 over all inputs, for an automatic h
    inputs.dimensions()                             rank(C) of every input, for an automatic h and what is said of a run
    inputs.ready(factors=, places=)                 with what not all learners read beside C
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn

from numba.extending import overload

from sparsezo.errors import UsageError
from sparsezo.kernels.jit import OPTIONS, import_all, include

_IMPLEMENTED: set[tuple[str, type]] = set()  # (operation, NamedTuple)


def _not_for(name: str) -> Callable[..., Any]:
    def stub(*_arguments: Any) -> NoReturn:
        raise NotImplementedError(f"{name} is called from compiled code only")

    stub.__name__ = stub.__qualname__ = name
    return stub


rows = _not_for("rows")
scores = _not_for("scores")
prefetch = _not_for("prefetch")
draw = _not_for("draw")
scores_with = _not_for("scores_with")
project = _not_for("project")
draw_complement = _not_for("draw_complement")
move = _not_for("move")
settle = _not_for("settle")
mark_settled = _not_for("mark_settled")

outputs = _not_for("outputs")
decode = _not_for("decode")
sample = _not_for("sample")
score_gradient = _not_for("score_gradient")
log_probability = _not_for("log_probability")
supervise = _not_for("supervise")
delta = _not_for("delta")
risk = _not_for("risk")
risk_gradient = _not_for("risk_gradient")

look = _not_for("look")
evidence = _not_for("evidence")
options = _not_for("options")
option = _not_for("option")
truth = _not_for("truth")
review = _not_for("review")
confidence = _not_for("confidence")
span_chances = _not_for("span_chances")

OF_INPUTS = (rows, scores, prefetch, draw, scores_with, project, draw_complement, move, settle, mark_settled)
SAMPLING = (sample, score_gradient, log_probability)  # of first-order rules, but for supervised
ASKING, ANSWERING = (look, evidence, options, option), (truth, review)  # of rules that ask: of the task, of gold


def implements(operation: Callable[..., Any], data: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Say how ``operation`` is done where its first argument is a ``data`` NamedTuple."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        include(Path(function.__code__.co_filename))
        _IMPLEMENTED.add((operation.__name__, data))

        @overload(operation, strict=False, jit_options=OPTIONS)
        def choose(first: Any, *_rest: Any) -> Callable[..., Any] | None:
            return function if getattr(first, "instance_class", None) is data else None

        return function

    return register


def need(part: object, operations: Iterable[Callable[..., Any]], what: str) -> None:
    """UsageError where this NamedTuple (inputs, a task, gold) lacks an operation that ``what`` calls for."""
    kind, wanted = type(part), [each.__name__ for each in operations]
    if not {(name, kind) for name in wanted} <= _IMPLEMENTED:
        import_all()
    if missing := [name for name in wanted if (name, kind) not in _IMPLEMENTED]:
        names = ", ".join(f"protocol.{name}" for name in missing)
        raise UsageError(f"{what} needs {names}, which {kind.__name__} does not implement; docs/tasks.md says how")


def _stand_in(operation: Callable[..., Any], function: Callable[..., Any]) -> None:
    """``function`` for NamedTuples that do not implement the operation."""

    @overload(operation, strict=False, jit_options=OPTIONS)
    def choose(first: Any, *_rest: Any) -> Callable[..., Any] | None:
        kind = getattr(first, "instance_class", None)
        return None if kind is None or (operation.__name__, kind) in _IMPLEMENTED else function


_stand_in(outputs, lambda task, x: 1)
_stand_in(sample, lambda task, x, S, key, step, y: S[0, 0])
_stand_in(score_gradient, lambda task, x, S, y, D: None)
_stand_in(log_probability, lambda task, x, S, y: 0.0)
_stand_in(supervise, lambda gold, task, x, S, D: None)
_stand_in(risk, lambda gold, task, x, S, gamma: 0.0)
_stand_in(risk_gradient, lambda gold, task, x, S, gamma, D: 0.0)
