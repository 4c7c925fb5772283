"""Generated n-best lists: what decoders write, the same every time, with something to learn in them."""

from __future__ import annotations

import hashlib

import pytest

from sparsezo.errors import UsageError
from sparsezo.tasks.rerank.io.decoder_weights import read_weights
from sparsezo.tasks.rerank.io.nbest import read_nbest
from sparsezo.tasks.rerank.synthetic import IN_DOMAIN, OUT_OF_DOMAIN, generate_nbest, weights_text


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


def test_the_readers_take_it(some, lists, tmp_path):
    assert [nbest.id for nbest in lists] == list(range(60))
    assert len(some.ref().splitlines()) == 60
    assert set(lists[-1].names) == set(IN_DOMAIN)
    (tmp_path / "weights").write_text(weights_text(OUT_OF_DOMAIN))
    assert read_weights(tmp_path / "weights") == OUT_OF_DOMAIN
    assert all(1 < len(nbest) <= 30 and len(set(nbest.hypotheses)) == len(nbest) for nbest in lists)


@pytest.mark.parametrize("wrong", [{"n_sentences": 0}, {"seed": -1}, {"candidates": 0}])
def test_senseless_sizes_are_refused(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        generate_nbest(**{"n_sentences": 5, "seed": 1, **wrong})
