"""Label Studio's protocol, by JSON of the shape that it sends: predictions, annotations as reviews, ranking."""

from __future__ import annotations

import functools
import http.client
import json
import re
from urllib.parse import urlsplit

import pytest
from sessions import made as made_task
from sessions import opened as opened_columns
from sessions import same_as_replay

from sparsezo.errors import UsageError
from sparsezo.serve.label_studio import NAME, PREFIX, LabelStudio, read_interface
from sparsezo.serve.session import Session
from sparsezo.serve.store import AuditRow
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.io.documents import Document
from sparsezo.tasks.chunking.io.raw import corpus_of
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.registry import task_spec

CONFIG = """<View>
  <Labels name="ner" toName="body"><Label value="PER" background="red"/><Label value="LOC"/></Labels>
  <Text name="body" value="$article"/>
</View>"""
NAMES, PLACES = ["Ana", "José García", "Eva"], ["Madrid", "San Sebastián", "Łódź"]
DAYS = ((k, NAMES[k % 3], NAMES[(k + 1) % 3], PLACES[k // 3 % 3]) for k in range(40))
TEXTS = [f"On day {k} {one} met {other} in {place}. It was day {k} there." for k, one, other, place in DAYS]


@functools.cache
def made():
    return Chunking.fit(corpus_of([Document(text) for text in TEXTS], "here"), tags="PER,LOC", split="sentences")


def opened(folder, **rest):
    task, corpus = made()
    settings = Settings.complete({"seed": 3, "rule": "span", "rater_error": "0.05"}, task.defaults)
    return Session(task_spec("chunking"), task, corpus, settings, folder, **rest)


def task_of(k):
    """As Label Studio has it."""
    return {
        "id": 100 + k,
        "data": {"article": TEXTS[k], "source": "paper"},
        "meta": {},
        "project": 1,
        "is_labeled": False,
    }


def result_of(text, wanted=((NAMES, "PER"), (PLACES, "LOC"))):
    found = []
    for words, label in wanted:
        for at in re.finditer("|".join(words), text):
            value = {"start": at.start(), "end": at.end(), "text": at[0], "labels": [label]}
            name = f"r{len(found)}"
            found.append({"id": name, "from_name": "ner", "to_name": "body", "type": "labels", "value": value})
    return found


def event_of(k, id, result=None, action="ANNOTATION_CREATED", **rest):
    annotation = {"id": id, "result": result_of(TEXTS[k]) if result is None else result, "completed_by": 7}
    annotation |= {"was_cancelled": False, "lead_time": 12.5, "task": 100 + k, **rest}
    project = {"id": 1, "title": "News", "label_config": CONFIG}
    return {"action": action, "annotation": annotation, "task": task_of(k), "project": project}


def learned(backend, event):
    return backend.learn(event["action"], event)["learned"]


def test_an_interface_is_read():
    assert read_interface(CONFIG) == ("ner", "body", "article", ("PER", "LOC"))
    for wrong in ("<View/>", "<View><Choices toName='t'/><Text name='t' value='$t'/></View>", "no", None):
        with pytest.raises(UsageError):
            read_interface(wrong)


def test_annotations_teach_and_predictions_have_spans(tmp_path):
    with opened(tmp_path / "s") as session:
        backend = LabelStudio(session)
        first = backend.setup(CONFIG)["model_version"]
        for k in range(20):
            assert learned(backend, event_of(k, 500 + k)) == 2  # sentences
        assert session.model.count == 40
        assert backend.setup(CONFIG)["model_version"] != first
        found = backend.predict([task_of(30), {"data": {"article": "Then Ana met Eva in Madrid."}}], CONFIG)
        known, other = found["results"]
        marked = [(each["value"]["text"], each["value"]["labels"]) for each in known["result"]]
        assert marked == [(NAMES[0], ["PER"]), (NAMES[1], ["PER"]), (PLACES[1], ["LOC"])]
        named = {(each["from_name"], each["to_name"], each["type"]) for each in known["result"]}
        assert named == {("ner", "body", "labels")}
        value = known["result"][0]["value"]
        assert TEXTS[30][value["start"] : value["end"]] == value["text"]
        assert known["model_version"] == "sparsezo"  # as the model is called there, whatever it has learned
        assert found["model_version"] == backend.version
        assert len(other["result"]) == 3
        assert other["score"] is None  # of a text that is not among the inputs
        assert [each["name"] for each in session.people()] == [f"{NAME} 7"]
        assert session.people()[0]["answers"] == 40
        assert same_as_replay(session)


def test_what_teaches_most_in_a_second_has_the_lowest_score(tmp_path):
    with opened(tmp_path / "s") as session:
        backend = LabelStudio(session)
        cold = [each["score"] for each in backend.predict([task_of(0), task_of(30)], CONFIG)["results"]]
        for k in range(20):
            learned(backend, event_of(k, 500 + k))
        warm = [each["score"] for each in backend.predict([task_of(0), task_of(30)], CONFIG)["results"]]
        assert all(0 < one < other <= 1 for one, other in zip(cold, warm, strict=True))


def test_an_annotation_that_is_changed_or_deleted_is_said_anew_or_forgotten(tmp_path):
    with opened(tmp_path / "s") as session:
        backend = LabelStudio(session)
        learned(backend, event_of(1, 9, result=[]))
        wrong = session.model.weights()[1]
        assert learned(backend, event_of(1, 9, action="ANNOTATION_UPDATED")) == 2
        assert session.model.count == 2
        assert not (session.model.weights()[1] == wrong).all()
        events = session.queue.last_event
        assert learned(backend, event_of(1, 9, action="ANNOTATION_UPDATED")) == 2  # the same again
        assert session.queue.last_event == events
    with opened(tmp_path / "s") as session:
        backend = LabelStudio(session)
        assert learned(backend, event_of(1, 9, result=[], action="ANNOTATION_UPDATED")) == 2
        assert session.queue.questions == 2  # the log knows which questions these were
        gone = {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 9}], "project": {"id": 1}}
        assert learned(backend, gone) == 0
        assert session.model.count == 0
        assert session.queue.open == {}
        assert same_as_replay(session)
        learned(backend, event_of(2, 10))
        assert learned(backend, event_of(2, 10, was_cancelled=True, action="ANNOTATION_UPDATED")) == 0
        assert session.model.count == 0


def test_what_is_not_learned_from(tmp_path):
    with opened(tmp_path / "s", audit=15) as session:
        backend = LabelStudio(session)
        audited = min(row.x for row in session.store.rows(AuditRow))
        document = int(session.contents.data.source.of_sentence[audited])
        assert learned(backend, event_of(document, 1)) < 2
        elsewhere = event_of(0, 2)
        elsewhere["task"]["data"]["article"] = "Nobody has seen Eva."
        assert learned(backend, {**elsewhere, "annotation": {**elsewhere["annotation"], "result": []}}) == 0
        assert backend.learn("START_TRAINING", {}) == {"learned": 0}
        other = CONFIG.replace("LOC", "GENE")
        with pytest.raises(UsageError, match="the label GENE is not among `tags`: PER, LOC"):
            backend.setup(other)


def test_sessions_of_other_inputs_are_refused(tmp_path):
    assert made_task("chunking")
    with opened_columns(tmp_path / "s") as session, pytest.raises(UsageError, match="spans of raw text"):
        LabelStudio(session)


def test_over_http(serving, tmp_path):
    with opened(tmp_path / "s") as session:
        serving(session, label_studio=True)
        token = session.annotators.link(NAME)["token"]
        ann = session.add_person("Ann")["token"]

        def call(method, path, given=None, token=token, host=None):
            connection = http.client.HTTPConnection(urlsplit(session.url).netloc)
            body = None if given is None else given if isinstance(given, str) else json.dumps(given)
            connection.request(method, f"{PREFIX}{token}/{path}", body, {"Host": host} if host else {})
            reply = connection.getresponse()
            found = json.loads(reply.read())
            connection.close()
            return reply.status, found

        assert call("GET", "health") == (200, {"status": "UP", "model_class": "sparsezo"})
        code, found = call("POST", "setup", {"project": "1.170", "schema": CONFIG, "hostname": "", "access_token": "x"})
        assert (code, list(found)) == (200, ["model_version"])
        code, found = call("POST", "webhook", event_of(3, 77))
        assert (code, found["learned"]) == (200, 2)
        given = {"tasks": [task_of(3)], "project": "1.170", "label_config": CONFIG, "params": {"context": None}}
        code, found = call("POST", "predict", given)
        assert (code, len(found["results"])) == (200, 1)
        assert found["model_version"].endswith("2 answers")
        code, found = call("POST", "predict", {**given, "label_config": "<View/>"})
        assert (code, "no <Labels>" in found["error"]) == (422, True)
        assert call("POST", "predict", "[]")[0] == 400
        for wrong in (ann, "x"):  # a person's link is no other's
            assert call("GET", "health", token=wrong)[0] == 401
        assert call("GET", "health", host="elsewhere.example")[0] == 421
