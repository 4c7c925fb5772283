"""Texts to pieces of words, by a byte-pair encoding that reads blanks as "▁" (SentencePiece, as in Llama 2).

    pieces = Pieces.of_json(Path("tokenizer.json").read_bytes(), "tokenizer.json")     # Hugging Face's layout
    pieces.encode(["Some text."])           # [[3834, 1426, 29889]]: numbers in the vocabulary
    pieces.counts(texts)                    # scipy CSR, texts x pieces: how often each has each

The same numbers as the library ``tokenizers`` gives, which is not needed: what is saved with a model is enough to read
texts as they were read in training. No piece goes on after a blank that ends a word, so words are looked at once each,
however often they come.
"""

from __future__ import annotations

import itertools
import json
import re
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError
from sparsezo.storage.texts import joined, parted

BLANK = "▁"
_CHARACTERS = 0x110000
_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
_NORMALISER = {
    "type": "Sequence",
    "normalizers": [
        {"type": "Prepend", "prepend": BLANK},
        {"type": "Replace", "pattern": {"String": " "}, "content": BLANK},
    ],
}
_MODEL: dict[str, Any] = {"type": "BPE", "dropout": None, "continuing_subword_prefix": None, "end_of_word_suffix": None}
_MODEL |= {"byte_fallback": True, "ignore_merges": False}


class Pieces:
    """A vocabulary (all 256 bytes are in it), the pairs that may be merged, best first, and its special pieces."""

    def __init__(self, vocabulary: Sequence[str], merges: NDArray[np.int32], special: Sequence[str] = ()) -> None:
        """``merges``: the numbers of each pair. ValueError where these do not make an encoding."""
        self.vocabulary = list(vocabulary)
        number = {piece: k for k, piece in enumerate(self.vocabulary)}
        if len(number) != len(self.vocabulary):
            raise ValueError("a piece is there twice")
        if missing := [name for name in (*_BYTES, *special) if name not in number]:
            raise ValueError(f"the vocabulary has no {missing[0]}")
        n = len(self.vocabulary)
        if merges.ndim != 2 or merges.shape[1] != 2 or merges.dtype != np.int32:
            raise ValueError(f"merges of type {merges.dtype} and shape {merges.shape}")
        if merges.size and not (merges.min() >= 0 and merges.max() < n):
            raise ValueError("a merge of pieces that are not there")
        self.merges, self.special = merges, tuple(special)
        words = self.vocabulary
        results = np.array([number.get(words[a] + words[b], -1) for a, b in merges.tolist()], np.int32)
        if (results < 0).any():
            raise ValueError("a merge gives a piece that is not there")
        keys = (merges[:, 0].astype(np.int64) << 32) | merges[:, 1]
        order = np.argsort(keys, kind="stable")
        self._keys, self._results, self._ranks = keys[order], results[order], order.astype(np.int32)
        if (np.diff(self._keys) == 0).any():
            raise ValueError("a merge is there twice")
        self._of_byte = np.array([number[name] for name in _BYTES], np.int32)
        self._of_character = np.full(_CHARACTERS, -1, np.int32)
        for piece, k in number.items():
            if len(piece) == 1:
                self._of_character[ord(piece)] = k
        self._number = number
        self._cut = re.compile("|".join(map(re.escape, sorted(special, key=len, reverse=True)))) if special else None
        within = any(BLANK in piece.lstrip(BLANK) for piece in self.vocabulary)
        self._words = re.compile(".+" if within else f"{BLANK}*[^{BLANK}]+|{BLANK}+", re.DOTALL)

    def __len__(self) -> int:
        return len(self.vocabulary)

    @classmethod
    def of_json(cls, raw: bytes, where: str) -> Pieces:
        """From a ``tokenizer.json`` of the library tokenizers; DataError where it is of another kind."""
        try:
            found = json.loads(raw)
            model = found["model"]
            known = found["normalizer"] == _NORMALISER and found["pre_tokenizer"] is None
            if not known or any(model[name] != value for name, value in _MODEL.items()):
                raise ValueError("it is no byte-pair encoding with blanks as ▁ and bytes to fall back on")
            number = {str(piece): int(k) for piece, k in model["vocab"].items()}
            words = sorted(number, key=number.__getitem__)
            if [number[word] for word in words] != list(range(len(words))):
                raise ValueError("its vocabulary is not numbered from 0")
            pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
            merges = np.array([(number[a], number[b]) for a, b in pairs], np.int32).reshape(-1, 2)
            special = [each["content"] for each in found["added_tokens"]]
            if any(each["normalized"] or each["lstrip"] or each["rstrip"] for each in found["added_tokens"]):
                raise ValueError("it has added tokens of a kind that is not known")
            return cls(words, merges, special)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(where, f"is no tokeniser that can be read here ({error})") from None

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The pieces of each text, by number."""
        words, places, starts = self._split(texts)
        pieces, ends = self._merged(words)
        each = [pieces[a:b].tolist() for a, b in itertools.pairwise([0, *ends.tolist()])]
        return [
            list(itertools.chain.from_iterable(each[k] for k in places[a:b])) for a, b in itertools.pairwise(starts)
        ]

    def counts(self, texts: Sequence[str]) -> Any:
        """Texts x pieces, CSR float32 with sorted indices: a row depends on its own text alone."""
        from scipy.sparse import csr_array

        words, places, starts = self._split(texts)
        pieces, ends = self._merged(words)
        of_words = csr_array(
            (np.ones(len(pieces), np.float32), pieces, np.concatenate([[0], ends])), shape=(len(words), len(self))
        )
        rows = csr_array(
            (np.ones(len(places), np.float32), np.frombuffer(places, np.int32), starts), shape=(len(texts), len(words))
        )
        found = csr_array(rows @ of_words)
        found.sum_duplicates()
        return found

    def _split(self, texts: Sequence[str]) -> tuple[list[str], array[int], list[int]]:
        """(distinct words, which ones the texts have, where each text begins)."""
        number: defaultdict[str, int] = defaultdict(itertools.count().__next__)
        places, starts = array("i"), [0]
        for text in texts:
            for part in self._parts(text):
                if part in self.special:
                    places.append(number[part])
                elif part:
                    places.extend(map(number.__getitem__, self._words.findall(BLANK + part.replace(" ", BLANK))))
            starts.append(len(places))
        return list(number), places, starts

    def _parts(self, text: str) -> list[str]:
        """The text around special pieces, and these."""
        if self._cut is None or self._cut.search(text) is None:
            return [text]
        found = [(each.start(), each.end()) for each in self._cut.finditer(text)]
        ends = [0, *itertools.chain.from_iterable(found), len(text)]
        return [text[a:b] for a, b in itertools.pairwise(ends)]

    def _merged(self, words: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """(pieces of all words, where those of each end)."""
        from sparsezo.tasks.text.pieces_kernel import merge_pieces

        plain = [word if word not in self.special else "" for word in words]
        characters = np.frombuffer("".join(plain).encode("utf-32-le", "surrogatepass"), np.uint32)
        starts = np.zeros(len(words) + 1, np.int64)
        np.cumsum([len(word) for word in plain], out=starts[1:])
        pieces, ends = np.empty(4 * len(characters), np.int32), np.empty(len(words), np.int64)
        encoding = (self._of_character, self._of_byte, self._keys, self._results, self._ranks)
        filled = merge_pieces(characters, starts, *encoding, pieces, ends)
        pieces = pieces[:filled]
        for k, word in enumerate(words):
            if word in self.special:
                pieces = np.insert(pieces, ends[k], self._number[word])
                ends[k:] += 1
        return pieces, ends

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        text, start = joined([*self.vocabulary, *self.special])
        return {"pieces": text, "pieces_start": start, "merges": self.merges}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n: int) -> Pieces:
        """``n``: how many pieces there are; ValueError where this is not what ``to_arrays`` gave."""
        words = parted(arrays["pieces"], arrays["pieces_start"])
        if not 0 <= n <= len(words):
            raise ValueError(f"{len(words)} pieces, not {n}")
        return cls(words[:n], arrays["merges"], words[n:])
