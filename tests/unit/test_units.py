"""The systemd unit: what keeps jobs alive over a restart stands in it, and systemd reads it as it is meant."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from scheduler_site import __main__ as program
from scheduler_site.units import Wanted, scopes_unit, unit

REPOSITORY = Path(__file__).parents[2]
PLAIN = Wanted(
    program=REPOSITORY / "tidegate", data=Path("/srv/tidegate"), host="0.0.0.0", port=80, account="lab", systemd=257
)
KINDS = [
    pytest.param(PLAIN, id="an account, new systemd"),
    pytest.param(replace(PLAIN, systemd=252), id="an account, old systemd"),
    pytest.param(replace(PLAIN, systemd=0), id="an account, systemd unknown"),
    pytest.param(replace(PLAIN, account="root"), id="root"),
    pytest.param(replace(PLAIN, user_manager=True), id="the account's own systemd"),
]


def sections(text: str) -> dict[str, dict[str, str]]:
    """Return the settings by section; each may stand there once."""
    found: dict[str, dict[str, str]] = {}
    here: dict[str, str] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if match := re.fullmatch(r"\[(\w+)\]", line):
            here = found.setdefault(match[1], {})
            continue
        name, sign, value = line.partition("=")
        assert sign, line
        assert name not in here, f"{name} stands twice"
        here[name] = value
    return found


@pytest.mark.parametrize("wanted", KINDS)
def test_a_restart_ends_no_job_and_each_reason_stands_beside_it(wanted: Wanted) -> None:
    text = unit(wanted)
    service = sections(text)["Service"]
    assert (service["KillMode"], service["OOMPolicy"], service["TasksMax"]) == ("process", "continue", "infinity")
    assert ("User" in service) is not wanted.user_manager
    for name in ("KillMode=", "OOMPolicy=", "TasksMax="):
        lines = text.splitlines()
        assert lines[next(n for n, line in enumerate(lines) if line.startswith(name)) - 1].startswith("# ")
    # Without a group of its own for the service, delegation would keep the unit from starting beside its jobs.
    assert ("Delegate" in service) == ("DelegateSubgroup" in service)
    assert ("Delegate" in service) == (wanted.systemd >= 254 and wanted.account == "lab" and not wanted.user_manager)
    assert "219/CGROUP" in text or wanted.user_manager or wanted.account == "root"
    target = "default.target" if wanted.user_manager else "multi-user.target"
    assert sections(text)["Install"] == {"WantedBy": target}
    assert max(map(len, text.splitlines())) <= 120


def test_paths_are_written_so_that_systemd_reads_them_back() -> None:
    service = sections(unit(replace(PLAIN, data=Path('/srv/a b%n$x"y\\z'))))["Service"]
    assert '--data "/srv/a b%%n$$x\\"y\\\\z" --host' in service["ExecStart"]
    assert service["EnvironmentFile"] == '-/srv/a b%%n$x"y\\z/tidegate.env'


def test_the_command_prints_what_the_options_say(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["units", "--data", str(tmp_path), "--host", "0.0.0.0", "--port", "8001", "--account", "lab"]
    assert program.main(arguments) == 0
    service = sections(capsys.readouterr().out)["Service"]
    assert service["User"] == "lab"
    assert service["ExecStart"].endswith(f"tidegate up --data {tmp_path} --host 0.0.0.0 --port 8001")
    assert program.main([*arguments, "--user"]) == 0
    assert "User" not in sections(capsys.readouterr().out)["Service"]


def test_roots_side_runs_what_root_alone_can_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["units", "--scopes", "--account", "lab"]) == 0
    text = capsys.readouterr().out
    service = sections(text)["Service"]
    assert service["ExecStart"] == "/usr/bin/python3 -I /usr/local/lib/tidegate/scopes.py lab"
    assert f"install -D -o root -m 755 {REPOSITORY}/placement/runner/scopes.py" in text
    assert (service["Type"], service["CapabilityBoundingSet"]) == ("notify", "CAP_CHOWN")
    assert program.main(["units", "--scopes", "--account", "root"]) == 2


def test_systemd_finds_nothing_wrong_with_roots_side_either(tmp_path: Path) -> None:
    text = scopes_unit(PLAIN)
    if shutil.which("systemd-analyze") is None:
        assert sections(text).keys() == {"Unit", "Service", "Install"}
        return
    file = tmp_path / "tidegate-scopes.service"
    file.write_text(text)
    found = subprocess.run(["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False)
    assert [line for line in found.stderr.splitlines() if str(file) in line] == []


@pytest.mark.parametrize("wanted", KINDS)
def test_systemd_itself_finds_nothing_wrong(wanted: Wanted, tmp_path: Path) -> None:
    # Each kind is verified as a unit of the system: a manager of an account has to run to verify its own. This
    # systemd may be older than what the unit is for, and a name that it does not know yet is passed over.
    if shutil.which("systemd-analyze") is None:
        assert sections(unit(wanted)).keys() == {"Unit", "Service", "Install"}
        return
    file = tmp_path / "tidegate.service"
    file.write_text(unit(replace(wanted, account="root" if wanted.account == "root" else "daemon")))
    environment = {"PATH": os.environ["PATH"], "SYSTEMD_LOG_LEVEL": "warning"}
    found = subprocess.run(
        ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False, env=environment
    )
    said = [line for line in found.stderr.splitlines() if str(file) in line and "DelegateSubgroup" not in line]
    assert said == []
    assert found.returncode == 0, found.stderr
