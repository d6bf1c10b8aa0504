"""Redis and PostgreSQL servers that live as long as a test session, on sockets in a directory of their own."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scheduler_site import roster
from tests.wait import until


@contextmanager
def redis() -> Iterator[str]:
    """Start redis-server and yield its URL; skip the test where there is none."""
    binary, finding = roster.usable_redis()
    if binary is None:
        pytest.skip(finding)
    with tempfile.TemporaryDirectory(prefix="tidegate-redis-") as folder:
        program = roster.redis(binary, Path(folder), os.environ, Path(folder) / "log")
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(program.argv, stdout=log, stderr=log)
        try:
            until(program.ready, 20, "redis-server to answer")
            yield f"redis+socket://{folder}/redis.sock?virtual_host=0"
        finally:
            process.terminate()
            process.wait(10)


@contextmanager
def postgres() -> Iterator[str]:
    """Start a PostgreSQL cluster without disk syncs and yield the URL of its empty database."""
    binaries = postgres_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL's server (initdb, postgres) is not installed")
    folder = Path(tempfile.mkdtemp(prefix="tidegate-pg-"))
    # initdb refuses root, so root lends the directory to the account that Debian's package makes.
    account = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
    if account is not None:
        os.chown(folder, account.pw_uid, account.pw_gid)
    identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}
    data = folder / "data"
    try:
        subprocess.run(
            [binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "--locale=C.UTF-8"],
            check=True,
            capture_output=True,
            cwd=folder,
            **identity,
        )
        server = [binaries / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(server, stdout=log, stderr=log, cwd=folder, **identity)
        try:
            asked = ["psql", "-h", str(folder), "-U", "postgres", "-c", "CREATE DATABASE tidegate"]
            until(lambda: subprocess.run(asked, capture_output=True).returncode == 0, 20, "PostgreSQL", 0.1)
            yield f"postgresql://postgres@/tidegate?host={folder}"
        finally:
            process.terminate()
            process.wait(20)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def postgres_binaries() -> Path | None:
    """Return the directory of the newest installed server's programs."""
    on_path = shutil.which("initdb")
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda path: int(path.split("/")[4]))
    best = found[-1] if found else on_path
    return Path(best).parent if best and shutil.which("psql") else None
