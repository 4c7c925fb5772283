"""For tests of engines: small data, and what loads it in every process."""

from __future__ import annotations

from pathlib import Path

import pytest
from sweeps import loader_of, write_data


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    return write_data(tmp_path_factory.mktemp("sweep"))


@pytest.fixture(scope="session")
def loader(folder):
    return loader_of(folder)
