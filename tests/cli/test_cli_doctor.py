"""doctor: what is there, what is not, and what is wrong."""

from __future__ import annotations

import json
import os
import shutil
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sparsezo.cli.doctor import PURPOSES, processor
from sparsezo.errors import EXTRAS
from sparsezo.kernels import jit

pytestmark = pytest.mark.usefixtures("plain")


def test_a_sound_installation(program):
    code, out, _ = program("doctor")
    assert code == 0
    assert out.splitlines()[-1] == "nothing is wrong"
    assert f"numpy {np.__version__}" in out
    assert str(jit.CACHE) in out


def test_what_each_extra_is_for_is_known():
    assert PURPOSES.keys() == EXTRAS.keys()


def test_what_is_not_installed_is_named_with_the_line_that_installs_it(program, monkeypatch):
    version = metadata.version

    def without(name: str) -> str:
        if name == "sacrebleu":
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without)
    code, out, _ = program("doctor")
    assert code == 0  # nothing is wrong with that
    assert "pip install sacrebleu" in out
    assert "pip install matplotlib" not in out
    fields = json.loads(program("doctor", "--json")[1])
    assert fields["extras"]["rerank"] == {"sacrebleu": None}
    assert fields["wrong"] == []


def test_a_full_disk_is_wrong(program, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**8))
    code, out, _ = program("doctor")
    assert code == 1
    assert f"wrong: {jit.CACHE}: 100 MB are free; make room" in out


def test_compiled_code_that_is_not_kept_is_wrong(program, monkeypatch, tmp_path):
    folder = tmp_path / "sparsezo-abcd_123"
    folder.mkdir()
    monkeypatch.setattr(jit, "CACHE", folder)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    code, out, _ = program("doctor")
    assert code == 1
    assert f"compiled code is kept in {folder} for one start only" in out


def test_collections_are_found(program, monkeypatch, tmp_path):
    folder = tmp_path / "conll2000"
    folder.mkdir()
    for name in ("train.txt.gz", "test.txt.gz"):
        (folder / name).write_bytes(b"")
    monkeypatch.setenv("SPARSEZO_DATA", str(tmp_path))
    out = program("doctor")[1]
    assert f"data conll2000: {folder}" in out
    assert "data rcv1: not here" in out


def test_the_processor(monkeypatch):
    here = processor()
    assert here["name"]
    assert here["cores"] == os.cpu_count()
    monkeypatch.setattr("numba.config.CPU_NAME", "haswell")
    assert processor()["name"] == "haswell"  # its vectors are not this machine's


def test_what_every_command_needs_is_listed(program):
    libraries = json.loads(program("doctor", "--json")[1])["libraries"]
    wanted = (Path(__file__).parents[2] / "pyproject.toml").read_text().split("dependencies = [")[1].split("]")[0]
    assert [name for name in libraries if name != "sparsezo"] == sorted(
        each.strip(' "').split(">")[0] for each in wanted.split('", ')
    )
