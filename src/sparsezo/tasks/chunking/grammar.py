"""The grammar behind the generated chunking data: a sentence with its true parts of speech and its NP chunks.

    draw = uniforms(seed, index).__next__
    write_sentence(lexicon(6000), 0.01, draw)        # [('the', 'DT', 'B-NP'), ('trond', 'NN', 'I-NP'), ...]

A probabilistic grammar of clauses, noun phrases, verbs with their frames, relative clauses, coordination,
apposition, quantities and times. What it writes is ambiguous on purpose: each construction has a double that
looks alike by its parts of speech and is chunked in another way (its method says which).
"""

from __future__ import annotations

from sparsezo.tasks.chunking.lexicon import (
    Draw,
    Lexicon,
    Noun,
    Verb,
    coin_adjective,
    coin_name,
    coin_noun,
    coin_stem,
    make_verb,
    weighted,
)

Token = tuple[str, str, str]  # word, part of speech, chunk tag
Pair = tuple[str, str]  # word, part of speech

SHORTEST, LONGEST = 8, 30  # in tokens; LONGEST is where growth stops, a phrase under way is still finished

_DETERMINERS = weighted({"the": 55.0, "a": 25, "this": 4, "that": 4, "some": 3, "each": 2, "any": 2, "no": 2})
_PLURAL_DETERMINERS = weighted({"the": 60.0, "these": 5, "some": 8, "those": 4, "many": 4, "all": 3, "no": 2})
_POSSESSIVES = weighted({"its": 4.0, "his": 3, "their": 3, "her": 2, "our": 1, "my": 1})
_SUBJECTS = weighted({("he", False): 4.0, ("it", False): 4, ("they", True): 3, ("she", False): 2, ("we", True): 2})
_OBJECTS = weighted({"it": 4.0, "them": 3, "him": 2, "her": 2, "us": 1})
_ALONE = weighted({("this", "DT"): 4.0, ("that", "DT"): 2, ("some", "DT"): 2, ("most", "JJS"): 1, ("all", "DT"): 1})
_PREPOSITIONS = weighted(
    {"of": 30.0, "in": 20, "for": 10, "on": 7, "with": 6, "from": 5, "by": 5, "at": 5, "about": 4, "to": 8, "as": 3}
)
_SUBORDINATORS = weighted({"because": 2.0, "while": 2, "although": 1, "if": 2, "after": 2, "as": 2, "before": 1})
_MODALS = weighted({"will": 5.0, "would": 4, "could": 3, "may": 3, "can": 3, "should": 1})
_DEGREES = weighted({"very": 4.0, "more": 3, "most": 2, "less": 1})
_SENTENCE_ADVERBS = weighted({"also": 5.0, "now": 3, "still": 3, "often": 2, "only": 2, "then": 1, "not": 4})
_PARTICLES = weighted({"up": 3.0, "down": 2, "out": 2, "off": 2})
_ABOUT = weighted({"about": 5.0, "nearly": 2, "only": 2, "over": 2, "almost": 1})
_NUMBERS = weighted({"two": 5.0, "three": 4, "one": 3, "five": 2, "ten": 2, "six": 1, "20": 2, "50": 1, "100": 1})
_UNITS = weighted({"years": 5.0, "points": 4, "shares": 3, "people": 3, "days": 3, "months": 2, "times": 1})
_SCALES = weighted({"million": 3.0, "billion": 1})
_PERIODS = weighted({"week": 3.0, "month": 3, "year": 5, "spring": 1, "night": 1, "time": 1})
_DAYS = weighted({("Monday", "NNP"): 2.0, ("Friday", "NNP"): 2, ("yesterday", "NN"): 4, ("today", "NN"): 3})
_WHICH = weighted({("that", "WDT"): 5.0, ("which", "WDT"): 4, ("who", "WP"): 3})
_CONJUNCTIONS = weighted({"and": 8.0, "or": 2})
_FIRMS = weighted({"Corp.": 3.0, "Inc.": 3, "Co.": 3, "Group": 1})

# With room to grow, and without: the frames of a clause's verb.
_FRAMES = weighted(
    {"transitive": 34.0, "intransitive": 17, "clausal": 9, "copula": 14, "ditransitive": 8, "control": 6,
     "about": 6, "resultative": 3}
)  # fmt: skip
_SHORT_FRAMES = weighted({"transitive": 45.0, "intransitive": 25, "copula": 20, "ditransitive": 8})

CLOSED_CLASS = frozenset(
    {word for bag in (_DEGREES, _SENTENCE_ADVERBS, _ABOUT, _UNITS, _PERIODS, _FIRMS) for word in bag.items}
    | {word for word, _ in _DAYS.items}
    | {"is", "are", "was", "were", "be", "has", "have", "last", "next", "old", "earlier", "ago", "Mr.", "%"}
)  # the words outside the lexicon whose tags are otherwise those of open classes


def write_sentence(words: Lexicon, unseen: float, draw: Draw) -> list[Token]:
    """A sentence; ``unseen`` is the share of open-class words coined on the spot."""
    writer = _Writer(words, unseen, draw)
    writer.sentence()
    return writer.tokens


class _Writer:
    """Writes one sentence from left to right. A method named after a phrase writes that phrase."""

    def __init__(self, words: Lexicon, unseen: float, draw: Draw) -> None:
        self.words = words
        self.unseen = unseen
        self.draw = draw
        self.tokens: list[Token] = []

    def sentence(self) -> None:
        target = SHORTEST - 1 + 15.0 * self.draw()
        self.clause()
        while len(self.tokens) < target:
            self.continuation()
        self.out(".", ".")

    # -- writing and deciding

    def out(self, word: str, pos: str) -> None:
        self.tokens.append((word, pos, "O"))

    def chunk(self, *pairs: Pair) -> None:
        tag = "B-NP"
        for word, pos in pairs:
            self.tokens.append((word, pos, tag))
            tag = "I-NP"

    def maybe(self, probability: float) -> bool:
        """Whether to grow, which ends as the sentence gets long."""
        return self.draw() < probability * (1.0 - len(self.tokens) / (LONGEST - 4))

    # -- words

    def noun(self) -> Noun:
        return coin_noun(self.draw, 3) if self.draw() < self.unseen else self.words.nouns.pick(self.draw())

    def adjective(self) -> str:
        return coin_adjective(self.draw, 3) if self.draw() < self.unseen else self.words.adjectives.pick(self.draw())

    def name(self) -> Pair:
        u = self.draw()
        return (coin_name(self.draw, 2) if u < self.unseen else self.words.names.pick(self.draw())), "NNP"

    def verb(self, frame: str) -> Verb:
        if frame == "transitive" and self.draw() < self.unseen:
            return make_verb(coin_stem(self.draw, 3), frame)
        return self.words.verbs[frame].pick(self.draw())

    def number(self) -> Pair:
        u = self.draw()
        return (f"{u * 30:.1f}" if u < 0.1 else _NUMBERS.pick(self.draw())), "CD"

    # -- noun phrases; those that can be subjects say whether they are plural

    def noun_phrase(self, *, subject: bool = False) -> bool:
        u = self.draw()
        if u < 0.15:
            return self.pronoun(subject=subject)
        if u < 0.18:
            self.chunk(_ALONE.pick(self.draw()))
            return False
        if u < 0.30:
            return self.name_phrase()
        if u < 0.36:
            return self.quantity()
        if u < 0.41:
            return self.coordination()
        plural = self.possessive() if u < 0.48 else self.common()
        self.postmodifier()
        return plural

    def pronoun(self, *, subject: bool) -> bool:
        if not subject:
            self.chunk((_OBJECTS.pick(self.draw()), "PRP"))
            return False
        word, plural = _SUBJECTS.pick(self.draw())
        self.chunk((word, "PRP"))
        return plural

    def name_phrase(self) -> bool:
        u, first = self.draw(), self.name()
        if u < 0.09:
            self.chunk(("Mr.", "NNP"), first)
        elif u < 0.13:
            self.chunk(first, self.name())
        elif u < 0.19:
            self.chunk(first, (_FIRMS.pick(self.draw()), "NNP"))
        elif u < 0.22:
            self.chunk(first, ("&", "CC"), self.name(), (_FIRMS.pick(self.draw()), "NNP"))
        elif u < 0.32:
            self.chunk(first)
            self.out(_CONJUNCTIONS.pick(self.draw()), "CC")
            self.chunk(self.name())
            return True
        else:
            self.chunk(first)
        if self.maybe(0.15):
            self.apposition()
        return False

    def apposition(self) -> None:
        self.out(",", ",")
        if self.draw() < 0.3:
            self.chunk(self.number(), ("years", "NNS"))
            self.out("old", "JJ")
        else:
            self.chunk((self.words.persons.pick(self.draw()).singular, "NN"))
            self.out("of", "IN")
            self.common()
        self.out(",", ",")

    def quantity(self) -> bool:
        """'about 20 people', '$ 5 million', '3 %', '10 cents a share': the adverb belongs to the chunk."""
        u, number = self.draw(), self.number()
        about = _ABOUT.pick(self.draw())
        lead: tuple[Pair, ...] = ()
        if u < 0.35:
            lead = ((about, "IN" if about in ("about", "over") else "RB"),)
        elif u < 0.42:
            lead = (("more", "JJR"), ("than", "IN"))
        kind = self.draw()
        if kind < 0.18:
            self.chunk(*lead, ("$", "$"), number, (_SCALES.pick(self.draw()), "CD"))
            return False
        if kind < 0.35:
            self.chunk(*lead, number, ("%", "NN"))
        elif kind < 0.75:
            self.chunk(*lead, number, (_UNITS.pick(self.draw()), "NNS"))
        else:
            self.chunk(*lead, number, (self.noun().plural, "NNS"))
        if self.draw() < 0.12:
            self.chunk(("a", "DT"), (_PERIODS.pick(self.draw()), "NN"))
        return True

    def coordination(self) -> bool:
        """'cats and dogs': one chunk where both nouns bind, else two."""
        left, right, u = (*(self.words.coordinands.pick(self.draw()) for _ in range(2)), self.draw())
        before: list[Pair] = []
        if u < 0.3:
            before.append((_PLURAL_DETERMINERS.pick(self.draw()), "DT"))
        if 0.2 < u < 0.5:
            before.append((self.adjective(), "JJ"))
        plural = self.draw() < 0.75
        one, two = ((n.plural, "NNS") if plural else (n.singular, "NN") for n in (left, right))
        conjunction = (_CONJUNCTIONS.pick(self.draw()), "CC")
        if left.binds and right.binds:
            self.chunk(*before, one, conjunction, two)
            return True
        self.chunk(*before, one)
        self.out(*conjunction)
        self.chunk(*([(self.adjective(), "JJ")] if self.draw() < 0.2 else []), two)
        return True

    def possessive(self) -> bool:
        if self.draw() < 0.6:
            self.chunk(self.name())
        else:
            self.chunk(("the", "DT"), (self.words.persons.pick(self.draw()).singular, "NN"))
        pairs, plural = self.core(plural=self.draw() < 0.3)
        self.chunk(("'s", "POS"), *pairs)
        return plural

    def common(self) -> bool:
        u, plural = self.draw(), self.draw() < 0.4
        if u < 0.02:
            self.chunk(("the", "DT"), (self.adjective(), "JJ"))
            return True
        pairs, plural = self.core(plural=plural)
        if u < 0.10:
            pairs.insert(0, (_POSSESSIVES.pick(self.draw()), "PRP$"))
        elif plural and u < 0.40:
            pairs.insert(0, (_PLURAL_DETERMINERS.pick(self.draw()), "DT"))
        elif not plural and u < 0.90:
            pairs.insert(0, (_DETERMINERS.pick(self.draw()), "DT"))
        self.chunk(*pairs)
        return plural

    def core(self, *, plural: bool) -> tuple[list[Pair], bool]:
        """Modifiers and head, without determiner."""
        pairs: list[Pair] = []
        u = self.draw()
        if u < 0.22:
            pairs.append((self.adjective(), "JJ"))
        elif u < 0.26:
            degree = _DEGREES.pick(self.draw())
            pairs += [
                (degree, {"more": "RBR", "less": "RBR", "most": "RBS"}.get(degree, "RB")),
                (self.adjective(), "JJ"),
            ]
        elif u < 0.275:
            pairs += [(self.adjective(), "JJ"), ("and", "CC"), (self.adjective(), "JJ")]
        elif u < 0.31:
            if u < 0.282:
                pairs.append((self.words.adverbs.pick(self.draw()), "RB"))
            pairs.append((self.verb("intransitive").gerund, "VBG"))
        elif u < 0.34:
            pairs.append((self.verb("transitive").past, "VBN"))
        if self.draw() < 0.25:
            pairs.append((self.words.modifiers.pick(self.draw()).singular, "NN"))
        noun = self.noun()
        pairs.append((noun.plural, "NNS") if plural else (noun.singular, "NN"))
        return pairs, plural

    def postmodifier(self) -> None:
        if self.maybe(0.40):
            self.preposition_phrase()
        elif self.maybe(0.10):
            self.relative()
        elif self.maybe(0.06):  # 'the plan revised by the board'
            self.out(self.verb("transitive").past, "VBN")
            self.preposition_phrase()
        elif self.maybe(0.07):  # 'the shares investors sold'
            self.short_subject()
            self.out(self.verb("transitive").past, "VBD")

    def relative(self) -> None:
        self.chunk(_WHICH.pick(self.draw()))
        if self.draw() < 0.7:
            self.predicate(plural=self.draw() < 0.5)
        else:
            self.short_subject()
            self.out(self.verb("transitive").past, "VBD")

    def short_subject(self) -> None:
        u = self.draw()
        if u < 0.3:
            self.pronoun(subject=True)
        elif u < 0.7:
            self.chunk((self.words.persons.pick(self.draw()).plural, "NNS"))
        else:
            self.common()

    # -- clauses and verbs

    def clause(self) -> None:
        if self.maybe(0.12):
            self.preposition_phrase()
            self.out(",", ",")
        elif self.maybe(0.08):
            self.out(self.words.adverbs.pick(self.draw()), "RB")
            if self.draw() < 0.6:
                self.out(",", ",")
        if self.draw() < 0.03:
            self.chunk(("there", "EX"))
            self.out("are", "VBP")
            self.chunk(*self.core(plural=True)[0])
            return
        self.predicate(plural=self.noun_phrase(subject=True))

    def predicate(self, *, plural: bool) -> None:
        frame = (_FRAMES if len(self.tokens) < LONGEST - 12 else _SHORT_FRAMES).pick(self.draw())
        if frame == "copula":
            self.copula(plural=plural)
            return
        verb = self.verb(frame)
        if frame == "transitive" and self.draw() < 0.15:  # passive
            self.out(*self.be(plural=plural))
            self.out(verb.past, "VBN")
            if self.maybe(0.8):
                self.preposition_phrase()
        else:
            self.finite(verb, plural=plural)
            self.complement(verb.frame)
        if self.maybe(0.14):
            self.time()

    def be(self, *, plural: bool) -> Pair:
        u = self.draw()
        if u < 0.5:
            return ("were" if plural else "was"), "VBD"
        if u < 0.6 and not plural:
            return "'s", "VBZ"
        return ("are", "VBP") if plural else ("is", "VBZ")

    def finite(self, verb: Verb, *, plural: bool) -> None:
        """The verb in some tense, with its auxiliaries."""
        u, adverb = self.draw(), self.draw()
        if u < 0.46:
            group = [(verb.past, "VBD")]
        elif u < 0.68:
            group = [(verb.base, "VBP") if plural else (verb.third, "VBZ")]
        elif u < 0.80:
            group = [(_MODALS.pick(self.draw()), "MD"), (verb.base, "VB")]
        elif u < 0.90:
            group = [("have", "VBP") if plural else ("has", "VBZ"), (verb.past, "VBN")]
        else:
            group = [self.be(plural=plural), (verb.gerund, "VBG")]
        if adverb < 0.07:
            group.insert(-1, (self.words.adverbs.pick(self.draw()), "RB"))
        elif adverb < 0.15:
            group.insert(-1, (_SENTENCE_ADVERBS.pick(self.draw()), "RB"))
        for word, pos in group:
            self.out(word, pos)

    def complement(self, frame: str) -> None:
        """What the verb's frame asks for after it."""
        if frame == "transitive":
            self.noun_phrase()
        elif frame == "intransitive":
            self.intransitive_tail()
        elif frame == "ditransitive":  # 'gave the teacher books': two chunks side by side
            self.recipient()
            self.chunk(*self.core(plural=self.draw() < 0.7)[0])
        elif frame == "clausal":
            if self.draw() < 0.5:
                self.out("that", "IN")
            self.clause()
        elif frame == "control":
            self.infinitive()
        elif frame == "about":  # 'talked about 20 people': here the preposition stands outside
            self.out("about", "IN")
            self.chunk(self.number(), (_UNITS.pick(self.draw()), "NNS"))
        else:  # resultative, 'kept prices low'
            self.common()
            self.out(self.adjective(), "JJ")

    def intransitive_tail(self) -> None:
        u = self.draw()
        if u < 0.2:
            self.out(_PARTICLES.pick(self.draw()), "RP")
        elif u < 0.4:
            self.out(self.words.adverbs.pick(self.draw()), "RB")
        elif u < 0.5:
            self.chunk(self.number(), (_UNITS.pick(self.draw()), "NNS"))
        if self.maybe(0.5):
            self.preposition_phrase()

    def recipient(self) -> None:
        u = self.draw()
        if u < 0.2:
            self.pronoun(subject=False)
        elif u < 0.4:
            self.chunk(self.name())
        else:
            person = self.words.persons.pick(self.draw())
            if u < 0.7:
                self.chunk(("the", "DT"), (person.singular, "NN"))
            else:
                self.chunk((person.plural, "NNS"))

    def copula(self, *, plural: bool) -> None:
        self.out(*self.be(plural=plural))
        u = self.draw()
        if u < 0.26:
            if u < 0.07:
                self.out("very", "RB")
            self.out(self.adjective(), "JJ")
            if self.maybe(0.4):
                self.preposition_phrase()
        elif u < 0.55:
            self.chunk(*self.core(plural=plural)[0])
        elif u < 0.85:
            self.noun_phrase()
        else:
            self.preposition_phrase()

    def infinitive(self) -> None:
        frame = _SHORT_FRAMES.pick(self.draw())
        self.out("to", "TO")
        if frame == "copula":
            self.out("be", "VB")
            self.out(self.adjective(), "JJ")
            return
        verb = self.verb(frame)
        self.out(verb.base, "VB")
        self.complement(frame)

    def preposition_phrase(self) -> None:
        word = _PREPOSITIONS.pick(self.draw())
        self.out(word, "TO" if word == "to" else "IN")
        if (
            word in ("by", "for", "of", "in") and self.draw() < 0.10
        ):  # 'by selling shares'; 'by rising prices' is a chunk
            self.out(self.verb("transitive").gerund, "VBG")
        self.noun_phrase()

    def time(self) -> None:
        """A noun phrase that says when, and so may stand right behind another."""
        u = self.draw()
        if u < 0.35:
            self.chunk(_DAYS.pick(self.draw()))
        elif u < 0.6:
            self.chunk(("last" if u < 0.5 else "next", "JJ"), (_PERIODS.pick(self.draw()), "NN"))
        elif u < 0.8:
            self.chunk(("this" if u < 0.7 else "each", "DT"), (_PERIODS.pick(self.draw()), "NN"))
        else:
            self.chunk(("a", "DT"), (_PERIODS.pick(self.draw()), "NN"))
            self.out("earlier" if u < 0.9 else "ago", "RB")

    def continuation(self) -> None:
        u = self.draw()
        if u < 0.25:
            self.preposition_phrase()
        elif u < 0.40:
            self.out(",", ",")
            self.out("but" if u < 0.32 else "and", "CC")
            self.clause()
        elif u < 0.60:
            self.out(_SUBORDINATORS.pick(self.draw()), "IN")
            self.clause()
        elif u < 0.75:
            self.out(",", ",")
            self.out(self.verb("transitive").gerund, "VBG")
            self.noun_phrase()
        elif u < 0.85:
            self.infinitive()
        else:
            self.out(",", ",")
            self.noun_phrase(subject=True)
            self.out(self.verb("clausal").past, "VBD")
