"""Raw text into sentences and tokens, each known by its place: ``text[start:end]`` is the token.

    found = segment("Mr. Aznar can't wait. He left at 19:00.")
    [text[a:b] for a, b in zip(found.starts, found.ends)]   # Mr. | Aznar | ca | n't | wait | . | He | left | at | ...
    found.sentences                                         # [0, 6, 12]: sentence 1 is tokens 6 to 11

No model decides. Each character is first replaced by one letter for its class (``a`` a small letter, ``A`` a capital,
``0`` a digit, ...: ``_table``), so that a short regular expression over these classes serves every script. Tokens are
as in the CoNLL shared tasks: hyphens stay inside words, clitics are apart (do n't, company 's), signs of money and per
cent are apart from numbers, and so is a sentence's last period. Elisions are cut in French and Italian (l' Europe), and
are part of the name elsewhere (O'Brien). Han characters and Hiragana are a token each; Thai, Lao, Khmer and Burmese are
cut at spaces and U+200B alone.

A sentence ends

- at a blank line, a form feed and U+2029; at every line's end, if lines are units (``looks_wrapped``: if they are not);
- at ``! ?`` and their like of other scripts and at ``...``, unless a small letter or a comma follows;
- at a period, unless it belongs to an abbreviation (a single letter, letters with periods between them, or one listed
  at the end of this file), an ordinal or a number in a list, or a small letter follows;
- behind the quotes and brackets that close right after one of these. A dash between two sentences (a news agency's
  "Madrid (EFE).- El ...") is one by itself.

In texts without capitals (more than half of the sentences would begin with a small letter) case says nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError
from sparsezo.storage import limits
from sparsezo.tasks.chunking.options import SPLITS

Ints = NDArray[np.int64]
Kinds = NDArray[np.uint8]
Flags = NDArray[np.bool_]


class Segments(NamedTuple):
    """Places are Python's, code points of the text; ends are exclusive."""

    starts: Ints  # one a token
    ends: Ints
    sentences: Ints  # sentences + 1: sentence s is tokens sentences[s]:sentences[s + 1], never none


def segment(
    text: str,
    *,
    split: str = "sentences",
    cuts: Iterable[int] = (),
    spans: Iterable[tuple[int, int]] = (),
    language: str | None = None,
) -> Segments:
    """The tokens and sentences of one document.

    ``split``: "sentences", both are found by rule; "lines", every line is a sentence and tokens are found by rule;
    "spaces", every line is a sentence and tokens are what white space parts. ``cuts``: places where a token must end
    or begin, whatever the rules say. ``spans``: labelled ones, (start, end): their borders are cuts, and no sentence
    ends inside of one (Yahoo! Inc). ``language``: a code such as "de", or ""; told by the text's little words where it
    is None, and looked at for apostrophes and ordinals only.

    A sentence of more than ``limits.TOKENS`` tokens is cut, at a semicolon, colon, dash or comma where there is one.
    """
    if split not in SPLITS:
        raise UsageError(f"`split` is {split!r}; choose {', '.join(SPLITS[:-1])} or {SPLITS[-1]}")
    whole = sorted((start, end) for start, end in spans)
    places = np.array(sorted({*cuts, *(place for span in whole for place in span)}), np.int64)
    if len(places) and not 0 <= places[0] <= places[-1] <= len(text):
        wrong = places[0] if places[0] < 0 else places[-1]
        raise UsageError(f"a place in `cuts` or `spans` is {wrong}; this text has places from 0 to {len(text)}")
    codes, kinds = _classes(text)
    if split == "spaces":
        found = np.array([m.span() for m in _NO_SPACE.finditer(text)], np.int64).reshape(-1, 2)
        starts, ends = found[:, 0].copy(), found[:, 1].copy()
        return _sentences(text, codes, kinds, starts, ends, split, lambda: "", whole, places)
    starts, ends, kinds = _tokens(text, kinds)
    speech = cache(lambda: _language(text, starts, ends) if language is None else language)
    parts = _cut(starts, ends, _apostrophes(text, speech))
    return _sentences(text, codes, kinds, *parts, split, speech, whole, places)


def segment_all(texts: Sequence[str], *, split: str = "sentences", language: str | None = None) -> Iterator[Segments]:
    """``segment`` of each text. What most texts need is done for all of them at once, so it is quicker for many."""
    if split == "spaces" or not texts:
        yield from (segment(text, split=split, language=language) for text in texts)
        return
    joined = "\n".join(texts)
    codes, kinds = _classes(joined)
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    begins = np.cumsum(lengths + 1) - lengths - 1
    starts, ends, kinds = _tokens(joined, kinds)
    bounds = np.append(np.searchsorted(starts, begins), len(starts))
    # What one sentence without clitics, and without a period but its last, has to be asked no more.
    stops = np.flatnonzero(_stops(joined, kinds, starts, ends))
    plain: Flags = np.ones(len(texts), bool)
    for places in (
        starts[stops[(ends[stops] - starts[stops] > 1) | ~np.isin(stops, bounds[1:] - 1)]],
        np.setdiff1d(np.flatnonzero(kinds == _LINE_END), begins[1:] - 1, assume_unique=True),
        _apostrophes(joined, lambda: _ANY),
    ):
        plain[np.searchsorted(begins, places, "right") - 1] = False
    plain &= (np.diff(bounds) > 0) & (np.diff(bounds) <= limits.TOKENS)
    local = np.repeat(begins, np.diff(bounds))
    starts, ends = starts - local, ends - local
    rows = zip(texts, bounds[:-1].tolist(), bounds[1:].tolist(), plain.tolist(), begins.tolist(), strict=True)
    for text, low, high, is_plain, begin in rows:
        its = starts[low:high], ends[low:high]
        if is_plain:
            yield Segments(*its, np.array((0, high - low)))
            continue
        speech = cache(lambda text=text, its=its: _language(text, *its) if language is None else language)
        here = slice(begin, begin + len(text))
        parts = _cut(*its, _apostrophes(text, speech))
        yield _sentences(text, codes[here], kinds[here], *parts, split, speech, [], _ZERO[:0])


def _sentences(
    text: str,
    codes: NDArray[np.uint32],
    kinds: Kinds,
    starts: Ints,
    ends: Ints,
    split: str,
    speech: Callable[[], str],
    whole: list[tuple[int, int]],
    places: Ints,
) -> Segments:
    """The tokens of one text, periods joined to abbreviations and cut at the places, and the sentences."""
    last: Flags = np.zeros(len(starts), bool)  # of its sentence
    if _LINE_END in kinds:
        lines = _lines(codes, kinds)
        places_of_ends = lines.ends[_unit_ends(lines)] if split == "sentences" else lines.ends
        tokens = np.searchsorted(starts, places_of_ends) - 1
        last[tokens[tokens >= 0]] = True
    if split != "spaces":
        starts, ends, last = _periods(text, kinds, starts, ends, last, speech, split == "sentences")
    if len(places):
        finals = _outside(ends[last], whole)
        starts, ends = _cut(starts, ends, places)
        last = np.zeros(len(starts), bool)
        last[np.searchsorted(ends, finals)] = True
    if not len(starts):
        return Segments(starts, ends, _ZERO.copy())
    last[-1] = True
    sentences = np.concatenate([_ZERO, np.flatnonzero(last) + 1])
    return Segments(starts, ends, _shortened(sentences, starts, kinds))


def looks_wrapped(text: str) -> bool:
    """Whether line ends inside of paragraphs are there for a page's width only, as in e-mails and in Gutenberg's books.

    The lines looked at are those that another follows and that end without a period or its like, but for headings,
    items and signatures: lines of less than three fifths of the width before one that begins with no small letter.
    They are wrapped if they are at least three tenths of all that another follows, if for three of five the next
    line's first word would not have fit into the width (that of the 98th of 100 lines by length, 30 to 200 characters)
    and they fill three quarters of it, and if (where letters have case) one next line in seven begins with a small
    letter; where fewer than five lines are there to look at, every other, and a width of 50. Headlines, lists, verse
    and one text a line have lines of all lengths, or lines that begin with capitals.
    """
    return _wrapped(_lines(*_classes(text)))


def documents_of(text: str) -> Literal["file", "lines"]:
    """Whether a plain text file is one document ("file") or each line is one ("lines": news, reviews, tweets).

    It is one document if its lines are wrapped (``looks_wrapped``), if blank lines part its paragraphs (there are at
    least a tenth as many as other lines), or if it has a single line. Everything else is a document a line.
    """
    lines = _lines(*_classes(text))
    written = np.flatnonzero(~lines.blank)
    if len(written) < 2 or _wrapped(lines):
        return "file"
    within = lines.blank[written[0] : written[-1]]
    # A run of blank lines parts two paragraphs, however long it is.
    gaps = np.count_nonzero(within[:-1] & ~within[1:]) + int(within[-1]) if len(within) else 0
    return "file" if gaps * 10 >= len(written) else "lines"


# Classes of characters

_CATEGORIES = {
    "Ll": "a",  # small letters
    **dict.fromkeys(("Lu", "Lt"), "A"),  # capitals
    **dict.fromkeys(("Lm", "Lo", "Nl", "No"), "x"),  # letters without case
    "Nd": "0",
    **dict.fromkeys(("Mn", "Mc", "Me"), "~"),  # marks: part of the character before
    **dict.fromkeys(("Zs", "Cc"), " "),
    **dict.fromkeys(("Zl", "Zp"), "\n"),
    "Cf": "z",  # seen by nobody: part of a word between its letters, of no token elsewhere
    "Pc": "x",
    "Pd": "d",  # dashes
    "Ps": "(",
    "Pe": ")",
    **dict.fromkeys(("Pi", "Pf"), '"'),  # quotes; « and “ open in one language and close in another
    "Sc": "$",
    "So": "E",  # emoji, and other symbols
}
_SPECIAL = {
    "\n": "\n\r\v\f\x85\u2028\u2029",
    " ": "\u200b",
    "~": "\u200c" + "".join(map(chr, range(0x1F3FB, 0x1F400))),  # skin colours
    "j": "\u200d",  # joins emoji
    "r": "".join(map(chr, range(0x1F1E6, 0x1F200))),  # two are a flag
    ".": ".",
    "!": "!?。！？｡．।॥։።፧؟۔‽⁇⁈⁉‼။។།᠃᠉\u037e",
    "e": "…⋯",
    ",": ",،、，՝፣٫٬",
    ";": ";؛；፤",
    ":": ":：",
    "'": "'’´＇",
    "`": "`‘‛",
    '"': '"＂',
    "(": "„‚⹂¿¡",
    "-": "-\u2010\u2011\u058a\u05be",
    "c": "·\u2027\u05f3\u05f4՛՜՞",  # stand inside of words: Catalan col·lecció, Hebrew צה״ל, Armenian ինչպե՞ս
    "%": "%‰٪％",
    "+": "+−±",
    "q": "=",
    **{c: c for c in "/&@#*"},
}
_LINE_END = ord("\n")
_GAPS = b" \nz"  # of no token


@cache
def _among(kinds: bytes) -> Flags:
    """Which classes are among these: a table, since np.isin takes long for short texts."""
    table: Flags = np.zeros(256, bool)
    table[list(kinds)] = True
    return table


@cache
def _table() -> Kinds:
    table = np.full(0x110000, ord("p"), np.uint8)  # other punctuation, and what is not assigned
    named = "".join(_CATEGORIES.get(unicodedata.category(chr(i)), "p") for i in range(0x20000))
    table[:0x20000] = np.frombuffer(named.encode(), np.uint8)
    for kind, members in _SPECIAL.items():
        table[[ord(c) for c in members]] = ord(kind)
    for first, beyond in ((0x3041, 0x3097), (0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00), (0x20000, 0x40000)):
        table[first:beyond] = ord("h")  # Hiragana and Han
    table[0xE0020:0xE0080] = table[0xE0100:0xE01F0] = ord("~")  # tags of flags; variation selectors
    return table


_ZERO = np.zeros(1, np.int64)


def _classes(text: str) -> tuple[NDArray[np.uint32], Kinds]:
    """The code points of a text, and their classes."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return codes, _table()[codes]


# Tokens

_WORD = "[aAx0~j]+"
_JOINED = rf"""(?:
    (?: z+ | [-&/c'] | (?<=x)"(?=x) | (?<=0)[.,:](?=0) | \.(?=a) | (?<=A):(?=a)    # O'Brien, רה"מ, 1.500, a.com, EU:n
      | (?<=A)\.(?=A(?!a)) | (?<=[ \n(]Aa)\.(?=A[., ]) | (?<=\.a)\.(?=A)             # EE.UU, Ph.D, S.p.A
      | (?<=[aA])\.-(?=a) | (?<=A)\.-(?=A)                                           # Calif.-based, U.S.-Mexico
    ) {_WORD} )*"""
_PIECES = re.compile(
    rf"""[ \nz]+
    | (?: [aAx]~?(?:\.[aAx]~?)+(?![aAx0~j]) (?:\.(?=-[aA]))? | {_WORD} ) {_JOINED} (?:(?<=A)\$[~j]*)?   # US$
    | (?<![^ \n(]) (?: [-+]\.? | \. | '(?=00(?:00)?a?(?![0aAx])) ) (?=0) {_WORD} {_JOINED}   # -3.5, .5, '98, '80s
    | (?<=\.) ' [aA]{{1,2}} (?![aAx0~j'])                                  # Corp.'s
    | (?<![aAx0~j]) [@\#] [aAx][aAx0~j]*
    | (?: -{{2,}} | d+ | q+ | \*+ | \++ | \#+ | !+ | e+ | \.{{2,}} | '' | `` ) [~j]*
    | E[~j]*(?:(?<=j)E[~j]*)* | rr?[~j]*
    | [^ \nz][~j]*""",
    re.VERBOSE,
)
_USUAL = 40  # characters of a run that may come again
_NO_SPACE = re.compile(r"\S+")
_ADDRESS = re.compile(r"(?:\b[a-zA-Z][a-zA-Z+.-]{1,15}://|\bwww\.)[^\s<>\"«»“”„]*[^\s<>\"«»“”„.,;:!?…'’)\]}]")
_AT = re.compile(r"@[\w-]+(?:\.[\w-]+)+")
_BEFORE_AT = re.compile(r"[\w.+-]+\Z")
_SHORTENED = re.compile(r"(?<!\S)['’](?:[stnkmd]|re|ve|ll|em|til|cause)(?!\w)", re.IGNORECASE)  # 't, 's-Hertogenbosch
_CLITIC = re.compile(r"['’´](?:[smd]|re|ve|ll|(t))(?!-|['’´]?\w)", re.IGNORECASE)
_ANY = "any"  # no language: wherever one has it
_ELISION = re.compile(r"(?<=[^\W\d_])['’](?=\w)")  # all of them, and more
_ELISIONS = {
    "fr": re.compile(r"\b(?!D['’][A-Z])(?:[ljmntscdLJMNTSCD]|[Qq]u|(?:[Jj]us|[Ll]ors|[Pp]uis|[Qq]uoi)qu)['’](?=\w)"),
    "it": re.compile(r"\b(?!D['’][A-Z])[^\W\d_]{1,7}['’](?=\w)"),
}


def _tokens(text: str, kinds: Kinds) -> tuple[Ints, Ints, Kinds]:
    """Starts, ends, and the classes with addresses as letters; no period is part of an abbreviation yet."""
    # Addresses are words whatever is in them, and so are 't and 'em.
    words = [m.span() for m in _ADDRESS.finditer(text)] if "://" in text or "www." in text else []
    if "@" in text:
        for at in _AT.finditer(text):
            local = _BEFORE_AT.search(text, max(0, at.start() - 64), at.start())
            if local:
                words.append((local.start(), at.end()))
    if "'" in text or "’" in text:
        words += [(m.start(), m.start() + 1) for m in _SHORTENED.finditer(text)]
    if words:
        kinds = kinds.copy()
        for start, end in words:
            kinds[start:end] = ord("x")
    blank = _among(b" \n")[kinds]
    borders = np.flatnonzero(np.diff(blank, prepend=True, append=True))
    firsts, behind = borders[::2], borders[1::2]  # of the runs between white space
    odd = np.concatenate([_ZERO, np.cumsum(~_among(b"aAx0")[kinds])])
    # A run of letters and digits, or of one character, is one piece; most are.
    simple = (odd[behind] == odd[firsts]) | ((behind - firsts == 1) & (kinds[firsts] != ord("z")))
    letters = kinds.tobytes().decode("ascii")
    low: list[int] = []
    high: list[int] = []
    for k in np.flatnonzero(~simple).tolist():
        begin = int(firsts[k])
        run = letters[begin : behind[k] + 1]
        for start, end in _pieces(run):
            low.append(begin + start)
            high.append(begin + end)
    starts = np.concatenate([firsts[simple], np.array(low, np.int64)])
    ends = np.concatenate([behind[simple], np.array(high, np.int64)])
    starts.sort()
    ends.sort()
    return starts, ends, kinds


@lru_cache(2**16)
def _of_usual_run(run: str) -> tuple[tuple[int, int], ...]:
    found = _PIECES.finditer(" " + run)  # what stands before it, be it the text's beginning
    return tuple((m.start() - 1, m.end() - 1) for m in found if m[0][0] not in " \nz")


def _pieces(run: str) -> tuple[tuple[int, int], ...]:
    """The tokens of a run of classes between white space, with what stands behind it. No piece reaches over that, nor
    looks further, and the same few runs come again in every text."""
    return _of_usual_run(run) if len(run) <= _USUAL else _of_usual_run.__wrapped__(run)


def _cut(starts: Ints, ends: Ints, places: Ints) -> tuple[Ints, Ints]:
    """Tokens, cut in two at those of the ``places`` (sorted) that are inside of one."""
    if not len(places) or not len(starts):
        return starts, ends
    token = np.searchsorted(starts, places, "right") - 1
    inside = (token >= 0) & (places > starts[token]) & (places < ends[token])
    token, places = token[inside], places[inside]
    return np.insert(starts, token + 1, places), np.insert(ends, token, places)


def _outside(places: Ints, spans: list[tuple[int, int]]) -> Ints:
    """The places that are not inside of a span; these are sorted, and may overlap."""
    if not spans:
        return places
    starts, ends = np.array(spans, np.int64).T
    reach = np.maximum.accumulate(ends)  # of the spans up to each
    before = np.searchsorted(starts, places) - 1  # the last that starts before the place
    return places[(before < 0) | (reach[before] <= places)]


def _apostrophes(text: str, speech: Callable[[], str]) -> Ints:
    """Where words are cut at an apostrophe: clitics (do n't, company 's), and elisions in French and Italian."""
    if "'" not in text and "’" not in text and "´" not in text:
        return _ZERO[:0]
    clitics = []
    for m in _CLITIC.finditer(text):
        start = m.start() - (m[1] is not None)
        word = start > 0 and (text[start - 1].isalnum() or unicodedata.combining(text[start - 1]) > 0)
        if word and (m[1] is None or text[start] in "nN"):
            clitics.append(start)
    elisions = [m.end() for m in _ELISION.finditer(text)]
    language = speech() if clitics or elisions else _ANY
    if language == "nl":  # whose plurals are foto's
        clitics = []
    if language != _ANY:
        elisions = [m.end() for m in _ELISIONS[language].finditer(text)] if language in _ELISIONS else []
    return np.array(sorted({*clitics, *elisions}), np.int64)


def _language(text: str, starts: Ints, ends: Ints) -> str:
    """The one whose little words are most frequent among the first 2,000 tokens; "" if there are not even two."""
    votes: Counter[str] = Counter()
    words = Counter(text[a:b].lower() for a, b in zip(starts[:2000].tolist(), ends[:2000].tolist(), strict=True))
    for word in words.keys() & _LITTLE_WORDS.keys():
        for code in _LITTLE_WORDS[word]:
            votes[code] += words[word]
    (best, most), (_, next_) = [*votes.most_common(2), ("", 0), ("", 0)][:2]
    return best if most >= 2 and most > next_ else ""


# Lines


class _Lines(NamedTuple):
    ends: Ints  # one a line: where its line end stands, or the text's end
    parting: Flags  # one a line: it ends a paragraph by a character made for that
    blank: Flags
    length: Ints  # without white space at its end; this and what follows is for lines that are not blank
    word: Ints  # length of its first word
    first: Kinds  # class of its first character
    finished: Flags  # it ends with a period or its like, perhaps in quotes
    item: Flags  # it begins like one of a list


def _lines(codes: NDArray[np.uint32], kinds: Kinds) -> _Lines:
    at = np.flatnonzero(kinds == _LINE_END)
    if len(at):  # CR LF is one line end: at its LF
        following = codes[np.minimum(at + 1, len(codes) - 1)]
        at = at[~((codes[at] == 13) & (following == 10) & (at + 1 < len(codes)))]
    ends = np.append(at, len(codes))
    starts = np.concatenate([[0], at + 1])
    parting = np.append(np.isin(codes[at], (0x0C, 0x2029)), True)
    space = _among(_GAPS)[kinds]
    seen = np.append(np.flatnonzero(~space), len(codes))
    low, high = np.searchsorted(seen, starts), np.searchsorted(seen, ends)
    blank = low == high
    first, final = seen[low], seen[np.maximum(high - 1, 0)]
    gaps = np.append(np.flatnonzero(space), len(codes))
    word = gaps[np.searchsorted(gaps, first)] - first
    padded = np.append(kinds, np.frombuffer(b"     ", np.uint8))
    closed = _among(b")'\"")[padded[final]]
    finished = _among(b".!e:")[padded[np.where(closed, final - 1, final)]]
    begin = padded[first]
    marked = _among(b"-d*E")[begin] | np.isin(np.append(codes, 0)[first], [0x2022, 0x2023, 0x25E6])
    numbered = (begin == ord("0")) & _among(b".)")[padded[first + word - 1]] & (word <= 4)
    item = (marked & (word == 1)) | numbered
    return _Lines(ends, parting, blank, final + 1 - starts, word, begin, finished, item)


def _followed(lines: _Lines) -> Ints:
    """The lines that another follows, in the same paragraph."""
    return np.flatnonzero(~lines.blank[:-1] & ~lines.blank[1:] & ~lines.parting[:-1])


def _width(lines: _Lines) -> float:
    written = lines.length[~lines.blank]
    return float(np.quantile(written, 0.98, method="higher")) if len(written) else 0.0


def _wrapped(lines: _Lines) -> bool:
    pairs, width = _followed(lines), _width(lines)
    short = (lines.length[pairs] < 0.6 * width) & (lines.first[pairs + 1] != ord("a"))
    open_ = pairs[~lines.finished[pairs] & ~short]
    if not len(open_) or len(open_) < 0.3 * len(pairs) or not 30 <= width <= 200:
        return False
    length = lines.length[open_]
    full = (length + 1 + lines.word[open_ + 1] > width) & (length >= 0.75 * width)
    begin = lines.first[open_ + 1]
    small, capital = np.count_nonzero(begin == ord("a")), np.count_nonzero(begin == ord("A"))
    few = len(open_) < 5
    if few and (small + capital == 0 or width < 50):
        return False
    return bool(full.mean() >= 0.6 and small >= (0.5 if few else 1 / 7) * (small + capital))


def _unit_ends(lines: _Lines) -> Flags:
    """The lines at whose end a sentence ends, whatever stands there: all, or in wrapped text the last of a paragraph.

    In wrapped text that is also a line before one of a list, and one without a period (a heading, a signature) that
    had room for the next line's first word and a quarter of the width more, if that does not begin with a small letter.
    """
    ends: Flags = np.ones(len(lines.ends), bool)
    if _wrapped(lines):
        width, pairs = _width(lines), _followed(lines)
        room = lines.length[pairs] + 1 + lines.word[pairs + 1] <= 0.75 * width
        heading = room & ~lines.finished[pairs] & (lines.first[pairs + 1] != ord("a"))
        listed = lines.item[pairs + 1] & (room | lines.finished[pairs])
        ends[pairs] = heading | listed
    return ends


def _shortened(sentences: Ints, starts: Ints, kinds: Kinds) -> Ints:
    """Sentences of at most ``limits.TOKENS`` tokens; a longer one is cut in its second half, at the last good place."""
    if np.diff(sentences).max() <= limits.TOKENS:
        return sentences
    borders = [0]
    for end in sentences[1:].tolist():
        while end - borders[-1] > limits.TOKENS:
            half = borders[-1] + limits.TOKENS // 2
            window = kinds[starts[half : borders[-1] + limits.TOKENS]]
            places = (np.flatnonzero(_among(good)[window]) for good in (b".!e", b";", b":", b"d-", b","))
            best = next((int(found[-1]) for found in places if len(found)), len(window) - 1)
            borders.append(half + best + 1)
        borders.append(end)
    return np.array(borders, np.int64)


# Sentence ends


def _stops(text: str, kinds: Kinds, starts: Ints, ends: Ints) -> Flags:
    """Which tokens may end a sentence."""
    first = kinds[starts]
    stops = _among(b"!e")[first]
    stops |= (first == ord(".")) & (kinds[ends - 1] != ord("0"))  # .5 is a number
    for i in np.flatnonzero(first == ord(";")).tolist():  # a question mark, after Greek letters
        stops[i] = starts[i] > 0 and "\u0370" <= text[starts[i] - 1] < "\u0400"
    return stops


def _periods(
    text: str, kinds: Kinds, starts: Ints, ends: Ints, last: Flags, speech: Callable[[], str], sentences: bool
) -> tuple[Ints, Ints, Flags]:
    """Looks at every period and its like: is it part of the word before it, does a sentence end there?

    Comes back with the tokens, abbreviations whole, and ``last`` with the sentence ends (only if ``sentences``).
    """
    candidates = np.flatnonzero(_stops(text, kinds, starts, ends)).tolist()
    if not candidates:
        return starts, ends, last
    walk = _Walk(text, kinds[starts].tobytes().decode("ascii"), starts.tolist(), ends.tolist(), last.tolist(), speech)
    walk.caseless = _without_capitals(walk, candidates)
    whole = [i for i in candidates if walk.look(i, sentences)]
    kept = np.ones(len(starts), bool)
    kept[whole] = False
    return np.array(walk.starts, np.int64)[kept], np.array(walk.ends, np.int64)[kept], np.array(walk.last, bool)[kept]


def _without_capitals(walk: _Walk, candidates: list[int]) -> bool:
    """Whether more sentences would begin with a small letter than with a capital."""
    counts = Counter(
        walk.kinds[i + 1]
        for i in candidates[:2000]
        if i
        and i + 1 < len(walk.kinds)
        and walk.starts[i + 1] > walk.ends[i]
        and walk.ends[i - 1] - walk.starts[i - 1] > 3
        and walk.text[walk.starts[i - 1] : walk.ends[i - 1]].lower() not in _LISTED
    )
    return counts["a"] > counts["A"] and counts["a"] >= 2


class _Walk:
    """The tokens of a text while its periods are looked at, in order."""

    def __init__(
        self, text: str, kinds: str, starts: list[int], ends: list[int], last: list[bool], speech: Callable[[], str]
    ) -> None:
        self.text, self.kinds, self.starts, self.ends, self.last = text, kinds, starts, ends, last
        self.speech = speech
        self.caseless = False  # whether the text has no capitals where sentences begin

    def look(self, i: int, sentences: bool) -> bool:
        """Token i is a period or its like: marks a sentence's end; True if it is part of the word before it."""
        kinds, starts, ends, last = self.kinds, self.starts, self.ends, self.last
        n = len(kinds)
        k = i + 1  # behind what closes here: quotes and brackets right after the period, and a note's number [1]
        while k < n and not last[k - 1] and kinds[k] in ")\"'(" and (many := self.closing(k)):
            k += many
        if last[k - 1] or k == n:  # a paragraph's end
            self.doubled(i)
            return False
        gap = starts[k] > ends[k - 1]
        begin = kinds[k]  # how what follows begins, behind quotes and brackets
        word = k
        while begin in "(\"'`" and word + 1 < n and not last[word] and not self.clitic(word):
            word += 1
            begin = kinds[word]
        after_word = i > 0 and starts[i] == ends[i - 1] and kinds[i - 1] in "aAx0~j"
        if after_word and self.text[starts[i] : ends[i]] == ".":
            part, end = self.abbreviation(i, k, begin, word, gap)
        else:
            self.doubled(i)
            part, end = False, self.ends_here(i, begin, gap)
        dash = self.text[starts[k] : ends[k]] if begin in "-d" and word == k else ""
        if dash in _DASHES and not part and (k + 1 == n or last[k]):
            end = True
        elif dash in _DASHES and not part and (starts[k + 1] > ends[k] or not gap):
            end = kinds[k + 1] in "AxhE(\"'`" or self.caseless
            if end and sentences and dash in "-–":
                last[k] = True  # Madrid (EFE).- El
        if end and sentences:
            last[k - 1] = True
        if part:
            ends[i - 1] = ends[i]
        return part

    def closing(self, k: int) -> int:
        """How many tokens from k on belong to what is before: a quote or bracket, [1], or a French » behind a blank."""
        starts, ends, text = self.starts, self.ends, self.text
        if starts[k] > ends[k - 1]:
            return int(text[starts[k]] == "»" and (k + 1 == len(starts) or starts[k + 1] > ends[k]))
        if self.kinds[k] == "(":
            return 3 if text[starts[k]] == "[" and _NOTE.match(text, starts[k]) and not any(self.last[k : k + 2]) else 0
        return int(not self.clitic(k))

    def clitic(self, i: int) -> bool:
        return self.kinds[i] == "'" and self.text[self.ends[i] - 1].isalnum()

    def opens(self, i: int) -> bool:
        """Whether token i often begins a sentence; a single letter, if a small one follows (A man; not J. A. Smith)."""
        word = self.text[self.starts[i] : self.ends[i]]
        if len(word) == 1:
            return word in _OPENERS and self.text[self.ends[i] + 1 : self.ends[i] + 2].islower()
        return word in _OPENERS or (word.isupper() and word.capitalize() in _OPENERS)

    def doubled(self, i: int) -> None:
        """U.S.. at a sentence's end: the first period is the abbreviation's."""
        if self.text[self.starts[i] : self.ends[i]] == ".." and i and self.starts[i] == self.ends[i - 1]:
            word = self.text[self.starts[i - 1] : self.ends[i - 1]]
            if len(word) == 1 or "." in word or word.lower() in _LISTED:
                self.ends[i - 1] += 1
                self.starts[i] += 1

    def ends_here(self, i: int, begin: str, gap: bool) -> bool:
        """Whether a sentence ends at token i, which is no period right after a word."""
        if begin in ",;:)/%." or (begin == "a" and not self.caseless):
            return False
        if not gap:  # scripts that write no space there
            return self.text[self.starts[i]] in "。！？｡．।॥။།"
        return not (self.kinds[i] in ".e" and begin == "0" and self.ends[i] - self.starts[i] > 1)

    def abbreviation(self, i: int, k: int, begin: str, word: int, gap: bool) -> tuple[bool, bool]:
        """Whether the period of token i is part of the word before it, and whether a sentence ends behind it."""
        start, end = self.starts[i - 1], self.ends[i - 1]
        before, kind = self.text[start:end], self.kinds[i - 1]
        small = begin == "a" and not self.caseless
        known = _LISTED.get(before.lower(), "") if end - start < 12 else ""
        after = self.text[self.starts[word] : self.ends[word]]
        if known.isupper() and kind != "A" and begin != "0":  # only with a capital
            known = ""
        if known and end - start > 1 and before.isupper() and not after.isupper():  # SR. is no Sr.
            known = ""
        dotted = "." in before and _DOTTED.match(before) is not None
        if not gap:
            if begin in ",;:)/%!":  # etc., Inc.,
                short = end - start == 1 or (begin in ",;" and end - start <= 5)
                return bool(known) or (short and kind in "aA") or dotted, False
            joined = bool(known) or (end - start == 1 and kind in "aA") or dotted or self.clitic(k)
            return joined and k == i + 1, not joined and begin == "A" and kind in "aA" and before[-1].islower()
        if end - start == 1 and (
            kind in "aA" or (kind == "x" and not "\uac00" <= before <= "\ud7a3")
        ):  # no Hangul; an initial (J. Smith), or a word, if it is a vowel
            known = "" if before in _VOWELS and begin == "A" and not (i > 1 and self.kinds[i - 2] == ".") else "other"
        elif kind == "0" and before.isdigit():
            return self.ordinal(i, begin, word)
        elif dotted:
            known = "other"
        if small:
            short = end - start <= (7 if "." in before else 3) and kind in "aAx"
            return bool(known) or short, False
        known = known.lower()
        if not known or known == "number":
            if not known and begin == "0" and kind == "a" and end - start <= 3 and before not in _LITTLE_WORDS:
                return True, False
            if known and (begin in "0#" or _ROMAN.match(after)):
                return True, False
            return False, begin not in ",;:)/%."
        ends = {"name": False, "unit": begin in "AxhE(", "other": begin == "A" and self.opens(word)}[known]
        return not ends, ends

    def ordinal(self, i: int, begin: str, word: int) -> tuple[bool, bool]:
        """The same of a number: 3. Oktober, 1. at the start of a line."""
        digits = self.ends[i - 1] - self.starts[i - 1]
        if digits <= 3 and (i == 1 or self.last[i - 2] or self.kinds[i - 2] in ":;"):
            return True, False
        if begin == "a" and not self.caseless:
            return digits <= 3, False
        after = self.text[self.starts[word] : self.ends[word]]
        if (
            digits <= 2
            and begin == "A"
            and (after.lower() in _MONTHS or (self.speech() == "de" and not self.opens(word)))
        ):
            return True, False
        return False, begin not in ",;:)/%."


_DOTTED = re.compile(r"(?:[^\W\d_]+-)?[^\W\d_][^.\d]?(?:\.[^\W\d_][^.\d]?)+\Z")
_NOTE = re.compile(r"\[[0-9]{1,4}\]")
_DASHES = ("-", "–", "—", "--")
_ROMAN = re.compile(r"[IVXLC]+\Z")
_VOWELS = "aeiouyáéíóúàèìòùâêôäöü"

# Words

_LITTLE_WORDS: dict[str, tuple[str, ...]] = {}  # and the languages in which they are frequent
for _code, _words in {
    "de": "der die und das nicht ist von mit den ein eine zu im auf für",
    "en": "the of and to is that was for with it you i he at on this",
    "es": "el los las del y por con una se que en su lo al es como más",
    "fr": "que en le les des et est une dans pour qui du au sur pas ce je il la c'est j'ai qu'il n'est d'un l'on",
    "it": "i del una le il la di che è della per non gli un sono nel si da",
    "nl": "is je het een van niet voor zijn met ook aan maar er wordt dat op te in de ik",
    "pt": "por se que da o os do não uma em um com ao para no na é as",
}.items():
    for _word in _words.split():
        _LITTLE_WORDS[_word] = (*_LITTLE_WORDS.get(_word, ()), _code)

# By what an abbreviation is followed: "name", a name or another word (a sentence never ends there); "number", a number
# (before anything else it is no abbreviation); "other", anything; "unit", nothing with a capital but the next sentence.
# In capitals: only if it is written with a capital (Gen., Calif.).
_LISTED: dict[str, str] = {}
for _kind, _words in {
    "name": """
        mr mrs dr drs prof sr sra sres srta dña herr frl dipl dhr mevr sig dott avv excmo excma exmo exma ilmo ilma
        gral mons fdo mlle mme messrs bzw ca evtl ggf inkl exkl sog vgl zzgl bzgl cf viz approx bijv bv resp aprox avda
        vs dra profa prov ej mgr env zgn incl excl evt ds mej sigg np tzw tzv např ул пл обл им проф акад гл ul ur tj
        dep tis""",
    "NAME": """
        ms gen sen sens rep reps gov lt col capt cmdr sgt maj rev hon st ste mt ft sta sto fr mm mw pres amb insp supt
        adm brig cpl tte cnel av ctra pza geb arch lic hr ing eng mgr str""",
    "number": """
        no nr nrn núm num nº n° nos art arts pp pág págs pag vol vols fig figs abb abs tab kap cap sect ch bd tel tlf
        tfno apdo op mar abr jun jul ago set out mai giu lug juin mrt blz par séc kl nrs стр рис гл č""",
    "other": """
        corp inc ltd jr bros etal chr hnos ltda cía cia dept univ assn bhd sdn gest verh allg dgl bancorp janv févr
        juil sept aufl hrsg nl jl déc avr""",
    "OTHER": """
        co cos jan feb apr aug sep oct nov dec okt dez dic ene calif mass conn fla ariz ill mich pa ky colo va tenn
        okla neb md ga wis ore nev mo ind del ark wash miss minn la tex ala mont kan wyo ont que cie esq ave blvd rd
        mfg fev""",
    "unit": """
        etc usw ecc enz kg km cm hrs std mio mrd mill tsd mln mld gld uds ud jhd vb тыс млн млрд руб др пр jh min tys
        sek""",
}.items():
    for _word in _words.split():
        _LISTED.setdefault(_word, _kind)


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MONTHS = _words_of("""
    januar jänner februar märz april mai juni juli august september oktober november dezember janvier février mars
    avril juin juillet août septembre octobre novembre décembre enero febrero marzo abril mayo junio julio agosto
    septiembre octubre noviembre diciembre januari februari maart mei augustus december jan feb apr jun jul aug sep
    sept okt nov dez dec
""")

# Words with a capital that begin a sentence far more often than they follow an abbreviation.
_OPENERS = _words_of("""
    The A An In On At It Its He She They We You I His Her Their Our My This That These Those There Here But And Or If
    When While As For From With Without By To Of After Before Since Until Under Although Though However Moreover
    Meanwhile Then Now Yet So Still Not No Some Many Most All Both Each Every Other Others Another One Two What Who Why
    How Where Which Is Are Was Were Do Does Did Has Have Had Can Could Would Will Should May Also Even Such Only Just
    Last Despite Because During Among About According Mr Mrs Ms El La Los Las Un Una Unos Unas Lo En Con Por Para Pero
    Si Se Su Sus Este Esta Estos Estas Ese Esa Eso Esto Al Del Desde Según Sin Sobre Tras Entre Cuando Como Además
    También Así Aunque Hay Ya Más Muy Todo Todos Todas Otro Otra Otros Y O Ni Ha Han Es Fue Son Der Die Das Den Dem Des
    Ein Eine Einen Einem Einer Er Sie Wir Ihr Ich Im Am Zum Zur Bei Mit Von Vom Vor Nach Auf Aus Für Über Unter Und
    Oder Aber Doch Denn Wenn Als Wie Wer Wo Da Dort Hier Nun Nur Noch Auch Schon Dies Diese Dieser Dieses Dabei Damit
    Dann Zu Le Les Une Du Il Elle Ils Elles Nous Vous Je Tu Ce Cet Cette Ces Sa Ses Leur Dans Pour Par Avec Sans Sous
    Sur Mais Et Ou Où Quand Comme Après Avant Depuis Selon Ainsi Alors Car C'est Gli Uno Di Dal Della Nel Nella Per Tra
    Fra Ma E Ed Non Che Chi Quando Come Dopo Prima Questo Questa Sono È Anche Os Um Uma Na Nas Nos Em Dos Com Mas Ele
    Ela Eles Não Isso De Het Een Van Op Voor Door Bij Naar Uit Maar Hij Zij Ze Wij Dat Dit Deze Ook Toen Daar Volgens
    Om Met
""")
