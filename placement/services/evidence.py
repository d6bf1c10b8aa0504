"""What an ended run left behind that says how it ended: receipts of its cap, and the end of its logs.

A job can put anything in their place. Whatever is no regular file, no JSON or no count of bytes says nothing.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

from calibration import clock
from placement.runner import cgroup
from placement.runner.containment import group_of_run
from placement.runner.jsonfile import control_path, read_json
from placement.runner.record import EXIT, ExitRecord
from placement.services import engines

TAIL = 16 << 10  # bytes of each log that may hold the reason
RECEIPT = 4 << 10  # bytes of the longest receipt
_MOST_RECEIPTS = 200  # refusals that are read, the newest: a job may have survived many
FIGURES = ("asked", "held", "device_free", "cap")  # of a receipt, in bytes
COUNTERS = ("oom", "oom_kill", "oom_group_kill", "memory_max", "memory_peak")  # of a control group
_MOST = 1 << 62  # bytes; above it no database holds the number


def rebooted(record: ExitRecord | None) -> str:
    """Return that the machine was started anew since this end was written down, "" where it was not."""
    return "its node has rebooted since" if record and record.boot_id not in {"", clock.boot_id()} else ""


def log_tail(run_dir: Path) -> str:
    """Return the end of both logs as text, errors last; "" where there is none."""
    return "\n".join(_tail(run_dir / name) for name in ("stdout.log", "stderr.log"))


def _tail(path: Path) -> str:
    try:
        return _read(path, TAIL, end=True)[0].decode("utf-8", "replace")
    except OSError:
        return ""


def group(run_dir: Path) -> dict[str, int] | None:
    """Return the counters of the job's own control group, None where it had none.

    As its runner read them last; of a run without a record of its end as they stand, while the group is there.
    """
    fields = read_json(control_path(run_dir, EXIT))
    found = cgroup.figures(group_of_run(run_dir)) if fields is None else fields.get("cgroup")
    if not isinstance(found, dict):
        return None
    return {name: found[name] for name in COUNTERS if _is_count(found.get(name))}


def container(run_dir: Path, record: ExitRecord) -> dict[str, Any]:
    """Return what the engine told of a run's container, with the limit that it had at last in bytes."""
    found = dict(record.container or {})
    limit = engines.limit_of(run_dir, found.get("limit"))
    return {**found, "limit": limit if _is_count(limit) else None}


def driver_limit(run_dir: Path) -> dict[str, Any] | None:
    """Return the driver's own limit for this job and the most that was seen in use, None where there was none.

    Of several devices the one that was nearest to its limit.
    """
    folder = Path(control_path(run_dir, "vram-limit.json")).parent
    found = [kept for path in sorted(folder.glob("vram-limit*.json"))[:64] if (kept := read_json(path)) is not None]
    return max(found, key=_share, default=None)


def _share(kept: dict[str, Any]) -> float:
    used, limit = kept.get("used"), kept.get("limit")
    return used / limit if _is_count(used) and _is_count(limit) and limit else 0.0


def cap_receipt(run_dir: Path, cap: int | None = None) -> tuple[dict[str, int], float] | None:
    """Return the figures of the newest receipt of an allocation that the job's cap refused and its unix second.

    Receipts are the job's own word: one of a larger cap than it was told, in bytes, is nobody's whom we told.
    """
    folder = run_dir / "receipts"
    newest: tuple[float, dict[str, int]] | None = None
    try:
        found = [(_written(folder / name), name) for name in os.listdir(folder) if name.endswith(".vram-cap.json")]
    except OSError:
        return None
    for _, name in sorted(found, reverse=True)[:_MOST_RECEIPTS]:
        try:
            raw, at = _read(folder / name, RECEIPT)
            content = json.loads(raw)
        except (OSError, ValueError, RecursionError):
            continue
        if not isinstance(content, dict) or (newest is not None and at <= newest[0]):
            continue
        figures = {figure: content[figure] for figure in FIGURES if _is_count(content.get(figure))}
        if cap is None or figures.get("cap", 0) <= cap:
            newest = (at, figures)
    return (newest[1], newest[0]) if newest else None


def _written(path: Path) -> float:
    try:
        return os.stat(path, follow_symlinks=False).st_mtime
    except OSError:
        return 0.0


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def _read(path: Path, most: int, *, end: bool = False) -> tuple[bytes, float]:
    """Return the first (or last) bytes of a regular file and when it was written. OSError where it is none."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return os.pread(descriptor, most, max(0, status.st_size - most) if end else 0), status.st_mtime
    finally:
        os.close(descriptor)
