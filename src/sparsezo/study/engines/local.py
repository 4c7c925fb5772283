"""All runs of a sweep over the machine's cores; stopped or killed at any point, the same call goes on (paper Sec. 5).

    with LocalEngine(Path("results"), load, processes=2) as engine:      # load() gives a task and its data
        finished = engine.run(fixed_runs(plan, identity), progress=print)

Each process loads the data once and keeps it; the first compiles before the others start. Results do not depend on the
number of processes. A run that fails is reported and the others go on. One process is the caller's own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType

from sparsezo import messages
from sparsezo.errors import DivergedError, SparsezoError, UsageError
from sparsezo.signals import CHECKPOINT_SECONDS, DeferredSignals, processes_without_ctrl_c
from sparsezo.study.engines.base import Engine, Finished, Load, Overview, SweepProgress, Why, sweep
from sparsezo.study.prepared import PreparedTask
from sparsezo.study.runs import Run, execute
from sparsezo.training import Progress

STOP_SECONDS = 60.0  # for a process to write its checkpoint


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalEngine(Engine):
    """Runs into folders under ``out``. Processes start when there is work, and stay for the next call of ``run``."""

    def __init__(
        self,
        out: Path,
        load: Load,
        processes: int | None = None,
        *,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.out, self.load = out, load
        self.processes = processes or cores()
        self.checkpoint_seconds = checkpoint_seconds
        self._workers: list[_Worker] = []
        self._prepared: PreparedTask | None = None
        self._once = messages.Once(say)

    def close(self, *, stop: bool = False) -> None:
        for worker in self._workers:
            worker.end(stop)
        for worker in self._workers:
            worker.join()
        self._workers.clear()

    def run(self, runs: Sequence[Run], progress: Callable[[Overview], None] | None = None) -> Finished:
        work = self._run_here if self.processes == 1 else self._run_spread
        return sweep(runs, self.out, self.processes, progress, work, self._once)

    def _run_here(self, sweep: SweepProgress) -> None:
        if self._prepared is None:
            self._prepared = PreparedTask(self.load())
        for run in sweep.todo:
            sweep.start(run)
            update = partial(sweep.update, run)
            sweep.end(run, attempt(run, self.out, self._prepared, update, self.checkpoint_seconds))

    def _run_spread(self, sweep: SweepProgress) -> None:
        waiting = list(reversed(sweep.todo))
        self._start_workers(len(sweep.todo))
        for worker in self._workers:
            if waiting:
                worker.give(waiting.pop(), sweep)
        while busy := [worker for worker in self._workers if worker.run is not None]:
            for connection in wait([worker.connection for worker in busy]):
                worker = next(worker for worker in busy if worker.connection is connection)
                if worker.listen(sweep):
                    continue
                if worker.dead:
                    self._workers.remove(worker)
                    worker.join()
                    worker = self._new_worker() if waiting else worker
                if waiting:
                    worker.give(waiting.pop(), sweep)

    def _start_workers(self, jobs: int) -> None:
        """As many processes as there is work for; the first is ready before the others start."""
        wanted = min(self.processes, jobs)
        if not self._workers:
            for text in self._new_worker().ready():
                messages.say(text)  # what the others remark is the same
        while len(self._workers) < wanted:
            self._new_worker()
        for worker in self._workers:
            worker.ready()

    def _new_worker(self) -> _Worker:
        worker = _Worker(self.load, self.out, self.checkpoint_seconds)
        self._workers.append(worker)
        return worker


class _Worker:
    """A process and the pipe to it. Each has a pipe of its own: one that is killed cannot block the others."""

    def __init__(self, load: Load, out: Path, checkpoint_seconds: float) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.run: Run | None = None
        self.dead = False
        self._ready = False
        self.process: BaseProcess = context.Process(
            target=_serve, args=(theirs, load, out, checkpoint_seconds), daemon=True
        )
        with processes_without_ctrl_c():  # it is for this process alone, which then stops the others
            self.process.start()
        theirs.close()

    def ready(self) -> list[str]:
        """Wait until it has loaded the data; what it remarked at that."""
        if self._ready:
            return []
        try:
            kind, value = self.connection.recv()
        except EOFError:
            self.process.join()
            raise SparsezoError(f"a process {self._how_it_ended()} while it loaded the data") from None
        if kind != "ready":
            raise value if isinstance(value, SparsezoError) else SparsezoError(str(value))
        self._ready = True
        return list(value)

    def give(self, run: Run, sweep: SweepProgress) -> None:
        self.run = run
        sweep.start(run)
        try:
            self.ready()
            self.connection.send(run)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has died: listening says so

    def listen(self, sweep: SweepProgress) -> bool:
        """Take one message; False when its run is over, one way or the other."""
        run = self.run
        assert run is not None
        try:
            kind, value = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            self.dead = True
            kind, value = "end", (f"its process {self._how_it_ended()}", False)
        if kind == "progress":
            sweep.update(run, value)
            return True
        self.run = None
        sweep.end(run, value)
        return False

    def _how_it_ended(self) -> str:
        code = self.process.exitcode or 0
        if code >= 0:
            return f"ended with code {code}"
        name = signal.Signals(-code).name
        return f"was ended by {name}" + ("; if memory is short, use fewer `processes`" if name == "SIGKILL" else "")

    def end(self, stop: bool) -> None:
        if stop:
            # No signal: it could come at any moment of its work. When it next reports it sees that we are gone, saves
            # its run and leaves. One that is still loading has nothing to save.
            self.connection.close()
            if not self._ready:
                self.process.kill()
            return
        with contextlib.suppress(OSError):
            self.connection.send(None)

    def join(self) -> None:
        self.process.join(STOP_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()
        self.process.close()


def _serve(connection: Connection, load: Load, out: Path, checkpoint_seconds: float) -> None:
    """What a process does: load, then one run after the other, until there is no more or the caller is gone."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        try:
            with messages.gathered() as remarks:
                prepared = PreparedTask(load())
            prepared.compile()
        except Exception as error:
            told = error if isinstance(error, UsageError) else described(error)
            connection.send(("broken", told))
            return
        connection.send(("ready", remarks))

        def report(progress: Progress) -> None:
            try:
                connection.send(("progress", progress))
            except OSError:
                raise KeyboardInterrupt from None  # the caller is gone: save the run and leave

        while (run := connection.recv()) is not None:
            connection.send(("end", attempt(run, out, prepared, report, checkpoint_seconds)))
    except (KeyboardInterrupt, EOFError, OSError):
        return


def attempt(
    run: Run, out: Path, prepared: PreparedTask, progress: Callable[[Progress], None], checkpoint_seconds: float
) -> Why | None:
    """None when the run is done, else why not."""
    try:
        with DeferredSignals() as signals:  # also while results are written, after the training itself

            def report(now: Progress) -> None:
                progress(now)
                signals.deliver()

            execute(run, out, prepared, report, checkpoint_seconds)
    except Exception as error:
        return described(error), isinstance(error, DivergedError)
    return None


def described(error: Exception) -> str:
    """One line for what users can mend; for anything else also where it happened."""
    if isinstance(error, SparsezoError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory; use fewer `processes`"
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: the checkpoint is being written
    raise KeyboardInterrupt
