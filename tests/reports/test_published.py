"""Blocks of the docs, written from results: what is said changes with what was found, and a wrong page is refused."""

from __future__ import annotations

import csv

import pytest

from sparsezo.errors import DataError
from sparsezo.reports.published import blocks, in_short, main, scaling, table, update
from sparsezo.storage.sealed import write_sealed

PAGE = "Before.\n<!-- seeds: written by make findings -->\nold\n<!-- end of seeds -->\nAfter.\n"


def row(learner, mean, paper="", seeds="0 1 2"):
    return {"learner": learner, "test_mean": str(mean), "paper": str(paper), "seeds": seeds}


def test_a_block_is_replaced_and_nothing_else():
    assert update(PAGE, {"seeds": "new\nlines", "other": "x"}) == PAGE.replace("old", "new\nlines")
    assert update("no marks\n", {}) == "no marks\n"


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (PAGE.replace("seeds", "nothing"), "has a block 'nothing', which there are no results for"),
        (PAGE + PAGE, "must have one '<!-- seeds: written by make findings -->'"),
        (PAGE.replace("<!-- end of seeds -->", ""), "and one '<!-- end of seeds -->'"),
    ],
)
def test_a_page_with_wrong_marks_is_refused(page, message):
    with pytest.raises(DataError, match=message):
        update(page, {"seeds": "new"}, "README.md")


def test_a_table_has_rules_down_and_perturbations_across():
    rows = [row("two-point all", 0.87512, 0.841), row("two-point score", 0.9244), row("comparison all", 0.5)]
    rows += [row("first-order", 0.93, 0.908), row("two-point score adagrad", 0.95), row("oracle", 0.99)]
    assert table(rows, 3).splitlines() == [
        "| learner | all | score (not in the paper) | test |",
        "|---|---|---|---|",
        "| comparison | 0.500 |  |  |",
        "| two-point | 0.875 (0.841) | 0.924 |  |",
        "| first-order |  |  | 0.930 (0.908) |",
        "| two-point score adagrad |  |  | 0.950 |",
    ]


def test_claims_stand_under_their_verdicts():
    claims = [{"title": "a", "verdict": "cannot be said"}, {"title": "b", "verdict": "holds"}]
    claims += [{"title": "c", "verdict": "cannot be said"}]
    assert in_short(claims) == "- Holds: b.\n- Cannot be said: a; c."


def test_what_is_flat_in_n_is_what_the_figures_show():
    def rows(**exponents):
        return [
            {"panel": panel, "perturb": p, "n": str(n), "passes": str(5 * n ** exponents[p]), "iterations": str(n)}
            for p in ("all", "active", "score")
            for n in (32, 64, 128)
            for panel in ("n", "n_bar")
            if panel == "n" or n == 64
        ]

    text = scaling(rows(all=1.0, active=0.0, score=0.05))
    assert "as n^1.00 with `all`, n^0.00 with `active`, n^0.05 with `score`;" in text
    assert text.endswith("Flat in n: passes with `active`, passes with `score`.")
    assert scaling(rows(all=1.0, active=0.5, score=0.5)).endswith("Flat in n: nothing.")


def test_pages_are_written_from_the_folder(tmp_path):
    results = tmp_path / "docs" / "results"
    (results / "text").mkdir(parents=True)
    with open(results / "text" / "table.csv", "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, ["learner", "test_mean", "paper", "seeds"])
        writer.writeheader()
        writer.writerows([row("two-point all", 0.5, seeds="0 1"), row("in-domain", 0.6, seeds="")])
    claim = {"title": "t", "source": "s", "verdict": "holds", "words": "w"}
    write_sealed(results / "text" / "verdicts.json", {"summary": ["One.", "Two."], "claims": [claim]})
    assert blocks(results)["text-claims"] == "One. Two.\n\n- **holds**: t (s): w."
    for name in ("README.md", "docs/results/README.md"):
        (tmp_path / name).write_text(PAGE)
    main(tmp_path)
    assert "means over seeds (text: 2), h and mu" in (tmp_path / "README.md").read_text()
    assert (tmp_path / "docs/results/README.md").read_text() == (tmp_path / "README.md").read_text()
