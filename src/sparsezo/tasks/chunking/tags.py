"""Tags: which scheme a file's chunk tags follow, and these chunks as IOB2 (the outputs of the paper's Sec. 5).

A chunk is a run of tokens of one type. In IOB2 its first token is B-TYPE and the others are I-TYPE; IOB1 has I-TYPE for
the first one, too, unless a chunk of its own type stands before it; BIOES marks the last token (E) and a chunk of one
token (S) as well, and BILOU and BMES are BIOES in other letters. Plain B, I, ... are chunks of the type ''.

Tags are read as conlleval reads them, whatever their scheme allows: a chunk starts at B or S, after the end of another,
after O and where the type changes. The scheme is the one that would spell these chunks with the fewest tags changed;
what it spells otherwise is mended, with a remark. Where most tags are no chunk tags (parts of speech), none is: the
scheme is "plain", and tags stay as they are.

    scheme, corpus = understood(read_conll("train.txt"))    # "iob2", ...: tags in IOB2; "plain": as they are
    corpus = keep_only(corpus, "NP")                        # B-NP, I-NP, O: the paper's noun phrase chunking
    spelled(corpus.tags, corpus.offsets, scheme)            # as the file has them
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, UsageError, quoted, some
from sparsezo.messages import counted, say
from sparsezo.storage import limits
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.options import AUTO, PLAIN

OUTSIDE = "O"
IOB2, IOB1 = "iob2", "iob1"
# Letters of a chunk's first token, of those inside, of its last, of an only one.
_LETTERS = {IOB2: "BIIB", IOB1: "IIII", "bioes": "BIES", "bilou": "BILU", "bmes": "BMES"}
_KNOWN = "BIESLUM"
_BEGIN, _LAST = "BSU", "ESLU"  # a chunk starts at these; the next token is not of the same chunk after these


@dataclass(frozen=True, eq=False)
class Chunks:
    """Tags as arrays, one entry a token."""

    types: tuple[str, ...]  # in order of first occurrence
    type_of: NDArray[np.int64]  # index into types, -1 for O
    letter: NDArray[np.uint8]  # of the tag
    starts: NDArray[np.bool_]  # a chunk starts here
    ends: NDArray[np.bool_]  # a chunk's last token
    touches: NDArray[np.bool_]  # the token before, in the same sentence, is in a chunk of the same type

    def letters(self, scheme: str) -> NDArray[np.uint8]:
        """The letters that a scheme has for these chunks; those of tokens outside mean nothing."""
        place = np.where(self.starts, np.where(self.ends, 3, 0), np.where(self.ends, 2, 1))
        letters = np.frombuffer(_LETTERS[scheme].encode(), np.uint8)[place]
        if scheme == IOB1:
            letters[self.starts & self.touches] = ord("B")
        return letters

    def broken(self, scheme: str) -> NDArray[np.bool_]:
        """Tokens that the scheme would tag otherwise."""
        different: NDArray[np.bool_] = (self.type_of >= 0) & (self.letters(scheme) != self.letter)
        return different

    def spelled(self, scheme: str, kept: tuple[str, ...]) -> list[str]:
        """Tags of the chunks of the kept types; all else is O."""
        letters = sorted(set(_LETTERS[scheme] + "B"))
        column = np.zeros(256, np.int64)
        column[[ord(letter) for letter in letters]] = range(len(letters))
        outside = [OUTSIDE] * len(letters)
        table = [[f"{x}-{t}" if t else x for x in letters] if t in kept else outside for t in self.types]
        # a last row for O, which is where type -1 looks
        tags: list[str] = np.array([*table, outside], object)[self.type_of, column[self.letters(scheme)]].tolist()
        return tags


def is_chunk_tag(tag: str) -> bool:
    return tag == OUTSIDE or (tag[:1] in _KNOWN and (len(tag) == 1 or (tag[1:2] == "-" and len(tag) > 2)))


def chunks_of(tags: Sequence[str], offsets: NDArray[np.int64]) -> Chunks:
    """Take tags apart; sentence s is tags ``offsets[s]:offsets[s + 1]``."""
    distinct = dict.fromkeys(tags)
    for tag in distinct:
        if not is_chunk_tag(tag):
            raise UsageError(_no_chunk_tag(tag))
    types = {name: i for i, name in enumerate(dict.fromkeys(tag[2:] for tag in distinct if tag != OUTSIDE))}
    code_of = {tag: code for code, tag in enumerate(distinct)}
    codes = np.fromiter(map(code_of.__getitem__, tags), np.int64, len(tags))
    type_of = np.array([-1 if tag == OUTSIDE else types[tag[2:]] for tag in distinct], np.int64)[codes]
    letter = np.array([ord(tag[0]) for tag in distinct], np.uint8)[codes]
    inside = type_of >= 0
    touches = np.zeros(len(tags), np.bool_)
    touches[1:] = inside[1:] & (type_of[1:] == type_of[:-1])
    touches[offsets[offsets < len(tags)]] = False  # no chunk crosses into a sentence
    after_last = np.zeros(len(tags), np.bool_)
    after_last[1:] = _among(letter[:-1], _LAST)
    starts = inside & (_among(letter, _BEGIN) | ~touches | after_last)
    ends = inside.copy()  # the next token starts a chunk or is O
    ends[:-1] &= starts[1:] | ~inside[1:]
    return Chunks(tuple(types), type_of, letter, starts, ends, touches)


def _among(letter: NDArray[np.uint8], letters: str) -> NDArray[np.bool_]:
    return np.isin(letter, np.frombuffer(letters.encode(), np.uint8))


def understood(corpus: Corpus, scheme: str = AUTO) -> tuple[str, Corpus]:
    """The scheme of a corpus, and its tags in IOB2; with "plain" as they are. Says what is mended or guessed.

    ``scheme``: what a person says that it is. One of chunks refuses what is no chunk tag.
    """
    tags = _tags(corpus)
    if scheme == AUTO and (odd := _mostly_plain(tags)) is not None:
        say(
            f"{corpus.path}: tags such as '{quoted(odd)}' are no chunks: learned as plain tags, measured by accuracy "
            "(`scheme` says otherwise)"
        )
        scheme = PLAIN
    if scheme == PLAIN:
        return scheme, corpus
    chunks = _chunks(corpus)
    broken = {name: chunks.broken(name) for name in _LETTERS}
    own = min(broken, key=lambda name: int(broken[name].sum()))  # the first of equals
    if (count := int(broken[own].sum())) > 0:
        first = int(np.flatnonzero(broken[own])[0])
        others = "; read as conlleval reads it"
        if count > 1:
            others = f", the first of {count:,} that do; read as conlleval reads them"
        say(f"{corpus.where(first)}: tag '{quoted(tags[first])}' breaks {own.upper()}{others}")
    return own if scheme == AUTO else scheme, replace(corpus, tags=chunks.spelled(IOB2, chunks.types))


def _mostly_plain(tags: Sequence[str]) -> str | None:
    """A tag that is no chunk tag, where most of what is not O is none. Letters alone are chunks with a B or I among."""
    counts = Counter(tags)
    of_chunks = {tag for tag in counts if is_chunk_tag(tag) and (len(tag) > 1 or "B" in counts or "I" in counts)}
    plain = {tag: n for tag, n in counts.items() if tag != OUTSIDE and tag not in of_chunks}
    chunked = sum(n for tag, n in counts.items() if tag != OUTSIDE and tag in of_chunks)
    return max(plain, key=plain.__getitem__) if sum(plain.values()) > chunked else None


def spelled(tags: Sequence[str], offsets: NDArray[np.int64], scheme: str) -> list[str]:
    """The same chunks in another scheme; plain tags as they are."""
    if scheme == PLAIN:
        return list(tags)
    chunks = chunks_of(tags, offsets)
    return chunks.spelled(scheme, chunks.types)


def in_iob2(tags: Sequence[str]) -> list[str]:
    """One sentence's outputs in IOB2: what ``spelled`` gives for B, I and O, quickly."""
    before, out = OUTSIDE, []
    for tag in tags:
        starts = tag[0] == "I" and (before == OUTSIDE or before[1:] != tag[1:])
        out.append("B" + tag[1:] if starts else tag)
        before = tag
    return out


def keep_only(corpus: Corpus, chunk_type: str, required: bool = True) -> Corpus:
    """Chunks of one type, tagged IOB2; all others become O.

    A corpus without that type is refused, since the type is then most likely misspelt. Test data may well
    lack it: ``required=False`` lets it pass.
    """
    chunks = _chunks(corpus)
    if required and chunk_type not in chunks.types:
        require_chunks(corpus)
        exist = ", ".join(name or "'' (plain B and I)" for name in sorted(chunks.types))
        raise UsageError(f"{corpus.path}: no chunk of type '{chunk_type}'; the types in it are: {exist}")
    return replace(corpus, tags=chunks.spelled(IOB2, (chunk_type,)))


def require_chunks(corpus: Corpus) -> None:
    """Refuse a corpus that has no chunk: nothing can be learned from it."""
    if all(tag == OUTSIDE for tag in _tags(corpus)):
        raise DataError(corpus.path, "has no chunk, every tag is O; is the last column the chunk tag?")


def _chunks(corpus: Corpus) -> Chunks:
    tags = _tags(corpus)
    for tag in dict.fromkeys(tags):
        if not is_chunk_tag(tag):
            raise DataError(corpus.where(tags.index(tag)), _no_chunk_tag(tag))
    return chunks_of(tags, corpus.offsets)


def _tags(corpus: Corpus) -> list[str]:
    if corpus.tags is None:
        raise UsageError(f"{corpus.path}: has no tags; give a file whose last column is the tag")
    return corpus.tags


def _no_chunk_tag(tag: str) -> str:
    return (
        f"tag '{quoted(tag)}' is no chunk tag: these are O, B-TYPE, I-TYPE, others of BIOES, BILOU and BMES, and the "
        "letters alone; mend it, or train with `scheme` plain if the tags are no chunks"
    )


# Tags that a person names, where the data has none

_MOST_NAMES = 5  # in a message


def named_tags(tags: str | Iterable[str], scheme: str) -> tuple[str, ...]:
    """The tag set that a person names: chunk types, or with the scheme plain the tags themselves."""
    names = [name for name, _ in _named(tags)]
    for name in names:
        if not name or re.search(r"\s", name):
            raise UsageError(
                f"`tags` {quoted(name) or 'with nothing between two commas'}: give names, as in PER,LOC,ORG"
            )
        if names.count(name) > 1:
            raise UsageError(f"`tags` {quoted(name)}: is named twice")
    if len(names) > limits.TAGS:
        limits.refuse("`tags`", f"{len(names):,} different tags")
    if scheme == PLAIN:
        if len(names) < 2:
            raise UsageError(f"`tags` {', '.join(names)}: of plain tags give two or more, parted by commas")
        return (*(name for name in names if name != OUTSIDE), *(name for name in names if name == OUTSIDE))
    if odd := [name for name in names if name == OUTSIDE or name[:2] in ("B-", "I-")]:
        raise UsageError(
            f"`tags` {quoted(odd[0])}: give the types of chunks alone, as in NP or PER,LOC,ORG; "
            "or tags as they are, with `scheme` plain"
        )
    return (*(f"{letter}-{name}" for name in names for letter in "BI"), OUTSIDE)


def named_words(tags: str | Iterable[str]) -> dict[str, str]:
    """What people call the types, where that is said: PER=person,LOC=place."""
    return {name: words for name, words in _named(tags) if words}


def _named(tags: str | Iterable[str]) -> list[tuple[str, str]]:
    pairs = (each.partition("=") for each in (tags.split(",") if isinstance(tags, str) else tags))
    return [(name.strip(), words.strip()) for name, _, words in pairs]


def check_against(tags: tuple[str, ...], scheme: str, corpus: Corpus) -> None:
    """Say which correct tags of a labelled file no output can have: they stay what they are, and count as missed."""
    given, what, mend = corpus.tags or [], "", ""
    if scheme != PLAIN:
        given = [tag[2:] for tag in given if tag != OUTSIDE]
        what, mend = " of type", "; `only` TYPE leaves all other types out"
    kinds = {tag if scheme == PLAIN else tag[2:] for tag in tags}
    if odd := {name: n for name, n in Counter(given).items() if name not in kinds}:
        names = some((name or "''" for name in odd), _MOST_NAMES)
        say(
            f"{corpus.path}: {counted(sum(odd.values()), 'tag')}{what} {names}, not among `tags`: "
            f"no output can have them, so they count as missed{mend}"
        )
