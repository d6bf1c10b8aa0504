"""Jobs whose records name nobody, init, the service or a stranger: cancelled all the same, and nobody is hit."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placement.domain.jobs import Outcome, State
from placement.runner.identity import Identity, identify
from placement.runner.signals import signal_member
from placement.services import jobs
from tests.integration.loop_here import Here, alive, control, here, leased
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    with here(settings, tmp_path) as made:
        yield made


def test_a_job_of_another_service_with_the_same_number_is_nobody_of_ours(node: Here, tmp_path: Path) -> None:
    job = node.submit("exec sleep 600")
    marks = {"TIDEGATE_JOB_ID": str(job.pk), "TIDEGATE_RECEIPTS": f"/elsewhere/runs/{job.pk}-1/receipts"}
    strangers = [subprocess.Popen(["cat"], stdin=subprocess.PIPE, env=marks)]
    try:
        node.reach(job, State.RUNNING)
        strangers.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE, env=marks))
        ours = subprocess.Popen(
            ["cat"], stdin=subprocess.PIPE, env={**marks, "TIDEGATE_RECEIPTS": f"{job.run_dir}/receipts"}
        )
        strangers.append(ours)  # what our marker is, it is taken for
        for _ in range(2):
            node.tick()
        job.refresh_from_db()
        assert {m["pid"] for m in job.members} == {job.child["pid"], ours.pid}

        runner = Identity(job.runner["pid"], job.runner["start_ticks"], job.runner["boot_id"])
        assert signal_member(runner, signal.SIGKILL)
        until(lambda: not alive(runner.pid), 20, "the runner's end")
        jobs.cancel(node.user, job.pk)
        assert node.end(job).outcome == Outcome.CANCELLED
        assert [process.poll() for process in strangers[:2]] == [None, None]
    finally:
        for process in strangers:
            process.communicate()


def named(whose: str) -> dict[str, Any]:
    numbers = {"nobody": None, "0": 0, "init": 1, "-1": -1, "this process": os.getpid(), "our group": os.getpgrp()}
    pid = numbers.get(whose, os.getppid())
    found = identify(pid) if pid is not None and pid > 0 else None
    return {"pid": pid, "start_ticks": found.start_ticks if found and whose != "a stranger" else 1}


@pytest.mark.parametrize("whose", ["nobody", "0", "init", "-1", "this process", "our group", "a stranger"])
def test_a_cancel_ends_the_row_and_hits_nobody(node: Here, whose: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = node.run("exec sleep 600")
    true_child = Identity(job.child["pid"], job.child["start_ticks"], job.child["boot_id"])
    runner = Identity(job.runner["pid"], job.runner["start_ticks"], job.runner["boot_id"])
    assert signal_member(runner, signal.SIGKILL)
    until(lambda: not alive(runner.pid), 20, "the runner's end")
    path = control(job) / "started.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "child": named(whose)}))
    hit: list[object] = []
    send = signal.pidfd_send_signal

    def watched(descriptor: int, number: int) -> None:
        pid = int(re.search(r"^Pid:\s*(\d+)", Path(f"/proc/self/fdinfo/{descriptor}").read_text(), re.M)[1])
        if pid == true_child.pid:
            send(descriptor, number)  # found by the session that the dead runner led: it is a member
        else:
            hit.append(pid)

    with monkeypatch.context() as patch:
        patch.setattr(os, "killpg", lambda *to: hit.append(to))
        patch.setattr(os, "kill", lambda *to: hit.append(to))
        patch.setattr(signal, "pidfd_send_signal", watched)
        jobs.cancel(node.user, job.pk)
        ended = node.end(job)
    assert ended.outcome in (Outcome.CANCELLED, Outcome.LOST)
    assert leased(job) == 0
    assert hit == []
    signal_member(true_child, signal.SIGKILL)
    until(lambda: not alive(true_child.pid), 20, "the end of what the record does not name")
