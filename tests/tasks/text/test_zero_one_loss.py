"""With a loss of 0 or 1 two rules are one, as reports say where both stand (docs/deviations.md)."""

from __future__ import annotations

import numpy as np
import pytest

from sparsezo.learner import Learner
from sparsezo.settings import Settings
from sparsezo.tasks.registry import kind
from sparsezo.tasks.text.documents import read_documents
from sparsezo.tasks.text.generate import generate_texts
from sparsezo.tasks.text.task import TextClassification


@pytest.mark.parametrize("perturb", ["all", "active", "score"])
def test_preference_is_two_point_bit_for_bit(tmp_path, perturb):
    path = tmp_path / "train.tsv"
    path.write_text("".join(f"{label}\t{text}\n" for label, text in generate_texts(60, seed=1)))
    task, documents = TextClassification.fit(read_documents(str(path)))
    weights = []
    for rule in ("two-point", "preference"):
        learner = Learner(task.problem(documents), Settings(rule, perturb, 0.1, 1.0, seed=4))
        learner.run(task.gold(documents), 400)
        weights.append(learner.weights())
    assert np.abs(weights[0]).max() > 0
    assert (weights[0] == weights[1]).all()
    assert kind("text").zero_one_loss
