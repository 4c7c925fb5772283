"""The grammar behind the generated chunking data: a sentence with its true parts of speech and its NP chunks.

    draw = uniforms(seed, index).__next__
    write_sentence(lexicon(6000), 0.01, draw)        # [('the', 'DT', 'B-NP'), ('trond', 'NN', 'I-NP'), ...]

A probabilistic grammar of clauses, noun phrases, verbs with their frames, relative clauses, coordination,
apposition, quantities and times. What it writes is ambiguous on purpose: each construction has a double that
looks alike by its parts of speech and is chunked in another way (its method says which). Clauses and verbs are here,
noun phrases in ``noun_phrases.py``.
"""

from __future__ import annotations

from sparsezo.tasks.chunking.lexicon import Draw, Lexicon, Verb, weighted
from sparsezo.tasks.chunking.noun_phrases import LONGEST, NOUN_PHRASE_WORDS, NounPhraseWriter, Pair, Token

__all__ = ["CLOSED_CLASS", "Token", "write_sentence"]

SHORTEST = 8  # in tokens

_SUBORDINATORS = weighted({"because": 2.0, "while": 2, "although": 1, "if": 2, "after": 2, "as": 2, "before": 1})
_MODALS = weighted({"will": 5.0, "would": 4, "could": 3, "may": 3, "can": 3, "should": 1})
_SENTENCE_ADVERBS = weighted({"also": 5.0, "now": 3, "still": 3, "often": 2, "only": 2, "then": 1, "not": 4})
_PARTICLES = weighted({"up": 3.0, "down": 2, "out": 2, "off": 2})
_WHICH = weighted({("that", "WDT"): 5.0, ("which", "WDT"): 4, ("who", "WP"): 3})

# With room to grow, and without: the frames of a clause's verb.
_FRAMES = weighted(
    {"transitive": 34.0, "intransitive": 17, "clausal": 9, "copula": 14, "ditransitive": 8, "control": 6,
     "about": 6, "resultative": 3}
)  # fmt: skip
_SHORT_FRAMES = weighted({"transitive": 45.0, "intransitive": 25, "copula": 20, "ditransitive": 8})

CLOSED_CLASS = (
    NOUN_PHRASE_WORDS | frozenset(_SENTENCE_ADVERBS.items) | {"is", "are", "was", "were", "be", "has", "have"}
)  # the words outside the lexicon whose tags are otherwise those of open classes


def write_sentence(words: Lexicon, unseen: float, draw: Draw) -> list[Token]:
    """A sentence; ``unseen`` is the share of open-class words coined on the spot."""
    writer = _SentenceWriter(words, unseen, draw)
    writer.sentence()
    return writer.tokens


class _SentenceWriter(NounPhraseWriter):
    """Writes one sentence: ``sentence``, and all is in ``tokens``."""

    def sentence(self) -> None:
        target = SHORTEST - 1 + 15.0 * self.draw()
        self.clause()
        while len(self.tokens) < target:
            self.continuation()
        self.out(".", ".")

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

    def relative(self) -> None:
        self.chunk(_WHICH.pick(self.draw()))
        if self.draw() < 0.7:
            self.predicate(plural=self.draw() < 0.5)
        else:
            self.short_subject()
            self.out(self.verb("transitive").past, "VBD")

    # -- verbs and what they ask for

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
            self.count()
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
            self.count()
        if self.maybe(0.5):
            self.preposition_phrase()

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
