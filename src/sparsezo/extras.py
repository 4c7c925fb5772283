"""Libraries that only some of the work needs, asked for before it starts.

need("rerank", "report")            # NotInstalledError with the line that installs them, where one is not there

The line names the packages themselves, so it works wherever sparsezo came from.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

from sparsezo.errors import NotInstalledError

EXTRAS = {  # pip's name of the extra -> the modules that it brings
    "text": ("scipy", "sklearn"),
    "rerank": ("sacrebleu",),
    "report": ("matplotlib", "jinja2"),
    "data": ("pooch",),
    "ray": ("ray", "grpc"),
    "serve": (
        "fastapi",
        "uvicorn",
        "jinja2",
        "httptools",
        "threadpoolctl",
        *(() if sys.platform == "win32" else ("uvloop",)),
    ),
}
_PACKAGES = {"sklearn": "scikit-learn", "grpc": "grpcio"}


def need(*extras: str | None) -> None:
    """Each once; None asks for nothing."""
    wanted = [name for name in dict.fromkeys(extras) if name is not None]
    modules = dict.fromkeys(each for name in wanted for each in EXTRAS[name])
    missing = [_PACKAGES.get(each, each) for each in modules if find_spec(each) is None]
    if missing:
        raise NotInstalledError(f"this needs {', '.join(missing)}; install with: pip install {' '.join(missing)}")
