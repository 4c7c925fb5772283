"""The site: built strictly, whole, and with nothing fetched from elsewhere (docs/conf.py)."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PUBLIC = ("sparsezo", "sparsezo.sklearn", "sparsezo.torch")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """As make site makes it. A link or an anchor that leads nowhere, or a page that is nowhere listed, is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs", ".", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_it_has_every_page_and_begins_with_readme(site):
    written = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), ROOT / "examples" / "README.md"]
    assert len(written) >= 40
    for page in written:
        assert (site / page.relative_to(ROOT)).with_suffix(".html").exists(), page
    assert (site / "index.html").read_bytes() == (site / "README.html").read_bytes()


def test_nothing_is_fetched_from_elsewhere(site):
    """What a browser would load: scripts, styles, pictures, fonts."""
    loads = r"""<(?:script|img|iframe|source)\b[^>]*?\bsrc="([^"]*)"|<link\b(?![^>]*canonical)[^>]*?\bhref="([^"]*)\""""
    found = 0
    for page in site.rglob("*.html"):
        for groups in re.findall(loads, page.read_text("utf-8")):
            found += 1
            assert not re.match(r"(https?:)?//", "".join(groups)), f"{page.name}: {groups}"
    assert found > 100
    for style in site.rglob("*.css"):
        assert not re.search(r"""(url\(|@import)\s*["']?(https?:)?//""", style.read_text("utf-8")), style.name


def test_it_can_be_searched_without_a_network(site):
    """The index is a script beside the pages, so that it loads from a disk, too."""
    text = (site / "searchindex.js").read_text("utf-8")
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    assert "docs/serve" in index["docnames"]
    (serve,) = [k for k, name in enumerate(index["docnames"]) if name == "docs/serve"]
    assert serve in index["terms"]["retract"]


def test_the_reference_has_every_public_name(site):
    page = (site / "docs" / "reference.html").read_text("utf-8")
    headings = re.findall(r"<h3>([^<]+)<", page)
    names = [name for module in PUBLIC for name in importlib.import_module(module).__all__]
    assert sorted(headings) == sorted(set(names) - {"__version__"})
    assert page.count("<code") > 300
