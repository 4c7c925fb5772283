"""Libraries that only some of the work needs, asked for before it starts.

need("rerank", "report")            # NotInstalledError with the line that installs them, where one is not there

The line names the packages themselves, so it works wherever sparsezo came from.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from importlib.util import find_spec

from sparsezo.errors import NotInstalledError

EXTRAS = {  # pip's name of the extra -> the modules that it brings
    "text": ("scipy", "sklearn"),
    "clusters": ("spacy_lookups_data", "scipy"),
    "vectors": ("wordllama",),
    "rerank": ("sacrebleu",),
    "report": ("matplotlib", "jinja2"),
    "data": ("pooch",),
    "ray": ("ray", "grpc"),
    "spacy": ("spacy",),
    "datasets": ("pyarrow",),  # the files of Hugging Face's datasets are Arrow's; its own library is not needed
    "serve": (
        "fastapi",
        "uvicorn",
        "jinja2",
        "httptools",
        "threadpoolctl",
        *(() if sys.platform == "win32" else ("uvloop",)),
    ),
}
_PACKAGES = {"sklearn": "scikit-learn", "grpc": "grpcio", "spacy_lookups_data": "spacy-lookups-data"}


def need(*extras: str | None, only: Collection[str] | None = None) -> None:
    """Each once; None asks for nothing. ``only``: these modules of the extras, where not all of them are needed."""
    wanted = [name for name in dict.fromkeys(extras) if name is not None]
    modules = dict.fromkeys(each for name in wanted for each in EXTRAS[name] if only is None or each in only)
    missing = [_PACKAGES.get(each, each) for each in modules if find_spec(each) is None]
    if missing:
        raise NotInstalledError(f"this needs {', '.join(missing)}; install with: pip install {' '.join(missing)}")


def pip_install(name: str) -> str:
    """The command that brings an extra, wherever sparsezo came from."""
    return f"pip install {' '.join(_PACKAGES.get(each, each) for each in EXTRAS[name])}"
