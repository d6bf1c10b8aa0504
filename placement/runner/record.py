"""What the files in control/ say.

A file of any version is read: unknown fields are passed over, missing ones are empty.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from placement.runner.descendants import Member
from placement.runner.identity import Identity
from placement.runner.jsonfile import control_path, create_record, read_json, seconds

CLAIM = "claim"
STARTED = "started.json"
LEADER = "leader.json"
EXIT = "exit.json"

_MOST_SMALL = 1 << 31  # pids, codes and signals stay below


class Started(NamedTuple):
    """The child exists and is about to become the command. `at` is wall time, `boottime` CLOCK_BOOTTIME."""

    job_id: int | None
    attempt: int | None
    runner: Identity
    child: Identity
    at: float
    boottime: float

    @property
    def boot_id(self) -> str:
        """The boot in which the run started."""
        return self.runner.boot_id


class LeaderExit(NamedTuple):
    """The command itself has ended; `left` are the processes that outlived it (at most 100 named)."""

    code: int | None
    signal: int | None
    at: float
    left: tuple[Member, ...]
    left_count: int


class LogFigures(NamedTuple):
    """Lengths of the two logs, and how many bytes of them were given back to the disk."""

    stdout_bytes: int | None
    stderr_bytes: int | None
    trimmed_bytes: int


class ExitRecord(NamedTuple):
    """How an attempt ended. Times are wall time except `duration_s`, which is monotonic."""

    job_id: int | None
    attempt: int | None
    boot_id: str
    code: int | None = None
    signal: int | None = None
    start_error: str | None = None
    stopped_by: str | None = None
    killed: bool = False
    stop_requested_at: float | None = None
    leader_exit_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    duration_s: float | None = None
    max_rss_bytes: int | None = None
    leftovers: tuple[Member, ...] = ()
    swept: bool = False
    oom_kill_delta: int | None = None
    log: LogFigures = LogFigures(None, None, 0)
    cgroup: dict[str, Any] | None = None  # what its control group says of it: see cgroup.figures
    container: dict[str, Any] | None = None  # name, id, oom_killed, code, limit (bytes) of the one it ran in


def claim(run_dir: str, identity: Identity) -> bool:
    """Take this attempt for this process; False where another has it. OSError: control/ is not writable."""
    return create_record(control_path(run_dir, CLAIM), identity._asdict())


def read_claim(run_dir: str | os.PathLike[str]) -> Identity | None:
    """Return who claimed this attempt; None where nobody did, or where the claim names nobody."""
    fields = read_json(control_path(run_dir, CLAIM))
    return None if fields is None else _identity(fields, _text(fields.get("boot_id")) or "")


def started_fields(started: Started) -> dict[str, Any]:
    """Return started.json's fields."""
    return {
        "job_id": started.job_id,
        "attempt": started.attempt,
        "boot_id": started.boot_id,
        "runner": {"pid": started.runner.pid, "start_ticks": started.runner.start_ticks},
        "child": {"pid": started.child.pid, "start_ticks": started.child.start_ticks},
        "at": started.at,
        "boottime": started.boottime,
    }


def read_started(run_dir: str | os.PathLike[str]) -> Started | None:
    """Return started.json, None where it is missing or names no processes."""
    fields = read_json(control_path(run_dir, STARTED))
    if fields is None:
        return None
    boot_id = _text(fields.get("boot_id")) or ""
    runner = _identity(fields.get("runner"), boot_id)
    child = _identity(fields.get("child"), boot_id)
    if runner is None or child is None:
        return None
    return Started(
        job_id=_integer(fields.get("job_id")),
        attempt=_integer(fields.get("attempt")),
        runner=runner,
        child=child,
        at=seconds(fields.get("at")) or 0.0,
        boottime=seconds(fields.get("boottime")) or 0.0,
    )


def leader_fields(leader: LeaderExit) -> dict[str, Any]:
    """Return leader.json's fields."""
    return {**leader._asdict(), "left": [member._asdict() for member in leader.left]}


def read_leader(run_dir: str | os.PathLike[str]) -> LeaderExit | None:
    """Return leader.json, None where it is missing or unreadable."""
    fields = read_json(control_path(run_dir, LEADER))
    if fields is None:
        return None
    left = _members(fields.get("left"))
    count = _integer(fields.get("left_count"))
    return LeaderExit(
        code=_integer(fields.get("code"), _MOST_SMALL),
        signal=_integer(fields.get("signal"), _MOST_SMALL),
        at=seconds(fields.get("at")) or 0.0,
        left=left,
        left_count=len(left) if count is None else count,
    )


def exit_fields(record: ExitRecord) -> dict[str, Any]:
    """Return exit.json's fields."""
    members = [member._asdict() for member in record.leftovers]
    return {**record._asdict(), "leftovers": members, "log": record.log._asdict()}


def read_exit(run_dir: str | os.PathLike[str]) -> ExitRecord | None:
    """Return exit.json, None where it is missing or unreadable. Fields it lacks keep their empty value."""
    fields = read_json(control_path(run_dir, EXIT))
    if fields is None:
        return None
    log = fields.get("log")
    log = log if isinstance(log, dict) else {}
    return ExitRecord(
        job_id=_integer(fields.get("job_id")),
        attempt=_integer(fields.get("attempt")),
        boot_id=_text(fields.get("boot_id")) or "",
        code=_integer(fields.get("code"), _MOST_SMALL),
        signal=_integer(fields.get("signal"), _MOST_SMALL),
        start_error=_text(fields.get("start_error")),
        stopped_by=_text(fields.get("stopped_by")),
        killed=fields.get("killed") is True,
        stop_requested_at=seconds(fields.get("stop_requested_at")),
        leader_exit_at=seconds(fields.get("leader_exit_at")),
        started_at=seconds(fields.get("started_at")),
        ended_at=seconds(fields.get("ended_at")),
        duration_s=seconds(fields.get("duration_s")),
        max_rss_bytes=_integer(fields.get("max_rss_bytes")),
        leftovers=_members(fields.get("leftovers")),
        swept=fields.get("swept") is True,
        oom_kill_delta=_integer(fields.get("oom_kill_delta")),
        log=LogFigures(
            _integer(log.get("stdout_bytes")),
            _integer(log.get("stderr_bytes")),
            _integer(log.get("trimmed_bytes")) or 0,
        ),
        cgroup=_group(fields.get("cgroup")),
        container=_container(fields.get("container")),
    )


def _container(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    texts = {name: _text(value.get(name)) or "" for name in ("name", "id")}
    numbers = {name: _integer(value.get(name)) for name in ("code", "limit")}
    return {**texts, **numbers, "oom_killed": value.get("oom_killed") is True}


def _group(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    figures = ("version", "oom", "oom_kill", "oom_group_kill", "memory_max", "memory_peak")
    return {"path": _text(value.get("path")) or "", **{name: _integer(value.get(name)) for name in figures}}


def _identity(value: Any, boot_id: str) -> Identity | None:
    if not isinstance(value, dict):
        return None
    pid, start_ticks = _integer(value.get("pid"), _MOST_SMALL), _integer(value.get("start_ticks"))
    if pid is None or pid <= 1 or start_ticks is None:
        return None  # no process of ours is 0 or 1, and below them the kernel means "many"
    return Identity(pid, start_ticks, boot_id)


def _members(value: Any) -> tuple[Member, ...]:
    entries = [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
    return tuple(
        Member(
            pid=_integer(entry.get("pid")) or 0,
            start_ticks=_integer(entry.get("start_ticks")) or 0,
            name=_text(entry.get("name")) or "",
            rss_bytes=_integer(entry.get("rss_bytes")),
        )
        for entry in entries
    )


def _integer(value: Any, most: int = 1 << 62) -> int | None:
    """Return a whole number that a database can hold."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if -most < value < most else None


def _text(value: Any) -> str | None:
    """Return a text that a database can hold."""
    return value.encode("utf-8", "replace").decode().replace("\0", "") if isinstance(value, str) else None
