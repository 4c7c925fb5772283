"""Made-up sentences for noun-phrase chunking: English-like, ambiguous, as many as asked for.

    sentences = generate_chunking(2000, seed=1)         # each a list of (word, part of speech, chunk tag)
    Path("train.txt").write_text(chunking_columns(sentences))
    chunking_corpus(2000, seed=1)                       # the same, as a reader of column files would give it

A small probabilistic grammar with made-up words of Zipf's frequencies. The chunks follow the habits of CoNLL-2000, and
as there the part of speech comes from a tagger that errs. Where one chunk ends and the next begins often hangs on a
word and not on its tag: on verbs with two objects, on nouns that bind in *cats and dogs*, on *about* and *that*.
Sentence i is a pure function of (seed, i), so a longer list starts with the shorter one, and two seeds give a training
and a test set of the same language.
"""

from __future__ import annotations

import functools
import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from sparsezo.errors import UsageError
from sparsezo.storage.files import share, write_packed
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.spec import ExperimentFiles

Token = tuple[str, str, str]  # word, part of speech, chunk tag
Draw = Callable[[], float]  # the next uniform number in [0, 1)

# A line has a symbol and what may stand for it, each with its weight; the first is taken where a sentence is getting
# long. word/TAG is a word, class:TAG a word of a class (_CLASSES) in the form that the tag asks for, [ ... ] a chunk.
_GRAMMAR = """
CLAUSE  78 SUBJ VP | 12 PP ,/, SUBJ VP | 5 r:RB ,/, SUBJ VP | 3 r:RB SUBJ VP
MORE    25 PP | 15 ,/, and/CC CLAUSE | 12 because/IN CLAUSE | 8 as/IN CLAUSE | 15 ,/, t:VBG NP | 10 to/TO INF
        | 15 ,/, SUBJ c:VBD
SUBJ    4 [ he/PRP ] | 4 [ it/PRP ] | 3 [ they/PRP ] | 3 [ this/DT ] | 2 [ that/DT ] | 80 NP
OBJ     4 [ it/PRP ] | 3 [ them/PRP ] | 2 [ her/PRP ] | 3 [ some/DT ] | 70 NP
NP      60 COMMON | 14 NAME | 7 AMOUNT | 7 PAIR | 7 [ e:NNP ] [ 's/POS CORE n:NN ] | 25 COMMON PP | 5 COMMON WHICH
        | 3 COMMON t:VBN PP | 4 COMMON [ p:NNS ] t:VBD
COMMON  28 [ the/DT CORE n:NN ] | 12 [ a/DT CORE n:NN ] | 3 [ that/DT CORE n:NN ] | 8 [ its/PRP$ CORE n:NN ]
        | 30 [ CORE n:NNS ] | 15 [ the/DT CORE n:NNS ] | 3 [ some/DT CORE n:NNS ] | 2 [ the/DT j:JJ ]
CORE    55 | 16 m:NN | 20 j:JJ | 5 j:JJ m:NN | 2 very/RB j:JJ | 2 more/RBR j:JJ | 1 most/RBS j:JJ | 4 i:VBG | 3 t:VBN
NAME    60 [ e:NNP ] | 10 [ Mr./NNP e:NNP ] | 6 [ e:NNP e:NNP ] | 8 [ e:NNP Corp./NNP ] | 9 [ e:NNP ] and/CC [ e:NNP ]
        | 7 [ e:NNP ] ,/, [ p:NN ] of/IN COMMON ,/,
PAIR    26 [ b:NNS and/CC b:NNS ] | 8 [ b:NNS ] and/CC [ u:NNS ] | 8 [ u:NNS ] and/CC [ b:NNS ]
        | 10 [ u:NNS ] and/CC [ u:NNS ] | 8 [ j:JJ b:NNS or/CC b:NNS ] | 5 [ u:NN ] or/CC [ u:NN ]
AMOUNT  25 [ NUMBER UNIT ] | 12 [ about/IN NUMBER UNIT ] | 8 [ only/RB NUMBER UNIT ] | 15 [ NUMBER n:NNS ]
        | 15 [ NUMBER %/NN ] | 12 [ $/$ NUMBER million/CD ] | 5 [ NUMBER UNIT ] [ a/DT year/NN ]
NUMBER  5 two/CD | 4 three/CD | 3 one/CD | 2 ten/CD | 2 20/CD | 1 50/CD | 1 100/CD | 1 1.5/CD
UNIT    5 years/NNS | 4 points/NNS | 3 shares/NNS | 3 people/NNS
PP      90 PREP NP | 6 by/IN t:VBG NP | 4 of/IN t:VBG NP
PREP    30 of/IN | 20 in/IN | 10 for/IN | 7 on/IN | 6 with/IN | 5 from/IN | 5 at/IN | 5 about/IN | 8 to/TO | 3 as/IN
WHICH   3 [ that/WDT ] VP | 2 [ which/WDT ] VP | 2 [ who/WP ] VP | 2 [ that/WDT ] [ p:NNS ] t:VBD
VP      34 t:FINITE OBJ | 5 t:FINITE OBJ TIME | 17 i:FINITE TAIL | 14 BE COPULA | 5 c:FINITE that/IN CLAUSE
        | 8 d:FINITE WHOM [ CORE n:NNS ] | 6 o:FINITE to/TO INF | 6 a:FINITE about/IN [ NUMBER UNIT ]
        | 3 k:FINITE COMMON j:JJ | 6 BE t:VBN PP | 4 c:FINITE CLAUSE
INF     45 t:VB OBJ | 25 i:VB TAIL | 15 be/VB j:JJ | 10 d:VB WHOM [ CORE n:NN ]
WHOM    3 [ the/DT p:NN ] | 3 [ p:NNS ] | 2 [ e:NNP ] | 2 [ her/PRP ]
TAIL    3 | 2 up/RP | 2 r:RB | 4 PP | 1 [ NUMBER UNIT ]
TIME    4 [ yesterday/NN ] | 3 [ Monday/NNP ] | 3 [ last/JJ week/NN ] | 3 [ a/DT year/NN ] ago/RB
BE      5 was/VBD | 4 were/VBD | 4 is/VBZ | 3 are/VBP | 1 's/VBZ
COPULA  20 j:JJ | 6 very/RB j:JJ | 25 COMMON | 25 NP | 15 PP
"""
_FINITE = ((0.46, "VBD"), (0.57, "VBP"), (0.68, "VBZ"), (0.82, "will/MD VB"), (0.92, "has/VBZ VBN"), (1, "was/VBD VBG"))
_SHORTEST, _LONG = 8, 24  # tokens of a sentence; when it should come to an end
_CLASSES = {  # every so many of a part of the lexicon, from where
    "n": ("noun", 1, 0), "p": ("noun", 7, 3), "m": ("noun", 5, 2), "b": ("noun", 60, 4), "u": ("noun", 60, 34),
    "j": ("adjective", 1, 0), "r": ("adjective", 1, 0), "e": ("name", 1, 0),
    "t": ("verb", 2, 0), "i": ("verb", 4, 1), "d": ("verb", 20, 3), "c": ("verb", 20, 7), "o": ("verb", 20, 11),
    "a": ("verb", 20, 15), "k": ("verb", 20, 19),
}  # fmt: skip
_LEXICON = {  # how many words, in what forms
    "noun": (2800, "NN NNS"), "verb": (1200, "VB VBP VBZ VBD VBN VBG"), "adjective": (1000, "JJ RB"),
    "name": (1000, "NNP"),
}  # fmt: skip
_ENDINGS = {"NNS": "s", "VBZ": "s", "VBD": "ed", "VBN": "ed", "VBG": "ing", "RB": "ly"}
_SUFFIXES = {"noun": ("", "", "", "er", "ation", "ment", "ity"), "adjective": ("", "al", "ive", "ous", "ic", "able")}
_ONSETS, _VOWELS, _LINKS, _CODAS = (
    "b bl br c ch cl cr d dr f fl fr g gl gr h j k l m n p pl pr r s sc sh sk sl sn sp st str t th tr v w",
    "a a e e i i o o u ai ea oo ou",
    "b c d f g l m n p r s t v",
    "ft l ld lk lm lt mp nd ng rb rf rk rm rn sk st",
)

_NEW = 0.01  # the share of nouns, names, adjectives and verbs that no sentence has had
_ERROR_AMBIGUOUS, _ERROR_KNOWN, _ERROR_NEW = 0.06, 0.008, 0.08  # how often the tagger errs: several readings, one, new
_CONFUSIONS = {
    "NN": "JJ NNP VB", "NNS": "VBZ NNP", "NNP": "NN JJ", "JJ": "NN VBN", "RB": "JJ", "VB": "NN", "VBP": "NN VB",
    "VBZ": "NNS", "VBD": "VBN JJ", "VBN": "VBD JJ", "VBG": "NN JJ",
}  # fmt: skip
_READINGS = {
    "that": "IN DT WDT", "about": "IN RB", "over": "IN RB", "'s": "POS VBZ", "her": "PRP PRP$", "more": "RBR JJR",
    "most": "RBS JJS", "up": "RP IN", "as": "IN RB",
}  # fmt: skip


def generate_chunking(n_sentences: int, seed: int) -> list[list[Token]]:
    """``n_sentences`` sentences of (word, part of speech, chunk tag); the tags are O, B-NP and I-NP."""
    for name, value in (("n_sentences", n_sentences), ("seed", seed)):
        if value < 0:
            raise UsageError(f"{name} is {value}; give 0 or more")
    return [_sentence(_uniforms(seed, index).__next__) for index in range(n_sentences)]


def chunking_corpus(n_sentences: int, seed: int) -> Corpus:
    """Made-up sentences as a reader of column files would give them."""
    sentences = generate_chunking(n_sentences, seed)
    words, pos, tags = (list(column) for column in zip(*itertools.chain.from_iterable(sentences), strict=True))
    offsets = np.cumsum([0, *map(len, sentences)]).astype(np.int64)
    return Corpus(f"generated (seed {seed})", (words, pos), tags, offsets)


def chunking_columns(sentences: Iterable[Iterable[Token]]) -> str:
    """The sentences as CoNLL columns: word, part of speech and tag, one token a line, a blank line after each."""
    return "".join("".join(f"{' '.join(token)}\n" for token in sentence) + "\n" for sentence in sentences)


# Files (``tasks.spec.Synthetic``)

ENDING, SIZE = ".txt", 2000
FORMATS: tuple[str, ...] = ()
_PARTS = (2000, 500, 1000)  # sentences of an experiment's train, dev and test


def paths(target: Path, weights: Path) -> list[Path]:
    return [target]


def write(target: Path, weights: Path, n: int, seed: int, format: str | None) -> None:
    write_packed(target, (chunking_columns([sentence]) for sentence in generate_chunking(n, seed)))


def write_source(source: ExperimentFiles) -> None:
    train, dev, test = _PARTS
    share(source.train, generate_chunking(train + int(source.held_out or 0), 1), chunking_columns)
    for path, size, seed in ((source.dev, dev, 2), (source.test, test, 3)):
        if path and path != source.held_out:
            write(Path(path), Path(), size, seed, None)


# Sentences


def _uniforms(*key: int) -> Iterator[float]:
    """An endless stream of uniform numbers that is a pure function of ``key``."""
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))
    while True:
        yield from generator.random(192).tolist()


def _sentence(draw: Draw) -> list[Token]:
    tokens: list[Token] = []
    target = _SHORTEST - 1 + 15 * draw()
    _expand("CLAUSE", tokens, draw)
    while len(tokens) < target:
        _expand("MORE", tokens, draw)
    word, pos, tag = tokens[0]
    return [(word[:1].upper() + word[1:], pos, tag), *tokens[1:], (".", ".", "O")]


def _expand(symbol: str, tokens: list[Token], draw: Draw, tag: str = "O") -> str:
    """Append what stands for a symbol. Goes in and out: the tag of the next word."""
    alternatives, cumulative = _grammar()[symbol]
    for item in alternatives[bisect_right(cumulative, draw()) if len(tokens) < _LONG else 0]:
        if item == "[" or item == "]":
            tag = "B-NP" if item == "[" else "O"
        elif item.isupper() and item.isalpha():
            tag = _expand(item, tokens, draw, tag)
        else:
            for word, pos in _words(item, draw):
                tokens.append((word, pos, tag))
                tag = "O" if tag == "O" else "I-NP"
    return tag


@functools.cache
def _grammar() -> dict[str, tuple[list[list[str]], list[float]]]:
    """Of each symbol what may stand for it, and the cumulative probabilities of all but the last."""
    made = {}
    for line in _GRAMMAR.replace("\n   ", " ").strip().splitlines():
        symbol, rest = line.split(None, 1)
        alternatives = [each.split() for each in rest.split("|")]
        made[symbol] = [each[1:] for each in alternatives], _cumulative(float(each[0]) for each in alternatives)
    return made


def _cumulative(weights: Iterable[float]) -> list[float]:
    sums = list(itertools.accumulate(weights))
    return [each / sums[-1] for each in sums[:-1]]


# Words


def _words(item: str, draw: Draw) -> Iterator[tuple[str, str]]:
    """The words that an item of the grammar stands for, with the parts of speech that the tagger gives them."""
    name, _, pos = item.rpartition(":")
    if not name:
        word, pos = item.rsplit("/", 1)
        readings, rate = _READINGS.get(word, ""), _ERROR_AMBIGUOUS
    else:
        if pos == "FINITE":
            u = draw()
            *before, pos = next(form for limit, form in _FINITE if u < limit).split()
            for each in [*before, "r:RB"] if draw() < 0.15 else before:
                yield from _words(each, draw)
        bags, known = _lexicon()
        stems, cumulative = bags[name]
        new = draw() < _NEW
        stem = _coined(_CLASSES[name][0], 3, draw) if new else stems[bisect_right(cumulative, draw())]
        word = _inflected(stem, pos)
        readings, rate = _CONFUSIONS.get(pos, ""), _ERROR_NEW if new else _ERROR_KNOWN
        if len(known.get(word, ())) > 1:
            readings, rate = " ".join(known[word]), _ERROR_AMBIGUOUS
    others = [reading for reading in readings.split() if reading != pos]
    u = draw()
    yield word, others[int(u / rate * len(others))] if u < rate and others else pos


@functools.cache
def _lexicon() -> tuple[dict[str, tuple[list[str], list[float]]], dict[str, dict[str, None]]]:
    """Of each class its words and their cumulative probabilities; of each form of a word what it may be."""
    draw = _uniforms(0).__next__
    taken: dict[str, None] = {}
    stems = {}
    for part, (n, _) in _LEXICON.items():
        before = len(taken)
        while (new := len(taken) - before) < n:
            taken[_coined(part, 1 + (new > 0.1 * n) + (new > 0.4 * n), draw)] = None  # frequent words are short
        stems[part] = list(taken)[before:]
    for place, stem in enumerate(stems["verb"][::2]):  # a plan, to plan
        stems["noun"][4 * place + 1] = stem
    for place, stem in enumerate(stems["adjective"][::4]):  # an official, official
        stems["noun"][8 * place + 3] = stem
    bags = {}
    for name, (part, every, first) in _CLASSES.items():
        ranks = range(first, len(stems[part]), every)
        bags[name] = [stems[part][rank] for rank in ranks], _cumulative((rank + 3) ** -1.12 for rank in ranks)
    readings: dict[str, dict[str, None]] = {}
    for part, (_, forms) in _LEXICON.items():
        for stem, pos in itertools.product(stems[part], forms.split()):
            readings.setdefault(_inflected(stem, pos), {})[pos] = None
    return bags, readings


def _coined(part: str, syllables: int, draw: Draw) -> str:
    parts = [_ONSETS, *[_VOWELS, _LINKS] * (syllables - 1), _VOWELS, _CODAS]
    choices = [*map(str.split, parts), _SUFFIXES.get(part, ("",))]
    word = "".join(each[int(draw() * len(each))] for each in choices)
    return word.capitalize() if part == "name" else word


def _inflected(stem: str, pos: str) -> str:
    """The form that a part of speech asks for, spelled nearly as English would: 'pushes', 'cities', 'rarely'."""
    ending = _ENDINGS.get(pos, "")
    if stem.endswith("y") and ending in ("s", "ed"):
        return f"{stem[:-1]}i{'es' if ending == 's' else ending}"
    return f"{stem}e{ending}" if ending == "s" and stem.endswith(("s", "sh", "ch")) else stem + ending
