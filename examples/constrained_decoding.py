"""What somebody has set stays, and the rest is found around it. For editors and annotation tools.

A tagger of names learns from a few texts; then a person corrects one span of its output, and its neighbours follow.

python examples/constrained_decoding.py
"""

from sparsezo import Chunking, Learner, Model, Settings
from sparsezo.tasks.chunking.io.documents import Document, Span
from sparsezo.tasks.chunking.io.raw import corpus_of

TEXTS = [
    "[PER Ana Gomez] met [PER Luis] in [LOC San Juan].",
    "[PER Luis Vega] left [LOC Lima] with [PER Ana].",
    "In [LOC San Juan] it rained, in [LOC Lima] it did not.",
    "[PER Maria Juan] and [PER Vega Lima] live in [LOC Quito].",
    "[LOC Santa Ana] is near [LOC Quito], said [PER Maria].",
    "Yesterday [PER Juan Quito] came from [LOC Vega].",
]


def document(marked: str) -> Document:
    """A text with its spans, from [LABEL words]."""
    text, spans = "", []
    for k, part in enumerate(marked.replace("]", "[").split("[")):
        label, words = part.split(" ", 1) if k % 2 else (None, part)
        spans += [Span(len(text), len(text) + len(words), label)] if label else []
        text += words
    return Document(text, spans=tuple(spans))


task, corpus = Chunking.fit(corpus_of([document(each) for each in TEXTS], "texts", labelled=True), tags="PER,LOC")
learner = Learner(task.problem(corpus), Settings("supervised", None, h=0.3, mu=None, step="adagrad"))
learner.run(task.gold(corpus), 300)
model = Model(task, learner.weights(), {}, {})

text = "San Juan Vega left Quito."
for what, fixed in (
    ("as the model has it", []),
    ("San Juan is a place", [(0, 8, "LOC")]),
    ("... and Quito is no name", [(0, 8, "LOC"), (19, 24, "O")]),
):
    spans = model.tag(text, fixed=fixed)
    shown = ", ".join(f"{text[span.start : span.end]} {span.label} {span.probability:.2f}" for span in spans)
    print(f"{what:24}: {shown}")
