"""Sentence BLEU against sacrebleu and against a slow, obvious twin of its statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from sparsezo.errors import UsageError
from sparsezo.tasks.rerank import metric
from sparsezo.tasks.rerank.metric import (
    STATISTICS,
    bleu_from_statistics,
    corpus_bleu,
    corpus_bleu_from_statistics,
    list_statistics,
)

SACREBLEU = BLEU(smooth_method="floor", smooth_value=0.01, tokenize="none", effective_order=True)


def sacrebleu_scores(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    return [SACREBLEU.sentence_score(text, list(references)).score / 100 for text in hypotheses]


def twin(hypothesis: str, references: Sequence[str]) -> list[int]:
    """The statistics with Counters."""

    def ngrams(tokens: list[str], n: int) -> Counter[tuple[str, ...]]:
        return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))

    tokens = hypothesis.split()
    sets = [reference.split() for reference in references]
    correct, total = [], []
    for n in range(1, 5):
        most: Counter[tuple[str, ...]] = Counter()
        for reference in sets:
            most |= ngrams(reference, n)
        mine = ngrams(tokens, n)
        correct.append(sum((mine & most).values()))
        total.append(sum(mine.values()))
    closest = min((abs(len(reference) - len(tokens)), len(reference)) for reference in sets)[1]
    return [len(tokens), closest, *correct, *total]


# Few words, so that n-grams repeat and match; some that differ in one byte, and white space of all widths.
words = st.sampled_from(["a", "b", "c", "ab", "é", "è", "the", "she", "日本", "\x1b", "x" * 40])
spaces = st.sampled_from([" ", "  ", "\t", "\u00a0", "\u2003", "\u3000", "\x85", "\n", "\u1680", "\u205f", "\x1f"])
joined = st.lists(st.tuples(words, spaces), max_size=25).map(lambda pairs: "".join(w + s for w, s in pairs))
sentences = joined | st.text(max_size=30)


@settings(max_examples=300, deadline=None)
@given(st.lists(sentences, max_size=6), st.lists(sentences, min_size=1, max_size=4))
@example([""], [""])
@example(["a"], ["a"])
@example(["a b c d e"], ["", "a b c d"])
@example(["a b", "a b c d"], ["a b c"])
def test_equals_twin_and_sacrebleu(hypotheses: list[str], references: list[str]) -> None:
    stats = list_statistics(hypotheses, references)
    assert stats.shape == (len(hypotheses), len(STATISTICS))
    assert stats.dtype == np.int32
    assert stats.tolist() == [twin(text, references) for text in hypotheses]
    np.testing.assert_allclose(bleu_from_statistics(stats), sacrebleu_scores(hypotheses, references), rtol=0, atol=1e-9)


def test_corpus_bleu_is_sacrebleus() -> None:
    rng = np.random.default_rng(0)
    sets = [[" ".join(rng.choice(list("abcd"), 12)) for _ in range(20)] for _ in range(2)]
    hypotheses = [" ".join(rng.choice(list("abcd"), 10)) for _ in range(20)]
    score = corpus_bleu(hypotheses, sets)
    metric = BLEU(tokenize="none")
    expected = metric.corpus_score(hypotheses, sets)
    assert score.bleu == pytest.approx(expected.score / 100, abs=1e-12)
    assert score.length_ratio == expected.ratio
    assert score.signature == str(metric.get_signature())
    assert "tok:none" in score.signature
    assert "nrefs:2" in str(score)
    stats = [list_statistics([text], refs) for text, *refs in zip(hypotheses, *sets, strict=True)]
    assert corpus_bleu_from_statistics(np.concatenate(stats).astype(np.int16)) == score.bleu


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: list_statistics(["a"], []), r"at least one reference for a sentence; give \[reference\]"),
        (lambda: list_statistics(["a"], "a"), r"at least one reference"),
        (lambda: list_statistics("a", ["a"]), r"not one string; give \[hypothesis\]"),
        (lambda: corpus_bleu(["a", "b"], [["a"]]), r"2 hypotheses but 1 references in set 1; give one for each"),
        (lambda: corpus_bleu(["a"], ["a"]), r"list of reference sets"),
        (lambda: corpus_bleu([], [[]]), r"at least one hypothesis"),
    ],
)
def test_calls_that_are_wrong(call, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()


def test_long_lists_are_counted_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    hypotheses = [" ".join("abcd"[(k * i) % 4] for i in range(k)) for k in range(9)]
    whole = list_statistics(hypotheses, ["a b c d", "d a"])
    monkeypatch.setattr(metric, "_CELLS", 20)
    np.testing.assert_array_equal(list_statistics(hypotheses, ["a b c d", "d a"]), whole)
    assert list_statistics([], ["a"]).shape == (0, 10)
