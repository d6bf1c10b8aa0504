"""A real job asks for a second device in the middle of its run, waits behind another job, uses it and lets go."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.scene import device_uuids, end_all, live_leases, rows, scene
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


def _reserver(person: Person, first: str, file: Path, size: int = 12) -> int:
    job = person.submit(
        f"exec {sys.executable} {HERE}/reserver.py {size} 1 {file}",
        gpu="one", device=first, declared_vram="2 GiB", declared_ram="200 MiB", reserves=True,
    )  # fmt: skip
    person.wait_for(job, "running")
    return job


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
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    until(lambda: rows(service, HELD) == [], 20, "its end to be seen")
    assert person.job(job)["state"] == "running"


def test_two_jobs_that_take_two_devices_crosswise_both_end(at: tuple[LiveService, Person], tmp_path: Path) -> None:
    """Each holds what the other asks for: one of them is run again from its first line."""
    service, person = at
    jobs = [
        person.submit(
            f"exec {sys.executable} {HERE}/crosser.py {first} {1 - first} {tmp_path}/notes",
            gpu="none", declared_ram="200 MiB", reserves=True,
        )
        for first in (0, 1)
    ]  # fmt: skip
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
    job = person.submit(f'exec {sys.executable} -c "{code}"', gpu="none", declared_ram="200 MiB", reserves=True)
    assert person.wait_for(job, "finished", 40)["outcome"] == "failed"
    assert "would wait for itself" in person.read(f"/jobs/{job}/log/stderr.log")


def test_a_job_that_fails_with_a_lease_in_hand_leaves_nothing(at: tuple[LiveService, Person]) -> None:
    service, person = at
    code = "import tidegate; kept = tidegate.cuda(16, device_id=0); raise SystemExit(3)"
    job = person.submit(f'exec {sys.executable} -c "{code}"', gpu="none", declared_ram="200 MiB", reserves=True)
    assert person.wait_for(job, "finished", 40)["exit_code"] == 3
    assert rows(service, HELD) == []
    assert live_leases(service) == 0


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
    assert service.stop(20) == 0
    other_s.touch()
    service.start()
    until(lambda: rows(service, HELD) == [(second, 12_000_000_000)], 40, "the grant by the new service")
    door.touch()
    Path(f"{door}.end").touch()
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
    other = person.submit(
        f"exec {sys.executable} {HERE}/crosser.py 1 0 {notes}", gpu="none", declared_ram="200 MiB", reserves=True
    )
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
