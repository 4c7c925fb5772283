"""Sentences and tokens of raw text: examples in many languages, odd Unicode, and CoNLL's tokens pasted together."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
import unicodedata
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsezo.errors import UsageError
from sparsezo.storage import limits
from sparsezo.tasks.chunking.io import segmentation
from sparsezo.tasks.chunking.io.segmentation import (
    SPLITS,
    Ints,
    Kinds,
    Segments,
    documents_of,
    looks_wrapped,
    segment,
    segment_all,
)


def shown(text: str, **options: object) -> list[str]:
    """Sentences, with a blank between tokens."""
    found = segment(text, **options)  # type: ignore[arg-type]
    words = [text[a:b] for a, b in zip(found.starts, found.ends, strict=True)]
    return [" ".join(words[a:b]) for a, b in pairwise(found.sentences)]


EXAMPLES = {
    "english": (
        "Mr. Smith can't wait. He left the U.S. at 5 p.m. with $1.5 million (10%) in cash. \"Go home.\" The "
        "company's eight-year plan didn't work; I'm sure we've lost. Shares of Acme Inc. The rest went to Acme Corp. "
        "Chairman J. R. O'Brien, didn't it? See No. 5. He said no. Then he left.",
        [
            "Mr. Smith ca n't wait .",
            "He left the U.S. at 5 p.m. with $ 1.5 million ( 10 % ) in cash .",
            '" Go home . "',
            "The company 's eight-year plan did n't work ; I 'm sure we 've lost .",
            "Shares of Acme Inc .",
            "The rest went to Acme Corp. Chairman J. R. O'Brien , did n't it ?",
            "See No. 5 .",
            "He said no .",
            "Then he left .",
        ],
    ),
    "clitics after periods": ("Acme Corp.'s boss left.", ["Acme Corp. 's boss left ."]),
    "spanish": (
        "Melbourne (Australia), 25 may (EFE).- El Sr. Aznar, de EE.UU., va a Castilla-La Mancha. ¿Qué dice? «Nada.» "
        "¡No! La reunión es a las 19:00 h. del 3 de mayo. Llegan L'Hospitalet y los Mossos d'Esquadra.",
        [
            "Melbourne ( Australia ) , 25 may ( EFE ) .",
            "-",
            "El Sr. Aznar , de EE.UU. , va a Castilla-La Mancha .",
            "¿ Qué dice ?",
            "« Nada . »",
            "¡ No !",
            "La reunión es a las 19:00 h. del 3 de mayo .",
            "Llegan L'Hospitalet y los Mossos d'Esquadra .",
        ],
    ),
    "german": (
        "Er kam am 3. Oktober z. B. mit Dr. Müller usw. nach Hause. Das war's im 19. Jahrhundert. „Nein“, sagte er. "
        "»Ja!« Es kostet ca. 1.500,50 € bzw. 10 %.",
        [
            "Er kam am 3. Oktober z. B. mit Dr. Müller usw. nach Hause .",
            "Das war 's im 19. Jahrhundert .",
            "„ Nein “ , sagte er .",
            "» Ja ! «",
            "Es kostet ca. 1.500,50 € bzw. 10 % .",
        ],
    ),
    "french": (
        "L'Europe d'aujourd'hui n'est pas l’amie des uns et des autres, dit M. D'Ormesson. « Oui », dit-il. C'est "
        "vrai.",
        [
            "L' Europe d' aujourd'hui n' est pas l’ amie des uns et des autres , dit M. D'Ormesson .",
            "« Oui » , dit-il .",
            "C' est vrai .",
        ],
    ),
    "italian": (
        "Il presidente dell'Unione non è più con il dott. D'Alema. Che cosa c'è? La S.p.A. è chiusa.",
        ["Il presidente dell' Unione non è più con il dott. D'Alema .", "Che cosa c' è ?", "La S.p.A. è chiusa ."],
    ),
    "portuguese": (
        "O Sr. Silva não pagou R$10 à Cia. Paulista. A Profa. Ana está em São Paulo, na Av. Brasil.",
        ["O Sr. Silva não pagou R$ 10 à Cia. Paulista .", "A Profa. Ana está em São Paulo , na Av. Brasil ."],
    ),
    "dutch": (
        "Het zijn foto's van dhr. De Vries uit 's-Hertogenbosch. Zo'n huis is 's avonds leeg, o.a. in 't dorp.",
        ["Het zijn foto's van dhr. De Vries uit 's-Hertogenbosch .", "Zo'n huis is 's avonds leeg , o.a. in 't dorp ."],
    ),
    "russian": (
        "Он живёт в г. Москве на ул. Ленина. А. С. Пушкин — поэт! Да?",
        ["Он живёт в г. Москве на ул. Ленина .", "А. С. Пушкин — поэт !", "Да ?"],
    ),
    "greek": ("Τι κάνεις; Καλά. Ο κ. Παππάς ήρθε.", ["Τι κάνεις ;", "Καλά .", "Ο κ. Παππάς ήρθε ."]),
    "armenian": ("Բարև ձեզ։ Ինչպե՞ս եք։", ["Բարև ձեզ ։", "Ինչպե՞ս եք ։"]),
    "hindi": ("यह किताब है। यू.के. में क्या है? ठीक॥", ["यह किताब है ।", "यू.के. में क्या है ?", "ठीक ॥"]),
    "arabic": ("هل هذا صحيح؟ نعم، صحيح. شكراً!", ["هل هذا صحيح ؟", "نعم ، صحيح .", "شكراً !"]),
    "hebrew": ('רה"מ בא. צה״ל הודיע: לא!', ['רה"מ בא .', "צה״ל הודיע : לא !"]),
    "amharic": ("ሰላም ነው። ደህና ነህ፧ አዎ።", ["ሰላም ነው ።", "ደህና ነህ ፧", "አዎ ።"]),
    "japanese": ("東京はコーヒー。「はい！」", ["東 京 は コーヒー 。", "「 は い ！ 」"]),
    "korean": ("서울은 크다. 정말?", ["서울은 크다 .", "정말 ?"]),
    "turkish": ("Türkiye'nin başkenti Ankara'dır. Evet.", ["Türkiye'nin başkenti Ankara'dır .", "Evet ."]),
    "finnish": ("EU:n alue on 1 000 km². Niin.", ["EU:n alue on 1 000 km² .", "Niin ."]),
    "nothing has a capital": (
        "i went home. it was great! then we slept. ok.",
        ["i went home .", "it was great !", "then we slept .", "ok ."],
    ),
    "addresses": (
        "See http://a.b/c?d=1, www.x.com. Mail me.you@a-b.com! (https://x.y/z) @john likes #tag.",
        ["See http://a.b/c?d=1 , www.x.com .", "Mail me.you@a-b.com !", "( https://x.y/z ) @john likes #tag ."],
    ),
    "numbers": (
        "In the '80s: -3.5 .5 +7 1,000.50 12:30 6-2 1/2 3.5% $5 US$5 €7 #36 B2B AT&T.",
        ["In the '80s : -3.5 .5 +7 1,000.50 12:30 6-2 1/2 3.5 % $ 5 US$ 5 € 7 # 36 B2B AT&T ."],
    ),
    "dashes and dots": (
        "Well... he--the boss—left – at last … Really?! Yes. -- No.",
        ["Well ... he -- the boss — left – at last …", "Really ?!", "Yes .", "-- No ."],
    ),
    "quotes": (
        "``Go,'' she said. 'It is over.' “Is it?” he asked. (It was.) The dogs' tails.",
        [
            "`` Go , '' she said .",
            "' It is over . '",
            "“ Is it ? ” he asked .",
            "( It was . )",
            "The dogs ' tails .",
        ],
    ),
    "closing after a blank": (
        "« Je n'irai pas. » Elle est partie.[12] Puis rien.",
        ["« Je n' irai pas . »", "Elle est partie . [ 12 ]", "Puis rien ."],
    ),
    "titles": (
        "The Ph.D. student said 'I won't'. Mr. X left.",
        ["The Ph.D. student said ' I wo n't ' .", "Mr. X left ."],
    ),
    "initials without case": ("قال د. محمد نعم. ثم ذهب.", ["قال د. محمد نعم .", "ثم ذهب ."]),
    "short words before numbers": ("Op 1 jan. 2000, ok. 5 dagen. Zo.", ["Op 1 jan. 2000 , ok. 5 dagen .", "Zo ."]),
    "units": ("It is 5 km. Boston is far.", ["It is 5 km .", "Boston is far ."]),
    "what is short only with a capital": (
        "Bo did ten reps. Rep. Smith did more.",
        ["Bo did ten reps .", "Rep. Smith did more ."],
    ),
    "capitals that are no title": ("Je to v SR. Samo.", ["Je to v SR .", "Samo ."]),
    "a word of one letter": ("Ew deng e. Firat hat.", ["Ew deng e .", "Firat hat ."]),
    "days of months": ("Dne 3. ledna, Berlin, 3. Mai 2000.", ["Dne 3. ledna , Berlin , 3. Mai 2000 ."]),
    "emoji": ("👩‍👩‍👧 🇩🇪🇫🇷 1️⃣ 👍🏽ok", ["👩‍👩‍👧 🇩🇪 🇫🇷 1️⃣ 👍🏽 ok"]),
    "two periods": ("He lives in the U.S.. She left.", ["He lives in the U.S. .", "She left ."]),
    "a list": ("Steps: 1. Go. 2. Stop.", ["Steps : 1. Go .", "2. Stop ."]),
    "no space": ("It ended.Then it began.", ["It ended .", "Then it began ."]),
    "split already": ("He does n't like the company 's plan .", ["He does n't like the company 's plan ."]),
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_made_examples(name: str) -> None:
    text, sentences = EXAMPLES[name]
    assert shown(text) == sentences


def test_elisions_and_clitics_go_by_the_language_that_is_named() -> None:
    assert shown("l'Europe") == shown("l'Europe", language="es") == ["l'Europe"]
    assert shown("l'Europe", language="fr") == ["l' Europe"]
    assert shown("auto's", language="nl") == ["auto's"]
    assert shown("auto's", language="en") == ["auto 's"]


PROSE = (
    "It was the best of times, it was the worst of times. The company said that it would sell its plant in the north "
    "of the country to a group of investors from Mr. Brown's bank, who had asked for it since the spring. Nobody knew "
    "what they wanted to do with so old a building. The mayor said he hoped for two hundred new jobs, and perhaps for "
    "a road."
)


@pytest.mark.parametrize("width", [60, 72, 100])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028"])
def test_wrapped_lines_do_not_end_sentences_and_blank_lines_do(width: int, end: str) -> None:
    paragraph = textwrap.wrap(PROSE, width, break_on_hyphens=False)
    text = end.join(["CHAPTER ONE", "", *paragraph, "", "A note without a period", "", *paragraph])
    plain = shown(PROSE)
    assert len(plain) == 4
    assert looks_wrapped(text)
    assert shown(text) == ["CHAPTER ONE", *plain, "A note without a period", *plain]


def test_headings_and_lists_inside_of_wrapped_text() -> None:
    lines = textwrap.wrap(PROSE, 66)
    text = "\n".join(
        ["Subject: the plant", "From: Mary Brown", *lines, "- one thing", "- another thing", "Best wishes", "Mary"]
    )
    assert shown(text) == [
        "Subject : the plant",
        "From : Mary Brown",
        *shown(PROSE),
        "- one thing",
        "- another thing",
        "Best wishes",
        "Mary",
    ]


def test_a_text_of_two_lines() -> None:
    wrapped = "The mayor of the old town in the north said on Monday that\nhe hoped for new jobs."
    assert shown(wrapped) == shown(wrapped.replace("\n", " "))
    headlines = ["Mayor hopes for two hundred new jobs in the north", "Company sells plant to investors from a bank"]
    assert shown("\n".join(headlines)) == headlines
    tweets = ["so very tired after a long day at the desk", "no idea what to cook"]
    assert shown("\n".join(tweets)) == tweets


HEADLINES = [
    "Mayor hopes for jobs",
    "Company sells old plant in the north to investors",
    "Rain",
    "Two hundred people asked for a new road to the town by the river",
    "Strike ends",
    "Bank chief leaves after thirty years in the same small office",
    "Elections in May",
]
REVIEWS = [
    "Great phone. The battery lasts two days, and the screen is bright. I would buy it again.",
    "Bad.",
    "It broke after a week! The seller never answered. Do not buy this, whatever the other reviews say about it.",
    "ok for the price",
    "Five stars.",
] * 3
TWEETS = [
    "omg so tired today",
    "who wants to come along to the lake? @anna #summer",
    "lol",
    "this is why we can't have nice things :(",
] * 5


@pytest.mark.parametrize("lines", [HEADLINES, REVIEWS, TWEETS, [PROSE] * 3, [line + "." for line in HEADLINES]])
def test_lines_that_are_units(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert not looks_wrapped(text)
    assert documents_of(text) == documents_of(text + "\n") == "lines"
    found = segment(text)
    finals = set(found.ends[found.sentences[1:] - 1].tolist())
    place = 0
    for line in lines:
        assert place + len(line) in finals
        place += len(line) + 1


def test_what_is_one_document() -> None:
    wrapped = "\n".join(textwrap.wrap(PROSE, 70))
    assert looks_wrapped(wrapped)
    paragraphs = f"{PROSE}\n\n{PROSE}\n\n\n{PROSE}\n"
    for text in ("", "\n\n", PROSE, PROSE + "\n", wrapped, wrapped + "\n\n" + wrapped, paragraphs):
        assert documents_of(text) == "file"
    # a blank line now and then does not make a book of two thousand news
    assert documents_of("\n".join([PROSE] * 20 + [""] + [PROSE] * 20)) == "lines"


def test_lines_that_somebody_has_split() -> None:
    text = "Mr. Brown left. He can't come.\r\n\r\nIt's over , isn't it\rYes.\u2029No"
    assert shown(text, split="lines") == ["Mr. Brown left . He ca n't come .", "It 's over , is n't it", "Yes .", "No"]
    assert shown(text, split="spaces") == ["Mr. Brown left. He can't come.", "It's over , isn't it", "Yes.", "No"]


def test_cuts_are_borders_of_tokens() -> None:
    text = "He joined Acme Inc. in San Sebastián-Donostia."
    acme, city = text.index("Acme"), text.index("Sebastián")
    found = segment(text, cuts=[acme, acme + 8, city - 4, city + 9, 0, len(text), city + 9])
    words = [text[a:b] for a, b in zip(found.starts, found.ends, strict=True)]
    assert words == ["He", "joined", "Acme", "Inc", ".", "in", "San", "Sebastián", "-Donostia", "."]
    assert found.sentences.tolist() == [0, 10]
    assert shown("One. Two.", cuts=[2]) == ["On e .", "Two ."]
    assert shown("ab cd", split="spaces", cuts=[1]) == ["a b cd"]


def test_no_sentence_ends_inside_of_a_labelled_span() -> None:
    text = "Ana works at Yahoo! Inc. The rest of us don't. Bo lives in San\nSebastián."
    yahoo, city = (13, 24), (text.index("San\n"), len(text) - 1)
    assert text[slice(*yahoo)] == "Yahoo! Inc."
    assert shown(text)[0] == "Ana works at Yahoo !"
    assert shown(text, spans=[city, (13, 18), yahoo, (13, 14)]) == [
        "Ana works at Y ahoo ! Inc .",
        "The rest of us do n't .",
        "Bo lives in San Sebastián .",
    ]


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match=r"`split` is 'words'; choose sentences, lines or spaces"):
        segment("a", split="words")
    with pytest.raises(UsageError, match=r"`cuts` or `spans` is 4; this text has places from 0 to 3"):
        segment("abc", cuts=[1, 4])
    with pytest.raises(UsageError, match="is -1"):
        segment("abc", cuts=[-1])
    with pytest.raises(UsageError, match="is 5"):
        segment("abc", spans=[(0, 5)])


@pytest.mark.parametrize(("text", "cut_at"), [("a, b; c " * 5000, ";"), ("a, b c " * 5000, ","), ("a " * 20_001, "a")])
def test_a_sentence_that_is_too_long_is_cut_at_a_good_place(text: str, cut_at: str) -> None:
    for split in SPLITS[:2]:
        found = segment(text, split=split)
        sizes = np.diff(found.sentences)
        assert sizes.max() <= limits.TOKENS
        assert sizes[:-1].min() >= limits.TOKENS // 2
        assert {text[found.starts[i - 1]] for i in found.sentences[1:-1]} == {cut_at}
        assert found.sentences[-1] == len(found.starts)


ODD = [
    *"aAbzßÉñИаאبकあ東ー09٣ ..,,!?;:'\"’‘“”«»„()[]-–—/&%$€#@*+=_~`´·…。।؟।։",
    *"\n\r\v\f\x85\u2028\u2029\t\xa0\u202f\u3000\x00\x1c\x7f",  # white space and control characters
    *"\u0301\u0327\u094d\u093f\u05b0\u20e3\ufe0f\U000e0100\U0001d165",  # marks
    *"\u200b\u200c\u200d\u200e\u202e\u2060\ufeff\xad\u2066",  # zero width
    *"\ud800\udfff😀👩🏽🇩𝔸𐍈𠀀\ue000\U0010ffff\u0378",  # surrogates, astral, private, not assigned
    *("http://a.b", "x@y.z", "don't", "Inc.", "U.S.", "l'a", "1.", "'s", "n't", "...", "''", "``", "[1]"),
    *(" The ", ". -", "\r\n", "\n\n"),
]
texts = st.one_of(st.lists(st.sampled_from(ODD), max_size=40).map("".join), st.text(max_size=30))


def _is_mark(c: str) -> bool:
    return unicodedata.category(c)[0] == "M"


def _is_unseen(c: str) -> bool:
    return unicodedata.category(c) in ("Cf", "Cc")


def _check_shape(text: str, found: Segments) -> None:
    starts, ends, sentences = (a.tolist() for a in found)
    assert all(a.dtype == np.int64 for a in found)
    assert all(a < b for a, b in zip(starts, ends, strict=True))
    assert all(b <= a for b, a in zip(ends, starts[1:], strict=False))
    assert sentences[0] == 0
    assert sentences[-1] == len(starts)
    assert all(a < b for a, b in pairwise(sentences))
    assert not starts or ends[-1] <= len(text)
    inside = {i for a, b in zip(starts, ends, strict=True) for i in range(a, b)}
    assert not any(text[i].isspace() for i in inside)
    assert not [c for i, c in enumerate(text) if i not in inside and not c.isspace() and not _is_unseen(c)]


ORDINARY = segmentation._tokens
RUNS = ["Aa.", "A.", "B,", "Ph.D", "S.p.A.", "'98", "-.5", "(.5", "a\xad", "\xad", "x.y", "-", "z" * 60, "don't", "€5"]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([*RUNS, *ODD, " ", "\n", "  "]), max_size=20))
def test_what_is_known_of_runs_does_not_matter(parts: list[str]) -> None:
    """Tokens are found run by run, and those of short runs are kept; in one go they are the same."""
    text = "".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        found = segment(text, language="")
        patch.setattr(segmentation, "_tokens", _tokens_in_one_go)
        for each, whole in zip(found, segment(text, language=""), strict=True):
            np.testing.assert_array_equal(each, whole)


def _tokens_in_one_go(text: str, kinds: Kinds) -> tuple[Ints, Ints, Kinds]:
    kinds = ORDINARY(text, kinds)[2]  # addresses are found
    found = segmentation._PIECES.finditer(" " + kinds.tobytes().decode())
    starts, ends = np.array([m.span() for m in found if m[0][0] not in " \nz"], np.int64).reshape(-1, 2).T - 1
    return starts, ends, kinds


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([*RUNS, *ODD, " ", "\n", "  "]), max_size=12).map("".join), max_size=8),
    st.sampled_from(SPLITS),
    st.sampled_from([None, "", "fr", "it", "nl", "de"]),
)
def test_many_texts_at_once_are_as_each_alone(many: list[str], split: str, language: str | None) -> None:
    together = list(segment_all(many, split=split, language=language))
    for text, found in zip(many, together, strict=True):
        for each, alone in zip(found, segment(text, split=split, language=language), strict=True):
            np.testing.assert_array_equal(each, alone)
            assert each.dtype == np.int64


def test_many_texts_are_told_from_each_other() -> None:
    """What is behind a text's end does not matter, nor what is before its beginning; long ones are cut."""
    many = [
        "Dr.D is Ph.",
        "Ph.D",
        "D",
        "",
        "l'Europe et la France",
        "the 's of don't",
        "a " * (limits.TOKENS + 5),
        ";",
        "α;",
    ]
    many += ["He came. She went", "Inc.", "At 5", ".5 a", "U.S.", "the U.S..", "..", "www.a.b", "c", "'98", "x\u2028y"]
    assert [len(found.starts) for found in segment_all(["Ph.D. students", "by Ph.D. students"])] == [2, 3]
    for language in (None, "", "fr"):
        for text, found in zip(many, segment_all(many, language=language), strict=True):
            for each, alone in zip(found, segment(text, language=language), strict=True):
                np.testing.assert_array_equal(each, alone)


@settings(max_examples=400, deadline=None)
@given(texts, st.sampled_from(SPLITS), st.sampled_from([None, "", "fr", "it", "nl", "de"]))
def test_tokens_hold_every_character_once_whatever_it_is(text: str, split: str, language: str | None) -> None:
    found = segment(text, split=split, language=language)
    _check_shape(text, found)
    for start in found.starts.tolist():  # a mark stays with what it stands on
        if start and _is_mark(text[start]):
            assert text[start - 1].isspace() or _is_unseen(text[start - 1])
    if split != "sentences":  # a sentence a line
        lines = {line for line in text.splitlines() if any(not c.isspace() and not _is_unseen(c) for c in line)}
        assert not lines or len(found.sentences) > 1
        for a, b in pairwise(found.sentences.tolist()):
            whole = text[found.starts[a] : found.ends[b - 1]]
            assert not set(whole) & set("\n\r\v\f\x85\u2028\u2029")
        between = [text[b:a] for b, a in zip(found.ends, found.starts[1:], strict=False)]
        borders = {i for i, gap in enumerate(between, 1) if set(gap) & set("\n\r\v\f\x85\u2028\u2029")}
        assert borders == set(found.sentences[1:-1].tolist())


@settings(max_examples=300, deadline=None)
@given(texts, st.data(), st.sampled_from(SPLITS))
def test_cuts_are_kept_and_change_nothing_else(text: str, data: st.DataObject, split: str) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6))
    before, found = segment(text, split=split), segment(text, split=split, cuts=cuts)
    _check_shape(text, found)
    for cut in cuts:
        assert not any(a < cut < b for a, b in zip(found.starts, found.ends, strict=True))
    borders = set(before.starts.tolist()) | set(before.ends.tolist())
    assert set(found.starts.tolist()) | set(found.ends.tolist()) <= borders | set(cuts)
    assert borders <= set(found.starts.tolist()) | set(found.ends.tolist())
    last = [s.ends[s.sentences[1:] - 1].tolist() for s in (before, found)]
    assert last[0] == last[1]


@settings(max_examples=200, deadline=None)
@given(texts, st.data())
def test_labelled_spans_stay_in_one_sentence(text: str, data: st.DataObject) -> None:
    place = st.integers(0, len(text))
    spans = data.draw(st.lists(st.tuples(place, place).map(sorted).map(tuple), max_size=4))
    before, found = segment(text), segment(text, spans=spans)
    _check_shape(text, found)
    last = [s.ends[s.sentences[1:] - 1].tolist() for s in (before, found)]
    inside = {place for place in last[0] for a, b in spans if a < place < b}
    assert set(last[1]) - set(last[0][-1:]) == set(last[0][:-1]) - inside


@settings(max_examples=200, deadline=None)
@given(texts)
def test_line_helpers_take_any_text(text: str) -> None:
    assert documents_of(text) in ("file", "lines")
    if looks_wrapped(text):
        assert documents_of(text) == "file"


@settings(max_examples=100, deadline=None)
@given(texts, texts)
def test_a_blank_line_parts_sentences(first: str, second: str) -> None:
    text = first + "\n\n" + second
    found = segment(text)
    middle = int(np.searchsorted(found.starts, len(first)))
    assert middle in found.sentences


def test_time_is_linear() -> None:
    """Long runs of one thing, which a careless pattern takes hours for."""
    for piece in (*"a.-'@\"\u0301\n(", "a.", "1,", "a@", "http://", "n't", "👩\u200d", "A. ", "z\xad"):
        text = piece * (200_000 // len(piece))
        _check_shape(text, segment(text))


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "sentence_ends"), [("conll2000/test.txt.gz", 0.975), ("conll2002/esp.testa.gz", 0.96)]
)
def test_pasted_conll_text_comes_back(real_data: Path, file: str, sentence_ends: float) -> None:
    path = Path(__file__).parents[3] / "benchmarks" / "segmentation.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_segmentation", path)
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = benchmark
    spec.loader.exec_module(benchmark)
    sentences = benchmark.read(real_data / file)
    straight = benchmark.paste(sentences)
    for pasted in (straight, benchmark.paste(sentences, "curly"), benchmark.wrapped(straight)):
        found = segment(pasted.text)
        spans = set(zip(found.starts.tolist(), found.ends.tolist(), strict=True))
        finals = set(found.ends[found.sentences[1:] - 1].tolist())
        assert benchmark.f1(set(pasted.spans), spans) >= 0.99
        assert benchmark.f1(set(pasted.finals), finals) >= sentence_ends
