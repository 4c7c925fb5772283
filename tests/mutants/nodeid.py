"""A pytest plugin for mutmut 3.8, which reads an attribute that pytest 9.2 has renamed."""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    item._nodeid = item.nodeid  # type: ignore[attr-defined]
