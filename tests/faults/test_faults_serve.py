"""Damaged logs of sessions: refused in one line, or the same model, or that of a log whose end is gone."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from mutations import cases, damaged, endure

from sparsezo.serve.folder import LOG
from sparsezo.serve.online_model import replay

sys.path.append(str(Path(__file__).parents[1] / "serve"))
from sessions import answered, opened, someone, weights


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("faults") / "s"
    with opened(place, audit=5) as session:
        ann = someone(session)
        states = [weights(session).tobytes()]
        for _ in range(12):
            answered(session, ann, 1)
            states.append(weights(session).tobytes())
    return place, states


@pytest.mark.parametrize("n", cases(20, 5000))
def test_a_damaged_log_gives_no_other_model(folder, n):
    place, states = folder

    def read(raw: bytes):
        for end in ("-wal", "-shm"):
            (place / (LOG + end)).unlink(missing_ok=True)
        (place / LOG).write_bytes(raw)
        W = np.ascontiguousarray(replay(place).W).tobytes()
        assert W in states, "a model that never was"
        return True

    endure(read, (place / LOG).read_bytes(), damaged, n)
