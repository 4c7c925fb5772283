"""Feedback from anybody's program or function: a metric that nobody here knows can teach.

    with open_scorer("python metric.py --lenient", seconds=60) as scorer:      # or "my_metrics:judge"
        scorer({"rule": "two-point", "words": [...], "outputs": [[...], [...]], ...})       # (0.25, 0.5)
        consult(learner, ScorerAnswers(task, train, scorer, learner.settings.rule), steps=1000)

A program is kept running. It reads one JSON line for each question on its standard input and answers with one line on
its standard output: losses, a choice, yes or no, a label, as JSON or in plain words. A function is called with the same
as a dict and returns the answer. docs/answers.md has a request and a reply of every kind. ``consult`` is the same as
``Learner.run`` with gold, bit for bit, where the scorer says what gold would.

Whatever it does wrong (it cannot be started, ends, closes its output, is silent, talks nonsense, raises) is a
``ScorerError`` of one line with its own last line quoted. Its whole process group is ended with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Protocol, Self

from sparsezo.errors import SparsezoError, UsageError, quoted
from sparsezo.messages import counted
from sparsezo.options import Values, check_options, in_one_line, named_function, names_function, option
from sparsezo.rules import RULES
from sparsezo.tasks.registry import task_spec

if TYPE_CHECKING:
    from sparsezo.learner import TaskLearner
    from sparsezo.questions import Proposal, Question
    from sparsezo.tasks.base import Task

Request = Values  # what a scorer is told, for JSON
_OUTPUTS = {"first": "candidate", "second": "incumbent", "tie": "tie"}  # as scorers name them
_MOST_REPLY = 1 << 20  # bytes of one line
_MOST_WORDS = 1 << 13  # bytes of standard error that are kept
_BLOCK, _PIPE = 1 << 16, subprocess.PIPE
_PAUSE = 0.1  # seconds between looks at whether the user wants to stop
_GRACE = 2.0  # seconds that a program has to end by itself, once its input is closed, and again once it is told to


@dataclass(frozen=True)
class ScorerOptions:
    """The options of train that name a scorer."""

    scorer: str | None = option(
        None, "Feedback by a program (a JSON line in, a line out, kept running), or by module:function.", shown="gold"
    )
    scorer_seconds: float = option(60.0, "How long the program may take for one answer.", positive=True)

    def __post_init__(self) -> None:
        check_options(self)

    def open(self) -> Scorer | None:
        return None if self.scorer is None else open_scorer(self.scorer, self.scorer_seconds)


class ScorerError(SparsezoError):
    """A scorer failed: what is learned so far is whole. Exit code 1."""


class Scorer(Protocol):
    """Something that answers. ``text`` is how the user called it; a run is known by it."""

    text: str

    def __call__(self, request: Request, pause: Callable[[], None] = ...) -> object:
        """What it says, as JSON or Python have it; ``pause`` is called now and then while it is waited for."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def open_scorer(text: str, seconds: float = ScorerOptions.scorer_seconds) -> Scorer:
    """The scorer that a text names: ``module:function``, or a program with its words."""
    if names_function(text):
        try:
            return FunctionScorer(text, named_function(text))
        except UsageError as error:
            raise ScorerError(f"scorer {text}: {error}") from error
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"`scorer` {quoted(text)}: {error}; quote its words as a shell wants them") from None
    if not words:
        raise UsageError("`scorer` is empty; give a program, or module:function")
    return ProgramScorer(text, words, seconds)


class FunctionScorer:
    """``function(request)`` in this process. It may take its time: nobody can stop it."""

    def __init__(self, text: str, function: Callable[[dict[str, object]], object]) -> None:
        self.text, self._function = text, function

    def __call__(self, request: Request, pause: Callable[[], None] = lambda: None) -> object:
        try:
            said = self._function(dict(request))
        except (Exception, SystemExit) as error:
            raise ScorerError(f"scorer {self.text}: raised {in_one_line(error)}") from error
        pause()
        return said

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def read_reply(line: bytes, choices: Collection[str] = ()) -> object:
    """A reply as a value: one of the choices as it stands, else JSON, else numbers with blanks between, else a word."""
    text = line.decode("utf-8").strip()
    if text in choices:
        return text
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text)
    try:
        numbers = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        return text
    return numbers[0] if len(numbers) == 1 else numbers or text


class ProgramScorer:
    """A program that is started when it is entered and ended, with all that it started, when it is left.

    One loop waits for all three pipes at once, so that no full pipe can stop both sides. Standard error is kept to its
    last lines, which are quoted when the program fails.
    """

    def __init__(self, text: str, words: Sequence[str], seconds: float) -> None:
        self.text, self._words, self._seconds = text, words, seconds
        self._child: subprocess.Popen[bytes] | None = None
        self._pipes: selectors.BaseSelector  # while it runs
        if shutil.which(words[0]) is None:
            raise self._error(f"cannot be started: there is no program {quoted(words[0])}")

    def _error(self, what: str) -> ScorerError:
        return ScorerError(f"scorer '{self.text}': {what}")

    def __enter__(self) -> Self:
        try:  # in a group of its own: Ctrl-C is for us, who save first
            child = subprocess.Popen(self._words, stdin=_PIPE, stdout=_PIPE, stderr=_PIPE, start_new_session=True)
        except (OSError, ValueError) as error:
            raise self._error(f"cannot be started ({getattr(error, 'strerror', None) or error})") from None
        self._child, self._pipes = child, selectors.DefaultSelector()
        self._said, self._complained = bytearray(), bytearray()
        self._last, self._answers = b"", 0  # the last whole line
        for stream in (child.stdin, child.stdout, child.stderr):
            os.set_blocking(_number(stream), False)
        for stream in (child.stdout, child.stderr):
            self._pipes.register(_number(stream), selectors.EVENT_READ)
        return self

    # One question

    def __call__(self, request: Request, pause: Callable[[], None] = lambda: None) -> object:
        line = self._exchange(json.dumps(request, ensure_ascii=False).encode() + b"\n", pause)
        try:
            return read_reply(line, request.get("choices", ()))
        except UnicodeDecodeError:
            raise self._error(f"said '{quoted(line)}', which is not UTF-8 text") from None

    def _exchange(self, line: bytes, pause: Callable[[], None]) -> bytes:
        """The line that answers ``line``. ``pause`` is called now and then, and may raise."""
        while self._read(0.0):
            pass
        if self._said:  # it would be taken for the answer
            early = quoted(bytes(self._said))
            raise self._error(f"said '{early}' without being asked; it has one line for each question")
        left, end = memoryview(line), time.monotonic() + self._seconds
        while (at := self._said.find(b"\n")) < 0:
            if len(self._said) > _MOST_REPLY:
                raise self._error(f"said '{quoted(bytes(self._said))}', a line of more than {_MOST_REPLY >> 20} MB")
            left = self._written(left)
            wait = min(_PAUSE, end - time.monotonic())
            if wait <= 0:
                raise self._error(f"no answer within {self._seconds:g} s{self._last_words()}")
            self._read(wait, until_writable=bool(left))
            pause()
        reply = bytes(self._said[:at]).strip()
        del self._said[: at + 1]
        if not reply:
            raise self._error(f"answered with an empty line{self._last_words()}")
        self._last, self._answers = reply, self._answers + 1
        return reply

    def _written(self, left: memoryview) -> memoryview:
        child = self._running()
        try:
            return left[os.write(_number(child.stdin), left) :] if left else left
        except BlockingIOError:
            return left
        except BrokenPipeError:
            raise self._gone("closed its input") from None

    def _read(self, wait: float, *, until_writable: bool = False) -> bool:
        """Whether anything came. ``until_writable``: also wait for room in its input."""
        child = self._running()
        if until_writable:
            self._pipes.register(_number(child.stdin), selectors.EVENT_WRITE)
        try:
            ready = [key.fd for key, _ in self._pipes.select(wait)]
        finally:
            if until_writable:
                self._pipes.unregister(_number(child.stdin))
        if _number(child.stderr) in ready:
            self._hear_complaints(child)
        if _number(child.stdout) in ready:
            data = os.read(_number(child.stdout), _BLOCK)
            if not data:
                raise self._gone("closed its output")
            self._said += data
        return bool(ready)

    def _hear_complaints(self, child: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                data = os.read(_number(child.stderr), _BLOCK)
                if not data:
                    with contextlib.suppress(KeyError):
                        self._pipes.unregister(_number(child.stderr))
                    return
                self._complained += data
                del self._complained[:-_MOST_WORDS]

    # Its end

    def _gone(self, what: str) -> ScorerError:
        """Why nothing more can come: it has ended, or has closed a pipe and goes on."""
        child = self._running()
        ended = _ends(child, _GRACE)
        self._hear_complaints(child)
        return self._error(f"{ended or what} after {counted(self._answers, 'answer')}{self._last_words()}")

    def _last_words(self) -> str:
        """The last line that it wrote, on standard error if there is any."""
        for name, text in (("error", bytes(self._complained)), ("line", bytes(self._said) or self._last)):
            if lines := [line for line in text.splitlines() if line.strip()]:
                line = lines[-1].decode("utf-8", "replace").strip()
                return f"; its last {name}: '{line if len(line) <= 200 else line[:200] + '...'}'"
        return "; it has said nothing"

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            raise self._error("is not running")
        return self._child

    def __exit__(self, *_: object) -> None:
        """Its input is closed; what has not ended by itself, in its whole process group, is ended. No zombie stays."""
        child, self._child = self._child, None
        if child is None:
            return
        self._pipes.close()
        streams = [stream for stream in (child.stdin, child.stdout, child.stderr) if stream is not None]
        for stream in streams[:2]:  # it may be stuck in a line of megabytes
            with contextlib.suppress(OSError):
                stream.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            _ends(child, _GRACE)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, number)
        child.wait()
        streams[-1].close()


def _number(stream: IO[bytes] | None) -> int:
    assert stream is not None  # all three are pipes
    return stream.fileno()


def _ends(child: subprocess.Popen[bytes], seconds: float) -> str | None:
    """How it has ended, if it has within so many seconds. It is not reaped: its number, the group's, stays its own."""
    end = time.monotonic() + seconds
    while True:
        try:
            found = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # where a process ignores SIGCHLD, the system reaps its children
            return "ended"
        if found is not None:
            by_itself = found.si_code == os.CLD_EXITED
            return f"ended with exit code {found.si_status}" if by_itself else f"was ended by signal {found.si_status}"
        if time.monotonic() >= end:
            return None
        time.sleep(0.005)


# Learning from a scorer


def consult(learner: TaskLearner[Any], answer: Callable[[Any], object], steps: int, answers: int | None = None) -> None:
    """Learn by ask and tell; ``answer`` gives what ``tell`` takes, or raises.

    ``steps`` steps at most; ``answers``: the end is when so many have been given in all, also before.
    """
    stop = learner.step + steps
    while learner.step < stop and (answers is None or learner.answers < answers):
        asked = learner.ask(within=stop - learner.step)
        if asked is None:
            continue
        try:
            feedback = answer(asked)
        except BaseException:
            learner.unask(asked)
            raise
        learner.tell(asked, feedback)


class ScorerAnswers:
    """A scorer's answers to a learner's questions about the inputs of ``data``."""

    def __init__(self, task: Task, data: object, scorer: Scorer, rule: str) -> None:
        self._task, self._data, self._scorer, self._rule = task, data, scorer, rule
        self.pause: Callable[[], None] = lambda: None  # called now and then while an answer is waited for

    def __call__(self, asked: Proposal | Question) -> object:
        said = self._scorer(self.request(asked), self.pause)
        try:
            return feedback_of(self._rule, asked, said)
        except SparsezoError as error:
            raise ScorerError(f"scorer '{self._scorer.text}', step {asked.step:,}: {error}") from None

    def request(self, asked: Proposal | Question) -> Request:
        """What a scorer is told."""
        choices = tuple(_OUTPUTS) if RULES[self._rule].chooses else getattr(asked, "choices", ())
        return {
            "task": self._task.name,
            "rule": self._rule,
            "step": asked.step,
            "input": asked.x,
            **task_spec(self._task.name).shown(self._task, self._data, asked),
            "wanted": RULES[self._rule].feedback,
            **({"choices": list(choices)} if choices else {}),
        }


def feedback_of(rule: str, asked: Proposal | Question, said: object) -> object:
    """What ``tell`` takes, of what a scorer said; UsageError or SparsezoError where that is no answer."""
    from sparsezo.questions import Question, answer_code, losses_of

    value = said.tolist() if hasattr(said, "tolist") else said  # a function's NumPy numbers
    choices = asked.choices if isinstance(asked, Question) else (*_OUTPUTS, *_OUTPUTS.values())
    if isinstance(value, str) and value not in choices:
        value = read_reply(value.encode("utf-8", "replace"))
    one = rule == "rate" if isinstance(asked, Question) else RULES[rule].incumbent is None
    if one and isinstance(value, tuple | list) and len(value) == 1:
        value = value[0]
    if isinstance(asked, Question):
        answer_code(asked, value)
        return value
    if isinstance(value, str):
        value = _OUTPUTS.get(value, value)
    losses_of(rule, value)
    return value


def check_rule(rule: str, criterion: str, feedback: str) -> None:
    """UsageError where a rule cannot learn from a scorer."""
    if rule == "supervised":
        raise UsageError(
            "rule supervised learns from correct outputs, which a `scorer` does not tell; use another rule"
        )
    if criterion != "map":
        raise UsageError("the annealed criterion needs the losses of all outputs; with a `scorer` use criterion map")
    if feedback != "exact":
        raise UsageError(f"`feedback` {feedback} simulates raters; with a `scorer` leave it out")
