"""The paper's comparison in small: which rule, and which weights are perturbed. For who reads the paper first.

Noun-phrase chunking on generated sentences; all learners see the same sentences in the same order, and only how good
their own outputs are. `sparsezo reproduce chunking --data DIR` does it in earnest.

python examples/paper_in_miniature.py
"""

from sparsezo import PERTURBATIONS, Chunking, Learner, Settings, predict
from sparsezo.tasks.chunking.synthetic import chunking_corpus

STEPS = 20_000

task, train = Chunking.fit(chunking_corpus(500, seed=1), only="NP")
test = task.seen(chunking_corpus(300, seed=2))
problem, gold, unseen = task.problem(train), task.gold(train), task.problem(test, learn=False)
print(f"{problem.n_features * problem.n_labels:,} weights, {problem.n_active.mean():,.0f} active in a sentence, which")
print(f"its {problem.n_score.mean():,.0f} scores see. F1 on test after {STEPS:,} steps (average loss on the way):\n")


def learned(rule: str, perturb: str | None) -> str:
    h, mu = task.defaults(rule, "constant", perturb)  # the more weights move, the smaller their steps
    learner = Learner(problem, Settings(rule, perturb, h=h, mu=mu if perturb else None))
    learner.run(gold, STEPS)
    f1 = task.scores(test, predict(unseen, learner.weights())).value
    return f"{f1:.3f} ({learner.average_loss:.3f})"


print(f"{'':12}", *(f"{name:14}" for name in PERTURBATIONS))
for rule in ("two-point", "baseline", "comparison"):
    print(f"{rule:12}", *(f"{learned(rule, perturb):14}" for perturb in PERTURBATIONS))
print(f"{'first-order':12}", learned("first-order", None), "  perturbs nothing: the paper's SFO")
