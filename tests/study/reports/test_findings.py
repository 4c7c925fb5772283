"""Blocks of the docs, written from results: what is said changes with what was found, and a wrong page is refused."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import pytest

from sparsezo.errors import DataError
from sparsezo.storage.checksummed import write_checksummed

ROOT = Path(__file__).parents[3]
SPEC = importlib.util.spec_from_file_location("findings", ROOT / "benchmarks" / "findings.py")
findings = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(findings)
PAGE = "Before.\n<!-- seeds: written by make findings -->\nold\n<!-- end of seeds -->\nAfter.\n"


def row(learner, mean, paper="", seeds="0 1 2"):
    return {"learner": learner, "test_mean": str(mean), "paper": str(paper), "seeds": seeds}


@pytest.mark.parametrize("page", findings.PAGES)
def test_what_the_pages_say_of_results_is_what_the_results_say(page):
    """If this fails: make findings."""
    text = (ROOT / page).read_text("utf-8")
    assert findings.update(text, findings.blocks(ROOT / "docs" / "results"), page) == text
    assert "written by make findings" in text


def test_a_block_is_replaced_and_nothing_else():
    assert findings.update(PAGE, {"seeds": "new\nlines", "other": "x"}) == PAGE.replace("old", "new\nlines")
    assert findings.update("no marks\n", {}) == "no marks\n"


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
        findings.update(page, {"seeds": "new"}, "README.md")


def test_a_table_has_rules_down_and_perturbations_across():
    rows = [row("two-point all", 0.87512, 0.841), row("two-point score", 0.9244), row("comparison all", 0.5)]
    rows += [row("first-order", 0.93, 0.908), row("two-point score adagrad", 0.95), row("oracle", 0.99)]
    assert findings.table(rows, 3).splitlines() == [
        "| learner | all | score (not in the paper) | test |",
        "|---|---|---|---|",
        "| comparison | 0.500 |  |  |",
        "| two-point | 0.875 (0.841) | 0.924 |  |",
        "| first-order |  |  | 0.930 (0.908) |",
        "| two-point score adagrad |  |  | 0.950 |",
    ]


def test_beside_the_paper_stand_its_learners_and_score_by_the_same_rules():
    rows = [row("two-point all", 0.875, 0.841), row("two-point active", 0.9, 0.888), row("two-point score", 0.92)]
    rows += [row("two-point score annealed", 0.93), row("two-point score adagrad", 0.94), row("symmetric score", 0.95)]
    rows += [row("first-order", 0.93, 0.908), row("supervised", 0.94)]
    assert findings.beside_paper(rows, 3).splitlines()[2:] == [
        "| two-point | 0.875 (0.841) | 0.900 (0.888) | 0.920 |  |",
        "| first-order |  |  |  | 0.930 (0.908) |",
    ]


def test_pages_are_written_from_the_folder(tmp_path):
    results = tmp_path / "docs" / "results"
    (results / "text").mkdir(parents=True)
    with open(results / "text" / "table.csv", "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, ["learner", "test_mean", "paper", "seeds"])
        writer.writeheader()
        writer.writerows([row("two-point all", 0.5, seeds="0 1"), row("in-domain", 0.6, seeds="")])
    claim = {"title": "t", "source": "s", "verdict": "holds", "words": "w"}
    write_checksummed(results / "text" / "verdicts.json", {"summary": ["One.", "Two."], "claims": [claim]})
    assert findings.blocks(results)["text-claims"] == "One. Two.\n\n- **holds**: t (s): w."
    for name in ("README.md", "docs/results/README.md"):
        (tmp_path / name).write_text(PAGE)
    findings.main(tmp_path)
    assert "means over seeds (text: 2), h and mu" in (tmp_path / "README.md").read_text()
    assert (tmp_path / "docs/results/README.md").read_text() == (tmp_path / "README.md").read_text()


def point(title, answers, mean, minutes, experiment="answers-chunking", loss=""):
    known = {"answers": str(answers), "test_mean": str(mean), "minutes": str(minutes), "average_loss_mean": str(loss)}
    slower = {"minutes_literature": str(minutes and 2 * minutes), "minutes_slow": str(minutes and 3 * minutes)}
    return {"experiment": experiment, "title": title, **known, **slower}


LEAST_SURE, AT_RANDOM = "whole sentences labelled, least sure first", "whole sentences labelled, at random"
ANSWERS = [
    row
    for place in ("answers-chunking", "answers-clusters", "answers-words", "answers-names-clusters", "answers-names")
    for row in (
        *(point("review", n, mean, n / 5, place) for n, mean in ((0, 0.1), (50, 0.75), (500, 0.95))),
        *(point("review of what is marked", n, mean, n / 5, place) for n, mean in ((0, 0.1), (50, 0.7), (500, 0.9))),
        *(point("part", n, mean, n / 10, place) for n, mean in ((0, 0.1), (100, 0.7), (1000, 0.9), (5000, 0.95))),
        *(point("span", n, mean, n / 8, place) for n, mean in ((0, 0.1), (100, 0.7), (1000, 0.9), (5000, 0.95))),
        *(point("label", n, mean, n / 5, place) for n, mean in ((0, 0.1), (1000, 0.8), (5000, 0.9))),
        *(point(LEAST_SURE, n, mean, n / 50, place) for n, mean in ((1000, 0.8), (10_000, 0.96))),
        *(point(AT_RANDOM, n, mean, n / 50, place) for n, mean in ((1000, 0.7), (10_000, 0.86))),
    )
]
ANSWERS += [
    point("part asked at random", 40, 0.8, 1, "answers-text", 0.1),
    point("part asked at random", 80, 0.8, 1, "answers-text", 0.08),
    point("part asked at random", 100, 0.8, 1, "answers-text", 0.01),
    point("Vowpal Wabbit: a", 40, "", "", "answers-text", 0.05),
    point("Vowpal Wabbit: a", 80, 0.8, "", "answers-text", 0.2),
    point("Vowpal Wabbit: b, -l 3", 80, 0.9, "", "answers-text", 0.15),
]


def test_costs_are_in_minutes_and_in_answers():
    assert findings.answers_cost(ANSWERS).splitlines() == [
        "| minutes (answers) for test F1 | 0.85 | 0.90 | 0.93 |",
        "|---|---|---|---|",
        "| review | 32 (160) | 56 (280) | 79 (400) |",
        "| review of what is marked | 56 (280) | 100 (500) | more than 100 |",
        "| span | 70 (560) | 130 (1,000) | 330 (2,600) |",
        "| label | 450 (2,200) | 1,000 (5,000) | more than 1,000 |",
        "| part | 56 (560) | 100 (1,000) | 260 (2,600) |",
        "| whole sentences labelled, least sure first | 41 (2,100) | 84 (4,200) | 130 (6,500) |",
        "| whole sentences labelled, at random | 170 (8,700) | more than 200 | more than 200 |",
    ]


def test_reviews_stand_beside_the_strongest_rival_after_the_same_minutes():
    *table, _, told = findings.answers_minutes(ANSWERS).splitlines()
    assert table[0] == "| test F1 after minutes | 30 | 60 | 120 | 240 |"
    assert table[2] == "| noun phrases, words and parts of speech: review | 0.845 | 0.906 |  |  |"
    assert table[3].endswith(" whole sentences, least sure first | 0.828 | 0.876 | 0.925 |  |")
    assert len(table) == 2 + 2 * 5
    assert told == (
        "With parts of speech, by the tables ours, literature and slow, F1 0.90 takes whole sentences 1.5, 1.5 and 1.5 "
        "times as long; F1 0.93 takes whole sentences 1.6, 1.6 and 1.6 times as long as reviews."
    )


def test_both_have_seen_every_document_once():
    assert findings.one_pass(ANSWERS) == (
        "In one pass over 80 documents, a right or wrong for each, `part` has an average loss of 0.080 and Vowpal "
        "Wabbit's best (b, -l 3) 0.150."
    )
    with pytest.raises(DataError, match="has nothing of Vowpal Wabbit"):
        findings.one_pass([row for row in ANSWERS if "Vowpal" not in row["title"]])


def test_words_alone_stand_beside_words_and_parts_of_speech():
    words = [{"columns": "parts of speech", "features": "44", "learner": "t", "answers": "0", "test_mean": "0.8319"}]
    assert findings.from_words(ANSWERS, words).splitlines()[2:] == [
        *(
            f"| noun phrases, {which}: `{rule}` | 0.900 | 0.950 |"
            for which in ("words and parts of speech", "words with clusters", "words alone")
            for rule in ("part", "span")
        ),
        "| no answers: each of the 44 parts of speech with its most frequent tag | 0.832 | 0.832 |",
    ]


def test_a_learner_that_is_not_there_is_named():
    with pytest.raises(DataError, match="has no 'label' of answers-chunking"):
        findings.answers_cost([row for row in ANSWERS if row["title"] != "label"])
