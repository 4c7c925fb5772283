"""A rule of one's own: of three outputs, at w + mu u, w and w - mu u, what to do. For who studies such rules.

`still` is symmetric's step, but for inputs on which w does better than it would on either side: there it stands still.
In a package of your own an entry point makes it known to the commands: docs/rules.md.

python examples/own_rule.py
"""

from sparsezo import Learner, Settings, TextClassification, own_rule, predict
from sparsezo.tasks.text.synthetic import generate_text


@own_rule("still", points=(1, 0, -1), like="symmetric")
def STILL(losses, h, mu, mean):
    """c of W += c u; compiled, as the built-in rules are."""
    if losses[1] < min(losses[0], losses[2]):
        return 0.0
    return -h * (losses[0] - losses[2]) / (2 * mu)


if __name__ == "__main__":
    task, train = TextClassification.fit(generate_text(1000, 1, vocabulary=2000, words=30).documents())
    test = task.seen(generate_text(500, 2, vocabulary=2000, words=30).documents())
    print("Accuracy on generated documents, after so many losses:")
    for rule, asked in (("two-point", 2), ("symmetric", 2), ("still", 3)):
        learner = Learner(task.problem(train), Settings(rule, "score", h=0.1, mu=1.0))
        figures = []
        for losses in (600, 3_000, 30_000):
            learner.run(task.gold(train), losses // asked - learner.step)
            right = task.scores(test, predict(task.problem(test, learn=False), learner.weights())).value
            figures.append(f"{losses:6,}: {right:.3f}")
        print(f"{rule:10}", "  ".join(figures), f"  weights moved in {learner.updates / learner.step:.0%} of the steps")
