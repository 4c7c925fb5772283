"""How good a tagger gets in so many minutes of somebody's time. For who has text, an annotator, and no labels.

The person is simulated: she knows the right tags. She sees a sentence as the model would tag it, takes it as it is or
sets right what is wrong (review), or says yes or no to one part (part). Seconds are a stated table, no measurement:
0.5 a review, 0.12 a word of it, 2.5 a correction; 1.5 a single question, and 0.208 for each word of its sentence.

python examples/minutes_of_review.py
"""

from sparsezo import Chunking, QueryLearner, Settings, predict
from sparsezo.tasks.chunking.synthetic import chunking_corpus

task, corpus = Chunking.fit(chunking_corpus(800, seed=1), only="NP")
test = task.seen(chunking_corpus(300, seed=2))
problem, gold, unseen = task.problem(corpus, asks=True), task.gold(corpus), task.problem(test, learn=False)


def minutes(learner: QueryLearner) -> float:
    if learner.settings.rule == "review":
        return (0.5 * learner.answers + 0.12 * learner.tokens + 2.5 * learner.corrections) / 60
    return (1.5 * learner.answers + 0.208 * learner.tokens) / 60


for rule in ("review", "part"):
    learner = QueryLearner(problem, Settings.complete({"rule": rule}, task.defaults))
    for end in (1, 5, 15):
        while minutes(learner) < end:
            question = learner.ask()  # where the model is unsure, by what a second of her time is worth
            learner.tell(question, learner.known_answer(question, gold))
        f1 = task.scores(test, predict(unseen, learner.weights())).value
        print(f"{rule:7} {end:3} min: {learner.answers:4} answers, {learner.corrections:3} corrections, F1 {f1:.3f}")
