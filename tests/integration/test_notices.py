from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from placement.domain.errors import NotFound, Refused
from placement.domain.notices import DEFAULT, Kind
from placement.models import Delivery, Hook, Job, JobArray, Member, Notice, NoticeSettings, Role
from placement.selectors import notices as shown
from placement.services import delivering, jobs, notices, retention
from tests.integration.rows import a_finished, a_job, a_running, a_user
from tests.integration.work import counted
from tests.wait import until

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
SECRET = "s3cr3t-token"


@pytest.fixture
def ada(client: Client):
    user = a_user("ada")
    client.force_login(user)
    return user


class Sink(http.server.BaseHTTPRequestHandler):
    status, got = 200, []

    def do_POST(self):
        self.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def sink() -> Iterator[type[Sink]]:
    class Own(Sink):
        status, got = 200, []

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Own)
    Own.address = f"http://127.0.0.1:{server.server_port}/{SECRET}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Own
    server.shutdown()
    thread.join()
    server.server_close()


def titles(user) -> list[str]:
    return [n.title.partition(" ")[2] for n in Notice.objects.filter(user=user).order_by("pk")]


def through(courier: delivering.Courier) -> None:
    """Let a round begin and end."""
    courier._next = float("-inf")
    courier.step()
    until(lambda: courier._round is None or courier._round.process.poll() is not None, 20, "the courier to be through")
    courier.step()


def test_ends_are_told_in_bulk_with_few_statements(ada) -> None:
    ids = [a_finished(ada, name=f"n{n}", outcome="completed" if n % 2 else "failed").pk for n in range(32)]
    with counted() as work:
        notices.ended(ids)
    assert work.queries <= 6
    assert Notice.objects.filter(user=ada, kind="finished").count() == 16
    assert Notice.objects.filter(user=ada, kind="failed").count() == 16
    with counted() as work:
        notices.ended([])
        notices.tell([])
        notices.started([])
    assert work.queries == 0


def test_who_wants_to_hear_nothing_costs_no_rows(ada) -> None:
    notices.choose(ada, [], 10)
    notices.ended([a_finished(ada).pk])
    assert not Notice.objects.exists()
    notices.choose(ada, ["failed", "nonsense"], 10)
    notices.ended([a_finished(ada).pk, a_finished(ada, "failed").pk])
    assert [n.kind for n in Notice.objects.all()] == ["failed"]


def test_a_further_try_is_told_with_the_failure(ada) -> None:
    job = a_finished(ada, "failed", sentence="Failed with code 1.")
    again = a_job(ada, retry_of=job, retry_number=1)
    notices.ended([job.pk])
    told = Notice.objects.get()
    assert (told.kind, told.sentence) == ("retried", f"Failed with code 1. #{again.pk} follows.")


def test_of_an_array_the_first_failure_and_the_end_are_told(ada) -> None:
    array = JobArray.objects.create(user=ada, name="sweep", size=3)
    first, second = (a_finished(ada, "failed", array=array, array_index=n, name="sweep") for n in range(2))
    third = a_running(ada, array=array, array_index=2, name="sweep")
    notices.ended([first.pk])
    notices.ended([second.pk])
    assert [n.kind for n in Notice.objects.all()] == ["failed"]
    Job.objects.filter(pk=third.pk).update(state="finished", outcome="completed")
    notices.ended([third.pk])
    last = Notice.objects.order_by("-pk")[0]
    assert (last.title, last.sentence, last.array_id) == ("sweep has ended", "2 failed, 1 completed.", array.pk)


def test_a_start_is_told_after_a_long_wait_alone(ada) -> None:
    now = timezone.now()
    long, short = a_running(ada, name="long"), a_running(ada, name="short")
    for job, minutes in ((long, 45), (short, 3)):
        job.started_at, job.submitted_at = now, now - timedelta(minutes=minutes)
    with counted() as work:
        notices.started([a_running(ada, started_at=now)])
    assert work.queries <= 2  # the job itself is made
    notices.started([long, short])
    assert titles(ada) == ["long has started"]
    assert Notice.objects.get().sentence == "It waited 45 min."


def test_what_others_do_is_told_and_what_one_did_oneself_is_not(ada) -> None:
    root = a_user("root")
    Member.objects.filter(user=root).update(role="admin")
    root.refresh_from_db()
    own, theirs, held = a_job(ada, name="own"), a_job(ada, name="theirs"), a_job(ada, name="held")
    jobs.cancel(ada, own.pk)
    jobs.hold(ada, held.pk)
    assert titles(ada) == []
    jobs.cancel(root, theirs.pk)
    jobs.hold(root, held.pk, "reboot")
    assert titles(ada) == ["theirs was stopped", "held is held"]
    assert Notice.objects.order_by("-pk")[0].sentence == "By root: reboot."


def test_the_bell_counts_until_the_list_was_seen(client, ada) -> None:
    shown._bell._kept.clear()
    notices.ended([a_finished(ada, name="<b>x").pk])
    answer = client.get("/notices/bell?v=", headers=HTMX)
    assert 'data-unread="1"' in answer.content.decode()
    assert "&lt;b&gt;x has completed" in answer.content.decode()
    version = shown.bell(ada).version
    assert client.get(f"/notices/bell?v={version}", headers=HTMX).status_code == 204
    page = client.get("/notices").content.decode()
    assert "new</span>" in page
    newest = Notice.objects.order_by("-pk")[0].pk
    assert client.post("/notices/seen", {"newest": newest + 1000}, headers=HTMX).status_code == 204
    assert NoticeSettings.objects.get(user=ada).seen == newest
    shown._bell._kept.clear()
    assert shown.bell(ada).unread == 0
    eve = a_user("eve")
    assert shown.page(eve) == ((), None)
    client.force_login(eve)
    assert "has completed" not in client.get("/notices").content.decode()


def test_a_place_is_sealed_masked_and_its_owners(client, ada, sink) -> None:
    added = client.post("/notices/hooks/add", {"address": sink.address, "name": "mine", "kinds": ["failed"]})
    assert (added.status_code, added.url) == (302, "/notices/settings")
    hook = Hook.objects.get()
    assert SECRET.encode() not in bytes(hook.sealed)
    page = client.get("/notices/settings").content.decode()
    assert "http://127.0.0.1/…" in page
    assert SECRET not in page
    eve = a_user("eve")
    for act in (notices.remove_hook, notices.test_hook):
        with pytest.raises(NotFound):
            act(eve, hook.pk)
    with pytest.raises(NotFound):
        notices.change_hook(eve, hook.pk, [], on=False)
    client.force_login(eve)
    assert client.post(f"/notices/hooks/{hook.pk}/test").status_code == 404
    client.force_login(a_user("vic", Role.VIEWER))
    assert client.post("/notices/hooks/add", {"address": sink.address}).status_code == 403
    assert Hook.objects.count() == 1


@pytest.mark.parametrize("address", ["file:///etc/passwd", f"slack://{SECRET}", "", f"gopher://{SECRET}/"])
def test_a_wrong_address_is_said_and_not_sent_back(client, ada, address) -> None:
    answer = client.post("/notices/hooks/add", {"address": address, "name": "mine"})
    assert answer.status_code == 422
    body = answer.content.decode()
    assert SECRET not in body
    assert 'id="hook-error"' in body
    assert 'value="mine"' in body
    assert not Hook.objects.exists()


def test_messages_arrive_merged_and_the_result_is_kept(ada, sink) -> None:
    hook = notices.add_hook(ada, sink.address, "", ["finished"], "JSON")
    notices.ended([a_finished(ada, name="one").pk, a_finished(ada, "failed", name="two").pk])
    courier = delivering.Courier()
    through(courier)
    (got,) = sink.got
    assert got["title"].endswith("one has completed")
    assert (got["message"], got["type"]) == ("Completed with code 0.", "success")
    hook.refresh_from_db()
    assert (hook.last_ok, hook.last_sentence) == (True, "")
    notices.ended([a_finished(ada, name=f"n{n}").pk for n in range(25)])
    through(courier)
    assert len(sink.got) == 2
    assert sink.got[1]["title"] == "25 notices"
    assert not Delivery.objects.exists()
    with counted() as work:
        courier._next = float("-inf")
        courier.step()
    assert work.queries == 1


@pytest.mark.parametrize("status", [500, 302])
def test_what_is_not_taken_is_tried_three_times_and_then_given_up(ada, sink, status) -> None:
    sink.status = status
    hook = notices.add_hook(ada, sink.address, "", ["finished"], "JSON")
    notices.ended([a_finished(ada).pk])
    courier = delivering.Courier()
    for tried in range(1, 4):
        through(courier)
        assert len(sink.got) == tried
        hook.refresh_from_db()
        assert hook.last_ok is False
        assert str(status) in hook.last_sentence
        assert SECRET not in hook.last_sentence
        assert all(d.due_at > timezone.now() + timedelta(seconds=30) for d in Delivery.objects.all())
        Delivery.objects.update(due_at=timezone.now())
    assert not Delivery.objects.exists()
    assert all("elsewhere" not in str(got) for got in sink.got)


def test_a_test_is_sent_once_and_by_itself(ada, sink) -> None:
    sink.status = 404
    hook = notices.add_hook(ada, sink.address, "phone", [], "JSON")
    notices.test_hook(ada, hook.pk)
    notices.test_hook(ada, hook.pk)
    assert shown.hooks(ada)[0].busy
    through(delivering.Courier())
    assert [got["title"] for got in sink.got] == ["A test from Tidegate"]
    assert not Delivery.objects.exists()
    assert "404" in shown.hooks(ada)[0].last_sentence


def test_a_place_that_does_not_answer_holds_up_neither_ticks_nor_others(ada, sink) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        notices.add_hook(ada, f"http://127.0.0.1:{deaf.getsockname()[1]}/", "deaf", ["finished"], "JSON")
        notices.add_hook(ada, sink.address, "", ["finished"], "JSON")
        notices.ended([a_finished(ada).pk])
        courier = delivering.Courier()
        began = timezone.now()
        courier.step()
        courier.step()
        assert (timezone.now() - began).total_seconds() < 5  # of the 10 that a place may take
        until(lambda: sink.got, 20, "the other message")
        assert courier._round.process.poll() is None  # it still waits for the deaf one
        courier._round.process.kill()
        courier._round.process.wait()
        courier.step()
    assert Delivery.objects.count() == 2  # killed, it told nothing: both are due again, a minute later


def test_there_is_an_end_to_places_and_old_notices(ada) -> None:
    for _ in range(notices.HOOKS):
        notices.add_hook(ada, "ntfy://x", "", [], "ntfy")
    with pytest.raises(Refused, match="10 places"):
        notices.add_hook(ada, "ntfy://x", "", [], "ntfy")
    notices.ended([a_finished(ada).pk, a_finished(ada).pk])
    Notice.objects.filter(pk=Notice.objects.first().pk).update(at=timezone.now() - timedelta(days=31))
    retention.prune()
    assert Notice.objects.count() == 1


def test_settings_are_saved_and_wrong_ones_said(client, ada) -> None:
    assert shown.choices(ada)[1] == 10
    client.post("/notices/choose", {"kinds": ["failed", "held"], "waited_min": "30"})
    row = NoticeSettings.objects.get(user=ada)
    assert (row.kinds, row.waited_min) == (["failed", "held"], 30)
    answer = client.post("/notices/choose", {"kinds": ["failed"], "waited_min": "x"}, follow=True)
    assert "from 0 to 100,000 minutes" in answer.content.decode()
    assert Kind.FAILED in DEFAULT
