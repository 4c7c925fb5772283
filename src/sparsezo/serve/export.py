"""What a session has gathered, as files that others read.

answers.jsonl, answers.csv    one answer each: task, worker, label first (the layout of tools that weigh annotators)
pairs.jsonl                   prompt, chosen, rejected: of pairs of which one was better
flags.jsonl                   what people found wrong with questions, with their notes
corpus                        all inputs with answers where there are any, the model's guess elsewhere, told apart
spans-FORMAT                  likewise, texts with spans: jsonl, conll, brat, spacy, prodigy, label-studio, datasets
model                         the present model, as ``replay`` makes it
"""

from __future__ import annotations

import csv
import functools
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sparsezo.decoding import predict, span_chances
from sparsezo.errors import UsageError
from sparsezo.serve.answers import flagged_tasks, to_file
from sparsezo.serve.core import Core
from sparsezo.serve.errors import Refused
from sparsezo.serve.log import EventRow, QuestionRow
from sparsezo.serve.replay import model_of
from sparsezo.serve.wording import as_said, question_id, worded

_COLUMNS = ("task", "worker", "label", "kind", "seconds", "chance", "audit", "question", "x", "shown", "at")
_OF_TEXT = ("input", "part", "document", "start", "end")
_ENDINGS = {  # of annotated texts, by format, with their media type
    "jsonl": (".jsonl", "application/x-ndjson"),
    "conll": (".conll", "text/plain; charset=utf-8"),
    "brat": (".zip", "application/zip"),
    "spacy": (".spacy", "application/octet-stream"),
    "prodigy": (".prodigy.jsonl", "application/x-ndjson"),
    "label-studio": (".label-studio.json", "application/json"),
    "datasets": (".datasets.jsonl", "application/x-ndjson"),
}
_BLOCK = 1 << 16
File = tuple[str, str, Iterator[bytes]]  # its name, media type and content


class Exports(Core):
    def export(self, what: str) -> File:
        """As it is now: what is answered meanwhile is not in it."""
        made: dict[str, Callable[[], File]] = {
            "answers.jsonl": self._answers_jsonl,
            "answers.csv": self._answers_csv,
            "pairs.jsonl": self._pairs,
            "flags.jsonl": self._flags_jsonl,
            "corpus": self._corpus,
            "model": self._model,
            **{f"spans-{format}": functools.partial(self._spans, format) for format in _ENDINGS},
        }
        if what not in made:
            raise UsageError(f"there is no export {what!r}; there are {', '.join(made)}")
        return made[what]()

    def _answers_jsonl(self) -> File:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in self._answers())
        return "answers.jsonl", "application/x-ndjson", _bytes(lines)

    def _answers_csv(self) -> File:
        def lines() -> Iterator[str]:
            text = io.StringIO()
            names = (*_COLUMNS, *_OF_TEXT)
            writer = csv.DictWriter(text, names, restval="", extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            for row in self._answers():
                said = row["label"] if not isinstance(row["label"], dict) else json.dumps(row["label"])
                writer.writerow({**row, "label": said, "shown": json.dumps(row["shown"])})
                yield text.getvalue()
                text.seek(0)
                text.truncate()
            yield text.getvalue()

        return "answers.csv", "text/csv; charset=utf-8", _bytes(lines())

    def _answers(self) -> Iterator[dict[str, Any]]:
        """A question that was asked twice is one task. Pairs: first and second as the outputs stand in ``shown``."""
        flagged = flagged_tasks(self.log)
        for event, row in self.log.answers():
            answer = json.loads(event.answer or "null")
            yield {
                "task": question_id(row.again or row.id),
                "worker": self.persons[event.person].name,
                "label": as_said(row, answer) if row.kind == "rate" else answer,
                "kind": event.kind,
                "seconds": event.seconds,
                "chance": row.chance,
                "audit": row.audit is not None,
                "question": question_id(row.id),
                "x": row.x,
                "shown": self._shown(row),
                "at": event.at,
                **self._in_text(row),
                **to_file(self.contents, self.log.meta["id"], row, event, flagged),
            }

    def _in_text(self, row: QuestionRow) -> dict[str, Any]:
        """What was asked about, in words."""
        serving, data = self.contents.serving, self.contents.data
        made: dict[str, Any] = {"input": serving.prompt(data, row.x)}
        return made | (serving.in_text(data, row.question()) if hasattr(serving, "in_text") else {})

    def _shown(self, row: QuestionRow) -> Any:
        """The label that was asked about, or the outputs that were compared; nothing where it was left open."""
        question, task = row.question(), self.contents.task
        if question.outputs:
            serving, data = self.contents.serving, self.contents.data
            return [serving.output_text(task, data, row.x, output) for output in question.outputs]
        names = {code: name for name, code in self.offered["label", row.about].items()}
        first, label, last, _ = question.numbers
        shown = names.get(label) if row.kind in ("part", "span") else None
        return {"first": first, "last": last, "label": shown}

    def _pairs(self) -> File:
        def lines() -> Iterator[str]:
            serving, task, data = self.contents.serving, self.contents.task, self.contents.data
            for event, row in self.log.answers():
                answer = json.loads(event.answer or "null")
                if row.kind != "pair" or answer == "tie":
                    continue
                texts = [serving.output_text(task, data, row.x, output) for output in row.question().outputs]
                prompt = self.source[row.x] if self.source is not None else serving.prompt(data, row.x)
                chosen, rejected = texts if answer == "first" else texts[::-1]
                yield json.dumps({"prompt": prompt, "chosen": chosen, "rejected": rejected}, ensure_ascii=False) + "\n"

        return "pairs.jsonl", "application/x-ndjson", _bytes(lines())

    def flagged(self) -> list[dict[str, Any]]:
        """Who found what wrong with which question, and when: the newest first."""
        with self.lock:
            flags = [(event, self.desk.row(event.question or 0)) for event in reversed(self._flags)]
        return [
            {
                "worker": self.persons[event.person].name,
                "question": question_id(row.id),
                "text": worded(self.contents, self.offered, row)["text"],
                "note": event.note or "",
                "at": event.at,
                "x": row.x,
                **self._in_text(row),
            }
            for event, row in flags
        ]

    def _flags_jsonl(self) -> File:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in reversed(self.flagged()))
        return "flags.jsonl", "application/x-ndjson", _bytes(lines)

    def _corpus(self) -> File:
        contents, serving = self.contents, self.contents.serving
        _, W = self._weights()
        outputs = predict(self.learner.problem, W)
        answers = [_said(event, row) for event, row in self.log.answers()]
        lines = serving.annotated(contents.task, contents.data, outputs, answers)
        name = f"{contents.kind.name}.{serving.ENDING}"
        return name, "text/plain; charset=utf-8", _bytes(lines)

    def _spans(self, format: str) -> File:
        """Texts with spans, what people said and what the model guesses, in a form that other tools read."""
        from sparsezo.tasks.chunking.formats import write_documents

        contents = self.contents
        if not contents.has_chunks:
            raise Refused(f"there are no spans in a session of task {contents.kind.name}", "bad-answer")
        _, W = self._weights()
        outputs, chances = span_chances(self.learner.problem, W)
        answers = [_said(event, row) for event, row in self.log.answers()]
        given = (contents.task, contents.data, outputs, chances, answers)
        documents = contents.serving.annotated_documents(*given, apart=format == "label-studio")
        raw = io.BytesIO()
        write_documents(documents, format, raw)
        ending, media_type = _ENDINGS[format]
        return f"{contents.kind.name}{ending}", media_type, iter([raw.getvalue()])

    def _model(self) -> File:
        answers, W = self._weights()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.szo"
            model_of(self.contents, W, answers).save(path)
            raw = path.read_bytes()
        return "model.szo", "application/octet-stream", iter([raw])


def _said(event: EventRow, row: QuestionRow) -> tuple[Any, str, Any]:
    return row.question(), event.kind or row.kind, json.loads(event.answer or "null")


def _bytes(lines: Iterator[str]) -> Iterator[bytes]:
    """In blocks: a line at a time would be slow to send."""
    gathered: list[str] = []
    size = 0
    for line in lines:
        gathered.append(line)
        size += len(line)
        if size >= _BLOCK:
            yield "".join(gathered).encode("utf-8", "replace")
            gathered, size = [], 0
    yield "".join(gathered).encode("utf-8", "replace")
