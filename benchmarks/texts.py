"""A person who makes no mistakes teaches `sparsezo serve text` classes of raw texts, over HTTP: how many documents of a
test file are right after so many answers, with words' vectors and without. Needs sparsezo[text,serve,vectors] and files
of labelled documents (label TAB text), such as 20 Newsgroups in four classes.

    python benchmarks/texts.py 20news4.train.tsv.gz 20news4.test.tsv.gz --seeds 3 -o texts.json
    python benchmarks/texts.py 20news4.train.tsv.gz 20news4.test.tsv.gz --words 12      # the first 12 words of each
    python benchmarks/texts.py train.tsv test.tsv --options "--rule part"               # anything that serve text takes
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from crowd import served

LOOKS = (100, 300, 1000)  # answers


def taught(args: argparse.Namespace, vectors: str, seed: int) -> dict[int, float]:
    """Accuracy on the test file after so many answers."""
    from sparsezo.serve.client import RemoteLearner
    from sparsezo.tasks.text.io.documents import read_documents

    train, test = (cut(read_documents(path), args.words) for path in (args.train, args.test))
    classes = sorted({label for label, _ in train})
    gold = {" ".join(text.split()): label for label, text in train}
    right = [label for label, _ in test]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "raw.txt").write_text("".join(f"{text}\n" for _, text in train))
        (place / "test.txt").write_text("".join(f"{text}\n" for _, text in test))
        about = ["--inputs", str(place / "raw.txt"), "--classes", ",".join(classes), "--log", str(place / "log")]
        more = ["--vectors", vectors, "--seed", str(seed), *shlex.split(args.options)]
        with served(*about, "--port", "0", *more, task="text") as (_, links, admin), RemoteLearner(links[0]) as learner:
            given = 0
            for n in args.answers:
                for _ in range(n - given):
                    question = learner.ask()
                    learner.tell(question, answer(question, gold))
                given = n
                (place / "model.szo").write_bytes(exported(admin))
                said = predicted(place)
                found[n] = sum(map(str.__eq__, said, right)) / len(right)
    return found


def exported(admin: str) -> bytes:
    """The present model."""
    url, _, token = admin.partition("/admin#")
    request = urllib.request.Request(f"{url}/api/admin/export/model", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request) as reply:
        return bytes(reply.read())


def predicted(place: Path) -> list[str]:
    """The classes of the test texts, by the command."""
    words = "-m sparsezo predict model.szo test.txt --labels-only --format text"
    command = [sys.executable, *words.split()]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=place).stdout.splitlines()


def cut(documents: Any, words: int | None) -> list[tuple[str, str]]:
    """Label and text, or its first words."""
    texts = (" ".join(text.split()[:words]) for text in documents.texts)
    return [(label, text) for label, text in zip(documents.labels, texts, strict=True) if text]


def answer(question: dict[str, Any], gold: dict[str, str]) -> str:
    label = gold[" ".join(question["shown"]["document"].split())]
    if question["kind"] == "part":
        return "yes" if question["shown"]["class"] == label else "no"
    return label


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--vectors", nargs="+", default=["none", "auto"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--answers", type=int, nargs="+", default=LOOKS)
    parser.add_argument("--words", type=int, help="of each document, the first so many")
    parser.add_argument("--options", default="", help="more options of serve text")
    parser.add_argument("-o", "--output", help="where the figures go, as JSON")
    args = parser.parse_args()
    table: dict[str, list[dict[int, float]]] = {}
    for vectors in args.vectors:
        for seed in range(args.seeds):
            table.setdefault(vectors, []).append(taught(args, vectors, seed))
            print(vectors, "seed", seed, *(f"{n}: {value:.4f}" for n, value in table[vectors][-1].items()), flush=True)
    for vectors, runs in table.items():
        print(f"{vectors:>12}", *(f"{sum(run[n] for run in runs) / len(runs):.3f}" for n in args.answers))
    if args.output:
        Path(args.output).write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
