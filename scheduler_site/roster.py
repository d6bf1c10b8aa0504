"""Which programs make a service: broker, two workers, beat, web."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from scheduler_site.children import Program

# The oldest Redis whose commands the message library uses.
OLDEST_REDIS = (6, 2)
# sun_path holds 108 bytes; some clients append to it.
SOCKET_PATH_LIMIT = 100


def redis_version(binary: str) -> tuple[int, int] | None:
    """Return the server's (major, minor), None when it does not say."""
    try:
        answer = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"v=(\d+)\.(\d+)", answer.stdout)
    return (int(found[1]), int(found[2])) if found else None


def usable_redis() -> tuple[str | None, str]:
    """Return the path of a redis-server that is new enough, or None and the reason in words."""
    binary = shutil.which("redis-server")
    if binary is None:
        return None, "redis-server is not installed"
    version = redis_version(binary)
    if version is None:
        return None, f"{binary} does not tell its version"
    if version < OLDEST_REDIS:
        return None, f"{binary} is {version[0]}.{version[1]}, older than 6.2"
    return binary, f"{binary} {version[0]}.{version[1]}"


def socket_folder(data: Path) -> Path:
    """Return a directory of ours alone for the broker's socket, near the data if its path is short enough."""
    folder = data / "broker"
    if len(os.fsencode(folder / "redis.sock")) < SOCKET_PATH_LIMIT:
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder
    above = os.environ.get("XDG_RUNTIME_DIR", "")
    return Path(tempfile.mkdtemp(prefix="tidegate-", dir=above if os.path.isdir(above) else "/tmp"))


def redis(binary: str, folder: Path, environment: Mapping[str, str], log: Path) -> Program:
    """Return a server that only this account can reach and that keeps nothing on disk."""
    path = folder / "redis.sock"
    arguments = ("--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700", "--dir", str(folder))
    return Program(
        name="broker",
        argv=(binary, *arguments, "--save", "", "--appendonly", "no"),
        environment=environment,
        log=log,
        ready=lambda: _redis_answers(path),
        marks=(path,),
    )


def worker(
    name: str,
    queue: str,
    data: Path,
    environment: Mapping[str, str],
    pool: tuple[str, ...],
    pass_fds: tuple[int, ...] = (),
) -> Program:
    """Return one Celery worker; it leaves a mark when it takes messages.

    Celery would have Django's checks made and not look at what they say: that loads every page and the API, 30 MB in
    each worker that no task needs.
    """
    mark = data / "run" / f"{name}.ready"
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "WARNING")
    return Program(
        name=name,
        argv=(*_celery("celery"), "worker", "--hostname", name, "--queues", queue, *pool, *quiet),
        environment={**environment, "TIDEGATE_READY_FILE": str(mark), "CELERY_SKIP_CHECKS": "1"},
        log=data / "logs" / f"{name.partition('@')[0]}.log",
        ready=mark.exists,
        marks=(mark,),
        pass_fds=pass_fds,
    )


def workers(data: Path, node_name: str, environment: Mapping[str, str], cycle_pipe: int | None) -> list[Program]:
    """Return the two workers of one node: its loop and its starts."""
    fds = () if cycle_pipe is None else (cycle_pipe,)
    with_pipe = environment if cycle_pipe is None else {**environment, "TIDEGATE_CYCLE_PIPE": str(cycle_pipe)}
    return [
        worker(f"start@{node_name}", f"start.{node_name}", data, environment, ("-P", "prefork", "-c", "2")),
        worker(f"tick@{node_name}", f"node.{node_name}", data, with_pipe, ("-P", "solo"), fds),
    ]


def beat(data: Path, environment: Mapping[str, str]) -> Program:
    """Return the clock that sends a tick each second."""
    scheduler = ("--scheduler", "scheduler_site.beat:MonotonicScheduler", "--pidfile=")
    return Program(
        name="beat",
        argv=(*_celery("clock"), "beat", *scheduler, "--loglevel", "WARNING"),
        environment={key: value for key, value in environment.items() if key != "DJANGO_SETTINGS_MODULE"},
        log=data / "logs" / "beat.log",
        ready=lambda: True,
    )


def web(data: Path, listener: socket.socket, environment: Mapping[str, str]) -> Program:
    """Return the web server on a socket that we hold: while it restarts, callers wait instead of failing."""
    number = listener.fileno()
    worker = ("-k", "scheduler_site.webserver.Worker", "-w", "1", "--threads", "8", "--timeout", "30")
    return Program(
        name="web",
        argv=(
            *(sys.executable, "-m", "gunicorn", "scheduler_site.wsgi:application"),
            *("--bind", f"fd://{number}", *worker, "--graceful-timeout", "2"),
            *("--no-control-socket", "--log-level", "warning"),
            *("--config", "python:scheduler_site.webserver"),
        ),
        environment=environment,
        log=data / "logs" / "web.log",
        ready=lambda: _web_answers(listener),
        pass_fds=(number,),
    )


def _celery(application: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "celery", "--app", f"scheduler_site.{application}")


def _redis_answers(path: Path) -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(1)
            client.connect(str(path))
            client.sendall(b"PING\r\n")
            return client.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def _web_answers(listener: socket.socket) -> bool:
    """Return whether anything answers HTTP there; urllib would double the supervisor's memory."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    try:
        with socket.create_connection((host, port), timeout=1) as client:
            client.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
            return client.recv(16).startswith(b"HTTP/1.")
    except OSError:
        return False
