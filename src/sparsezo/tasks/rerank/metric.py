"""BLEU: the loss of n-best reranking (paper Sec. 5, SMT; design 1) and the corpus score of its tables.

Delta = 1 - sentence BLEU-4, "zero n-gram counts being replaced with 0.01": what ``sacrebleu.sentence_bleu`` computes
with ``smooth_method="floor", smooth_value=0.01, tokenize="none", effective_order=True``, equal to 1e-9. An order
that the hypothesis has no n-grams of (fewer than four tokens) is left out of the mean; a hypothesis without any correct
token scores 0. Tokens are what white space separates; nothing is tokenised, lowercased or normalised here.

    stats = list_statistics(["the cat sat", "a cat"], ["the cat sat down"])      # int32 [2, 10]
    delta = loss_from_statistics(stats)                                          # float64 [2]
    print(corpus_bleu(best, [references]))                                       # BLEU, length ratio, signature
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError, need
from sparsezo.tasks.base import AnyArray

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

ORDER = 4
STATISTICS = (
    "hypothesis length",
    "reference length",
    *(f"{k} {n}" for k in ("correct", "total") for n in (1, 2, 3, 4)),
)
FLOOR = 0.01  # what a zero n-gram count becomes
_CELLS = 1 << 19  # candidates x n-grams of the references that are counted together


def list_statistics(hypotheses: Sequence[str], references: Sequence[str]) -> NDArray[np.int32]:
    """BLEU statistics of all candidates of one sentence against its references: int32 [candidates, 10].

    The columns are named in ``STATISTICS``.
    """
    if isinstance(references, str) or not references:
        raise UsageError("BLEU needs a list of at least one reference for a sentence; give [reference]")
    if isinstance(hypotheses, str):
        raise UsageError("BLEU needs a list of hypotheses, not one string; give [hypothesis]")
    theirs = [reference.split() for reference in references]
    size = 1 + _CELLS // (1 + sum(map(len, theirs)))
    blocks = range(0, len(hypotheses), size) or (0,)
    return np.concatenate([_counted([*map(str.split, hypotheses[k : k + size])], theirs) for k in blocks])


def _counted(hypotheses: list[list[str]], references: list[list[str]]) -> NDArray[np.int32]:
    """The statistics of tokens. Correct counts are clipped at the most any one reference has (Papineni et al. 2002)."""
    sentences, R = [*references, *hypotheses], len(references)
    lengths = np.array([len(tokens) for tokens in sentences], np.int64)
    number = {token: k for k, token in enumerate(dict.fromkeys(itertools.chain(*references)), start=1)}
    # 0: a token that no reference has, or the end of a sentence, so that no n-gram goes on into the next
    tokens = itertools.chain.from_iterable((*each, "") for each in sentences)
    token = np.fromiter(map(number.get, tokens, itertools.repeat(0)), np.int64, int(lengths.sum()) + len(sentences))
    of_sentence = np.repeat(np.arange(len(sentences)), lengths + 1)

    out = np.zeros((len(hypotheses), len(STATISTICS)), np.int32)
    out[:, 0] = lengths[R:]
    shortest_first = np.sort(lengths[:R])  # of two equally close the shorter one counts, as in sacrebleu
    out[:, 1] = shortest_first[np.abs(lengths[R:, None] - shortest_first).argmin(axis=1)]
    begin = np.flatnonzero(token)  # of the n-grams that stand in a reference
    prefix = np.zeros(len(begin), np.int64)  # the number of each's first n - 1 tokens
    for n in range(1, ORDER + 1):
        last = token[begin + n - 1]
        begin, key = begin[last > 0], (prefix * (len(number) + 1) + last)[last > 0]
        known = np.unique(key[of_sentence[begin] < R])
        place = np.searchsorted(known, key)
        there = np.append(known, -1)[place] == key
        begin, prefix = begin[there], place[there]
        count = np.bincount(of_sentence[begin] * len(known) + prefix, minlength=len(sentences) * len(known))
        count = count.reshape(len(sentences), len(known))
        out[:, 1 + n] = np.minimum(count[R:], count[:R].max(axis=0, initial=0)).sum(axis=1)
        out[:, 1 + ORDER + n] = np.maximum(lengths[R:] - n + 1, 0)
    return out


def bleu_from_statistics(statistics: AnyArray) -> NDArray[np.float64]:
    """Smoothed sentence BLEU in [0, 1] of each row of ``list_statistics``."""
    stats = np.asarray(statistics, np.float64).reshape(-1, 2 + 2 * ORDER)
    length, reference_length = stats[:, 0], stats[:, 1]
    correct, total = stats[:, 2 : 2 + ORDER], stats[:, 2 + ORDER :]
    precision = np.where(correct > 0, correct, FLOOR) / np.maximum(total, 1)
    counted = total > 0  # the effective order: as many orders as the hypothesis has n-grams of
    log_precision = np.where(counted, np.log(precision), 0.0).sum(axis=1) / np.maximum(counted.sum(axis=1), 1)
    brevity = np.minimum(1 - reference_length / np.maximum(length, 1), 0.0)
    return np.asarray(np.where(correct.any(axis=1), np.exp(brevity + log_precision), 0.0), np.float64)


def loss_from_statistics(statistics: AnyArray) -> NDArray[np.float64]:
    """Delta = 1 - smoothed sentence BLEU of each row of ``list_statistics``."""
    return np.asarray(1.0 - bleu_from_statistics(statistics))


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
    score = metric.corpus_score(list(hypotheses), [list(lines) for lines in references])
    return CorpusBleu(score.score / 100, score.ratio, str(metric.get_signature()))


def corpus_bleu_from_statistics(statistics: AnyArray) -> float:
    """The same figure from the chosen candidates' rows of ``list_statistics``, without counting again."""
    sums = np.asarray(statistics).reshape(-1, 2 + 2 * ORDER).sum(axis=0, dtype=np.int64)
    return float(_sacrebleu_metric()._compute_score_from_stats(sums.tolist()).score) / 100


def _sacrebleu_metric() -> BLEU:
    need("rerank")
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize="none", force=True)  # force: no advice to detokenise; it changes no score
