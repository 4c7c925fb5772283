"""Every option of the tasks, in their order, with a value of its own, so that none can stand in for another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OPTIONS: dict[str, dict[str, Any]] = {
    "chunking": {
        "column": "2", "scheme": "iob1", "tags": "VP", "only": "VP", "order": 1, "features": "ner", "clusters": "es",
        "gazetteer": ["LOC=c", "PER=p"], "vectors": "m:f", "template": "tpl", "format": "columns", "split": "lines",
        "init_labels": "l", "min_count": 3, "hash_bits": 12,
    },
    "text": {
        "format": "csv", "text_column": "t", "label_column": "2", "topics": "q", "classes": "a,b", "raw_tf": True,
        "min_count": 3, "hash_bits": 12, "vectors": "v",
    },
    "rerank": {
        "init": "w", "train_ref": ["r1", "r2"], "dev_ref": ["r3"], "test_ref": ["r4"], "store": "s",
        "keep_segmentation": True,
    },
}  # fmt: skip


def typed(options: Mapping[str, Any]) -> str:
    words = []
    for name, value in options.items():
        for each in value if isinstance(value, list) else [value]:
            words.append(f"--{name.replace('_', '-')}" + ("" if each is True else f" {each}"))
    return " ".join(words)


def flags(command: Any) -> set[str]:
    """All long options of a command."""
    return {flag for param in command.params for flag in param.opts if flag.startswith("--")}
