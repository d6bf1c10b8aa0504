"""A running job that asks for more: what it says, and the cycle that answers."""

from __future__ import annotations

import os
from typing import Any

from calibration import clock
from placement.models import InsideRequest, Job
from placement.runner.identity import identify
from placement.services import admission, cycle_row, reserving
from placement.services.reserving import Call
from tests.integration.rows import GIB, a_machine, a_running, a_user

ME = identify(os.getpid())
HERE: dict[str, Any] = {"pid": os.getpid(), "started": ME.start_ticks if ME else 0, "boot": "", "namespace": ""}
DEAD = {**HERE, "started": 1}


def on_gpu1() -> Job:
    """Return a job on gpu1 with 13 of 24 GiB, on a machine with two."""
    a_machine()
    cycle_row.ensure()
    return a_running(a_user("ada"), started_clock=clock.now(), admitted_clock=clock.now())


def asks(job: Job, gib: float, key: str = "k", *, process: dict[str, Any] = HERE, **more: Any) -> InsideRequest:
    """Return the row of a call for so many GiB."""
    step = more.pop("step", None)
    sees = more.pop("sees", None)
    told = {"group_bytes": int(gib * GIB), **more}
    row, _ = reserving.ask(job, Call(key, told, process, step, sees=sees))
    return row


def cycle(row: InsideRequest) -> InsideRequest:
    """Run a cycle and return the row as it is then."""
    assert admission.run()
    row.refresh_from_db()
    return row
