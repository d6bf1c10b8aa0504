"""Knobs, the audit and people: what admins see, change and find again."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from calibration.domain.knobs import KNOBS
from placement import snapshots
from placement.domain.knobs import TABLE
from placement.models import AuditEntry, KnobOverride, Role, Token
from placement.selectors import people, tuned
from placement.services import tuning
from tests.integration.rows import a_job, a_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> Any:
    return a_user("ada", Role.ADMIN)


@pytest.fixture
def admin(ada: Any) -> Client:
    client = Client()
    client.force_login(ada)
    return client


def test_every_knob_has_a_subject_and_stands_on_the_page_once(admin: Client) -> None:
    names = {knob.name for knob in (*TABLE, *KNOBS)}
    assert {name: tuned.subject_of(name) for name in names}.keys() == names
    shown = [knob.name for subject in tuned.subjects() for knob in subject.knobs]
    assert sorted(shown) == sorted(names)
    text = admin.get("/knobs").content.decode()
    assert all(text.count(f'id="value-{name}"') == 1 for name in names)


def test_a_knob_is_turned_on_its_page_and_says_by_whom(admin: Client) -> None:
    said = admin.post("/knobs/grace_seconds", {"value": "3"}, follow=True)
    assert "grace_seconds is 3 from the next decision on." in said.content.decode()
    assert snapshots.knobs_now()[0].grace_seconds == 3
    (knob,) = [k for s in tuned.subjects("grace_seconds") for k in s.knobs]
    assert (knob.value, knob.default, knob.who, knob.turned) == ("3", "10", "ada", True)
    assert [k.name for s in tuned.subjects(turned=True) for k in s.knobs] == ["grace_seconds"]

    admin.post("/knobs/grace_seconds", {"value": "3", "default": "1"})
    assert not KnobOverride.objects.exists()
    assert tuned.subjects(turned=True) == ()


@pytest.mark.parametrize("typed", ["soon", "-1", "", "  ", "1e400", "NaN", "[]", "9" * 40])
def test_a_refused_value_stays_in_its_field_with_the_reason(admin: Client, typed: str) -> None:
    answer = admin.post("/knobs/node_stale_seconds", {"value": typed})
    assert answer.status_code == 422
    text = answer.content.decode()
    assert 'id="wrong-node_stale_seconds"' in text
    assert f'value="{typed.strip()}"' in text
    assert not KnobOverride.objects.exists()


def test_there_is_no_turning_of_what_is_no_knob(admin: Client) -> None:
    assert admin.post("/knobs/no_such", {"value": "1"}).status_code == 404


@pytest.mark.parametrize("role", [Role.VIEWER, Role.SUBMITTER, Role.OPERATOR])
def test_knobs_are_for_admins(role: Role) -> None:
    client = Client()
    client.force_login(a_user("bob", role))
    assert client.get("/knobs").status_code == 403
    assert client.post("/knobs/grace_seconds", {"value": "3"}).status_code == 403
    assert not KnobOverride.objects.exists()


def test_a_value_that_a_setting_fixes_is_told_as_such(admin: Client, settings: Any) -> None:
    settings.KNOB_OVERRIDES = {"grace_seconds": 4}
    (knob,) = [k for s in tuned.subjects("grace_seconds") for k in s.knobs]
    assert (knob.value, knob.turned, knob.by_setting) == ("4", True, True)


def test_the_audit_is_asked_for_a_person_a_kind_and_a_thing(admin: Client, ada: Any) -> None:
    tuning.turn(ada, "grace_seconds", "3")
    AuditEntry.objects.create(who="bob", action="drain", subject="device gpu0")

    def subjects(query: str) -> list[str]:
        return [entry.subject for entry in admin.get(f"/audit?{query}").context["entries"]]

    assert subjects("who=bob") == ["device gpu0"]
    assert subjects("action=turn_knob") == ["knob grace_seconds"]
    assert subjects("text=GPU0") == ["device gpu0"]
    assert subjects("who=bob&action=turn_knob") == []
    assert len(subjects("")) == 2


def test_filters_go_along_when_the_page_is_turned(admin: Client) -> None:
    AuditEntry.objects.bulk_create(
        AuditEntry(who="ada" if n % 2 else "bob", action="a", subject=str(n)) for n in range(140)
    )
    first = admin.get("/audit?who=bob")
    older = admin.get("/audit" + first.context["older"])
    assert {entry.who for entry in (*first.context["entries"], *older.context["entries"])} == {"bob"}
    assert len(older.context["entries"]) == 20


def test_people_show_what_each_has_in_the_queue(admin: Client, ada: Any) -> None:
    bob = a_user("bob")
    a_job(bob)
    a_job(bob, state="running")
    a_job(bob, state="finished", outcome="completed")
    Token.objects.create(user=bob, name="ci", digest="x", start="tg_a", end="z", scope="read")
    line = {person.name: person for person in people.people()}["bob"]
    assert (line.runs, line.waits, line.tokens) == (1, 1, 1)
    assert "1 running, 1 waiting" in admin.get("/people?q=BOB").content.decode()
    assert [person.name for person in people.people("BO")] == ["bob"]


def test_nobody_of_that_name_is_told_with_the_way_on(admin: Client) -> None:
    text = admin.get("/people?q=<zoe>").content.decode()
    assert "Nobody here has “&lt;zoe&gt;” in the name." in text
