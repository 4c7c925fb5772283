"""A test that hangs is ended, with its name, and does not stop all others for ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HANGS = """
import threading

def test_hangs():
    threading.Event().wait()
"""


def test_every_test_has_a_limit(request):
    assert float(request.config.getini("timeout")) == 300
    assert request.config.getini("timeout_method") == "thread"
    assert request.config.pluginmanager.hasplugin("timeout")


def test_a_test_that_hangs_is_ended_and_named(tmp_path):
    path = tmp_path / "test_one.py"
    path.write_text(HANGS)
    ours = Path(__file__).parents[1] / "pyproject.toml"
    words = ["-m", "pytest", "-c", ours, "--rootdir", tmp_path, "-p", "no:cacheprovider", "--timeout", "0.5", path]
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode != 0
    assert "Timeout" in done.stdout + done.stderr
    assert "test_hangs" in done.stdout + done.stderr


@pytest.mark.torture
def test_long_tests_have_more(request):
    assert request.node.get_closest_marker("timeout").args == (3600,)
