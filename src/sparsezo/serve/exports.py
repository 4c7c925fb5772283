"""What a session has gathered, as files that others read.

answers.jsonl, answers.csv    one answer each: task, worker, label first (the layout of tools that weigh annotators)
pairs.jsonl                   prompt, chosen, rejected: of pairs of which one was better, and of best
flags.jsonl                   what people found wrong with questions, with their notes
corpus                        all inputs with answers where there are any, the model's guess elsewhere, told apart
spans-FORMAT                  likewise, texts with spans: jsonl, conll, brat, spacy, prodigy, label-studio, datasets
model                         the present model, as ``replay`` makes it

    exports = Exports(contents, store, model, presentation)
    name, media_type, pieces = exports.export("answers.csv")
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from sparsezo.learner import predict, span_chances
from sparsezo.serve.answers import decided_tasks, flagged_tasks, to_file
from sparsezo.serve.errors import Refused
from sparsezo.serve.folder import Contents
from sparsezo.serve.online_model import OnlineModel, model_of
from sparsezo.serve.presentation import Presentation, question_id
from sparsezo.serve.store import FLAG, EventRow, PersonRow, QuestionRow, Store
from sparsezo.tasks.base import Json
from sparsezo.tasks.serving import Answer

_COLUMNS = ("task", "worker", "label", "kind", "seconds", "chance", "audit", "question", "x", "shown", "at")
_OF_DECISIONS = ("adjudicates", "adjudicated_by")
_OF_TEXT = ("input", "part", "document", "start", "end")
_MEDIA_TYPES = {  # of annotated texts, by format
    "jsonl": "application/x-ndjson",
    "conll": "text/plain; charset=utf-8",
    "brat": "application/zip",
    "spacy": "application/octet-stream",
    "prodigy": "application/x-ndjson",
    "label-studio": "application/json",
    "datasets": "application/x-ndjson",
}
_SPANS = tuple(f"spans-{format}" for format in _MEDIA_TYPES)
EXPORTS = ("answers.jsonl", "answers.csv", "pairs.jsonl", "flags.jsonl", "corpus", *_SPANS, "model")
_BLOCK = 500  # lines
File = tuple[str, str, Iterator[bytes]]  # its name, media type and content


class Exports:
    def __init__(self, contents: Contents, store: Store, model: OnlineModel, presentation: Presentation) -> None:
        self._contents, self._store, self._model, self._presentation = contents, store, model, presentation

    def export(self, what: str) -> File:
        """One of ``EXPORTS``: (its file name, its media type, its content in pieces)."""
        if what == "corpus":
            return self._corpus()
        if what == "model":
            return self._model_file()
        if what.startswith("spans-"):
            return self._spans(what.removeprefix("spans-"))
        if what == "answers.csv":
            return what, "text/csv; charset=utf-8", _bytes(self._csv_lines())
        rows = {"answers.jsonl": self._answers, "pairs.jsonl": self._pairs, "flags.jsonl": self.flags}[what]()
        return what, "application/x-ndjson", _bytes(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)

    def _csv_lines(self) -> Iterator[str]:
        text = io.StringIO()
        names = (*_COLUMNS, *_OF_TEXT, *_OF_DECISIONS)
        writer = csv.DictWriter(text, names, restval="", extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in self._answers():
            said = row["label"] if not isinstance(row["label"], dict) else json.dumps(row["label"])
            writer.writerow({**row, "label": said, "shown": json.dumps(row["shown"])})
            yield text.getvalue()
            text.seek(0)
            text.truncate()
        yield text.getvalue()

    def _answers(self) -> Iterator[Json]:
        """A question that was asked twice is one task, with whoever decided between the two answers. Pairs: first and
        second as the outputs stand in ``shown``."""
        flagged, names = flagged_tasks(self._store), names_of(self._store)
        answers = self._store.answers()
        decided = decided_tasks(answers)
        for event, row in answers:
            decider = decided.get(row.again or row.id) if row.decides is None else None
            yield {
                "task": question_id(row.again or row.id),
                "worker": names[event.person],
                "label": self._label(row, event),
                "kind": event.kind,
                "seconds": event.seconds,
                "chance": row.chance,
                "audit": row.audit is not None,
                "question": question_id(row.id),
                "x": row.x,
                "shown": self._shown(row),
                "at": event.at,
                **self._in_text(row),
                "adjudicates": row.decides is not None,
                "adjudicated_by": None if decider is None else names[decider],
                **to_file(self._contents, self._store.meta["id"], row, event, flagged),
            }

    def _label(self, row: QuestionRow, event: EventRow) -> object:
        if row.decides is not None:  # whichever was shown first
            return self._presentation.as_left(row, event)
        return self._presentation.as_said(row, event) if row.kind in ("rate", "review") else event.said()

    def _in_text(self, row: QuestionRow) -> Json:
        serving, data = self._contents.serving, self._contents.data
        return {"input": serving.prompt(data, row.x), **serving.in_text(data, row.question())}

    def _shown(self, row: QuestionRow) -> list[str] | Json:
        """The label that was asked about, or the outputs that were compared; nothing where it was left open."""
        question = row.question()
        if row.kind == "review":
            shown = self._presentation.question(row)["shown"]
            return {name: shown[name] for name in ("spans", "about")}
        if question.outputs:
            return self._texts(row)
        names = {code: name for name, code in self._presentation.offered["label", row.about].items()}
        first, label, last, _ = question.numbers
        return {"first": first, "last": last, "label": names.get(label) if row.kind in ("part", "span") else None}

    def _texts(self, row: QuestionRow) -> list[str]:
        task, data, words = self._contents.task, self._contents.data, self._contents.serving.output_text
        return [words(task, data, row.x, output) for output in row.question().outputs]

    def _pairs(self) -> Iterator[Json]:
        source = self._presentation.source
        for event, row in self._store.answers():
            if row.kind not in ("pair", "best") or event.said() == "tie":
                continue
            texts, said = self._texts(row), str(event.said())
            chosen = texts.pop(("first", "second").index(said) if row.kind == "pair" else int(said) - 1)
            prompt = self._contents.serving.prompt(self._contents.data, row.x) if source is None else source[row.x]
            yield from ({"prompt": prompt, "chosen": chosen, "rejected": each} for each in texts)

    def flags(self) -> list[Json]:
        """Who found what wrong with which question, and when, in that order."""
        names = names_of(self._store)
        events = self._store.rows(EventRow, "WHERE what = ?", FLAG)
        flagged = [(event, self._store.question(event.question)) for event in events if event.question is not None]
        return [
            {
                "worker": names[event.person],
                "question": question_id(row.id),
                "text": self._presentation.question(row)["text"],
                "note": event.note or "",
                "at": event.at,
                "x": row.x,
                **self._in_text(row),
            }
            for event, row in flagged
        ]

    def _corpus(self) -> File:
        contents, serving = self._contents, self._contents.serving
        outputs = predict(self._model.learner.problem, self._model.finished()[1])
        lines = serving.annotated(contents.task, contents.data, outputs, self._said())
        return f"{contents.kind.name}.{serving.ENDING}", "text/plain; charset=utf-8", _bytes(lines)

    def _spans(self, format: str) -> File:
        """Texts with spans, what people said and what the model guesses, in a form that other tools read."""
        from sparsezo.tasks.chunking.io.formats import ENDINGS, write_documents

        contents = self._contents
        if not contents.has_chunks:
            raise Refused(f"there are no spans in a session of task {contents.kind.name}", "bad-answer")
        outputs, chances = span_chances(self._model.learner.problem, self._model.finished()[1])
        given = (contents.task, contents.data, outputs, chances, self._said())
        documents = contents.serving.annotated_documents(*given, apart=format == "label-studio")
        raw = io.BytesIO()
        write_documents(documents, format, raw)
        return f"{contents.kind.name}{ENDINGS[format]}", _MEDIA_TYPES[format], iter([raw.getvalue()])

    def _said(self) -> list[Answer]:
        """(question, kind, answer) of all answers that stand, as a task's ``annotated`` takes them."""
        answers = self._store.answers()
        decided = decided_tasks(answers)
        stand = [each for each in answers if each[1].decides or (each[1].again or each[1].id) not in decided]
        return [(row.question(), event.kind or row.kind, event.said()) for event, row in stand]

    def _model_file(self) -> File:
        answers, W = self._model.finished()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.szo"
            model_of(self._contents, W, answers).save(path)
            raw = path.read_bytes()
        return "model.szo", "application/octet-stream", iter([raw])


def names_of(store: Store) -> dict[int, str]:
    return {row.id: row.name for row in store.rows(PersonRow)}


def _bytes(lines: Iterable[str]) -> Iterator[bytes]:
    """In blocks: a line at a time would be slow to send."""
    each = iter(lines)
    while block := list(itertools.islice(each, _BLOCK)):
        yield "".join(block).encode("utf-8", "replace")
