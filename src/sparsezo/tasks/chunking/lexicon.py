"""An invented English-like lexicon: pronounceable open-class words with Zipf frequencies and habits of their own.

    words = lexicon(6000)                       # always the same words for the same size and seed
    verb = words.verbs["ditransitive"].pick(0.1)
    verb.past, verb.gerund                      # 'dulmed', 'dulming'
    words.readings[verb.past]                   # ('VBD', 'VBN'): what a tagger could take it for

A noun, a verb and an adjective may share a form (as *plan*, *official* and *building* do in English); such forms
have several readings. Beyond its tags a word has habits: a verb has one frame, some nouns bind to their neighbour
in a coordination, some stand before other nouns. Some habits show in the suffix, others must be learned by word.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, TypeVar

import numpy as np

T = TypeVar("T")
Draw = Callable[[], float]  # the next uniform number in [0, 1)

_ONSETS, _VOWELS, _CODAS, _LINKS = (
    line.split()
    for line in (
        "b bl br c ch cl cr d dr f fl fr g gl gr h j k l m n p pl pr r s sc sh sk sl sm sn sp st str t th tr v w",
        "a a a e e e i i i o o o u u ai ea oo ou",
        "ft l ld lk lm lt mp nd ng rb rf rk rm rn sk st",
        "b c d f g l m n p r s t v",
    )
)
_PERSON_SUFFIXES = ("er", "ist", "ant", "or")
_BINDING_SUFFIXES = ("ation", "ness")
_OTHER_SUFFIXES = ("ment", "ity", "age", "ure")
_ADJECTIVE_SUFFIXES = ("al", "ive", "ous", "ic", "able", "ful", "y", "ish")
# Of the verbs in order of frequency, round and round.
_FRAMES = (
    "transitive", "intransitive", "clausal", "transitive", "about",
    "transitive", "intransitive", "ditransitive", "transitive", "control",
    "transitive", "intransitive", "resultative", "transitive", "intransitive",
    "transitive", "clausal", "transitive", "intransitive", "transitive",
)  # fmt: skip
# Real words that a stem must not spell, since the grammar or the reader has them already.
_RESERVED = frozenset({"all", "best", "feel", "last", "least", "most", "must", "just", "round", "till", "will"})


@dataclass(frozen=True, slots=True)
class Noun:
    singular: str
    plural: str
    person: bool  # may receive: 'gave the teacher books'
    modifier: bool  # stands before other nouns: 'the stock market'
    binds: bool  # coordinates inside one chunk with another that binds


@dataclass(frozen=True, slots=True)
class Verb:
    base: str
    third: str
    past: str
    gerund: str
    frame: str


@dataclass(frozen=True, slots=True)
class Bag(Generic[T]):
    """Items with their cumulative probabilities."""

    items: tuple[T, ...]
    cumulative: tuple[float, ...]

    def pick(self, u: float) -> T:
        return self.items[bisect_right(self.cumulative, u)]


@dataclass(frozen=True, slots=True)
class Lexicon:
    nouns: Bag[Noun]
    persons: Bag[Noun]
    modifiers: Bag[Noun]
    coordinands: Bag[Noun]  # nouns often met in coordinations
    verbs: Mapping[str, Bag[Verb]]  # by frame
    adjectives: Bag[str]
    adverbs: Bag[str]
    names: Bag[str]
    readings: Mapping[str, tuple[str, ...]]  # word -> its part-of-speech tags


def uniforms(*key: int) -> Iterator[float]:
    """An endless stream of uniform numbers that is a pure function of ``key``."""
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))
    while True:
        yield from generator.random(192).tolist()


def weighted(weights: Mapping[T, float]) -> Bag[T]:
    return _bag(weights.keys(), weights.values())


def inflect(stem: str, ending: str) -> str:
    """``stem`` with -s, -ed, -ing or -ly, spelled as English would: 'pushes', 'tried', 'raking'."""
    consonant_y = stem.endswith("y") and stem[-2:-1] not in tuple("aeiou")
    if ending == "s":
        if stem.endswith(("s", "x", "z", "sh", "ch")):
            return stem + "es"
        return stem[:-1] + "ies" if consonant_y else stem + "s"
    if ending == "ly" and stem.endswith("ic"):
        return stem + "ally"
    if ending == "ly" and stem.endswith("le"):
        return stem[:-1] + "y"
    if ending != "ing" and consonant_y:
        return stem[:-1] + "i" + ending
    if stem.endswith("e") and ending != "ly":
        return stem[:-1] + ending
    return stem + ending


def coin_stem(draw: Draw, syllables: int) -> str:
    """A new pronounceable stem, ending in a consonant."""
    links = "".join(_any(_VOWELS, draw) + _any(_LINKS, draw) for _ in range(syllables - 1))
    return _any(_ONSETS, draw) + links + _any(_VOWELS, draw) + _any(_CODAS, draw)


def coin_noun(draw: Draw, syllables: int) -> Noun:
    stem, kind = coin_stem(draw, syllables), draw()
    if kind < 0.15:
        return make_noun(stem + _any(_PERSON_SUFFIXES, draw), draw, person=True)
    if kind < 0.30:
        return make_noun(stem + _any(_BINDING_SUFFIXES, draw), draw, binds=True)
    if kind < 0.45:
        return make_noun(stem + _any(_OTHER_SUFFIXES, draw), draw, binds=False)
    return make_noun(stem, draw)


def make_noun(singular: str, draw: Draw, *, person: bool = False, binds: bool | None = None) -> Noun:
    """A noun with the habits given, the others drawn."""
    modifier = draw() < 0.2 and not person
    bound = draw() < 0.7
    return Noun(singular, inflect(singular, "s"), person, modifier, bound if binds is None else binds)


def make_verb(base: str, frame: str) -> Verb:
    return Verb(base, inflect(base, "s"), inflect(base, "ed"), inflect(base, "ing"), frame)


def coin_adjective(draw: Draw, syllables: int) -> str:
    stem = coin_stem(draw, syllables)
    return stem + _any(_ADJECTIVE_SUFFIXES, draw) if draw() < 0.7 else stem


def coin_name(draw: Draw, syllables: int) -> str:
    return coin_stem(draw, syllables).capitalize()


@functools.lru_cache(maxsize=4)
def lexicon(vocabulary: int = 6000, seed: int = 0) -> Lexicon:
    """About ``vocabulary`` lemmas: nouns, verbs, adjectives (with their adverbs) and names."""
    draw = uniforms(seed, vocabulary).__next__
    taken: set[str] = set(_RESERVED)
    n_verbs, n_adjectives, n_names = vocabulary // 5, vocabulary // 6, vocabulary // 6
    stems = _fresh(n_verbs, coin_stem, str, draw, taken)
    verbs = [make_verb(stem, _FRAMES[i % len(_FRAMES)]) for i, stem in enumerate(stems)]
    adjectives = _fresh(n_adjectives, coin_adjective, str, draw, taken)
    names = _fresh(n_names, coin_name, str.lower, draw, taken)
    nouns = _nouns(vocabulary - n_verbs - n_adjectives - n_names, verbs, adjectives, draw, taken)
    return Lexicon(
        nouns=_zipf(nouns),
        persons=_zipf(nouns, lambda noun: noun.person),
        modifiers=_zipf(nouns, lambda noun: noun.modifier),
        coordinands=_zipf(nouns[4::60]),
        verbs={frame: _zipf(verbs, functools.partial(_has_frame, frame)) for frame in dict.fromkeys(_FRAMES)},
        adjectives=_zipf(adjectives),
        adverbs=_zipf([inflect(adjective, "ly") for adjective in adjectives]),
        names=_zipf(names),
        readings=_readings(nouns, verbs, adjectives, names),
    )


def _any(choices: list[str] | tuple[str, ...], draw: Draw) -> str:
    return choices[int(draw() * len(choices))]


def _fresh(n: int, coin: Callable[[Draw, int], T], key: Callable[[T], str], draw: Draw, taken: set[str]) -> list[T]:
    """``n`` words nobody has yet, the frequent ones short."""
    words: list[T] = []
    syllables, tries = 1, 0
    while len(words) < n:
        word = coin(draw, syllables)
        tries += 1
        if key(word) not in taken:
            taken.add(key(word))
            words.append(word)
        if len(words) >= 0.1 * n * syllables**2 or tries >= 200 * syllables:
            syllables, tries = min(syllables + 1, 4), 0
    return words


def _nouns(n: int, verbs: list[Verb], adjectives: list[str], draw: Draw, taken: set[str]) -> list[Noun]:
    """Nouns of their own, mixed with verbs (*plan*), gerunds (*building*) and adjectives (*official*) used as nouns."""
    own = iter(_fresh(n, coin_noun, lambda noun: noun.singular, draw, taken))
    lent_verbs = iter(verbs[::2])
    lent_gerunds = iter([verb for verb in verbs[1::4] if verb.frame == "intransitive"])
    lent_adjectives = iter(adjectives[::3])
    nouns: list[Noun] = []
    while len(nouns) < n:
        u = draw()
        if u < 0.16 and (verb := next(lent_verbs, None)):
            nouns.append(make_noun(verb.base, draw))
        elif 0.16 <= u < 0.19 and (verb := next(lent_gerunds, None)):
            nouns.append(make_noun(verb.gerund, draw))
        elif 0.19 <= u < 0.25 and (adjective := next(lent_adjectives, None)):
            nouns.append(make_noun(adjective, draw, person=draw() < 0.5))
        else:
            nouns.append(next(own))
    return nouns


def _has_frame(frame: str, verb: Verb) -> bool:
    return verb.frame == frame


def _bag(items: Iterable[T], weights: Iterable[float]) -> Bag[T]:
    sums = list(accumulate(weights))
    return Bag(tuple(items), tuple(s / sums[-1] for s in sums[:-1]))


def _zipf(items: list[T], keep: Callable[[T], bool] = lambda item: True) -> Bag[T]:
    """The items that ``keep`` lets through, with probability about 1 / rank among all of them."""
    kept = [(item, (rank + 2.0) ** -1.12) for rank, item in enumerate(items, start=1) if keep(item)]
    return _bag([item for item, _ in kept], [weight for _, weight in kept])


def _readings(
    nouns: list[Noun], verbs: list[Verb], adjectives: list[str], names: list[str]
) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}  # the inner dict is an ordered set

    def note(word: str, *tags: str) -> None:
        found.setdefault(word, {}).update(dict.fromkeys(tags))

    for noun in nouns:
        note(noun.singular, "NN")
        note(noun.plural, "NNS")
    for verb in verbs:
        note(verb.base, "VB", "VBP")
        note(verb.third, "VBZ")
        note(verb.past, "VBD", "VBN")
        note(verb.gerund, "VBG")
    for adjective in adjectives:
        note(adjective, "JJ")
        note(inflect(adjective, "ly"), "RB")
    for name in names:
        note(name, "NNP")
    return {word: tuple(tags) for word, tags in found.items()}
