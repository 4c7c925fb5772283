"""What can be imported from sparsezo itself, and that it costs nothing before it is used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sparsezo

SOURCE = Path(sparsezo.__file__)


@pytest.mark.parametrize("name", [name for name in sparsezo.__all__ if name != "__version__"])
def test_every_public_name_is_there(name):
    value = getattr(sparsezo, name)
    assert getattr(value, "__name__", name) == name or name.isupper()
    assert name in dir(sparsezo)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'sparsezo' has no attribute 'lerner'"):
        _ = sparsezo.lerner


def test_type_checkers_see_the_same_names():
    tree = ast.parse(SOURCE.read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: each.module for each in block.body for alias in each.names}
    assert seen == sparsezo._HOME


def test_importing_loads_nothing_heavy():
    loaded = "import sys, sparsezo; print(*(name for name in ('numpy', 'numba', 'typer') if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_guides_python_needs_one_import_line():
    guide = SOURCE.parent.parent.parent / "docs" / "guides" / "model.md"
    text = guide.read_text("utf-8")
    blocks = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    assert len(blocks) >= 2
    for block in blocks:
        imports = [line for line in block.splitlines() if re.match("from sparsezo.* import ", line)]
        assert len(imports) == 1
        names = imports[0].removeprefix("from sparsezo import ").split(", ")
        assert set(names) <= set(sparsezo.__all__)
