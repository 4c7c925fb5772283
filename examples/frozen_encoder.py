"""A frozen encoder gives features, a person's answers teach the tagger on top of it: drugs in notes.

python examples/frozen_encoder.py

With wordllama installed (pip install wordllama) its static vectors are the encoder, otherwise one that is made here, of
the letters of words. docs/features.md has the same with a transformer.
"""

from importlib.util import find_spec

import numpy as np

from sparsezo import QueryLearner, Settings, load_model
from sparsezo.model import Model
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.task import Chunking

if find_spec("wordllama") is not None:
    from wordllama import WordLlama

    llama = WordLlama.load()

    def encode(tokens: list[str]) -> np.ndarray:
        return llama.embed(tokens)

else:

    def encode(tokens: list[str]) -> np.ndarray:
        """A vector of the letters that a word ends with."""
        return np.array([[sum(map(ord, token[-n:])) % 97 == k for n in (2, 3) for k in range(97)] for token in tokens])


taught = ["aspirin", "ibuprofen", "insulin", "penicillin", "morphine", "codeine", "warfarin", "heparin"]
others = ["water", "bread", "rest", "exercise", "soup", "sleep", "juice", "tea"]
notes = [f"the patient was given {a} and {b} today".split() for a in taught for b in others]
unseen = "he was given amoxicillin and coffee"  # neither is in the notes

corpus = Corpus("notes", ([word for note in notes for word in note],), None, np.cumsum([0, *map(len, notes)]))
for vectors in (None, encode):
    task, data = Chunking.fit(corpus, tags="DRUG", vectors=vectors)
    learner = QueryLearner(task.problem(data, asks=True), Settings.complete({"rule": "label"}, task.defaults))
    for _ in range(60):  # a person is asked for the label of one word at a time
        question = learner.ask()
        word = notes[question.x][question.numbers[0]]
        learner.tell(question, "B-DRUG" if word in taught else "O")
    model = Model(task, learner.weights(), learner.settings.as_dict(), {})
    spans = model.tag(unseen)
    print("with vectors:" if vectors else "words alone: ", [unseen[span.start : span.end] for span in spans])

saved = load_model(model.to_bytes(), vectors=encode)  # a function of this script has no name that others find it by
print("from a file: ", [(span.start, span.end, span.label) for span in saved.tag(unseen)])
