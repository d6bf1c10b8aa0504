"""One act on many jobs, by form and by the page: what may be done is done, the rest is told by name."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from placement.domain.errors import NotYours, Refused
from placement.models import AuditEntry, Job, JobArray, Role
from placement.services import bulk, cycle_row, priorities
from tests.integration.rows import a_finished, a_job, a_machine, a_running, a_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> Any:
    cycle_row.ensure()
    a_machine()
    return a_user("ada")


def of(*jobs: Job) -> list[str]:
    return [str(job.pk) for job in jobs]


def test_each_is_told_what_became_of_it(ada: Any) -> None:
    waits, runs, over = a_job(ada), a_running(ada), a_finished(ada, "failed")
    theirs = a_job(a_user("bob"))
    report = bulk.apply(ada, "cancel", [*of(waits, waits, runs, over, theirs), "999", "x"])
    assert report.sentence == (
        f"1 cancelled, 1 being stopped; #{over.pk} had already ended: failed; #{theirs.pk} is bob's; "
        "There is no job #999; 'x' is no job."
    )
    assert [r.count for r in report.results] == [1, 1, 0, 0, 0, 0]
    theirs.refresh_from_db()
    assert theirs.state == "queued"


def test_of_many_refusals_some_are_named_and_the_rest_counted(ada: Any) -> None:
    over = [a_finished(ada) for _ in range(9)]
    said = bulk.apply(ada, "hold", of(*over)).sentence
    assert said.startswith(f"Nothing was changed; #{over[0].pk} does not wait any more")
    assert said.endswith("5 more were refused as well.")


def test_retry_hold_and_release(ada: Any) -> None:
    over, waits = a_finished(ada), a_job(ada)
    assert bulk.apply(ada, "retry", of(over, waits)).sentence.startswith(f"1 submitted again; #{waits.pk} is still")
    assert Job.objects.filter(retry_of=over).count() == 1
    bulk.apply(ada, "hold", of(waits), why="paper first")
    waits.refresh_from_db()
    assert (waits.held_by, waits.held_why) == ("ada", "paper first")
    assert bulk.apply(ada, "release", of(waits)).sentence == "1 released."


def test_the_same_key_again_runs_no_job_a_second_time(ada: Any) -> None:
    one, two = (a_finished(ada), a_finished(ada))
    first = bulk.apply(ada, "retry", of(one, two), form_key="once")
    again = bulk.apply(ada, "retry", of(one, two), form_key="once")
    assert [r.sentence for r in first.results] == [r.sentence for r in again.results]
    assert Job.objects.filter(retry_of__isnull=False).count() == 2
    bulk.apply(ada, "retry", of(one), form_key="twice")
    assert Job.objects.filter(retry_of=one).count() == 2


@pytest.mark.parametrize(
    "verb, names, priority, sentence",
    [
        ("delete", ["1"], None, "There is no act 'delete'"),
        ("cancel", [], None, "No job is selected"),
        ("cancel", [str(n) for n in range(501)], None, "501 are selected; at most 500"),
        ("priority", ["1"], None, "Say which priority"),
        ("priority", ["1"], 101, "between -100 and 100; 101 does not"),
        ("priority", ["1"], 1, "Only operators and admins may raise a priority above 0; 1 was"),
    ],
)
def test_what_cannot_be_meant_is_refused_whole(
    ada: Any, verb: str, names: list[str], priority: int | None, sentence: str
) -> None:
    with pytest.raises(Refused, match=sentence):
        bulk.apply(ada, verb, names, priority=priority)


def test_a_priority_is_changed_by_its_owner_down_and_by_operators_up_and_theirs_is_audited(ada: Any) -> None:
    job = a_job(ada)
    assert priorities.change(ada, job.pk, -3) == f"#{job.pk} has priority -3; it was 0."
    with pytest.raises(NotYours):
        priorities.change(ada, job.pk, 1)
    with pytest.raises(NotYours):
        priorities.change(a_user("bob"), job.pk, -5)
    assert not AuditEntry.objects.exists()
    assert bulk.apply(a_user("olga", Role.OPERATOR), "priority", of(job), priority=7).sentence == "1 given priority 7."
    entry = AuditEntry.objects.get()
    assert (entry.who, entry.action, entry.detail) == ("olga", "change priority", {"before": -3, "after": 7})
    with pytest.raises(Refused, match="only a waiting job has a place"):
        priorities.change(ada, a_running(ada).pk, -1)


def test_an_operator_who_holds_or_releases_others_jobs_is_written_down(ada: Any) -> None:
    job, olga = a_job(ada), a_user("olga", Role.OPERATOR)
    bulk.apply(olga, "hold", of(job), why="maintenance")
    bulk.apply(olga, "release", of(job))
    assert [entry.action for entry in AuditEntry.objects.order_by("pk")] == ["hold job", "release job"]


def test_what_waits_of_an_array_is_one_name_and_one_statement(ada: Any, django_assert_max_num_queries: Any) -> None:
    array = JobArray.objects.create(name="sweep", user=ada, size=60)
    for index in range(60):
        (a_running if index == 0 else a_job)(ada, array=array, array_index=index)
    name = f"a{array.pk}"
    with django_assert_max_num_queries(12):
        assert bulk.apply(ada, "priority", [name], priority=-2).sentence == "59 given priority -2."
    assert bulk.apply(ada, "hold", [name]).sentence == "59 held."
    assert bulk.apply(ada, "release", [name]).sentence == "59 released."
    assert "is ada's" in bulk.apply(a_user("bob"), "cancel", [name]).sentence
    assert bulk.apply(ada, "cancel", [name]).sentence == "59 cancelled."
    assert Job.objects.filter(array=array, state="running").count() == 1
    assert "There is no array 999" in bulk.apply(ada, "cancel", ["a999"]).sentence


def test_the_page_goes_back_where_it_was_asked_and_nowhere_else(client: Client, ada: Any) -> None:
    job = a_job(ada)
    client.force_login(ada)
    answer = client.post("/jobs/bulk", {"verb": "hold", "job": job.pk, "back": "/?state=waiting"})
    assert answer.url == "/?state=waiting"
    for elsewhere in ("//evil.example/", "https://evil.example", "javascript:alert(1)", ""):
        assert client.post("/jobs/bulk", {"verb": "hold", "job": job.pk, "back": elsewhere}).url == "/"
    page = client.post("/jobs/bulk", {"verb": "priority", "job": job.pk, "priority": "5"}, follow=True)
    assert b"Only operators and admins may raise a priority above 0" in page.content
    page = client.post("/jobs/bulk", {"verb": "priority", "job": job.pk, "priority": "²"}, follow=True)
    assert b"Say which priority" in page.content
    client.force_login(a_user("vic", Role.VIEWER))
    assert client.post("/jobs/bulk", {"verb": "hold", "job": job.pk}).status_code == 403


@pytest.mark.parametrize("path", ["/jobs/", "/jobs/?outcome=failed", "/arrays/{array}?outcome=failed"])
def test_old_jobs_and_members_are_ticked_in_their_own_lists(client: Client, ada: Any, path: str) -> None:
    array = JobArray.objects.create(name="sweep", user=ada, size=2)
    failed = a_finished(ada, "failed", array=array, array_index=0)
    theirs = a_finished(a_user("bob"), "failed", array=array, array_index=1)
    client.force_login(ada)
    where = path.format(array=array.pk)
    page = client.get(where).content.decode()
    assert f'name="job" value="{failed.pk}"' in page
    assert f'name="job" value="{theirs.pk}"' not in page
    assert 'data-is="finished"' in page
    back = page.split('name="back" value="')[1].split('"')[0]
    assert (
        client.post("/jobs/bulk", {"verb": "retry", "job": failed.pk, "back": back}).url.split("?")[0]
        == back.split("?")[0]
    )
    assert Job.objects.get(retry_of=failed).state == "queued"


def test_old_jobs_are_found_by_number_and_by_owner(client: Client, ada: Any) -> None:
    mine, theirs = a_finished(ada, name="one"), a_finished(a_user("bob"), name="two")
    client.force_login(ada)
    for text, found in {f"#{mine.pk}": [mine], "bob": [theirs], "tw": [theirs], "#": []}.items():
        lines = client.get("/jobs/", {"q": text}).context["found"].lines
        assert [line.line.id for line in lines] == [job.pk for job in found], text
