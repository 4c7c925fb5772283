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
from typing import TYPE_CHECKING

__version__ = "0.2.0"

_PUBLIC = {
    "sparsezo.errors": ("DamagedError", "DataError", "DivergedError", "SparsezoError", "UsageError"),
    "sparsezo.study.plan": ("Experiment", "LearnerSpec", "read_experiment"),
    "sparsezo.study.reproduce": ("reproduce",),
    "sparsezo.learner": ("Learner", "predict"),
    "sparsezo.query_learner": ("QueryLearner", "make_learner"),
    "sparsezo.minimization": ("minimize", "scipy_method"),
    "sparsezo.model": ("Model", "Tagger", "load_model"),
    "sparsezo.optimizer": ("Optimizer", "replay"),
    "sparsezo.questions": ("Info", "Proposal", "Question"),
    "sparsezo.study.reports.report": ("write_report",),
    "sparsezo.row_space": ("RowSpace",),
    "sparsezo.rules": ("PERTURBATIONS", "RULES", "own_rule"),
    "sparsezo.settings": ("Settings",),
    "sparsezo.storage.mapped_weights": ("mapped_weights",),
    "sparsezo.tasks.base": ("Problem", "Scores", "Task"),
    "sparsezo.tasks.chunking.io.conll": ("read_conll",),
    "sparsezo.tasks.chunking.task": ("Chunking",),
    "sparsezo.tasks.spec": ("TaskSpec",),
    "sparsezo.tasks.loading": ("Data", "Files"),
    "sparsezo.tasks.own.spec": ("Input", "own_task"),
    "sparsezo.tasks.registry": ("register",),
    "sparsezo.tasks.rerank.io.importing": ("import_nbest",),
    "sparsezo.tasks.rerank.task": ("Reranking",),
    "sparsezo.tasks.text.io.documents": ("read_documents",),
    "sparsezo.tasks.text.task": ("TextClassification",),
    "sparsezo.training": ("Outcome", "Progress", "Training"),
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = [*sorted(_HOME), "__version__"]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'sparsezo' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *globals()]


if TYPE_CHECKING:
    from sparsezo.errors import DamagedError, DataError, DivergedError, SparsezoError, UsageError
    from sparsezo.learner import Learner, predict
    from sparsezo.minimization import minimize, scipy_method
    from sparsezo.model import Model, Tagger, load_model
    from sparsezo.optimizer import Optimizer, replay
    from sparsezo.query_learner import QueryLearner, make_learner
    from sparsezo.questions import Info, Proposal, Question
    from sparsezo.row_space import RowSpace
    from sparsezo.rules import PERTURBATIONS, RULES, own_rule
    from sparsezo.settings import Settings
    from sparsezo.storage.mapped_weights import mapped_weights
    from sparsezo.study.plan import Experiment, LearnerSpec, read_experiment
    from sparsezo.study.reports.report import write_report
    from sparsezo.study.reproduce import reproduce
    from sparsezo.tasks.base import Problem, Scores, Task
    from sparsezo.tasks.chunking.io.conll import read_conll
    from sparsezo.tasks.chunking.task import Chunking
    from sparsezo.tasks.loading import Data, Files
    from sparsezo.tasks.own.spec import Input, own_task
    from sparsezo.tasks.registry import register
    from sparsezo.tasks.rerank.io.importing import import_nbest
    from sparsezo.tasks.rerank.task import Reranking
    from sparsezo.tasks.spec import TaskSpec
    from sparsezo.tasks.text.io.documents import read_documents
    from sparsezo.tasks.text.task import TextClassification
    from sparsezo.training import Outcome, Progress, Training
