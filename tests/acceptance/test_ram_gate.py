"""A machine without a GPU: main memory is learned, booked, measured and gated, with real bytes; and a TPU by hand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.scene import HOLDER, MIB, check, end_all, python, rows, scene, waits
from tests.person import Person, Refusal
from tests.service import LiveService
from tests.wait import until

JOB = 800_000_000  # bytes that one run takes
OUTSIDER = 1700 * MIB  # bytes that somebody else takes
LEFT = 100 * MIB  # room that jobs are left beside it


@pytest.fixture(scope="module")
def at() -> Iterator[tuple[LiveService, Person]]:
    with scene("files", simulate="") as both:
        yield both


def test_a_learned_copy_waits_when_booked_room_or_real_memory_runs_out(
    at: tuple[LiveService, Person], tmp_path: Path
) -> None:
    service, person = at
    gate = tmp_path / "gate"
    command = python(HOLDER, "ram", f"{JOB}B", gate)

    # Learned: what is charged from the second run on is what was measured, the interpreter included.
    first = person.submit(command)
    until(lambda: (person.job(first)["used"].get("ram") or 0) >= JOB, 20, "its memory to be seen", 0.1)
    _readings(service, 4)
    _end(person, gate, first)
    ((need,),) = rows(
        service, f"SELECT json_extract(peaks, '$.ram') FROM calibration_sediment WHERE owner = 'job:{first}'"
    )
    assert JOB <= need <= JOB + 60 * MIB

    # Booked: 3 GB are declared, so three copies fit.
    gate.unlink()
    _shell(service, "nodes.edit_node(admin, node.pk, {'ram_declared': 3 * 10**9})")
    copies = [person.submit(command) for _ in range(3)]
    for copy in copies:
        job = person.wait_for(copy, "running")
        assert (job["basis"], job["charges"]["ram"]["at_start"]) == ("measured", need)
    fourth = person.submit(command)
    booked = check(waits(person, fourth, "booked"), "booked", "ram")
    figures = booked["figures"]
    assert (figures["declared"], figures["need"]) == (3 * 10**9, need)
    assert figures["leased"] == sum(figures[f"leased_{copy}"] for copy in copies) >= 3 * JOB
    assert figures["declared"] - figures["leased"] == figures["room"]
    assert need - figures["room"] == booked["shortfall"] > 0
    _end(person, gate, *copies, fourth)
    assert person.job(fourth)["outcome"] == "completed"

    # Really full: nothing is declared, but somebody else has the memory.
    gate.unlink()
    with _outsider(OUTSIDER):
        free, total = _level(service)
        # What jobs are left is made small, so that the machine need not be filled to its brim for a test.
        knobs = {"floor_ram_share": (free - LEFT) / total, "floor_ram_mib": total // MIB}
        turned = [f"KnobOverride.objects.create(name={name!r}, value={v!r}, who='test')" for name, v in knobs.items()]
        _shell(service, "; ".join(["nodes.edit_node(admin, node.pk, {'ram_declared': None})", *turned]))
        fifth = person.submit(command)
        full = check(waits(person, fifth, "no_room"), "no_room", "ram")
        figures = full["figures"]
        left = figures["total"] - figures["used"] - figures["withheld"] - figures["kept"] - figures["growth"]
        assert left == figures["room"]
        assert figures["need"] == need
        assert need - figures["room"] == full["shortfall"] > 0
        assert figures["external"] >= OUTSIDER
    person.wait_for(fifth, "running")
    _end(person, gate, fifth)
    end_all(service, person)


def test_an_admin_declares_a_tpu_by_hand_and_a_job_runs_on_it(at: tuple[LiveService, Person]) -> None:
    service, person = at
    (node,) = person.call("/api/v1/nodes")["nodes"]
    said = {"kind": "tpu", "backends": ["xla"], "index": 5, "driver_number": 3, "declared": "16 GiB"}
    device = person.call(f"/api/v1/nodes/{node['id']}/devices", said)["device"]
    with pytest.raises(Refusal, match="tpu5 is only for requests that name its kind or backend"):
        person.submit("true", gpu="one", declared_ram="20 MiB")
    asked = {"gpu": "one", "device_kind": "tpu", "declared_ram": "20 MiB"}
    with pytest.raises(Refusal, match="Nothing measures tpu5, so what a run needs there is never learned"):
        person.submit("true", **asked)

    there = person.submit('echo "sees $TPU_VISIBLE_CHIPS, $TIDEGATE_DEVICE_UUIDS"', declared_vram="8 GiB", **asked)
    beside = person.submit('echo "sees $TPU_VISIBLE_CHIPS"', declared_ram="20 MiB")
    job = person.wait_for(there, "finished")
    assert (job["outcome"], job["device"]) == ("completed", device["uuid"])
    assert f"sees 3, {device['uuid']}" in person.call(f"/api/v1/jobs/{there}/log")["text"]
    person.wait_for(beside, "finished")
    assert "sees -1" in person.call(f"/api/v1/jobs/{beside}/log")["text"]
    assert not rows(service, "SELECT 1 FROM calibration_sediment WHERE json_extract(peaks, '$.vram') IS NOT NULL")
    assert person.call(f"/api/v1/devices/{device['id']}")["device"]["pool"] is None

    person.send(f"/declarations/device/{device['id']}/remove", b"")
    assert not person.call("/api/v1/devices")["devices"]


def _level(service: LiveService) -> tuple[int, int]:
    """Return free and total RAM once free has stood still for three readings."""
    seen: list[tuple[float, int, int]] = []

    def still() -> bool:
        (row,) = rows(service, "SELECT read_at, free, total FROM calibration_poolnow WHERE pool = 'ram'")
        if not seen or seen[-1][0] != row[0]:
            seen.append(row)
        frees = [free for _, free, _ in seen[-3:]]
        return len(frees) == 3 and max(frees) - min(frees) < 64 * MIB

    until(still, 30, "the level of RAM to stand still", 0.1)
    return seen[-1][1:]


def _end(person: Person, gate: Path, *jobs: int) -> None:
    gate.touch()
    for job in jobs:
        person.wait_for(job, "finished")


def _readings(service: LiveService, count: int) -> None:
    seen: set[float] = set()

    def enough() -> bool:
        seen.update(row[0] for row in rows(service, "SELECT read_at FROM calibration_poolnow WHERE pool = 'ram'"))
        return len(seen) > count

    until(enough, 20, f"{count} readings", 0.1)


@contextmanager
def _outsider(size: int) -> Iterator[None]:
    """Hold real memory in a process that no job owns."""
    code = "import sys; held = bytearray(int(sys.argv[1])); held[::4096] = b'x' * len(held[::4096]); print(); input()"
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", code, str(size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"\n"
        yield
    finally:
        process.stdin.close()
        process.stdout.close()
        process.kill()
        process.wait()


def _shell(service: LiveService, code: str) -> None:
    """Do what an admin does on the pages for machines and knobs."""
    names = (
        "from django.contrib.auth.models import User; from placement.models import KnobOverride, Node; "
        "from placement.services import nodes; admin, node = User.objects.get(username='admin'), Node.objects.get(); "
    )
    done = service.manage("shell", "-c", f"{names}{code}")
    assert done.returncode == 0, done.stderr
