"""Generated sentences for noun-phrase chunking: English-like, ambiguous, as many as asked for.

    sentences = generate_chunking(2000, seed=1)           # each a list of (word, part of speech, chunk tag)
    sentences[1][:3]            # [('The', 'DT', 'B-NP'), ('spotevoltive', 'JJ', 'I-NP'), ('have', 'VBP', 'O')]
    Path("train.txt").write_text(chunking_columns(sentences))

The chunks follow the habits of CoNLL-2000 (IOB2): a possessive 's opens a chunk, a relative pronoun is one, a
predicative adjective is none, *cats and dogs* is one chunk or two by the words in it. As in that corpus the part
of speech comes from a tagger that errs, mostly on words with several readings. Where one chunk ends and the next
begins often hangs on a word and not on its tag: on verbs with two objects, nouns before nouns, gerunds, *that*.

The words are those of ``lexicon.py``, the phrases those of ``grammar.py`` and ``noun_phrases.py``.
Sentence i is a pure function of (seed, i), so a longer list starts with the shorter one, and two seeds give a
training and a test set of the same language.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from sparsezo.errors import UsageError
from sparsezo.tasks.chunking.conll import Corpus
from sparsezo.tasks.chunking.grammar import CLOSED_CLASS, Token, write_sentence
from sparsezo.tasks.chunking.lexicon import Draw, Lexicon, lexicon, uniforms

SMALLEST_VOCABULARY = 300

# How often the tagger errs: on words with several readings, with one, and outside the lexicon.
ERROR_AMBIGUOUS, ERROR_KNOWN, ERROR_UNKNOWN = 0.06, 0.008, 0.08
ERROR_CAPITAL = 0.06  # how often it takes a sentence's first word for a name
_CONFUSIONS = {
    "NN": ("JJ", "NNP", "VB"), "NNS": ("VBZ", "NNP"), "NNP": ("NN", "JJ"), "JJ": ("NN", "VBN"), "RB": ("JJ",),
    "VB": ("NN",), "VBP": ("NN", "VB"), "VBZ": ("NNS",), "VBD": ("VBN", "JJ"), "VBN": ("VBD", "JJ"),
    "VBG": ("NN", "JJ"),
}  # fmt: skip
_FUNCTION_READINGS = {
    "that": ("IN", "DT", "WDT"), "about": ("IN", "RB"), "over": ("IN", "RB"), "'s": ("POS", "VBZ"),
    "her": ("PRP", "PRP$"), "more": ("RBR", "JJR"), "most": ("RBS", "JJS"), "less": ("RBR", "JJR"),
    "up": ("RP", "IN", "RB"), "down": ("RP", "RB"), "off": ("RP", "IN"), "as": ("IN", "RB"), "one": ("CD", "NN"),
}  # fmt: skip


def generate_chunking(
    n_sentences: int, seed: int, *, vocabulary: int = 6000, unseen: float = 0.01
) -> list[list[Token]]:
    """``n_sentences`` sentences of a language with ``vocabulary`` lemmas.

    ``unseen`` is the share of nouns, adjectives, names and transitive verbs that are coined on the spot. Rare words
    of the lexicon add to what a test set has and a training set has not: nearly 7% of the tokens of one seed do not
    occur in 2,000 sentences of another.
    """
    for name, value, least in (
        ("n_sentences", n_sentences, 0),
        ("seed", seed, 0),
        ("vocabulary", vocabulary, SMALLEST_VOCABULARY),
    ):
        if value < least:
            raise UsageError(f"{name} is {value}; give {least} or more")
    if not 0 <= unseen <= 1:
        raise UsageError(f"unseen is {unseen}; give a share from 0 to 1")
    words = lexicon(vocabulary)
    return [_sentence(words, unseen, uniforms(seed, index).__next__) for index in range(n_sentences)]


def chunking_corpus(n_sentences: int, seed: int) -> Corpus:
    """Generated sentences as a reader of column files would give them."""
    sentences = generate_chunking(n_sentences, seed)
    words, pos, tags = (list(column) for column in zip(*itertools.chain.from_iterable(sentences), strict=True))
    offsets = np.cumsum([0, *map(len, sentences)]).astype(np.int64)
    return Corpus(f"generated (seed {seed})", (words, pos), tags, offsets)


def chunking_columns(sentences: Iterable[Iterable[Token]]) -> str:
    """The sentences as CoNLL columns: word, part of speech and tag, one token a line, a blank line after each."""
    return "".join("".join(f"{' '.join(token)}\n" for token in sentence) + "\n" for sentence in sentences)


def _sentence(words: Lexicon, unseen: float, draw: Draw) -> list[Token]:
    """One sentence as it is read: the tagger's parts of speech, and a capital in front."""
    tokens = [(word, _observed(words, word, pos, draw), tag) for word, pos, tag in write_sentence(words, unseen, draw)]
    word, pos, tag = tokens[0]
    if pos in ("NN", "NNS", "JJ") and draw() < ERROR_CAPITAL:
        pos = "NNP"
    tokens[0] = (word[:1].upper() + word[1:], pos, tag)
    return tokens


def _observed(words: Lexicon, word: str, pos: str, draw: Draw) -> str:
    """The tag the tagger gives a word whose tag is ``pos``."""
    readings = _FUNCTION_READINGS.get(word) or words.readings.get(word)
    if readings is None:
        if pos not in _CONFUSIONS or word in CLOSED_CLASS:
            return pos
        rate, others = ERROR_UNKNOWN, _CONFUSIONS[pos]
    elif len(readings) == 1:
        rate, others = ERROR_KNOWN, _CONFUSIONS.get(pos, readings)
    else:
        rate, others = ERROR_AMBIGUOUS, tuple(reading for reading in readings if reading != pos)
    u = draw()
    return others[int(u / rate * len(others))] if u < rate else pos
