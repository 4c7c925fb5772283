"""BLEU: the loss of n-best reranking (paper Sec. 5, SMT; DESIGN 1) and the corpus score of its tables.

Delta = 1 - sentence BLEU-4, "zero n-gram counts being replaced with 0.01". In sacrebleu's terms this is
``BLEU(smooth_method="floor", smooth_value=0.01, tokenize="none", effective_order=True)``, what
``sacrebleu.sentence_bleu`` computes with these settings, and it is equal to it to 1e-9:

- an order that the hypothesis has n-grams of, none of them correct, counts 0.01 of them as correct;
- an order that it has no n-grams of (fewer than four tokens) is left out of the mean. Without ``effective_order``
  sacrebleu would score such a hypothesis 0, though it were the reference itself: there is no count to replace there
  (a third reading, 0.01 of 1 for an order without n-grams, is no setting of sacrebleu; all three agree from 4 tokens);
- a hypothesis without any correct token scores 0.

Tokens are what white space separates; nothing is tokenised, lowercased or normalised here.

    stats = list_statistics(["the cat sat", "a cat"], ["the cat sat down"])      # int32 [2, 10]
    delta = loss_from_statistics(stats)                                          # float64 [2]
    print(corpus_bleu(best, [references]))                                       # BLEU, length ratio, signature
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.tasks.rerank import bleu_kernel as kernels

ORDER = kernels.ORDER
STATISTICS = (
    "hypothesis length",
    "reference length",
    *(f"{k} {n}" for k in ("correct", "total") for n in (1, 2, 3, 4)),
)
FLOOR = 0.01  # what a zero n-gram count becomes


def list_statistics(hypotheses: Sequence[str] | bytes, references: Sequence[str]) -> NDArray[np.int32]:
    """BLEU statistics of all candidates of one sentence against its references: int32 [candidates, 10].

    ``hypotheses`` are strings, or one UTF-8 buffer with a line for each. The columns are named in ``STATISTICS``.
    """
    if isinstance(references, str) or not references:
        raise UsageError("BLEU needs a list of at least one reference for a sentence; give [reference]")
    if isinstance(hypotheses, str):
        raise UsageError("BLEU needs a list of hypotheses, not one string; give [hypothesis]")
    text, offsets = _lines(hypotheses)
    reference_text, reference_offsets = _lines(references)
    out = np.empty((offsets.size - 1, 2 + 2 * ORDER), np.int32)
    kernels.list_statistics(text, offsets, reference_text, reference_offsets, out)
    return out


def _lines(lines: Sequence[str] | bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """UTF-8 bytes with a line for each string, and where each begins (and the end)."""
    if isinstance(lines, bytes):
        joined = lines if lines.endswith(b"\n") or not lines else lines + b"\n"
    else:
        joined = b""
        if lines:
            joined = ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")
        if joined.count(b"\n") != len(lines):  # a line end within a string is white space like any other
            joined = ("\n".join(line.replace("\n", " ") for line in lines) + "\n").encode("utf-8", "surrogatepass")
    text = np.frombuffer(joined, np.uint8)
    ends = np.flatnonzero(text == ord("\n")) + 1
    return text, np.concatenate((np.zeros(1, np.int64), ends), dtype=np.int64)


def bleu_from_statistics(statistics: NDArray[Any]) -> NDArray[np.float64]:
    """Smoothed sentence BLEU in [0, 1] of each row of ``list_statistics``."""
    stats = np.asarray(statistics, np.float64).reshape(-1, 2 + 2 * ORDER)
    length, reference_length = stats[:, 0], stats[:, 1]
    correct, total = stats[:, 2 : 2 + ORDER], stats[:, 2 + ORDER :]
    precision = np.where(correct > 0, correct, FLOOR) / np.maximum(total, 1)
    counted = total > 0  # the effective order: as many orders as the hypothesis has n-grams of
    log_precision = np.where(counted, np.log(precision), 0.0).sum(axis=1) / np.maximum(counted.sum(axis=1), 1)
    brevity = np.minimum(1 - reference_length / np.maximum(length, 1), 0.0)
    bleu: NDArray[np.float64] = np.where(correct.any(axis=1), np.exp(brevity + log_precision), 0.0)
    return bleu


def loss_from_statistics(statistics: NDArray[Any]) -> NDArray[np.float64]:
    """Delta = 1 - smoothed sentence BLEU of each row of ``list_statistics``."""
    loss: NDArray[np.float64] = 1.0 - bleu_from_statistics(statistics)
    return loss


@dataclass(frozen=True)
class CorpusBleu:
    """sacrebleu's corpus BLEU in [0, 1], with what is needed to read it: length ratio and signature."""

    bleu: float
    length_ratio: float
    signature: str

    def __str__(self) -> str:
        return f"BLEU {self.bleu:.4f} (length ratio {self.length_ratio:.3f}; {self.signature})"


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> CorpusBleu:
    """sacrebleu's corpus BLEU with tokenisation 'none'. ``references``: one sequence for each set of references."""
    if isinstance(references, str) or not references or any(isinstance(lines, str) for lines in references):
        raise UsageError("corpus BLEU needs a list of reference sets, each a list of lines; give [references]")
    if not hypotheses:
        raise UsageError("corpus BLEU needs at least one hypothesis")
    for k, lines in enumerate(references, start=1):
        if len(lines) != len(hypotheses):
            raise UsageError(f"{len(hypotheses)} hypotheses but {len(lines)} references in set {k}; give one for each")
    metric = _sacrebleu_metric()
    return _corpus_bleu(metric.corpus_score(list(hypotheses), [list(lines) for lines in references]), metric)


def corpus_bleu_from_statistics(statistics: NDArray[Any], n_references: int = 1) -> CorpusBleu:
    """The same score from the chosen candidates' rows of ``list_statistics``, without counting again."""
    stats = np.asarray(statistics).reshape(-1, 2 + 2 * ORDER)
    if not len(stats):
        raise UsageError("corpus BLEU needs at least one hypothesis")
    total = [int(value) for value in stats.sum(axis=0, dtype=np.int64)]
    metric = _sacrebleu_metric()
    metric.num_refs = n_references
    return _corpus_bleu(metric._compute_score_from_stats(total), metric)


def _sacrebleu_metric() -> Any:
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError:
        raise SparsezoError("corpus BLEU is sacrebleu's; install it: pip install sacrebleu") from None
    return BLEU(tokenize="none", force=True)  # force: no advice to detokenise; it changes no score


def _corpus_bleu(score: Any, metric: Any) -> CorpusBleu:
    return CorpusBleu(float(score.score) / 100, float(score.ratio), str(metric.get_signature()))
