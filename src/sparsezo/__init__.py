"""sparsezo: learn structured predictors from feedback on their outputs alone.

    from sparsezo import Chunking, Learner, Settings, read_conll

    task, corpus = Chunking.fit(read_conll("train.txt"), only="NP")
    learner = Learner(task.problem(corpus), Settings("preference", h=0.001, mu=0.1))
    proposal = learner.ask()                       # two outputs for some sentence
    learner.tell(proposal, "candidate")            # somebody likes the first one better

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "sparsezo.errors": ("DamagedError", "DataError", "DivergedError", "SparsezoError", "UsageError"),
    "sparsezo.events": ("replay",),
    "sparsezo.experiments.learners": ("LearnerSpec",),
    "sparsezo.experiments.plan": ("Experiment", "read_experiment"),
    "sparsezo.experiments.reproduce": ("reproduce",),
    "sparsezo.learner": ("Learner", "predict"),
    "sparsezo.minimization": ("minimize",),
    "sparsezo.model": ("Model", "load_model"),
    "sparsezo.optimizer": ("Optimizer",),
    "sparsezo.perturbations": ("PERTURBATIONS",),
    "sparsezo.proposals": ("Info", "Proposal"),
    "sparsezo.questions": ("Question",),
    "sparsezo.reports.report": ("write_report",),
    "sparsezo.rules": ("RULES",),
    "sparsezo.settings": ("Settings",),
    "sparsezo.storage.tables": ("mapped_weights",),
    "sparsezo.tasks.base": ("Problem", "Scores", "Task"),
    "sparsezo.tasks.chunking.conll": ("read_conll",),
    "sparsezo.tasks.chunking.task": ("Chunking",),
    "sparsezo.tasks.kind": ("TaskKind",),
    "sparsezo.tasks.loading": ("Data", "Files"),
    "sparsezo.tasks.registry": ("register",),
    "sparsezo.tasks.rerank.importing": ("import_nbest",),
    "sparsezo.tasks.rerank.task": ("Reranking",),
    "sparsezo.tasks.text.documents": ("read_documents",),
    "sparsezo.tasks.text.task": ("TextClassification",),
    "sparsezo.training": ("Outcome", "Progress", "Training"),
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = [*sorted(_HOME), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sparsezo' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *globals()]


if TYPE_CHECKING:
    from sparsezo.errors import DamagedError, DataError, DivergedError, SparsezoError, UsageError
    from sparsezo.events import replay
    from sparsezo.experiments.learners import LearnerSpec
    from sparsezo.experiments.plan import Experiment, read_experiment
    from sparsezo.experiments.reproduce import reproduce
    from sparsezo.learner import Learner, predict
    from sparsezo.minimization import minimize
    from sparsezo.model import Model, load_model
    from sparsezo.optimizer import Optimizer
    from sparsezo.perturbations import PERTURBATIONS
    from sparsezo.proposals import Info, Proposal
    from sparsezo.questions import Question
    from sparsezo.reports.report import write_report
    from sparsezo.rules import RULES
    from sparsezo.settings import Settings
    from sparsezo.storage.tables import mapped_weights
    from sparsezo.tasks.base import Problem, Scores, Task
    from sparsezo.tasks.chunking.conll import read_conll
    from sparsezo.tasks.chunking.task import Chunking
    from sparsezo.tasks.kind import TaskKind
    from sparsezo.tasks.loading import Data, Files
    from sparsezo.tasks.registry import register
    from sparsezo.tasks.rerank.importing import import_nbest
    from sparsezo.tasks.rerank.task import Reranking
    from sparsezo.tasks.text.documents import read_documents
    from sparsezo.tasks.text.task import TextClassification
    from sparsezo.training import Outcome, Progress, Training
