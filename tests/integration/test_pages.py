from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import pytest
from django.test import Client
from django.utils import timezone

from calibration.models import Sediment
from placement.models import Cycle, Device, Job, Node, Role
from placement.selectors import kept
from placement.selectors.device import page_of
from tests.integration.rows import GIB, UUIDS, a_finished, a_forecast, a_job, a_machine, a_pool, a_running, a_user

pytestmark = pytest.mark.django_db

PAGES = ["/", "/submit", "/devices", "/jobs/", "/forecasts/", "/people", "/audit"]
HTMX = {"HX-Request": "true"}
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def ada(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kept, "POLLED", 0.0)  # each poll reads what the test has just written
    user = a_user("ada", Role.ADMIN)
    client.force_login(user)
    return user


def text_of(response) -> str:
    """Return what a reader sees, whitespace collapsed."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", response.content.decode())))


def fields(response) -> dict[str, str]:
    """Return the values of all inputs of a page."""
    found = {}
    for tag in re.findall(r"<input[^>]*>", response.content.decode()):
        name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
        if name and ('type="radio"' not in tag or "checked" in tag):
            found[name[1]] = unescape(value[1]) if value else ""
    return found


class Harm(HTMLParser):
    """Collects what could run: handlers, script addresses, scripts with a body, images that no page of ours has."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside = ""

    def handle_starttag(self, tag, attrs):
        self.inside = tag
        for name, value in attrs:
            if name.startswith("on") or (value or "").strip().lower().startswith("javascript:"):
                self.found.append(f"{tag} {name}={value}")
        if (tag == "img" and dict(attrs).get("src") == "x") or (
            tag == "script" and not dict(attrs).get("src") and dict(attrs).get("type") is None
        ):
            self.found.append(tag)

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside == "script" and "alert(1)" in data:
            self.found.append(data)


def harm(body: str) -> list[str]:
    """Return everything in a page that could run."""
    parser = Harm()
    parser.feed(body)
    return parser.found


@pytest.mark.parametrize("path", PAGES)
def test_every_page_answers_before_anything_has_happened(client, ada, path):
    assert client.get(path).status_code == 200


@pytest.mark.parametrize("path", PAGES)
def test_no_page_has_inline_style_or_script(client, ada, path):
    a_machine()
    a_job(ada), a_running(ada), a_finished(ada)
    body = client.get(path).content.decode()
    assert not re.search(r"<[^>]+\s(style|on[a-z]+)=", body)
    assert not re.search(r"<script(?![^>]*\ssrc=)", body)
    assert "<style" not in body


def test_the_queue_leads_with_the_reason_in_figures(client, ada):
    a_machine()
    a_job(ada)
    page = text_of(client.get("/"))
    assert "most room is 6.1 GiB on gpu1, after 2.0 GiB kept for #38 to grow" in page
    assert "2.2 GiB short" in page


def test_a_tank_shows_owner_growth_and_what_is_left(client, ada):
    a_machine()
    job = a_running(ada)
    a_pool("atlas", UUIDS[1], "gpu1", 24 * GIB, 11 * GIB, owners={f"job:{job.pk}": 11 * GIB})
    page = text_of(client.get("/"))
    assert f"#{job.pk} train-vit 11.0 GiB + 2.0 GiB growth" in page
    assert "10.8 GiB left" in page  # 24 - 11 used - 2 growth - 0.24 floor
    assert "11.0 of 13.0 GiB" in page


def test_unknown_use_is_said_and_not_drawn_as_zero(client, ada):
    a_machine()
    a_running(ada, used={UUIDS[1]: None, "ram": None})
    page = text_of(client.get("/"))
    assert "unknown of 13.0 GiB" in page
    assert "not measured + 13.0 GiB growth" in page


def test_a_pool_that_is_not_read_is_closed(client, ada):
    a_machine()
    a_pool("atlas", UUIDS[0], "gpu0", 24 * GIB, GIB, read_at=1.0)
    a_pool("atlas", UUIDS[1], "gpu1", 24 * GIB, GIB, state="lost", message="fell off the bus")
    page = text_of(client.get("/"))
    assert "last reading older than 5 s: nothing new starts here" in page
    assert "lost: fell off the bus" in page


def test_an_outsider_is_named_and_its_command_is_for_operators(client, ada):
    a_machine()
    a_pool(
        "atlas", UUIDS[0], "gpu0", 24 * GIB, 21 * GIB, external=20 * GIB, external_who=[[900, "u2", "vllm", 20 * GIB]]
    )
    assert "not ours: u2, pid 900, vllm 20.0 GiB" in text_of(client.get("/"))
    client.force_login(a_user("vic", Role.VIEWER))
    assert "not ours: u2, pid 900 20.0 GiB" in text_of(client.get("/"))


def test_the_fragment_is_204_while_nothing_changes_and_new_when_it_does(client, ada):
    a_machine()
    job = a_job(ada)
    version = client.get("/").context["version"]
    poll = f"/fragments/queue?v={version}"
    assert client.get(poll, headers=HTMX).status_code == 204
    Job.objects.filter(pk=job.pk).update(headline="Needs 9.9 GiB.")
    answer = client.get(poll, headers=HTMX)
    assert answer.status_code == 200
    assert "Needs 9.9 GiB." in text_of(answer)
    assert b"<html" not in answer.content


def test_a_reading_that_looks_the_same_is_no_change(client, ada):
    a_machine()
    version = client.get("/").context["version"]
    a_pool("atlas", "ram", "RAM", 64 * GIB, 8 * GIB + 4096)
    assert client.get(f"/fragments/queue?v={version}", headers=HTMX).status_code == 204


def test_banners_say_what_everybody_must_know(client, ada):
    node = a_machine()
    Device.objects.filter(uuid=UUIDS[0]).update(simulated=True)
    Node.objects.filter(pk=node.pk).update(broker_away_since=timezone.now())
    Cycle.objects.update_or_create(pk=1, defaults={"held_by": "olga", "held_at": timezone.now(), "held_why": "reboot"})
    page = text_of(client.get("/"))
    assert "gpu0 is simulated" in page
    assert "The message broker is away" in page
    assert "held by olga: reboot" in page
    assert re.search(r"\bruns? as\b", page)  # whose account jobs run as


def test_flags_stand_beside_the_state_as_words(client, ada):
    a_machine()
    a_running(ada, leader_exit={"code": 0}, members=[{}, {}, {}], unsupervised=True)
    a_running(ada, stop_requested_at=timezone.now(), stop_by="olga")
    page = text_of(client.get("/"))
    assert "finishing, 3 processes left" in page
    assert "unsupervised" in page
    assert "stopping, asked by olga" in page


def test_the_job_page_shows_every_check_the_sum_and_the_ladder(client, ada):
    a_machine()
    job = a_job(ada)
    a_forecast(job)
    page = text_of(client.get(f"/jobs/{job.pk}"))
    assert "24.0 GiB total − 15.0 GiB used − 2.0 GiB growth − 1.0 GiB kept = 6.0 GiB room" in page
    assert "Nobody holds this job." in page
    assert "gpu0 has less." in page
    assert "8 workers seen 14 times" in page
    assert "Nothing younger may delay that." in page
    assert "python train.py --secret-plan" in page


def test_a_finished_job_says_how_it_ended_and_stops_the_polling(client, ada):
    a_machine()
    job = a_finished(ada, "cap_exceeded", sentence="Used 14.2 GiB, cap 13.0 GiB.", evidence={"used": 14 * GIB})
    page = client.get(f"/jobs/{job.pk}")
    assert "Used 14.2 GiB, cap 13.0 GiB." in text_of(page)
    assert "over its cap" in text_of(page)
    assert b"data-poll" not in page.content
    assert client.get(f"/jobs/{job.pk}/fragment?v=x", headers=HTMX).status_code == 286


def test_a_finished_job_shows_the_most_it_used_and_what_was_learned(client, ada):
    a_machine()
    job = a_finished(ada, evidence={"feeds": "need"}, used={UUIDS[1]: 0, "ram": 0})
    before = text_of(client.get(f"/jobs/{job.pk}"))
    assert "not measured of 13.0 GiB granted" in before
    Sediment.objects.create(
        owner=f"job:{job.pk}", workload="train", completed=True, outcome="completed", at=timezone.now(),
        peaks={"vram": 12 * GIB, "ram": 3 * GIB},
    )  # fmt: skip
    answer = client.get(f"/jobs/{job.pk}")
    page = text_of(answer)
    assert "What it held" in page
    assert "peak 12.0 GiB of 13.0 GiB granted" in page
    assert "peak 3.0 GiB of 4.0 GiB granted" in page
    assert b"<dt>it teaches</dt><dd>what the next run needs</dd>" in answer.content


def test_old_or_broken_json_in_a_row_still_shows(client, ada):
    a_machine()
    job = a_job(ada, decision={"candidates": ["x", {"checks": [7]}], "planned": 3}, estimate={"pools": {"ram": 5}})
    assert client.get(f"/jobs/{job.pk}").status_code == 200
    assert client.get("/").status_code == 200


def test_the_same_form_sent_twice_makes_one_job(client, ada):
    a_machine()
    form = {**fields(client.get("/submit")), "command": "sleep 60", "cwd": "/tmp", "gpu": "none"}
    first, second = client.post("/submit", form), client.post("/submit", form)
    job = Job.objects.get()
    assert first.url == second.url == f"/jobs/{job.pk}"
    assert job.name == "sleep 60"


def test_what_was_typed_is_kept_when_a_field_is_wrong(client, ada):
    a_machine()
    form = {
        **fields(client.get("/submit")),
        "command": "run --this",
        "cwd": "relative",
        "declared_ram": "many",
        "gpu": "none",
    }
    answer = client.post("/submit", form)
    assert answer.status_code == 422
    assert not Job.objects.exists()
    assert "run --this" in answer.content.decode()
    assert 'value="relative"' in answer.content.decode()
    assert 'value="many"' in answer.content.decode()
    assert "&#x27;many&#x27;" in answer.content.decode()


@pytest.mark.parametrize("amount", ["-1", "NaN", "inf", "1e30", "24 parsecs"])
def test_an_amount_that_is_none_gets_a_sentence_beside_its_field(client, ada, amount):
    a_machine()
    form = {**fields(client.get("/submit")), "command": "x", "cwd": "/tmp", "gpu": "one", "declared_vram": amount}
    answer = client.post("/submit", form)
    assert answer.status_code == 422
    assert answer.context["form"].errors["declared_vram"]


def test_what_can_never_fit_is_refused_and_nothing_is_stored(client, ada):
    a_machine()
    form = {**fields(client.get("/submit")), "command": "x", "cwd": "/tmp", "gpu": "one", "declared_vram": "30000 MiB"}
    answer = client.post("/submit", form)
    assert answer.status_code == 422
    assert not Job.objects.exists()
    assert "can give at most" in text_of(answer)


def test_what_is_too_much_to_read_is_told_as_such(client, ada):
    for sent in ({"command": "x" * 3_000_000}, {"job": list(range(1001))}):
        answer = client.post("/submit", sent)
        assert answer.status_code == 400
        assert "more than 2.5 MB or more than 1,000 fields" in text_of(answer)


def test_the_estimate_answers_while_typing(client, ada):
    a_machine()
    form = {"form_key": "k", "command": "python train.py", "cwd": "/tmp", "gpu": "one", "workers": "1"}
    answer = client.post("/submit/estimate", form, headers=HTMX)
    assert answer.status_code == 200
    assert "cold start" in text_of(answer)
    assert '"gpu": "one"' in answer["HX-Trigger"]
    half = client.post("/submit/estimate", {**form, "declared_ram": "24 x"}, headers=HTMX)
    assert "is not a unit" in text_of(half)


def test_hold_release_cancel_and_run_again(client, ada):
    a_machine()
    job = a_job(ada)
    client.post(f"/jobs/{job.pk}/hold")
    job.refresh_from_db()
    assert job.held_by == "ada"
    client.post(f"/jobs/{job.pk}/release")
    assert "is cancelled" in text_of(client.post(f"/jobs/{job.pk}/cancel", follow=True))
    job.refresh_from_db()
    assert (job.state, job.outcome) == ("finished", "cancelled")
    client.post(f"/jobs/{job.pk}/retry")
    assert Job.objects.get(retry_of=job).state == "queued"


def declaration(client: Client, row: Device | Node) -> dict[str, str]:
    """Return the fields in which a thing is declared, as its page has them."""
    prefix = f"{type(row).__name__.lower()}-{row.pk}-"
    return {k: v for k, v in fields(client.get(page_of(row))).items() if k.startswith(prefix)}


def test_an_unchanged_text_keeps_the_stored_bytes(client, ada):
    a_machine()
    odd = 24 * GIB - 12_345
    Device.objects.filter(uuid=UUIDS[0]).update(declared=odd)
    device = Device.objects.get(uuid=UUIDS[0])
    form = declaration(client, device)
    form[f"device-{device.pk}-name"] = "card"
    client.post(f"/declarations/device/{device.pk}/edit", form)
    device.refresh_from_db()
    assert (device.name, device.declared) == ("card", odd)


def test_an_edit_says_before_saving_what_it_does_and_refuses_stale_sight(client, ada):
    a_machine()
    device = Device.objects.get(uuid=UUIDS[0])
    form = declaration(client, device)
    form[f"device-{device.pk}-declared"] = "12 GiB"
    preview = client.post(f"/declarations/device/{device.pk}/preview", form, headers=HTMX)
    assert "12.0 GiB" in text_of(preview)
    Device.objects.filter(pk=device.pk).update(declared=20 * GIB)  # somebody else was faster
    answer = client.post(f"/declarations/device/{device.pk}/edit", form, follow=True)
    assert "was changed meanwhile" in text_of(answer)
    device.refresh_from_db()
    assert device.declared == 20 * GIB


def test_the_preview_of_an_edit_that_would_be_refused_says_so(client, ada):
    node = a_machine()
    device = Device.objects.get(uuid=UUIDS[0])
    form = declaration(client, device)
    form[f"device-{device.pk}-declared"] = "999 GiB"
    shown = text_of(client.post(f"/declarations/device/{device.pk}/preview", form, headers=HTMX))
    saved = text_of(client.post(f"/declarations/device/{device.pk}/edit", form, follow=True))
    (told,) = re.findall(r"999\.0 GiB[^.]*\.", shown)
    assert told in saved
    form = {f"node-{node.pk}-ram_declared": "999 TiB", f"node-{node.pk}-seen": "{}"}
    assert "stays for others" not in text_of(client.post(f"/declarations/node/{node.pk}/preview", form))


@pytest.mark.parametrize("seen", ["", "x", "[]", '{"declared": "x"}', '{"declared": 1e999}', '{"name": [1]}'])
def test_what_an_admin_saw_may_come_back_as_anything(client, ada, seen: str):
    a_machine()
    device = Device.objects.get(uuid=UUIDS[0])
    form = {"name": device.name, "declared": "12 GiB", "seen": seen}
    answer = client.post(
        f"/declarations/device/{device.pk}/edit", {f"device-{device.pk}-{k}": v for k, v in form.items()}
    )
    assert answer.status_code == (302 if seen else 422)


def test_the_ram_that_jobs_may_take_is_declared_and_taken_back(client, ada):
    node = a_machine()
    form = declaration(client, node)
    client.post(f"/declarations/node/{node.pk}/edit", {**form, f"node-{node.pk}-ram_declared": "3 GB"})
    node.refresh_from_db()
    assert node.ram_declared == 3 * 10**9
    form = declaration(client, node)
    client.post(f"/declarations/node/{node.pk}/edit", {**form, f"node-{node.pk}-ram_declared": ""})
    node.refresh_from_db()
    assert node.ram_declared is None


def test_jobs_are_listed_by_key_own_or_all(client, ada):
    a_machine()
    bob = a_user("bob")
    for n in range(60):
        a_finished(bob if n % 2 else ada, name=f"run-{n}")
    first = client.get("/jobs/")
    older = client.get(f"/jobs/{first.context['older']}")
    seen = [line.line.id for page in (first, older) for line in page.context["found"].lines]
    assert len(seen) == len(set(seen)) == 60
    assert all(line.line.owner == "ada" for line in client.get("/jobs/?whose=mine").context["found"].lines)


def test_an_admin_adds_somebody_and_sees_their_link_once(client, ada):
    page = client.post("/people/add", {"name": "cleo", "role": "submitter"})
    link = re.search(r"/login/link/[\w-]+", page.content.decode())
    assert link
    assert link[0] not in client.get("/people").content.decode()


def test_a_refused_account_leaves_the_role_as_it_was(client, ada):
    bob = a_user("bob", Role.SUBMITTER)
    answer = client.post(f"/people/{bob.pk}/edit", {"role": "operator", "account": "nobody-of-that-name"}, follow=True)
    assert "no Unix account" in answer.content.decode()
    bob.member.refresh_from_db()
    assert (bob.member.role, bob.member.account) == ("submitter", "")


def test_hostile_text_runs_nowhere(client, ada, tmp_path):
    """Names, notes, commands, reasons, outsiders and output are data on every page."""
    node = a_machine()
    shout = "x </script><script>alert(1)</script>"
    (tmp_path / "stdout.log").write_text(
        "\x1b[31m<script>alert(1)</script>\x1b[0m \x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07\n"
    )
    bad_check = {"code": HOSTILE, "sentence": shout, "figures": {HOSTILE: shout}}
    common = {
        "name": HOSTILE,
        "note": "\"' onmouseover=alert(1) x='",
        "command": shout,
        "headline": shout,
        "cwd": f"/tmp/{HOSTILE}",
        "flags": [shout],
        "run_dir": str(tmp_path),
        "decision": {"headline": shout, "candidates": [{"label": HOSTILE, "checks": [bad_check]}]},
        "estimate": {"basis": HOSTILE, "pools": {HOSTILE: {"rungs": [{"basis": HOSTILE, "why": shout}]}}},
    }  # fmt: skip
    jobs = [a_job(ada, **common), a_running(ada, **common), a_finished(ada, sentence=shout, **common)]
    a_pool(
        "atlas",
        UUIDS[0],
        HOSTILE,
        24 * GIB,
        4 * GIB,
        external=GIB,
        external_who=[[9, shout, shout, GIB]],
        message=shout,
    )
    Device.objects.filter(uuid=UUIDS[0]).update(
        name=HOSTILE, model=shout, held_by=HOSTILE, held_why=shout, held_at=timezone.now()
    )
    Node.objects.filter(pk=node.pk).update(watchdog_note=shout, notes=[shout])
    paths = [
        *PAGES,
        "/fragments/queue?v=x",
        "/fragments/pools?v=x",
        "/admin/placement/job/",
        "/jobs/?q=%3Cscript%3Ealert(1)",
    ]
    for job in jobs:
        paths += [f"/jobs/{job.pk}", f"/jobs/{job.pk}/fragment?v=x", f"/jobs/{job.pk}/log?stream=stdout"]
        paths += [f"/admin/placement/job/{job.pk}/change/"]
    ada.is_staff = ada.is_superuser = True
    ada.save()
    for path in paths:
        answer = client.get(path, headers=HTMX)
        assert answer.status_code in (200, 286), path
        assert harm(answer.content.decode()) == [], path
    log = client.get(f"/jobs/{jobs[0].pk}/log", headers=HTMX)
    assert '<span class="f1">&lt;script&gt;alert(1)&lt;/script&gt;</span> link' in log.content.decode()


def test_many_viewers_share_one_reading(client, ada, monkeypatch, django_assert_max_num_queries):
    a_machine()
    monkeypatch.setattr(kept, "POLLED", 60.0)
    version = re.findall(r"queue\?v=(\w+)", client.get("/fragments/queue?v=x", headers=HTMX).content.decode())[0]
    with django_assert_max_num_queries(4):  # session, user, role
        assert client.get(f"/fragments/queue?v={version}", headers=HTMX).status_code == 204


@pytest.mark.parametrize("near", [True, False])
def test_a_figure_that_was_not_read_exactly_is_marked(client: Client, ada, near: bool) -> None:
    a_machine()
    job = a_running(ada)
    Job.objects.filter(pk=job.pk).update(charges={p: {**c, "approximate": near} for p, c in job.charges.items()})
    assert ("≈ 11.0 GiB" in text_of(client.get(f"/jobs/{job.pk}"))) is near


def test_a_job_page_names_its_time_limit(client: Client, ada) -> None:
    a_machine()
    assert "limit 2 h" in text_of(client.get(f"/jobs/{a_running(ada, time_limit_s=7200).pk}"))
