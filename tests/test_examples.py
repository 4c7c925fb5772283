"""The scripts of examples/: each runs as its docstring says, and prints what is worth reading."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py"))
ELSEWHERE = {  # what needs a server or an endpoint is run by these
    "answer_from_gold": "serve/test_serve_http.py",
    "chat_judge": "serve/test_join.py",
}
QUESTION = '{"document": "a rocket in orbit", "classes": ["sci", "talk"]}\n'


def figures(pattern: str, text: str) -> list[float]:
    return [float(found) for found in re.findall(pattern, text)]


def keyword_scorer(out: str) -> None:
    assert out == "[0, 1]\n"


def own_function(out: str) -> None:
    assert figures(r"1 - F1 is ([\d.]+)", out)[0] < 0.1  # from 0.835, which says yes to all


def own_rule(out: str) -> None:
    assert [line.split()[0] for line in out.splitlines()[1:]] == ["two-point", "symmetric", "still"]
    assert min(figures(r"30,000: ([\d.]+)", out)) > 0.8


def own_task(out: str) -> None:
    assert min(figures(r"20,000 steps: NDCG ([\d.]+)", out)) > 0.8
    assert out.endswith("worst spam\n")


def paper_in_miniature(out: str) -> None:
    rows = {line.split()[0]: figures(r"([\d.]+) \(", line) for line in out.splitlines() if "(0." in line}
    assert [len(row) for row in rows.values()] == [3, 3, 3, 1]
    assert rows["two-point"][1] > rows["two-point"][0]  # active against all


def rerank_nbest(out: str) -> None:
    before, *after = figures(r"BLEU ([\d.]+)", out)
    assert min(after) > before
    assert "adapted.weights: " in out


def minutes_of_review(out: str) -> None:
    review, part = figures(r"review .*F1 ([\d.]+)", out), figures(r"part .*F1 ([\d.]+)", out)
    assert review == sorted(review)
    assert review[-1] > part[-1]


def constrained_decoding(out: str) -> None:
    first, second, third = (line.partition(": ")[2] for line in out.splitlines())
    assert first.startswith("Juan Vega PER")
    assert second.startswith("San Juan LOC 1.00, Vega PER")  # which follows from it
    assert "Quito" in second
    assert "Quito" not in third


def parallel_evaluation(out: str) -> None:
    start, *ends = figures(r"F +([\d.]+)", out)
    assert max(ends) < start / 2


CHECKS = {
    check.__name__: check
    for check in (
        keyword_scorer,
        own_function,
        own_rule,
        own_task,
        paper_in_miniature,
        rerank_nbest,
        minutes_of_review,
        constrained_decoding,
        parallel_evaluation,
    )
}


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in ELSEWHERE])
def test_it_runs(name, tmp_path):
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    environment = {**os.environ, "PYTHONWARNINGS": "error::RuntimeWarning"}
    done = subprocess.run(
        command, cwd=tmp_path, input=QUESTION, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    CHECKS.get(name, str)(done.stdout)
    assert not any(tmp_path.iterdir())  # nothing is left behind


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_says_whom_it_is_for_on_one_page(name):
    text = (EXAMPLES / f"{name}.py").read_text("utf-8")
    assert len(text.splitlines()) <= 90
    about = ast.get_docstring(ast.parse(text))
    assert f"examples/{name}.py" in about
    assert f"[{name}.py]({name}.py)" in (EXAMPLES / "README.md").read_text("utf-8")


def test_there_are_a_dozen_and_each_is_run_somewhere():
    assert len(SCRIPTS) >= 12
    for name, file in ELSEWHERE.items():
        assert name in (Path(__file__).parent / file).read_text("utf-8")
