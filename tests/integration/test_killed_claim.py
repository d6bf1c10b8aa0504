"""kill -9 exactly inside the claim of a group: all of it or nothing is there afterwards, and it starts once."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from placement.domain.jobs import State
from placement.models import InsideRequest, Lease, Role
from placement.services import admission, cycle_pipe, cycle_row, explaining, reserving
from placement.services.reserving import Call
from tests.integration.asking import HERE
from tests.integration.databases import on
from tests.integration.loop_here import leased
from tests.integration.rows import GIB, UUIDS, a_job, a_machine, a_running, a_user

pytestmark = pytest.mark.django_db(transaction=True)
PAIR = {"min": 2, "max": 2, "prefer_max": False, "per_device": None, "group": 6 * GIB}
LEFT = [(UUIDS[0], 3 * GIB), (UUIDS[1], 3 * GIB)]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(
    request: pytest.FixtureRequest, transactional_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """A database that other processes can open, too."""
    file = f"sqlite:///{tmp_path}/claimed.sqlite3"
    with on(file if request.param == "sqlite" else request.getfixturevalue("postgres_url"), monkeypatch):
        explaining.forget_all_but(())
        cycle_row.ensure()
        a_machine("testnode")
        yield


def killed_at(where: Any, name: str) -> None:
    """Run a cycle in a process of its own, which is killed -9 when it comes to a call."""
    connections.close_all()  # what a child inherits it must not use
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # threads: the child needs none
        child = os.fork()
    if child == 0:
        try:
            setattr(where, name, lambda *args, **more: os.kill(os.getpid(), signal.SIGKILL))
            admission.run()
        finally:
            os._exit(3)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "it never came to that call"


def held(*, inside: bool = False) -> list[tuple[str, int]]:
    live = Lease.objects.filter(released_at=None, request__isnull=not inside)
    return sorted(live.exclude(pool="ram").values_list("pool", "bytes"))


BEFORE: dict[str, Callable[[], tuple[Any, str]]] = {
    "the leases": lambda: (Lease.objects, "bulk_create"),
    "what is said of it": lambda: (explaining, "started"),
}


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("call", BEFORE)
def test_before_the_commit_nothing_of_it_is_there_and_it_still_waits(call: str) -> None:
    job = a_job(a_user("ann", Role.ADMIN), gpu="group", devices_wanted=PAIR, declared_ram=GIB, plan={})
    killed_at(*BEFORE[call]())
    job.refresh_from_db()
    assert (job.state, job.device, job.charges, leased()) == (State.QUEUED, "", {}, 0)

    assert admission.run()
    job.refresh_from_db()
    assert (job.state, job.attempt, held()) == (State.ADMITTED, 1, LEFT)


@pytest.mark.usefixtures("database")
def test_after_it_all_is_there_and_no_further_cycle_claims_it_again() -> None:
    job = a_job(a_user("ann", Role.ADMIN), gpu="group", devices_wanted=PAIR, declared_ram=GIB, plan={})
    killed_at(cycle_pipe, "end")
    job.refresh_from_db()
    assert (job.state, held(), leased()) == (State.ADMITTED, LEFT, 3)
    admission.run()
    job.refresh_from_db()
    assert (job.attempt, held(), leased()) == (1, LEFT, 3)


@pytest.mark.usefixtures("database")
def test_a_group_that_a_running_job_asks_for_is_whole_or_waits() -> None:
    job = a_running(a_user("ann", Role.ADMIN), node="testnode", device="", gpu="none", charges={}, used={})
    told = {"group_bytes": 6 * GIB, "min_devices": 2, "max_devices": 2}
    row, _ = reserving.ask(job, Call("k", told, HERE))
    killed_at(Lease.objects, "bulk_create")
    assert InsideRequest.objects.get(pk=row.pk).state == "waiting"
    assert held(inside=True) == []
    assert admission.run()
    assert InsideRequest.objects.get(pk=row.pk).state == "granted"
    assert held(inside=True) == LEFT
