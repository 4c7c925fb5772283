"""One process at a time, and a lock that dies with its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from sparsezo.errors import SparsezoError
from sparsezo.storage.locks import locked

HOLD = """
import sys
from sparsezo.storage.locks import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "model")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


def test_the_second_process_is_refused(tmp_path, holder):
    with pytest.raises(SparsezoError) as caught, locked(tmp_path / "model", "is training it"):
        pass
    assert str(caught.value) == (
        f"{tmp_path / 'model'}: another process is training it; wait for it, or name another place with -o"
    )
    holder.communicate(b"")
    with locked(tmp_path / "model"):
        pass
    assert os.listdir(tmp_path) == []


def test_a_lock_dies_with_its_process(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with locked(tmp_path / "model"):
        assert os.listdir(tmp_path) == [".model.lock"]
    assert os.listdir(tmp_path) == []


def test_other_names_are_free_and_links_are_the_same(tmp_path, holder):
    with locked(tmp_path / "other"):
        pass
    (tmp_path / "link").symlink_to(tmp_path / "model")
    with pytest.raises(SparsezoError, match="another process"), locked(tmp_path / "link"):
        pass


def test_a_lock_is_held_within_one_process_too(tmp_path):
    with locked(tmp_path / "model"):
        with pytest.raises(SparsezoError, match="another process"), locked(tmp_path / "model"):
            pass
        with pytest.raises(SparsezoError, match="another process"), locked(tmp_path / "model"):
            pass  # the one refused has not taken it away
    with locked(tmp_path / "model"):
        pass


def test_a_lock_file_removed_between_open_and_lock_is_made_anew(tmp_path, monkeypatch):
    from sparsezo.storage import locks

    real, seen = locks.take, []

    def take(descriptor):
        if not seen:
            os.unlink(tmp_path / ".model.lock")  # the one before us ends just now
        seen.append(descriptor)
        return real(descriptor)

    monkeypatch.setattr(locks, "take", take)
    with locked(tmp_path / "model"):
        assert len(seen) == 2
        assert (tmp_path / ".model.lock").exists()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(SparsezoError, match="cannot be written"), locked(tmp_path / "none" / "model"):
        pass
