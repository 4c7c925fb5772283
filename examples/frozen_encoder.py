"""A frozen encoder gives features, a person's answers teach the tagger on top of it: animals in sentences.

python examples/frozen_encoder.py                       # with a tiny encoder that is made here
python examples/frozen_encoder.py my_encoder:encode     # with a real one: docs/features.md has a transformer
"""

import sys

import numpy as np

from sparsezo import QueryLearner, Settings, load_model
from sparsezo.model import Model
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.task import Chunking

animals = ["dog", "cat", "horse", "cow", "sheep", "goat", "rabbit", "lion"]
things = ["car", "table", "stone", "lamp", "chair", "door", "box", "wheel"]
pairs = [(a, b) for a in animals for b in things]
sentences = [f"we saw a {x} near the {y} today".split() for a, b in pairs for x, y in ((a, b), (b, a))]
unseen = "we saw a tiger near the bridge today"  # two words that are in none of them


def made(tokens: list[str]) -> np.ndarray:
    """Tokens x 8: numbers by the word's letters, the larger where somebody's table says that it is alive."""
    letters = [np.random.default_rng(sum(map(ord, token))).normal(0, 0.3, 8) for token in tokens]
    return np.array(letters) + [[token in (*animals, "tiger")] for token in tokens]


encode = sys.argv[1] if len(sys.argv) > 1 else made
corpus = Corpus("text", ([word for each in sentences for word in each],), None, np.cumsum([0, *map(len, sentences)]))
for vectors in (None, encode):
    task, data = Chunking.fit(corpus, tags="ANIMAL", features="words", vectors=vectors)
    learner = QueryLearner(task.problem(data, asks=True), Settings.complete({"rule": "label"}, task.defaults))
    for _ in range(120):  # a person is asked for the label of one word at a time
        question = learner.ask()
        word = sentences[question.x][question.numbers[0]]
        learner.tell(question, "B-ANIMAL" if word in animals else "O")
    model = Model(task, learner.weights(), learner.settings.as_dict(), {})
    spans = model.tag(unseen)
    print("with vectors:" if vectors else "words alone: ", [unseen[span.start : span.end] for span in spans])

# a model has the name of its encoder in it; a function of this script has none that others find it by
saved = load_model(model.to_bytes(), vectors=made if encode is made else None)
print("from a file: ", [(span.start, span.end, span.label) for span in saved.tag(unseen)])
