"""Schemes of chunk tags: the same chunks in each, read as conlleval does and written back; other tags."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sparsezo import messages
from sparsezo.errors import DataError, UsageError
from sparsezo.tasks.chunking.io.conll import Corpus, read_conll
from sparsezo.tasks.chunking.metric import chunks, score_chunks
from sparsezo.tasks.chunking.options import PLAIN, SCHEMES
from sparsezo.tasks.chunking.tags import chunks_of, in_iob2, keep_only, require_chunks, spelled, understood


def corpus_of(*sentences: str) -> Corpus:
    """Sentences of tags, as a file with a blank line between them would hold them."""
    tags = [sentence.split() for sentence in sentences]
    flat = [tag for sentence in tags for tag in sentence]
    lines = [t + s + 1 for t, s in enumerate(s for s, sentence in enumerate(tags) for _ in sentence)]
    return Corpus("f.txt", (["w"] * len(flat),), flat, np.cumsum([0, *map(len, tags)]), np.array(lines, np.int32))


def scheme_of(*sentences: str) -> str:
    return understood(corpus_of(*sentences))[0]


def to_iob2(corpus: Corpus) -> Corpus:
    return understood(corpus)[1]


@pytest.mark.parametrize(
    ("sentences", "name"),
    [
        (["B-NP I-NP O B-VP", "O B-NP B-NP"], "iob2"),
        (["I-NP I-NP O I-VP", "I-NP B-NP I-VP"], "iob1"),
        (["O O", "O"], "iob2"),
        (["B I O", "B B"], "iob2"),
        (["I I O", "I B"], "iob1"),
        (["B-NP", "B-NP"], "iob2"),  # no chunk before it in its sentence
        (["B-NP E-NP O S-VP", "B-NP I-NP E-NP"], "bioes"),
        (["B-NP L-NP O U-VP", "B-NP I-NP L-NP"], "bilou"),
        (["B M E S", "S B E"], "bmes"),  # words of a sentence without spaces
        (["S-NP O", "O S-NP"], "bioes"),
        (["NN VB", "DT NN"], "plain"),
        (["NN O", "O O"], "plain"),
        (["S V", "M"], "plain"),  # letters, but no B and no I
    ],
)
def test_scheme(sentences, name):
    with messages.gathered():
        assert scheme_of(*sentences) == name


@pytest.mark.parametrize("tag", ["NN", "b-NP", "o", "B-", "I-", "B_NP", "BNP", "-NP", "X-NP", "OO", "W"])
def test_what_is_no_chunk_tag_is_refused_among_chunk_tags(tag):
    with pytest.raises(DataError) as error:
        understood(corpus_of("B-NP I-NP", f"O {tag} O"))
    assert str(error.value) == (
        f"f.txt:5: tag '{tag}' is no chunk tag: these are O, B-TYPE, I-TYPE, others of BIOES, BILOU and BMES, and the "
        "letters alone; mend it, or train with `scheme` plain if the tags are no chunks"
    )
    with pytest.raises(UsageError, match="is no chunk tag"):
        chunks_of([tag], np.array([0, 1]))


def test_where_most_tags_are_no_chunk_tags_they_are_plain():
    corpus = corpus_of("NN B-NP VB", "O NN")
    with messages.gathered() as said:
        assert understood(corpus) == ("plain", corpus)
    assert said == [
        "f.txt: tags such as 'NN' are no chunks: learned as plain tags, measured by accuracy (`scheme` says otherwise)"
    ]
    with pytest.raises(DataError, match=r"f.txt:1: tag 'NN' is no chunk tag"):
        understood(corpus, "iob2")
    mixed = corpus_of("B-NP NN", "O O")  # half, and not most
    with pytest.raises(DataError, match=r"f.txt:2: tag 'NN' is no chunk tag"):
        understood(mixed)
    with messages.gathered() as said:
        assert understood(mixed, "plain") == ("plain", mixed)
    assert said == []


@pytest.mark.parametrize(
    ("sentences", "scheme", "remark", "iob2"),
    [
        (
            ["B-NP I-NP", "O I-NP", "B-NP", "I-VP"],
            "iob2",
            "f.txt:5: tag 'I-NP' breaks IOB2, the first of 2 that do; read as conlleval reads them",
            "B-NP I-NP O B-NP B-NP B-VP",
        ),
        (
            ["I-NP I-NP", "O I-VP", "O B-NP"],
            "iob1",
            "f.txt:8: tag 'B-NP' breaks IOB1; read as conlleval reads it",
            "B-NP I-NP O B-VP O B-NP",
        ),
        (
            ["B-NP I-NP", "B-NP I-VP I-VP", "B-NP"],
            "iob2",
            "f.txt:5: tag 'I-VP' breaks IOB2; read as conlleval reads it",
            "B-NP I-NP B-NP B-VP I-VP B-NP",
        ),
        (
            ["B-NP E-NP S-NP", "S-NP I-NP I-NP O", "B-NP E-NP"],
            "bioes",
            "f.txt:6: tag 'I-NP' breaks BIOES, the first of 2 that do; read as conlleval reads them",
            "B-NP I-NP B-NP B-NP B-NP I-NP O B-NP I-NP",
        ),
    ],
)
def test_what_breaks_the_scheme_is_mended_and_said(sentences, scheme, remark, iob2):
    with messages.gathered() as said:
        name, corpus = understood(corpus_of(*sentences))
    assert (name, corpus.tags, said) == (scheme, iob2.split(), [remark])
    with messages.gathered() as said:
        assert understood(corpus)[1].tags == corpus.tags
    assert said == []


def test_what_a_person_says_is_what_it_is():
    with messages.gathered() as said:
        scheme, corpus = understood(corpus_of("B-NP I-NP O B-NP"), "bioes")
    assert (scheme, said) == ("bioes", [])
    assert spelled(corpus.tags, corpus.offsets, scheme) == ["B-NP", "E-NP", "O", "S-NP"]


def test_keep_only():
    kept = keep_only(corpus_of("I-NP I-NP B-NP I-VP O", "I-VP I-NP"), "NP")
    assert kept.tags == ["B-NP", "I-NP", "B-NP", "O", "O", "O", "B-NP"]
    assert keep_only(corpus_of("B I O B-NP"), "").tags == ["B", "I", "O", "O"]
    assert keep_only(corpus_of("B-A-B I-A-B"), "A-B").tags == ["B-A-B", "I-A-B"]


def test_keep_only_an_unknown_type():
    corpus = corpus_of("B-VP B-NP O B")
    with pytest.raises(UsageError) as error:
        keep_only(corpus, "np")
    assert str(error.value) == "f.txt: no chunk of type 'np'; the types in it are: '' (plain B and I), NP, VP"
    assert keep_only(corpus, "np", required=False).tags == ["O"] * 4


def test_no_chunk_at_all():
    corpus = corpus_of("O O", "O")
    assert to_iob2(corpus).tags == ["O"] * 3
    for refuse in (require_chunks, lambda c: keep_only(c, "NP")):
        with pytest.raises(DataError, match=r"f.txt: has no chunk, every tag is O; is the last column the chunk tag\?"):
            refuse(corpus)
    require_chunks(corpus_of("O B-NP"))


def test_no_tags():
    with pytest.raises(UsageError, match="has no tags; give a file whose last column is the tag"):
        understood(Corpus("f.txt", (["w"],), None, np.array([0, 1])))


# A sentence as chunks: (type or None for a single O, length).
chunked = st.lists(
    st.lists(st.tuples(st.sampled_from(["NP", "VP", "", None]), st.integers(1, 3)), min_size=1, max_size=6), max_size=4
)


def spell(sentences: list[list[tuple[str | None, int]]], scheme: str) -> list[str]:
    """The definitions, literally."""
    spelt = []
    for sentence in sentences:
        tags, before = [], None
        for kind, length in sentence:
            if kind is None:
                tags.append("O")
            else:
                first = "B" if scheme != "iob1" or before == kind else "I"
                inside = "M" if scheme == "bmes" else "I"
                last = {"bioes": "E", "bilou": "L", "bmes": "E"}.get(scheme, "I")
                only = {"bioes": "S", "bilou": "U", "bmes": "S"}.get(scheme, first)
                letters = only if length == 1 else first + inside * (length - 2) + last
                tags += [f"{letter}-{kind}" if kind else letter for letter in letters]
            before = kind
        spelt.append(" ".join(tags))
    return spelt


@settings(deadline=None)
@given(chunked, st.sampled_from(SCHEMES[1:-1]))
def test_every_scheme_has_the_same_chunks_and_is_found_and_written_back(sentences, scheme):
    assume(any(kind is not None for sentence in sentences for kind, _ in sentence))
    corpus, iob2 = corpus_of(*spell(sentences, scheme)), corpus_of(*spell(sentences, "iob2"))
    with messages.gathered() as said:
        found, seen = understood(corpus)
    assume(found != PLAIN)  # S and U alone
    assert seen.tags == iob2.tags
    assert spelled(seen.tags, seen.offsets, scheme) == corpus.tags
    assert spelled(corpus.tags, corpus.offsets, "iob2") == iob2.tags
    assert said == []
    assert spelled(iob2.tags, iob2.offsets, found) == corpus.tags  # of schemes that agree on these, any


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.lists(st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B", "B", "I"]), min_size=1, max_size=7),
        min_size=1,
        max_size=4,
    )
)
def test_any_tags_are_read_as_conlleval_reads_them(sentences):
    corpus = corpus_of(*map(" ".join, sentences))
    with messages.gathered() as said:
        scheme, seen = understood(corpus)
    assert scheme in ("iob1", "iob2")
    assert chunks(seen.tags, seen.offsets) == chunks(corpus.tags, corpus.offsets) == conlleval_chunks(sentences)
    broken = sum(a != b for a, b in zip(corpus.tags, spelled(seen.tags, seen.offsets, scheme), strict=True))
    assert bool(said) == bool(broken)
    assert broken <= min(
        sum(a != b for a, b in zip(corpus.tags, spelled(seen.tags, seen.offsets, name), strict=True))
        for name in ("iob1", "iob2")
    )


def conlleval_chunks(sentences: list[list[str]]) -> list[tuple[int, int, str]]:
    """By the rules of conlleval.pl (its startOfChunk and endOfChunk), token by token."""
    found, token = [], 0
    for sentence in sentences:
        first, kind, last_tag, last_type = None, "", "O", ""
        for tag in [*sentence, "O"]:
            letter, _, this = tag.partition("-")
            ends = (last_tag, letter) in {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O")}
            starts = (last_tag, letter) in {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I")}
            ends |= last_tag != "O" and last_type != this
            starts |= letter != "O" and last_type != this
            if ends and first is not None:
                found.append((first, token, kind))
                first = None
            if starts:
                first, kind = token, this
            last_tag, last_type = letter, this
            token += 1
        token -= 1  # the O behind the sentence
    return found


def sentences_of(corpus: Corpus, tags: list[str]) -> list[list[str]]:
    return [tags[i:j] for i, j in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True)]


@pytest.mark.data
def test_conll2000(real_data):
    corpus = read_conll(real_data / "conll2000" / "test.txt.gz")
    scheme, seen = understood(corpus)
    assert scheme == "iob2"
    assert seen.tags == corpus.tags
    assert keep_only(corpus, "NP").tags.count("B-NP") == 12422  # noun phrases of the shared task's test set


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "line", "tag", "gold"),
    [
        ("esp.testa.gz", 30882, "I-LOC", {"LOC": 985, "MISC": 445, "ORG": 1700, "PER": 1222}),
        ("esp.testb.gz", 9291, "I-MISC", {"LOC": 1084, "MISC": 340, "ORG": 1400, "PER": 735}),
    ],
)
def test_conll2002_as_published(real_data, name, line, tag, gold):
    """One tag of each file breaks IOB2; counts of gold and of a guess are those of the plain reference."""
    path = real_data / "conll2002" / name
    corpus = read_conll(path)
    with messages.gathered() as said:
        scheme, seen = understood(corpus)
    assert scheme == "iob2"
    assert said == [f"{path}:{line}: tag '{tag}' breaks IOB2; read as conlleval reads it"]
    wanted = conlleval_chunks(sentences_of(corpus, corpus.tags))
    assert Counter(kind for _, _, kind in wanted) == gold
    rng = np.random.default_rng(2)
    guess = [("O", "I-PER", "B-LOC")[rng.integers(3)] if rng.random() < 0.2 else tag for tag in corpus.tags]
    found = conlleval_chunks(sentences_of(corpus, guess))
    scores = score_chunks(seen.tags, guess, corpus.offsets)
    assert (scores.gold, scores.predicted, scores.correct) == (len(wanted), len(found), len({*wanted} & {*found}))


def test_one_sentence_of_outputs_is_spelled_as_any():
    for tags in itertools.product(["B-NP", "I-NP", "B-VP", "I-VP", "O"], repeat=4):
        assert in_iob2(tags) == spelled(tags, np.array([0, 4]), "iob2")
    for tags in itertools.product("BIO", repeat=4):
        assert in_iob2(tags) == spelled(tags, np.array([0, 4]), "iob2")
