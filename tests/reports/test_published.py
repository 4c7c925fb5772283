"""Blocks of the docs, written from results: what is said changes with what was found, and a wrong page is refused."""

from __future__ import annotations

import csv

import pytest

from sparsezo.errors import DataError
from sparsezo.reports.published import (
    answers_cost,
    answers_minutes,
    blocks,
    from_words,
    in_short,
    main,
    one_pass,
    scaling,
    table,
    update,
)
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


def point(title, answers, mean, minutes, task="chunking", loss=""):
    known = {"answers": str(answers), "test_mean": str(mean), "minutes": str(minutes), "average_loss_mean": str(loss)}
    return {"task": task, "title": title, **known}


LEAST_SURE, AT_RANDOM = "whole sentences labelled, least sure first", "whole sentences labelled, at random"
ANSWERS = [
    *(point("part", n, mean, n / 10) for n, mean in ((0, 0.1), (100, 0.7), (1000, 0.9), (5000, 0.95))),
    *(point("label", n, mean, n / 5) for n, mean in ((0, 0.1), (1000, 0.8), (5000, 0.9))),
    *(point(LEAST_SURE, n, mean, n / 50) for n, mean in ((1000, 0.8), (10_000, 0.96))),
    *(point(AT_RANDOM, n, mean, n / 50) for n, mean in ((1000, 0.7), (10_000, 0.86))),
    *(point("first-order with baseline", n, mean, n) for n, mean in ((0, 0.1), (1000, 0.5), (5000, 0.85))),
    *(point("preference score", n, mean, n) for n, mean in ((0, 0.1), (1000, 0.2), (5000, 0.3))),
    point("part asked at random", 40, 0.8, 1, "text", 0.1),
    point("part asked at random", 80, 0.8, 1, "text", 0.08),
    point("part asked at random", 100, 0.8, 1, "text", 0.01),
    point("Vowpal Wabbit: a", 40, "", "", "text", 0.05),
    point("Vowpal Wabbit: a", 80, 0.8, "", "text", 0.2),
    point("Vowpal Wabbit: b, -l 3", 80, 0.9, "", "text", 0.15),
]


def test_costs_are_in_answers_and_in_minutes():
    assert answers_cost(ANSWERS).splitlines() == [
        "| test F1 | 0.85 | 0.90 | 0.93 |",
        "|---|---|---|---|",
        "| part | 560 (56 min) | 1,000 (100 min) | 2,600 (260 min) |",
        "| label | 2,200 (450 min) | 5,000 (1,000 min) | more than 5,000 |",
        "| whole sentences labelled, least sure first | 2,100 (41 min) | 4,200 (84 min) | 6,500 (130 min) |",
        "| whole sentences labelled, at random | 8,700 (170 min) | more than 10,000 | more than 10,000 |",
        "| first-order with baseline | 5,000 (5,000 min) | more than 5,000 | more than 5,000 |",
        "| preference score | more than 5,000 | more than 5,000 | more than 5,000 |",
    ]


def test_the_rival_is_told_in_tokens_and_in_the_same_minutes():
    text = answers_minutes(ANSWERS)
    assert "1,000 answers take 100 minutes and reach F1 0.900; " in text
    assert "reach that with 4,200 labelled tokens, and 0.912 in the same minutes" in text  # 0.8 + 0.16 log10(5)
    assert "5,000 answers take 500 minutes and reach F1 0.950; " in text
    assert text.endswith("reach that with 8,700 labelled tokens, and 0.960 in the same minutes.")


def test_both_have_seen_every_document_once():
    assert one_pass(ANSWERS) == (
        "In one pass over 80 documents, a right or wrong for each, `part` has an average loss of 0.080 and Vowpal "
        "Wabbit's best (b, -l 3) 0.150."
    )
    with pytest.raises(DataError, match="has nothing of Vowpal Wabbit"):
        one_pass([row for row in ANSWERS if "Vowpal" not in row["title"]])


def test_words_alone_stand_beside_words_and_parts_of_speech():
    words = [{"columns": "parts of speech", "features": "44", "learner": "t", "answers": "0", "test_mean": "0.8319"}]
    words += [
        {"columns": "words", "features": features, "learner": learner, "answers": str(n), "test_mean": str(mean)}
        for features, add in (("chunking", 0.0), ("ner", 0.1), ("ner --clusters en", 0.15))
        for learner, more in (("part", 0.0), ("label", 0.05), ("span", 0.08))
        for n, mean in ((1000, 0.5 + add + more), (5000, 0.6 + add + more))
    ]
    assert from_words(ANSWERS, words).splitlines()[2:] == [
        "| words and parts of speech | 0.900 | 0.950 |",
        "| words alone, `--features ner --clusters en`, rule `span` | 0.730 | 0.830 |",
        "| words alone, `--features ner --clusters en` | 0.650 | 0.750 |",
        "| words alone, `--features ner` | 0.600 | 0.700 |",
        "| words alone, `--features chunking` | 0.500 | 0.600 |",
        "| no answers: each of the 44 parts of speech with its most frequent tag | 0.832 | 0.832 |",
    ]


def test_a_learner_that_is_not_there_is_named():
    with pytest.raises(DataError, match="has no 'label' of task chunking"):
        answers_cost([row for row in ANSWERS if row["title"] != "label"])
