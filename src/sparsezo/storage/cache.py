"""The user's cache: the one place that names its folders.

    cache_folder("data")        ~/.cache/sparsezo/data: collections that 'data get' has fetched
    cache_folder("nbest")       n-best lists as they were imported
    cache_folder("jit")         compiled code, one folder for each state of the sources

XDG_CACHE_HOME moves it, and on other systems platformdirs says where caches go.
"""

from __future__ import annotations

from pathlib import Path

from platformdirs import user_cache_path


def cache_folder(kind: str) -> Path:
    """Not made here: whoever writes makes it. RuntimeError where the user has no home."""
    return user_cache_path("sparsezo", appauthor=False) / kind
