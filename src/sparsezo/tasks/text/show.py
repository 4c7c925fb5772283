"""A question about a document's class, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparsezo.proposals import Proposal
from sparsezo.tasks.text.task import Prepared

if TYPE_CHECKING:
    from sparsezo.questions import Question
    from sparsezo.tasks.text.documents import Documents
    from sparsezo.tasks.text.task import TextClassification


def shown(task: TextClassification, data: Documents | Prepared, question: Question | Proposal) -> dict[str, Any]:
    """document (as vectors: where it stands), question; part: class; of outputs: classes."""
    documents = data.documents if isinstance(data, Prepared) else data
    document = documents.where(question.x) if documents.texts is None else documents.texts[question.x]
    names = [task.classes[int(output[0])] for output in question.outputs]
    if isinstance(question, Proposal) or names:
        text = f"Is this about {names[0]}? Give 0 for right, 1 for wrong, or a number between."
        if len(names) > 1:
            text = f"Is this rather about {names[0]} (first) or about {names[1]} (second)? Neither is a tie."
        return {"document": document, "classes": names, "question": text}
    if question.kind == "label":
        return {"document": document, "question": f"What is this about: {', '.join(question.choices)}?"}
    name = task.classes[question.numbers[1]]
    return {"document": document, "class": name, "question": f"Is this about {name}?"}
