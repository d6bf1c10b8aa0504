"""A cycle in which nothing can start asks few things, and no more with a longer queue: each query is named here."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from placement import present, snapshots
from placement.models import Dependency, InsideRequest, InsideSession, Job, JobArray, Lease
from placement.services import admission, cycle_row
from placement.waiting import Queue
from tests.integration.rows import GIB, UUIDS, a_job, a_machine, a_pool, a_user

pytestmark = pytest.mark.django_db

QUIET = [
    "placement_cycle",
    "what there is",
    "placement_knoboverride",
    "calibration_poolnow",
    "placement_device",
    "placement_node",
    "placement_job",  # those that run
    "placement_job",  # those that wait
    "auth_user",
    "UPDATE placement_cycle",
]


@pytest.fixture(autouse=True)
def ann(monkeypatch: pytest.MonkeyPatch) -> object:
    """Let somebody's job run on a machine, and others wait that are too large for it."""
    monkeypatch.setattr(snapshots, "_queue", Queue())
    cycle_row.ensure()
    a_machine()
    ann = a_user("ann")
    a_job(ann, state="running", node="atlas", device=UUIDS[0], started_at=timezone.now())
    for uuid in UUIDS:
        a_pool("atlas", uuid, uuid, 24 * GIB, 20 * GIB)
    wait(ann, 3, 20)
    return ann


def wait(ann: object, count: int, size: int) -> None:
    """Let so many jobs wait, for so many GiB."""
    for n in range(count):
        a_job(ann, name=f"waits {n}", declared_vram=size * GIB)


def tables() -> list[str]:
    """Run a cycle and return what it asked for, a word each; savepoints are the tests' own."""
    with CaptureQueriesContext(connection) as asked:
        admission.run()
    return [word(query["sql"]) for query in asked.captured_queries if "SAVEPOINT" not in query["sql"]]


def word(sql: str) -> str:
    if sql.startswith("SELECT EXISTS"):
        return "what there is"
    found = re.search(r'(UPDATE )?(?:FROM )?"(\w+)"', sql if sql.startswith("UPDATE") else sql[sql.index(" FROM ") :])
    assert found, sql
    return f"{found[1] or ''}{found[2]}"


def test_each_query_of_a_quiet_cycle_is_known() -> None:
    admission.run()  # the first decides on everybody
    assert tables() == QUIET


def test_a_longer_queue_asks_no_more(ann: object) -> None:
    wait(ann, 40, 20)
    admission.run()
    assert tables() == QUIET


def test_jobs_that_can_never_start_ask_once_for_all_of_them_why(ann: object) -> None:
    wait(ann, 20, 40)
    admission.run()
    assert tables() == [*QUIET[:-1], "placement_auditentry", QUIET[-1]]


def test_a_cycle_for_nobody_asks_what_there_is_alone() -> None:
    Job.objects.filter(state="queued").delete()
    assert tables() == ["placement_cycle", "what there is", "UPDATE placement_cycle"]


def test_what_there_is_is_seen_as_soon_as_it_is_there(ann: object) -> None:
    running, first, *_ = Job.objects.order_by("id")
    before = present.now()
    assert before == present.Present(True, False, False, False, False, before.version)

    Job.objects.filter(pk=first.pk).update(tied=True)
    Dependency.objects.create(job=first, on=running, named=running.pk, when="success")
    session = InsideSession.objects.create(job=running, attempt=1, key="s")
    row = InsideRequest.objects.create(job=running, attempt=1, session=session, key="k", ask={}, devices=[], order=1)
    Lease.objects.create(job=running, node="atlas", pool=UUIDS[0], kind="vram", bytes=GIB, request=row)
    JobArray.objects.create(name="many", user=ann, size=1000)
    assert present.now() == present.Present(True, True, True, True, True, before.version)

    Lease.objects.update(released_at=timezone.now())
    InsideRequest.objects.update(state="granted")
    Job.objects.filter(state="queued").delete()
    assert present.now() == present.Present(False, False, False, False, True, before.version)
