"""svmlight text to arrays and back, byte by byte; ``sparsezo.tasks.text.svmlight`` reads and writes files with it.

documents, queries, wrong = parse_block(text, indices, values, ends, line_of, label_at)   # wrong: a line, or -1
size = print_rows(indptr, indices, values, label_of, names, name_ends, text)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsezo.kernels.jit import standalone_kernel

MAX_INDEX = 10**18 - 1  # whatever 18 digits can say
TOO_LARGE = 2.0**128 - 2.0**103  # from here on float64 rounds to infinity in float32
_POWERS = 10.0 ** np.arange(23)  # exact in float64: one multiplication or division then rounds correctly


@standalone_kernel
def parse_block(
    text: NDArray[np.uint8],
    indices: NDArray[np.int64],
    values: NDArray[np.float32],
    ends: NDArray[np.int64],
    line_of: NDArray[np.int64],
    label_at: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Parse lines that all end in a newline; gives the documents found, those with a qid, the wrong line or -1.

    Fills for document i: the end of its pairs in ``indices`` and ``values``, its line, its label's bytes.
    """
    at, line, document, filled, queries = 0, 0, 0, 0, 0
    while at < len(text):
        while text[at] == 32 or text[at] == 9 or text[at] == 13:
            at += 1
        if text[at] != 10 and text[at] != 35:
            label_at[document, 0] = at
            at, good = _parse_label(text, at)
            if not good:
                return document, queries, line
            label_at[document, 1] = at
            after = _skip_query(text, at)
            queries += after > at
            at = after
            start, last, ordered, zeros = filled, -1, True, False
            while True:
                while text[at] == 32 or text[at] == 9 or text[at] == 13:
                    at += 1
                if text[at] == 10 or text[at] == 35:
                    break
                index, digits = 0, 0
                while 48 <= text[at] <= 57 and index <= MAX_INDEX // 10:
                    index = index * 10 + (text[at] - 48)
                    digits += 1
                    at += 1
                if digits == 0 or text[at] != 58:  # another digit: above MAX_INDEX
                    return document, queries, line
                at, value, good = _parse_number(text, at + 1)
                c = text[at]
                if not good or (c != 32 and c != 9 and c != 13 and c != 10 and c != 35):
                    return document, queries, line
                ordered = ordered and index > last
                last = index
                indices[filled] = index
                values[filled] = value
                zeros = zeros or values[filled] == 0
                filled += 1
            if zeros or not ordered:
                filled = _tidy_pairs(indices, values, start, filled, ordered)
                if filled < 0:
                    return document, queries, line
            ends[document] = filled
            line_of[document] = line
            document += 1
        while text[at] != 10:
            at += 1
        at += 1
        line += 1
    return document, queries, -1


@standalone_kernel
def _parse_label(text: NDArray[np.uint8], at: int) -> tuple[int, bool]:
    """A label at ``at``: where it ends, whether it is one; a colon makes it a pair, a comma several labels."""
    c = text[at]
    while c != 32 and c != 9 and c != 13 and c != 10 and c != 35:
        if c == 58 or c == 44:
            return at, False
        at += 1
        c = text[at]
    return at, True


@standalone_kernel
def _skip_query(text: NDArray[np.uint8], at: int) -> int:
    """Where ``qid:17`` ends, if that is what stands after the blanks at ``at``; ``at`` itself if not."""
    start = at
    while text[at] == 32 or text[at] == 9 or text[at] == 13:
        at += 1
    for c in (113, 105, 100, 58):  # a line ends in a newline, so this never runs past the text
        if text[at] != c:
            return start
        at += 1
    digits = at
    while 48 <= text[at] <= 57:
        at += 1
    c = text[at]
    return at if at > digits and (c == 32 or c == 9 or c == 13 or c == 10 or c == 35) else start


@standalone_kernel
def _tidy_pairs(indices: NDArray[np.int64], values: NDArray[np.float32], start: int, stop: int, ordered: bool) -> int:
    """Put one document's pairs in order and leave out its zeros; gives their new end, or -1 if an index comes twice."""
    if not ordered:
        order = np.argsort(indices[start:stop])
        indices[start:stop] = indices[start:stop][order]
        values[start:stop] = values[start:stop][order]
        for k in range(start + 1, stop):
            if indices[k] == indices[k - 1]:
                return -1
    kept = start
    for k in range(start, stop):  # a zero is a word that is not there
        if values[k] != 0:
            indices[kept] = indices[k]
            values[kept] = values[k]
            kept += 1
    return kept


@standalone_kernel
def _parse_number(text: NDArray[np.uint8], at: int) -> tuple[int, float, bool]:
    """A decimal number at ``at``: where it ends, its value, whether it is one and fits float32.

    Up to 15 digits and 22 places round as Python's float does; beyond, within 2 units in float64's last place.
    """
    negative = text[at] == 45
    if text[at] == 45 or text[at] == 43:
        at += 1
    mantissa, scale, digits = 0, 0, 0
    while 48 <= text[at] <= 57:
        if mantissa < 10**17:
            mantissa = mantissa * 10 + (text[at] - 48)
        else:
            scale += 1
        digits += 1
        at += 1
    if text[at] == 46:
        at += 1
        while 48 <= text[at] <= 57:
            if mantissa < 10**17:
                mantissa = mantissa * 10 + (text[at] - 48)
                scale -= 1
            digits += 1
            at += 1
    if digits == 0:
        return at, 0.0, False
    if text[at] == 101 or text[at] == 69:
        at += 1
        sign, exponent, digits = 1, 0, 0
        if text[at] == 45 or text[at] == 43:
            sign = -1 if text[at] == 45 else 1
            at += 1
        while 48 <= text[at] <= 57:
            exponent = min(exponent * 10 + (text[at] - 48), 10**15)
            digits += 1
            at += 1
        if digits == 0:
            return at, 0.0, False
        scale += sign * exponent
    value = float(mantissa)
    if mantissa == 0 or scale < -200:
        value = 0.0
    elif scale > 200:
        value = np.inf
    elif scale >= 0:
        value = value * _POWERS[scale] if scale <= 22 else value * 10.0**scale
    else:
        value = value / _POWERS[-scale] if scale >= -22 else value / 10.0 ** (-scale)
    return at, -value if negative else value, value < TOO_LARGE


@standalone_kernel
def print_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    values: NDArray[np.float32],
    label_of: NDArray[np.int64],
    names: NDArray[np.uint8],
    name_ends: NDArray[np.int64],
    text: NDArray[np.uint8],
) -> int:
    """Rows as lines, the label of row i being name ``label_of[i]``; gives the bytes written. 56 a pair are enough."""
    at = 0
    for row in range(len(label_of)):
        for k in range(name_ends[label_of[row]], name_ends[label_of[row] + 1]):
            text[at] = names[k]
            at += 1
        for k in range(indptr[row], indptr[row + 1]):
            text[at] = 32
            at = _print_whole(text, at + 1, indices[k], 1)
            text[at] = 58
            at = _print_number(text, at + 1, values[k])
        text[at] = 10
        at += 1
    return at


@standalone_kernel
def _print_number(text: NDArray[np.uint8], at: int, value: float) -> int:
    """The fewest digits, of 6 to 9, that read back as the same float32; at most 35 bytes."""
    x = abs(np.float64(value))
    if value < 0:
        text[at] = 45
        at += 1
    if x == 0:
        return _print_whole(text, at, 0, 1)
    places, mantissa = 0, 0  # x = mantissa / 10**places
    for digits in range(6, 10):
        places = digits - 1 - int(np.floor(np.log10(x)))
        power = 10.0 ** abs(places)
        mantissa = int(np.rint(x * power if places >= 0 else x / power))
        if np.float32(mantissa / power if places >= 0 else mantissa * power) == abs(value):
            break
    while places > 0 and mantissa % 10 == 0:
        mantissa //= 10
        places -= 1
    if 0 < places <= 15:
        power = 10**places
        at = _print_whole(text, at, mantissa // power, 1)
        text[at] = 46
        return _print_whole(text, at + 1, mantissa % power, places)
    at = _print_whole(text, at, mantissa, 1)
    if places != 0:
        text[at] = 101
        at += 1
        if places > 0:
            text[at] = 45
            at += 1
        at = _print_whole(text, at, abs(places), 1)
    return at


@standalone_kernel
def _print_whole(text: NDArray[np.uint8], at: int, number: int, width: int) -> int:
    """A whole number, with leading zeros up to ``width``; gives where it ends."""
    digits, rest = 1, number // 10
    while rest > 0:
        digits += 1
        rest //= 10
    digits = max(digits, width)
    for k in range(digits):
        text[at + digits - 1 - k] = 48 + number % 10
        number //= 10
    return at + digits
