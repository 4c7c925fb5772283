"""A Ray worker's folder on its node; all else of it is tested on a real Ray (test_ray.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sparsezo.study.engines.ray import RayWorker

WORK = """
import sys
from sparsezo.study.engines.ray import RayWorker
worker = RayWorker("results", sys.argv[1], 30.0)
print("at work", flush=True)
sys.stdin.read()
"""


def folders(place: Path) -> set[Path]:
    return set(place.iterdir())


def test_a_worker_removes_its_folder_and_those_of_killed_ones(tmp_path):
    """Not those of workers that live, and nothing that is no worker's."""
    (tmp_path / "mine").mkdir()
    call = [sys.executable, "-c", WORK, str(tmp_path)]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"at work\n"
        (theirs,) = folders(tmp_path) - {tmp_path / "mine"}
        first = RayWorker("results", str(tmp_path), 30.0)
        assert folders(tmp_path) == {tmp_path / "mine", theirs, first.folder}
        other.kill()
        other.wait()
        second = RayWorker("results", str(tmp_path), 30.0)
        assert folders(tmp_path) == {tmp_path / "mine", first.folder, second.folder}
    first.leave()
    second.leave()
    assert folders(tmp_path) == {tmp_path / "mine"}
