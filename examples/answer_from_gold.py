"""A person who knows the gold tags: python examples/answer_from_gold.py LINK GOLD.txt 500 (questions about tokens)."""

import sys

from sparsezo import read_conll
from sparsezo.serve.client import RemoteLearner

link, path, n = sys.argv[1:]
gold = read_conll(path)
rows = [slice(*gold.offsets[k : k + 2]) for k in range(len(gold))]
tags = {tuple(gold.columns[0][row]): gold.tags[row] for row in rows}
with RemoteLearner(link) as learner:
    for _ in range(int(n)):
        question = learner.ask()
        shown, labels = question["shown"], [*question["choices"], *question["labels"]]
        right = tags[tuple(shown["words"])][shown["first"]]
        right = right if right in labels else "O"  # what is not learned is outside
        learner.tell(question, right if question["kind"] == "label" else "yes" if right == shown["tag"] else "no")
    print(learner.status())
