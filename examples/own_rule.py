"""A rule of one's own: of three outputs, at w + mu u, w and w - mu u, what to do. For who studies such rules.

`still` is symmetric's step, but for inputs on which w does better than it would on either side: there it stands still.
In a package of your own an entry point makes it known to the commands: docs/rules.md.

python examples/own_rule.py
"""

from sparsezo import Chunking, Learner, Settings, own_rule, predict
from sparsezo.tasks.chunking.synthetic import chunking_corpus


@own_rule("still", points=(1, 0, -1), like="symmetric")
def STILL(losses, h, mu, mean):
    """c of W += c u; compiled, as the built-in rules are."""
    if losses[1] < min(losses[0], losses[2]):
        return 0.0
    return -h * (losses[0] - losses[2]) / (2 * mu)


if __name__ == "__main__":
    task, train = Chunking.fit(chunking_corpus(300, seed=1), only="NP")
    test = task.seen(chunking_corpus(200, seed=2))
    print("F1 on generated sentences, after so many losses:")
    for rule in ("two-point", "symmetric", "still"):
        losses_a_step = 3 if rule == "still" else 2
        learner = Learner(task.problem(train), Settings(rule, "score", h=0.003, mu=0.1))
        figures = []
        for losses in (6_000, 30_000, 60_000):
            learner.run(task.gold(train), losses // losses_a_step - learner.step)
            f1 = task.scores(test, predict(task.problem(test, learn=False), learner.weights())).value
            figures.append(f"{losses:,}: {f1:.3f}")
        print(f"{rule:10}", "   ".join(figures), f"  weights moved in {learner.updates / learner.step:.0%} of the steps")
