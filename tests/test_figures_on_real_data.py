"""Long checks on the real data (make torture): what learners reach on CoNLL-2000, 20 Newsgroups, n-best lists."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = [pytest.mark.torture, pytest.mark.data]

# Rule and options, and the least test F1. Behind it what was measured at these settings, a mean over three seeds where
# docs/results has it: the least is 0.01 to 0.02 below, and runs of other seeds differ by 0.001 to 0.004.
CHUNKING = [
    (
        ["--step", "constant", "--rule", "two-point", "--perturb", "active", "--h", "0.001", "--mu", "0.1"],
        0.885,
    ),  # 0.903
    (["--step", "constant", "--rule", "two-point", "--perturb", "score", "--h", "0.001", "--mu", "0.1"], 0.91),
    (["--rule", "symmetric", "--perturb", "score", "--step", "adagrad", "--h", "0.05", "--mu", "0.2"], 0.92),
    (["--step", "constant", "--rule", "comparison", "--perturb", "active", "--h", "0.001", "--mu", "0.1"], 0.84),
    (["--step", "constant", "--rule", "two-point", "--perturb", "all", "--h", "0.004641", "--mu", "1"], 0.86),  # 0.875
    (["--step", "constant", "--rule", "baseline", "--perturb", "active", "--h", "1e-4", "--mu", "0.1"], 0.88),  # 0.897
    (
        ["--step", "constant", "--rule", "comparison", "--perturb", "active", "--h", "1e-4", "--mu", "0.1"],
        0.875,
    ),  # 0.898
    (["--step", "constant", "--rule", "first-order", "--h", "0.01"], 0.92),
    (["--rule", "supervised"], 0.93),
]


def train(*words: object) -> dict[str, float]:
    command = [sys.executable, "-m", "sparsezo", "train", *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("options", "least"), CHUNKING, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_chunking(real_data: Path, tmp_path: Path, options: list[str], least: float):
    files = real_data / "conll2000"
    data = ["--train", files / "train.txt.gz", "--dev", 1000, "--test", files / "test.txt.gz", "--only", "NP"]
    assert train("chunking", *data, "--iterations", "4M", *options, "-o", tmp_path / "m")["test"] >= least


def test_text(real_data: Path, tmp_path: Path):
    """score comes near full supervision (0.9355), and active is far above all for every rule.

    Measured: score 0.936; active 0.81 and 0.76, all 0.40 and 0.41, by two-point and comparison.
    """
    files = real_data / "text"
    data = ["--train", files / "20news4.train.tsv.gz", "--dev", 1000, "--test", files / "20news4.test.tsv.gz"]
    common = [*data, "--iterations", "2M", "--step", "constant", "--h", "0.1", "--mu", "1"]
    reached = {
        (rule, perturb): train(
            "text", *common, "--rule", rule, "--perturb", perturb, "-o", tmp_path / f"{rule}-{perturb}"
        )["test"]
        for rule in ("two-point", "comparison", "baseline")
        for perturb in ("all", "active")
    }
    assert train("text", *common, "-o", tmp_path / "m")["test"] >= 0.925
    assert reached["two-point", "active"] >= 0.77
    for rule in ("two-point", "comparison", "baseline"):
        assert reached[rule, "active"] > reached[rule, "all"]


def test_reranking(real_data: Path, tmp_path: Path):
    """Three seeds, h and mu from the paper's grid: both rules go most of the way from the start (0.2335) to the weights
    tuned in domain (0.2434). Seeds differ by 0.002, so that a mean of three is good to 0.001.
    """
    files = real_data / "smt"
    data = ["--train", files / "train.nbest.xz", "--dev", files / "nc-devtest2007.nbest.xz"]
    data += ["--test", files / "nc-test2007.nbest.xz", "--init", files / "weights.out-of-domain"]
    for rule, perturb, h in [("two-point", "score", "1e-4"), ("comparison", "active", "1e-5")]:
        options = ["--rule", rule, "--perturb", perturb, "--h", h, "--mu", "1e-2", "--iterations", "800k"]
        found = [
            train(
                "rerank", *data, *options, "--evaluate-every", "20k", "--seed", seed, "-o", tmp_path / f"{rule}-{seed}"
            )["test"]
            for seed in (0, 1, 2)
        ]
        assert np.mean(found) >= 0.238
