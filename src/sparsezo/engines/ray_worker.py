"""What a Ray worker does: one run after the other, in a folder of its own, and everything is handed to the caller.

    worker = RayWorker("results", None, checkpoint_seconds=30.0)    # in its own process: ray.remote(RayWorker)
    worker.ready(version, data)             # None, or why it cannot work
    worker.begin(run, checkpoint)           # at once: the run has a thread of its own
    worker.listen(seconds)                  # a Report: how far it is, its checkpoint where that is new, its files

Results and checkpoints travel to the caller, who alone writes the folder of results: no disk has to be shared, and a
worker that dies takes nothing with it but the work since its last checkpoint. Nothing here needs Ray to be installed.
"""

from __future__ import annotations

import contextlib
import queue
import shutil
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

from sparsezo import notes
from sparsezo.engines.local import attempt, described
from sparsezo.engines.progress import Why
from sparsezo.engines.ray_connection import other_version
from sparsezo.experiments.records import RECORD
from sparsezo.experiments.runs import CHECKPOINT, Bench, Run
from sparsezo.storage import locks
from sparsezo.storage.packed import Shelf, unshelved
from sparsezo.training import Progress

_PREFIX = "sparsezo-runs-"  # of folders that workers have for themselves


@dataclass
class Report:
    """What happened since the last one."""

    progress: Progress | None = None
    checkpoint: bytes | None = None  # where there is a new one
    ended: bool = False
    why: Why | None = None  # it failed
    files: dict[str, bytes] = field(default_factory=dict)  # of a finished run, its record last


class RayWorker:
    """``out`` is the caller's folder of results, for messages; ``scratch``: where to work, or the node's own place."""

    def __init__(self, out: str, scratch: str | None, checkpoint_seconds: float) -> None:
        self.out, self.checkpoint_seconds = out, checkpoint_seconds
        place = Path(scratch or tempfile.gettempdir())
        locks.remove_abandoned(place.glob(f"{_PREFIX}*"))  # a worker that is killed cannot tidy up
        self._open = contextlib.ExitStack()
        self.folder = self._open.enter_context(locks.temporary_folder(place, _PREFIX))
        self.bench: Bench | None = None
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._stop = False

    def ready(self, version: str, data: tuple[bytes, Shelf]) -> str | None:
        """Unpack the data and compile; returns why it cannot. The caller has said what there is to remark."""
        if (why := other_version(version)) is not None:
            return why
        try:
            with notes.gathered():
                self.bench = Bench(unshelved(*data))
                self.bench.compile()
        except Exception as error:
            return self._told(error)
        return None

    def begin(self, run: Run, checkpoint: bytes | None) -> None:
        folder = run.folder(self.folder)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if checkpoint is not None:
            (folder / CHECKPOINT).write_bytes(checkpoint)
        threading.Thread(target=self._do, args=(run, _Watched(folder / CHECKPOINT)), name=run.hash, daemon=True).start()

    def listen(self, seconds: float) -> Report:
        """What has come up to now, or comes within so many seconds."""
        report = Report()
        try:
            self._add(report, self._reports.get(timeout=seconds))
            while not report.ended:
                self._add(report, self._reports.get_nowait())
        except queue.Empty:
            pass
        return report

    def stop(self) -> None:
        """The run at work writes its checkpoint where it next reports, and ends."""
        self._stop = True

    def leave(self) -> None:
        """To be called last: its folder goes."""
        self._open.close()

    def _do(self, run: Run, checkpoint: _Watched) -> None:
        assert self.bench is not None

        def report(progress: Progress) -> None:
            self._reports.put(Report(progress, checkpoint.if_new()))
            if self._stop:
                raise KeyboardInterrupt  # as in a process of this machine: save the run and leave

        last = Report(ended=True)
        try:
            last.why = attempt(run, self.folder, self.bench, report, self.checkpoint_seconds)
            if last.why is None:
                last.files = _finished(run.folder(self.folder))
            else:
                last.why = last.why[0].replace(str(self.folder), self.out), last.why[1]
            last.checkpoint = checkpoint.if_new()
        except KeyboardInterrupt:
            last.checkpoint = checkpoint.if_new()
        except Exception as error:  # its files could not be read back
            last.why = self._told(error), False
        shutil.rmtree(run.folder(self.folder), ignore_errors=True)
        self._reports.put(last)

    def _told(self, error: Exception) -> str:
        return described(error).replace(str(self.folder), self.out)

    @staticmethod
    def _add(to: Report, new: Report) -> None:
        to.progress = new.progress or to.progress
        to.checkpoint = to.checkpoint if new.checkpoint is None else new.checkpoint
        to.ended, to.why, to.files = new.ended, new.why, new.files


class _Watched:
    """A checkpoint's file; it is replaced as a whole, so what is read is whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = self._stamp()

    def _stamp(self) -> tuple[int, int] | None:
        try:
            now = self.path.stat()
        except FileNotFoundError:
            return None
        return now.st_ino, now.st_mtime_ns

    def if_new(self) -> bytes | None:
        now = self._stamp()
        if now is None or now == self._seen:
            return None
        self._seen = now
        return self.path.read_bytes()


def _finished(folder: Path) -> dict[str, bytes]:
    names = sorted((path.name for path in folder.iterdir()), key=lambda name: name == RECORD)
    return {name: (folder / name).read_bytes() for name in names if name != CHECKPOINT}
