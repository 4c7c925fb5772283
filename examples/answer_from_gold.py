"""A person who knows the gold tags: python examples/answer_from_gold.py LINK GOLD.txt 500 (reviews, single tokens)."""

import sys

import numpy as np

from sparsezo import read_conll
from sparsezo.serve.client import RemoteLearner, review
from sparsezo.tasks.chunking.metric import chunks

link, path, n = sys.argv[1:]
gold = read_conll(path)
rows = [slice(*gold.offsets[k : k + 2]) for k in range(len(gold))]
tags = {tuple(gold.columns[0][row]): gold.tags[row] for row in rows}
with RemoteLearner(link) as learner:
    for _ in range(int(n)):
        question = learner.ask()
        shown, labels = question["shown"], [*question["choices"], *question["labels"]]
        known = tags[tuple(shown["words"])]
        ends = np.array([0, len(known)])
        if question["kind"] == "review":  # what is wrong is set right, and the rest decoded around it
            spans = [{"first": a, "last": b - 1, "label": kind} for a, b, kind in chunks(known, ends)]
            right = [span for span in spans if span["label"] in labels]  # what is not learned is outside
            learner.tell(question, review(question, right, lambda fixed, asked=question: learner.decode(asked, fixed)))
            continue
        right = known[shown["first"]] if known[shown["first"]] in labels else "O"
        learner.tell(question, right if question["kind"] == "label" else "yes" if right == shown["tag"] else "no")
    print(learner.status())
