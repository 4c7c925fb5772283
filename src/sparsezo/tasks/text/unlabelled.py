"""Documents without labels, and the classes that ``classes`` names in their place.

    named_classes("sci,talk")                                       # ('sci', 'talk')
    read_unlabelled("raw.txt", ("sci", "talk"))

Labels that are there all the same are not looked at: nobody could say later that an answer had been seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sparsezo.errors import UsageError, quoted
from sparsezo.notes import say
from sparsezo.tasks.text.documents import Documents, read_documents
from sparsezo.words import counted

PathLike = str | os.PathLike[str]


def named_classes(classes: str | Iterable[str]) -> tuple[str, ...]:
    names = [name.strip() for name in (classes.split(",") if isinstance(classes, str) else classes)]
    for name in names:
        if not name or not name.isprintable():
            raise UsageError(
                f"`classes` {quoted(name) or 'with nothing between two commas'}: give names, as in sci,talk"
            )
        if names.count(name) > 1:
            raise UsageError(f"`classes` {quoted(name)}: is named twice")
    if len(names) < 2:
        raise UsageError(f"`classes` {', '.join(names)}: give two or more, parted by commas")
    return tuple(names)


def read_unlabelled(paths: PathLike | Sequence[PathLike], classes: Sequence[str], **how: Any) -> Documents:
    """Documents without labels; says what was understood. ``how`` is of ``read_documents``."""
    documents = read_documents(paths, labelled=False, classes=classes, **how)
    left_out = "; labels are not looked at, with `classes` given" if documents.labels is not None else ""
    found = {"vectors": "vectors", "tokens": "tokens of RCV1", "text": "texts"}[documents.kind]
    say(f"{', '.join(documents.paths)}: {counted(len(documents), 'document')} without labels, {found}{left_out}")
    return replace(documents, labels=None)
