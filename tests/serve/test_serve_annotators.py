"""People and their links: whose a name is, and what a link is known by."""

from __future__ import annotations

import contextlib

import httpx
import pytest
from sessions import opened

from sparsezo.errors import DamagedError, UsageError
from sparsezo.serve.annotators import Annotators
from sparsezo.serve.store import Store, TokenRow, Writer

ADMINS = ["admin", " admin ", "ADMIN", "Admin\u0020", "ａｄｍｉｎ", "administrator"]


@contextlib.contextmanager
def begun(folder):
    """As at a start of a session in that folder."""
    path = folder / "log.sqlite"
    with contextlib.closing(Store(path) if path.exists() else Store.create(path, {"id": "made-up"})) as store:
        writer = Writer(store, lambda rows: None)
        yield Annotators(store, folder, writer.put)
        writer.stop()


@pytest.fixture
def annotators(tmp_path):
    with begun(tmp_path) as made:
        yield made


@pytest.mark.parametrize("name", ADMINS)
def test_nobody_else_is_called_as_the_administrator_is(annotators, name):
    boss = annotators.add("admin", admin=True)["token"]
    with pytest.raises(UsageError, match="whoever runs the session; take another name"):
        annotators.add(name)
    assert [each.name for each in annotators.people.values()] == ["admin"]
    assert annotators.by_token(boss).admin


@pytest.mark.parametrize("name", ["", "  ", "x" * 81, "a\nb", 3])
def test_names_of_people_are_looked_at(annotators, name):
    with pytest.raises(UsageError, match="name"):
        annotators.add(name)


def test_rights_do_not_come_with_a_name(annotators):
    """Whoever is an administrator stays one, and nobody becomes one, by any name."""
    boss, ann = annotators.add("Boss", admin=True)["token"], annotators.add("Ann")["token"]
    with pytest.raises(UsageError, match="the administrator's"):
        annotators.add("Boss")
    with pytest.raises(UsageError, match="a person who answers"):
        annotators.add("Ann", admin=True)
    assert annotators.by_token(boss).admin
    assert not annotators.by_token(ann).admin


def test_only_the_newest_link_of_a_person_opens(annotators, tmp_path):
    old, new = annotators.add("Ann"), annotators.add("Ann")
    assert new["id"] == old["id"]
    assert annotators.by_token(old["token"]) is None
    assert annotators.was_replaced(old["token"])
    assert annotators.by_token(new["token"]).name == "Ann"
    for wrong in ("", None, "x", new["token"][:-1], new["token"] + "x"):
        assert annotators.by_token(wrong) is None
        assert not annotators.was_replaced(wrong)
    assert (tmp_path / "links.key").stat().st_mode & 0o777 == 0o600
    for file in tmp_path.iterdir():
        assert new["token"].encode() not in file.read_bytes()


def test_a_link_is_the_same_at_every_start(tmp_path):
    def links(annotators):
        return [annotators.link("Ann"), annotators.link("Bob"), annotators.link("admin", admin=True)]

    with begun(tmp_path) as annotators:
        first = links(annotators)
        assert links(annotators) == first
        assert len({each["token"] for each in first}) == 3
    with begun(tmp_path) as annotators:
        assert links(annotators) == first
        assert [annotators.by_token(each["token"]).name for each in first] == ["Ann", "Bob", "admin"]
        new = annotators.add("Ann")
        assert new["token"] != first[0]["token"]
        assert annotators.link("Ann") == new
    with begun(tmp_path) as annotators:
        assert annotators.link("Ann") == new
        assert annotators.by_token(first[0]["token"]) is None
    with contextlib.closing(Store(tmp_path / "log.sqlite")) as store:
        assert len(store.rows(TokenRow)) == 4


def test_a_key_is_its_owners_and_without_it_a_link_opens_but_cannot_be_shown(tmp_path):
    key = tmp_path / "links.key"
    with begun(tmp_path) as annotators:
        ann = annotators.link("Ann")["token"]
        key.chmod(0o644)
    with begun(tmp_path):
        assert key.stat().st_mode & 0o777 == 0o600
    key.unlink()
    with begun(tmp_path) as annotators:
        assert annotators.link("Ann")["token"] is None
        assert annotators.by_token(ann).name == "Ann"
    key.write_bytes(b"cut")
    with pytest.raises(DamagedError, match=r"links\.key.*3 bytes.*remove it"), begun(tmp_path):
        pass


def test_over_http_a_link_that_was_replaced_says_so_and_a_name_is_refused(tmp_path, serving):
    with opened(tmp_path / "s") as session:
        boss = session.add_person("admin", admin=True)["token"]
        old, new = session.add_person("Ann")["token"], session.add_person("Ann")["token"]
        url = serving(session).url
        said = {
            name: httpx.get(f"{url}/api/me", headers={"Authorization": f"Bearer {token}"}).json()
            for name, token in {"old": old, "new": new, "wrong": "x" * 32}.items()
        }
        headers = {"Authorization": f"Bearer {boss}"}
        reply = httpx.post(f"{url}/api/admin/people", json={"name": "Admin"}, headers=headers)
    assert said["old"] == {"error": "link-replaced", "reason": "this link was replaced; ask for the new one"}
    assert said["wrong"]["error"] == "no-token"
    assert said["new"] == {"session": session.store.meta["id"], "person": 2, "name": "Ann", "program": False}
    assert (reply.status_code, reply.json()["error"]) == (422, "bad-request")
    assert "take another name" in reply.json()["reason"]
