"""Workers that are asked to end in the middle of a run go at once; the job stays, and its true end is known."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path

import psutil
import pytest

from tests.acceptance.scene import live_leases, record, rows, scene
from tests.machine_pace import within
from tests.wait import until

RUNNING = "SELECT state, runner, child, attempt FROM placement_job WHERE id = ?"


@pytest.mark.timeout(120)
def test_workers_that_are_asked_to_end_go_within_seconds_and_the_job_goes_on(tmp_path: Path) -> None:
    with scene("files", simulate="1x24GiB") as (service, person):
        door = shlex.quote(str(tmp_path / "door"))
        job = person.submit(f"until [ -e {door} ]; do sleep 0.05; done; exit 3", declared_ram="64 MiB")
        person.wait_for(job, "running")
        before, leases = rows(service, RUNNING, job), live_leases(service)
        child = psutil.Process(record(service, job, "started")["child"]["pid"])
        for name in ("tick", "start"):
            worker = psutil.Process(service.pid(name))
            with within(10):
                os.kill(worker.pid, signal.SIGTERM)
                until(lambda worker=worker: not worker.is_running(), 20, f"the end of {name}", 0.05)
        until(lambda: person.job(job)["used"].get("ram") is not None, 20, "the job to be looked at again", 0.1)
        assert (rows(service, RUNNING, job), live_leases(service)) == (before, leases)

        (tmp_path / "door").touch()
        ended = person.wait_for(job, "finished", 20)
        assert (ended["outcome"], ended["exit_code"], ended["attempt"]) == ("failed", 3, 1)
        assert not child.is_running()
