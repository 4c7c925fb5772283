"""People and their links: whose a name is, and what a link is known by."""

from __future__ import annotations

import httpx
import pytest
from sessions import opened

from sparsezo.errors import UsageError

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
