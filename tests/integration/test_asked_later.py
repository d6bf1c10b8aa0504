"""What runs of a workload ask for while they run is kept with it, and holds the next one where others wait for that."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from calibration import clock
from calibration.domain import keys
from placement import snapshots
from placement.domain.planning.plan import plan
from placement.models import AskedLater, AuditEntry, Forecast, InsideRequest, Job, Role
from placement.services import admission, cycle_row, forecasting, later, reserving, retention
from placement.services.reserving import Call
from tests.integration.learned import NAMED, a_run
from tests.integration.rows import GIB, a_job, a_machine, a_running, a_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("an_account_for_everybody")]
TRAIN = {"key_workload": NAMED.workload, "key_script": NAMED.script, "key_params": NAMED.params}
SUBJECT = keys.subject(NAMED.workload, NAMED.script, NAMED.params)


@pytest.fixture
def running() -> Job:
    """A job that holds nothing of two devices of 24 GiB."""
    a_machine()
    cycle_row.ensure()
    fields = {"device": "", "gpu": "none", "charges": {}, "used": {}, "started_clock": clock.now()}
    return a_running(a_user("ada"), **fields, **TRAIN)


def asks(job: Job, gib: int, key: str, device: int | None = 0) -> InsideRequest:
    row, _ = reserving.ask(job, Call(key, {"group_bytes": gib * GIB, "device_id": device}, {}))
    return row


def a_wait(running: Job) -> InsideRequest:
    """Return a request for 20 GiB of gpu0 of which 12 are left."""
    holds = a_running(a_user("bob"), device="", gpu="none", charges={}, used={}, started_clock=clock.now())
    asks(holds, 12, "held")
    admission.run()
    return asks(running, 20, "waits")


def queued(who: str = "cora", **more: Any) -> Job:
    return a_job(a_user(who), gpu="one", declared_vram=2 * GIB, declared_ram=GIB, **{**TRAIN, **more})


def test_a_run_like_one_that_asked_is_held_beside_what_others_wait_for(running: Job) -> None:
    a_wait(running)
    (row,) = AskedLater.objects.filter(subject=SUBJECT)
    assert [one["group_bytes"] for one in row.asks] == [20 * GIB]
    assert AskedLater.objects.count() == 2  # of the other one's, too
    like, unlike = queued(), queued("dan", key_workload="other", key_script="other.py")
    admission.run()
    like.refresh_from_db()
    unlike.refresh_from_db()
    assert (like.state, like.code) == ("queued", "placement_pressure")
    assert like.headline.startswith("Runs like this one ask for 20.0 GiB on gpu0 later; ")
    assert f"#{running.pk} waits for it already" in like.headline
    assert unlike.state == "admitted"

    forecasting.run(plan(snapshots.take()))
    in_s = (Forecast.objects.get(job=like).expected_at - timezone.now()).total_seconds()
    assert 590 < in_s <= 600  # no play knows of the requests; it is held that long at most

    later.forget(a_user("root", Role.OPERATOR), "train", row.subject)
    admission.run()
    like.refresh_from_db()
    assert like.state == "admitted"
    assert AuditEntry.objects.filter(action="forget_asks", subject="workload train").exists()


def test_a_stuck_request_holds_nobody_for_ever(running: Job) -> None:
    row = a_wait(running)
    like = queued()
    InsideRequest.objects.filter(pk=row.pk).update(asked_at=timezone.now() - timedelta(seconds=601))
    admission.run()
    like.refresh_from_db()
    assert like.state == "admitted"


def test_nothing_is_looked_up_while_nobody_waits(running: Job) -> None:
    asks(running, 12, "held")
    admission.run()
    queued()
    assert snapshots.take().waiting[0].later == ()


def test_what_can_never_be_is_not_kept_and_the_same_is_written_once(running: Job) -> None:
    assert asks(running, 99, "never").state == "refused"
    assert not AskedLater.objects.exists()
    asks(running, 2, "a")
    before = AskedLater.objects.get().changed_at
    asks(running, 2, "b")
    assert AskedLater.objects.get().changed_at == before
    AskedLater.objects.update(changed_at=timezone.now() - timedelta(days=91))
    retention.prune()
    assert not AskedLater.objects.exists()


def test_the_page_says_so_and_forgets_it(running: Job, client: Client) -> None:
    operator = a_user("root", Role.OPERATOR)
    a_run(operator, ram=2)
    reserving.ask(running, Call("k", {"group_bytes": 6 * GIB, "min_devices": 2, "max_devices": 2}, {}))
    client.force_login(operator)
    page = client.get(f"/workloads/{SUBJECT}").content.decode()
    assert "Asks inside its run for" in page
    assert "6.0 GiB on 2 CUDA GPUs" in page
    client.post(f"/workloads/{SUBJECT}/forget-later")
    assert "Asks inside its run for" not in client.get(f"/workloads/{SUBJECT}").content.decode()
