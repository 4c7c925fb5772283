"""Vectors of tokens, as dense columns of C beside the attributes: of a frozen encoder, or given as arrays.

    vectors, encoded = TokenVectors.fit("my_encoder:encode", corpus)
    vectors.encoded(other)                  # by the same function, less the training tokens' mean
    vectors.encoded(other, arrays)          # where no function is known: an array for each sentence, or one for all

A function is called with the tokens of one sentence (encoders.py). A corpus keeps what came of it, so that nothing is
encoded twice, and so that a session with people goes on and is replayed with the same numbers, to the bit.

Every vector has the length ``SCALE``; a token has some 20 to 90 attributes of value 1 beside it. How it was chosen, and
what vectors bring, is in docs/features.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.messages import counting, say
from sparsezo.storage.fingerprint import known_by
from sparsezo.tasks.base import AnyArray, Arrays, Json
from sparsezo.tasks.chunking.io.conll import Corpus, Encoded
from sparsezo.tasks.encoders import MOST_COLUMNS, Encode, Encoder, centre_of, checked_rows, known_rows, to_length

SCALE = 4.0
Given = str | Encode | AnyArray | Sequence[AnyArray]
_ARRAYS = "`vectors`"  # what arrays are called in messages


@dataclass(frozen=True, eq=False)
class TokenVectors:
    """What makes the dense columns of a corpus."""

    encoder: Encoder | None  # None: arrays are given with each corpus, or whoever has the function gives it
    centre: NDArray[np.float32]  # of the training tokens
    scale: float = SCALE

    @classmethod
    def fit(cls, given: Given, corpus: Corpus) -> tuple[TokenVectors, Encoded]:
        """From training sentences: how their vectors are centred, and these vectors."""
        encoder = Encoder(given) if isinstance(given, str) or callable(given) else None
        rows = _encoded(encoder, corpus, None) if encoder is not None else _arrays(given, corpus, None)
        known = known_rows(rows)
        if not known.any():
            raise DataError(corpus.path, "`vectors` are 0 for every token; is the encoder of this language?")
        made = cls(encoder, centre_of(rows, known))
        none = int((~known).sum())
        some = f"; {none:,} of {len(rows):,} tokens have none" if none else ""
        of = "" if encoder is None else f" of {encoder}"
        say(f"{corpus.path}: `vectors`{of}: {made.columns:,} columns, {rows.nbytes / 1e6:,.1f} MB in memory{some}")
        to_length(rows, made.centre, known, made.scale)
        return made, Encoded(rows, made.known_by)

    @property
    def columns(self) -> int:
        return len(self.centre)

    @property
    def name(self) -> str | None:
        """Of the function, where it has one that other processes find it by."""
        return None if self.encoder is None else self.encoder.name

    @property
    def known_by(self) -> str:
        """The same where the same vectors become the same columns."""
        return known_by(self.name, self.scale, self.centre)

    def names(self) -> list[str]:
        """Of the columns, as features."""
        return [f"vectors {self.name or ''} {k}" for k in range(self.columns)]

    def encoded(self, corpus: Corpus, given: Given | None = None) -> Encoded:
        """The vectors of a corpus: those given, those that it has, or those that the encoder gives."""
        if given is None:
            if corpus.encoded is not None and corpus.encoded.known_by == self.known_by:
                return corpus.encoded
            if self.encoder is None:
                raise UsageError(
                    f"{corpus.path}: has no `vectors`, and the model names no function that gives them; load it with "
                    "load_model(path, vectors=f), or give arrays with task.seen(corpus, vectors=arrays)"
                )
            rows = _encoded(self.encoder, corpus, self.columns)
        elif isinstance(given, str) or callable(given):
            rows = _encoded(Encoder(given), corpus, self.columns)
        else:
            rows = _arrays(given, corpus, self.columns)
        to_length(rows, self.centre, known_rows(rows), self.scale)
        return Encoded(rows, self.known_by)

    def to_arrays(self) -> tuple[Json, Arrays]:
        return {"function": self.name, "scale": self.scale}, {"centre": self.centre}

    @classmethod
    def from_arrays(cls, settings: Json, arrays: Mapping[str, AnyArray]) -> TokenVectors:
        """ValueError where these are not what ``to_arrays`` can have given."""
        name, scale, centre = settings["function"], settings["scale"], arrays["centre"]
        if not isinstance(scale, float) or not 0 < scale < 1e6:
            raise ValueError(f"vectors of length {scale}")
        if centre.dtype != np.float32 or centre.ndim != 1 or not 0 < len(centre) <= MOST_COLUMNS:
            raise ValueError(f"the centre of vectors is of type {centre.dtype} and shape {centre.shape}")
        if not np.isfinite(centre).all():
            raise ValueError("the centre of vectors is not finite")
        if name is not None and not isinstance(name, str):
            raise ValueError(f"vectors of a function {name!r}")
        try:
            return cls(None if name is None else Encoder(name), centre, scale)
        except UsageError as error:
            raise ValueError(str(error)) from None


def _encoded(encoder: Encoder, corpus: Corpus, columns: int | None) -> NDArray[np.float32]:
    """Tokens x columns, as the encoder gives them, sentence by sentence."""
    if not corpus.columns:
        raise UsageError(f"{corpus.path}: lists attributes and no words for `vectors` {encoder}; give arrays")
    words, made = corpus.columns[0], None
    with counting(f"encoding {corpus.path}", "sentences") as count:
        for s, (begin, end) in enumerate(pairwise(corpus.offsets.tolist())):
            if begin == end:
                continue
            rows = encoder(words[begin:end], columns, _sentence(corpus, s))
            if made is None:
                columns = rows.shape[1]
                made = np.zeros((corpus.n_tokens, columns), np.float32)
            made[begin:end] = rows
            if s % 100 == 0:
                count(s, len(corpus))
    return np.zeros((0, columns or 1), np.float32) if made is None else made


def _arrays(given: object, corpus: Corpus, columns: int | None) -> NDArray[np.float32]:
    """Of one array for all tokens, or of one for each sentence."""
    if isinstance(given, np.ndarray) and given.ndim == 2:
        return checked_rows(given, corpus.n_tokens, columns, _ARRAYS, corpus.path)
    parts = list(given) if isinstance(given, Sequence | np.ndarray) else []
    if len(parts) != len(corpus):
        raise UsageError(f"`vectors`: {len(parts):,} arrays for {len(corpus):,} sentences; give one for each")
    made = []
    for s, part in enumerate(parts):
        n = int(corpus.offsets[s + 1] - corpus.offsets[s])
        if n:
            made.append(checked_rows(np.asarray(part), n, columns, _ARRAYS, _sentence(corpus, s)))
            columns = made[-1].shape[1]
    return np.concatenate(made) if made else np.zeros((0, columns or 1), np.float32)


def _sentence(corpus: Corpus, s: int) -> str:
    """Which sentence it is, for a message: where it begins, its number from 1, and its words."""
    begin, end = corpus.offsets[s : s + 2].tolist()
    words = f" ('{quoted(' '.join(corpus.columns[0][begin:end]))}')" if corpus.columns else ""
    return f"{corpus.where(begin)}, sentence {s + 1}{words}"
