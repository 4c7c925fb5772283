"""Texts to pieces of words, by a byte-pair encoding that reads blanks as "▁" (SentencePiece, as in Llama 2).

The same pieces as the library ``tokenizers`` gives, which is not needed: what is saved with a model is enough to read
texts as they were read in training. No piece goes on after a blank that ends a word, so words are looked at once each.

    pieces = Pieces.of_json(Path("tokenizer.json").read_bytes(), "tokenizer.json")     # Hugging Face's layout
    pieces.of_words(pieces.words_of("Some text."))      # scipy CSR, words x pieces: how often each has each
"""

from __future__ import annotations

import heapq
import itertools
import json
import re
from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsezo.errors import DataError
from sparsezo.kernels.jit import standalone_kernel
from sparsezo.storage.texts import joined, parted
from sparsezo.tasks.base import Arrays

Numbers = NDArray[np.int32]
Keys = NDArray[np.int64]
Place = int | np.int32 | np.int64
BLANK = "▁"
_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
_NORMALISER = {
    "type": "Sequence",
    "normalizers": [
        {"type": "Prepend", "prepend": BLANK},
        {"type": "Replace", "pattern": {"String": " "}, "content": BLANK},
    ],
}
_MODEL = {
    "type": "BPE",
    "dropout": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "byte_fallback": True,
    "ignore_merges": False,
}


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
        self._merging = keys[order], results[order], order.astype(np.int32)
        if (np.diff(self._merging[0]) == 0).any():
            raise ValueError("a merge is there twice")
        self._bytes = [number[name] for name in _BYTES]
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

    def of_words(self, words: Sequence[str]) -> csr_array:
        """Words, as ``words_of`` gives them, x pieces: how often each has each, float32."""
        pieces, ends = self._merged(words)
        ones = np.ones(len(pieces), np.float32)
        return csr_array((ones, pieces, np.concatenate([[0], ends])), shape=(len(words), len(self)))

    def words_of(self, text: str) -> list[str]:
        """The parts of a text that are looked at by themselves: words with the blanks before them, special pieces."""
        ends = [0, len(text)]
        if self._cut is not None and self._cut.search(text) is not None:
            ends[1:1] = itertools.chain.from_iterable(each.span() for each in self._cut.finditer(text))
        words: list[str] = []
        for k, (a, b) in enumerate(itertools.pairwise(ends)):
            if k % 2:
                words.append(text[a:b])
            elif a < b:
                words += self._words.findall(BLANK + text[a:b].replace(" ", BLANK))
        return words

    def _merged(self, words: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """(pieces of all words, where those of each end)."""
        pieces, starts = array("i"), [0]
        spelled: dict[str, list[int]] = {}  # a character without a piece of its own is spelled in bytes
        for word in words:
            if word in self.special:
                pieces.append(self._number[word])
            else:
                for c in word:
                    if c not in spelled:
                        raw = c.encode("utf-8", "surrogatepass")
                        spelled[c] = [self._number[c]] if c in self._number else [self._bytes[byte] for byte in raw]
                    pieces.extend(spelled[c])
            starts.append(len(pieces))
        found, ends = np.array(pieces, np.int32), np.empty(len(words), np.int64)
        return found[: merge_pieces(np.array(starts, np.int64), *self._merging, found, ends)], ends

    def to_arrays(self) -> Arrays:
        text, start = joined([*self.vocabulary, *self.special])
        return {"pieces": text, "pieces_start": start, "merges": self.merges}

    @classmethod
    def from_arrays(cls, arrays: Arrays, n: int) -> Pieces:
        """``n``: how many pieces there are; ValueError where this is not what ``to_arrays`` gave."""
        words = parted(arrays["pieces"], arrays["pieces_start"])
        if not 0 <= n <= len(words):
            raise ValueError(f"{len(words)} pieces, not {n}")
        return cls(words[:n], arrays["merges"], words[n:])


@standalone_kernel
def merge_pieces(starts: Keys, keys: Keys, results: Numbers, ranks: Numbers, pieces: Numbers, ends: Keys) -> int:
    """Merge, in each word, the neighbours of the least rank, the leftmost first, until none may be merged.

    Word k is ``pieces[starts[k]:starts[k + 1]]``, and after it ``pieces[ends[k - 1]:ends[k]]``; returns the last end.
    ``keys`` are the pairs that may be merged, sorted, with what they give and their ranks.
    """
    filled = 0
    for k in range(ends.size):
        word, n = pieces[starts[k] : starts[k + 1]], starts[k + 1] - starts[k]
        left, right = np.arange(-1, n - 1), np.arange(1, n + 1)
        heap = [(np.int64(0), np.int64(0)) for _ in range(0)]  # (rank, place of the pair's first piece)
        for place in range(n - 1):
            _push(heap, keys, ranks, word, place, place + 1)
        while len(heap) > 0:
            rank, i = heapq.heappop(heap)
            if word[i] < 0 or right[i] >= n:
                continue
            j = right[i]
            pair = _pair(keys, word[i], word[j])
            if pair < 0 or ranks[pair] != rank:
                continue  # one of the two has been merged since
            word[i], word[j] = results[pair], -1
            right[i] = right[j]
            if right[i] < n:
                left[right[i]] = i
                _push(heap, keys, ranks, word, i, right[i])
            if left[i] >= 0:
                _push(heap, keys, ranks, word, left[i], i)
        for piece in word:
            if piece >= 0:
                pieces[filled] = piece
                filled += 1
        ends[k] = filled
    return filled


@standalone_kernel
def _pair(keys: Keys, left: Place, right: Place) -> int:
    """Where left and right stand among the sorted pairs that may be merged; -1: they may not."""
    key = (np.int64(left) << 32) | np.int64(right)
    place = np.searchsorted(keys, key)
    return int(place) if place < keys.size and keys[place] == key else -1


@standalone_kernel
def _push(
    heap: list[tuple[np.int64, np.int64]], keys: Keys, ranks: Numbers, word: Numbers, left: Place, right: Place
) -> None:
    pair = _pair(keys, word[left], word[right])
    if pair >= 0:
        heapq.heappush(heap, (np.int64(ranks[pair]), np.int64(left)))
