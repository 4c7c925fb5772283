"""The model of a session from its folder alone, bit for bit the one that was served.

    model = replay("np.serve")
    model = replay("np.serve", without="Bob")           # from everyone else's answers

Later questions were chosen under Bob's influence: what his answers taught is gone, what he made others be asked is not.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sparsezo import __version__
from sparsezo.errors import DamagedError, SparsezoError, UsageError, quoted
from sparsezo.learner import Learner
from sparsezo.model import Model
from sparsezo.serve import folder as folders
from sparsezo.serve.folder import Contents
from sparsezo.serve.lessons import teach
from sparsezo.serve.log import MEND, Log


def replay(folder: str | os.PathLike[str], without: str | None = None) -> Model:
    """``without``: the name of a person whose answers are left out."""
    place = Path(folder)
    contents = folders.read(place)
    log = folders.open_log(place)
    try:
        left_out = [] if without is None else [_number(log, without)]
        learner = Learner(contents.task.problem(contents.data, asks=True), contents.settings, contents.W)
        for event, question in log.lessons(without=left_out):
            try:
                teach(learner, event, question)
            except UsageError as error:
                raise DamagedError(str(log.path), f"event {event.seq}: {error}", MEND) from None
        return model_of(contents, learner.weights(), learner.answers)
    finally:
        log.close()


def model_of(contents: Contents, W: NDArray[Any], answers: int) -> Model:
    """As a file has it."""
    result = {"task": contents.kind.name, "rule": contents.settings.rule, "answers": answers, "sparsezo": __version__}
    return Model(contents.task, W, contents.settings.as_dict(), result)


def _number(log: Log, name: str) -> int:
    people = log.people()
    for person in people:
        if person.name == name:
            return person.id
    some = ", ".join(quoted(person.name) for person in people[:8]) or "nobody"
    raise SparsezoError(f"{log.path}: nobody of the name '{quoted(name)}' has answered; there are {some}")
