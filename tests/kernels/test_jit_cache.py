"""Where compiled code is kept: Numba unpickles what it finds there, so nobody else may put anything in it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sparsezo.errors import SparsezoError
from sparsezo.kernels import jit
from sparsezo.storage import locks

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no owners here")


@pytest.fixture
def places(tmp_path, monkeypatch):
    """(the user's own choice, the user's cache, the temporary folder), all of them this test's."""
    chosen, cache, temporary = (tmp_path / name for name in ("chosen", "cache", "temporary"))
    for folder in (chosen, cache, temporary):
        folder.mkdir(mode=0o700)
    temporary.chmod(0o1777)
    monkeypatch.setattr(jit.numba.config, "CACHE_DIR", str(chosen))
    monkeypatch.setattr(jit, "cache_folder", lambda kind: cache / "sparsezo" / kind)
    monkeypatch.setattr(jit.tempfile, "tempdir", str(temporary))
    return chosen, cache, temporary


def folder() -> Path:
    return jit._cache_folder("loop", [Path(__file__)])


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def fallback(temporary: Path) -> Path:
    return temporary / f"sparsezo-{os.getuid()}"


def test_the_first_safe_place_is_taken_and_made_for_this_user_alone(places, monkeypatch):
    chosen, cache, temporary = places
    found = folder()
    assert found.parent == chosen / "sparsezo" / "jit"
    assert folder() == found
    monkeypatch.setattr(jit.numba.config, "CACHE_DIR", "")
    assert folder().parent == cache / "sparsezo" / "jit"
    cache.chmod(0o777)
    in_temporary = folder()
    assert in_temporary.parent == fallback(temporary) / "sparsezo" / "jit"
    for path in (found, found.parent, in_temporary, *list(in_temporary.parents)[:3]):
        assert mode(path) == 0o700


@pytest.mark.parametrize("open_to", [0o770, 0o707, 0o777])
def test_a_folder_that_others_can_write_is_left_alone(places, open_to, monkeypatch):
    _, cache, temporary = places
    monkeypatch.setattr(jit.numba.config, "CACHE_DIR", "")
    folder()
    (cache / "sparsezo").chmod(open_to)
    elsewhere = folder()
    assert elsewhere.is_relative_to(fallback(temporary))
    elsewhere.chmod(open_to)
    once = folder()
    assert once.parent == temporary
    assert (mode(once), once.owner()) == (0o700, elsewhere.owner())


def test_what_another_user_put_there_first_is_left_alone(places, monkeypatch):
    """The attack: in the temporary folder anybody may make a folder of our name."""
    _, cache, temporary = places
    monkeypatch.setattr(jit.numba.config, "CACHE_DIR", "")
    cache.chmod(0o777)
    planted = fallback(temporary)
    planted.mkdir(mode=0o755)
    real = os.lstat

    def lstat(path, *args, **kwargs):
        found = real(path, *args, **kwargs)
        if Path(path) != planted:
            return found
        return os.stat_result((*found[:4], os.getuid() + 1, *found[5:]))

    monkeypatch.setattr(jit.os, "lstat", lstat)
    assert folder().parent == temporary
    assert list(planted.iterdir()) == []


def test_a_link_is_not_followed(places, tmp_path, monkeypatch):
    _, cache, temporary = places
    monkeypatch.setattr(jit.numba.config, "CACHE_DIR", "")
    cache.chmod(0o777)
    (tmp_path / "theirs").mkdir(mode=0o700)
    fallback(temporary).symlink_to(tmp_path / "theirs")
    assert folder().parent == temporary
    assert list((tmp_path / "theirs").iterdir()) == []


def test_a_link_to_ones_own_cache_is_fine(places, tmp_path, monkeypatch):
    """~/.cache is often on another disk."""
    monkeypatch.setattr(jit.numba.config, "CACHE_DIR", "")
    (tmp_path / "disk").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    monkeypatch.setattr(jit, "cache_folder", lambda kind: tmp_path / "link" / "sparsezo" / kind)
    assert folder().parent == tmp_path / "disk" / "sparsezo" / "jit"


def test_a_choice_that_is_not_safe_is_said(places):
    chosen, cache, _ = places
    chosen.chmod(0o777)
    with pytest.warns(UserWarning, match=f"NUMBA_CACHE_DIR: others can write to {chosen}; the cache is elsewhere"):
        assert folder().is_relative_to(cache)


def test_the_folder_for_once_is_gone_at_the_end(tmp_path):
    """In a program of its own, where no place is safe."""
    program = (
        "import atexit\nfrom pathlib import Path\nfrom sparsezo.kernels import jit\n"
        "jit._safe = lambda *args, **kwargs: False\n"
        f"print(jit._cache_folder('loop', [Path({str(Path(__file__))!r})]))\n"
    )
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).parent == tmp_path
    assert list(tmp_path.glob("sparsezo-*")) == []


def test_what_stands_alone_is_known_by_all_that_is_compiled_into_it():
    from sparsezo.kernels import random
    from sparsezo.tasks import hashing

    files = jit._files_compiled_in(hashing.fold.py_func)
    assert files == sorted(Path(module.__file__) for module in (hashing, random))


def test_all_that_implements_the_protocol_is_there_before_anything_is_compiled(tmp_path):
    """Numba would import it while it types a caller, and fail, after another task's compilation was stopped."""
    script = """
import sys
import numpy as np
from sparsezo.kernels import jit, random
from sparsezo.kernels.inputs import rows
tasks = [f"sparsezo.tasks.{name}.kernels.task" for name in ("chunking", "rerank")]
others = ["sparsezo.kernels.inputs.sparse", *tasks]
assert not any(name in sys.modules for name in others)
random.mix(np.uint64(1))
print([name in sys.modules for name in others])
"""
    told = []
    for _ in range(2):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        told.append(subprocess.check_output([sys.executable, "-c", script], env=environment, text=True).strip())
    assert told == ["[True, True, True]", "[False, False, False]"]  # what is found compiled needs no others


def test_compiled_forms_are_saved_by_one_process_at_a_time(tmp_path, monkeypatch):
    """Two at once could give two forms one file, and whoever reads it would run the wrong one."""

    def doubled(x):
        return 2 * x

    compiled = jit._compile(doubled, {}, tmp_path)
    file, held = compiled._cache._cache_file, []

    def watched(key, data, save=file.save):
        with open(tmp_path / ".lock", "rb") as other:
            held.append(not locks.take(other.fileno()))
        save(key, data)

    monkeypatch.setattr(file, "save", watched)
    assert (compiled(2), compiled(1.5)) == (4, 3.0)
    assert held == [True, True]
    assert not (tmp_path / ".lock").exists()
    assert len(list(tmp_path.rglob("*.nbc"))) == 2


def test_where_nothing_can_be_locked_it_is_compiled_all_the_same(tmp_path, monkeypatch):
    def halved(x):
        return x / 2

    def refused(*_, **__):
        raise SparsezoError("cannot be written")

    monkeypatch.setattr(jit, "locked", refused)
    assert jit._compile(halved, {}, tmp_path)(3.0) == 1.5
