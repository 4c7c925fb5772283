"""The user's cache: the one place that names its folders."""

from __future__ import annotations

from pathlib import Path

from platformdirs import user_cache_path


def cache_folder(kind: str) -> Path:
    """The folder of a kind: ``data`` that was fetched, ``nbest`` lists as imported, ``jit`` for compiled code.

    XDG_CACHE_HOME moves it. It is not made here: whoever writes makes it. RuntimeError where the user has no home.
    """
    return user_cache_path("sparsezo", appauthor=False) / kind
