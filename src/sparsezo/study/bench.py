"""bench: what a step costs, beside a yardstick that runs in turns with it, so that a ratio means something.

    fields = BENCHES["chunking"][0](folder_of_data, rounds=5)     # (measure, table) of chunking, text and rerank
    print(BENCHES["chunking"][1](fields))

chunking    microseconds a step, beside what merely drawing the active weights' normals costs NumPy; from cold and after
            learning for a while, as a step that moves no weight is cheaper; then a question and its answer
text        examples a second on documents of RCV1's shape, beside Vowpal Wabbit's ``--cbify 4`` on the same ones: from
            its own cache file, its start-up taken off (pip install vowpalwabbit; without it only ours runs)
rerank      a step on long n-best lists, beside one NumPy ``features @ w`` on the same lists
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from llvmlite import binding
from numba.core import config
from numpy.typing import NDArray
from rich.console import Group
from rich.table import Table

from sparsezo import messages
from sparsezo.kernels import answering, loop, random
from sparsezo.kernels.inputs.dense import dense_inputs
from sparsezo.learner import Learner
from sparsezo.query_learner import QueryLearner
from sparsezo.questions import Answer, Question, answer_name
from sparsezo.settings import Settings
from sparsezo.study.wabbit import COMMAND, installed
from sparsezo.tasks.base import Json, Problem
from sparsezo.tasks.chunking.io.conll import Corpus, read_conll
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.rerank.io.importing import import_nbest
from sparsezo.tasks.rerank.kernels.task import RankGold, rank_task
from sparsezo.tasks.text.synthetic import GeneratedText, generate_text
from sparsezo.tasks.text.task import TextClassification

Work = dict[str, Callable[[], float]]  # by name: seconds that it took


def seconds(work: Callable[[], object]) -> float:
    """How long ``work`` takes on the wall."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def best_of(rounds: int, work: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """The smallest time of each piece of work; all take turns, round after round."""
    best = dict.fromkeys(work, np.inf)
    for number in range(rounds):
        messages.say(f"round {number + 1} of {rounds}")
        for name, timed in work.items():
            best[name] = min(best[name], timed())
    return best


def vector_bits() -> int:
    """Of the widest vectors that code is compiled for here: the CPU's own, or by NUMBA_CPU_FEATURES.

    NUMBA_CPU_NAME alone leaves the CPU's own features on.
    """
    given = config.CPU_FEATURES
    features = binding.get_host_cpu_features().flatten() if given is None else given
    return 512 if "+avx512f" in features else 256 if "+avx" in features else 128


def a_step(learner: Learner, gold: object, steps: int) -> Callable[[], float]:
    return lambda: seconds(lambda: learner.run(gold, steps)) / steps


def table(
    first: str, rows: Json, columns: Mapping[str, tuple[str, str]], title: str | None = None, caption: str | None = None
) -> Table:
    """``columns``: what each is called -> (its key in a row, how it is written)."""
    out = Table(title=title, caption=caption)
    out.add_column(first, justify="left" if first == "learner" else "right")
    for column in columns:
        out.add_column(column, justify="right")
    for name, row in rows.items():
        cells = [(row[key], how) for key, how in columns.values()]
        out.add_row(name, *("-" if value is None else format(value, how) for value, how in cells))
    return out


# chunking

_COLD, _WARM, _TIMED = 20_000, 500_000, 20_000  # steps
_LITERAL = 5  # steps of literal ALL a round
_SENTENCES = 4_000  # where there is no real data
CHUNKING = {
    "two-point active": Settings("two-point", "active", 0.001, 0.1),
    "two-point score": Settings("two-point", "score", 0.001, 0.1),
    "two-point score annealed": Settings("two-point", "score", 0.001, 0.1, criterion="annealed"),
    "first-order": Settings("first-order", None, 0.01, None),
    "two-point all": Settings("two-point", "all", 0.001, 0.1),
    "comparison active": Settings("comparison", "active", 0.001, 0.1),
    "symmetric score adagrad": Settings("symmetric", "score", 0.05, 0.2, step="adagrad"),
    "supervised": Settings("supervised", None, 0.01, None),
}
ASKING = Settings("part", None, 0.2, None, step="adagrad")


def _measure_chunking(data: Path | None, rounds: int) -> Json:
    corpus, name = bench_corpus(data)
    task, corpus = Chunking.fit(corpus, only="NP")
    problem, gold = task.problem(corpus, risk=True), task.gold(corpus)
    learners: dict[str, Learner] = {}
    cold: dict[str, float] = {}
    for title, settings in CHUNKING.items():
        messages.say(f"{title}: learning for {_WARM:,} steps")
        learner = learners[title] = Learner(problem, settings)
        learner.run(gold, 0)  # compiles, the first time on a machine
        cold[title] = a_step(learner, gold, _COLD)()
        learner.run(gold, _WARM)
    literal = _LiteralAll(problem, gold)
    work: Work = {"numpy": _numpy_draws(problem)}
    work |= {title: a_step(learner, gold, _TIMED) for title, learner in learners.items()}
    work["two-point all, literal"] = lambda: seconds(lambda: literal.run(_LITERAL)) / _LITERAL
    before = {title: learner.updates for title, learner in learners.items()}
    best = best_of(rounds, work)
    moved = {title: (learner.updates - before[title]) / (rounds * _TIMED) for title, learner in learners.items()}
    rows = {
        title: {
            "us": 1e6 * best[title],
            "ratio": best[title] / best["numpy"],
            "us_cold": 1e6 * cold[title] if title in cold else None,
            "update_fraction": moved.get(title),
        }
        for title in work
        if title != "numpy"
    }
    return {
        "bench": "chunking",
        "vector_bits": vector_bits(),
        "data": name,
        "n": problem.n_features * problem.n_labels,
        "n_active": float(problem.n_active.mean()),
        "n_score": float(problem.n_score.mean()),
        "numpy_us": 1e6 * best["numpy"],
        "learners": rows,
        "answers": measure_answers(task.problem(corpus, asks=True), gold, ASKING, rounds),
    }


def bench_corpus(data: Path | None) -> tuple[Corpus, str]:
    """The real one where it is, or a generated one: what it is, too."""
    if data is not None and (data / "conll2000" / "train.txt.gz").exists():
        return read_conll(data / "conll2000" / "train.txt.gz")[1000:], "CoNLL-2000, the paper's training split"
    return chunking_corpus(_SENTENCES, seed=1), f"generated, {_SENTENCES:,} sentences"


def _numpy_draws(problem: Problem, draws: int = 2000) -> Callable[[], float]:
    """Seconds that NumPy takes to draw n_bar(x) float32 normals, over the inputs of the first steps of seed 0."""
    generator = np.random.default_rng(0)
    key = random.stream_key(0, random.INPUTS)
    sizes = [int(problem.n_active[random.below(key, step, len(problem))]) for step in range(draws)]

    def draw() -> None:
        for size in sizes:
            generator.standard_normal(size, dtype=np.float32)

    return lambda: seconds(draw) / draws


class _LiteralAll:
    """The paper's ALL word for word: u has all n weights, and every weight moves."""

    def __init__(self, problem: Problem, gold: object) -> None:
        self.learner = Learner(problem, Settings("two-point", "active", 0.001, 0.1))
        self.problem, self.gold = problem, gold
        self.generator = np.random.default_rng(0)
        self.W: NDArray[np.float32] = self.learner.state.W

    def run(self, steps: int) -> None:
        h, mu = 0.001, 0.1
        for _ in range(steps):
            x = self.learner.next_input()
            u = self.generator.standard_normal(self.W.shape, dtype=np.float32)
            losses = []
            for W in (self.W, self.W + np.float32(mu) * u):
                out = np.empty(int(self.problem.output_start[-1]), np.int32)
                args = (W, self.learner.workspace.S, self.learner.workspace.y, x, x + 1, self.problem.output_start, out)
                loop.decode_all(self.problem.inputs, self.problem.task, *args)
                begin, end = self.problem.output_start[x : x + 2]
                losses.append(loop.loss(self.gold, self.problem.task, x, out[begin:end]))
            self.W += np.float32(-h * (losses[1] - losses[0]) / mu) * u
            self.learner.state.counts[loop.ASKED] += 1


def _chunking_table(fields: Json) -> Group:
    title = (
        f"{fields['bench']}: {fields['data']}; n {fields['n']:,}, active {fields['n_active']:,.0f}, "
        f"scores {fields['n_score']:,.0f}"
    )
    caption = (
        f"ratio: to the {fields['numpy_us']:.1f} us that NumPy takes to draw an input's active normals; "
        f"vectors of {fields['vector_bits']} bits"
    )
    columns = {
        "us a step": ("us", ",.2f"),
        "ratio": ("ratio", ",.3f"),
        "us from cold": ("us_cold", ".2f"),
        "steps that move": ("update_fraction", ".1%"),
    }
    return Group(
        table("learner", fields["learners"], columns, title, caption),
        answers_table(fields["answers"]),
    )


# chunking, learning from answers: choosing a question and learning from its answer, from cold to well trained. Of each
# question the shortest of some rounds counts, each from a copy of the same learner, in the processor's time.

_STAGES = (0, 5_000, 50_000)  # answers
_QUESTIONS = 500  # that are timed at each


def measure_answers(problem: Problem, gold: object, settings: Settings, rounds: int) -> Json:
    """problem: made for rules that ask. A model that is sure of most sentences looks at more of them for a question."""
    learner, run_seconds, stages = QueryLearner(problem, settings), 0.0, {}
    learner.run(gold, 0)  # compiles, the first time on a machine
    _timed(QueryLearner(problem, settings), gold, 1)  # likewise
    for stage in _STAGES:
        messages.say(f"{settings.rule}: learning from {stage:,} answers")
        began = time.thread_time()
        learner.run(gold, answers=stage)
        run_seconds += time.thread_time() - began
        raw = learner.to_bytes()
        copies = [QueryLearner.from_bytes(raw, problem) for _ in range(rounds)]
        best = np.min([_timed(copy, gold, _QUESTIONS) for copy in copies], axis=0)
        looks = (copies[0].step - learner.step) / _QUESTIONS
        stages[str(stage)] = {"ms": 1e3 * best.mean(), "ms_worst": 1e3 * best.max(), "looks": looks}
    return {"settings": str(settings), "stages": stages, "answers": _STAGES[-1], "run_seconds": run_seconds}


def _timed(learner: QueryLearner, gold: object, questions: int) -> list[float]:
    """Seconds that asking and telling took, question by question."""
    took = []
    for _ in range(questions):
        began = time.thread_time()
        question = learner.ask()
        asked = time.thread_time() - began
        said = _simulated(learner, gold, question)
        began = time.thread_time()
        learner.tell(question, said)
        took.append(asked + time.thread_time() - began)
    return took


def _simulated(learner: QueryLearner, gold: object, question: Question) -> Answer:
    """What somebody who knows says."""
    work, params = learner.workspace, learner.settings.step_params()
    work.q[:] = question.numbers
    for room, output in zip((work.y, work.incumbent), question.outputs, strict=False):
        room[: output.size] = output
    return answer_name(question, answering.truth(gold, learner.problem.task, params, question.x, work))


def answers_table(fields: Json) -> Table:
    title = f"a question and its answer: {fields['settings']}"
    caption = f"{fields['answers']:,} simulated answers in {fields['run_seconds']:.1f} s"
    rows = {f"{int(stage):,}": row for stage, row in fields["stages"].items()}
    columns = {"ms": ("ms", ".3f"), "worst ms": ("ms_worst", ".3f"), "inputs looked at": ("looks", ".1f")}
    return table("after so many answers", rows, columns, title, caption)


# text

_DOCUMENTS = 200_000
_TEXT = {
    "two-point score": Settings("two-point", "score", 0.1, 1.0),
    "two-point active": Settings("two-point", "active", 0.1, 1.0),
    "symmetric score adagrad": Settings("symmetric", "score", 0.3, 1.0, step="adagrad"),
    "first-order": Settings("first-order", None, 1.0, None),
}


def _measure_text(_data: Path | None, rounds: int) -> Json:
    messages.say(f"generating {_DOCUMENTS:,} documents")
    generated = generate_text(_DOCUMENTS, seed=1)
    task, prepared = TextClassification.fit(generated.documents())
    problem, gold = task.problem(prepared), task.gold(prepared)
    losses: dict[str, float] = {}

    def one_pass(title: str) -> Callable[[], float]:
        def timed() -> float:
            learner = Learner(problem, _TEXT[title])  # from cold, as Vowpal Wabbit
            learner.run(gold, 0)
            took = seconds(lambda: learner.run(gold, _DOCUMENTS))
            losses[title] = learner.average_loss
            return took

        return timed

    work: Work = {title: one_pass(title) for title in _TEXT}
    with tempfile.TemporaryDirectory() as folder:
        if installed():
            messages.say("writing Vowpal Wabbit's cache")
            cache = _wabbit_cache(generated, Path(folder))
            work["vw --cbify 4"] = lambda: seconds(lambda: _wabbit(cache, "--quiet"))
            work["vw start-up"] = lambda: seconds(lambda: subprocess.run([*COMMAND, "--version"], capture_output=True))
        with _on_one_core():  # Vowpal Wabbit reads in a thread of its own, and starts as a process of ours
            best = best_of(rounds, work)
        if "vw --cbify 4" in work:
            best["vw --cbify 4"] -= best.pop("vw start-up")
            found = re.search(r"average loss = ([\d.]+)", _wabbit(cache))
            losses["vw --cbify 4"] = float(found.group(1)) if found else np.nan
    yardstick = best.get("vw --cbify 4")
    rows = {
        title: {
            "examples_per_second": _DOCUMENTS / took,
            "us": 1e6 * took / _DOCUMENTS,
            "times_vw": yardstick / took if yardstick else None,
            "average_loss": losses[title],
        }
        for title, took in best.items()
    }
    words = float(problem.n_active.mean() / problem.n_labels)
    return {
        "bench": "text",
        "vector_bits": vector_bits(),
        "documents": _DOCUMENTS,
        "words": words,
        "n": task.n_features * 4,
        "learners": rows,
    }


@contextmanager
def _on_one_core() -> Iterator[None]:
    """This thread and the processes that it starts, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _wabbit_cache(generated: GeneratedText, folder: Path) -> Path:
    vectors, cache = generated.vectors, folder / "vw.cache"
    pairs = np.char.add(np.char.add(vectors.indices.astype(str), ":"), vectors.data.astype(str)).tolist()
    with open(folder / "vw.txt", "w") as stream:
        for label, begin, end in zip(generated.labels, vectors.indptr[:-1], vectors.indptr[1:], strict=True):
            stream.write(f"{label + 1} | {' '.join(pairs[begin:end])}\n")
    _wabbit(cache, "--quiet")
    return cache


def _wabbit(cache: Path, *options: str) -> str:
    learns = ["--cbify", "4", "-b", "20", "--cache_file", str(cache), "-d", str(cache.with_suffix(".txt"))]
    done = subprocess.run([*COMMAND, *learns, *options], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def _text_table(fields: Json) -> Table:
    title = f"text: {fields['documents']:,} generated documents, {fields['words']:.0f} words, one pass from cold"
    caption = f"vectors of {fields['vector_bits']} bits"
    columns = {
        "examples/s": ("examples_per_second", ",.0f"),
        "us each": ("us", ".3f"),
        "times vw": ("times_vw", ".2f"),
        "average loss": ("average_loss", ".4f"),
    }
    return table("learner", fields["learners"], columns, title, caption)


# rerank

_STEPS = 240
_LISTS = (60, 5000, 14)  # lists, candidates, features, where there is no real data
_RERANK = {
    "two-point active": Settings("two-point", "active", 1e-4, 1e-2),
    "two-point score": Settings("two-point", "score", 1e-4, 1e-2),
    "first-order": Settings("first-order", None, 1e-3, None),
}


def _measure_rerank(data: Path | None, rounds: int) -> Json:
    problem, gold, name = _lists(data)
    key = random.stream_key(0, random.INPUTS)
    features, offsets = problem.inputs.features, problem.inputs.offsets
    lists = [features[offsets[x] : offsets[x + 1]] for x in range(len(problem))]
    seen = [lists[random.below(key, step, len(problem))] for step in range(_STEPS)]
    w = np.random.default_rng(0).standard_normal(features.shape[1]).astype(np.float32)

    def numpy_scores() -> None:
        for C in seen:
            C @ w

    work: Work = {"numpy": lambda: seconds(numpy_scores) / _STEPS}
    for title, settings in _RERANK.items():
        learner = Learner(problem, settings)
        learner.run(gold, _STEPS)
        work[title] = a_step(learner, gold, _STEPS)
    best = best_of(10 * rounds, work)
    rows = {
        title: {"us": 1e6 * took, "ratio": took / best["numpy"]} for title, took in best.items() if title != "numpy"
    }
    return {
        "bench": "rerank",
        "vector_bits": vector_bits(),
        "data": name,
        "candidates": float(np.diff(offsets).mean()),
        "features": features.shape[1],
        "numpy_us": 1e6 * best["numpy"],
        "learners": rows,
    }


def _lists(data: Path | None) -> tuple[Problem, RankGold, str]:
    path = data / "smt" / "train.5000best.nbest.xz" if data else None
    if path is not None and path.exists():
        store = import_nbest(path)
        features, offsets = store.features, store.offsets
        losses, statistics, name = np.asarray(store.losses), np.asarray(store.statistics), path.name
    else:
        n, size, M = _LISTS
        generator = np.random.default_rng(1)
        features = generator.standard_normal((n * size, M), dtype=np.float32)
        offsets = np.arange(0, n * size + 1, size)
        losses, statistics = generator.random(n * size), np.zeros((n * size, 10), np.int16)
        name = f"{n} generated lists"
    inputs = dense_inputs(features, offsets)
    problem = Problem(
        inputs=inputs,
        task=rank_task(offsets),
        n_features=features.shape[1],
        n_labels=1,
        output_start=np.arange(offsets.size, dtype=np.int64),
        n_active=np.diff(inputs.col_start),
        max_rows=int(np.diff(offsets).max()),
        max_columns=features.shape[1],
        dtype=np.float64,
    )
    return problem, RankGold(offsets, losses, statistics), name


def _rerank_table(fields: Json) -> Table:
    messages.say(f"{fields['data']}: {fields['candidates']:,.0f} candidates a list, {fields['features']} features")
    caption = (
        f"ratio: to NumPy's {fields['numpy_us']:.1f} us for one features @ w on the same lists; "
        f"vectors of {fields['vector_bits']} bits"
    )
    columns = {"us a step": ("us", ".2f"), "ratio": ("ratio", ".3f")}
    return table("learner", fields["learners"], columns, caption=caption)


BENCHES: dict[str, tuple[Callable[[Path | None, int], Json], Callable[[Json], Table | Group]]] = {
    "chunking": (_measure_chunking, _chunking_table),
    "text": (_measure_text, _text_table),
    "rerank": (_measure_rerank, _rerank_table),
}
