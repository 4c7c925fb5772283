"""``compile_beside``: a second process does the work; nobody hears of it, and nothing of it is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

FORKS = sys.platform.startswith("linux") and len(os.sched_getaffinity(0)) > 1
pytestmark = pytest.mark.skipif(not FORKS, reason="needs Linux and two cores")


def told(program: str, **environment: str) -> str:
    """What a process of its own prints, which fails if anything is on its standard error."""
    begin = "import os, sys, threading, time\nfrom sparsezo.kernels.jit import compile_beside\n"
    program = begin + textwrap.dedent(program)
    env = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_another_process_does_it_and_is_waited_for():
    said = told("""
        r, w = os.pipe()
        def work():
            time.sleep(0.2)
            os.write(w, str(os.getpid()).encode())
        compile_beside(work)()
        os.set_blocking(r, False)
        print(int(os.read(r, 20)) != os.getpid())
        """)
    assert said == "True"


def test_what_it_says_and_where_it_fails_nobody_hears():
    said = told("""
        def work():
            print("working", flush=True)
            raise RuntimeError("no")
        print("before")
        compile_beside(work)()
        print("after")
        """)
    assert said == "before\nafter"


def test_it_ends_with_the_process_that_began_it():
    said = told("""
        r, w = os.pipe()
        def work():
            os.write(w, str(os.getpid()).encode())
            time.sleep(100)
        compile_beside(work)
        print(os.read(r, 20).decode())
        """)
    with pytest.raises(ProcessLookupError):
        os.kill(int(said), 0)


def test_beside_other_threads_there_is_none():
    """A lock that another thread holds would never be let go in the copy."""
    said = told("""
        stop = threading.Event()
        threading.Thread(target=stop.wait).start()
        compile_beside(lambda: time.sleep(100))()
        stop.set()
        print("done")
        """)
    assert said == "done"


def test_nor_with_plain_kernels():
    assert told("compile_beside(lambda: time.sleep(100))(); print('done')", SPARSEZO_PLAIN_KERNELS="1") == "done"


@pytest.mark.torture
def test_what_it_compiled_is_compiled_no_more(tmp_path):
    said = told(
        """
        import numpy as np
        from numba.core import event
        from sparsezo.kernels.jit import standalone_kernel
        from sparsezo.tasks.chunking.features.lookup import _enter

        def work():
            _enter(np.zeros(1, np.int64), np.zeros(1, np.int32), 0, 1, np.full(2, -1), np.zeros(2, np.int32))

        class Heard(event.Listener):
            def on_start(self, compilation): print("compiled")
            def on_end(self, compilation): pass

        compile_beside(work)()
        event.register("numba:compile", Heard())
        work()
        print("done")
        """,
        NUMBA_CACHE_DIR=str(tmp_path),
    )
    assert said == "done"
