"""People and their links: whose a name is, and what a link is known by."""

from __future__ import annotations

import httpx
import pytest
from sessions import opened

from sparsezo.errors import DamagedError, UsageError

ADMINS = ["admin", " admin ", "ADMIN", "Admin\u0020", "ａｄｍｉｎ", "administrator"]


@pytest.fixture
def session(tmp_path):
    with opened(tmp_path / "s") as made:
        yield made


@pytest.mark.parametrize("name", ADMINS)
def test_nobody_else_is_called_as_the_administrator_is(session, serving, name):
    boss = session.add_person("admin", admin=True)["token"]
    with pytest.raises(UsageError, match="whoever runs the session"):
        session.add_person(name)
    headers = {"Authorization": f"Bearer {boss}"}
    reply = httpx.post(f"{serving(session).url}/api/admin/people", json={"name": name}, headers=headers)
    assert (reply.status_code, reply.json()["error"]) == (422, "bad-request")
    assert "take another name" in reply.json()["reason"]
    assert [each.name for each in session.persons.values()] == ["admin"]
    assert session.person(boss).admin


def test_rights_do_not_come_with_a_name(session):
    """Whoever is an administrator stays one, and nobody becomes one, by any name."""
    boss, ann = session.add_person("Boss", admin=True)["token"], session.add_person("Ann")["token"]
    with pytest.raises(UsageError, match="the administrator's"):
        session.add_person("Boss")
    with pytest.raises(UsageError, match="a person who answers"):
        session.add_person("Ann", admin=True)
    assert session.person(boss).admin
    assert not session.person(ann).admin


def test_a_link_is_the_same_at_every_start(tmp_path):
    with opened(tmp_path / "s") as session:
        first = [session.link("Ann"), session.link("Bob"), session.link("admin", admin=True)]
        assert [session.link("Ann"), session.link("Bob")] == first[:2]
        assert len({each["token"] for each in first}) == 3
        assert len(session.log.tokens()) == 3
    with opened(tmp_path / "s") as session:
        assert [session.link("Ann"), session.link("Bob"), session.link("admin", admin=True)] == first
        assert [session.person(each["token"]).name for each in first] == ["Ann", "Bob", "admin"]
        new = session.add_person("Ann")
        assert new["token"] != first[0]["token"]
        assert session.link("Ann") == new
    with opened(tmp_path / "s") as session:
        assert session.link("Ann") == new
        assert session.person(first[0]["token"]) is None


def test_the_key_of_the_links_is_its_owners_alone(session):
    key = session.folder / "links.key"
    assert key.stat().st_mode & 0o777 == 0o600
    token = session.add_person("Ann")["token"]
    for file in session.folder.iterdir():
        if file.is_file():
            assert token.encode() not in file.read_bytes()


def test_a_key_that_others_can_read_is_closed_to_them(tmp_path):
    with opened(tmp_path / "s"):
        (tmp_path / "s" / "links.key").chmod(0o644)
    with opened(tmp_path / "s"):
        assert (tmp_path / "s" / "links.key").stat().st_mode & 0o777 == 0o600


def test_without_its_key_a_link_opens_but_cannot_be_shown(tmp_path):
    with opened(tmp_path / "s") as session:
        ann = session.link("Ann")["token"]
    (tmp_path / "s" / "links.key").unlink()
    with opened(tmp_path / "s") as session:
        assert session.link("Ann")["token"] is None
        assert session.person(ann).name == "Ann"
    (tmp_path / "s" / "links.key").write_bytes(b"cut")
    with pytest.raises(DamagedError, match=r"links\.key.*3 bytes.*remove it"):
        opened(tmp_path / "s")


def test_a_link_that_was_replaced_says_so(tmp_path, serving):
    with opened(tmp_path / "s") as session:
        old, new = session.add_person("Ann")["token"], session.add_person("Ann")["token"]
    with opened(tmp_path / "s") as session:
        url = serving(session).url
        said = {
            name: httpx.get(f"{url}/api/me", headers={"Authorization": f"Bearer {token}"}).json()
            for name, token in {"old": old, "new": new, "wrong": "x" * 32}.items()
        }
    assert said["old"] == {"error": "link-replaced", "reason": "this link was replaced; ask for the new one"}
    assert said["wrong"]["error"] == "no-token"
    assert said["new"] == {"session": session.log.meta["id"], "person": 1, "name": "Ann"}
