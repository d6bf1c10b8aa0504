"""Lists that grow for ever are turned over by key, both ways, whatever is added meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from calibration import rows
from calibration.models import Sediment
from placement.models import AuditEntry, DecisionRecord, Job, Role
from placement.selectors import lists, submit
from placement.selectors.submit import Preselected
from tests.integration.rows import a_finished, a_job, a_machine, a_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(client: Client) -> Any:
    user = a_user("ada", Role.ADMIN)
    client.force_login(user)
    return user


def many(user: Any, count: int, **fields: Any) -> list[int]:
    base = {"state": "finished", "outcome": "completed", "cwd": "/tmp", "user": user, "ended_at": timezone.now()}
    rows = [Job(**{**base, "name": f"run-{n}", **fields}) for n in range(count)]
    return [job.pk for job in Job.objects.bulk_create(rows)]


def shown(answer: Any) -> list[int]:
    return [line.line.id for line in answer.context["found"].lines]


def test_older_and_newer_lead_through_all_jobs_and_back(client: Client, ada: Any) -> None:
    ids = many(ada, 120)[::-1]
    first = client.get("/jobs/")
    assert first.context["newer"] == ""
    second = client.get("/jobs/" + first.context["older"])
    third = client.get("/jobs/" + second.context["older"])
    assert shown(first) + shown(second) + shown(third) == ids
    assert third.context["older"] == ""
    assert 'rel="prev"' in third.content.decode()
    back = client.get("/jobs/" + third.context["newer"])
    assert shown(back) == shown(second)
    many(ada, 7)  # what comes meanwhile moves no page
    assert shown(client.get("/jobs/" + first.context["older"])) == shown(second)
    assert shown(client.get("/jobs/" + back.context["newer"])) == shown(first)
    newest = client.get("/jobs/" + client.get("/jobs/" + back.context["newer"]).context["newer"])
    assert newest.context["newer"] == ""
    assert shown(newest)[0] > ids[0]


def test_filters_go_along_with_the_pages(client: Client, ada: Any) -> None:
    bob = a_user("bob")
    for _ in range(60):
        many(ada, 1, outcome="failed", name="a & b")
        many(bob, 1, outcome="failed")
        many(ada, 1)
    first = client.get("/jobs/?whose=mine&outcome=failed")
    rest = client.get("/jobs/" + first.context["older"])
    found = Job.objects.in_bulk(shown(first) + shown(rest))
    assert len(found) == 60
    assert {(job.user_id, job.outcome) for job in found.values()} == {(ada.pk, "failed")}
    assert shown(client.get("/jobs/?outcome=nonsense")) == []


def test_a_name_is_searched_a_stretch_at_a_time(client: Client, ada: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "SEARCHED", 100)
    wanted = many(ada, 1, name="the One & only")[0]
    last = many(ada, 149)[-1]
    first = client.get("/jobs/?q=one+%26")
    assert shown(first) == []
    assert f"Looked at #{last - 99} to #{last}" in first.content.decode()
    second = client.get("/jobs/" + first.context["older"])
    assert (shown(second), second.context["older"]) == ([wanted], "" if wanted == 1 else second.context["older"])
    page = client.get("/jobs/?q=run")
    assert len(shown(page)) == 50
    assert shown(client.get("/jobs/" + page.context["older"]))[0] == shown(page)[-1] - 1


@pytest.mark.parametrize("key", ["before=x", "after=-1", "before=1", "after=999999999999999999", "before=1&after=1"])
def test_a_key_that_leads_nowhere_is_a_page_all_the_same(client: Client, ada: Any, key: str) -> None:
    many(ada, 3)
    assert client.get(f"/jobs/?{key}").status_code == 200
    assert client.get(f"/audit?{key}").status_code == 200


def test_the_audit_is_turned_over_by_key(client: Client, ada: Any) -> None:
    AuditEntry.objects.bulk_create(AuditEntry(who="ada", action="a", subject=str(n)) for n in range(70))
    first = client.get("/audit")
    older = client.get("/audit" + first.context["older"])
    assert [e.subject for e in (*first.context["entries"], *older.context["entries"])] == [
        str(n) for n in reversed(range(70))
    ]
    assert client.get("/audit" + older.context["newer"]).context["entries"] == first.context["entries"]


def test_what_is_not_kept_any_more_is_said(client: Client, ada: Any) -> None:
    a_machine()
    now = timezone.now()
    job = a_finished(ada, decision={}, ended_at=now - timedelta(days=100), pruned_at=now - timedelta(days=10),
                     run_dir="/nowhere/7-1")  # fmt: skip
    text = client.get(f"/jobs/{job.pk}").content.decode()
    assert "Its decisions and leases were removed 90 days after its end" in text
    assert "Its run directory was removed" in text
    assert "Its decisions" not in client.get(f"/jobs/{a_finished(ada).pk}").content.decode()


def test_a_peak_that_newer_runs_took_the_place_of_is_not_called_unmeasured(
    client: Client, ada: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_machine()
    monkeypatch.setattr(rows, "NEWEST", 2)
    job = a_finished(ada, key_params="p", evidence={"feeds": "need"})
    for number in range(2):
        assert "not kept any more" not in client.get(f"/jobs/{job.pk}").content.decode()
        Sediment.objects.create(owner=f"job:9{number}", workload=job.key_workload, params="p", completed=True,
                                outcome="completed", at=timezone.now())  # fmt: skip
    assert "not kept any more: there are 2 newer runs" in client.get(f"/jobs/{job.pk}").content.decode()


def test_the_form_remembers_what_a_command_used_last(ada: Any) -> None:
    a_machine()
    a_job(ada, command="python a.py", gpu="none")
    a_job(a_user("bob"), command="python a.py", gpu="one")
    assert submit.preselect(ada, "python a.py", "") == Preselected("none", "this command used no device last time")
    assert submit.preselect(ada, "python b.py", "").gpu == "one"
    assert submit.preselect(ada, "", "unknown") == Preselected("none", "")


@pytest.mark.parametrize("model", ["job", "lease", "decisionrecord", "auditentry"])
def test_the_admin_counts_no_whole_table(client: Client, model: str, django_assert_max_num_queries: Any) -> None:
    boss = get_user_model().objects.create_superuser("boss")
    client.force_login(boss)
    of = many(boss, 3)[0]
    DecisionRecord.objects.create(job_id=of, at=timezone.now(), verdict="wait", headline="h")
    with django_assert_max_num_queries(12) as seen:
        assert client.get(f"/admin/placement/{model}/").status_code == 200
    counts = [query["sql"] for query in seen.captured_queries if "COUNT(*)" in query["sql"]]
    assert all("LIMIT 10000" in sql for sql in counts)
