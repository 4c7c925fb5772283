"""IOB1 and IOB2: the same chunks either way; everything else is refused with its place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sparsezo.errors import DataError, UsageError
from sparsezo.tasks.chunking.conll import Corpus, read_conll
from sparsezo.tasks.chunking.tags import iob, keep_only, require_chunks, scheme, to_iob2


def corpus_of(*sentences: str) -> Corpus:
    """Sentences of tags, as a file with a blank line between them would hold them."""
    tags = [sentence.split() for sentence in sentences]
    flat = [tag for sentence in tags for tag in sentence]
    lines = [t + s + 1 for t, s in enumerate(s for s, sentence in enumerate(tags) for _ in sentence)]
    return Corpus("f.txt", (["w"] * len(flat),), flat, np.cumsum([0, *map(len, tags)]), np.array(lines, np.int32))


@pytest.mark.parametrize(
    ("sentences", "name"),
    [
        (["B-NP I-NP O B-VP", "O B-NP B-NP"], "IOB2"),
        (["I-NP I-NP O I-VP", "I-NP B-NP I-VP"], "IOB1"),
        (["O O", "O"], "IOB2"),
        (["B I O", "B B"], "IOB2"),
        (["I I O", "I B"], "IOB1"),
        (["B-NP", "B-NP"], "IOB2"),  # no chunk before it in its sentence
    ],
)
def test_scheme(sentences, name):
    assert scheme(corpus_of(*sentences)) == name


@pytest.mark.parametrize("tag", ["S-NP", "E-NP", "U-NP", "L-NP", "NN", "b-NP", "o", "B-", "I-", "B_NP", "BNP", "-NP"])
def test_other_tags_are_refused(tag):
    with pytest.raises(DataError) as error:
        scheme(corpus_of("B-NP I-NP", f"O {tag} O"))
    assert str(error.value) == (
        f"f.txt:5: tag '{tag}' is not IOB1 or IOB2; understood are B-TYPE, I-TYPE and O, or plain B, I and O "
        "(convert BIOES or BILOU first)"
    )
    with pytest.raises(UsageError, match="is not IOB1 or IOB2"):
        iob([tag], np.array([0, 1]))


def test_a_mixture_is_refused_at_the_rarer_kind():
    with pytest.raises(DataError) as error:
        scheme(corpus_of("B-NP I-NP", "O I-NP", "B-NP"))
    assert str(error.value) == (
        "f.txt:5: tag 'I-NP' starts a chunk as in IOB1, but 'B-NP' at f.txt:1 as in IOB2; use one of the two throughout"
    )
    with pytest.raises(DataError, match=r"f.txt:8: tag 'B-NP' starts a chunk as in IOB2, but 'I-NP' at f.txt:1"):
        to_iob2(corpus_of("I-NP I-NP", "O I-VP", "O B-NP"))


def test_to_iob2():
    corpus = corpus_of("I-NP I-NP B-NP I-VP O", "I-VP I I")
    assert to_iob2(corpus).tags == ["B-NP", "I-NP", "B-NP", "B-VP", "O", "B-VP", "B", "I"]
    assert corpus.tags == ["I-NP", "I-NP", "B-NP", "I-VP", "O", "I-VP", "I", "I"]


def test_keep_only():
    assert keep_only(corpus_of("I-NP I-NP B-NP I-VP O", "I-VP I-NP"), "NP").tags == [
        "B-NP",
        "I-NP",
        "B-NP",
        "O",
        "O",
        "O",
        "B-NP",
    ]
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
    with pytest.raises(UsageError, match="has no tags; give a file whose last column is the chunk tag"):
        scheme(Corpus("f.txt", (["w"],), None, np.array([0, 1])))


# A sentence as chunks: (type or None for a single O, length).
chunked = st.lists(
    st.lists(st.tuples(st.sampled_from(["NP", "VP", "", None]), st.integers(1, 3)), min_size=1, max_size=6), max_size=4
)


def spell(sentences: list[list[tuple[str | None, int]]], first_is_b: bool) -> list[str]:
    """The definition, literally: B- at every chunk's start, or only after a chunk of the same type."""
    spelt = []
    for sentence in sentences:
        tags, before = [], None
        for kind, length in sentence:
            if kind is None:
                tags.append("O")
            else:
                dash = "-" if kind else ""
                b = first_is_b or before == kind
                tags += [("B" if b else "I") + dash + kind] + [f"I{dash}{kind}"] * (length - 1)
            before = kind
        spelt.append(" ".join(tags))
    return spelt


@settings(deadline=None)
@given(chunked)
def test_both_schemes_give_the_same_iob2(sentences):
    iob1, iob2 = corpus_of(*spell(sentences, False)), corpus_of(*spell(sentences, True))
    assert to_iob2(iob1).tags == to_iob2(iob2).tags == iob2.tags
    assume(any(kind is not None for sentence in sentences for kind, _ in sentence))
    assert (scheme(iob1), scheme(iob2)) == ("IOB1", "IOB2")


@pytest.mark.data
def test_conll2000(real_data):
    corpus = read_conll(real_data / "conll2000" / "test.txt.gz")
    assert scheme(corpus) == "IOB2"
    assert to_iob2(corpus).tags == corpus.tags
    assert keep_only(corpus, "NP").tags.count("B-NP") == 12422  # noun phrases of the shared task's test set
