"""Which engine does the runs: what is asked for is what is opened, and what cannot be is refused before any work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sparsezo.errors import EXTRAS, NotInstalledError, UsageError
from sparsezo.study.engines import ray as ray_module
from sparsezo.study.engines.base import EngineOptions
from sparsezo.study.engines.local import LocalEngine


@pytest.fixture
def installed(monkeypatch):
    """Whether or not Ray is: nothing here starts it."""
    monkeypatch.setattr("sparsezo.errors.find_spec", lambda name: True)


def test_this_machine_is_the_default(tmp_path):
    engine = EngineOptions(processes=3).open(tmp_path, int, print)
    assert isinstance(engine, LocalEngine)
    assert (engine.out, engine.load, engine.processes, engine._once.sayer) == (tmp_path, int, 3, print)


@pytest.mark.parametrize("address", [None, "auto", "ray://head.example:10001", "ray://[::1]:10001"])
def test_ray_is_opened_with_its_address(installed, tmp_path, address):
    engine = EngineOptions("ray", address, 3).open(tmp_path, int, print)
    assert isinstance(engine, ray_module.RayEngine)
    assert (engine.out, engine.load, engine.processes, engine.address) == (tmp_path, int, 3, address)
    assert engine._once.sayer is print


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"engine": "spark"}, "`engine` spark: choose from local, ray"),
        ({"processes": 0}, "`processes` 0: must be a whole number, 1 or more"),
        ({"ray_address": "auto"}, "`ray_address` goes with `engine` ray"),
        ({"engine": "ray", "ray_address": ""}, "`ray_address` : give auto or ray://HOST:PORT"),
        ({"engine": "ray", "ray_address": "here"}, "`ray_address` here: give auto or ray://HOST:PORT"),
        ({"engine": "ray", "ray_address": "ray://:1"}, "`ray_address` ray://:1: give auto or ray://HOST:PORT"),
        ({"engine": "ray", "ray_address": "ray://a:b"}, "`ray_address` ray://a:b: give auto or ray://HOST:PORT"),
    ],
)
def test_what_cannot_be_is_refused(installed, given, message):
    with pytest.raises(UsageError) as caught:
        EngineOptions(**given)
    assert str(caught.value) == message


def test_without_ray_one_line_says_what_to_install(program, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in EXTRAS["ray"]:
        monkeypatch.setitem(sys.modules, name, None)
    line = "this needs ray, grpcio; install with: pip install ray grpcio"
    with pytest.raises(NotInstalledError) as caught:
        EngineOptions("ray")
    assert str(caught.value) == line
    for words in ("reproduce chunking --data generated", "tune chunking --train a --dev b"):
        assert program(*words.split(), "--engine", "ray") == (2, "", f"sparsezo: {line}\n")
    assert not list(tmp_path.iterdir())
    assert EngineOptions() == EngineOptions("local")


def test_scaling_is_about_this_machine(program, installed):
    message = "sparsezo: --engine ray: reproduce scaling measures this machine; leave it out\n"
    assert program("reproduce", "scaling", "--engine", "ray") == (2, "", message)


def test_nobody_imports_ray_who_does_not_use_it():
    ours = "sparsezo.cli.app, sparsezo.cli.reproduce, sparsezo.study.engines.ray"
    script = f"import sys, {ours}; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, cwd=Path(__file__).parent).returncode == 0
