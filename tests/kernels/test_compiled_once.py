"""Each form is compiled once, for one signature, into machine code once; and a second process compiles nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_SCRIPT = """
import json
import sys
from numba.core import event
from sparsezo.kernels import jit, once
from sparsezo.learner import predict
from sparsezo.query_learner import make_learner
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking

compiled = []
class Names(event.Listener):
    def on_start(self, compilation):
        compiled.append(compilation.data["dispatcher"].py_func.__qualname__)
    def on_end(self, compilation):
        pass
event.register("numba:compile", Names())
task, corpus = Chunking.fit(chunking_corpus(10, 1))
learner = make_learner(task.problem(corpus), Settings())
learner.run(task.gold(corpus), 2)
problem = task.problem(corpus, learn=False)
task.quality(problem, task.gold(corpus), predict(problem, learner.weights()))
forms = {}
for each in jit._compiled:
    function = each.py_func
    name = f"{function.__module__}.{function.__qualname__}"
    if each.overloads:
        forms[name] = [bool(getattr(form.library, "inner", False)) for form in each.overloads.values()]
print(json.dumps({"compiled": compiled, "forms": forms, "installed": once._installed}))
"""

# What is general: numbers and arrays of several kinds, for whoever calls it.
_GENERAL = {"mix", "uniform", "below", "permuted", "fill_normals", "_box_muller", "input_at"}


def _told(folder) -> dict:
    import json

    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    return json.loads(subprocess.check_output([sys.executable, "-c", _SCRIPT], env=environment, text=True))


@pytest.mark.torture  # all is compiled anew
def test_each_kernel_is_compiled_for_one_signature_and_by_one_process(tmp_path):
    first, second = _told(tmp_path), _told(tmp_path)
    assert first["installed"]
    forms = {name: inner for name, inner in first["forms"].items() if name.rpartition(".")[2] not in _GENERAL}
    assert [name for name, inner in forms.items() if len(inner) > 1] == []
    called = {name.rpartition("kernels.")[2] for name, inner in forms.items() if not all(inner)}
    assert {"loop._run_of.<locals>.run", "loop.decode_all"} <= called
    assert not {"loop.step_coefficient", "chains.viterbi", "inputs.products.gather"} & called  # never by Python
    assert second["compiled"] == []


_BOTH_WAYS = """
import numpy as np
from sparsezo.kernels import jit, once

@jit.kernel
def half(x):
    for i in range(x.size):
        x[i] = x[i] / 2

@jit.kernel
def quarter(x):
    half(x)
    half(x)

x = np.array([8.0, 4.0])
quarter(x)
inner = [bool(getattr(form.library, "inner", False)) for form in half.overloads.values()]
half(x)
print(inner, [form.library.inner for form in half.overloads.values()], x.tolist(), quarter.stats.cache_misses)
print({**half.stats.cache_misses}, {**half.stats.cache_hits})
"""


def test_what_is_compiled_for_its_caller_can_be_called_by_python_too(tmp_path):
    """In a program of its own; a second one finds both forms in the cache."""
    program = tmp_path / "program.py"
    program.write_text(_BOTH_WAYS)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    (tmp_path / "cache").mkdir(mode=0o700)
    told = [
        subprocess.check_output([sys.executable, str(program)], env=environment, text=True).splitlines()
        for _ in range(2)
    ]
    for (said, _), found in zip(told, ("[True]", "[]"), strict=True):
        assert said.startswith(f"{found} [False] [1.0, 0.5] ")
    assert told[0][1].endswith("{}")
    assert told[1][1].startswith("{} {")


_SOMEBODY_ELSES = """
import numba
import numpy as np
from sparsezo.kernels.jit import allocating_kernel

@numba.njit
def squares(x):
    total = 0.0
    for i in range(x.size):
        total += x[i] * x[i]
    return total

@numba.njit(cache=True)
def least(x):
    return np.sort(x)[0] + np.sum(x) + squares(x)

@allocating_kernel
def outer(x):
    return squares(x) + least(x)

@numba.njit
def another(x):
    return least(x) + np.sort(x)[-1] + np.sum(x)

x = np.arange(5.0)
print(outer(x), squares(x), least(x), another(x), outer(x))
"""


def test_what_somebody_else_compiles_with_numba_stays_theirs(tmp_path):
    """A function of theirs that a kernel calls is called by Python as before, and so is what both call of Numba's."""
    program = tmp_path / "program.py"
    program.write_text(_SOMEBODY_ELSES)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    (tmp_path / "cache").mkdir(mode=0o700)
    for _ in range(2):  # compiled; read from the cache
        said = subprocess.check_output([sys.executable, str(program)], env=environment, text=True)
        assert said == "70.0 30.0 40.0 54.0 70.0\n"
