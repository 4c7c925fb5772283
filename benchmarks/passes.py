"""What going over a session's answers again brings (`train --from-answers`, `--passes`): F1 on test by passes.

    python benchmarks/passes.py conll2000/train.txt.gz conll2000/test.txt.gz --only NP --rule label --answers 1000
    python benchmarks/passes.py conll2002/esp.train.gz conll2002/esp.testb.gz --rule span --answers 500 --error 0

Simulated people name the right tag, or mark the right span, and err so often; each is believed to err in one of twenty.
"""

from __future__ import annotations

import argparse
import random
from typing import Any

from sparsezo.query_learner import QueryLearner
from sparsezo.questions import Question
from sparsezo.serve.answers import RecordedAnswer, learn
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.serving import SERVING
from sparsezo.tasks.chunking.tags import in_iob2
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import task_spec
from sparsezo.training import HeldOut

LOOKS = (1, 2, 3, 5, 7, 10, 20)
BELIEVED = (0.05, 0.05)


def answer_of(question: Question, tags: list[str], known: tuple[str, ...], error: float, chance: random.Random) -> Any:
    """Of somebody who errs so often; ``known``: all tags."""
    first, _, last, _ = question.numbers
    wrong = chance.random() < error
    if question.kind == "label":
        return chance.choice([tag for tag in known if tag != tags[first]]) if wrong else tags[first]
    found = [each for each in SERVING.chunks_in(tags) if each[0] <= last and each[1] > first]
    if wrong:
        return "O" if found else chance.choice(question.choices[:-1])
    return {"first": int(found[0][0]), "last": int(found[0][1]) - 1, "label": found[0][2]} if found else "O"


def answered(
    learner: QueryLearner, data: Any, tags: tuple[str, ...], n: int, error: float, seed: int
) -> list[RecordedAnswer]:
    """A session of so many answers, each learned from at once; what is settled is not asked about again."""
    chance, settled = random.Random(seed), set()
    lessons: list[RecordedAnswer] = []
    while len(lessons) < n:
        question = learner.ask()
        learner.let_go(question)
        first, _, last, _ = question.numbers
        if all((question.x, i) in settled for i in range(first, last + 1)):
            continue
        begin, end = data.offsets[question.x : question.x + 2].tolist()
        answer = answer_of(question, in_iob2(data.tags[begin:end]), tags, error, chance)
        last = answer["last"] if isinstance(answer, dict) else last
        settled |= {(question.x, i) for i in range(first, last + 1)}
        learner.learn_from(question, answer, error=BELIEVED)
        lessons.append(RecordedAnswer(question, answer, question.kind, BELIEVED))
    return lessons


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--only")
    parser.add_argument("--rule", choices=("label", "span"), default="span")
    parser.add_argument("--answers", type=int, default=500)
    parser.add_argument("--error", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chunking = task_spec("chunking")
    options = {} if given.only is None else {"only": given.only}
    loaded = chunking.load(Files((given.train,), None, given.test, options))
    task, data = loaded.task, loaded.data.train
    chosen = {"rule": given.rule, "rater_error": "0.05", "rehearse": 0, "seed": given.seed}
    settings = Settings.complete(chosen, chunking.defaults, chunking.usual_step)
    problem, held = task.problem(data, asks=True), HeldOut(task, loaded.data.test)
    lessons = answered(QueryLearner(problem, settings), data, task.tags, given.answers, given.error, given.seed)
    again = QueryLearner(problem, settings)

    def look(done: int) -> None:
        if done in LOOKS:
            print(f"{done}\t{held.value(again.weights()):.4f}", flush=True)

    learn(again, lessons, LOOKS[-1], look)


if __name__ == "__main__":
    main()
