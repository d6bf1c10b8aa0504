"""The page of one job in every state: what leads, what would start it, what the past looks like, what is not known."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from calibration import clock
from calibration.models import Point
from placement.models import AuditEntry, DecisionRecord, Device, Job, JobArray, Role
from placement.selectors import kept
from placement.services import accounts
from tests.figures import check
from tests.integration.rows import (
    GIB,
    UUIDS,
    a_decision,
    a_finished,
    a_forecast,
    a_job,
    a_machine,
    a_pool,
    a_running,
    a_user,
    an_estimate,
)  # fmt: skip
from tests.integration.test_pages import harm, text_of

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def ada(client: Client, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(kept, "POLLED", 0.0)
    monkeypatch.setattr(accounts, "problem", lambda user: "")  # whoever runs the tests: everybody has an account
    user = a_user("ada")
    client.force_login(user)
    return user


def page(client: Client, job: Job) -> str:
    return text_of(client.get(f"/jobs/{job.pk}"))


def full(ada: Any, **more: Any) -> Job:
    """Return a job of 8 workers that waits on a machine of which one device is taken and the other held."""
    a_machine()
    a_pool("atlas", UUIDS[1], "gpu1", 24 * GIB, 11 * GIB)
    a_running(ada, time_limit_s=3600.0, started_clock=clock.now() - 720)
    Device.objects.filter(uuid=UUIDS[0]).update(held_by="olga", held_at=timezone.now())
    fields = {"workers": 8, "declared_vram": 16 * GIB, "declared_ram": GIB, **more}
    return a_job(ada, **fields)


def test_the_missing_figure_leads(client, ada):
    a_machine()
    job = a_job(ada)
    assert "Waits for 2.2 GiB: it needs 8.2 GiB on one device, and the most room is 6.0 GiB on gpu1." in page(
        client, job
    )


@pytest.mark.parametrize(
    "code, figures, pool, told",
    [
        ("no_room", {"need": 8 * GIB, "room": 3 * GIB}, "ram", "Waits for 5.0 GiB of RAM: it needs 8.0 GiB, and atlas"),
        ("booked", {"need": 8 * GIB, "room": 6 * GIB}, UUIDS[0], "and the most that is not leased is 6.0 GiB on gpu0."),
        ("cold_start_room", {"wanted": 9 * GIB, "left": 6 * GIB}, UUIDS[0], "a first run needs 9.0 GiB free on one"),
        ("no_room", {"need": 8 * GIB, "room": None}, UUIDS[0], "The reason in words."),
        ("exclusive_device", {"who": "#5"}, "", "The reason in words."),
        ("job_held", {}, "", "The reason in words."),
        ("depends", {"waits_for": "#3"}, "", "The reason in words."),
        ("quota", {"need": 8 * GIB, "room": GIB}, "", "The reason in words."),
        ("a_code_of_tomorrow", {}, "", "The reason in words."),
    ],
)
def test_each_kind_of_reason_leads_in_its_own_words(client, ada, code, figures, pool, told):
    a_machine()
    asked = {"code": code, "ok": False, "sentence": "It says no.", "figures": figures, "pool": pool, "shortfall": 7}
    place = {"node": "atlas", "device": UUIDS[0], "label": "gpu0", "checks": [asked], "room": {}, "need": {}}
    decision = {**a_decision(), "code": code, "candidates": [place, {**place, "label": "gpu1", "checks": []}]}
    job = a_job(ada, decision=decision, code=code, headline="The reason in words.")
    assert told in page(client, job)
    assert "It says no." in page(client, job)


def test_what_would_start_it_is_told_from_the_machines_as_they_are(client, ada):
    job = full(ada)
    other = Job.objects.get(state="running")
    shown = page(client, job)
    assert f"Starts when #{other.pk} ends, about" in shown
    assert "(frees 13.0 GiB on gpu1)" in shown
    assert "or after gpu0 is released, which olga holds" in shown
    assert "of device memory declared instead of 16.0 GiB (needs" in shown


def test_a_click_asks_for_less_and_the_audit_keeps_it(client, ada):
    job = full(ada)
    (way,) = [way for way in client.get(f"/jobs/{job.pk}").context["page"].ways if way.button]
    answer = client.post(f"/jobs/{job.pk}/change", dict(way.fields), follow=True)
    job.refresh_from_db()
    assert job.declared_vram == int(dict(way.fields)["declared_vram"]) < 16 * GIB
    assert f"#{job.pk} now asks for" in text_of(answer)
    entry = AuditEntry.objects.get(action="change job")
    assert (entry.who, entry.detail["before"]) == ("ada", {"declared_vram": 16 * GIB})


@pytest.mark.parametrize(
    "sent, said",
    [
        ({"workers": "9"}, "it can have fewer, at least 1, not 9"),
        ({"workers": "0"}, "at least 1, not 0"),
        ({"time_limit_s": "0"}, "can get a time limit of 1 s or more"),
        ({"workers": "many"}, "'many' is no figure"),
        ({"declared_vram": str(17 * GIB)}, "it can declare less, not 17.0 GiB"),
        ({}, "Nothing of #"),
    ],
)
def test_more_than_before_is_refused_with_a_sentence(client, ada, sent, said):
    job = full(ada)
    assert said in text_of(client.post(f"/jobs/{job.pk}/change", sent, follow=True))
    job.refresh_from_db()
    assert (job.workers, job.declared_vram) == (8, 16 * GIB)


def test_a_job_that_started_meanwhile_is_not_changed(client, ada):
    a_machine()
    job = a_running(ada, workers=8)
    assert "does not wait any more" in text_of(client.post(f"/jobs/{job.pk}/change", {"workers": "4"}, follow=True))
    assert Job.objects.get(pk=job.pk).workers == 8


def test_others_are_told_the_way_and_have_no_button(client, ada):
    job = full(ada)
    client.force_login(a_user("bob"))
    answer = client.get(f"/jobs/{job.pk}")
    assert "Starts when" in text_of(answer)
    assert b"/change" not in answer.content
    assert client.post(f"/jobs/{job.pk}/change", {"workers": "4"}).status_code == 403


def test_a_held_job_says_after_its_release(client, ada):
    a_machine()
    job = a_job(ada, held_by="ada", held_at=timezone.now(), declared_vram=GIB, declared_ram=GIB, code="job_held")
    assert "Starts after it is released" in page(client, job)
    assert 'id="release"' in client.get(f"/jobs/{job.pk}").content.decode()


def test_where_nothing_of_the_kind_helps_nothing_is_promised(client, ada):
    a_machine()
    job = a_job(ada, declared_vram=90 * GIB, declared_ram=GIB, workers=1)
    assert not [way for way in client.get(f"/jobs/{job.pk}").context["page"].ways if way.kind == "ends"]


def test_an_array_member_that_is_far_behind_still_shows(client, ada):
    a_machine()
    array = JobArray.objects.create(user=ada, name="many", size=500)
    for index in range(3):
        a_job(ada, array=array, array_index=index)
    assert client.get(f"/jobs/{Job.objects.last().pk}").status_code == 200


def test_objections_stand_open_and_what_passed_is_folded(client, ada):
    a_machine()
    body = client.get(f"/jobs/{a_job(ada).pk}").content.decode()
    assert body.index("room on gpu1 is 6.0 GiB") < body.index('<details class="place passed" id="passed">')
    assert "2 checks passed" in body
    assert '<a class="n" href="/reasons#no_room"' in body
    assert body.count('<rect class="mark"') == 2  # what it needs, on each bar


def test_a_figure_that_the_sentence_tells_is_not_told_twice(client, ada):
    a_machine()
    sentence = "gpu0 is set aside for #12 in 2 min; this run may last longer."
    figures = {"for": 12, "at": 14977.6, "in": 116.7, "lasts": None}
    asked = {"code": "set_aside", "ok": False, "sentence": sentence, "figures": figures, "pool": "", "shortfall": 0}
    place = {"node": "atlas", "device": UUIDS[0], "label": "gpu0", "checks": [asked], "room": {}, "need": {}}
    job = a_job(ada, decision={**a_decision(), "code": "set_aside", "candidates": [place]}, code="set_aside")
    (row,) = client.get(f"/jobs/{job.pk}").context["page"].verdict.places[0].objections
    assert [(figure.name, figure.text) for figure in row.figures] == [("lasts", "unknown")]


def test_every_code_is_explained_on_a_page(client, ada):
    told = text_of(client.get("/reasons"))
    assert "no_room" in told
    assert "need ≤ free − kept − growth?" in told
    assert "What ends the wait: memory is freed, or a run settles." in told


def test_the_line_has_each_reason_once_while_it_stood_and_then_the_run(client, ada):
    a_machine()
    now = timezone.now()
    job = a_running(ada, started_at=now - timedelta(seconds=60), admitted_at=now - timedelta(seconds=60))
    Job.objects.filter(pk=job.pk).update(submitted_at=now - timedelta(seconds=300))
    for ago, code in ((300, "depends"), (240, "no_room"), (200, "no_room"), (120, "booked"), (60, "")):
        verdict = "start" if not code else "wait"
        at = now - timedelta(seconds=ago)
        DecisionRecord.objects.create(
            job=job, at=at, verdict=verdict, code=code, headline=f"Told {ago} s ago.", body={}
        )
    phases = client.get(f"/jobs/{job.pk}").context["page"].timeline
    assert [one.key for one in phases] == ["depends", "no_room", "booked", "run"]
    assert [one.took for one in phases] == ["1 min", "2 min", "1 min", ""]
    assert phases[1].sentence == "Told 200 s ago."
    assert phases[1].times == 2
    assert sum(one.width for one in phases) == pytest.approx(100, abs=0.1)
    assert phases[1].width == pytest.approx(2 * phases[0].width, rel=0.05)


@pytest.mark.parametrize(
    "outcome",
    ["completed", "failed", "cancelled", "timed_out", "cap_exceeded", "out_of_memory", "start_failed", "lost"],
)
def test_every_end_shows_with_its_evidence_in_words(client, ada, outcome):
    a_machine()
    evidence = {
        "feeds": "lower_bound",
        "memory": "vram",
        "cap_receipt": {"asked": 2 * GIB, "held": 12 * GIB, "device_free": GIB, "cap": 13 * GIB},
        "watchdog": {"sentence": "watchdog: used 14 GiB.", "pool": UUIDS[1], "used": 14 * GIB, "samples": 3},
        "exit": {"stopped_by": "watchdog", "killed": True, "swept": 0, "max_rss_bytes": 60 << 20, "trimmed_bytes": 0},
    }
    job = a_finished(ada, outcome, evidence=evidence, leftovers=[{"pid": 7, "name": "python"}])
    shown = page(client, job)
    for told in (
        "memory that ran outdevice memory", "asked for when it was refused2.0 GiB", "its cap13.0 GiB",
        "largest process, by the kernel60 MiB", "stopped bythe watchdog", "poolgpu1", "pid 7, name python",
        "it teachesa lower bound, where it used more than was known",
    ):  # fmt: skip
        assert told in shown.replace("> <", "><"), told
    assert "max rss bytes" not in shown
    assert "trimmed" not in shown
    assert 'id="again" href="/submit?again=' in client.get(f"/jobs/{job.pk}").content.decode()


def test_an_old_row_with_hardly_anything_in_it_still_shows(client, ada):
    old = {"decision": {}, "estimate": {}, "charges": {}, "used": {}, "history": None, "evidence": {"odd": [1, {}]}}
    old.pop("history")
    for job in (
        a_job(ada, **{**old, "headline": "", "code": "", "decided_at": None}),
        a_running(ada, **{**old, "device": "", "node": "", "started_at": None}),
        a_finished(ada, **{**old, "ended_at": None, "started_at": None, "duration_s": None, "sentence": ""}),
        a_finished(ada, "cancelled", **{**old, "started_at": None, "admitted_at": None}),
    ):
        answer = client.get(f"/jobs/{job.pk}")
        assert answer.status_code == 200
        assert harm(answer.content.decode()) == []
    ladder = an_estimate()
    ladder["pools"]["vram"]["rungs"].append({"basis": "hint", "bytes": None, "why": "", "counted": False})
    assert client.get(f"/jobs/{a_job(ada, estimate=ladder).pk}").context["page"].ladders[0].rungs[-1].why == "–"


def test_what_a_run_used_is_drawn_under_its_cap_and_charge(client, ada):
    a_machine()
    now = timezone.now()
    job = a_running(ada, started_at=now - timedelta(seconds=30))
    second = int(now.timestamp())
    for ago in range(25, 0, -1):
        owners = {f"job:{job.pk}": (25 - ago) * GIB // 4} if ago > 5 else {}
        for pool in (UUIDS[1], "ram"):
            Point.objects.create(node="atlas", pool=pool, step=1, at=second - ago, used=9 * GIB, owners=owners)
    answer = client.get(f"/jobs/{job.pk}/memory/device").json()
    check(answer)
    used, *levels = answer["data"]
    assert [one["name"] for one in levels] == ["cap", "charge", "estimate"]
    assert [one["y"][0] for one in levels] == [18.0, 13.0, 8.2]
    assert max(used["y"]) == 4.75
    assert used["y"][-1] == 0  # it held nothing any more, and that was read
    assert client.get(f"/jobs/{job.pk}/memory/device?v={answer['version']}").status_code == 204
    check(client.get(f"/jobs/{job.pk}/memory/ram").json())
    assert client.get(f"/jobs/{job.pk}/memory/disk").status_code == 404
    waiting = client.get(f"/jobs/{a_job(ada).pk}/memory/device").json()
    assert waiting["data"] == []


def test_a_run_of_days_ago_is_drawn_from_what_is_kept_of_it(client, ada):
    a_machine()
    then = timezone.now() - timedelta(days=10)
    job = a_finished(ada, started_at=then, ended_at=then + timedelta(hours=2))
    for step in range(0, 7200, 300):
        at = int(then.timestamp()) // 300 * 300 + step
        Point.objects.create(node="atlas", pool="ram", step=300, at=at, used=GIB, owners={f"job:{job.pk}": GIB})
    answer = client.get(f"/jobs/{job.pk}/memory/ram").json()
    assert 20 <= len(answer["data"][0]["x"]) <= 25
    assert set(answer["data"][0]["y"]) == {1.0}


def test_the_part_is_204_while_nothing_changes_and_whole_when_it_does(client, ada):
    a_machine()
    job = a_job(ada)
    a_forecast(job)
    Job.objects.filter(pk=job.pk).update(submitted_at=timezone.now() - timedelta(hours=1))
    version = client.get(f"/jobs/{job.pk}").context["version"]
    assert client.get(f"/jobs/{job.pk}/fragment?v={version}", headers=HTMX).status_code == 204
    Job.objects.filter(pk=job.pk).update(priority=-5)
    answer = client.get(f"/jobs/{job.pk}/fragment?v={version}", headers=HTMX)
    assert answer.status_code == 200
    assert "priority -5" in text_of(answer)


def test_the_title_says_the_state_first(client, ada):
    a_machine()
    job = a_job(ada)
    body = client.get(f"/jobs/{job.pk}").content.decode()
    assert f"<title>waiting · #{job.pk} train-vit · Tidegate</title>" in body
    assert f'data-title="waiting · #{job.pk} train-vit"' in body
    assert client.get(f"/jobs/{a_finished(ada, 'cap_exceeded').pk}").context["page"].state_word == "over its cap"


def test_a_priority_is_set_from_the_page_and_above_zero_by_operators_alone(client, ada):
    a_machine()
    job = a_job(ada)
    client.post(f"/jobs/{job.pk}/priority", {"priority": "-3"})
    assert Job.objects.get(pk=job.pk).priority == -3
    assert client.post(f"/jobs/{job.pk}/priority", {"priority": "5"}).status_code == 403
    assert "'x' is no priority" in text_of(client.post(f"/jobs/{job.pk}/priority", {"priority": "x"}, follow=True))
    client.force_login(a_user("olga", Role.OPERATOR))
    client.post(f"/jobs/{job.pk}/priority", {"priority": "5"})
    assert Job.objects.get(pk=job.pk).priority == 5


def test_hostile_text_runs_nowhere(client, ada):
    a_machine()
    evil = "<img src=x onerror=alert(1)>"
    for job in (
        a_job(ada, name=evil, headline=evil, held_by=evil, held_why=evil),
        a_finished(ada, sentence=evil, evidence={evil: evil}, leftovers=[evil]),
    ):
        assert harm(client.get(f"/jobs/{job.pk}").content.decode()) == []
