"""The systemd unit of a service whose restart ends no job: `./tidegate units` prints it."""

from __future__ import annotations

import getpass
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SCOPES = Path("/usr/local/lib/tidegate/scopes.py")
# From this version on a unit's own processes can live in a group below the unit's, beside what they delegate.
SUBGROUPS_SINCE = 254
NAME = "tidegate.service"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the unit is for. ``user_manager``: of the account's own systemd; ``systemd`` 0: version unknown."""

    program: Path
    data: Path
    host: str
    port: int
    account: str
    user_manager: bool = False
    systemd: int = 0

    @property
    def where(self) -> Path:
        """Return where the unit belongs."""
        own = Path.home() / ".config/systemd/user"
        return (own if self.user_manager else Path("/etc/systemd/system")) / NAME


def systemd_version() -> int:
    """Return the version of this machine's systemd, 0 where it does not say."""
    try:
        answer = subprocess.run(["systemctl", "--version"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.match(r"systemd (\d+)", answer.stdout)
    return int(found[1]) if found else 0


def account() -> str:
    """Return the account that runs this."""
    return getpass.getuser()


def unit(wanted: Wanted) -> str:
    """Return the text of the unit, each line that keeps jobs alive with its reason."""
    return "\n".join([*_head(wanted), *_unit(), *_service(wanted), *_jobs(wanted), *_install(wanted)]) + "\n"


def scopes_unit(wanted: Wanted) -> str:
    """Return the unit of root's side: it makes scopes of the system for the jobs of an account that is not root."""
    where = Path("/etc/systemd/system/tidegate-scopes.service")
    source = wanted.program.parent / "placement/runner/scopes.py"
    return f"""\
# {where}
# As root: install -D -o root -m 755 {source} {SCOPES}
# Put this file there, then: systemctl daemon-reload && systemctl enable --now {where.name}

[Unit]
Description=Tidegate: scopes of the system for the jobs of {wanted.account}
Before={NAME}

[Service]
Type=notify
# A copy that root alone can change: whoever can write what this runs is root. It imports nothing of the project (-I).
ExecStart=/usr/bin/python3 -I {SCOPES} {_word(wanted.account)}
Restart=on-failure
# It takes requests of that one account, for its own processes; the kernel says who asks. It needs no more than this.
RuntimeDirectory=tidegate
CapabilityBoundingSet=CAP_CHOWN
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
RestrictAddressFamilies=AF_UNIX

[Install]
WantedBy=multi-user.target
"""


def _head(wanted: Wanted) -> Iterator[str]:
    manage = "systemctl --user" if wanted.user_manager else "systemctl"
    yield f"# {wanted.where}"
    yield f"# Put it there, then: {manage} daemon-reload && {manage} enable --now {NAME}"
    if wanted.user_manager:
        yield f"# So that it runs while nobody is logged in: loginctl enable-linger {wanted.account}"
    elif wanted.account != "root":
        yield f"# So that jobs can get control groups of their own: loginctl enable-linger {wanted.account}"
        yield f"# or, where that is not wanted, root makes them: ./tidegate units --scopes --account {wanted.account}"
    yield ""


def _unit() -> Iterator[str]:
    yield "[Unit]"
    yield "Description=Tidegate: starts GPU jobs when measured memory leaves room"
    yield "After=network.target"
    yield ""


def _service(wanted: Wanted) -> Iterator[str]:
    yield "[Service]"
    yield "Type=exec"
    if not wanted.user_manager:
        yield f"User={wanted.account}"
    yield f"WorkingDirectory={_path(wanted.program.parent)}"
    words = [str(wanted.program), "up", "--data", str(wanted.data), "--host", wanted.host, "--port", str(wanted.port)]
    yield f"ExecStart={' '.join(map(_word, words))}"
    yield f"EnvironmentFile=-{_path(wanted.data / 'tidegate.env')}"
    yield "Restart=on-failure"
    yield "RestartSec=2"
    yield "TimeoutStopSec=30"
    yield ""


def _jobs(wanted: Wanted) -> Iterator[str]:
    yield "# A stop or restart ends this service's own processes and no job. Only the supervisor gets the signal: it"
    yield "# ends its children in order, and they die with it where it is killed. The default, control-group, would"
    yield "# kill each job whose processes are still in this unit's group, and so would mixed."
    yield "KillMode=process"
    yield "# Where a job dies for lack of memory in this unit's group, the default would stop the service with it."
    yield "OOMPolicy=continue"
    yield "# Jobs without a group of their own count here: a storm of forks must not keep the service from its own."
    yield "TasksMax=infinity"
    if wanted.user_manager or wanted.account == "root":
        yield "# No Delegate=: jobs get scopes of their own beside this unit, which its restarts do not touch."
    elif wanted.systemd >= SUBGROUPS_SINCE:
        yield "# Jobs may get groups below this unit's. Its own processes then need one, too: a group that hands"
        yield "# controllers down holds no process, and a restart beside living jobs would end with 219/CGROUP."
        yield "Delegate=memory pids"
        yield "DelegateSubgroup=service"
    else:
        known = f"systemd {wanted.systemd}" if wanted.systemd else "a systemd of unknown version"
        yield f"# No Delegate=, for {known}: before {SUBGROUPS_SINCE} there is no DelegateSubgroup=, and a unit whose"
        yield "# jobs live in groups below it cannot start again beside them (219/CGROUP). Jobs get scopes of the"
        yield "# account's own systemd where that runs, or by root's side (above), else the watchdog alone keeps them."
    yield ""


def _install(wanted: Wanted) -> Iterator[str]:
    yield "[Install]"
    yield f"WantedBy={'default' if wanted.user_manager else 'multi-user'}.target"


def _word(text: str) -> str:
    """Return one word of a command line as systemd reads it back."""
    shown = _path(text).replace("$", "$$")
    if re.fullmatch(r"[\w@%+=:,./$-]+", shown):
        return shown
    inside = shown.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inside}"'


def _path(path: object) -> str:
    """Return a path in which no % stands for anything."""
    return str(path).replace("%", "%%")
