"""Everything that comes twice starts once: workers, schedules, ticks, messages; and what a broker lost is made good."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.acceptance.scene import end_all, live_leases, record, rows, scene
from tests.person import Person
from tests.service import REPOSITORY, LiveService
from tests.wait import until

SMALL = {"declared_ram": "64 MiB"}
SEND = """
import json, sys
from scheduler_site.celery import app
from django.conf import settings
names = {"tick": "node.", "wake": "node.", "start": "start."}
with app.connection_for_write() as connection, app.amqp.producer_pool.acquire(block=True) as producer:
    for name, arguments, count in json.load(sys.stdin):
        queue = names[name] + settings.NODE
        for _ in range(count):
            app.send_task(f"placement.tasks.{name}", arguments, queue=queue, routing_key=queue, expires=30,
                          producer=producer)
"""


@pytest.fixture(scope="module", params=["redis", pytest.param("files", marks=pytest.mark.slow)])
def at(request: pytest.FixtureRequest) -> Iterator[tuple[LiveService, Person]]:
    with scene(request.param, simulate="1x24GiB") as both:
        yield both


@pytest.fixture(autouse=True)
def _empty(at: tuple[LiveService, Person]) -> Iterator[None]:
    yield
    end_all(*at)


def test_two_loops_and_two_schedules_give_the_result_of_one(at: tuple[LiveService, Person], tmp_path: Path) -> None:
    service, person = at
    notes = tmp_path / "notes"
    with _second(service, "tick"), _second(service, "beat"):
        jobs = [person.submit(f"echo $TIDEGATE_JOB_ID >> {notes}; sleep 1", **SMALL) for _ in range(6)]
        alone = person.submit(f"echo $TIDEGATE_JOB_ID >> {notes}", exclusive="machine", **SMALL)
        for job in (*jobs, alone):
            assert person.wait_for(job, "finished", 60)["outcome"] == "completed"
    assert sorted(map(int, notes.read_text().split())) == sorted((*jobs, alone))
    assert record(service, alone, "started")["at"] >= max(record(service, job, "exit")["ended_at"] for job in jobs)
    assert rows(service, "SELECT count(*) FROM placement_lease") == rows(
        service, "SELECT count(DISTINCT job_id || pool) FROM placement_lease"
    )
    assert live_leases(service) == 0


def test_six_hundred_ticks_at_once_are_a_handful_of_looks(at: tuple[LiveService, Person], tmp_path: Path) -> None:
    service, person = at
    notes, seen = tmp_path / "notes", set[float]()
    job = person.submit(f"echo $TIDEGATE_JOB_ID >> {notes}; sleep 600", **SMALL)
    person.wait_for(job, "running")
    # The rows are read as quickly as they can change, so that hardly a look is missed.
    begun = time.monotonic()
    sender = _send(service, ("tick", [], 600))
    later = person.submit(f"echo $TIDEGATE_JOB_ID >> {notes}", **SMALL)

    def taken() -> bool:
        seen.update(row[0] for row in rows(service, "SELECT tick_clock FROM placement_node"))
        return sender.poll() is not None and person.job(later)["state"] == "finished"

    until(taken, 40, "the job that came behind 600 messages", 0.01)
    assert sender.wait() == 0
    spent = time.monotonic() - begun
    assert len(seen) <= 2.2 * spent + 8  # two a second at most, and the looks that follow an end
    assert sorted(map(int, notes.read_text().split())) == [job, later]


def test_a_start_message_that_comes_three_times_starts_once(at: tuple[LiveService, Person], tmp_path: Path) -> None:
    service, person = at
    notes = tmp_path / "notes"
    job = person.submit(f"echo $$ >> {notes}; sleep 600", **SMALL)
    ends = person.submit(f"echo $$ >> {notes}; exit 0", **SMALL)
    assert _send(service, *[("start", [number, 1], 3) for number in (job, ends)]).wait(60) == 0
    person.wait_for(job, "running")
    person.wait_for(ends, "finished")

    assert _send(service, *[("start", [number, 1], 3) for number in (job, ends)]).wait(60) == 0

    _behind_them(service, person)
    until(lambda: len(notes.read_text().split()) >= 2, 20, "what both noted")
    assert len(notes.read_text().split()) == 2
    assert rows(service, "SELECT count(*) FROM placement_lease WHERE job_id = ?", job) == [(1,)]
    assert person.job(ends)["outcome"] == "completed"
    assert not (service.data / "runs" / f"{job}-2").exists()


def test_a_broker_that_forgets_and_drops_everybody_delays_and_loses_nothing(
    at: tuple[LiveService, Person], tmp_path: Path
) -> None:
    service, person = at
    notes = tmp_path / "notes"
    door = tmp_path / "door"
    blocker = person.submit(f"until [ -e {door} ]; do sleep 0.05; done", exclusive="machine", **SMALL)
    person.wait_for(blocker, "running")
    waiting = [person.submit(f"echo $TIDEGATE_JOB_ID >> {notes}", **SMALL) for _ in range(3)]

    _forget(service)
    door.touch()
    for job in waiting:
        assert person.wait_for(job, "finished", 60)["outcome"] == "completed"

    assert sorted(int(line) for line in notes.read_text().split()) == waiting


def _forget(service: LiveService) -> None:
    """Drop all connections and all messages of the broker, and start it and the processes that use it anew."""
    socket = service.data / "broker" / "redis.sock"
    if socket.exists():
        for words in (["FLUSHALL"], ["CLIENT", "KILL", "TYPE", "normal"]):
            subprocess.run(["redis-cli", "-s", str(socket), *words], check=False, capture_output=True, timeout=10)
        os.kill(service.pid("broker"), signal.SIGKILL)
    else:
        for queue in (service.data / "broker" / "queues").iterdir():
            for message in queue.iterdir():
                message.unlink(missing_ok=True)
    os.kill(service.pid("beat"), signal.SIGKILL)


def _behind_them(service: LiveService, person: Person) -> None:
    """Return when a job submitted now has run: every message before its own has been taken."""
    assert person.wait_for(person.submit("exit 0", **SMALL), "finished")["outcome"] == "completed"


def _environment(service: LiveService) -> dict[str, str]:
    """Return what the service's own processes have: data, broker, knobs."""
    raw = Path(f"/proc/{service.pid('tick')}/environ").read_bytes().decode().split("\0")
    given = dict(entry.split("=", 1) for entry in raw if "=" in entry)
    return {k: v for k, v in given.items() if k not in {"TIDEGATE_READY_FILE", "TIDEGATE_CYCLE_PIPE"}}


def _send(service: LiveService, *messages: tuple[str, list[int], int]) -> subprocess.Popen[str]:
    """Send (task, arguments, how often) to the queues, from a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", SEND], env=_environment(service), cwd=REPOSITORY, stdin=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(messages))
    process.stdin.close()
    return process


@contextmanager
def _second(service: LiveService, name: str) -> Iterator[None]:
    """Run one more worker for the node's loop, or one more schedule, exactly as the first was called."""
    arguments = Path(f"/proc/{service.pid(name)}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
    ready = (
        service.data / "run" / f"second-{name}.ready"
    )  # a worker makes it; a schedule says in its log that it starts
    with ExitStack() as stack:
        log = stack.enter_context((service.data / "logs" / f"second-{name}.log").open("wb"))
        process = subprocess.Popen(
            arguments,
            env={**_environment(service), "TIDEGATE_READY_FILE": str(ready)},
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            until(lambda: ready.exists() or "is starting" in Path(log.name).read_text(), 20, f"a second {name}", 0.05)
            yield
            assert process.poll() is None, f"the second {name} ended"
        finally:
            process.terminate()
            process.wait(60)
