"""One process at a time, and a lock that dies with its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sparsezo.errors import SparsezoError
from sparsezo.storage import locks
from sparsezo.storage.locks import FOLDER_LOCK, locked, remove_abandoned, temporary_folder

HOLD = """
import sys
from pathlib import Path
from sparsezo.storage.locks import locked, temporary_folder
path = Path(sys.argv[1])
with locked(path), temporary_folder(path.parent, "made-"):
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
        assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [".model.lock"]
    assert not [path for path in tmp_path.iterdir() if path.is_file()]


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


def made(place: Path) -> list[Path]:
    return sorted(place.glob("made-*"))


def test_a_temporary_folder_goes_with_its_maker_or_with_whoever_looks_next(tmp_path, holder):
    (other,) = made(tmp_path)
    with temporary_folder(tmp_path, "made-", ".tmp") as own:
        (own / "part").mkdir()
        (own / "part" / "file").write_text("x")
        assert own.name.endswith(".tmp")
        remove_abandoned(made(tmp_path))
        assert made(tmp_path) == sorted([own, other])
        assert (own / "part" / "file").read_text() == "x"
        holder.kill()
        holder.wait()
        assert made(tmp_path) == sorted([own, other])  # the dead cannot tidy up
        remove_abandoned(made(tmp_path))
        assert made(tmp_path) == [own]
    assert made(tmp_path) == []


def test_without_locks_no_temporary_folder_is_taken_from_anybody(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "fcntl", None)
    with temporary_folder(tmp_path, "made-") as own:
        remove_abandoned(made(tmp_path))
        assert made(tmp_path) == [own]
    assert made(tmp_path) == []


def test_what_a_link_leads_to_is_left_alone(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "made-link").symlink_to(tmp_path / "home")
    remove_abandoned([*made(tmp_path), tmp_path / "made-gone"])
    assert os.listdir(tmp_path / "home") == []


def test_a_temporary_folder_removed_before_it_was_locked_is_made_anew(tmp_path, monkeypatch):
    real, seen = locks.tempfile.mkdtemp, []

    def mkdtemp(**how):
        seen.append(real(**how))
        if len(seen) == 1:
            remove_abandoned(made(tmp_path))
        return seen[-1]

    monkeypatch.setattr(locks.tempfile, "mkdtemp", mkdtemp)
    with temporary_folder(tmp_path, "made-") as own:
        assert seen == [seen[0], str(own)]
        assert os.listdir(own) == [FOLDER_LOCK]
        assert made(tmp_path) == [own]
