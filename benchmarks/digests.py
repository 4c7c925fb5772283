"""Digests of what learners end at, over rule x perturbation x step x criterion x task x rater: the
same before and after a change that should not change a bit. Needs the real data.

    python benchmarks/digests.py DATA -o before.json
    python benchmarks/digests.py DATA --against before.json      # exit code 1 where one differs

Each is of the weights and the average loss of `sparsezo train` on the first inputs of a data set. Digests are of one
machine: another CPU, or another version of Numba or NumPy, may round otherwise.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import io
import itertools
import json
import lzma
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ZEROTH = ("two-point", "symmetric", "comparison", "preference", "baseline")
FIRST = ("first-order", "pairwise", "cross-entropy", "supervised")
ASKING = ("part", "label", "span", "pair", "rate")
STEPS = ("constant", "adagrad")


def settings(task: str) -> Iterator[list[str]]:
    """Options of train, one list a run."""
    for rule, perturb, step, criterion in itertools.product(
        ZEROTH, ("all", "active", "score"), STEPS, ("map", "annealed")
    ):
        if (perturb, step) != ("all", "adagrad"):
            yield ["--rule", rule, "--perturb", perturb, "--step", step, "--criterion", criterion]
    for rule, step in itertools.product(FIRST, STEPS):
        yield ["--rule", rule, "--step", step]
    yield ["--rule", "first-order", "--baseline"]
    yield ["--rule", "supervised", "--criterion", "annealed"]
    for rule in ASKING:
        if task == "chunking" or rule != "span":
            yield ["--rule", rule]
            yield ["--rule", rule, "--ask", "random"]
            yield ["--rule", rule, "--step", "constant"]
    if task == "chunking":
        yield ["--rule", "part", "--about", "chunk"]
        yield ["--rule", "label", "--about", "chunk"]
    yield ["--rule", "part", "--rater-error", "0.05,0.1", "--feedback", "flip:0.1"]
    yield ["--rule", "pair", "--rater-error", "0.1", "--feedback", "flip:0.1"]
    for rule, rater in itertools.product(("two-point", "baseline", "first-order"), ("binary", "rating:5,0.3,0.1")):
        yield ["--rule", rule, "--feedback", rater]
    for rule in ("comparison", "preference", "pairwise"):
        yield ["--rule", rule, "--feedback", "flip:0.2"]


def data(folder: Path, place: Path) -> dict[str, list[str]]:
    """The first inputs of each data set, as files; the options that name them."""
    with gzip.open(folder / "conll2000/train.txt.gz", "rt") as file:
        (place / "chunks.txt").write_text("\n\n".join(file.read().split("\n\n")[:150]) + "\n\n")
    with gzip.open(folder / "conll2002/esp.train.gz", "rt", encoding="latin-1") as file:
        (place / "names.txt").write_text("\n\n".join(file.read().split("\n\n")[:80]) + "\n\n")
    with gzip.open(folder / "text/20news4.train.tsv.gz", "rt") as file:
        (place / "texts.tsv").write_text("".join(file.readlines()[::40]))
    with lzma.open(folder / "smt/nc-devtest2007.nbest.xz", "rt") as file:
        kept = itertools.takewhile(lambda line: int(line.split(" ||| ", 1)[0]) < 60, file)
        (place / "lists.nbest").write_text("".join(kept))
    references = (folder / "smt/nc-devtest2007.ref").read_text().splitlines(keepends=True)
    (place / "lists.ref").write_text("".join(references[:60]))
    return {
        "chunking": ["--train", str(place / "chunks.txt"), "--only", "NP"],
        "chunking names": ["--train", str(place / "names.txt")],
        "text": ["--train", str(place / "texts.tsv")],
        "rerank": ["--train", str(place / "lists.nbest")],
    }


def digest(words: list[str], model: Path) -> str:
    """Of the weights that such a run ends at, and of its average loss; or what it said."""
    from sparsezo import load_model
    from sparsezo.cli import main

    sys.argv = ["sparsezo", *words, "-o", str(model), "--json"]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    if code:
        return f"exit {code}"
    loss = json.loads(out.getvalue().splitlines()[-1])["average_loss"]
    weights = load_model(model, words[1]).W
    model.unlink()
    return hashlib.blake2b(weights.tobytes() + repr(loss).encode(), digest_size=8).hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", default="", help="a task's name begins so")
    call = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as place:
        for name, files in data(call.data, Path(place)).items():
            if not name.startswith(call.only):
                continue
            task = name.split()[0]
            for options in settings(task):
                words = ["train", task, *files, *options, "--iterations", "600", "--seed", "7"]
                found[" ".join([name, *options])] = digest(words, Path(place) / "model.szo")
    if call.output:
        call.output.write_text(json.dumps(found, indent=1) + "\n")
    other = json.loads(call.against.read_text()) if call.against else found
    differ = [name for name in found if other.get(name) != found[name]]
    print(*differ, f"{len(found)} digests, {len(differ)} differ", sep="\n")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
