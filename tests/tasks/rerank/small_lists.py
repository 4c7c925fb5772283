"""Small n-best lists for tests."""

from __future__ import annotations

from pathlib import Path

LISTS = [
    [("the cat sat on the mat", "A=1 B=2"), ("a cat", "B=0.5"), ("", "A=-1")],
    [("naïve dogs", "A=4 C=5")],
    [("the end", "D=1 A=2"), ("an end", "A=3 B=1")],
]
REFERENCES = ["the cat sat on the mat", "dogs", "the end ."]


def write(folder: Path, lists: list = LISTS, references: list[str] = REFERENCES, ids: list[int] | None = None) -> Path:
    numbers = ids if ids is not None else range(len(lists))
    rows = [
        f"{i} ||| {text} ||| {features} ||| 0\n"
        for i, nbest in zip(numbers, lists, strict=True)
        for text, features in nbest
    ]
    (folder / "x.nbest").write_text("".join(rows), encoding="utf-8")
    (folder / "x.ref").write_text("".join(line + "\n" for line in references), encoding="utf-8")
    return folder / "x.nbest"


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []
