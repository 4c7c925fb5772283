"""A question about two translations, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsezo.proposals import Proposal
    from sparsezo.questions import Question
    from sparsezo.tasks.rerank.store import NBestStore
    from sparsezo.tasks.rerank.task import Reranking


def shown(task: Reranking, data: NBestStore, question: Question | Proposal) -> dict[str, Any]:
    """hypotheses, one or two; question."""
    begin = int(data.offsets[question.x])
    hypotheses = [data.hypothesis(begin + int(output[0])) for output in question.outputs]
    text = "Which translation is better, the first or the second?"
    if len(hypotheses) == 1:
        text = "How bad is this translation, from 0 to 1?"
    return {"hypotheses": hypotheses, "question": text}
