"""All runs of a sweep on Ray: this machine's cores, or a cluster's; killed at any point, the same call goes on.

    with RayEngine(Path("results"), load, address="auto") as engine:     # load() gives a task and its data
        finished = engine.run(fixed_runs(plan, identity), progress=print)

The caller reads the data and puts it into Ray's object store once; the workers (Ray actors with one CPU each) read its
arrays there (storage/packed.py), and do one run after the other, as a process of ``local.py`` would: results are the
same, bit for bit. (Reranking's n-best lists are not in memory at all: they are mapped from their files, which all nodes
must see.)

A run whose worker or node dies goes back to the others, who continue from the last checkpoint that was handed in.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sparsezo import __version__, notes
from sparsezo.engines.base import Finished, Overview
from sparsezo.engines.local import STOP_SECONDS, Load, cores
from sparsezo.engines.progress import Board
from sparsezo.engines.ray_connection import Connection, connect, reach
from sparsezo.engines.ray_worker import RayWorker, Report
from sparsezo.engines.sweep import sweep
from sparsezo.errors import SparsezoError
from sparsezo.experiments.records import RECORD
from sparsezo.experiments.runs import CHECKPOINT, Run
from sparsezo.interrupts import CHECKPOINT_SECONDS, DeferredSignals
from sparsezo.storage.files import atomic_write
from sparsezo.storage.packed import shelved
from sparsezo.words import counted

RETRIES = 3  # of a run, or of loading, after its worker has died
_LISTEN_SECONDS = 1.0  # for which a worker waits for news before it answers
_PATIENCE = 30.0  # seconds without any worker after which that is said


class RayEngine:
    """Runs into folders under ``out``, by at most ``processes`` workers. Ray starts when there is work."""

    def __init__(
        self,
        out: Path,
        load: Load,
        processes: int | None = None,
        *,
        address: str | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.out, self.load, self.processes, self.address = out, load, processes, address
        self.checkpoint_seconds = checkpoint_seconds
        self._connection: Connection | None = None
        self._data: Any = None  # its place in the object store
        self._workers: list[_Worker] = []
        self._deaths: Counter[str] = Counter()  # by the run's hash; "": while loading
        self._compiled = False
        self._say, self._once = say, notes.Once(say)

    def __enter__(self) -> Self:
        if self.address is not None:
            reach(self.address)  # before anything is read
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close(stop=kind is not None)

    def close(self, *, stop: bool = False) -> None:
        """Part from the workers; with ``stop`` also from those at work, whose checkpoints are waited for."""
        connection, self._connection = self._connection, None
        workers, self._workers = self._workers, []
        self._data, self._compiled = None, False
        if connection is None:
            return
        try:
            if stop:
                _save(connection.ray, [worker for worker in workers if worker.run is not None], self.out)
            _let_go(connection.ray, workers)
        finally:
            connection.close()

    def run(self, runs: Sequence[Run], progress: Callable[[Overview], None] | None = None) -> Finished:
        """Do what is not done yet. Nothing finished is computed again, unless it was damaged since."""
        self._deaths.clear()

        def board_of(todo: list[Run], found: int) -> Board:
            return Board(self.out, todo, found, 1, progress)  # how many at once is known when there is work

        return sweep(runs, self.out, self._once, board_of, self._work)

    def _work(self, todo: list[Run], board: Board) -> None:
        connection = self._connected()
        at_once = self.processes or connection.cpus
        board.processes = min(at_once, len(todo))
        waiting = deque(todo)
        heard = time.monotonic()
        while waiting or any(worker.run is not None for worker in self._workers):
            with DeferredSignals():  # Ctrl-C comes while it waits, when all is in order
                self._deal(connection, at_once, board, waiting)
            asked = [worker.message for worker in self._workers if worker.message is not None]
            ready, _ = connection.ray.wait(asked, timeout=_PATIENCE)
            with DeferredSignals():
                for worker in [worker for worker in self._workers if worker.message in ready]:
                    self._listen(connection, worker, board, waiting)
            if ready:
                heard = time.monotonic()
            elif time.monotonic() - heard > _PATIENCE:
                self._once("no worker answers; Ray's cluster may have no CPU free: see 'ray status'")

    def _deal(self, connection: Connection, at_once: int, board: Board, waiting: deque[Run]) -> None:
        """Give out runs, and see to it that there is somebody for those that are left."""
        for worker in self._workers:
            if worker.idle and waiting:
                run = waiting.popleft()
                board.start(run)
                worker.give(run, _checkpoint(run, self.out))
        busy = sum(worker.run is not None for worker in self._workers)
        # The first is ready before the others start: it has compiled for those on its machine.
        wanted = min(at_once, busy + len(waiting)) if self._compiled else 1
        while len(self._workers) < wanted:
            self._workers.append(_Worker(connection, self._data, self.out, self.checkpoint_seconds))

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = connect(self.address, self.processes or cores())
        if self._data is None:
            ray = self._connection.ray
            self._data = ray.put(shelved(self.load(), ray.cloudpickle.dumps))
        return self._connection

    def _listen(self, connection: Connection, worker: _Worker, board: Board, waiting: deque[Run]) -> None:
        """Take one message of a worker: that it is ready, how its run is, or that it is no more."""
        run = worker.run
        try:
            message = connection.ray.get(worker.message)
        except connection.ray.exceptions.RayError as error:
            self._workers.remove(worker)
            _let_go(connection.ray, [worker])
            self._bury(run, _reason(error), board, waiting)
            return
        worker.message = None
        if not isinstance(message, Report):
            if message is not None:
                raise SparsezoError(message)
            self._compiled = True
            return
        assert run is not None
        _store(run, self.out, message)
        if message.ended:
            worker.run = None
        else:
            worker.ask()
        if message.progress is not None:
            board.update(run, message.progress)
        if message.ended:
            board.end(run, message.why)

    def _bury(self, run: Run | None, reason: str, board: Board, waiting: deque[Run]) -> None:
        """Another worker takes its run over, unless it is always this run that workers die of."""
        key = "" if run is None else run.hash
        self._deaths[key] += 1
        again = self._deaths[key] <= RETRIES
        if run is None:
            if not again:
                raise SparsezoError(f"{counted(RETRIES + 1, 'Ray worker')} died while they loaded the data ({reason})")
            return
        if again:
            board.give_back(run)
            waiting.appendleft(run)
            self._say(f"{run}: its worker died ({reason}); another takes it over")
            return
        advice = "if memory is short, use fewer `processes`"
        board.end(run, (f"its worker died {RETRIES + 1} times ({reason}); {advice}", False))


class _Worker:
    """An actor and the one answer of it that is waited for."""

    def __init__(self, connection: Connection, data: Any, out: Path, checkpoint_seconds: float) -> None:
        actor = connection.ray.remote(RayWorker).options(num_cpus=1, max_restarts=0, max_task_retries=0)
        self.actor = actor.remote(str(out), connection.scratch, checkpoint_seconds)
        self.run: Run | None = None
        self.message: Any = self.actor.ready.remote(__version__, data)

    @property
    def idle(self) -> bool:
        return self.message is None and self.run is None

    def give(self, run: Run, checkpoint: bytes | None) -> None:
        self.run = run
        self.actor.begin.remote(run, checkpoint)
        self.ask()

    def ask(self) -> None:
        self.message = self.actor.listen.remote(_LISTEN_SECONDS)


def _save(ray: Any, workers: list[_Worker], out: Path) -> None:
    """Runs at work end where they next report, and hand their checkpoints in."""
    for worker in workers:
        with contextlib.suppress(ray.exceptions.RayError):
            worker.actor.stop.remote()
    until = time.monotonic() + STOP_SECONDS
    while workers and (left := until - time.monotonic()) > 0:
        ready, _ = ray.wait([worker.message for worker in workers], timeout=left)
        for worker in [worker for worker in workers if worker.message in ready]:
            try:
                report = ray.get(worker.message)
            except ray.exceptions.RayError:
                workers.remove(worker)
                continue
            assert worker.run is not None
            _store(worker.run, out, report)
            if report.ended:
                workers.remove(worker)
            else:
                worker.ask()


def _let_go(ray: Any, workers: list[_Worker]) -> None:
    """Those that live tidy up first."""
    with contextlib.suppress(ray.exceptions.RayError):
        left = [worker.actor.leave.remote() for worker in workers]
        ray.wait(left, num_returns=len(left), timeout=_LISTEN_SECONDS + 1)
    for worker in workers:
        with contextlib.suppress(ray.exceptions.RayError):
            ray.kill(worker.actor)


def _checkpoint(run: Run, out: Path) -> bytes | None:
    try:
        return (run.folder(out) / CHECKPOINT).read_bytes()
    except FileNotFoundError:
        return None


def _store(run: Run, out: Path, report: Report) -> None:
    """What a worker handed in, where a run of this machine would have put it; the record last, as there."""
    folder = run.folder(out)
    files = dict(report.files)
    if report.checkpoint is not None and RECORD not in files:
        files[CHECKPOINT] = report.checkpoint
    if files:
        folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        with atomic_write(folder / name) as target:
            target.write(content)
    if RECORD in files:
        (folder / CHECKPOINT).unlink(missing_ok=True)


def _reason(error: Exception) -> str:
    """The last words of Ray's long message that say something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__).rstrip(".")
