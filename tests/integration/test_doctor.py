from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command

from placement.services import capping, inspection, premises
from placement.services.inspection import Finding
from tests.nvml_stub import Device, State, build

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def place(settings: Any, tmp_path: Path) -> Path:
    settings.DATA, settings.RUNS, settings.SIMULATED_DIR = tmp_path, tmp_path / "runs", tmp_path / "simulated"
    settings.SIMULATE, settings.BROKER_IS_FILES = "1x24GiB", True
    return tmp_path


def doctor() -> tuple[str, str, int]:
    out, err = StringIO(), StringIO()
    try:
        call_command("doctor", stdout=out, stderr=err)
    except SystemExit as end:
        return out.getvalue(), err.getvalue(), int(str(end.code))
    return out.getvalue(), err.getvalue(), 0


def test_it_names_everything_that_a_start_needs_and_ends_well(place: Path) -> None:
    out, err, code = doctor()

    assert (err, code) == ("", 0)
    for words in (
        f"{place} is ours",
        "SQLite",
        "main memory",
        "GiB of this host" if "of this host" in out else "allowed by the control group",
        "gpu0 simulated 24 GiB",
        "kernel: " if "a control group per job" in out else "the watchdog looks",
        "free for run directories",
        "process limit",
        "chromium",
    ):
        assert words in out


def test_it_says_what_keeps_device_memory(
    place: Path, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    state = State(tmp_path / "nvml.txt")
    state.write([Device("GPU-a")], missing=["nvmlDeviceGetMemoryLimits_v1"])
    for name, value in state.environ(build(tmp_path)).items():
        monkeypatch.setenv(name, value)
    assert capping.by_kernel("GPU-a").startswith("the driver keeps no job within its cap (the NVIDIA driver: Function")
    state.write([Device("GPU-a")])
    assert capping.by_kernel("GPU-a").startswith("the driver keeps jobs within their caps, where")
    assert capping.by_kernel("MIG-a") == "its jobs are kept in the MIG instance"
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    settings.MPS_LIMITS = True
    out, _, code = doctor()
    assert code == 0
    assert f"MPS: no server lives at {tmp_path}: nothing is told" in out
    assert "torch is told its cap and answers" in out


def test_a_network_mount_ends_it_with_the_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(premises, "network_kind", lambda path: "nfs4")

    out, err, code = doctor()

    assert code == 1
    assert "Tidegate cannot run here. database:" in err
    assert "(nfs4)" in err
    assert "main memory" in out  # the rest is shown all the same


def test_devices_that_cannot_be_simulated_end_it(settings: Any) -> None:
    settings.SIMULATE = "2xlots"

    _, err, code = doctor()

    assert code == 1
    assert "2xlots" in err


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (((7, 0, 15), ""), 0, "Redis 7.0.15 answers"),
        (((6, 0, 16), ""), 1, "6.2 is the oldest that works"),
        ((None, "Connection refused"), 1, "Redis does not answer: Connection refused"),
    ],
)
def test_the_redis_that_the_settings_name(
    settings: Any, monkeypatch: pytest.MonkeyPatch, answer: Any, code: int, words: str
) -> None:
    settings.BROKER_IS_FILES = False
    monkeypatch.setattr(premises, "redis_in_use", lambda: answer)

    out, _, ended = doctor()

    assert ended == code
    assert words in out


@pytest.mark.parametrize("installed", [None, ("/usr/bin/redis-server", (6, 0, 16))])
def test_without_a_usable_redis_files_carry_the_messages(monkeypatch: pytest.MonkeyPatch, installed: Any) -> None:
    monkeypatch.setattr(premises, "redis_on_path", lambda: installed)

    out, _, code = doctor()

    assert code == 0
    assert "so files carry the messages" in out


def test_what_breaks_while_it_is_looked_at_is_a_line_and_not_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("the wheel\ncame off")

    monkeypatch.setattr(premises, "process_limit", broken)

    out, _, code = doctor()

    assert code == 0
    assert "could not be looked at: the wheel came off" in out


def test_a_low_disk_is_said_with_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = inspection.shutil.disk_usage("/")._replace(free=1000 * 2**20)
    monkeypatch.setattr(inspection.shutil, "disk_usage", lambda path: usage)

    low = next(finding for finding in inspection.findings() if finding.what == "disk")

    assert low == Finding("disk", False, low.sentence)
    assert "1000 MiB free" in low.sentence
    assert "below 1.0 GiB nothing new starts" in low.sentence


def manage(data: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "TIDEGATE_DATA": str(data),
        "DJANGO_SETTINGS_MODULE": "scheduler_site.settings",
        "TIDEGATE_BROKER_URL": "",
    }
    line = [sys.executable, str(django_settings.REPOSITORY / "manage.py"), *command]
    return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_before_the_first_start_it_makes_no_database(tmp_path: Path) -> None:
    data = tmp_path / "fresh"
    ended = manage(data, "doctor")

    assert ended.returncode == 0, ended.stderr
    assert "SQLite, made at the first start" in ended.stdout
    assert "could not be looked at" not in ended.stdout
    assert not (data / "tidegate.sqlite3").exists()


def test_a_command_without_a_service_that_ever_ran_says_so_and_shows_no_trace(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    ended = manage(tmp_path, "login_link", "admin")
    assert ended.returncode == 1
    assert ended.stderr.startswith("This database has no tables of Tidegate (no such table: auth_user). ./tidegate up")
