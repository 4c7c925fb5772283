"""For the tests of tasks: what was remarked, and files of any packing."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from sparsezo import messages


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All that is remarked."""
    lines: list[str] = []
    monkeypatch.setattr(messages, "_sayer", lines.append)
    return lines


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file into the test's folder, packed as its name says."""

    def write(name: str, text: str | bytes) -> Path:
        content = text.encode() if isinstance(text, str) else text
        packed = {".gz": gzip.compress, ".xz": lzma.compress}.get(Path(name).suffix, bytes)
        (tmp_path / name).write_bytes(packed(content))
        return tmp_path / name

    return write
