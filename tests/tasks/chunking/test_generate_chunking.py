"""The generated chunking data: reproducible, well formed, and ambiguous in the ways it promises."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from sparsezo.errors import UsageError
from sparsezo.tasks.chunking.generate import chunking_columns, chunking_corpus, generate_chunking
from sparsezo.tasks.chunking.lexicon import inflect, lexicon

Sentences = list[list[tuple[str, str, str]]]


@pytest.fixture(scope="module")
def train() -> Sentences:
    return generate_chunking(2000, seed=1)


@pytest.fixture(scope="module")
def test() -> Sentences:
    return generate_chunking(500, seed=2)


def _chunks(tags: list[str]) -> set[tuple[int, int]]:
    """(start, end) of every chunk of IOB2 tags, where an I-NP after O opens one too."""
    starts = [i for i, t in enumerate(tags) if t == "B-NP" or (t == "I-NP" and (i == 0 or tags[i - 1] == "O"))]
    ends = [next((j for j in range(i + 1, len(tags)) if tags[j] != "I-NP"), len(tags)) for i in starts]
    return set(zip(starts, ends, strict=True))


def test_same_call_same_sentences_and_a_longer_list_starts_with_the_shorter(train: Sentences) -> None:
    assert generate_chunking(50, seed=1) == train[:50]
    lexicon.cache_clear()
    assert generate_chunking(50, seed=1) == train[:50]


def test_the_sentences_are_those_they_always_were() -> None:
    """Published numbers rest on these sentences: a change here is a change of the data."""
    words = [word for word, _, _ in generate_chunking(1, seed=7)[0]]
    assert " ".join(words[:11]) == "0.2 felks are crosking many blost glourns yesterday in snolding Scegelk"
    columns = chunking_columns(generate_chunking(200, seed=7))
    assert (
        hashlib.sha256(columns.encode()).hexdigest()
        == "99acfeaa3d0bd0b5a5a185d740df2d282e68f259beeb465d332046c039381809"
    )


def test_seeds_and_settings_differ(train: Sentences) -> None:
    assert generate_chunking(20, seed=2) != train[:20]
    assert generate_chunking(20, seed=1, vocabulary=1000) != train[:20]
    assert generate_chunking(20, seed=1, unseen=0.5) != train[:20]


def test_tags_are_iob2_and_tokens_are_clean(train: Sentences) -> None:
    for sentence in train:
        tags = ["O", *(tag for _, _, tag in sentence)]
        assert set(tags) <= {"O", "B-NP", "I-NP"}
        assert all(before != "O" for before, tag in pairwise(tags) if tag == "I-NP")
        assert all(field and not any(c.isspace() for c in field) for token in sentence for field in token)
        assert sentence[-1] == (".", ".", "O")
        assert not sentence[0][0][0].islower()


def test_lengths(train: Sentences) -> None:
    lengths = [len(sentence) for sentence in train]
    assert 18 <= sum(lengths) / len(lengths) <= 20.5
    assert min(lengths) >= 8
    assert max(lengths) <= 40
    assert sum(length > 30 for length in lengths) < 0.02 * len(lengths)


def test_many_words_have_several_parts_of_speech(train: Sentences) -> None:
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in train:
        for word, pos, _ in sentence[1:]:
            seen[word][pos] += 1
    ambiguous = [word for word, count in seen.items() if len(count) > 1]
    assert len(ambiguous) > 400
    assert {"IN", "DT", "WDT"} <= seen["that"].keys()
    assert {"POS", "VBZ"} <= seen["'s"].keys()
    kinds = {tuple(sorted(readings)) for readings in lexicon(6000).readings.values()}
    assert {("NN", "VB", "VBP"), ("NNS", "VBZ"), ("JJ", "NN"), ("NN", "VBG"), ("VBD", "VBN")} <= kinds


def test_the_same_parts_of_speech_are_chunked_in_several_ways(train: Sentences) -> None:
    ways: dict[tuple[str, ...], Counter[tuple[str, ...]]] = defaultdict(Counter)
    for sentence in train:
        for start in range(len(sentence) - 2):
            _, pos, tags = zip(*sentence[start : start + 3], strict=True)
            ways[pos][tags] += 1

    def both(pos: str, one: str, other: str) -> bool:
        count = ways[tuple(pos.split())]
        return all(count[tuple(tags.split())] >= 5 for tags in (one, other))

    assert both("NNS CC NNS", "B-NP I-NP I-NP", "B-NP O B-NP")  # coordination
    assert both("DT NN NNS", "B-NP I-NP I-NP", "B-NP I-NP B-NP")  # compound, two objects
    assert both("IN VBG NNS", "O B-NP I-NP", "O O B-NP")  # gerund before a noun, as a verb
    assert both("IN CD NNS", "B-NP I-NP I-NP", "O B-NP I-NP")  # 'about 20 people'
    assert both("DT NN NN", "B-NP I-NP I-NP", "B-NP I-NP B-NP")  # compound, time


def test_words_matter_beyond_their_parts_of_speech(train: Sentences, test: Sentences) -> None:
    """Coordinations of plurals: the nouns seen in training tell one chunk from two better than the majority does."""
    inside: dict[str, list[bool]] = defaultdict(list)
    outcomes = []
    for data, learn in ((train, True), (test, False)):
        for sentence in data:
            for one, two, three in zip(sentence, sentence[1:], sentence[2:], strict=False):
                if (one[1], two[1], three[1]) != ("NNS", "CC", "NNS"):
                    continue
                bound = two[2] == "I-NP"
                if learn:
                    for word in (one[0], three[0]):
                        inside[word].append(bound)
                else:
                    guess = all(any(inside[word]) for word in (one[0], three[0]))
                    outcomes.append((bound, guess))
    majority = max(sum(bound for bound, _ in outcomes), sum(not bound for bound, _ in outcomes))
    assert len(outcomes) > 50
    assert sum(bound == guess for bound, guess in outcomes) > majority + 0.1 * len(outcomes)


def test_parts_of_speech_alone_do_not_solve_it(train: Sentences, test: Sentences) -> None:
    count: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in train:
        for _, pos, tag in sentence:
            count[pos][tag] += 1
    hits = predicted = gold = 0
    for sentence in test:
        truth = _chunks([tag for _, _, tag in sentence])
        guess = _chunks([count[pos].most_common(1)[0][0] if count[pos] else "O" for _, pos, _ in sentence])
        hits, predicted, gold = hits + len(truth & guess), predicted + len(guess), gold + len(truth)
    assert 0.70 < 2 * hits / (predicted + gold) < 0.88


def test_frequencies_fall_like_zipf(train: Sentences) -> None:
    count = Counter(word for sentence in train for word, _, _ in sentence)
    ranked = [n for _, n in count.most_common()]
    assert len(ranked) > 3000
    assert sum(n == 1 for n in ranked) > 0.3 * len(ranked)
    for rank in (10, 30, 100, 300):  # ten times the rank, some five to forty times rarer
        assert 3 < ranked[rank] / ranked[10 * rank] < 50


def test_unseen_rate(train: Sentences, test: Sentences) -> None:
    known = {word for sentence in train for word, _, _ in sentence}

    def rate(sentences: Sentences) -> float:
        words = [word for sentence in sentences for word, _, _ in sentence]
        return sum(word not in known for word in words) / len(words)

    assert 0.03 < rate(test) < 0.08
    assert rate(generate_chunking(500, seed=2, unseen=0.2)) > rate(test) + 0.03


def test_a_corpus_holds_the_sentences(test: Sentences) -> None:
    corpus = chunking_corpus(20, seed=2)
    assert corpus.offsets.tolist() == [sum(map(len, test[:k])) for k in range(21)]
    assert list(zip(*corpus.columns, corpus.tags, strict=True)) == [
        token for sentence in test[:20] for token in sentence
    ]
    assert corpus.path == "generated (seed 2)"


def test_columns() -> None:
    sentences = [[("Trond", "NNP", "B-NP"), (".", ".", "O")], [("It", "PRP", "B-NP")]]
    assert chunking_columns(sentences) == "Trond NNP B-NP\n. . O\n\nIt PRP B-NP\n\n"
    assert chunking_columns([]) == ""


@pytest.mark.parametrize(
    ("n_sentences", "seed", "vocabulary", "unseen", "named"),
    [
        (-1, 0, 6000, 0.0, "n_sentences"),
        (1, -1, 6000, 0.0, "seed"),
        (1, 0, 10, 0.0, "vocabulary"),
        (1, 0, 6000, 1.5, "unseen"),
        (1, 0, 6000, float("nan"), "unseen"),
    ],
)
def test_bad_settings_are_refused(n_sentences: int, seed: int, vocabulary: int, unseen: float, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        generate_chunking(n_sentences, seed, vocabulary=vocabulary, unseen=unseen)


@pytest.mark.parametrize("vocabulary", [300, 20_000])
@pytest.mark.parametrize("unseen", [0.0, 1.0])
def test_extreme_settings_work(vocabulary: int, unseen: float) -> None:
    assert generate_chunking(0, seed=3, vocabulary=vocabulary, unseen=unseen) == []
    assert len(generate_chunking(50, seed=3, vocabulary=vocabulary, unseen=unseen)) == 50


@pytest.mark.parametrize(
    ("stem", "ending", "word"),
    [("trask", "s", "trasks"), ("crish", "s", "crishes"), ("draldy", "s", "draldies"), ("flay", "s", "flays"),
     ("smarage", "ed", "smaraged"), ("smarage", "ing", "smaraging"), ("draldy", "ly", "draldily"),
     ("plondic", "ly", "plondically"), ("parkable", "ly", "parkably"), ("trem", "ed", "tremed")],
)  # fmt: skip
def test_spelling(stem: str, ending: str, word: str) -> None:
    assert inflect(stem, ending) == word
