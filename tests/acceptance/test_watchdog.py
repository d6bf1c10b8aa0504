"""Memory that runs out: who is stopped and who is not, and what the next run is charged. Real jobs, simulated cards."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.scene import GIB, HOLDER, MIB, SIMGPU, device_uuids, end_all, python, rows, scene, waits
from tests.person import Person
from tests.service import LiveService
from tests.wait import until

Job = Callable[..., str]
pytestmark = pytest.mark.timeout(180)
FLOOR = 24 * GIB // 100  # what the watchdog keeps free of a card of 24 GiB
RATE = 120 * MIB  # bytes a second at which a job outgrows its charge here: half of the floor in each reading


@pytest.fixture(scope="module")
def at() -> Iterator[tuple[LiveService, Person]]:
    # Without control groups: where the kernel keeps a job in its RAM nothing is left for the watchdog.
    with scene("files", environment={"TIDEGATE_RAM_LIMIT": "off"}) as both:
        yield both


@pytest.fixture(autouse=True)
def _empty(at: tuple[LiveService, Person]) -> Iterator[None]:
    yield
    end_all(*at)


@pytest.fixture
def simulated(tmp_path: Path) -> Job:
    """Return what makes a job's command, of a script of this test's own: nothing is known of it yet."""
    script = Path(shutil.copy(SIMGPU, tmp_path))

    def job(shape: str, seconds: float, *more: str, ram: str = "1MiB") -> str:
        return python(script, "run", "--shape", shape, "--ram", ram, "--seconds", seconds, "--busy", 0.9, *more)

    return job


def _kept(service: LiveService, job: int, column: str) -> str:
    ((value,),) = rows(service, f"SELECT {column} FROM calibration_sediment WHERE owner = ?", f"job:{job}")
    return str(value)


def _number(text: str, kind: str) -> int:
    """Return one number of a JSON object that the database keeps as text."""
    return int(text.partition(f'"{kind}": ')[2].split(",")[0].rstrip("}"))


def test_the_one_that_outgrew_its_charge_is_stopped_and_its_neighbour_lives(
    at: tuple[LiveService, Person], simulated: Job, tmp_path: Path
) -> None:
    service, person = at
    gpu0, _ = device_uuids(service)
    on = {"gpu": "one", "device": gpu0, "declared_ram": "64 MiB"}
    neighbour = person.submit(python(HOLDER, "vram", "8GiB", tmp_path / "end"), declared_vram="8 GiB", **on)
    person.wait_for(neighbour, "running")
    until(lambda: person.job(neighbour)["used"].get(gpu0) == 8 * GIB, 20, "the neighbour's memory", 0.1)
    # 14 GiB granted; from 15 GiB on it grows until the card is full, 120 MiB in each second.
    rise = 16 * GIB - 15 * GIB
    shape = f"0:{15 * 1024}MiB,{rise / RATE:.2f}:{16 * 1024}MiB"
    command = simulated(shape, 60, "--linear")
    grower = person.submit(command, declared_vram="14 GiB", **on)

    ended = person.wait_for(grower, "finished", 40)
    found = ended["evidence"]["watchdog"]
    assert ended["outcome"] == "cap_exceeded"
    assert re.match(r"Killed by the watchdog: used 1(5\.[789]|6\.0) GiB of 14\.0 GiB granted, ", ended["sentence"])
    assert f" of 14.0 GiB granted, cap {14 * 1.35:.1f} GiB; " in ended["sentence"]
    assert found["samples"][-1] == found["used"]
    assert len(found["samples"]) == 3
    assert found["free"] < found["mark"] == FLOOR
    assert found["used"] > 14 * GIB + 14 * GIB // 20
    assert found["granted"] == 14 * GIB
    assert person.job(neighbour)["state"] == "running"
    (tmp_path / "end").touch()
    assert person.wait_for(neighbour, "finished", 40)["outcome"] == "completed"

    peak = _number(_kept(service, grower, "peaks"), "vram")
    assert peak >= found["used"]
    wanted = max(-(-peak * 6 // 5), 14 * GIB + 512 * MIB)
    assert _number(_kept(service, grower, "next_charge"), "vram") == wanted
    again = person.submit(command, declared_vram="14 GiB", **on)
    assert person.wait_for(again, "running")["charges"][gpu0]["at_start"] == wanted


@contextmanager
def _outsider(service: LiveService, device: str, shape: str) -> Iterator[int]:
    """Take simulated memory as somebody would who does not ask the service."""
    environment = {"PATH": os.environ["PATH"], "TIDEGATE_SIMULATED": str(service.data / "simulated")}
    command = [sys.executable, "-S", str(SIMGPU), "run", "--device", device, "--shape", shape, "--seconds", "600"]
    process = subprocess.Popen(command, env=environment)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_an_outsider_that_grows_stops_nobody_and_the_page_says_so(
    at: tuple[LiveService, Person], tmp_path: Path
) -> None:
    service, person = at
    _, gpu1 = device_uuids(service)
    on = {"gpu": "one", "device": gpu1, "declared_ram": "64 MiB"}
    job = person.submit(python(HOLDER, "vram", "8GiB", tmp_path / "end"), declared_vram="8 GiB", **on)
    person.wait_for(job, "running")
    until(lambda: person.job(job)["used"].get(gpu1) == 8 * GIB, 20, "the job's memory", 0.1)

    with _outsider(service, gpu1, f"0:8GiB,2:{16 * 1024 - 100}MiB") as pid:
        note = "SELECT watchdog_note FROM placement_node"
        until(lambda: rows(service, note)[0][0], 20, "the watchdog's note", 0.1)
        said = rows(service, note)[0][0]
        assert said.startswith("Gpu1 has 100 MiB free, below the mark of 246 MiB, and no job is above its charge")
        assert f"held by pid {pid} " in said
        assert said.endswith("Nothing is stopped.")
        assert "Nothing is stopped." in person.read("/")
        (tmp_path / "end").touch()
        assert person.wait_for(job, "finished", 40)["outcome"] == "completed"
    until(lambda: rows(service, note)[0][0] == "", 20, "the note to go", 0.1)


def test_main_memory_that_runs_out_stops_the_one_above_its_declaration(
    at: tuple[LiveService, Person], simulated: Job
) -> None:
    service, person = at
    on = {"gpu": "one", "declared_vram": "1 GiB"}
    within = person.submit(simulated("0:1GiB", 300, ram="100MiB"), declared_ram="500 MiB", **on)
    above = person.submit(simulated("0:1GiB", 300, ram="0:600MiB"), declared_ram="100 MiB", **on)
    for job in (within, above):
        person.wait_for(job, "running")
    all_of_it = re.compile(r"uses 6\d\d MiB .*above the 100 MiB that it was granted")  # 600 MiB and the interpreter
    until(lambda: any(all_of_it.search(flag) for flag in person.job(above)["flags"]), 20, "the flag", 0.1)
    assert person.job(above)["state"] == "running"  # there is enough, so far

    with _everything_is_short(service):
        ended = person.wait_for(above, "finished", 30)
        assert ended["outcome"] == "cap_exceeded"
        assert ended["evidence"]["watchdog"]["pool"] == "ram"
        assert ended["sentence"].startswith("Killed by the watchdog: used 6")
        assert person.job(within)["state"] == "running"
    assert _number(_kept(service, above, "next_charge"), "ram") >= 700 * MIB


def test_where_the_policy_says_so_a_job_is_stopped_at_its_ram_cap_and_its_neighbour_lives(
    at: tuple[LiveService, Person], simulated: Job
) -> None:
    service, person = at
    on = {"gpu": "one", "declared_vram": "1 GiB", "declared_ram": "100 MiB"}
    with _turned(service, watch_policy="cap"):
        within = person.submit(simulated("0:1GiB", 300, ram="100MiB"), **on)
        above = person.submit(simulated("0:1GiB", 300, ram="0:300MiB,1:900MiB"), **on)
        ended = person.wait_for(above, "finished", 30)
        found = ended["evidence"]["watchdog"]
        cap = (100 + 512) * MIB
        assert ended["outcome"] == "cap_exceeded"
        told = re.match(r"Killed by the watchdog: used (\d+) MiB of 612 MiB, its cap in the RAM of ", ended["sentence"])
        assert told is not None, ended["sentence"]
        assert 612 < int(told[1]) < 1000  # it may still be on its way to the 900 MiB that it wants
        assert (found["policy"], found["cap"]) == ("cap", cap)
        assert all(figure > cap for figure in found["samples"])
        assert person.job(within)["state"] == "running"
    assert _number(_kept(service, above, "next_charge"), "ram") > cap


@contextmanager
def _everything_is_short(service: LiveService) -> Iterator[None]:
    """Raise the watchdog's mark for main memory above all that the machine has."""
    with _turned(service, watch_ram_mib=1 << 30, watch_ram_max_mib=1 << 30):
        yield


@contextmanager
def _turned(service: LiveService, **knobs: int | str) -> Iterator[None]:
    model = "from placement.models import KnobOverride as K; "
    turn = "; ".join(f"K.objects.create(name={name!r}, value={value!r})" for name, value in knobs.items())
    service.manage("shell", "-c", model + turn)
    try:
        yield
    finally:
        service.manage("shell", "-c", model + "K.objects.all().delete()")


def test_a_job_that_meets_its_own_cap_is_charged_more_until_it_fits(
    at: tuple[LiveService, Person], simulated: Job
) -> None:
    service, person = at
    gpu0, _ = device_uuids(service)
    command = simulated("0:1GiB,1:6GiB", 6)
    on = {"gpu": "one", "device": gpu0, "declared_ram": "64 MiB", "declared_vram": "2 GiB"}
    caps, charges = [], []
    for _ in range(2):
        ended = person.wait_for(person.submit(command, **on), "finished")
        assert ended["outcome"] == "cap_exceeded", ended["sentence"]
        charge = ended["charges"][gpu0]
        charges.append(charge["at_start"])
        caps.append(charge["cap"])
        assert ended["evidence"]["cap_receipt"]["cap"] == charge["cap"]
        assert "ran past its cap of" in ended["sentence"]
    assert charges[0] == 2 * GIB
    assert caps[0] == -(-2 * GIB * 27 // 20)
    assert charges[1] == -(-caps[0] * 3 // 2)
    fits = person.wait_for(person.submit(command, **on), "finished")
    assert fits["outcome"] == "completed", fits["sentence"]
    assert fits["charges"][gpu0]["at_start"] == -(-caps[1] * 3 // 2)
    learned = person.wait_for(person.submit(command, **on), "finished")
    assert learned["outcome"] == "completed"
    assert (learned["basis"], learned["charges"][gpu0]["at_start"]) == ("measured", 6 * GIB)


def test_a_first_run_has_the_card_alone_with_its_cap_in_every_tongue(at: tuple[LiveService, Person]) -> None:
    service, person = at
    gpu0, _ = device_uuids(service)
    shown = ("TIDEGATE_VRAM_CAP_BYTES", "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION")
    shown += ("CUPY_GPU_MEMORY_LIMIT", "TF_FORCE_GPU_ALLOW_GROWTH")
    command = "echo " + " ".join(f"${name}" for name in shown) + "; exec sleep 60"
    own = {"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}
    first = person.submit(command, gpu="one", device=gpu0, environment=own)
    job = person.wait_for(first, "running")
    left = 24 * GIB - FLOOR
    assert job["basis"] == "cold_start"
    assert (job["charges"][gpu0]["at_start"], job["charges"][gpu0]["cap"]) == (left, left)
    log = service.data / "runs" / f"{first}-1" / "stdout.log"
    until(lambda: log.read_text().endswith("\n"), 20, "its environment")
    assert log.read_text().split() == [str(left), "true", f"{(left - 512 * MIB) * 100 // (24 * GIB) / 100:.2f}",
                                       str(left - 512 * MIB), "true"]  # fmt: skip
    second = person.submit("exec sleep 61", gpu="one", device=gpu0, declared_vram="1 GiB", declared_ram="64 MiB")
    seen = waits(person, second, "cold_start")
    assert seen["headline"].startswith(f"#{first} has been on its first run on gpu0 for ")
