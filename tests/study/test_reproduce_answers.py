"""reproduce answers, small and on generated data: all tasks, one page; again, nothing is done twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sparsezo.cli.reproduce import run_reproduce
from sparsezo.study import reproduce as module
from sparsezo.study import wabbit
from sparsezo.study.plan import builtin
from sparsezo.study.reports.reading import read_experiment
from sparsezo.tasks.chunking import synthetic as chunking_making
from sparsezo.tasks.rerank import synthetic as rerank_making
from sparsezo.tasks.text import synthetic as text_making

pytest.importorskip("matplotlib")
NAMES = ("chunking", "words", "text", "rerank")  # the others want clusters of words, or differ in data alone


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
        some = [each for each in plan.learners if each.figure or each.start or each.mistakes]
        some += [each for each in plan.learners if each.feedback in ("flip:0.1", "flip:0.5")]
        some = [each for each in some if each.start is None or each.start.startswith("labels")]
        learners = tuple(replace(each, start="labels:10" if each.start else None, answers=None) for each in some)
        data = plan.data if plan.task == "rerank" else replace(plan.data, dev="20")
        return replace(plan, learners=learners, data=data, looks=(10, 20, 40), answers=40)

    monkeypatch.setattr(module, "builtin", made)
    monkeypatch.setattr(module, "EXPERIMENTS", {f"answers-{name}": None for name in NAMES})


@pytest.mark.usefixtures("small")
def test_experiments_on_one_page_and_again_nothing_is_done_twice(monkeypatch):
    folders = run_reproduce("answers", "generated", seeds=1, processes=1)
    assert folders == [Path("results") / f"answers-{task}" for task in NAMES]
    for folder in folders:
        experiment = read_experiment(folder)
        assert experiment.gaps == ()
        for run in experiment.runs:
            assert run.curve["answers"].tolist()[-3:] == [10, 20, 40]
    page = (Path("results/answers/report") / "report.html").read_text("utf-8")
    for text in ("words and parts of speech", "words alone", "Text classification", "Reranking"):
        assert text in page
    assert "There is nothing of Vowpal Wabbit" in page
    names = {path.name for path in Path("results/answers/report/figures").iterdir()}
    assert {"minutes.png", "minutes-answers-chunking.png"} <= names
    monkeypatch.setattr("sparsezo.study.engines.local.execute", lambda *_: pytest.fail("done again"))
    assert run_reproduce("answers", "generated", seeds=1, processes=1) == folders
    (alone,) = run_reproduce("answers-rerank", "generated", seeds=1, processes=1)
    assert alone == Path("results/answers-rerank")
    assert (alone / "report/report.html").exists()
