"""How well raw text is cut into sentences and tokens: CoNLL's tokens are pasted together as one would type them, and
have to come back. Needs CoNLL-2000 and CoNLL-2002. Compared are those of syntok, pysbd, spaCy, NLTK and BlingFire
that are installed.

    python benchmarks/segmentation.py DATA [--files train] [--others] [--wrong 30]
"""

from __future__ import annotations

import argparse
import gzip
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FILES = {
    "train": {"en": "conll2000/train.txt.gz", "es": "conll2002/esp.train.gz"},
    "test": {"en": "conll2000/test.txt.gz", "es": "conll2002/esp.testb.gz"},
}
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]"}
CURLY = {"``": "“", "''": "”", "`": "‘", "'": "’"}
CLITIC = re.compile(r"(?:n['’]t|['’](?:s|ve|re|m|ll|d))\Z", re.IGNORECASE)
NONE_BEFORE = frozenset([",", ".", ";", ":", "!", "?", ")", "}", "]", "%", "..."])
NONE_AFTER = frozenset(["(", "{", "[", "¿", "¡", "#"])
STOP = re.compile(r"[.!?…:][\"'”’)\]]*\Z|-\Z")

Found = tuple[Iterable[tuple[int, int]], Iterable[int]]  # spans of tokens, ends of sentences


class Pasted(NamedTuple):
    text: str
    spans: list[tuple[int, int]]  # of tokens
    finals: list[int]  # ends of sentences
    unmarked: int  # sentences inside of a paragraph that end without any mark: nobody can find these


def read(path: Path) -> list[list[str]]:
    """The first column of a CoNLL file, sentence by sentence."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = file.read().split("\n\n")
    sentences = [[line.split()[0] for line in block.split("\n") if line.strip()] for block in blocks]
    return [[BRACKETS.get(t, t.replace("\\/", "/").replace("\\*", "*")) for t in s] for s in sentences if s]


def glued(tokens: list[str]) -> Iterator[tuple[str, bool, bool]]:
    """Each token, whether it is glued to the one before it and whether to the next. Quotes become `` '' ` and '."""
    double = single = False  # such a quote is open
    for i, token in enumerate(tokens):
        after = token in NONE_BEFORE or CLITIC.match(token) is not None
        before = token in NONE_AFTER or (
            token.endswith("$") and tokens[i + 1 : i + 2] != [] and tokens[i + 1][0].isdigit()
        )
        if token in ("``", "''", '"'):
            opens = token == "``" or (token == '"' and not double)
            double, token = opens, "``" if opens else "''"
            before, after = opens, not opens
        elif token == "`":
            single, before = True, True
        elif token == "'":
            # Closes what is open; after an s nothing opens, since that is a possessive.
            opens = not single and not (i and tokens[i - 1][-1:] in "sS")
            single, token = opens, "`" if opens else "'"
            before, after = opens, not opens
        yield token, after, before


def paste(sentences: list[list[str]], quotes: str = "straight", paragraph: int = 10) -> Pasted:
    """``quotes``: straight, curly or latex. A news agency's lone dash is glued to the sentence before it, if curly."""
    parts: list[str] = []
    spans, finals, place, unmarked = [], [], 0, 0
    for s, tokens in enumerate(sentences):
        stick = s % paragraph == 0  # to what is before
        if s:
            gap = (
                "\n\n"
                if stick
                else ""
                if quotes == "curly" and tokens == ["-"] and sentences[s - 1][-1] == "."
                else " "
            )
            parts.append(gap)
            place += len(gap)
        stick = True
        previous = ""
        for token, after, before in glued(tokens):
            if token == "." and previous.endswith(".") and previous != "...":
                continue  # an abbreviation's period ends the sentence as well
            shown = token if quotes == "latex" else {"``": '"', "''": '"', "`": "'"}.get(token, token)
            if quotes == "curly":
                shown = CURLY.get(token, "—" if token == "--" else token.replace("'", "’"))
            if not (stick or after):
                parts.append(" ")
                place += 1
            parts.append(shown)
            spans.append((place, place + len(shown)))
            place += len(shown)
            stick, previous = before, token
        finals.append(place)
        unmarked += (s + 1) % paragraph != 0 and STOP.search("".join(parts[-3:])) is None
    return Pasted("".join(parts), spans, finals, unmarked)


def wrapped(pasted: Pasted, width: int = 72, end: str = "\r\n") -> Pasted:
    """The same with line ends in the place of blanks, as e-mail has them."""
    breaks, line = [], 0  # places of blanks that become line ends; where this line began
    blank = -1
    for m in re.finditer(r" |\n\n|\Z", pasted.text):
        if m.start() - line > width and blank >= line:
            breaks.append(blank)
            line = blank + 1
        blank = m.start()
        if m[0] == "\n\n":
            line = m.end()
    paragraphs = [m.start() + i for m in re.finditer("\n\n", pasted.text) for i in range(2)]
    places = np.array(sorted(breaks + paragraphs), np.int64)
    text = "".join(end if i in set_ else c for set_ in [set(places.tolist())] for i, c in enumerate(pasted.text))

    def moved(at: Iterable[int]) -> list[int]:
        given = np.fromiter(at, np.int64)
        return (given + np.searchsorted(places, given) * (len(end) - 1)).tolist()

    starts, ends = moved(a for a, _ in pasted.spans), moved(b for _, b in pasted.spans)
    return Pasted(text, list(zip(starts, ends, strict=True)), moved(pasted.finals), pasted.unmarked)


def f1(right: set[Any], found: set[Any]) -> float:
    return 2 * len(right & found) / max(1, len(right) + len(found))


def ours(text: str, language: str) -> Found:
    from sparsezo.tasks.chunking.io.segmentation import segment

    starts, ends, sentences = segment(text)
    return zip(starts, ends, strict=True), ends[sentences[1:] - 1]


def syntok(text: str, language: str) -> Found:
    from syntok import segmenter

    spans, finals = set(), set()
    for paragraph in segmenter.analyze(text):
        for sentence in paragraph:
            for token in sentence:
                spans.add((token.offset, token.offset + len(token.value)))
            finals.add(token.offset + len(token.value))
    return spans, finals


def pysbd(text: str, language: str) -> Found:
    from pysbd import Segmenter

    finals, start = set(), 0
    segmenter = Segmenter(language=language, clean=False, char_span=True)
    for part in re.split(r"(\n\n|\r\n\r\n)", text):  # whole texts take it hours
        if part.strip():
            finals |= {start + span.start + len(span.sent.rstrip()) for span in segmenter.segment(part)}
        start += len(part)
    return set(), finals


def spacy(text: str, language: str) -> Found:
    import spacy as library

    blank = library.blank(language)
    blank.add_pipe("sentencizer")
    spans, finals, start = set(), set(), 0
    for part in re.split(r"(\n\n|\r\n\r\n)", text):
        if part.strip():
            for sentence in blank(part).sents:
                tokens = [(start + t.idx, start + t.idx + len(t)) for t in sentence if not t.is_space]
                spans.update(tokens)
                finals.update(b for _, b in tokens[-1:])
        start += len(part)
    return spans, finals


def nltk(text: str, language: str) -> Found:
    """Its tokeniser takes sentences; it gets ours, since its own splitter needs a download."""
    from nltk.tokenize import NLTKWordTokenizer

    from sparsezo.tasks.chunking.io.segmentation import segment

    tokenizer, spans = NLTKWordTokenizer(), set()
    starts, ends, sentences = segment(text)
    for first, beyond in pairwise(sentences.tolist()):
        a, b = int(starts[first]), int(ends[beyond - 1])
        spans |= {(a + x, a + y) for x, y in tokenizer.span_tokenize(text[a:b])}
    return spans, set()


def blingfire(text: str, language: str) -> Found:
    import blingfire as library

    words = library.text_to_words_with_offsets(text)[1]
    return set(words), {b for _, b in library.text_to_sentences_and_offsets(text)[1]}


LIBRARIES: dict[str, Callable[[str, str], Found]] = {
    "sparsezo": ours, "syntok": syntok, "spacy": spacy, "blingfire": blingfire, "nltk": nltk, "pysbd": pysbd
}  # fmt: skip


def worst(pasted: Pasted, found: tuple[set[tuple[int, int]], set[int]], many: int) -> None:
    """The most frequent mistakes."""
    text, (spans, finals) = pasted.text, found
    missed = Counter(text[a:b] for a, b in set(pasted.spans) - spans)
    print("    tokens missed:", "  ".join(f"{t} {n}" for t, n in missed.most_common(many)))
    added = Counter(text[a:b] for a, b in spans - set(pasted.spans))
    print("    tokens added: ", "  ".join(f"{t} {n}" for t, n in added.most_common(many)))
    for name, places in (("missed", set(pasted.finals) - finals), ("added", finals - set(pasted.finals))):
        print(f"    sentence ends {name}: {len(places)}")
        for place in sorted(places)[:: max(1, len(places) // many)]:
            print("       ", repr(text[max(0, place - 40) : place] + " || " + text[place : place + 25]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--files", choices=FILES, default="train")
    parser.add_argument("--others", action="store_true", help="the libraries as well")
    parser.add_argument("--wrong", type=int, default=0, help="show so many mistakes")
    arguments = parser.parse_args()
    libraries = {n: f for n, f in LIBRARIES.items() if n == "sparsezo" or arguments.others}
    for name in [n for n in libraries if n != "sparsezo" and find_spec(n) is None]:
        print(f"{name} is not installed")
        del libraries[name]
    print(
        "| library | language | text | tokens F1 | sentence ends F1 | characters a second | tokens a second |\n"
        "|---|---|---|---|---|---|---|"
    )
    for language, file in FILES[arguments.files].items():
        sentences = read(arguments.data / file)
        texts = {q: paste(sentences, q) for q in ("straight", "curly", "latex")}
        texts["straight, wrapped at 72, CRLF"] = wrapped(texts["straight"])
        for name, find in libraries.items():
            find(texts["straight"].text[:2000], language)
            for what, pasted in texts.items():
                if name != "sparsezo" and what == "latex":
                    continue
                begin = time.process_time()
                given = find(pasted.text, language)
                seconds = time.process_time() - begin
                spans, finals = {(int(a), int(b)) for a, b in given[0]}, {int(b) for b in given[1]}
                scores = [
                    f"{f1(set(g), p):.4f}" if p else "-" for g, p in ((pasted.spans, spans), (pasted.finals, finals))
                ]
                speed = f"{len(pasted.text) / seconds:,.0f} | {len(pasted.spans) / seconds:,.0f}"
                print(f"| {name} | {language} | {what} | {' | '.join(scores)} | {speed} |", flush=True)
                if arguments.wrong:
                    worst(pasted, (spans, finals), arguments.wrong)
        share = texts["straight"].unmarked / len(sentences)
        print(
            f"({language}: {share:.2%} of the sentences end without a mark, inside of a paragraph; "
            f"best F1 {2 * (1 - share) / (2 - share):.4f})"
        )


if __name__ == "__main__":
    main()
