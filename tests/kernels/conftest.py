"""Makes ``twins`` and ``kernel_calls`` of this folder importable, and sets up the one tiny problem its tests share."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import twins

from sparsezo.kernels import loop
from sparsezo.kernels.inputs.sparse import sparse_inputs
from sparsezo.optimizer import workspace
from sparsezo.tasks.chunking.kernels.task import ChunkGold, chunk_task

# four sentences; of each token its attributes. Attributes 9 to 11 are of one sentence each, so they mostly sleep;
# the second sentence has two equal tokens (G is singular), the third names an attribute twice.
SENTENCES = [[[0, 1, 9], [1, 2]], [[0, 3], [2, 3], [0, 3]], [[4, 4, 1], [5, 10]], [[0, 6], [7, 8, 2], [6, 11]]]
GOLD = [[0, 2], [0, 1, 2], [2, 0], [0, 1, 0]]
N_COLS, L = 12, 9
SPEC, CHUNK_TYPE, START = np.array([1, 2, 0], np.int8), np.array([0, 0, -1], np.int32), 2  # B, I, O


@pytest.fixture(scope="session")
def tiny():
    tokens = [attributes for sentence in SENTENCES for attributes in sentence]
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in SENTENCES])]).astype(np.int64)
    inputs = sparse_inputs(
        offsets,
        np.concatenate([[0], np.cumsum([len(t) for t in tokens])]).astype(np.int64),
        np.concatenate(tokens).astype(np.int32),
        None,
        N_COLS,
        L,
    ).ready(factors=True, places=True)
    R, M = int(np.diff(offsets).max()), int(np.diff(inputs.col_start).max())

    def room():
        return workspace(R, M, L, R, np.float32)

    def memory(W, lazy=False, adagrad=False):
        return loop.State(
            W=W.astype(np.float32).copy(),
            q=np.zeros((len(W) if adagrad else 0, L), np.float32),
            Q_row=np.zeros(len(W) if lazy else 0),
            counts=np.zeros(loop.N_COUNTS, np.int64),
            sums=np.zeros(loop.N_SUMS),
            **twins.no_questions(),
        )

    return SimpleNamespace(
        inputs=inputs,
        task=chunk_task(np.diff(offsets), SPEC, CHUNK_TYPE, START, order=2, risk=True),
        gold=ChunkGold(offsets, np.concatenate(GOLD).astype(np.int16)),
        N=len(SENTENCES),
        n_cols=N_COLS,
        L=L,
        kind=SPEC,
        chunk_type=CHUNK_TYPE,
        start=START,
        W=np.random.default_rng(5).normal(0, 0.5, (N_COLS, L)).astype(np.float32),
        room=room,
        memory=memory,
    )
