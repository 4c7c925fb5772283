"""A frozen encoder gives features, a person's answers teach the tagger on top of it: animals in sentences.

python examples/frozen_encoder.py

With the package wordllama (pip install wordllama) its static vectors are the encoder, otherwise a tiny one that is made
here. docs/features.md has the same with a transformer.
"""

from importlib.util import find_spec

import numpy as np

from sparsezo import QueryLearner, Settings, load_model
from sparsezo.model import Model
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.text.features.word_vectors import wordllama

animals = ["dog", "cat", "horse", "cow", "sheep", "goat", "rabbit", "lion"]
things = ["car", "table", "stone", "lamp", "chair", "door", "box", "wheel"]
pairs = [(a, b) for a in animals for b in things]
sentences = [f"we saw a {x} near the {y} today".split() for a, b in pairs for x, y in ((a, b), (b, a))]
unseen = "we saw a tiger near the bridge and a window near the elephant today"  # four words that are in none of them

if find_spec("wordllama") is not None:
    static = wordllama()

    def encode(tokens: list[str]) -> np.ndarray:
        """The mean of the vectors of each token's pieces: tokens x 256."""
        pieces = static.names.of_words(tokens)
        return (pieces @ static.table.astype(np.float32)) / pieces.sum(axis=1)[:, None]

else:

    def encode(tokens: list[str]) -> np.ndarray:
        """Tokens x 8: a number by the word's letters, and whether it is alive, as somebody's table has it."""
        letters = [np.random.default_rng(sum(map(ord, token))).normal(0, 0.3, 8) for token in tokens]
        return np.array(letters) + [[token in (*animals, "tiger", "elephant")] for token in tokens]


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

saved = load_model(model.to_bytes(), vectors=encode)  # a function of this script has no name that others find it by
print("from a file: ", [(span.start, span.end, span.label) for span in saved.tag(unseen)])
