"""The templates of the pages: whatever they print is escaped, nothing is fetched, and an installed package has them."""

from __future__ import annotations

import re
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from reported import Page

from sparsezo.errors import UsageError
from sparsezo.study.reports.claims import Claim
from sparsezo.study.reports.comparisons import Comparison, Quantity
from sparsezo.study.reports.figures import Figure
from sparsezo.study.reports.render import render
from sparsezo.study.reports.report import Section, report_page, write_report
from sparsezo.study.reports.results import LearnerRuns, ReportedExperiment, ReportedRun, Spread
from sparsezo.study.reports.scaling import run_scaling
from sparsezo.study.reports.tables import PlainTable, Table, TableRow

jinja2 = pytest.importorskip("jinja2")

TEMPLATES = {"base.html.j2", "parts.html.j2", "report.html.j2", "scaling.html.j2", "style.css"}
SVG = '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="9pt" height="9pt"><path id="a"/></svg>\n'


def evil(place):
    """A text that breaks out of any place that does not escape it, and says which."""
    return f"\"'--></pre></style></svg><evil>{place}</evil>&lt;&amp; {{{{ 1 }}}}"


def shown(page):
    """Which of the evil texts stand in a page, as texts or in attributes; none of them is a tag."""
    reader = Page(page)
    assert "evil" not in reader.tags
    text = "\n".join(["".join(reader.text), *(value or "" for _, value in reader.attributes)])
    places = re.findall(r"<evil>(.*?)</evil>", text)
    assert all(evil(place) in text for place in places)
    return sorted(set(places))


def figure(name="drawn"):
    return Figure(name, "", evil("caption"), evil("figure signature"), SVG)


def experiment(gaps):
    settings = {name: evil(name) for name in ("step", "criterion", "h", "mu")}
    versions = {"numpy": evil("version")}
    run = ReportedRun("", "fixed", 0, settings, 100, {"n": 9, "seconds": 1.0}, {}, versions, None, None)
    learner = LearnerRuns(evil("learner"), "two-point", "all", True, {"fixed": (run,)})
    trial = {"h": evil("trial h"), "mu": evil("trial mu"), "seeds": evil("trial seeds"), "dev": 0.5}
    chosen = {"h": trial["h"], "mu": trial["mu"]}
    return ReportedExperiment(
        Path(),
        evil("name"),
        evil("task"),
        "f1",
        (run,),
        (learner,),
        {"note": evil("note"), "data": {"train": evil("data")}},
        evil("declared"),
        {evil("tuned learner"): {"trials": [trial], "chosen": chosen, "note": evil("tuning note")}},
        gaps=tuple(evil(f"gap {i}") for i in range(gaps)),
    )


def claim():
    quantity = Quantity("test", evil("quantity"), False, ("fixed",))
    values = Spread((0.5, 0.6)), Spread((0.4, 0.5))
    item = Comparison(evil("left"), evil("right"), *values, quantity, evil("phase"), evil("aside"))
    return Claim(evil("claim"), evil("source"), evil("verdict"), evil("words"), (item,))


def section(gaps=1, figures=1):
    row = TableRow(evil("group"), evil("row"), "fixed", marks=evil("marks"), best=True)
    groups, notes = ((evil("group"), (row,)),), (evil("table note"),)
    table = Table("", "", evil("metric"), "", "fixed", (row,), notes, evil("signature"), groups)
    drawn = tuple(figure(f"drawn-{i}") for i in range(figures))
    return Section(experiment(gaps), evil("slug"), table, drawn, (claim(),), (evil("summary"),))


def scaling_page(command="sparsezo reproduce scaling"):
    table = PlainTable((evil("head"), "b"), [(evil("cell"), "2"), ("3", evil("chosen"))], (0,), frozenset({1}))
    context = {"title": evil("title"), "figure": figure(), "words": evil("words"), "exponents": table}
    return render("scaling.html.j2", command=command, **context)


def test_no_name_breaks_out_of_the_report():
    places = shown(report_page([section()], evil("command")))
    assert places == sorted(
        [
            *("slug", "name", "task", "summary", "gap 0", "command"),
            *("group", "row", "marks", "metric", "table note", "signature"),
            *("caption", "figure signature"),
            *("claim", "source", "verdict", "words", "quantity", "left", "right", "phase", "aside"),
            *("learner", "step", "criterion", "h", "mu", "version", "data", "note", "declared"),
            *("tuned learner", "trial h", "trial mu", "trial seeds", "tuning note"),
        ]
    )


def test_no_name_breaks_out_of_the_page_on_scaling():
    places = shown(scaling_page(evil("command")))
    assert places == sorted(
        ["title", "caption", "figure signature", "words", "head", "cell", "chosen", "command"],
    )


def test_many_gaps_are_folded_and_escaped():
    few, many = (report_page([section(gaps=count)]) for count in (6, 7))
    assert "<p>Missing or odd:</p>" in few
    assert '<details class="gaps"><summary>7 things are missing or odd</summary>' in many
    assert {f"gap {i}" for i in range(7)} <= set(shown(many))
    assert "gaps" not in re.findall(r'class="(\w+)"', report_page([section(gaps=0)]))


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_what_is_not_installed_is_named_before_any_work(tmp_path, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    for call in (lambda: write_report([tmp_path], tmp_path / "report"), lambda: run_scaling(tmp_path / "report")):
        with pytest.raises(UsageError, match=f"^this needs {missing}; install with: pip install {missing}$"):
            call()
    assert not (tmp_path / "report").exists()


def test_everything_is_escaped_but_style_and_figures():
    folder = files("sparsezo.study.reports") / "templates"
    for name in TEMPLATES:
        text = (folder / name).read_text("utf-8")
        assert not re.search(r"\bsafe\b|autoescape|Markup", text)
        assert not re.search(r"=\s*{{", text)  # an attribute without quotes would end at a space


def test_an_installed_package_has_the_templates():
    found = {entry.name for entry in (files("sparsezo.study.reports") / "templates").iterdir()}
    assert found >= TEMPLATES
    loader = jinja2.PackageLoader("sparsezo.study.reports")
    assert set(loader.list_templates()) == found


def test_a_name_that_a_page_lacks_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match="figure"):
        render("scaling.html.j2", title="x")
