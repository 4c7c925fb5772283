"""Damaged experiments: a plan that holds together, or one line that says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutations import Anything, cases, damaged_text, endure, in_file

from sparsezo.errors import SparsezoError
from sparsezo.study.plan import Experiment, builtin, parse_experiment, read_experiment
from sparsezo.study.runs import fixed_runs
from sparsezo.study.sources import generated, in_folder

MINE = b"""
name = "mine"
title = "a title"
note = "a note"
task = "rerank"
iterations = 4321
evaluate_every = 77
seeds = [3, 8, 4]
phases = ["fixed", "tuned"]
init = "weights.start"
[data]
train = ["a.nbest", "sub/b.nbest"]
dev = "dev.nbest"
test = "test.nbest"
options = { train_ref = ["r1", "r2"], store = "place" }
[bounds]
low = "weights.low"
[fixed]
h = 0.01
mu = 0.02
[grid]
h = [0.3, 0.1]
mu = [0.4, 0.2]
[[learner]]
rule = "symmetric"
perturb = "active"
step = "adagrad"
criterion = "annealed"
gamma = 2.5
paper = 0.25
grid = { h = [7, 8.5], mu = [9.5] }
[[learner]]
rule = "comparison"
feedback = ["exact", "flip:0.1", "flip:0.2"]
[[learner]]
rule = "first-order"
baseline = true
h = 3
"""
SHORT = b'task = "chunking"\nseeds = 3\ndata.train = "t"\ndata.dev = 10\n[[learner]]\nrule = "two-point"\n'
PAPERS = builtin("smt").to_toml().encode()


def used(path: Path) -> Experiment:
    """Read, and then used up to the work itself."""
    plan = read_experiment(path)
    assert parse_experiment(plan.to_toml(), "again") == plan
    assert "/" not in plan.name
    assert plan.name not in (".", "..")
    plan.refuse_size(plan.phases_of())
    for phases in (("fixed",), ("fixed", "tuned")):
        plan.to_tune().refuse_size(phases)
    runs = fixed_runs(plan, "data")
    assert len({run.hash for run in runs}) == len(runs)
    with pytest.raises(SparsezoError):  # there is no data
        in_folder(plan, path.parent / "nowhere")
    return plan


@pytest.mark.parametrize("sample", [MINE, SHORT, PAPERS], ids=["mine", "short", "paper"])
@pytest.mark.parametrize("n", cases(40))
def test_damaged_experiments(n, sample, tmp_path):
    endure(in_file(tmp_path / "mine.toml", used), sample, damaged_text, n, reference=lambda data: Anything)


ODD = ("-1", "0", "1e400", "nan", "inf", "true", "''", "'x'", "'../x'", "'\\u0000'", "[]", "[[]]", "{}", "{a = 1}")
ODD += ("1979-05-27", "07:32:00", "0x" + "f" * 5000, "9" * 400, "9" * 5000, "[" * 5000, "9223372036854775807", "'²'")


@pytest.mark.parametrize("sample", [MINE, SHORT], ids=["mine", "short"])
def test_every_key_with_every_odd_value(sample, tmp_path):
    """One at a time; what is generated for it stays in its folder."""
    lines = sample.decode().splitlines()
    keys = [number for number, line in enumerate(lines) if " = " in line]

    def damage(original: bytes, case: int) -> bytes:
        if case == len(keys) * len(ODD):
            return original
        number, odd = keys[case // len(ODD)], ODD[case % len(ODD)]
        changed = [*lines]
        changed[number] = f"{lines[number].split(' = ')[0]} = {odd}"
        return "\n".join(changed).encode()

    n = len(keys) * len(ODD)
    endure(in_file(tmp_path / "mine.toml", used), sample, damage, n, reference=lambda data: Anything)


@pytest.mark.parametrize("key", ["data.train", "data.dev", "data.test", "init", "bounds.x", "data.options.dev_ref"])
@pytest.mark.parametrize("path", ["../out.x", "/tmp/sparsezo-out.x", "a/../../out.x"])
def test_nothing_is_written_outside(key, path, tmp_path):
    task, values = "rerank", {"data.train": "'t.nbest'", key: f"'{path}'" if "ref" not in key else f"['{path}']"}
    text = f"task = '{task}'\n" + "".join(f"{name} = {value}\n" for name, value in values.items()) + "[[learner]]\n"
    plan = parse_experiment(text, "x", "x")
    with pytest.raises(SparsezoError):
        generated(plan, tmp_path / "results" / "data")
    assert [each.name for each in tmp_path.rglob("*.x")] == []
    assert not Path("/tmp/sparsezo-out.x").exists()
