"""When and how often, through the form, the API and the pages."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from placement.models import AuditEntry, GroupHold, Job, JobArray, Member, Role
from placement.services import jobs, workloads
from tests.integration.rows import GIB, a_finished, a_job, a_machine, a_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(client: Client, settings: Any) -> Any:
    settings.ALLOWED_ROOTS = ["/tmp"]
    a_machine()
    user = a_user("ada", Role.ADMIN)
    client.force_login(user)
    return user


def post(client: Client, path: str, **body: Any) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json")


def submit(client: Client, **body: Any) -> Any:
    return post(client, "/api/v1/jobs", **{"command": "true", "cwd": "/tmp", **body})


def form(client: Client, **fields: Any) -> Any:
    kind = {"kind": "command", "command": "echo {index}", "cwd": "/tmp", "gpu": "none", "form_key": "k1"}
    return client.post("/submit", {**kind, **fields})


def test_the_api_takes_gives_back_and_shows_it(client: Client, ada: Any) -> None:
    first = a_job(ada)
    answer = submit(
        client,
        after=[first.pk, {"job": first.pk, "when": "any"}],
        not_before="2031-12-01T08:00+01:00",
        retry_times=2,
        retry_on=["lost", "Out of memory"],  # as messages and pages write it, too
        retry_wait_s=5,
    )
    assert answer.status_code == 201, answer.content
    job = answer.json()["job"]
    assert [(t["job"], t["when"], t["state"]) for t in job["after"]] == [
        (first.pk, "ok", "queued"),
        (first.pk, "any", "queued"),
    ]
    assert job["not_before"] == "2031-12-01T07:00:00Z"
    assert job["retry"] == {"times": 2, "on": ["lost", "out_of_memory"], "wait_s": 5.0, "longest_s": 3600.0}
    page = client.get(f"/jobs/{job['id']}").content.decode()
    shown = re.sub(r"<[^>]+>", "", page)
    assert f"after #{first.pk} to complete (waiting)" in shown
    assert f"after #{first.pk} to end (waiting)" in shown
    assert "run again up to 2 times if it ends as lost or out of memory: after 5 s, then twice as long" in shown
    assert 'datetime="2031-12-01T07:00:00+00:00"' in page
    assert f"waited for by #{job['id']}" in re.sub(r"<[^>]+>", "", client.get(f"/jobs/{first.pk}").content.decode())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("after", 12),
        ("after", ["twelve"]),
        ("after", [{"job": 12, "how": "ok"}]),
        ("after", [{"job": "12"}]),
        ("after", [{"job": 12, "when": []}]),
        ("after", [999]),
        ("not_before", "2031-12-01T08:00"),
        ("not_before", 5),
        ("array", 10_001),
        ("array", {}),
        ("array_limit", 3),
        ("retry_times", "often"),
        ("retry_on", "failed"),
        ("retry_on", [["failed"]]),
        ("retry_on", ["lost"]),
        ("retry_wait_s", [1]),
    ],
)
def test_the_api_says_beside_the_field_what_is_wrong(client: Client, ada: Any, field: str, value: Any) -> None:
    answer = submit(client, **{field: value})
    assert answer.status_code == 400, answer.content
    wrong = answer.json()["error"]["fields"]
    assert list(wrong) == ["retry_times" if value == ["lost"] else field]
    assert not Job.objects.exists()


def test_an_array_by_api_its_counts_and_its_end(client: Client, ada: Any) -> None:
    job = submit(client, array=4, array_limit=2, name="sweep").json()["job"]
    array = job["array"]["id"]
    assert job["array"] == {"id": array, "index": 0, "size": 4, "limit": 2}
    Job.objects.filter(array_index=1).update(state="finished", outcome="failed")
    seen = client.get(f"/api/v1/arrays/{array}").json()["array"]
    assert (seen["counts"], seen["size"], seen["user"]) == ({"queued": 3, "failed": 1}, 4, "ada")
    assert post(client, f"/api/v1/arrays/{array}/cancel").json()["array"]["counts"] == {"failed": 1, "cancelled": 3}
    assert client.get("/api/v1/arrays/999").status_code == 404
    assert client.get("/api/v1/arrays/99999999999999999999").status_code == 404
    client.force_login(a_user("eve"))
    assert post(client, f"/api/v1/arrays/{array}/cancel").status_code == 403


def test_the_form_makes_an_array_and_its_page_is_compact(client: Client, ada: Any) -> None:
    answer = form(client, array="120", array_limit="2")
    array = JobArray.objects.get()
    assert answer["Location"] == f"/arrays/{array.pk}"
    assert form(client, array="120", array_limit="2")["Location"] == f"/arrays/{array.pk}"  # sent twice
    assert Job.objects.count() == 120
    page = client.get(f"/arrays/{array.pk}").content.decode()
    assert "120 waiting" in page
    assert page.count("data-job") == 50
    assert "at most 2 at once" in page
    assert client.get(f"/arrays/{array.pk}?outcome=failed").content.decode().count("data-job") == 0
    job = Job.objects.get(array_index=7)
    seen = re.sub(r"<[^>]+>", "", client.get(f"/jobs/{job.pk}").content.decode())
    assert f"index 7 of 120 in array {array.pk}: 120 waiting, at most 2 at once" in seen
    assert "echo 7" in seen
    assert client.post(f"/arrays/{array.pk}/cancel").status_code == 302
    assert set(Job.objects.values_list("outcome", flat=True)) == {"cancelled"}
    assert client.get("/arrays/999").status_code == 404


def test_on_the_queue_page_an_array_takes_one_line_for_all_that_wait_their_turn(client: Client, ada: Any) -> None:
    form(client, array="500", array_limit="2", command="python sweep.py")
    array = JobArray.objects.get()
    Job.objects.filter(array_index__gte=2).update(code="array_limit")
    page = client.get("/").content.decode()
    assert page.count("data-job") == 1
    assert f'data-array="{array.pk}"' in page
    assert f">499 more of array {array.pk}</a> wait behind it" in page
    assert "<span>500" in page


def test_what_was_typed_stays_and_errors_stand_beside_their_fields(client: Client, ada: Any) -> None:
    typed = {
        "after": "12 perhaps",
        "not_before": "2031-03-01",
        "retry_times": "3",
        "retry_on": "cancelled",
        "retry_wait_s": "a while",
        "array": "20000",
    }
    page = form(client, **typed).content.decode()
    for value in typed.values():
        assert value in page
    for words in ("names no job", "has no time of day", "never run again by itself", "is not a time", "10000"):
        assert words in page
    assert '<details id="terms" open>' in page
    assert '<details id="terms" >' in client.get("/submit").content.decode()
    refused = form(client, after="999").content.decode()
    assert re.search(r'name="after"[^>]*value="999".*?There is no job #999', refused, re.S)
    assert not Job.objects.exists()


def test_the_simple_form_stays_simple_and_nothing_said_means_nothing(client: Client, ada: Any) -> None:
    assert form(client).status_code == 302
    job = Job.objects.get()
    assert (job.array, job.not_before, job.retry_policy, job.dependencies.count()) == (None, None, {}, 0)
    assert form(client, form_key="k2", retry_times="2", retry_wait_s="0", retry_on="lost").status_code == 302
    assert Job.objects.latest("pk").retry_policy["wait_s"] == 0.0


def test_the_preview_says_what_it_would_wait_for(client: Client, ada: Any) -> None:
    first = a_job(ada)
    asked = {"command": "true", "cwd": "/tmp", "gpu": "none", "form_key": "k", "kind": "command"}
    page = client.post("/submit/estimate", {**asked, "after": str(first.pk)}).content.decode()
    assert f'Waits for <a href="/jobs/{first.pk}">#{first.pk}</a> (waiting) to complete.' in page


def test_a_further_try_and_a_repetition_are_told_apart(client: Client, ada: Any) -> None:
    first = a_finished(ada, "failed", retry_policy={"times": 3, "on": ["failed"], "wait_s": 30, "longest_s": 3600})
    second = a_finished(ada, "failed", retry_of=first, retry_number=1, retry_policy=first.retry_policy)
    third = a_job(ada, retry_of=first)
    shown = re.sub(r"<[^>]+>", "", client.get(f"/jobs/{first.pk}").content.decode())
    assert f"tried again as #{second.pk}" in shown
    assert f"repeated as #{third.pk}" in shown
    shown = re.sub(r"<[^>]+>", "", client.get(f"/jobs/{second.pk}").content.decode())
    assert f"tries again #{first.pk}" in shown
    assert "this is try 1" in shown
    assert client.get(f"/api/v1/jobs/{first.pk}").json()["job"]["retried_as"] == second.pk


def test_a_held_group_is_released_by_button_and_by_api(client: Client, ada: Any) -> None:
    held = {"held_by": "tidegate", "held_why": "#1 (code 1) of this group failed", "held_at": "2026-01-01T00:00Z"}
    one, two = a_job(ada, **held), a_job(ada, **held)
    GroupHold.objects.create(user=ada, key_workload=one.key_workload, why="x", held_at=one.submitted_at)
    page = client.get(f"/jobs/{one.pk}").content.decode()
    assert "held by tidegate: #1 (code 1) of this group failed" in re.sub(r"<[^>]+>", "", page)
    assert f'action="/jobs/{one.pk}/release"' in page
    answer = client.post(f"/jobs/{one.pk}/release", follow=True)
    assert "2 jobs of this group are released." in answer.content.decode()
    two.refresh_from_db()
    assert two.held_by == ""
    Job.objects.filter(pk=two.pk).update(**held)
    assert post(client, f"/api/v1/jobs/{two.pk}/release").json()["job"]["held_by"] is None
    assert jobs.release(ada, one.pk) == f"#{one.pk} is released."


def test_a_job_that_does_not_wait_is_not_said_to_be_released(client: Client, ada: Any) -> None:
    for state, outcome in (("admitted", ""), ("running", ""), ("finished", "completed")):
        one = a_job(ada, state=state, outcome=outcome)
        answer = post(client, f"/api/v1/jobs/{one.pk}/release")
        assert answer.status_code == 409
        assert "does not wait any more" in answer.json()["error"]["message"]


def test_an_admin_sets_a_quota_for_one_person_and_it_is_on_record(client: Client, ada: Any) -> None:
    bob = a_user("bob")
    path = f"/people/{bob.pk}/quota"
    assert client.post(path, {"jobs": "2", "vram": "16 GiB", "ram": ""}).status_code == 302
    row = Member.objects.get(user=bob)
    assert (row.quota_jobs, row.quota_vram, row.quota_ram) == (2, 16 * GIB, None)
    page = client.get("/people").content.decode()
    assert 'value="16.0 GiB"' in page
    assert 'placeholder="any"' in page
    said = AuditEntry.objects.get(action="set_quota")
    assert said.detail["after"] == {"quota_jobs": 2, "quota_vram": 16 * GIB, "quota_ram": None}
    answer = client.post(path, {"jobs": "many", "vram": "much", "ram": ""}, follow=True)
    assert "The quota of bob stays as it was." in answer.content.decode()
    assert client.post(path, {"jobs": "", "vram": "0", "ram": ""}).status_code == 302
    row.refresh_from_db()
    assert (row.quota_jobs, row.quota_vram) == (None, 0)
    client.force_login(bob)
    assert client.post(path, {"jobs": "9"}).status_code == 403


def test_a_workload_says_how_its_jobs_are_tried_again_and_a_submission_may_say_otherwise(
    client: Client, ada: Any
) -> None:
    text = 'name = "w"\ncommand = "true"\ncwd = "/tmp"\n[retry]\ntimes = 4\non = ["lost"]\nwait_s = 5\n'
    workloads.define(ada, text)
    for said, times in (({}, 4), ({"retry_times": 0}, None), ({"retry_times": 1}, 1)):
        answer = post(client, "/api/v1/jobs", workload="w", **said)
        assert answer.status_code == 201, answer.content
        policy = answer.json()["job"]["retry"]
        assert (policy and policy["times"]) == times
        assert policy is None or (policy["on"], policy["wait_s"]) == (["lost"], 5.0)
