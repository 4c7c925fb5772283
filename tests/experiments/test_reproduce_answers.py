"""reproduce answers, small and on generated data: all three tasks, one page; again, nothing is done twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sparsezo.cli.reproduce import run_reproduce
from sparsezo.experiments import reproduce as module
from sparsezo.experiments import wabbit
from sparsezo.experiments.plan import builtin
from sparsezo.reports.reading import read_experiment
from sparsezo.tasks.chunking import making as chunking_making
from sparsezo.tasks.rerank import making as rerank_making
from sparsezo.tasks.text import making as text_making

pytest.importorskip("matplotlib")
TASKS = ("chunking", "text", "rerank")


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Little data, few learners, no Vowpal Wabbit."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(wabbit, "installed", lambda: False)
    for making, parts in (
        (chunking_making, (120, 20, 20)),
        (text_making, (150, 40, 40)),
        (rerank_making, (40, 20, 20)),
    ):
        monkeypatch.setattr(making, "_PARTS", parts)

    def made(name):
        plan = builtin(name)
        some = [each for each in plan.learners if each.figure or each.start or each.feedback == "flip:0.1"]
        some = [each for each in some if each.start is None or each.start.startswith("labels")]
        learners = tuple(replace(each, start="labels:10") if each.start else each for each in some)
        data = plan.data if plan.task == "rerank" else replace(plan.data, dev="20")
        return replace(plan, learners=learners, data=data, looks=(10, 20, 40), answers=40)

    monkeypatch.setattr(module, "builtin", made)


@pytest.mark.usefixtures("small")
def test_three_experiments_and_one_page_and_again_nothing_is_done_twice(monkeypatch):
    folders = run_reproduce("answers", "generated", seeds=1, processes=1)
    assert folders == [Path("results") / f"answers-{task}" for task in TASKS]
    for folder in folders:
        experiment = read_experiment(folder)
        assert experiment.gaps == ()
        for run in experiment.runs:
            assert run.curve.answers.tolist()[-3:] == [10, 20, 40]
    page = (Path("results/answers/report") / "report.html").read_text("utf-8")
    for text in ("Noun-phrase chunking", "Text classification", "Reranking", "There is nothing of Vowpal Wabbit"):
        assert text in page
    names = {path.name for path in Path("results/answers/report/figures").iterdir()}
    assert {f"answers-{task}.png" for task in TASKS} <= names
    monkeypatch.setattr("sparsezo.engines.local.execute", lambda *_: pytest.fail("done again"))
    assert run_reproduce("answers", "generated", seeds=1, processes=1) == folders
    (alone,) = run_reproduce("answers-rerank", "generated", seeds=1, processes=1)
    assert alone == Path("results/answers-rerank")
    assert (alone / "report/report.html").exists()
