"""What an ended run left behind that says how it ended: receipts of its cap, and the end of its logs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

TAIL = 16 << 10  # bytes of each log that may hold the reason


def log_tail(run_dir: Path) -> str:
    """Return the end of both logs as text, errors last; "" where there is none."""
    return "\n".join(_tail(run_dir / name) for name in ("stdout.log", "stderr.log"))


def _tail(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        file.seek(max(0, size - TAIL))
        return file.read(TAIL).decode("utf-8", "replace")


def cap_receipt(run_dir: Path) -> dict[str, Any] | None:
    """Return the newest receipt of an allocation that the job's cap refused, None where there is none."""
    folder = run_dir / "receipts"
    newest: tuple[float, dict[str, Any]] | None = None
    try:
        names = sorted(os.listdir(folder))[:200]
    except OSError:
        return None
    for name in names:
        if not name.endswith(".vram-cap.json"):
            continue
        try:
            descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as file:
                content = json.loads(file.read(4096))
                at = os.fstat(descriptor).st_mtime
        except (OSError, ValueError):
            continue
        if isinstance(content, dict) and (newest is None or at > newest[0]):
            newest = (at, content)
    return newest[1] if newest else None
