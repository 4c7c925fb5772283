"""JSON and TOML files that carry a sum of their content (blake2b): what is not as it was written is seen when read.

    write_checksummed("tuning.json", {"a": 1})
    read_checksummed("tuning.json")                  # {"a": 1}; None where there is no such file; else DamagedError

In JSON, "sealed" stands first and says that a sum follows, "sum" stands last: no single cut takes both and leaves JSON.
In TOML both are comments, the other way round. Files from before there were sums are read as they are.
"""

from __future__ import annotations

import json
import re

from sparsezo.errors import DamagedError, quoted
from sparsezo.options import Json
from sparsezo.storage.files import Name, write_text
from sparsezo.storage.fingerprint import fingerprint

_KIND = "blake2b"
_MOST = 1 << 26  # bytes of a file that somebody may want to look at
_TOML = re.compile(r"# sum: ([0-9a-f]{32})\n(.*)# sealed\n", re.DOTALL)


def write_checksummed(path: Name, value: Json) -> None:
    value = json.loads(json.dumps(value))  # as it will be read
    sealed = {"sealed": _KIND, **value, "sum": fingerprint(_canonical(value))}
    write_text(path, json.dumps(sealed, indent=1) + "\n")


def read_checksummed(path: Name, mend: str = "make it anew") -> Json | None:
    """Plain values only: no number beyond 64 bits, no nesting that nobody wrote. ``mend``: what to do about damage."""
    text = read_whole(path, mend)
    if text is None:
        return None
    try:
        value = json.loads(text)
        if not isinstance(value, dict):
            raise ValueError("it is no JSON object")
        check_plain(value)
        kind, its_sum = value.pop("sealed", None), value.pop("sum", None)
        if (kind, its_sum) == (None, None) and _KIND in value.values():
            raise ValueError("its sum has another name")
        content = _canonical(value)
    except (RecursionError, ValueError) as error:
        why = "nested too deep" if isinstance(error, RecursionError) else error
        raise DamagedError(str(path), why, mend) from None
    if (kind, its_sum) != (None, None) and (kind, its_sum) != (_KIND, fingerprint(content)):
        raise DamagedError(str(path), "it does not have the sum that it was written with", mend)
    return value


def checksummed_toml(text: str) -> str:
    return f"# sum: {fingerprint(text.encode('utf-8'))}\n{text}# sealed\n"


def verified_toml(text: str, where: str, mend: str = "make it anew") -> str:
    """Without its sum, which is checked where there is one."""
    if "# sum: " not in text and "# sealed\n" not in text:
        return text
    found = _TOML.fullmatch(text)
    if found is None or fingerprint(found[2].encode("utf-8")) != found[1]:
        raise DamagedError(where, "it does not have the sum that it was written with", mend)
    return found[2]


def read_whole(path: Name, mend: str) -> str | None:
    """A file of ours as text; None where it is not there."""
    try:
        with open(path, "rb") as stream:
            raw = stream.read(_MOST + 1)
        if len(raw) > _MOST:
            raise ValueError(f"it has more than {_MOST >> 20} MB")
        return raw.decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        raise DamagedError(str(path), f"it is not UTF-8 text: {error.reason}", mend) from None
    except (OSError, ValueError) as error:
        raise DamagedError(str(path), getattr(error, "strerror", None) or error, mend) from None


def check_plain(value: object, at: tuple[str, ...] = ()) -> None:
    """ValueError for what nobody meant to write: numbers beyond 64 bits, NUL characters, lists in lists without end."""
    if len(at) > 32:
        raise ValueError("nested too deep")
    if isinstance(value, dict):
        for key, inner in value.items():
            check_plain(inner, (*at, key))
            check_plain(key, at)
    elif isinstance(value, list):
        for number, inner in enumerate(value, start=1):
            check_plain(inner, (*at, str(number)))
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{quoted('.'.join(at))} is a whole number of {value.bit_length() + 1} bits; 64 are the most")
    elif isinstance(value, str) and "\0" in value:
        raise ValueError(f"{quoted('.'.join(at))} is a text with a NUL character")


def _canonical(value: Json) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
