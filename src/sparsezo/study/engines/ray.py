"""All runs of a sweep on Ray: this machine's cores, or a cluster's; killed at any point, the same call goes on.

    with RayEngine(Path("results"), load, address="auto") as engine:     # load() gives a task and its data
        finished = engine.run(fixed_runs(plan, identity), progress=print)

The caller reads the data and puts it into Ray's object store once; the workers (Ray actors with one CPU each) read its
arrays there, and do one run after the other, as a process of ``local.py`` would: results are the same, bit for bit.
(Reranking's n-best lists are not in memory at all: they are mapped from their files, which all nodes must see.)

A Ray of one's own ends with this process: nothing is sent to Ray's makers, and nothing listens to others. A process
that is connected already stays so: that Ray is used, and left as it is.

Results and checkpoints travel to the caller, who alone writes the folder of results: no disk has to be shared. A run
whose worker or node dies goes back to the others, who continue from the last checkpoint that was handed in.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import pickle
import platform
import queue
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sparsezo import __version__, messages
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.messages import counted
from sparsezo.signals import CHECKPOINT_SECONDS, DeferredSignals
from sparsezo.storage import locks
from sparsezo.storage.files import atomic_write
from sparsezo.study.engines.base import Engine, Finished, Load, Overview, SweepProgress, Why, sweep
from sparsezo.study.engines.local import STOP_SECONDS, attempt, cores, described
from sparsezo.study.prepared import PreparedTask
from sparsezo.study.records import RECORD
from sparsezo.study.runs import CHECKPOINT, Run
from sparsezo.tasks.loading import Loaded
from sparsezo.training import Progress

RETRIES = 3  # of a run, or of loading, after its worker has died
_LISTEN_SECONDS = 1.0  # for which a worker waits for news before it answers
_PATIENCE = 30.0  # seconds without any worker after which that is said
_PREFIX = "sparsezo-runs-"  # of folders that workers have for themselves

Buffers = list[NDArray[np.uint8]]  # the bytes of each array
_REACH_SECONDS = 8.0  # in which a cluster must answer
_LONGEST_PLACE = 26  # characters: the path of a socket has 107 at most, and Ray's own part of it has some 75
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no telemetry
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # silences a remark about graphics cards
    "RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S": "2",
    "RAY_CLIENT_MAX_CONNECTION_TIMEOUT_S": "2",
}
# Ray's word for a Ray that is on this machine alone; without it all its ports listen to everybody. Read at import.
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


class RayEngine(Engine):
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
        self._data: object = None  # its place in the object store
        self._workers: list[_Worker] = []
        self._deaths: Counter[str] = Counter()  # by the run's hash; "": while loading
        self._compiled = False
        self._say, self._once = say, messages.Once(say)

    def __enter__(self) -> Self:
        if self.address is not None:
            _reach(self.address)  # before anything is read
        return self

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
            _release(connection.ray, workers)
        finally:
            connection.close()

    def run(self, runs: Sequence[Run], progress: Callable[[Overview], None] | None = None) -> Finished:
        self._deaths.clear()
        return sweep(runs, self.out, 1, progress, self._work, self._once)  # how many at once is known in ``_work``

    def _work(self, sweep: SweepProgress) -> None:
        connection = self._connected()
        at_once = self.processes or connection.cpus
        sweep.processes = min(at_once, len(sweep.todo))
        waiting = deque(sweep.todo)
        heard = time.monotonic()
        while waiting or any(worker.run is not None for worker in self._workers):
            with DeferredSignals():  # Ctrl-C comes while it waits, when all is in order
                self._deal(connection, at_once, sweep, waiting)
            asked = [worker.message for worker in self._workers if worker.message is not None]
            ready, _ = connection.ray.wait(asked, timeout=_PATIENCE)
            with DeferredSignals():
                for worker in [worker for worker in self._workers if worker.message in ready]:
                    self._listen(connection, worker, sweep, waiting)
            if ready:
                heard = time.monotonic()
            elif time.monotonic() - heard > _PATIENCE:
                self._once("no worker answers; Ray's cluster may have no CPU free: see 'ray status'")

    def _deal(self, connection: Connection, at_once: int, sweep: SweepProgress, waiting: deque[Run]) -> None:
        """Give out runs, and see to it that there is somebody for those that are left."""
        for worker in self._workers:
            if worker.idle and waiting:
                run = waiting.popleft()
                sweep.start(run)
                path = run.folder(self.out) / CHECKPOINT
                worker.give(run, path.read_bytes() if path.exists() else None)
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
            self._data = ray.put(packed(self.load(), ray.cloudpickle.dumps))
        return self._connection

    def _listen(self, connection: Connection, worker: _Worker, sweep: SweepProgress, waiting: deque[Run]) -> None:
        """Take one message of a worker: that it is ready, how its run is, or that it is no more."""
        run = worker.run
        try:
            message = connection.ray.get(worker.message)
        except connection.ray.exceptions.RayError as error:
            self._workers.remove(worker)
            _release(connection.ray, [worker])
            self._worker_died(run, last_words(error), sweep, waiting)
            return
        worker.message = None
        if run is None:  # it is ready, or says why not
            if message is not None:
                raise SparsezoError(message)
            self._compiled = True
            return
        _write(run, self.out, message)
        if message.ended:
            worker.run = None
        else:
            worker.ask()
        if message.progress is not None:
            sweep.update(run, message.progress)
        if message.ended:
            sweep.end(run, message.why)

    def _worker_died(self, run: Run | None, reason: str, sweep: SweepProgress, waiting: deque[Run]) -> None:
        """Another worker takes its run over, unless it is always this run that workers die of."""
        key = "" if run is None else run.hash
        self._deaths[key] += 1
        again = self._deaths[key] <= RETRIES
        if run is None:
            if not again:
                raise SparsezoError(f"{counted(RETRIES + 1, 'Ray worker')} died while they loaded the data ({reason})")
            return
        if again:
            sweep.give_back(run)
            waiting.appendleft(run)
            self._say(f"{run}: its worker died ({reason}); another takes it over")
            return
        advice = "if memory is short, use fewer `processes`"
        sweep.end(run, (f"its worker died {RETRIES + 1} times ({reason}); {advice}", False))


class _Worker:
    """An actor and the one answer of it that is waited for."""

    def __init__(self, connection: Connection, data: object, out: Path, checkpoint_seconds: float) -> None:
        actor = connection.ray.remote(RayWorker).options(num_cpus=1, max_restarts=0, max_task_retries=0)
        self.actor = actor.remote(str(out), connection.scratch, checkpoint_seconds)
        self.run: Run | None = None
        self.message: object = self.actor.ready.remote(__version__, data)

    @property
    def idle(self) -> bool:
        return self.message is None and self.run is None

    def give(self, run: Run, checkpoint: bytes | None) -> None:
        self.run = run
        self.actor.begin.remote(run, checkpoint)
        self.ask()

    def ask(self) -> None:
        self.message = self.actor.listen.remote(_LISTEN_SECONDS)


def _save(ray: ModuleType, workers: list[_Worker], out: Path) -> None:
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
            _write(worker.run, out, report)
            if report.ended:
                workers.remove(worker)
            else:
                worker.ask()


def _release(ray: ModuleType, workers: list[_Worker]) -> None:
    """Those that live tidy up first."""
    with contextlib.suppress(ray.exceptions.RayError):
        left = [worker.actor.leave.remote() for worker in workers]
        ray.wait(left, num_returns=len(left), timeout=_LISTEN_SECONDS + 1)
    for worker in workers:
        with contextlib.suppress(ray.exceptions.RayError):
            ray.kill(worker.actor)


def _write(run: Run, out: Path, report: Report) -> None:
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


# The connection


@dataclass
class Connection:
    ray: ModuleType
    cpus: int
    own: bool  # whether to part from it at the end
    scratch: str | None = None  # a folder that goes with it

    def close(self) -> None:
        if self.own:
            self.ray.shutdown()
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)


def connect(address: str | None, cpus: int) -> Connection:
    """``cpus``: of a Ray of one's own; a cluster has its own."""
    os.environ.update(_QUIET | (_LOOPBACK | _own_token() if address is None else {}))
    import ray

    if ray.is_initialized():
        return Connection(ray, _cpus(ray), own=False)
    if address is None:
        return _start(ray, cpus)
    _reach(address)
    with _handlers_kept(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ray.init(address=address, log_to_driver=False, logging_level="error")
        except Exception as error:
            raise _unreached(address, error) from None
    return Connection(ray, _cpus(ray), own=True)


def other_version(version: str) -> str | None:
    """What a worker says to a caller of another version; None to one of its own."""
    if version == __version__:
        return None
    return (
        f"the Ray worker on {platform.node()} has sparsezo {__version__}, and this is {version}; "
        "install the same version on all nodes"
    )


def last_words(error: Exception) -> str:
    """The last words of Ray's long message that say something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__).rstrip(".")


def _reach(address: str) -> None:
    """Within seconds: is there anything that could be Ray? Ray itself would try for minutes."""
    import grpc

    try:
        place = address.removeprefix("ray://") if address.startswith("ray://") else _running()
        host, port = place.rsplit(":", 1)
        socket.create_connection((host.strip("[]"), int(port)), _REACH_SECONDS).close()
        if os.environ.get("RAY_USE_TLS", "0").lower() in ("0", "false"):
            with grpc.insecure_channel(place) as channel:
                grpc.channel_ready_future(channel).result(_REACH_SECONDS / 2)
    except grpc.FutureTimeoutError:
        raise _unreached(address, "what answers there is not Ray") from None
    except (OSError, ValueError) as error:
        raise _unreached(address, error) from None


def _running() -> str:
    """Where the cluster is that this machine is part of, by RAY_ADDRESS or by Ray's own notes."""
    from ray._private.services import canonicalize_bootstrap_address

    try:
        return str(canonicalize_bootstrap_address("auto"))
    except ConnectionError:
        raise ConnectionError("no Ray is running on this machine; 'ray start --head' starts one") from None


def _unreached(address: str, why: object) -> UsageError:
    words = str(getattr(why, "strerror", None) or why).strip().partition("\n")[0].rstrip(".")
    if "AuthenticationError" in str(getattr(why, "__cause__", None)):
        words = "it asks for a token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
    return UsageError(f"`ray_address` {address}: cannot be reached ({words}); check it, or leave it out")


def _start(ray: ModuleType, cpus: int) -> Connection:
    """A Ray of one's own: it ends with this process, however that ends."""
    usual = tempfile.gettempdir()  # or /tmp, where the paths of sockets would be too long
    short = usual if len(usual) <= _LONGEST_PLACE or not os.path.isdir("/tmp") else "/tmp"
    folder = tempfile.mkdtemp(prefix="szray-", dir=short)
    try:
        with _handlers_kept(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            context = ray.init(
                address="local",
                num_cpus=cpus,
                include_dashboard=False,
                log_to_driver=False,
                logging_level="error",
                _node_ip_address="127.0.0.1",
                _temp_dir=folder,
            )
        where = context.address_info["node_ip_address"]
        if not ipaddress.ip_address(where).is_loopback:
            ray.shutdown()
            raise SparsezoError(
                f"Ray would listen to others, on {where}; set {'='.join(*_LOOPBACK.items())} before Ray is imported"
            )
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, SparsezoError) or not isinstance(error, Exception):
            raise
        reason = str(error).strip().partition("\n")[0]
        raise SparsezoError(f"Ray could not be started ({reason}); use `engine` local") from None
    return Connection(ray, cpus, own=True, scratch=folder)


def _own_token() -> dict[str, str]:
    """Whoever else is on this machine cannot use our Ray. Without one, Ray would leave a token in the home folder."""
    if "RAY_AUTH_MODE" in os.environ or "ray" in sys.modules:  # it is read at import
        return {}
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def _cpus(ray: ModuleType) -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


@contextlib.contextmanager
def _handlers_kept() -> Iterator[None]:
    """Ray takes SIGTERM for itself; it is ours."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# What a worker does; nothing from here on needs Ray to be installed


@dataclass
class Report:
    """What happened since the last one."""

    progress: Progress | None = None
    checkpoint: bytes | None = None  # where there is a new one
    ended: bool = False
    why: Why | None = None  # it failed
    files: dict[str, bytes] = field(default_factory=dict)  # of a finished run, its record last


class RayWorker:
    """One run after the other, in a folder of its own; everything is handed to the caller.

    worker = RayWorker("results", None, checkpoint_seconds=30.0)    # in its own process: ray.remote(RayWorker)
    worker.ready(version, data)             # None, or why it cannot work
    worker.begin(run, checkpoint)           # at once: the run has a thread of its own
    worker.listen(seconds)                  # a Report: how far it is, its checkpoint where that is new, its files

    ``out`` is the caller's folder of results, for messages; ``scratch``: where to work, or the node's own place.
    """

    def __init__(self, out: str, scratch: str | None, checkpoint_seconds: float) -> None:
        self.out, self.checkpoint_seconds = out, checkpoint_seconds
        place = Path(scratch or tempfile.gettempdir())
        locks.remove_abandoned(place.glob(f"{_PREFIX}*"))  # a worker that is killed cannot tidy up
        self._open = contextlib.ExitStack()
        self.folder = self._open.enter_context(locks.temporary_folder(place, _PREFIX))
        self.prepared: PreparedTask | None = None
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._stop = False

    def ready(self, version: str, data: tuple[bytes, Buffers]) -> str | None:
        """Unpack the data and compile; returns why it cannot. The caller has said what there is to remark."""
        if (why := other_version(version)) is not None:
            return why
        try:
            with messages.gathered():
                self.prepared = PreparedTask(unpacked(*data))
                self.prepared.compile()
        except Exception as error:
            return self._told(error)
        return None

    def begin(self, run: Run, checkpoint: bytes | None) -> None:
        folder = run.folder(self.folder)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if checkpoint is not None:
            (folder / CHECKPOINT).write_bytes(checkpoint)
        threading.Thread(target=self._do, args=(run,), name=run.hash, daemon=True).start()

    def listen(self, seconds: float) -> Report:
        """What has come up to now, or comes within so many seconds."""
        report = Report()
        with contextlib.suppress(queue.Empty):
            while not report.ended:
                new = self._reports.get(timeout=seconds)
                checkpoint = report.checkpoint if new.checkpoint is None else new.checkpoint
                report = Report(new.progress or report.progress, checkpoint, new.ended, new.why, new.files)
                seconds = 0.0
        return report

    def stop(self) -> None:
        """The run at work writes its checkpoint where it next reports, and ends."""
        self._stop = True

    def leave(self) -> None:
        """To be called last: its folder goes."""
        self._open.close()

    def _do(self, run: Run) -> None:
        assert self.prepared is not None
        path = run.folder(self.folder) / CHECKPOINT
        seen = _stamp(path)

        def new_checkpoint() -> bytes | None:
            """It is replaced as a whole, so what is read is whole."""
            nonlocal seen
            before, seen = seen, _stamp(path)
            return None if seen in (None, before) else path.read_bytes()

        def report(progress: Progress) -> None:
            self._reports.put(Report(progress, new_checkpoint()))
            if self._stop:
                raise KeyboardInterrupt  # as in a process of this machine: save the run and leave

        last = Report(ended=True)
        try:
            last.why = attempt(run, self.folder, self.prepared, report, self.checkpoint_seconds)
            if last.why is None:
                last.files = _finished(run.folder(self.folder))
            else:
                last.why = last.why[0].replace(str(self.folder), self.out), last.why[1]
            last.checkpoint = new_checkpoint()
        except KeyboardInterrupt:
            last.checkpoint = new_checkpoint()
        except Exception as error:  # its files could not be read back
            last.why = self._told(error), False
        shutil.rmtree(run.folder(self.folder), ignore_errors=True)
        self._reports.put(last)

    def _told(self, error: Exception) -> str:
        return described(error).replace(str(self.folder), self.out)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        now = path.stat()
    except FileNotFoundError:
        return None
    return now.st_ino, now.st_mtime_ns


def _finished(folder: Path) -> dict[str, bytes]:
    names = sorted((path.name for path in folder.iterdir()), key=lambda name: name == RECORD)
    return {name: (folder / name).read_bytes() for name in names if name != CHECKPOINT}


# Data that many processes read, pickled once for all of them: what describes it in a few bytes, and its arrays


def packed(content: object, dumps: Callable[..., bytes] = pickle.dumps) -> tuple[bytes, Buffers]:
    """``content`` pickled without its arrays, and these, not copied. ``dumps``: one that can do more than pickle's."""
    arrays: list[pickle.PickleBuffer] = []
    pickled = dumps(content, protocol=5, buffer_callback=arrays.append)
    return pickled, [np.frombuffer(array.raw(), np.uint8) for array in arrays]


def unpacked(pickled: bytes, buffers: Buffers) -> Loaded:
    """What was packed, by a process of ours: it is unpickled."""
    content: Loaded = pickle.loads(pickled, buffers=[np.asarray(_Unmarked(array)) for array in buffers])
    return content


class _Unmarked:
    """The memory of an array, and nothing said about writing; it lasts as long as what is made of it.

    Arrays marked as read-only, as Ray's store hands them out, would be another type to Numba, and all kernels compiled
    anew. So unpacked ones have no such mark; but all processes read the same memory, and nobody may write to it.
    """

    def __init__(self, array: NDArray[np.uint8]) -> None:
        self._array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}
