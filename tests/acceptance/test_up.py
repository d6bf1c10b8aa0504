"""`up` with its real processes: what dies comes back, what ends leaves nothing, two do not share data."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.machine_pace import within
from tests.service import REPOSITORY, LiveService, live_service
from tests.wait import until


@pytest.fixture(scope="module", params=["redis", pytest.param("files", marks=pytest.mark.slow)])
def service(request: pytest.FixtureRequest) -> Iterator[LiveService]:
    with live_service(broker=request.param, migrated=False) as live:
        yield live


def command(service: LiveService, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scheduler_site", *arguments],
        env=service.environment,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
    )


def members(pid: int) -> list[psutil.Process]:
    """Return the process and all below it."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def test_pages_answer_and_the_health_check_needs_no_login(service: LiveService) -> None:
    assert service.get("/healthz") == (200, "ok")


@pytest.mark.parametrize("name", ["web", "beat", "tick", "start", "broker"])
def test_a_killed_process_is_back_within_a_second(service: LiveService, name: str) -> None:
    if name == "broker" and "broker" not in service.up()["children"]:
        assert (service.data / "broker").is_dir()  # the broker is files here: there is nothing to kill
        return
    before = service.pid(name)

    with within(1.0):
        os.kill(before, signal.SIGKILL)
        after = until(lambda: (pid := _pid_or_zero(service, name)) != before and pid, 20, f"a new {name}")

    assert psutil.pid_exists(after)
    assert service.get("/healthz", timeout=30) == (200, "ok")


def _pid_or_zero(service: LiveService, name: str) -> int:
    try:
        return service.pid(name)
    except (TypeError, KeyError):
        return 0  # ended and not started again yet


def test_a_second_up_says_who_runs(service: LiveService) -> None:
    second = command(service, "up", "--data", str(service.data), "--port", "0")

    assert second.returncode == 3
    assert f"process {service.up()['pid']} at {service.address}, since" in second.stdout


def test_a_port_that_is_taken_is_one_sentence(service: LiveService, tmp_path: Path) -> None:
    port = service.address.rpartition(":")[2]

    refused = command(service, "up", "--data", str(tmp_path), "--port", port)

    assert refused.returncode == 2
    assert refused.stdout.strip().count("\n") == 0
    assert f"port {port}" in refused.stdout
    assert "--port" in refused.stdout
    assert refused.stderr == ""


def test_state_is_for_this_account_alone(service: LiveService) -> None:
    assert service.data.stat().st_mode & 0o077 == 0
    assert (service.data / "secret.key").stat().st_mode & 0o077 == 0


def test_down_stops_it_and_leaves_no_process() -> None:
    with live_service(broker="files", simulate="1x24GiB") as live:
        processes = members(live.up()["pid"])
        assert len(processes) >= 6

        with within(10.0):
            down = command(live, "down", "--data", str(live.data))

        assert (down.returncode, down.stdout) == (0, "Tidegate has stopped; no job is running.\n")
        assert live.process is not None
        assert live.process.wait(60) == 0
        assert alive(processes) == []
        assert live.said().strip().splitlines()[-1] == "Tidegate has stopped; no job is running."
        again = command(live, "down", "--data", str(live.data))
        assert again.stdout.startswith("Tidegate does not run on ")


def test_a_killed_supervisor_leaves_no_process(service: LiveService) -> None:
    processes = members(service.up()["pid"])

    os.kill(service.up()["pid"], signal.SIGKILL)
    assert service.process is not None
    service.process.wait(60)

    until(lambda: not alive(processes), 20, "the end of every process")
    service.start()  # and the data is free for the next one
    assert service.get("/healthz") == (200, "ok")


def test_a_tick_worker_asleep_inside_its_cycle_is_replaced(service: LiveService) -> None:
    before, said = service.pid("tick"), len(service.said())
    # What a cycle that never ends looks like from outside: the begin mark, and then a stopped process.
    os.kill(before, signal.SIGSTOP)
    pipe = _cycle_pipe_of(before)
    with open(pipe, "wb", buffering=0) as file:
        file.write(b"B")

    until(lambda: _pid_or_zero(service, "tick") not in (0, before), 20, "a new tick worker")

    assert "was inside one cycle for more than 3 s" in service.said()[said:]


def _cycle_pipe_of(pid: int) -> Path:
    environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    (number,) = [entry.partition(b"=")[2] for entry in environment if entry.startswith(b"TIDEGATE_CYCLE_PIPE=")]
    return Path(f"/proc/{pid}/fd/{int(number)}")


def test_pages_and_node_can_run_apart(redis_url: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TIDEGATE_")}
    environment |= {"TIDEGATE_DATA": str(data), "TIDEGATE_BROKER_URL": redis_url, "TIDEGATE_NODE": "apart"}
    prepared = subprocess.run(
        [sys.executable, "-m", "scheduler_site.errands", "prepare", "--simulate", "1x24GiB"],
        env=environment | {"DJANGO_SETTINGS_MODULE": "scheduler_site.settings"},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert prepared.returncode == 0, prepared.stderr
    parts = []
    try:
        for arguments in (["worker"], ["web", "--port", "0"]):
            with (tmp_path / arguments[0]).open("wb") as output:
                command_line = [sys.executable, "-m", "scheduler_site", *arguments]
                parts.append(
                    subprocess.Popen(command_line, env=environment, cwd=REPOSITORY, stdout=output, stderr=output)
                )
        for name in ("worker", "web"):
            until(lambda name=name: "Tidegate is up" in (tmp_path / name).read_text(), 60, name)

        worker = json.loads((data / "worker.json").read_text())
        web = json.loads((data / "web.json").read_text())
        assert set(worker["children"]) == {"start@apart", "tick@apart", "beat"}
        assert set(web["children"]) == {"web"}
        with urllib.request.urlopen(web["address"] + "/healthz", timeout=30) as answer:
            assert answer.read() == b"ok"
    finally:
        for part in parts:
            part.terminate()
        assert [part.wait(60) for part in parts] == [0, 0]
