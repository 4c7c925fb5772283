"""The built-in experiments: a TOML file for each in this folder, and what the paper says of the tasks they are on.

experiment_text("smt")                   # the TOML that ``sparsezo reproduce smt`` runs
paper_on("rerank").experiment            # 'smt': the paper's own experiment on that task
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

EXPERIMENTS = {  # name -> task, the paper's own first
    "chunking": "chunking",
    "text": "text",
    "smt": "rerank",
    "noise": "chunking",
    "answers-chunking": "chunking",
    "answers-words": "chunking",
    "answers-clusters": "chunking",
    "answers-names": "chunking",
    "answers-names-clusters": "chunking",
    "answers-text": "text",
    "answers-rerank": "rerank",
}


@dataclass(frozen=True)
class PaperOnTask:
    """What the paper says of learning one task, as far as tasks differ in it; the defaults: it says nothing."""

    experiment: str | None = None  # its own on the task, by the name of EXPERIMENTS
    margin: float = 0.01  # of metric and loss: learners that differ by less are as good as each other
    beats_first_order: str | None = None  # where it says that zeroth-order wins over SFO, and in which words
    speed_against_first_order: bool = False  # it compares with SFO in speed, not on test
    close_to_first_order: bool = False  # it has its two-point SPARSE near SFO
    undertrained: bool = False  # it has all learners best on dev near the end of the run
    zero_one_loss: bool = False  # an output is right or wrong, so preference is two-point in law


_PAPER = {
    "chunking": PaperOnTask(
        "chunking",
        margin=0.02,  # what the paper calls close: 0.888 against 0.908
        close_to_first_order=True,
        undertrained=True,
    ),
    "text": PaperOnTask("text", speed_against_first_order=True, zero_one_loss=True),
    "rerank": PaperOnTask(
        "smt",
        margin=0.002,  # 0.2 BLEU points
        beats_first_order="paper Sec. 5, SMT: 0.265 to 0.273 BLEU against 0.263",
    ),
}


def paper_on(task: str) -> PaperOnTask:
    """What the paper says of ``task``, the name of any task."""
    return _PAPER.get(task, PaperOnTask())


def papers_own() -> list[str]:
    """The names of the experiments that are the paper's."""
    return [name for name, task in EXPERIMENTS.items() if paper_on(task).experiment == name]


def experiment_text(name: str) -> str:
    """The TOML of a built-in experiment, by its name."""
    return resources.files(__name__).joinpath(f"{name}.toml").read_text("utf-8")
