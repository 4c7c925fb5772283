"""What the chunking task makes of tags: outputs spelt in IOB2, gold of types not seen in training, its options."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from sparsezo.errors import DataError, UsageError
from sparsezo.tasks.chunking.conll import Corpus
from sparsezo.tasks.chunking.task import Chunking

WORDS = ["the", "dog", "saw", "a", "dog", "."]


def corpus_of(*sentences: str) -> Corpus:
    """Sentences of tags over some words."""
    tags = [sentence.split() for sentence in sentences]
    flat = [tag for sentence in tags for tag in sentence]
    words = [WORDS[i % len(WORDS)] for i in range(len(flat))]
    return Corpus("f.txt", (words, ["X"] * len(flat)), flat, np.cumsum([0, *map(len, tags)]))


def spelt(tags: list[str], offsets: list[int]) -> list[str]:
    """Sentence by sentence: an I that continues nothing is the B of its type."""
    result = []
    for start, stop in pairwise(offsets):
        for i in range(start, stop):
            before = tags[i - 1][1:] if i > start and tags[i - 1] != "O" else None
            continues = before == tags[i][1:]
            result.append("B" + tags[i][1:] if tags[i][0] == "I" and not continues else tags[i])
    return result


@pytest.mark.parametrize("kinds", [("NP", "VP"), ("",), ("", "NP")])
def test_outputs_are_written_in_iob2_and_no_chunk_crosses_a_sentence(kinds):
    """All outputs of three sentences, of one, two and one tokens."""
    train = corpus_of(" ".join(f"B-{kind} I-{kind}" if kind else "B I" for kind in kinds) + " O")
    task, _ = Chunking.fit(train)
    offsets = np.array([0, 1, 3, 4])
    for outputs in product(range(len(task.tags)), repeat=4):
        expected = spelt([task.tags[k] for k in outputs], offsets.tolist())
        assert task.words(np.array(outputs, np.int32), offsets) == expected


def test_an_i_at_a_sentence_start_is_a_b():
    task, _ = Chunking.fit(corpus_of("B-NP I-NP O"))
    assert task.tags == ("B-NP", "I-NP", "O")
    outputs, offsets = np.array([0, 1, 1, 1, 2, 1], np.int32), np.array([0, 2, 4, 6])
    assert task.words(outputs, offsets) == ["B-NP", "I-NP", "B-NP", "I-NP", "O", "B-NP"]


def test_gold_of_a_type_that_training_did_not_have_counts_as_missed():
    task, _ = Chunking.fit(corpus_of("B-NP I-NP O"))
    test = corpus_of("B-NP O B-VP I-VP", "B-PP O")
    gold = task.gold(test)
    assert gold.tags.tolist() == [0, 2, 3, 4, 3, 2]  # behind the three tags: another type's B and I
    outputs = np.array([0, 2, 2, 2, 0, 2], np.int32)  # the first chunk is right, another one is of the wrong type
    problem = task.problem(test, learn=False)
    f1 = 2 * 1 / (2 + 3)
    assert task.quality(problem, gold, outputs) == pytest.approx(f1)
    report = task.scores(test, outputs)
    assert report.value == pytest.approx(f1)
    assert report.report["chunks"] == {"gold": 3, "predicted": 2, "correct": 1}
    assert report.report["types"]["VP"] == {"f1": 0, "precision": 0, "recall": 0, "gold": 1}


def test_with_only_one_type_the_others_are_outside():
    task, train = Chunking.fit(corpus_of("B-NP I-NP B-VP O"), only="NP")
    assert (task.tags, train.tags) == (("B-NP", "I-NP", "O"), ["B-NP", "I-NP", "O", "O"])
    assert task.gold(task.seen(corpus_of("B-VP B-NP", "B-PP"))).tags.tolist() == [2, 0, 2]


def test_rare_attributes_are_left_out():
    corpus = corpus_of("B-NP I-NP O", "B-NP I-NP O")  # 'dog' is there twice, every other word once
    full, some = (Chunking.fit(corpus, min_count=count)[0].index.names() for count in (1, 2))
    assert {name for name in full if name.startswith("U02:")} == {f"U02:{word}" for word in WORDS}
    assert {name for name in some if name.startswith("U02:")} == {"U02:dog"}
    with pytest.raises(UsageError, match="`min_count` 0: must be a whole number, 1 or more"):
        Chunking.fit(corpus, min_count=0)


def test_templates_for_columns_that_are_not_there_are_left_out_by_default():
    corpus = corpus_of("B-NP I-NP O")
    words_only = Corpus("f.txt", corpus.columns[:1], corpus.tags, corpus.offsets)
    task, _ = Chunking.fit(words_only, features="chunking")
    assert [str(template)[:3] for template in task.index.templates] == [f"U0{k}" for k in range(7)]
    with pytest.raises(DataError, match="has 2 columns before the tag, the model 1"):
        task.problem(corpus)
