"""README's first command, as a user would run it: raw text made of CoNLL-2002's (or CoNLL-2000's) words, `sparsezo
serve chunking --inputs raw.txt --tags ...` with its defaults, and somebody who answers by the correct spans, over HTTP.
Then `sparsezo predict` of unseen raw text, and the F1 of its spans, by characters.

    python benchmarks/names.py DATA [--corpus es|en] [--answers 50,400] [--seeds 3] [-- --clusters none]
    python benchmarks/names.py DATA --rival [--minutes 48,240]

The rival: whole sentences of the same texts, labelled from nothing, the least sure first, with the same features.
Minutes are by one clock for both, in the form that literature fitted to people who marked names: 2.4 s for a sentence,
0.12 s a word and 4.7 s a span that is marked or set right; an answer that is one key takes 1.5 s.

Needs CoNLL-2002 (esp.train.gz, esp.testa.gz) or CoNLL-2000 and sparsezo[serve,clusters].
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowd import served
from segmentation import BRACKETS, glued

if TYPE_CHECKING:
    from sparsezo.serve.client import RemoteLearner

CORPORA = {
    "es": ("conll2002/esp.train.gz", "conll2002/esp.testa.gz", "PER,LOC,ORG"),
    "en": ("conll2000/train.txt.gz", "conll2000/test.txt.gz", "NP"),
}
SENTENCES = 10  # of a document: one line of raw text
SENTENCE, WORD, MARKED, KEY = 2.4, 0.12, 4.7, 1.5  # seconds

Span = tuple[int, int, str]


def sentences_of(path: Path) -> list[list[tuple[str, str]]]:
    """(word, tag) of each token, sentence by sentence."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = file.read().split("\n\n")
    rows = [[line.split() for line in block.split("\n") if line.strip()] for block in blocks]
    return [[(BRACKETS.get(row[0], row[0]), row[-1]) for row in block] for block in rows if block]


def pasted(sentences: list[list[tuple[str, str]]], types: set[str]) -> tuple[str, list[Span]]:
    """Words put together as one would type them, and where the spans of these types stand then."""
    text, spans = "", []
    for sentence in sentences:
        text += " " if text else ""
        stick, open_span = True, None
        for (token, after, before), (_, tag) in zip(glued([word for word, _ in sentence]), sentence, strict=True):
            shown = {"``": '"', "''": '"', "`": "'"}.get(token, token)
            if not (stick or after):
                text += " "
            start = len(text)
            text += shown
            stick = before
            kind = tag[2:] if tag[2:] in types else None
            if kind is None:
                open_span = None
            elif open_span is not None and tag[0] == "I" and open_span[2] == kind:
                open_span[1] = len(text)
            else:
                open_span = [start, len(text), kind]
                spans.append(open_span)
    return text, [(start, end, kind) for start, end, kind in spans]


def documents(path: Path, types: set[str]) -> list[tuple[str, list[Span]]]:
    found = sentences_of(path)
    return [pasted(found[k : k + SENTENCES], types) for k in range(0, len(found), SENTENCES)]


class Reader:
    """Somebody who reads a document and knows the correct spans."""

    def __init__(self, gold: list[tuple[str, list[Span]]]) -> None:
        self.gold = {str(number): spans for number, (_, spans) in enumerate(gold, start=1)}  # by the line's number
        self.corrections = 0
        self.seconds = 0.0

    def answer(self, question: dict[str, Any], learner: RemoteLearner) -> Any:
        """And how long it takes: a reading, and what is set by hand, or one key."""
        from sparsezo.serve.client import review

        shown, corrections = question["shown"], []
        places, at = [], shown["where"]["start"]
        for word, gap in zip(shown["words"], shown["gaps"], strict=True):
            places.append((at, at + len(word)))
            at += len(word) + len(gap)
        spans = sorted(self.gold[shown["where"]["document"]])
        self.seconds += SENTENCE + WORD * len(places)
        if question["kind"] == "review":
            right = [self._marked(span, places) for span in spans if span[0] < at and span[1] > shown["where"]["start"]]

            def decode(fixed: list[dict[str, Any]]) -> Any:
                corrections.append(fixed)
                return learner.decode(question, fixed)

            said = review(question, right, decode)
            self.seconds += MARKED * len(corrections)
            self.corrections += len(corrections)
            return said
        self.seconds += KEY
        first, last = shown["first"], shown["last"]
        begin, end = places[first][0], places[last][1]
        found = next((span for span in spans if span[0] < end and span[1] > begin), None)
        if found is None:
            return "O"
        if question["kind"] == "label":
            return ("B-" if begin <= found[0] < end else "I-") + found[2]
        marked = self._marked(found, places)
        if (marked["first"], marked["last"]) == (first, last):
            return "yes" if shown["tag"][2:] == found[2] else found[2]
        self.seconds += MARKED - KEY
        return marked

    def _marked(self, span: Span, places: list[tuple[int, int]]) -> dict[str, Any]:
        """A span of characters by its words."""
        inside = [k for k, (a, b) in enumerate(places) if a < span[1] and b > span[0]]
        return {"first": inside[0], "last": inside[-1], "label": span[2]}


def f1(predicted: Path, gold: list[tuple[str, list[Span]]]) -> float:
    found, right = set(), set()
    for number, (_, spans) in enumerate(gold, start=1):
        right |= {(str(number), *span) for span in spans}
    for line in predicted.read_text("utf-8").splitlines():
        document = json.loads(line)
        text = gold[int(document["id"]) - 1][0]
        if document["text"] != text:
            raise SystemExit(f"document {document['id']} came back as another text")
        found |= {(document["id"], each["start"], each["end"], each["label"]) for each in document["spans"]}
    return 2 * len(found & right) / max(1, len(found) + len(right))


def run(args: argparse.Namespace, seed: int) -> dict[str, Any]:
    train, test, tags = CORPORA[args.corpus]
    types = {each.partition("=")[0] for each in (args.tags or tags).split(",")}
    pool, unseen = (documents(Path(args.data) / name, types) for name in (train, test))
    reader, out, minutes = Reader(pool), {}, {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name, texts in (("raw.txt", pool), ("unseen.txt", unseen)):
            (place / name).write_text("".join(text + "\n" for text, _ in texts), "utf-8")
        looks = sorted(int(each) for each in args.answers.split(","))
        about = ["--inputs", str(place / "raw.txt"), "--tags", args.tags or tags, "--log", str(place / "log")]
        given, began = 0, time.perf_counter()
        for look in looks:
            with served(*about, "--port", "0", "--seed", str(seed), *args.more) as (_, links, _admin):
                from sparsezo.serve.client import RemoteLearner

                link = next(iter(links), None) or links[0]
                with RemoteLearner(link) as learner:
                    while given < look:
                        question = learner.ask()
                        learner.tell(question, reader.answer(question, learner))
                        given += 1
            about = ["--log", str(place / "log"), "--person", "person-1"]
            model = place / f"{look}.szo"
            for command in (
                ["replay", str(place / "log"), "-o", str(model)],
                ["predict", str(model), str(place / "unseen.txt"), "-o", str(place / "out.jsonl")],
            ):
                subprocess.run([sys.executable, "-m", "sparsezo", *command], check=True, stderr=subprocess.DEVNULL)
            out[look] = round(f1(place / "out.jsonl", unseen), 4)
            minutes[look] = round(reader.seconds / 60)
    print(
        f"seed {seed}: {out}, minutes {minutes}, {reader.corrections} corrections, {time.perf_counter() - began:.0f} s",
        flush=True,
    )
    return out


def rival(args: argparse.Namespace, seed: int) -> dict[str, Any]:
    """F1 after so many minutes of labelling whole sentences, the least sure first, from twenty at random."""
    import numpy as np

    from sparsezo.learner import Learner, confidence, predict
    from sparsezo.settings import Settings
    from sparsezo.tasks.chunking.features.columns import chosen_columns
    from sparsezo.tasks.chunking.io.documents import Document
    from sparsezo.tasks.chunking.io.documents import Span as Labelled
    from sparsezo.tasks.chunking.io.raw import corpus_of
    from sparsezo.tasks.chunking.task import Chunking

    train, test, tags = CORPORA[args.corpus]
    types = {each.partition("=")[0] for each in (args.tags or tags).split(",")}
    read = [
        corpus_of(
            [Document(text, spans=tuple(Labelled(*span) for span in spans)) for text, spans in documents(path, types)],
            str(path),
            labelled=True,
            cuts=cuts,
        )
        for path, cuts in ((Path(args.data) / train, True), (Path(args.data) / test, False))
    ]
    columns = chosen_columns(read[0], args.clusters, None)
    task, pool = Chunking.fit(read[0], tags=args.tags or tags, split="sentences", columns=columns)
    problem, held = task.problem(pool), task.problem(read[1], learn=False)
    begins = np.array([tag[0] == "B" for tag in pool.tags or []])
    counts = np.add.reduceat(begins, pool.offsets[:-1])
    seconds = SENTENCE + WORD * np.diff(pool.offsets) + MARKED * counts
    chosen = np.random.default_rng(seed).permutation(len(pool))[:20]
    settings = Settings.complete({"rule": "supervised", "step": "adagrad", "seed": seed}, task.defaults)
    out: dict[str, float] = {}
    for limit in sorted(float(each) * 60 for each in args.minutes.split(",")):
        while True:
            some = pool.take(chosen)
            learner = Learner(task.problem(some), settings)
            learner.run(task.known(some), 15 * len(chosen))
            spent = seconds[chosen].sum()
            if spent >= 0.98 * limit:
                break
            sure = confidence(problem, learner.weights())
            sure[chosen] = np.inf
            order = np.argsort(sure)
            more = min(limit - spent, max(spent, 300))  # twice as many each time
            chosen = np.concatenate([chosen, order[: max(1, int(np.searchsorted(seconds[order].cumsum(), more)))]])
        found = task.quality(held, task.gold(read[1]), predict(held, learner.weights()))
        out[f"{limit / 60:g}"] = round(found, 4)
    print(f"seed {seed}: {out} after these minutes, {len(chosen)} sentences", flush=True)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--corpus", choices=CORPORA, default="es")
    parser.add_argument("--tags")
    parser.add_argument("--answers", default="50,100,200,400")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rival", action="store_true")
    parser.add_argument("--minutes", default="48,240", help="of the rival")
    parser.add_argument("--clusters", default="auto", help="of the rival")
    ours, _, more = " ".join(sys.argv[1:]).partition(" -- ")  # options of serve stand behind --
    args = parser.parse_args(ours.split())
    args.more = more.split()
    found = [(rival if args.rival else run)(args, seed) for seed in range(args.seeds)]
    means = {look: round(statistics.mean(each[look] for each in found), 3) for look in found[0]}
    print(f"mean of {args.seeds}: {means}")


if __name__ == "__main__":
    main()
