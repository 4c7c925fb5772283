"""Vowpal Wabbit's contextual bandits on the documents that our learner sees, in the same order (``--cbify``).

    write_wabbit(plan, loaded, out, identity)       # OUT/wabbit.json, for each of the plan's rivals and each seed
    read_wabbit(out)                                # None where it was not run

Each document comes once and gives one right or wrong for the class that was chosen. The loss is the average of the
classes chosen on the way; on test the best class is taken (ways to explore that cannot be told to take it have no
test). With ``rival_rates`` each rival gets the learning rate with the least average loss over the plan's tuning seeds.
Without Vowpal Wabbit, or where it fails, nothing is written, and the report says so.
"""

from __future__ import annotations

import importlib.util
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import SparsezoError, one_line
from sparsezo.kernels import random
from sparsezo.settings import Settings
from sparsezo.storage.checksummed import read_checksummed, write_checksummed
from sparsezo.storage.fingerprint import fingerprint
from sparsezo.study.plan import Experiment
from sparsezo.tasks.base import Json, Read, Task
from sparsezo.tasks.loading import Loaded

FILE = "wabbit.json"
COMMAND = [sys.executable, "-m", "vowpalwabbit"]
_BITS = "20"  # of its table of weights
_GREEDY = {"--squarecb": "--gamma_exponent 8", "--softmax": "--lambda 1e6"}  # on test; of others --epsilon 0
_NEVER_GREEDY = ("--bag", "--cover", "--first", "--regcb", "--regcbopt", "--rnd", "--synthcover")  # go on exploring


def installed() -> bool:
    return importlib.util.find_spec("vowpalwabbit") is not None


def read_wabbit(out: Path) -> Json | None:
    return read_checksummed(out / FILE, "the command that made it writes it anew")


def write_wabbit(
    plan: Experiment, load: Callable[[], Loaded], out: Path, identity: str, say: Callable[[str], None]
) -> None:
    """What is there already, for the same data, looks and options, is not done again."""
    if not installed():
        say("Vowpal Wabbit is not installed, so the report goes without it: pip install vowpalwabbit")
        return
    known = [identity, list(plan.looks), list(plan.seeds), dict(plan.rivals), version("vowpalwabbit")]
    known += [list(plan.rival_rates), list(plan.search_seeds), "one pass"]
    known_by = fingerprint(json.dumps(known), size=10)
    if (read_wabbit(out) or {}).get("known_by") == known_by:
        return
    say(f"{plan.name}: Vowpal Wabbit on the same documents")
    try:
        found = _learned(plan, load())
    except SparsezoError as error:
        say(str(error))  # all runs of ours are there: the report goes without it
        return
    write_checksummed(out / FILE, {"known_by": known_by, "version": version("vowpalwabbit"), **found})


def _learned(plan: Experiment, loaded: Loaded) -> Json:
    """Looks within one pass; the rates chosen; for each rival a run of each seed."""
    documents = len(loaded.data.train)
    looks = [look for look in plan.looks if look <= documents]
    if not looks:
        raise SparsezoError(
            f"{plan.name}: Vowpal Wabbit sees every document once, and the first of looks, {plan.looks[0]:,}, is more "
            f"than the {documents:,} documents; the report goes without it"
        )
    runs: dict[str, list[Json]] = {name: [] for name in plan.rivals}
    with tempfile.TemporaryDirectory() as folder:
        rates = _chosen_rates(plan, loaded, looks, Path(folder))
        for seed in plan.seeds:
            stream = _Stream(loaded, seed, looks, Path(folder))
            for name, options in plan.rivals.items():
                runs[name].append({"seed": seed, **stream.learned(options, rates.get(name))})
    return {"documents": documents, "looks": looks, "rates": rates, "rivals": runs}


def _chosen_rates(plan: Experiment, loaded: Loaded, looks: list[int], folder: Path) -> dict[str, float]:
    """For each rival the learning rate with the least average loss, over orders that no result is of."""
    if not plan.rival_rates:
        return {}
    tried = {name: dict.fromkeys(plan.rival_rates, 0.0) for name in plan.rivals}  # sums over seeds
    for seed in plan.search_seeds:
        stream = _Stream(loaded, seed, looks, folder)
        for name, options in plan.rivals.items():
            for rate in plan.rival_rates:
                tried[name][rate] += stream.average_losses(options, rate)[-1]
    return {name: min(losses, key=lambda rate: losses[rate]) for name, losses in tried.items()}


class _Stream:
    """The documents in the order of one seed, each once, and the test set, as Vowpal Wabbit reads them."""

    def __init__(self, loaded: Loaded, seed: int, looks: list[int], folder: Path) -> None:
        task, data = loaded.task, loaded.data
        self.looks, self.folder, self.classes = np.array(looks), folder, task.n_labels
        self._model = str(folder / "model")
        lines, N = list(_lines(task, data.train)), len(data.train)
        key = Settings(seed=seed).step_params().keys[random.INPUTS]
        order = [int(random.permuted(key, np.int64(step), N)) for step in range(looks[-1])]
        self.gold = np.array([int(lines[x].partition(" ")[0]) for x in order])
        (folder / "train").write_text("".join(lines[x] for x in order))
        tested = list(_lines(task, data.test)) if data.test is not None else []
        self.test = np.array([int(line.partition(" ")[0]) for line in tested])
        (folder / "test").write_text("".join(tested))

    def learned(self, options: str, rate: float | None = None) -> Json:
        """Its average loss at every look, and its accuracy on test in the end."""
        losses, words = self.average_losses(options, rate), shlex.split(options)
        test = None
        if self.test.size and not any(word in _NEVER_GREEDY for word in words):
            greedy = next((_GREEDY[word] for word in words if word in _GREEDY), "--epsilon 0")
            test = float(np.mean(self._run("test", "-t", "-i", self._model, *shlex.split(greedy)) == self.test))
        return {"average_loss": losses.tolist(), "test": test}

    def average_losses(self, options: str, rate: float | None) -> NDArray[np.float64]:
        """At every look; the model is left in the folder."""
        words = shlex.split(options) + ([] if rate is None else ["-l", f"{rate:g}"])
        said = self._run("train", "--cbify", str(self.classes), "-b", _BITS, *words, "-f", self._model)
        losses: NDArray[np.float64] = np.cumsum(said != self.gold)[self.looks - 1] / self.looks
        return losses

    def _run(self, part: str, *options: str) -> NDArray[np.int64]:
        """The classes that it chose."""
        target = self.folder / "chosen"
        command = [*COMMAND, "--quiet", "-d", str(self.folder / part), "-p", str(target), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise SparsezoError(f"Vowpal Wabbit failed with {shlex.join(options)}: {one_line(last)}")
        return np.array([int(float(line.split()[0])) for line in target.read_text().splitlines() if line.strip()])


def _lines(task: Task, data: Read) -> Iterable[str]:
    """``3 | 17:0.25 ...``: the class from 1, and the features that our learner sees."""
    matrix, labels = data.matrix, task.gold(data).labels
    for x, label in enumerate(labels.tolist()):
        row = slice(matrix.indptr[x], matrix.indptr[x + 1])
        pairs = zip(matrix.indices[row].tolist(), matrix.data[row].tolist(), strict=True)
        yield f"{label + 1} | {' '.join(f'{k}:{v:.6g}' for k, v in pairs)}\n"
