"""The lines of use that docstrings of the library's modules show, run."""

from __future__ import annotations

import doctest
import importlib

import pytest

PLAIN = ("errors", "messages", "questions", "raters", "rules", "settings", "training", "validation")
LEARNING = ("algorithm", "learner", "minimization", "optimizer", "query_learner")


@pytest.mark.parametrize("name", [*PLAIN, *LEARNING])
def test_what_docstrings_show(name):
    module = importlib.import_module(f"sparsezo.{name}")
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 0
    assert found.failed == 0
