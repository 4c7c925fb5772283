"""The pages and what they load, read once: no file is named by a request, and nothing comes from elsewhere."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

PACKAGE = "sparsezo.serve"
_TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}


@dataclass(frozen=True)
class Asset:
    content: bytes
    media_type: str
    etag: str


@cache
def assets() -> dict[str, Asset]:
    """By name, all that is in static/."""
    found = {}
    for file in files(PACKAGE).joinpath("static").iterdir():
        ending = file.name.rpartition(".")[2]
        if ending in _TYPES:
            content = file.read_bytes()
            found[file.name] = Asset(content, _TYPES[ending], f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found


def page(template: str, **context: Any) -> str:
    """A page of templates/; whatever is put into it is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(PACKAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(template).render(context)
