"""What a command needs beyond a plain install is asked for before its work, in one line."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

import sparsezo
from sparsezo.errors import EXTRAS, NotInstalledError, need, package_of

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def plain_install(monkeypatch):
    """Nothing that an extra brings can be found."""
    for modules in EXTRAS.values():
        for each in modules:
            if each != "pydantic":  # Typer's own, by now
                monkeypatch.setitem(sys.modules, each, None)


def test_what_is_there_is_not_missed():
    need("text", "rerank", "report", None)


def test_all_that_is_missing_is_said_at_once(plain_install):
    with pytest.raises(NotInstalledError) as caught:
        need("rerank", None, "text", "rerank")
    assert str(caught.value) == ("this needs sacrebleu, scikit-learn; install with: pip install sacrebleu scikit-learn")


def test_extras_are_those_of_the_package():
    declared = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    optional = declared["project"]["optional-dependencies"]
    for name, modules in EXTRAS.items():
        wanted = {package_of(each) for each in modules}
        assert {line.split(">")[0] for line in optional[name]} == wanted


SOME = "; install with: pip install "


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("demo", "report,text,rerank"),
        ("reproduce smt --data generated", "report"),
        ("reproduce scaling", "report"),
        ("train text --train nowhere -o m", "text"),
        ("train rerank --train nowhere --dev nowhere -o m", "rerank"),
        ("train rerank --train nowhere --test nowhere -o m", "rerank"),
        ("tune text --train nowhere --dev nowhere", "text"),
        ("tune rerank --train nowhere --dev nowhere", "rerank"),
        ("tune chunking --train nowhere --dev nowhere --engine ray", "ray"),
        ("theory --task text --data nowhere", "text"),
    ],
)
def test_a_command_asks_before_it_works(program, plain_install, tmp_path, monkeypatch, words, wanted):
    monkeypatch.chdir(tmp_path)
    code, out, err = program(*words.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("sparsezo: this needs ")
    named, line = err.rstrip().removeprefix("sparsezo: this needs ").split(SOME)
    modules = {each for extra in wanted.split(",") for each in EXTRAS[extra]}
    assert set(line.split()) == {package_of(each) for each in modules}
    assert named.split(", ") == line.split()
    assert not list(tmp_path.iterdir())


def test_what_there_is_not_is_said_before_what_is_not_installed(program, plain_install):
    code, _, err = program("reproduce", "nosuch")
    assert (code, err.partition(":")[2][:20]) == (2, " experiment nosuch: ")


@pytest.mark.parametrize("words", ["train rerank --train nowhere -o m", "train chunking --train nowhere -o m"])
def test_nothing_is_asked_for_that_is_not_needed(program, plain_install, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    _, _, err = program(*words.split())
    assert ("nowhere" in err, "install" in err) == (True, False)


def test_each_dependency_has_its_licence_in_docs():
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    page = (root / "docs" / "licences.md").read_text()
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.split(r"[^\w.-]", line)[0] for each in lists for line in each} - {"sparsezo"}
    assert [name for name in sorted(names) if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", page)] == []


def test_the_citation_names_this_version():
    root = Path(__file__).parents[1]
    assert f"\nversion: {sparsezo.__version__}\n" in (root / "CITATION.cff").read_text()
