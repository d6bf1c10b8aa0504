"""kill -9 of everything but the jobs: nothing is lost, nothing runs twice, every true outcome is recorded."""

from __future__ import annotations

import os
import random
import shlex
import signal
import time
import urllib.error
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from tests.acceptance.scene import live_leases, rows, scene
from tests.person import Person, Refusal
from tests.service import LiveService
from tests.wait import until

T = TypeVar("T")
FAST, ALL = [1], [0, *range(2, 25)]  # one with the broker of files, and the rest
BROKERS = ("redis", "files")
SMALL = {"declared_ram": "64 MiB"}


class Jobs:
    """Five jobs that run and two that wait in order for a device; each notes every start of itself."""

    def __init__(self, person: Person, folder: Path) -> None:
        self.person, self.starts, self.doors = person, folder / "starts", folder
        self.late: list[int] = []  # end as soon as they have started
        on_gpu = {"gpu": "one", "exclusive": "device", "declared_vram": "1 GiB"}
        self.ok = self.submit("ok")
        self.three = self.submit("three", code=3)
        self.cancelled = self.submit("cancelled", code=9)
        self.alone = self.submit("alone", code=4)  # ends while nothing of the service is there
        self.holder = self.submit("holder", **on_gpu)
        for job in (self.ok, self.three, self.cancelled, self.alone, self.holder):
            person.wait_for(job, "running", 20)
        self.first = self.submit("first", **on_gpu)
        self.second = self.submit("second", code=5, **on_gpu)
        self.open("first", "second")  # these end as soon as they have started
        self.all = [self.ok, self.three, self.cancelled, self.alone, self.holder, self.first, self.second]

    def submit(self, name: str, code: int = 0, **fields: Any) -> int:
        note = f'echo "$TIDEGATE_JOB_ID $TIDEGATE_ATTEMPT $$" >> {shlex.quote(str(self.starts))}'
        wait = f"until [ -e {shlex.quote(str(self.doors / name))} ]; do sleep 0.05; done"
        return self.person.submit(f"{note}; {wait}; exit {code}", name=name, **{**SMALL, **fields})

    def submit_late(self, number: int) -> None:
        """Submit one more while the service is being shot at; a form sent again makes no second job."""
        name = f"late{number}"
        self.open(name)
        self.late.append(asked(lambda: self.submit(name, form_key=name)))
        self.all.append(self.late[-1])

    def open(self, *names: str) -> None:
        for name in names:
            (self.doors / name).touch()

    def started(self) -> list[int]:
        """Return the jobs whose command began, in order, once per beginning."""
        return [int(line.split()[0]) for line in self.starts.read_text().splitlines()]


def asked(ask: Callable[[], T]) -> T:
    """Return the answer of a service that may be about to come back."""

    def answer() -> tuple[T] | None:
        try:
            return (ask(),)
        except (urllib.error.URLError, OSError):
            return None
        except Refusal as refusal:
            if refusal.status < 500:
                raise
            return None

    return until(answer, 30, "the pages to answer", 0.1)[0]


def pids(service: LiveService) -> dict[str, int]:
    """Return the service's processes by name, without those that are just being started again."""
    found = {name.partition("@")[0]: child["pid"] for name, child in service.up()["children"].items()}
    return {name: pid for name, pid in found.items() if pid}


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it had just ended with its parent


def kill_each(service: LiveService, jobs: Jobs, chance: random.Random) -> None:
    """Kill one process after the other, in any order; each blow meets a start on its way."""
    names = sorted(pids(service))
    chance.shuffle(names)
    for number, name in enumerate(names):
        jobs.submit_late(number)
        _pass(chance.uniform(0, 0.3))
        until(lambda name=name: name in pids(service), 20, f"{name} to be started again", 0.05)
        kill(pids(service)[name])
        _pass(chance.uniform(0, 0.3))


def _pass(seconds: float) -> None:
    end = time.monotonic() + seconds
    until(lambda: time.monotonic() > end, 2, "the next blow")


def all_down(service: LiveService, while_down: Callable[[], None]) -> None:
    """Kill every process at once, with the supervisor stopped so that none comes back before `while_down` is done."""
    supervisor = service.up()["pid"]
    os.kill(supervisor, signal.SIGSTOP)
    try:
        victims = pids(service)
        for pid in victims.values():
            kill(pid)
        until(lambda: not any(_lives(pid) for pid in victims.values()), 20, "the end of all processes")
        while_down()
    finally:
        os.kill(supervisor, signal.SIGCONT)


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def end_alone(service: LiveService, jobs: Jobs) -> None:
    jobs.open("alone")
    record = service.data / "runs" / f"{jobs.alone}-1" / "control" / "exit.json"
    until(record.exists, 20, "the end of a job that nobody watches")


def check_all(service: LiveService, jobs: Jobs) -> None:
    """Every job has ended as it truly did, and was started once, in order."""
    expected = {
        jobs.ok: ("completed", 0),
        jobs.three: ("failed", 3),
        jobs.cancelled: ("cancelled", None),
        jobs.alone: ("failed", 4),
        jobs.holder: ("completed", 0),
        jobs.first: ("completed", 0),
        jobs.second: ("failed", 5),
        **dict.fromkeys(jobs.late, ("completed", 0)),
    }
    unfinished = "SELECT id, state, headline FROM placement_job WHERE state != 'finished'"
    until(lambda: not rows(service, unfinished), 40, "every job to end", 0.1)
    ended = rows(service, "SELECT id, outcome, exit_code FROM placement_job ORDER BY id")
    assert {job: (outcome, code) for job, outcome, code in ended} == expected
    assert sorted(jobs.started()) == sorted(jobs.all)  # none lost, none twice
    assert jobs.started().index(jobs.first) < jobs.started().index(jobs.second)
    assert live_leases(service) == 0
    leases = rows(
        service, "SELECT job_id, pool, count(*) FROM placement_lease GROUP BY job_id, pool HAVING count(*) > 1"
    )
    assert leases == []


def one_round(seed: int, folder: Path) -> None:
    chance = random.Random(seed)
    with scene(BROKERS[seed % 2], simulate="1x24GiB") as (service, person):
        jobs = Jobs(person, folder)
        kill_each(service, jobs, chance)
        jobs.open("ok")
        asked(lambda: person.call(f"/api/v1/jobs/{jobs.cancelled}/cancel", {}))
        if chance.random() < 0.5:
            until(lambda: len(pids(service)) == len(service.up()["children"]), 30, "every process to be back", 0.05)
        all_down(service, lambda: end_alone(service, jobs))
        jobs.open("three", "holder")
        check_all(service, jobs)


@pytest.mark.parametrize("seed", FAST)
def test_kill_9_of_each_and_all_loses_nothing_and_starts_nothing_twice(seed: int, tmp_path: Path) -> None:
    one_round(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", ALL)
def test_kill_9_again_and_again(seed: int, tmp_path: Path) -> None:
    one_round(seed, tmp_path)


@pytest.mark.parametrize(("broker", "how"), [("redis", signal.SIGKILL), ("files", signal.SIGTERM)])
def test_after_the_supervisors_end_jobs_go_on_and_the_next_up_takes_them_over(
    broker: str, how: signal.Signals, tmp_path: Path
) -> None:
    with scene(broker, simulate="1x24GiB") as (service, person):
        jobs = Jobs(person, tmp_path)
        leases = live_leases(service)
        query = "SELECT id, runner, child FROM placement_job WHERE state = 'running' ORDER BY id"
        running = rows(service, query)
        children = list(pids(service).values())

        os.kill(service.up()["pid"], how)
        assert service.process is not None
        assert service.process.wait(60) == (0 if how is signal.SIGTERM else -how)
        until(lambda: not any(_lives(child) for child in children), 20, "the end of every process")
        if how is signal.SIGTERM:
            assert "Tidegate has stopped; 5 jobs go on" in service.said()
        end_alone(service, jobs)
        service.start()
        person.address = service.address

        # Adopted as they are: the same processes, the same leases, but for the one that has ended.
        assert person.wait_for(jobs.alone, "finished", 10)["exit_code"] == 4
        assert rows(service, query) == [row for row in running if row[0] != jobs.alone]
        assert live_leases(service) == leases - 1
        assert person.job(jobs.first)["state"] == "queued"
        jobs.open("ok", "three", "holder")
        person.call(f"/api/v1/jobs/{jobs.cancelled}/cancel", {})
        check_all(service, jobs)
