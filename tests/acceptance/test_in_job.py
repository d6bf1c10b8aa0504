"""A real job asks for a second device in the middle of its run, waits behind another job, uses it and lets go."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.acceptance.scene import device_uuids, end_all, live_leases, rows, scene
from tests.machine_pace import within
from tests.person import Person
from tests.service import REPOSITORY, LiveService
from tests.wait import until

HERE = Path(__file__).parent
EXAMPLES = REPOSITORY / "examples"
HELD = "SELECT pool, bytes FROM placement_lease WHERE request_id IS NOT NULL AND released_at IS NULL"
WAITS = "SELECT said FROM placement_insiderequest WHERE state = 'waiting' AND said != ''"


@pytest.fixture(scope="module")
def at() -> Iterator[tuple[LiveService, Person]]:
    with scene("files", simulate="3x24GiB") as both:
        yield both


@pytest.fixture(autouse=True)
def _empty(at: tuple[LiveService, Person]) -> Iterator[None]:
    yield
    end_all(*at)


def _reserver(person: Person, first: str, file: Path, size: int = 12, device: int = 1) -> int:
    job = person.submit(
        f"exec {sys.executable} {HERE}/reserver.py {size} {device} {file}",
        gpu="one", device=first, declared_vram="2 GiB", declared_ram="200 MiB", reserves=True,
    )  # fmt: skip
    person.wait_for(job, "running")
    return job


def _inside(person: Person, program: str) -> int:
    """Submit a program of Python's that has no device of its own and asks for some."""
    return person.submit(f"exec {sys.executable} {program}", gpu="none", declared_ram="200 MiB", reserves=True)


def _let_end(door: Path) -> None:
    for file in (door, Path(f"{door}.end")):
        file.touch()


def _holder(person: Person, device: str, file: Path) -> int:
    job = person.submit(
        f"exec {sys.executable} {HERE}/holder.py vram 16GiB {file}",
        gpu="one", device=device, declared_vram="16 GiB", declared_ram="200 MiB",
    )  # fmt: skip
    person.wait_for(job, "running")
    return job


def test_a_second_device_in_the_middle_of_a_run(at: tuple[LiveService, Person], tmp_path: Path) -> None:
    service, person = at
    first, second, _ = device_uuids(service)
    door, other_s = tmp_path / "door", tmp_path / "other"
    other = _holder(person, second, other_s)
    job = _reserver(person, first, door)
    until(lambda: any(f"#{other}" in said for (said,) in rows(service, WAITS)), 20, "the reason that it waits for")
    assert rows(service, HELD) == []

    other_s.touch()
    until(lambda: rows(service, HELD) == [(second, 12_000_000_000)], 30, "the grant")

    def used() -> bool:
        return person.job(job)["used"].get(second, 0) >= 12_000_000_000

    until(used, 20, "its use of the second device, as that job's own")
    assert not [flag for flag in person.job(job)["flags"] if "does not lease" in flag]
    door.touch()
    until(lambda: rows(service, HELD) == [], 20, "letting go")
    assert person.job(job)["state"] == "running"
    Path(f"{door}.end").touch()
    assert person.wait_for(job, "finished")["outcome"] == "completed"
    assert live_leases(service) == 0


def test_a_process_that_dies_holds_nothing_while_its_job_goes_on(
    at: tuple[LiveService, Person], tmp_path: Path
) -> None:
    service, person = at
    (first,) = rows(service, 'SELECT uuid FROM placement_device WHERE "index" = 0')[0]
    job = person.submit(
        f"{sys.executable} {HERE}/reserver.py 6 1 {tmp_path}/never & echo $! > {tmp_path}/pid; wait; sleep 60",
        gpu="one", device=first, declared_vram="2 GiB", declared_ram="200 MiB", reserves=True,
    )  # fmt: skip
    until(lambda: len(rows(service, HELD)) == 1, 40, "the grant")
    pid = tmp_path / "pid"
    os.kill(int(until(lambda: pid.exists() and pid.read_text(), 20, "the shell's note of it")), signal.SIGKILL)
    until(lambda: rows(service, HELD) == [], 20, "its end to be seen")
    assert person.job(job)["state"] == "running"


def test_two_jobs_that_take_two_devices_crosswise_both_end(at: tuple[LiveService, Person], tmp_path: Path) -> None:
    """Each holds what the other asks for: one of them is run again from its first line."""
    service, person = at
    jobs = [_inside(person, f"{HERE}/crosser.py {first} {1 - first} {tmp_path}/notes") for first in (0, 1)]
    for job in jobs:
        assert person.wait_for(job, "finished", 60)["outcome"] == "completed"
    logs = [person.read(f"/jobs/{job}/log/stdout.log") for job in jobs]
    assert sorted("run 2" in log for log in logs) == [False, True]
    told = [one for job in jobs for one in person.call(f"/api/v1/jobs/{job}/requests")["requests"] if one["cycle"]]
    assert len(told[0]["cycle"]) == 2
    assert live_leases(service) == 0


def test_a_job_that_would_wait_for_itself_is_told_so_at_once(at: tuple[LiveService, Person]) -> None:
    _, person = at
    code = "import tidegate; a = tidegate.cuda(16, device_id=0); tidegate.cuda(16, device_id=0)"
    job = _inside(person, f'-c "{code}"')
    assert person.wait_for(job, "finished", 40)["outcome"] == "failed"
    assert "would wait for itself" in person.read(f"/jobs/{job}/log/stderr.log")


def test_two_jobs_that_keep_what_their_finished_steps_made_do_not_wait_for_each_other_for_ever(
    at: tuple[LiveService, Person], tmp_path: Path
) -> None:
    """Each keeps 10 GB of one device and asks for 10 more of it: the younger request is refused, the other goes on."""
    service, person = at
    notes = [tmp_path / "a", tmp_path / "b"]
    jobs = [_inside(person, f"{HERE}/keeper.py {mine} {theirs}") for mine, theirs in (notes, notes[::-1])]
    ends = {job: person.wait_for(job, "finished", 60)["outcome"] for job in jobs}
    assert sorted(ends.values()) == ["completed", "failed"]
    failed = next(job for job, outcome in ends.items() if outcome == "failed")
    other = next(job for job in jobs if job != failed)
    said = person.read(f"/jobs/{failed}/log/stderr.log")
    assert "Impossible" in said
    for job in jobs:
        assert f"job {job} holds 9.3 GiB on gpu0 and waits for 9.3 GiB on gpu0" in said
    assert "went on" in person.read(f"/jobs/{other}/log/stdout.log")
    assert live_leases(service) == 0


def test_a_job_that_fails_with_a_lease_in_a_frame_leaves_its_room_to_whoever_waits(
    at: tuple[LiveService, Person], tmp_path: Path
) -> None:
    service, person = at
    code = f"""
import os, time, tidegate
def work():
    kept, end = tidegate.cuda(16, device_id=0), time.monotonic() + 120
    while not os.path.exists("{tmp_path}/fail") and time.monotonic() < end: time.sleep(0.01)
    raise ValueError("in a frame that holds a lease")
work()
"""
    job = _inside(person, f"-c '{code}'")
    until(lambda: len(rows(service, HELD)) == 1, 40, "the grant")
    waits = _reserver(person, device_uuids(service)[1], tmp_path / "door", device=0)
    until(lambda: any(f"#{job}" in said for (said,) in rows(service, WAITS)), 40, "the other's wait")
    (tmp_path / "fail").touch()
    assert person.wait_for(job, "finished", 40)["exit_code"] == 1
    until(lambda: rows(service, HELD) == [(device_uuids(service)[0], 12_000_000_000)], 20, "the other's grant")
    _let_end(tmp_path / "door")
    assert person.wait_for(waits, "finished")["outcome"] == "completed"
    assert live_leases(service) == 0


@pytest.mark.slow  # quick: the runner's own tests hold the grace, integration tests what becomes of a request
def test_a_job_that_waits_inside_and_hears_nothing_is_ended_within_its_grace(
    at: tuple[LiveService, Person], tmp_path: Path
) -> None:
    """It holds a lease, waits for another and ignores SIGTERM; the grace is a second."""
    service, person = at
    first, second, _ = device_uuids(service)
    _holder(person, second, tmp_path / "other")
    code = "import signal, tidegate; signal.signal(15, signal.SIG_IGN); a = tidegate.cuda(9, device_id=0); "
    code += "tidegate.cuda(12, device_id=1)"
    job = _inside(person, f'-c "{code}"')
    until(lambda: rows(service, WAITS) != [] and rows(service, HELD) == [(first, 9 * 10**9)], 40, "its wait")
    began = time.monotonic()
    person.call(f"/api/v1/jobs/{job}/cancel", {})
    ended = person.wait_for(job, "finished", 40)
    assert time.monotonic() - began < 15
    assert (ended["outcome"], "killed after the grace" in ended["sentence"]) == ("cancelled", True)
    assert rows(service, HELD) == []
    asked = "SELECT state FROM placement_insiderequest WHERE job_id = ? ORDER BY id"
    assert rows(service, asked, job) == [("released",), ("withdrawn",)]


def test_an_endless_stream_of_small_jobs_does_not_keep_a_large_request_waiting(
    at: tuple[LiveService, Person], tmp_path: Path
) -> None:
    """Two small ones have the device at any moment, and more wait: what runs as the request comes is waited for."""
    service, person = at
    first, second, _ = device_uuids(service)
    exact = {"gpu": "group", "min_devices": 1, "max_devices": 1, "memory": "exact", "per_device_memory": "11 GiB"}
    begun = "SELECT count(*) FROM placement_job WHERE name = 'small' AND state != 'queued'"

    def stream() -> int:
        while rows(service, "SELECT count(*) FROM placement_job WHERE state = 'queued'")[0][0] < 3:
            person.submit("sleep 0.7", name="small", device=first, declared_ram="64 MiB", time_limit_s=60, **exact)
        return int(rows(service, begun)[0][0])

    until(lambda: stream() >= 4, 40, "the stream to flow")
    door = tmp_path / "door"
    job = _reserver(person, second, door, 20, device=0)

    def granted() -> bool:
        stream()
        return rows(service, HELD) == [(first, 20 * 10**9)]

    until(granted, 60, "the large one's grant")
    times = "SELECT asked_at, granted_at FROM placement_insiderequest WHERE job_id = ?"
    asked, at_last = (datetime.fromisoformat(text) for text in rows(service, times, job)[0])
    assert (at_last - asked).total_seconds() < 15
    passed = "SELECT count(*) FROM placement_job j, placement_insiderequest r WHERE r.job_id = ? AND j.name = 'small'"
    passed += ' AND j.id >= r."order" AND j.admitted_at < r.granted_at'  # those before it in the queue are not asked
    assert rows(service, passed, job)[0][0] <= 2, "those of the cycle in which it came"
    _let_end(door)
    assert person.wait_for(job, "finished")["outcome"] == "completed"


def test_a_wait_outlasts_the_service(at: tuple[LiveService, Person], tmp_path: Path) -> None:
    """The service stops at once though a job waits inside its run, and goes on with that wait when it is back."""
    service, person = at
    first, second, _ = device_uuids(service)
    other_s, door = tmp_path / "other", tmp_path / "door"
    _holder(person, second, other_s)
    job = _reserver(person, first, door)
    until(lambda: rows(service, WAITS) != [], 20, "the wait")

    port = service.arguments.index("--port") + 1
    service.arguments[port] = service.address.rpartition(":")[2]  # as a real one keeps it
    with within(20):
        assert service.stop(60) == 0
    other_s.touch()
    service.start()
    until(lambda: rows(service, HELD) == [(second, 12_000_000_000)], 40, "the grant by the new service")
    _let_end(door)
    assert person.wait_for(job, "finished")["outcome"] == "completed"


@pytest.mark.slow  # quick: the same example as a victim, below
def test_the_example_of_two_stages(at: tuple[LiveService, Person]) -> None:
    service, person = at
    first = rows(service, 'SELECT uuid FROM placement_device WHERE "index" = 0')[0][0]
    job = person.submit(
        f"exec {sys.executable} {EXAMPLES}/two_stages.py --device 1 --seconds 2",
        gpu="one", device=first, declared_vram="2 GiB", declared_ram="200 MiB", reserves=True,
    )  # fmt: skip
    assert person.wait_for(job, "finished")["outcome"] == "completed"
    log = person.read(f"/jobs/{job}/log/stdout.log")
    assert "evaluates on cuda:1, which people call gpu1" in log
    assert "score" in log


def test_the_example_of_two_stages_is_run_again_when_others_need_what_it_holds(
    at: tuple[LiveService, Person], tmp_path: Path
) -> None:
    """It holds one device and asks for the one of a job that asks for its own: it held for less long, so it goes."""
    service, person = at
    notes = tmp_path / "notes"
    other = _inside(person, f"{HERE}/crosser.py 1 0 {notes}")
    until(Path(f"{notes}.1").exists, 40, "the other's hold of the second device")
    job = person.submit(
        f"exec {sys.executable} {EXAMPLES}/two_stages.py --gb 16 --device 0 --against 1 --seconds 1",
        gpu="one", device=device_uuids(service)[2], declared_vram="2 GiB", declared_ram="200 MiB", reserves=True,
    )  # fmt: skip
    until(lambda: any(f"#{other}" in said for (said,) in rows(service, WAITS)), 40, "its wait for the second device")
    Path(f"{notes}.0").touch()
    for one in (other, job):
        assert person.wait_for(one, "finished", 60)["outcome"] == "completed"
    log = person.read(f"/jobs/{job}/log/stdout.log")
    assert [log.count(line) for line in ("trained to", "people call gpu0", "people call gpu1", "score")] == [1, 2, 1, 1]
    assert "has both, run 1" in person.read(f"/jobs/{other}/log/stdout.log")
    assert live_leases(service) == 0


@pytest.mark.parametrize("inside", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_example_of_replicas_over_a_group(at: tuple[LiveService, Person], inside: bool) -> None:
    """A worker process for each granted device, whether the job was given them or took them: the sum is of all."""
    service, person = at
    group = {"min_devices": 2, "max_devices": 4, "prefer_max": True, "memory": "exact", "per_device_memory": "2 GiB"}
    asked = {"gpu": "none", "reserves": True} if inside else {"gpu": "group", **group}
    job = person.submit(
        f"exec {sys.executable} {EXAMPLES}/replicas.py --seconds 3 {'--inside 2 3' * inside}",
        declared_ram="400 MiB", **asked,
    )  # fmt: skip
    loaded = dict.fromkeys(device_uuids(service), 10**9)
    until(lambda: loaded.items() <= person.job(job)["used"].items(), 40, "a model on each of three devices")
    assert person.wait_for(job, "finished")["outcome"] == "completed"
    log = person.read(f"/jobs/{job}/log/stdout.log")
    for uuid in loaded:
        assert log.count(f"on {uuid} with 1 GB") == 1
    assert f"3 replicas scored 20000 samples: {sum(n * n for n in range(20000))}" in log
    assert live_leases(service) == 0
