"""What pages say of arrays, of jobs named in sentences, of times far away, and what a refused form keeps."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.template import Context, Template
from django.test import Client
from django.utils import timezone

from placement.models import AuditEntry, Job, JobArray, Member, Role
from placement.selectors import audited, wording
from tests.integration.rows import a_finished, a_forecast, a_job, a_machine, a_user

pytestmark = pytest.mark.django_db
SUBMISSION = {"command": "true", "cwd": "/tmp", "form_key": "k", "gpu": "none", "exclusive": "no", "workers": "1"}


@pytest.fixture
def ada(client: Client) -> Any:
    user = a_user("ada", Role.ADMIN)
    client.force_login(user)
    return user


def an_array(user: Any, *states: dict[str, Any], name: str = "sweep") -> JobArray:
    array = JobArray.objects.create(name=name, user=user, size=len(states), limit=2)
    for index, more in enumerate(states):
        made = a_finished if more.get("outcome") else a_job
        made(user, **{"name": name, "array": array, "array_index": index, **more})
    return array


def linked(sentence: str, **more: Any) -> str:
    return Template("{% load tidegate %}{% linked sentence prefix own %}").render(
        Context({"sentence": sentence, "prefix": more.get("prefix", ""), "own": more.get("own")})
    )


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("Waits for #12 (running).", 'Waits for <a href="/jobs/12">#12</a> (running).'),
        ("#1 and #2", '<a href="/jobs/1">#1</a> and #2'),
        ("<b>#7</b> & c#5, #0, #x, #4a", '&lt;b&gt;<a href="/jobs/7">#7</a>&lt;/b&gt; &amp; c#5, #0, #x, #4a'),
        ("it's", "it&#x27;s"),
    ],
)
def test_jobs_that_a_sentence_names_are_links_and_the_rest_is_text(sentence: str, shown: str) -> None:
    assert linked(sentence, own=2) == shown


def test_the_first_link_to_a_job_has_an_id_for_the_focus() -> None:
    assert linked("#3, #3", prefix="lead") == '<a id="lead-3" href="/jobs/3">#3</a>, <a href="/jobs/3">#3</a>'


def test_what_a_job_waits_for_can_be_opened_from_its_page_and_from_the_queue(client: Client, ada: Any) -> None:
    first = a_job(ada)
    job = a_job(ada, headline=f"Waits for #{first.pk} (waiting) to complete.", code="depends")
    assert f'<a id="lead-{first.pk}" href="/jobs/{first.pk}">' in client.get(f"/jobs/{job.pk}").content.decode()
    assert f'<a id="{job.pk}-on-{first.pk}" href="/jobs/{first.pk}">' in client.get("/").content.decode()


def test_an_array_shows_how_its_members_stand_and_which_is_which(client: Client, ada: Any) -> None:
    array = an_array(ada, {"outcome": "completed"}, {"outcome": "failed"}, {}, {})
    page = client.get(f"/arrays/{array.pk}").content.decode()
    assert 'aria-label="1 completed, 1 failed, 2 waiting"' in page
    assert re.findall(r'<rect class="(\w+)" x="([\d.]+)%" width="([\d.]+)%"', page) == [
        ("ok", "0.00", "25.00"),
        ("stop", "25.00", "25.00"),
        ("wait", "50.00", "50.00"),
    ]
    assert "sweep [3]" in page
    assert "Cancel the 2 that wait or run" in page
    named = an_array(ada, {}, {}, name="fold {index}")
    page = client.get(f"/arrays/{named.pk}").content.decode()
    assert re.search(r">fold 1<", page)
    assert "Cancel all 2" in page


def test_an_arrays_page_is_live_until_all_members_ended(client: Client, ada: Any) -> None:
    array = an_array(ada, {"outcome": "completed"}, {})
    page = client.get(f"/arrays/{array.pk}?outcome=queued").content.decode()
    found = re.search(r'hx-get="([^"]+)"', page)
    assert found
    again = found[1].replace("&amp;", "&")
    assert "outcome=queued" in again
    assert client.get(again, headers={"HX-Request": "true"}).status_code == 204
    Job.objects.filter(array=array, array_index=1).update(state="finished", outcome="failed", ended_at=timezone.now())
    last = client.get(again, headers={"HX-Request": "true"})
    assert last.status_code == 286
    assert "No member is in this state now." in last.content.decode()
    assert client.get(f"/arrays/{array.pk + 1}/fragment", headers={"HX-Request": "true"}).status_code == 404


def test_a_refused_form_says_where_to_look_and_each_field_names_its_texts(client: Client, ada: Any) -> None:
    a_machine()
    page = client.post("/submit", {**SUBMISSION, "after": "12 perhaps", "array_limit": "3"}).content.decode()
    assert re.search(r'role="alert" id="wrong">.*<a href="#id_after">After these jobs</a>', page, re.DOTALL)
    field = re.search(r'<input[^>]*id="id_after"[^>]*>', page)
    assert field
    assert 'aria-invalid="true"' in field[0]
    assert 'aria-describedby="id_after_helptext id_after_error"' in field[0]
    for ident in re.search(r'aria-describedby="([^"]+)"', field[0])[1].split():  # type: ignore[index]
        assert f'id="{ident}"' in page
    assert 'value="3"' in page


def test_a_quota_that_cannot_be_read_stays_in_its_field(client: Client, ada: Any) -> None:
    bob = a_user("bob")
    answer = client.post(f"/people/{bob.pk}/quota", {"jobs": "2", "vram": "much", "ram": "1 GiB"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert 'value="much"' in page
    assert 'value="1 GiB"' in page
    assert f'id="quota-wrong-{bob.pk}"' in page
    assert "Device memory:" in page
    assert page.count('aria-invalid="true"') == 1
    answer = client.post(f"/people/{bob.pk}/quota", {"jobs": "99999999", "vram": "", "ram": ""})
    assert answer.status_code == 422
    assert Member.objects.get(user=bob).quota_jobs is None


def test_times_far_ahead_are_days_and_near_ones_a_clock(client: Client, ada: Any) -> None:
    now = timezone.localtime()
    assert wording.near(now, now) == f"{now:%H:%M}"
    assert wording.near(now + timedelta(days=3), now) == f"{now + timedelta(days=3):%Y-%m-%d %H:%M}"
    assert wording.near(now + timedelta(days=900), now) == f"{now + timedelta(days=900):%Y-%m-%d}"
    assert wording.near(now - timedelta(days=900), now).endswith(f"{now:%H:%M}"), "what has been keeps its time"
    assert wording.ahead(now + timedelta(days=900), now) == f"about {now + timedelta(days=900):%Y-%m-%d}"
    assert wording.ahead(now + timedelta(minutes=90), now) == "in about 1 h 30 min"
    job = a_job(ada)
    a_forecast(job, 900 * 86_400.0, 900 * 86_400.0 + 600.0, keeps=False, waits_for=[])
    text = re.sub(r"<[^>]+>", "", client.get(f"/jobs/{job.pk}").content.decode())
    assert re.search(r"Expected to start about \d{4}-\d\d-\d\d\.", text), "the same day is not written twice"


def test_a_guess_is_never_told_from_before_the_time_that_was_set(client: Client, ada: Any) -> None:
    at = timezone.now() + timedelta(days=100)
    job = a_job(ada, not_before=at)
    a_forecast(job, 101 * 86_400.0, 110 * 86_400.0, sure="guess", keeps=False)
    text = re.sub(r"<[^>]+>", "", client.get(f"/jobs/{job.pk}").content.decode())
    early = re.search(r"some time from (\d{4}-\d\d-\d\d) to", text)
    assert early
    assert early[1] >= f"{at:%Y-%m-%d}"


@pytest.mark.parametrize(
    ("detail", "shown"),
    [
        ({}, ""),
        (
            {"before": {"quota_jobs": None, "quota_vram": 1}, "after": {"quota_jobs": 2, "quota_vram": 1}},
            "quota jobs: none → 2",
        ),
        ({"before": {"declared": 24 << 30}, "after": {"declared": 16 << 30}}, "declared: 24.0 GiB → 16.0 GiB"),
        ({"before": "viewer", "after": "admin"}, "viewer → admin"),
        ({"after": "nobody"}, "after nobody"),
        ({"held_by": {"who": "ada", "on": True}, "new": [1, 2]}, "held by: who ada, on yes; new: 1, 2"),
        (None, ""),
    ],
)
def test_an_audit_entry_says_what_differs(detail: Any, shown: str) -> None:
    assert audited.words(detail) == shown


def test_the_audit_page_has_no_marks_of_a_programs_values(client: Client, ada: Any) -> None:
    AuditEntry.objects.create(who="ada", action="set_quota", subject="user bob", detail={"before": {"a": None}})
    page = client.get("/audit").content.decode()
    assert "set quota" in page
    assert "None" not in page
