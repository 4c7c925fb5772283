"""A run compiles the steps of its own rule and criterion: what others need is compiled when they are first used."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_SCRIPT = """
import sys
from numba.core import event
from sparsezo.query_learner import make_learner
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking

names = set()
class Names(event.Listener):
    def on_start(self, compilation):
        names.add(compilation.data["dispatcher"].py_func.__name__)
    def on_end(self, compilation):
        pass
event.register("numba:compile", Names())
task, corpus = Chunking.fit(chunking_corpus(10, 1))
rule = sys.argv[1]
step = "adagrad" if rule == "part" else "constant"
settings = Settings(rule) if rule == "two-point" else Settings(rule, None, 0.2, None, step=step)
make_learner(task.problem(corpus, asks=rule == "part"), settings).run(task.gold(corpus), 2)
print(*names)
"""


@pytest.mark.torture  # all is compiled anew
@pytest.mark.parametrize(
    ("rule", "needed", "others"),
    [
        ("two-point", {"_project", "_decode"}, {"_draw_complement", "_settle", "_sample", "_supervise", "_risk"}),
        ("first-order", {"_sample", "_score_gradient"}, {"sample_opposite", "_project", "factor", "_supervise"}),
        ("part", {"_look", "_evidence"}, {"review_next", "seek_review", "reviewed", "_review", "_project"}),
    ],
)
def test_a_run_compiles_what_its_own_rule_needs(tmp_path, rule, needed, others):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    told = subprocess.check_output([sys.executable, "-c", _SCRIPT, rule], env=environment, text=True)
    compiled = set(told.split())
    assert needed <= compiled
    assert not compiled & others
