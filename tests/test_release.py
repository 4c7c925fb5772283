"""What a release is: a wheel and a source distribution that work with nothing but what they declare, oldest and newest.

Python is the one that runs the tests; packages come from the index that pip is set to.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sparsezo

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
ENVIRONMENT = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}


def test_the_changelog_begins_with_this_version_and_a_day():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    version, day = re.search(r"^## (\S+) \((.+)\)$", text, re.MULTILINE).groups()
    assert version == sparsezo.__version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", day)
    assert f"date-released: {day}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


def run(*command: object, cwd: Path, **more: str) -> str:
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env={**ENVIRONMENT, **more}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stderr[-3000:]}"
    return done.stdout


def fresh(folder: Path, *packages: str) -> Path:
    """The programs of a new environment that has these packages."""
    run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    run(folder / "bin" / "pip", "install", "-q", "--disable-pip-version-check", *packages, cwd=folder)
    return folder / "bin"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("built")
    tools = fresh(folder / "tools", *PROJECT["build-system"]["requires"])
    run(tools / "python", "-m", "hatchling", "build", "-d", folder / "dist", cwd=ROOT)
    (wheel,) = (folder / "dist").glob("*.whl")
    (source,) = (folder / "dist").glob("*.tar.gz")
    return {"wheel": wheel, "source": source}


def oldest() -> list[str]:
    """What is declared, each at its lower bound."""
    return [re.match(r"[\w-]+>=[\d.]+", each)[0].replace(">=", "==") for each in PROJECT["project"]["dependencies"]]


@pytest.mark.torture
@pytest.mark.parametrize("which", ["wheel", "source"])
@pytest.mark.parametrize("versions", ["oldest", "newest"])
def test_it_works_with_nothing_but_what_it_declares(built, tmp_path, which, versions):
    programs = fresh(tmp_path / "env", str(built[which]), *(oldest() if versions == "oldest" else []))
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}

    def does(*words: object) -> str:
        return run(programs / "sparsezo", *words, cwd=tmp_path, **cache)

    assert does("--version") == f"sparsezo {sparsezo.__version__}\n"
    assert "train" in does("--help")
    assert "--rule" in does("train", "chunking", "--help")
    told = does("doctor")
    for line in oldest() if versions == "oldest" else []:
        name, _, version = line.partition("==")
        assert name not in ("numpy", "numba") or f"{name} {version}" in told
    does("data", "make", "chunking", "-o", "data/", "-n", 200)
    does("train", "chunking", "--train", "data/train.txt", "--only", "NP", "--iterations", 1000, "-o", "m.szo")
    assert " B-NP\n" in does("predict", "m.szo", "data/test.txt")
    asked = ("--rule", "review", "--answers", 20, "-o", "r.szo")
    does("train", "chunking", "--train", "data/train.txt", "--only", "NP", *asked)
    assert list((tmp_path / "env").rglob("sparsezo/py.typed"))
