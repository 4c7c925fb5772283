"""A session and a Label Studio (a stand-in on loopback; test_label_studio_live.py has the real one)."""

from __future__ import annotations

import socket

import pytest
from test_label_studio import CONFIG, TEXTS, opened, result_of

from sparsezo import messages
from sparsezo.errors import UsageError
from sparsezo.serve import label_studio_client
from sparsezo.serve.label_studio import LabelStudio, read_interface
from sparsezo.serve.label_studio_client import Client, StudioError, Sync, read_address
from studio_stand_in import LEGACY, PERSONAL, stand_in


@pytest.fixture
def studio():
    with stand_in() as (studio, url):
        studio.url = url
        yield studio


@pytest.fixture
def session(tmp_path):
    with opened(tmp_path / "news.serve") as session:
        yield session


@pytest.fixture
def remarks():
    with messages.gathered() as said:
        yield said


def synced(session, studio, token=LEGACY, project=None):
    """Not begun: rounds are made by hand."""
    return Sync(LabelStudio(session), Client(studio.url, token), project)


def annotate(studio, task, from_name="label", to_name="text", **rest):
    text = next(iter(studio.tasks[task]["data"].values()))
    result = [{**each, "from_name": from_name, "to_name": to_name} for each in result_of(text)]
    return studio.annotate(task, result, **rest)


def test_an_address_may_name_a_project():
    assert read_address("https://label.example/studio/") == ("https://label.example/studio", None)
    assert read_address("http://127.0.0.1:8080/projects/12/settings") == ("http://127.0.0.1:8080", 12)
    for wrong in ("127.0.0.1:8080", "ftp://x", "http://", "http://x:port", "http://x/projects/all", "yes"):
        with pytest.raises(UsageError, match="`label_studio`"):
            read_address(wrong)


def test_a_project_is_made_with_tasks_and_a_ranked_queue(session, studio, remarks):
    sync = synced(session, studio)
    sync.step()
    project = studio.projects[1]
    assert (project["title"], sync.url) == ("news", f"{studio.url}/projects/1")
    assert read_interface(project["label_config"]) == ("label", "text", "text", ("PER", "LOC"))
    assert (project["sampling"], project["show_collab_predictions"]) == ("Uncertainty sampling", True)
    assert [each["data"] for each in studio.tasks.values()] == [{"text": text} for text in TEXTS]
    assert remarks == [f"Label Studio: 40 texts imported into {sync.url}"]
    scores = dict(zip(TEXTS, LabelStudio(session).scores(TEXTS), strict=True))
    wanted = sorted(scores.values())[:10]
    assert sorted(studio.scores(1).values()) == wanted
    assert all(scores[studio.tasks[task]["data"]["text"]] == score for task, score in studio.scores(1).items())


def test_an_annotation_is_learned_from_and_ranks_the_queue_anew(session, studio, remarks):
    sync = synced(session, studio)
    sync.step()
    asked = []
    for k in range(6):
        asked.append(studio.next(1))
        before = studio.ranked(1)
        annotate(studio, asked[-1])
        sync.step()
        assert session.model.count == 2 * (k + 1)
        assert studio.ranked(1) != before
        assert len(studio.scores(1)) == 10
    assert len(set(asked)) == 6
    fresh = LabelStudio(session).scores([each["data"]["text"] for each in studio.tasks.values()])
    open_ = {task: score for task, score in zip(studio.tasks, fresh, strict=True) if task not in asked}
    assert studio.scores(1)[studio.next(1)] == min(open_.values())
    calls = len(studio.calls)
    sync.step()
    assert len(studio.calls) == calls + 1  # nothing has changed: that is all that is asked


def test_annotations_that_are_changed_skipped_or_deleted(session, studio, remarks):
    sync = synced(session, studio)
    sync.step()
    first = annotate(studio, 1)
    second = annotate(studio, 2)
    annotate(studio, 3, was_cancelled=True)
    sync.step()
    assert session.model.count == 4
    studio.delete(1, first)
    studio.tasks[2]["annotations"][0] |= {"result": [], "updated_at": "later"}
    sync.step()
    assert (session.model.count, second) == (2, 2)
    assert session.people()[0]["answers"] == 2
    assert 3 not in studio.scores(1)


def test_what_was_annotated_while_we_were_away_is_learned_from(session, studio, remarks, tmp_path):
    synced(session, studio).step()
    annotate(studio, 4)
    again = synced(session, studio, project=1)
    again.step()
    assert (session.model.count, len(studio.projects), len(studio.tasks)) == (2, 1, 40)
    synced(session, studio).step()
    assert session.model.count == 2  # once


def test_a_project_of_others_is_used_as_it_is(session, studio, remarks):
    studio.projects[7] = {"id": 7, "title": "x", "label_config": CONFIG, "model_version": ""}
    foreign = {"data": {"article": "Not ours."}, "project": 7, "annotations": [], "is_labeled": False}
    studio.tasks[1] = {"id": 1, **foreign, "updated_at": "2026"}
    sync = synced(session, studio, project=7)
    sync.step()
    assert len(studio.tasks) == 41
    assert set(studio.tasks[2]["data"]) == {"article"}
    assert 1 not in studio.scores(7)
    annotate(studio, 2, "ner", "body")
    sync.step()
    assert session.model.count == 2
    studio.projects[7]["label_config"] = CONFIG.replace("LOC", "GENE")
    with pytest.raises(UsageError, match="the label GENE is not among"):
        synced(session, studio, project=7).step()
    with pytest.raises(StudioError, match=r"has no project 9$"):
        synced(session, studio, project=9).step()


def test_an_annotation_that_cannot_be_learned_from_stops_nothing(session, studio, remarks):
    sync = synced(session, studio)
    sync.step()
    value = {"start": 0, "end": 2, "text": "no", "labels": ["PER"]}
    studio.annotate(1, [{"from_name": "label", "to_name": "text", "type": "labels", "value": value}])
    annotate(studio, 2)
    sync.step()
    sync.step()
    assert session.model.count == 2
    assert len(remarks) == 2
    assert remarks[1].startswith("Label Studio: annotation 1 of task 1 is not learned from: ")


def test_tokens(session, studio, remarks):
    sync = synced(session, studio, PERSONAL)
    sync.step()
    studio.tokens = set()  # what it was exchanged for is too old
    annotate(studio, 1)
    sync.step()
    assert (session.model.count, studio.access) == (2, 2)
    with pytest.raises(StudioError, match="refuses the token; make one in its Account & Settings"):
        synced(session, studio, "wrong").step()
    with pytest.raises(UsageError, match="LABEL_STUDIO_API_KEY"):
        synced(session, studio, "")


def test_one_that_goes_away_is_waited_for_and_nothing_is_lost(session, studio, monkeypatch, remarks):
    monkeypatch.setattr(label_studio_client, "_AWAY_SECONDS", 0.01)
    studio.away = True

    def until(condition):
        with studio.changed:
            assert studio.changed.wait_for(condition, 60)

    with synced(session, studio):
        assert remarks[0].endswith("answers with status 502 and no JSON: is this Label Studio?; it is tried again")
        studio.away = False
        until(lambda: studio.projects and studio.ranked(1))
        before = studio.ranked(1)
        studio.away = True
        annotate(studio, 5)
        calls = len(studio.calls)
        until(lambda: len(studio.calls) >= calls + 3)
        studio.away = False
        until(lambda: studio.ranked(1) != before)
    assert session.model.count == 2
    assert sum("tried again" in each for each in remarks) == 2
    assert any(each.endswith("/projects/1 answers") for each in remarks)


def test_nobody_there(session, remarks):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(StudioError, match=rf"^Label Studio at {address} does not answer \("):
            Client(address, "x").call("GET", "/api/projects/")
        with Sync(LabelStudio(session), Client(address, "x")):
            assert len(remarks) == 1


def test_versions_stay_as_long_as_somebody_may_have_them_open(session, studio, monkeypatch, remarks):
    sync = synced(session, studio)
    sync.step()
    annotate(studio, studio.next(1))
    sync.step()
    sync.step()
    assert {each["model_version"] for each in studio.predictions} == {"sparsezo 1", "sparsezo 2"}
    monkeypatch.setattr(label_studio_client, "_KEPT", 0.0)
    sync = synced(session, studio)
    for _ in range(3):  # connected and ranked; then one a round
        sync.step()
    assert {each["model_version"] for each in studio.predictions} == {"sparsezo 3"} == {studio.ranked(1)}
