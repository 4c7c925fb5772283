"""A sequence labeller that goes on learning: new words, new labels, and sentences of which only some labels are known.

python examples/sequence_labeller.py
"""

from sparsezo.sklearn import SequenceLabeller

X = [["Ana", "lives", "in", "Madrid"], ["she", "met", "Luis", "in", "Lima"], ["they", "left", "Madrid", "with", "Ana"]]
y = [["PER", "O", "O", "LOC"], ["O", "O", "PER", "O", "LOC"], ["O", "O", "LOC", "O", "PER"]]

labeller = SequenceLabeller(clusters="none").fit(X, y)
print(labeller.predict([["Luis", "left", "Lima"]]))

# one sentence more, with a new label; of two of its words nobody has said anything
for _ in range(5):
    labeller.partial_fit([["Ana", "joined", "Acme", "in", "Lima"]], [["PER", None, "ORG", None, "LOC"]])
print(labeller.classes_, labeller.predict_single(["Luis", "joined", "Acme"]))

# a person has set one label: it stays, and the others are found around it
print(labeller.predict_single(["Paris", "met", "Luis"], known=["PER", None, None]))
print({label: round(p, 2) for label, p in labeller.predict_marginals_single(["Lima"])[0].items()})
