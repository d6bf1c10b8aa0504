"""A small machine of its own with systemd and cgroup v2, in user-mode Linux: built once, then booted with our code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from scheduler_site.units import SCOPES, Wanted, scopes_unit

PROGRAMS = ("linux.uml", "debootstrap", "mke2fs")
PACKAGES = "systemd-sysv,dbus,dbus-user-session,libpam-systemd,python3,procps"
MIRROR = "http://deb.debian.org/debian"
CODE = Path(__file__).resolve().parents[2]
UNIT = """\
[Unit]
Description=What the test asks
After=multi-user.target user@1000.service tidegate-scopes.service
Wants=user@1000.service
[Service]
Type=oneshot
ExecStart=/usr/bin/python3 /opt/tidegate/tests/uml/guest.py
ExecStopPost=/usr/bin/systemctl poweroff --no-block
StandardOutput=tty
TTYPath=/dev/tty0
StandardError=tty
[Install]
WantedBy=default.target
"""


def missing() -> list[str]:
    """Return the programs that a machine needs and that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


class NoSystem(Exception):
    """No root file system can be had here; the message says why."""


def build(folder: Path) -> Path:
    """Return the root file system, made with the distribution's own tools where it is not there yet.

    Raise NoSystem where its packages cannot be had.
    """
    root, done = folder / "root", folder / "built"
    if not done.exists():
        shutil.rmtree(root, ignore_errors=True)  # half of one, where an earlier attempt was cut short
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root), MIRROR]
        log = folder / "debootstrap.log"
        with log.open("wb") as said:
            code = subprocess.run(command, check=False, stdout=said, stderr=said, timeout=1200, umask=0o022).returncode
        if code:
            raise NoSystem(f"debootstrap ended with code {code}: {log.read_text(errors='replace')[-500:].strip()}")
        done.touch()
    return root


def boot(root: Path, folder: Path, timeout_s: float = 300.0) -> dict[str, Any]:
    """Boot a copy with our code in it and return what the guest found out."""
    prepare(root)
    image = folder / "image"
    image.unlink(missing_ok=True)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", str(root), str(image), "1G"], check=True, timeout=300)
    command = [
        "linux.uml", f"ubd0={image}", "root=/dev/ubda", "rw", "mem=768M", "con=null", "con0=fd:0,fd:1", "console=tty0",
        "systemd.unified_cgroup_hierarchy=1", "quiet",
    ]  # fmt: skip
    log = folder / "console"
    with log.open("wb") as console:
        environment = {"PATH": os.environ["PATH"], "TMPDIR": str(folder), "HOME": str(folder)}
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            timeout=timeout_s,
            env=environment,
            check=False,
        )
    for line in log.read_text(errors="replace").splitlines():
        if "TIDEGATE {" in line:
            found = json.loads(line[line.index("{") :])
            assert isinstance(found, dict)
            return found
    raise AssertionError(f"the machine said nothing of its own: {log.read_text(errors='replace')[-3000:]}")


def prepare(root: Path) -> None:
    """Put our code, an account and the unit that runs the guest's part into the root file system."""
    opt = root / "opt/tidegate"
    shutil.rmtree(opt, ignore_errors=True)
    for part in ("placement/__init__.py", "placement/runner", "tests/__init__.py", "tests/uml"):
        source, target = CODE / part, opt / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    subprocess.run(["chmod", "-R", "a+rX", str(root / "opt")], check=True)  # whatever our umask is
    known = (root / "etc/passwd").read_text()
    for name, uid in (("ada", "1000"), ("bob", "1001"), ("cyd", "1002")):
        if f"{name}:" not in known:
            subprocess.run(["chroot", str(root), "useradd", "-m", "-u", uid, name], check=True, umask=0o022)
    linger = root / "var/lib/systemd/linger/ada"
    linger.parent.mkdir(parents=True, exist_ok=True)
    linger.touch()
    roots = root / SCOPES.relative_to("/")
    roots.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(CODE / "placement/runner/scopes.py", roots)
    subprocess.run(["chmod", "-R", "a+rX", str(roots.parent)], check=True)
    wanted = Wanted(program=CODE / "tidegate", data=Path("/srv"), host="127.0.0.1", port=80, account="cyd")
    _enable(root, "tidegate-scopes.service", scopes_unit(wanted))
    _enable(root, "tidegate-test.service", UNIT)
    (root / "etc/fstab").write_text("/dev/ubda / ext4 defaults 0 0\n")


def _enable(root: Path, name: str, text: str) -> None:
    units = root / "etc/systemd/system"
    (units / name).write_text(text)
    (units / "default.target.wants").mkdir(exist_ok=True)
    link = units / "default.target.wants" / name
    link.unlink(missing_ok=True)
    link.symlink_to(f"/etc/systemd/system/{name}")
