"""Sentence BLEU against sacrebleu and against a slow, obvious twin of its statistics."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from sparsezo.errors import UsageError
from sparsezo.tasks.rerank import bleu_kernel as kernels
from sparsezo.tasks.rerank.metric import (
    STATISTICS,
    bleu_from_statistics,
    corpus_bleu,
    corpus_bleu_from_statistics,
    list_statistics,
    loss_from_statistics,
)
from sparsezo.tasks.rerank.nbest import read_nbest

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
sentences = st.lists(st.tuples(words, spaces), max_size=25).map(lambda pairs: "".join(w + s for w, s in pairs))


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


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=30), max_size=5), st.lists(st.text(max_size=30), min_size=1, max_size=3))
def test_any_text_equals_twin(hypotheses: list[str], references: list[str]) -> None:
    assert list_statistics(hypotheses, references).tolist() == [twin(text, references) for text in hypotheses]


def test_white_space_is_what_str_split_takes_for_it() -> None:
    characters = [chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]
    lengths = list_statistics([f"a{c}a" for c in characters], ["a"])[:, 0]
    wrong = [hex(ord(c)) for c, n in zip(characters, lengths.tolist(), strict=True) if n != len(f"a{c}a".split())]
    assert wrong == []


def test_long_random_sentences() -> None:
    rng = np.random.default_rng(3)
    vocabulary = [f"w{k}" for k in range(60)]
    references = [" ".join(rng.choice(vocabulary, size)) for size in (300, 250, 280)]
    hypotheses = [" ".join(rng.choice(vocabulary, size)) for size in rng.integers(0, 400, 40)] + references
    stats = list_statistics(hypotheses, references)
    assert stats.tolist() == [twin(text, references) for text in hypotheses]
    np.testing.assert_allclose(bleu_from_statistics(stats), sacrebleu_scores(hypotheses, references), rtol=0, atol=1e-9)


def test_buffer_is_read_as_lines() -> None:
    hypotheses = ["the cat sat", "", "a cat"]
    expected = list_statistics(hypotheses, ["the cat sat down"])
    for buffer in (b"the cat sat\n\na cat\n", b"the cat sat\n\na cat"):
        np.testing.assert_array_equal(list_statistics(buffer, ["the cat sat down"]), expected)
    assert list_statistics(b"", ["a"]).shape == (0, 10)
    assert list_statistics([], ["a"]).shape == (0, 10)


def test_known_values() -> None:
    stats = list_statistics(
        ["the cat sat on the mat", "dog", "the cat", "the cat sat on a rug"], ["the cat sat on the mat"]
    )
    loss = loss_from_statistics(stats)
    assert loss[0] == 0.0
    assert loss[1] == 1.0  # no token is correct: nothing is smoothed
    assert loss[2] == pytest.approx(1 - np.exp(1 - 6 / 2))  # two orders, both perfect; too short
    precisions = [4 / 6, 3 / 5, 2 / 4, 1 / 3]
    assert loss[3] == pytest.approx(1 - np.prod(precisions) ** 0.25)
    short = list_statistics(["the dog"], ["the cat"])  # the mean is over the two orders that it has
    assert bleu_from_statistics(short)[0] == pytest.approx((1 / 2 * 0.01 / 1) ** 0.5)
    floor = list_statistics(["the x cat y"], ["the cat is on"])
    assert bleu_from_statistics(floor)[0] == pytest.approx((2 / 4 * 0.01 / 3 * 0.01 / 2 * 0.01 / 1) ** 0.25)
    assert bleu_from_statistics(stats.astype(np.int16)) == pytest.approx(1 - loss)


def test_of_two_references_equally_close_the_shorter_counts() -> None:
    """Four tokens, references of three and five: no penalty with the shorter, exp(1 - 5/4) with the longer."""
    for references in (["a b c", "a b c d e"], ["a b c d e", "a b c"]):
        stats = list_statistics(["a b c d"], references)
        assert stats[0, :2].tolist() == [4, 3]
        assert bleu_from_statistics(stats)[0] == 1.0
    assert list_statistics(["a b c d"], ["a b", "a b c d e"])[0, 1] == 5  # the closer one, though it is longer
    assert bleu_from_statistics(list_statistics(["a b c d"], ["a b c d e"]))[0] == pytest.approx(np.exp(1 - 5 / 4))


def test_counts_are_clipped_at_the_most_one_reference_has() -> None:
    stats = list_statistics(["a a a a"], ["a a b", "a b a"])
    assert stats[0].tolist() == [4, 3, 2, 1, 0, 0, 4, 3, 2, 1]


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
    assert corpus_bleu_from_statistics(np.concatenate(stats).astype(np.int16), n_references=2) == score


def test_calls_that_are_wrong() -> None:
    with pytest.raises(UsageError, match=r"at least one reference for a sentence; give \[reference\]"):
        list_statistics(["a"], [])
    with pytest.raises(UsageError, match=r"at least one reference"):
        list_statistics(["a"], "a")
    with pytest.raises(UsageError, match=r"not one string; give \[hypothesis\]"):
        list_statistics("a", ["a"])
    with pytest.raises(UsageError, match=r"2 hypotheses but 1 references in set 1; give one for each"):
        corpus_bleu(["a", "b"], [["a"]])
    with pytest.raises(UsageError, match=r"list of reference sets"):
        corpus_bleu(["a"], ["a"])
    with pytest.raises(UsageError, match=r"at least one hypothesis"):
        corpus_bleu([], [[]])
    with pytest.raises(UsageError, match=r"at least one hypothesis"):
        corpus_bleu_from_statistics(np.zeros((0, 10), np.int16))


def test_a_list_is_counted_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call of the compiled code for all candidates, so that references are indexed once."""
    calls = []

    def counted(text, offsets, references, reference_offsets, out):
        calls.append((offsets.size - 1, reference_offsets.size - 1))
        out[:] = 7

    monkeypatch.setattr(kernels, "list_statistics", counted)
    assert (list_statistics([f"w{k} x" for k in range(500)], ["x y", "z"]) == 7).all()
    assert calls == [(500, 2)]


@pytest.mark.data
def test_real_lists_equal_sacrebleu(real_data: Path) -> None:
    references = (real_data / "smt" / "ep-dev.ref").read_text(encoding="utf-8").splitlines()
    lists = list(islice(read_nbest(real_data / "smt" / "ep-dev.nbest.xz"), 60))
    for nbest in lists:
        reference = [references[nbest.id]]
        scores = bleu_from_statistics(list_statistics(nbest.hypotheses, reference))[::8]
        np.testing.assert_allclose(scores, sacrebleu_scores(nbest.hypotheses[::8], reference), rtol=0, atol=1e-9)
