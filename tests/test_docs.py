"""What README shows is what docs/results has, and what docs/results has says how it was made."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
COLUMNS = {"all": "all", "active": "active", "score (ours)": "score"}


def table(name: str) -> dict[str, dict[str, str]]:
    with open(RESULTS / name / "table.csv", encoding="utf-8", newline="") as stream:
        return {row["learner"]: row for row in csv.DictReader(stream)}


def shown(name: str) -> list[dict[str, str]]:
    """The rows of README's table on an experiment, by column; the table stands before the link to its folder."""
    text = (ROOT / "README.md").read_text("utf-8")
    before = text[: text.index(f"](docs/results/{name}/")]
    block = re.findall(r"(?:^\|.*\|\n)+", before, re.MULTILINE)[-1]
    head, _, *rows = ([cell.strip() for cell in line.strip("|\n").split("|")] for line in block.splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.parametrize(("name", "digits"), [("chunking", 3), ("text", 3), ("smt", 4)])
def test_readme_shows_the_tables_figures(name, digits):
    results, checked = table(name), 0
    for row in shown(name):
        for column, cell in row.items():
            perturb = COLUMNS.get(column)
            learner = f"{row['learner']} {perturb}" if perturb else row["learner"]
            if not cell or not (perturb or column == "test"):
                continue
            figure, paper = re.fullmatch(r"([\d.]+)(?: \(([\d.]+)\))?", cell).groups()
            assert float(figure) == round(float(results[learner]["test_mean"]), digits), learner
            if paper:
                assert float(paper) == float(results[learner]["paper"])
            checked += 1
    assert checked >= 8


@pytest.mark.parametrize("name", ["chunking", "smt", "text", "noise", "scaling"])
def test_results_say_how_they_were_made(name):
    page = (RESULTS / name / "report.html").read_text("utf-8")
    assert f"<pre>sparsezo reproduce {name}" in page
    assert f"sparsezo reproduce {name}" in (RESULTS / "README.md").read_text("utf-8")
    for figure in (RESULTS / name / "figures").glob("*.svg"):
        assert figure.with_suffix(".png").exists()


def test_links_lead_somewhere():
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
