"""A simulated crowd teaches `sparsezo serve`, over HTTP: how good the model gets, whether what it says of itself is
true, and how much traffic it stands. Needs CoNLL-2000 (train.txt.gz) and the extra serve (pip install '.[serve]').

    python benchmarks/crowd.py teach conll2000/train.txt.gz --answers 6000 -o cold.json
    python benchmarks/crowd.py teach conll2000/train.txt.gz --answers 6000 --warm 100 -o warm.json
    python benchmarks/crowd.py coverage conll2000/train.txt.gz --runs 100 -o coverage.json     # for all of RATERS
    python benchmarks/crowd.py coverage conll2000/train.txt.gz --raters 15-1 --runs 20 --answers 500 --audit-share 0.5
    python benchmarks/crowd.py load conll2000/train.txt.gz --people 50 --seconds 20 [--kills 10] [--rule part]
    python benchmarks/crowd.py draw cold-0.json cold-1.json cold-2.json warm-0.json ... -o crowd.png
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsezo.serve.client import RemoteLearner

ERRORS = (0.02, 0.05, 0.08, 0.10, 0.25)  # of five people: one answer in ten is wrong
RATERS = {  # how often each of five errs: (where the model is unsure, elsewhere)
    "exact": [(0.0, 0.0)] * 5,
    "10-2": [(0.10, 0.02)] * 5,
    "15-1": [(0.15, 0.01)] * 5,
    "one-rate": [(0.05, 0.05)] * 5,
    "own-rates": [(error, error) for error in ERRORS],
}
UNSURE = 0.9  # the model is unsure of what it gives less than this probability
DEV = 1000  # sentences at the start of the file, to watch the model by
LINK = re.compile(r"http://[\w.:\[\]]+/(admin)?#\S+")


class Gold:
    """The right tags of a sentence, known by its words."""

    def __init__(self, path: str) -> None:
        from sparsezo.tasks.chunking.io.conll import read_conll
        from sparsezo.tasks.chunking.tags import keep_only, understood

        corpus = keep_only(understood(read_conll(path))[1], "NP")
        self.words, self.speech = corpus.columns[0], corpus.columns[1]
        self.tags, self.offsets = corpus.tags or [], corpus.offsets.tolist()
        self.by_words = {
            tuple(self.words[a:b]): self.tags[a:b] for a, b in zip(self.offsets, self.offsets[1:], strict=False)
        }

    def write(self, path: Path, first: int, last: int | None, *, tagged: bool) -> Path:
        with path.open("w") as file:
            for a, b in list(zip(self.offsets, self.offsets[1:], strict=False))[first:last]:
                for i in range(a, b):
                    file.write(" ".join([self.words[i], self.speech[i], *([self.tags[i]] if tagged else [])]) + "\n")
                file.write("\n")
        return path

    def answer(
        self, question: dict[str, Any], error: float, generator: random.Random, learner: Any = None
    ) -> str | dict[str, Any]:
        """Of somebody who errs so often; of reviews, who takes so many for right without looking. Their corrections are
        decoded around by the service that ``learner`` talks to."""
        shown = question["shown"]
        tags = self.by_words[tuple(shown["words"])]
        if question["kind"] == "review":
            from sparsezo.serve.client import review
            from sparsezo.tasks.chunking.serving import SERVING

            spans = [{"first": a, "last": b - 1, "label": label} for a, b, label in SERVING.chunks_in(tags)]
            looks = generator.random() >= error
            return review(question, spans, lambda fixed: learner.decode(question, fixed)) if looks else "right"
        right = tags[shown["first"]]
        wrong = generator.random() < error
        if question["kind"] == "label":
            return generator.choice([each for each in question["choices"] if each != right]) if wrong else right
        return "yes" if (right == shown["tag"]) != wrong else "no"


@contextlib.contextmanager
def served(*arguments: str, task: str = "chunking") -> Iterator[tuple[subprocess.Popen[str], list[str], str]]:
    """(process, people's links, the admin's link)"""
    command = [sys.executable, "-m", "sparsezo", "serve", task, "--no-open", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
    links: list[str] = []
    admin = ""
    try:
        for line in process.stdout or ():
            if found := LINK.search(line):
                if found[1]:
                    admin = found[0]
                else:
                    links.append(found[0])
            if admin and links and not LINK.search(line):
                break
            if "Ctrl-C" in line:
                break
        if not links:
            raise SystemExit(f"serve did not start: {process.wait()}")
        threading.Thread(target=lambda: [None for _ in process.stdout or ()], daemon=True).start()
        yield process, links, admin
    finally:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
        process.kill()
        process.wait()


def teach(args: argparse.Namespace) -> dict[str, Any]:
    """Five people of different reliability, each in a thread, until there are so many answers."""
    from sparsezo.serve.client import RemoteLearner

    gold = Gold(args.train)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        inputs = gold.write(place / "raw.txt", DEV, None, tagged=False)
        dev = gold.write(place / "dev.txt", 0, DEV, tagged=True)
        more = []
        if args.warm:
            few = gold.write(place / "few.txt", DEV, DEV + args.warm, tagged=True)
            train = ["train", "chunking", "--train", str(few), "--rule", "supervised", "--iterations", "20k"]
            subprocess.run([sys.executable, "-m", "sparsezo", *train, "-o", str(place / "m.szo")], check=True)
            more = ["--model", str(place / "m.szo")]
        about = ["--inputs", str(inputs), "--dev", str(dev), "--log", str(place / "log"), "--seed", str(args.seed)]
        how = f"--tags NP --rule {args.rule} --port 0 --people {len(ERRORS)} --overlap 0.1 --audit 200"
        with served(*about, *how.split(), *more) as (_, links, admin):
            began = time.perf_counter()
            left = threading.Semaphore(args.answers)

            def answer(k: int) -> None:
                generator = random.Random(f"{args.seed} {k}")
                with RemoteLearner(links[k]) as learner:
                    while left.acquire(blocking=False):
                        question = learner.ask()
                        learner.tell(question, gold.answer(question, ERRORS[k], generator, learner))

            threads = [threading.Thread(target=answer, args=(k,)) for k in range(len(ERRORS))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            seconds = time.perf_counter() - began
            time.sleep(2)  # for the last look
            with RemoteLearner(links[0]) as learner:
                status = learner.status()
            with RemoteLearner(admin) as learner:
                known = learner._call("GET", "admin/people")["people"]
    found = {each["name"]: each for each in known}
    off = []
    for k, error in enumerate(ERRORS):
        about_k = found.get(f"person-{k + 1}", {})
        off += [about_k[name] - error for name in ("e0", "e1") if about_k.get(name) is not None]
    rmse = (sum(each * each for each in off) / len(off)) ** 0.5 if off else None
    return {
        "answers": status["answers"],
        "seconds": seconds,
        "curve": status["curve"],
        "dev_at": {n: at(status["curve"], n) for n in (1000, 2000, 4000, 6000) if n <= args.answers},
        "audit": status["audit"],
        "forecast": status["forecast"],
        "alpha": status.get("alpha"),
        "error_rates_rmse": rmse,
        "people": known,
    }


def at(curve: list[list[float]], answers: int) -> float | None:
    """The value at the last look at or before so many answers."""
    return next((point[1] for point in reversed(curve) if point[0] <= answers), None)


def coverage(args: argparse.Namespace) -> dict[str, Any]:
    """How often the audit's intervals hold the model's true accuracy and F1, at every tenth of the way, by raters."""
    from sparsezo.serve import query_strategy
    from sparsezo.tasks.loading import Files
    from sparsezo.tasks.registry import task_spec

    query_strategy.AUDIT_SHARE = args.audit_share
    gold = Gold(args.train)
    with tempfile.TemporaryDirectory(dir=args.scratch) as folder:
        # as many sentences that nobody is asked about, with the same features, say what the truth is
        sample = gold.write(Path(folder) / "sample.txt", DEV, DEV + 2 * args.sentences, tagged=True)
        loaded = task_spec("chunking").load(Files((str(sample),), None, None, {"only": "NP"}))
        found = {name: _covered(args, gold, loaded, Path(folder), name) for name in args.raters or RATERS}
    given = {name: getattr(args, name) for name in ("runs", "answers", "audit", "audit_whole", "audit_share")}
    return {**given, "sentences": args.sentences, "raters": found}


def _covered(args: argparse.Namespace, gold: Gold, loaded: Any, folder: Path, raters: str) -> dict[str, Any]:
    """Of raters of one kind. once, always: of the two intervals of accuracy; below, above: truths that the first has
    missed; f1: of so many looks (f1_looks), since there is none before a sentence is audited whole."""
    import numpy as np

    from sparsezo.serve.session import Session
    from sparsezo.settings import Settings
    from sparsezo.tasks.registry import task_spec

    task, data, unseen = loaded.task, loaded.data.train[: args.sentences], loaded.data.train[args.sentences :]
    truths = _Truths(task, unseen)
    names = ("once", "always", "below", "above", "f1", "f1_looks", "f1_below", "f1_above")
    held: dict[str, list[int]] = {name: [0] * 10 for name in names}
    errors, off = RATERS[raters], []
    for run in range(args.runs):
        settings = Settings.complete({"rule": "part", "seed": run, "rater_error": "0.05"}, task.defaults)
        generator, place = random.Random(f"{run} {raters}"), folder / f"{raters}-{run}"
        audits = {"audit": args.audit, "audit_whole": args.audit_whole}
        with Session(task_spec("chunking"), task, data, settings, place, **audits, overlap=0.1) as session:
            people = [session.person(session.add_person(f"p{k}")["token"]) for k in range(len(errors))]
            for n in range(1, args.answers + 1):
                k = generator.randrange(len(people))
                question = session.ask(people[k])[0]
                error = errors[k][0 if _unsure(session, question) else 1]
                session.tell(people[k], question["id"], gold.answer(question, error, generator))
                if n % (args.answers // 10):
                    continue
                session.estimate()
                accuracy, f1 = truths.of(session.model.weights()[1])
                audit, tenth = session.status()["audit"], n // (args.answers // 10) - 1
                held["once"][tenth] += audit["low"] <= accuracy <= audit["high"]
                held["below"][tenth] += accuracy < audit["low"]
                held["above"][tenth] += accuracy > audit["high"]
                held["always"][tenth] += audit["always_low"] <= accuracy <= audit["always_high"]
                if audit["spans"] is not None:
                    of = audit["spans"]["f1"]
                    held["f1_looks"][tenth] += 1
                    held["f1"][tenth] += of["low"] <= f1 <= of["high"]
                    held["f1_below"][tenth] += f1 < of["low"]
                    held["f1_above"][tenth] += f1 > of["high"]
            for k, each in enumerate(session.people()):
                off += [each[name] - errors[k][0] for name in ("e0", "e1") if each[name] is not None]
            last = audit
        subprocess.run(["rm", "-rf", str(place)], check=True)
        print(raters, run + 1, held["once"], held["f1"], held["f1_looks"], file=sys.stderr)
    rmse = float(np.sqrt(np.mean(np.square(off)))) if off else None
    return {"held": held, "error_rates_rmse": rmse, "last_audit": last, "last_truth": {"accuracy": accuracy, "f1": f1}}


def _unsure(session: Any, question: dict[str, Any]) -> bool:
    """Whether the model is unsure of what is in question: of its best label, or of yes and of no."""
    asked = session.queue.row(int(question["id"][1:])).question()
    choices = question["choices"]
    with session.lock:
        return bool(max(session.model.learner.probability(asked, each) for each in choices) < UNSURE)


class _Truths:
    """Accuracy and F1 of weights on sentences that nobody was asked about."""

    def __init__(self, task: Any, unseen: Any) -> None:
        from sparsezo.tasks.chunking.metric import chunks

        self.task, self.unseen, self.chunks = task, unseen, chunks
        self.problem = task.problem(unseen, learn=False)
        self.gold = set(chunks(unseen.tags, unseen.offsets))

    def of(self, W: Any) -> tuple[float, float]:
        """As people name tags: an I that starts a chunk is its B."""
        from sparsezo.learner import predict
        from sparsezo.tasks.chunking.tags import IOB2, spelled

        output = [self.task.tags[k] for k in predict(self.problem, W).tolist()]
        tags = spelled(output, self.unseen.offsets, IOB2)
        ours = set(self.chunks(tags, self.unseen.offsets))
        f1 = 2 * len(ours & self.gold) / max(1, len(ours) + len(self.gold))
        return sum(map(str.__eq__, tags, self.unseen.tags)) / len(tags), f1


class _Timed:
    """Notes how long decoding takes."""

    def __init__(self, learner: Any, took: list[float]) -> None:
        self.learner, self.took = learner, took

    def decode(self, question: dict[str, Any], fixed: list[dict[str, Any]]) -> Any:
        began = time.perf_counter()
        found = self.learner.decode(question, fixed)
        self.took.append(time.perf_counter() - began)
        return found


def _wait_for(learner: RemoteLearner, seconds: float = 120) -> None:
    """Until the service answers."""
    from sparsezo.serve.client import RemoteError

    end = time.perf_counter() + seconds
    while True:
        try:
            learner.status()
            return
        except RemoteError:
            if time.perf_counter() > end:
                raise
            time.sleep(0.2)


def load(args: argparse.Namespace) -> dict[str, Any]:
    """Many people at once; with ``kills`` the service is killed that often and started again."""
    from sparsezo.serve.client import RemoteError, RemoteLearner
    from sparsezo.serve.online_model import replay
    from sparsezo.serve.store import Store
    from sparsezo.storage.container import read_container

    gold = Gold(args.train)
    with tempfile.TemporaryDirectory(dir=args.scratch) as folder:
        place = Path(folder)
        inputs = gold.write(place / "raw.txt", DEV, None, tagged=False)
        about = ["--inputs", str(inputs), "--tags", "NP", "--rule", args.rule, "--log", str(place / "log")]
        about += ["--people", str(args.people)]
        with served(*about, "--port", "0") as (process, links, _):
            port = re.search(r":(\d+)/", links[0])[1]  # type: ignore[index]
            end = time.perf_counter() + args.seconds
            took: list[float] = []
            decoded: list[float] = []
            acknowledged: list[str] = []
            lost: list[str] = []

            def person(k: int) -> None:
                generator = random.Random(k)
                with RemoteLearner(links[k], timeout=60) as learner:
                    while time.perf_counter() < end:
                        try:
                            question = learner.ask()
                            time.sleep(generator.uniform(0.5, 1.5) * args.think)
                            answer = gold.answer(question, 0.1, generator, _Timed(learner, decoded))
                            began = time.perf_counter()
                            learner.tell(question, answer)
                            took.append(time.perf_counter() - began)
                            acknowledged.append(question["id"])
                        except RemoteError as error:
                            if error.status:
                                lost.append(str(error))
                            time.sleep(0.2)

            threads = [threading.Thread(target=person, args=(k,)) for k in range(args.people)]
            began = time.perf_counter()
            for thread in threads:
                thread.start()
            for _ in range(args.kills):
                time.sleep(args.seconds / (args.kills + 1))
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                again = [*(sys.executable, "-m", "sparsezo", "serve", "chunking", "--no-open"), *about[6:8]]
                process = subprocess.Popen([*again, "--port", port], stderr=subprocess.DEVNULL)
            for thread in threads:
                thread.join()
            seconds = time.perf_counter() - began
            with RemoteLearner(links[0], timeout=60) as learner:
                _wait_for(learner)  # one that is still starting would be stopped without a snapshot
            process.send_signal(signal.SIGINT)
            process.wait(60)
        store = Store(place / "log" / "log.sqlite")
        in_log = [f"q{event.question}" for event, _ in store.answers()]
        store.close()
        model = replay(place / "log", finish=False)
        newest = max((place / "log").glob("*.snapshot"))  # what the service had when it was stopped
        same = read_container(newest, "snapshot")[1]["W"].tobytes() == model.W.tobytes()
    took.sort()
    return {
        "answers": len(acknowledged),
        "per_second": len(acknowledged) / seconds,
        "p50_ms": 1e3 * took[len(took) // 2],
        "p99_ms": 1e3 * took[int(0.99 * len(took))],
        "decode_p50_ms": 1e3 * sorted(decoded)[len(decoded) // 2] if decoded else None,
        "decode_p99_ms": 1e3 * sorted(decoded)[int(0.99 * len(decoded))] if decoded else None,
        "lost": len(set(acknowledged) - set(in_log)),
        "doubled": len(in_log) - len(set(in_log)),
        "in_log_and_not_acknowledged": len(set(in_log) - set(acknowledged)),
        "refused": sorted(set(lost))[:5],
        "model_is_the_replayed_one": same,
    }


def draw(args: argparse.Namespace) -> dict[str, Any]:
    """What ``teach`` found: a line for files that differ in their last number alone, and from the lowest to the highest
    of them as a band."""
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.add_subplot()
    found: dict[str, list[list[list[float]]]] = {}
    for path in [args.train, *args.more]:
        curve = [point[:2] for point in json.loads(Path(path).read_text())["curve"] if point[0] >= 100]
        found.setdefault(re.sub(r"-?\d+$", "", Path(path).stem), []).append(curve)
    ends, most = {}, 0.0
    for (name, curves), style in zip(found.items(), ("-", "--", ":", "-."), strict=False):
        at = np.geomspace(max(c[0][0] for c in curves), min(c[-1][0] for c in curves), 60)
        values = np.array([np.interp(at, *zip(*curve, strict=True)) for curve in curves])
        seeds = f", {len(curves)} seeds" if len(curves) > 1 else ""
        (line,) = axes.plot(at, values.mean(axis=0), style, label=name + seeds)
        axes.fill_between(at, values.min(axis=0), values.max(axis=0), color=line.get_color(), alpha=0.25, linewidth=0)
        ends[name] = [float(at[-1]), *(float(each) for each in values[:, -1])]
        most = max(most, float(at[-1]))
    axes.set(xscale="log", xlabel="answers (log scale), one in ten wrong", ylabel="F1 on held-out sentences")
    axes.set_xticks([n for n in (100, 200, 500, 1000, 2000, 5000, 10000) if n <= most])
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(args.output, dpi=150)
    return ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, function in (("teach", teach), ("coverage", coverage), ("load", load), ("draw", draw)):
        command = commands.add_parser(name, help=function.__doc__)
        command.set_defaults(function=function)
        command.add_argument("train", metavar="FILE")
        if name == "draw":
            command.add_argument("more", nargs="*")
        command.add_argument("-o", "--output", type=Path)
        command.add_argument("--answers", type=int, default=6000 if name == "teach" else 1000)
        command.add_argument("--seed", type=int, default=0)
        command.add_argument("--warm", type=int, default=0, help="labelled sentences to start from")
        command.add_argument("--runs", type=int, default=100)
        command.add_argument("--rule", choices=("part", "review"), default="part" if name == "teach" else "review")
        command.add_argument("--audit", type=int, default=200)
        command.add_argument("--audit-whole", type=int, default=20)
        command.add_argument("--audit-share", type=float, default=0.05, help="of the questions")
        command.add_argument("--raters", nargs="*", choices=list(RATERS), help="all, if not given")
        command.add_argument("--sentences", type=int, default=2000)
        command.add_argument("--people", type=int, default=50)
        command.add_argument("--seconds", type=float, default=20)
        command.add_argument("--think", type=float, default=0.08, help="seconds that a person looks at a question")
        command.add_argument("--kills", type=int, default=0)
        command.add_argument("--scratch", help="a folder for what is written on the way")
    args = parser.parse_args()
    found = args.function(args)
    text = json.dumps(found, indent=1)
    if args.output and args.function is not draw:
        args.output.write_text(text + "\n")
    print(json.dumps({name: value for name, value in found.items() if name not in ("curve", "people")}, indent=1))


if __name__ == "__main__":
    main()
