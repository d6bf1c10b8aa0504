"""Where the service itself lives: its files, its message broker, its limits."""

from __future__ import annotations

import os
import re
import resource
import shutil
import stat
import subprocess
from pathlib import Path, PurePosixPath
from urllib.parse import parse_qs, urlsplit

from django.conf import settings

from placement.domain import mounts

OLDEST_REDIS = (6, 2)
"""The message library asks for commands that came with it."""


FULL_BELOW = 4 << 20
"""Bytes left with which a database still gets its few pages written, and a little later none."""


def network_kind(path: Path) -> str:
    """Return the kind of network file system that holds the path, "" where it is a local one."""
    try:
        table = Path("/proc/self/mountinfo").read_text()
    except OSError:
        return ""
    kind = mounts.kind_of(PurePosixPath(os.path.realpath(path)), table)
    return kind if kind in mounts.NETWORK else ""


def database_file() -> Path | None:
    """Return the SQLite file, None where the database is a server or lives in memory."""
    database = settings.DATABASES["default"]
    if "sqlite3" not in database["ENGINE"]:
        return None
    name = str(database["NAME"])
    return None if name.startswith((":memory:", "file:")) else Path(name)


def mode_of(path: Path) -> int:
    """Return the permission bits; 0, as for a closed door, where there is no such path."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0


def unwritable(folder: Path) -> str:
    """Return why no file can be made in the folder (or the folder itself not be made), "" where it can."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        return f"{existing} is not a directory"
    probe = existing / f".tidegate-{os.getpid()}"
    try:
        # Asking for permission is not enough: a read-only or full disk answers only when it is written to.
        os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        probe.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def full(folder: Path) -> str:
    """Return that the disk of this folder is full, with what to do, "" where it is not or cannot be told."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return ""
    if free >= FULL_BELOW:
        return ""
    return f"the disk of {folder} is full ({free >> 20} MiB left); make room there"


def redis_on_path() -> tuple[str, tuple[int, ...] | None] | None:
    """Return (path, version) of the redis-server that would be started, None where there is none."""
    binary = shutil.which("redis-server")
    if binary is None:
        return None
    try:
        said = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return binary, None
    found = re.search(r"v=(\d+)\.(\d+)(?:\.(\d+))?", said.stdout)
    return binary, tuple(int(part) for part in found.groups() if part) if found else None


def redis_in_use() -> tuple[tuple[int, ...] | None, str]:
    """Return (version, "") of the server that the settings name, or (None, why it does not answer)."""
    import redis

    url = urlsplit(settings.CELERY_BROKER_URL)
    try:
        if url.scheme == "redis+socket":
            number = int(parse_qs(url.query).get("virtual_host", ["0"])[0].lstrip("/") or 0)
            client = redis.Redis(unix_socket_path=url.path, db=number, socket_timeout=2)
        else:
            client = redis.Redis.from_url(settings.CELERY_BROKER_URL, socket_timeout=2, socket_connect_timeout=2)
        with client:
            said = str(client.info("server")["redis_version"])
    except (redis.RedisError, OSError, ValueError) as error:
        return None, str(error)
    return tuple(int(part) for part in re.findall(r"\d+", said)[:3]), ""


def dotted(version: tuple[int, ...] | None) -> str:
    """Return a version as people write it."""
    return ".".join(map(str, version)) if version else "of unknown version"


def process_limit() -> tuple[int | None, str]:
    """Return how many processes may exist at once (None: no limit seen) and what limits them."""
    limits: list[tuple[int, str]] = []
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft != resource.RLIM_INFINITY and os.geteuid() != 0:  # root is not bound by it
        limits.append((soft, "the account's limit (ulimit -u)"))
    for path, what in (
        ("/sys/fs/cgroup/pids.max", "the control group"),
        ("/proc/sys/kernel/pid_max", "the kernel's process numbers"),
        ("/proc/sys/kernel/threads-max", "the kernel's threads"),
    ):
        try:
            limits.append((int(Path(path).read_text()), what))
        except (OSError, ValueError):
            continue  # no such file here, or "max"
    return min(limits) if limits else (None, "")
