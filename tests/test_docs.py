"""What pages show is what docs/results has, and what docs/results has says how it was made."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from sparsezo.storage.checksummed import read_checksummed

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
COLUMNS = {"all": "all", "active": "active", "score (not in the paper)": "score"}
LEARNED_NOTHING = ("out-of-domain", "in-domain", "oracle")


def table(name: str) -> dict[str, dict[str, str]]:
    with open(RESULTS / name / "table.csv", encoding="utf-8", newline="") as stream:
        return {row["learner"]: row for row in csv.DictReader(stream)}


INTRODUCED = {  # the words that stand before the page's table
    "chunking": "Noun-phrase chunking, CoNLL-2000, 4M iterations, test F1",
    "text": "Text classification, 20 Newsgroups in four classes, 1M iterations, test accuracy",
    "smt": "Reranking, News Commentary n-best lists",
}
README = (ROOT / "README.md").read_text("utf-8")
PAGE = (RESULTS / "README.md").read_text("utf-8")


def introduction(name: str) -> int:
    assert PAGE.count(INTRODUCED[name]) == 1
    return PAGE.index(INTRODUCED[name])


def shown(name: str) -> list[dict[str, str]]:
    """The rows of the page's table on an experiment, by column: the first table after the words that introduce it."""
    after = PAGE[introduction(name) :]
    block = re.search(r"(?:^\|.*\|\n)+", after, re.MULTILINE)[0]
    assert "##" not in after[: after.index(block)]
    head, _, *rows = ([cell.strip() for cell in line.strip("|\n").split("|")] for line in block.splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.parametrize(("name", "digits"), [("chunking", 3), ("text", 3), ("smt", 4)])
def test_the_page_shows_the_tables_figures(name, digits):
    """All of them but the oracle's; the paper's beside ours wherever the table has one."""
    results, checked = table(name), []
    for row in shown(name):
        for column, cell in row.items():
            perturb = COLUMNS.get(column)
            rule, *criterion = row["learner"].split() if perturb else [row["learner"]]
            learner = " ".join([rule, *filter(None, [perturb]), *criterion])
            if not cell or not (perturb or column == "test"):
                continue
            figure, paper = re.fullmatch(r"([\d.]+)(?: \(([\d.]+)\))?", cell).groups()
            assert float(figure) == round(float(results[learner]["test_mean"]), digits), learner
            assert (float(paper) if paper else None) == _number(results[learner]["paper"]), learner
            checked.append(learner)
    assert sorted(checked) == sorted(set(results) - {"oracle"})


def _number(text: str) -> float | None:
    return float(text) if text else None


@pytest.mark.parametrize(("name", "iterations"), [("chunking", "4000000"), ("text", "1000000"), ("smt", "4000000")])
def test_the_tables_are_of_tuned_settings_and_at_least_three_seeds(name, iterations):
    """As the page says above them; weights that are only evaluated have neither."""
    learned = [row for learner, row in table(name).items() if learner not in LEARNED_NOTHING]
    assert {(row["phase"], row["iterations"]) for row in learned} == {("tuned", iterations)}
    (seeds,) = {row["seeds"] for row in learned}
    assert len(seeds.split()) >= 3
    assert f"{name}: {len(seeds.split())}" in PAGE


@pytest.mark.parametrize("name", ["chunking", "smt", "text", "noise"])
def test_verdicts_are_of_the_table_beside_them(name):
    verdicts = read_checksummed(RESULTS / name / "verdicts.json")
    assert verdicts["experiments"] == [name]
    assert {row["signature"] for row in table(name).values()} == set(verdicts["signatures"])
    text = (RESULTS / name / "table.md").read_text("utf-8")
    for claim in verdicts["claims"]:
        assert f"- **{claim['verdict']}**: {claim['title']} (" in text


def test_what_is_said_of_undivided_steps_is_in_their_table():
    with open(RESULTS / "chunking" / "undivided.csv", encoding="utf-8", newline="") as stream:
        rows = {row["learner"]: row for row in csv.DictReader(stream)}
    assert {(row["phase"], row["iterations"], row["seeds"]) for row in rows.values()} == {
        ("undivided", "4000000", "0 1 2 3 4")
    }
    loss = {name: float(row["average_loss_mean"]) for name, row in rows.items()}
    for rule in ("two-point", "comparison", "baseline"):
        active, every = loss[f"{rule} active"], loss[f"{rule} all"]
        assert active < every
        assert f"{rule} {active:.3f} against {every:.3f}" in " ".join(PAGE.split())
    assert loss["baseline active"] > loss["comparison active"]


def test_the_table_of_real_peoples_ratings_is_of_its_runs():
    with open(RESULTS / "ratings" / "ratings.csv", encoding="utf-8", newline="") as stream:
        found = list(csv.DictReader(stream))
    page = (ROOT / "docs" / "answers.md").read_text("utf-8")
    for way in {row["way"] for row in found}:
        mine = [row for row in found if row["way"] == way]
        means = [
            sum(values) / len(values)
            for n in ("300", "1000", "3000", "10000")
            for values in [[float(row["accuracy"]) for row in mine if row["ratings"] == n]]
        ]
        assert f"| {way} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |" in page


def test_what_is_said_of_answers_is_in_their_table():
    """The figures that the prose rests on; a row is a learner after so many answers."""
    with open(RESULTS / "answers" / "table.csv", encoding="utf-8", newline="") as stream:
        rows = {(row["experiment"], row["title"], row["answers"]): row for row in csv.DictReader(stream)}
    said = " ".join(PAGE[PAGE.index("- **Answers, in minutes.**") : PAGE.index("- **Words alone.**")].split())
    for experiment, title, answers, digits, words in (
        ("answers-chunking", "part", "1000", 3, "make a chunker of test F1 {},"),
        ("answers-chunking", "part", "5000", 3, "5,000 answers {}."),
        ("answers-rerank", "pair", "0", 4, "lift BLEU from {} to"),
    ):
        assert words.format(f"{float(rows[experiment, title, answers]['test_mean']):.{digits}f}") in said, words
    tables = (RESULTS / "answers" / "table.md").read_text("utf-8")  # reranking: of the weights that are best on dev
    table = tables[tables.index("of the weights best on dev") :]
    head, pair, nothing = (
        [
            cell.strip().partition(" ")[0]
            for cell in re.search(rf"^\| {title} \|(.*)$", table, re.MULTILINE)[1].split("|")
        ]
        for title in ("learner", "pair", "pair answered at random")
    )
    for row, look, words in (
        (pair, "1k", " to {}, 10,000"),
        (pair, "10k", "10,000 to {};"),
        (nothing, "10k", "to {} ("),
    ):
        assert words.format(row[head.index(look)]) in said, words


def test_the_clock_that_the_page_states_is_that_of_the_results():
    """The minutes rest on it."""
    stated, said = (RESULTS / "answers" / "table.md").read_text("utf-8"), " ".join(PAGE.split())
    for name, words in (
        ("reviewing an output", "a review of a whole sentence takes {}"),
        ("a yes or no", "a single question {}"),
        ("labelling an input from nothing", "a sentence labelled from nothing {}"),
    ):
        assert words.format(re.search(rf"{name} ([^;]+?)[;.] ?\n?", stated + ";")[1]) in said


def test_headline_and_strongest_rival_stand_together():
    """Answers beside whole sentences, least sure first; with parts of speech beside words alone."""
    for name in ("answers-cost", "answers-minutes", "answers-words"):
        assert f"<!-- {name}: written by make findings -->" in PAGE
    for who in ("Tsuboi", "Tomanek and Hahn", "Marcheggiani and Artières", "Hu et al."):
        assert who in README
        assert who in (ROOT / "docs" / "deviations.md").read_text("utf-8")


def test_nothing_is_installed_by_a_name_that_no_index_has():
    """The package is installed from a clone: pip install '.[serve]'."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    wrong = [str(page) for page in pages if re.search(r"pip install '?sparsezo", page.read_text("utf-8"))]
    assert not wrong


def test_only_passes_are_said_to_be_flat_in_n():
    said = PAGE[PAGE.index("<!-- scaling: ") : PAGE.index("<!-- end of scaling -->")]
    assert said.count("n^") == 6
    assert "Flat in n: passes with `active`, passes with `score`." in said


@pytest.mark.parametrize("name", ["chunking", "text", "smt"])
def test_both_forms_of_a_table_have_the_same_figures(name):
    text = (RESULTS / name / "table.md").read_text("utf-8")
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        if len(cells) > 2 and cells[1][:1].isdigit():
            rows.setdefault(cells[0], cells)
    for learner, row in table(name).items():
        mean, _, sd = rows[learner][1].replace("*", "").partition(" ± ")
        assert float(mean) == round(float(row["test_mean"]), 4), learner
        assert (float(sd) if sd else None) == (round(float(row["test_sd"]), 4) if row["test_sd"] else None), learner


@pytest.mark.parametrize("name", ["chunking", "smt", "text", "noise", "scaling", "answers"])
def test_results_say_how_they_were_made(name):
    assert f"sparsezo reproduce {name}" in PAGE


def test_the_results_that_are_kept_are_small_and_every_picture_is_shown():
    files = [path for path in RESULTS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 3e6
    assert {path.suffix for path in files} <= {".md", ".csv", ".json", ".png"}
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        (page.parent / at).resolve() for page in pages for at in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text())
    }
    assert {path for path in files if path.suffix == ".png"} <= shown


@pytest.mark.parametrize("name", ["chunking", "text", "smt", "scaling"])
def test_the_page_leads_to_the_report(name):
    assert f"]({name}/" in PAGE


def test_links_lead_somewhere():
    followed = 0
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
            followed += 1
    assert followed >= 200


def test_reasons_to_choose_are_figures_of_the_pages_they_lead_to():
    page, figures = ROOT / "docs" / "choosing.md", 0
    for line in page.read_text("utf-8").splitlines():
        reasons = line.strip("|").rpartition(" | ")[2]
        if not (links := re.findall(r"\]\(([^)#]+)[^)]*\)", reasons)):
            continue
        told = " ".join((page.parent / link).read_text("utf-8") for link in links)
        for figure in re.findall(r"(?<![\w.-])\d[\d,.]*\d(?![\w-])", re.sub(r"\]\([^)]*\)", "]", reasons)):
            assert re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", told), f"{figure}: {reasons}"
            figures += 1
    assert figures > 50


def test_readme_is_two_screens():
    assert len(README.splitlines()) <= 100
