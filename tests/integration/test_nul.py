"""A NUL in what a browser sends: PostgreSQL holds none, so it is refused before anything asks the database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from placement.models import AuditEntry, Job, Role
from tests.integration import databases
from tests.integration.rows import a_job, a_machine, a_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    if request.param == "sqlite":
        yield _logged_in()
        return
    with databases.on(request.getfixturevalue("postgres_url"), monkeypatch):
        yield _logged_in()


def _logged_in() -> Client:
    a_machine()
    made = Client(raise_request_exception=False)
    made.force_login(a_user("root", Role.ADMIN))
    a_job(a_user("ann", Role.SUBMITTER))
    return made


def test_no_page_fails_by_a_nul(client: Client) -> None:
    job = Job.objects.get().pk
    asked = [
        "/devices/a%00b/c/series",
        "/devices/a/b%00/series",
        "/login/link/a%00b",
        "/jobs/?q=a%00b",
        "/jobs/?outcome=%00",
        "/submit?workload=a%00b",
        "/submit/workload?workload=a%00b",
        f"/jobs/{job}?stream=%00",
        f"/jobs/{job}/log/%00.log",
        "/api/v1/queue?x=%00",
    ]
    said = {path: client.get(path).status_code for path in asked}
    sent = {
        "/queue/hold": {"why": "a\0b"},
        f"/jobs/{job}/hold": {"why": "a\0b"},
        f"/jobs/{job}/mark": {"what": "a\0b"},
        f"/jobs/{job}/argument": {"name": "a\0b", "matters": "1"},
        "/people/add": {"name": "a\0b", "role": "viewer"},
        "/declarations/node/1/hold": {"why": "a\0b"},
        "/submit": {"kind": "workload", "workload": "a\0b"},
        "/submit/estimate": {"kind": "workload", "workload": "a\0b", "name": "\0"},
        "/login": {"username": "a\0b", "password": "x"},
    }
    said |= {path: client.post(path, data).status_code for path, data in sent.items()}
    assert {path: code for path, code in said.items() if code != 400} == {}
    assert not any("\0" in (row.subject + str(row.detail)) for row in AuditEntry.objects.all())
    assert "\0" not in Job.objects.get().held_why
