"""Generated n-best lists as files, with references and weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sparsezo.errors import UsageError
from sparsezo.storage.packing import bare_name, write_packed
from sparsezo.tasks.rerank.generate import IN_DOMAIN, OUT_OF_DOMAIN, generate_nbest, weights_text
from sparsezo.tasks.rerank.importing import default_references

ENDING = ".nbest"
SIZE = 300
FORMATS: tuple[str, ...] = ()
_PARTS = (300, 150, 300)  # lists of an experiment's train, dev and test


def paths(target: Path, weights: Path) -> list[Path]:
    if not bare_name(target).endswith(ENDING):
        raise UsageError(f"-o {target}: name it NAME.nbest, .nbest.gz or .nbest.xz, or a folder with a / behind it")
    domains = (weights.with_name(weights.name + domain) for domain in ("out-of-domain", "in-domain"))
    return [target, default_references(target), *domains]


def write(target: Path, weights: Path, n: int, seed: int, format: str | None) -> None:
    lists = generate_nbest(n, seed)
    texts = (lists.nbest(), lists.ref(), weights_text(OUT_OF_DOMAIN), weights_text(IN_DOMAIN))
    for file, text in zip(paths(target, weights), texts, strict=True):
        write_packed(file, [text])


def write_source(source: Any) -> None:
    for path, size, seed in zip((source.train[0], source.dev, source.test), _PARTS, (1, 2, 3), strict=True):
        if path:
            lists = generate_nbest(size, seed)
            write_packed(Path(path), [lists.nbest()])
            write_packed(default_references(path), [lists.ref()])
    for name, path in source.bounds.items():
        write_packed(Path(path), [weights_text(OUT_OF_DOMAIN if "out" in name else IN_DOMAIN)])
    if "init" in source.options:
        write_packed(Path(source.options["init"]), [weights_text(OUT_OF_DOMAIN)])
