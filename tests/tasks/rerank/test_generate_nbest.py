"""Generated n-best lists: what decoders write, the same every time, with something to learn in them."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.tasks.rerank import generate as module
from sparsezo.tasks.rerank.decoder_weights import read_weights
from sparsezo.tasks.rerank.generate import IN_DOMAIN, OUT_OF_DOMAIN, generate_nbest, weights_text
from sparsezo.tasks.rerank.metric import bleu_from_statistics, list_statistics
from sparsezo.tasks.rerank.nbest import read_nbest


@pytest.fixture(scope="module")
def some():
    return generate_nbest(60, seed=1, candidates=30)


@pytest.fixture(scope="module")
def lists(some, tmp_path_factory):
    path = tmp_path_factory.mktemp("nbest") / "some.nbest"
    path.write_text(some.nbest())
    return list(read_nbest(path))


def test_the_lists_are_those_they_always_were():
    """Published numbers rest on these lists: a change here is a change of the data."""
    few = generate_nbest(3, seed=7, candidates=6)
    assert few.references[0] == "habo fobe de fa robi ba sobe labe ka fa du di je li nu jade kabe vo bude da bo"
    assert (
        hashlib.sha256((few.nbest() + few.ref()).encode()).hexdigest()
        == "db4b42d7336723d67553ccce3e61e44c2a687d38210724a05955d73e9868f743"
    )


def test_a_longer_file_begins_with_the_shorter(some):
    longer, other = generate_nbest(80, seed=1, candidates=30), generate_nbest(60, seed=2, candidates=30)
    assert longer.lists[:60] == some.lists
    assert longer.references[:60] == some.references
    assert other.references != some.references


def test_the_reader_takes_it(some, lists):
    assert [nbest.id for nbest in lists] == list(range(60))
    assert len(some.ref().splitlines()) == 60
    assert set(lists[-1].names) == set(IN_DOMAIN)
    assert all(1 < len(nbest) <= 30 and len(set(nbest.hypotheses)) == len(nbest) for nbest in lists)


def test_of_equal_hypotheses_the_first_is_kept(monkeypatch):
    drawn = iter([3.0, 9.0, 1.0])
    monkeypatch.setattr(module, "_corrupt", lambda reference, rate, rng, law: (reference, (0, 0, 0, 0)))
    monkeypatch.setattr(module, "_features", lambda length, errors, rng: {"PhraseCount": next(drawn)})
    some = generate_nbest(1, seed=1, candidates=3)
    assert some.lists == ((f"0 ||| {some.references[0]} ||| PhraseCount=3 ||| 1.2",),)


def test_lists_are_in_the_order_of_the_decoders_score(some, lists):
    for lines, nbest in zip(some.lists, lists, strict=True):
        w = np.array([OUT_OF_DOMAIN[name] for name in nbest.names])
        scores = [float(line.rsplit("|||", 1)[1]) for line in lines]
        np.testing.assert_allclose(nbest.features @ w, scores, rtol=1e-4, atol=1e-3)
        assert scores == sorted(scores, reverse=True)


def test_there_is_something_to_learn(some, lists):
    def sentence_bleu(weights: dict[str, float] | None) -> float:
        total = 0.0
        for nbest, reference in zip(lists, some.references, strict=True):
            bleu = bleu_from_statistics(list_statistics(nbest.hypotheses, [reference]))
            w = np.array([weights[name] for name in nbest.names]) if weights else None
            total += bleu.max() if w is None else bleu[np.argmax(nbest.features @ w)]
        return total / len(lists)

    out, inside, oracle = sentence_bleu(OUT_OF_DOMAIN), sentence_bleu(IN_DOMAIN), sentence_bleu(None)
    assert out + 0.1 < inside < oracle - 0.05


def test_weights_are_read_back(tmp_path):
    path = tmp_path / "weights"
    path.write_text(weights_text(OUT_OF_DOMAIN))
    assert read_weights(path) == OUT_OF_DOMAIN


@pytest.mark.parametrize("wrong", [{"n_sentences": 0}, {"seed": -1}, {"candidates": 0}])
def test_senseless_sizes_are_refused(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        generate_nbest(**{"n_sentences": 5, "seed": 1, **wrong})
