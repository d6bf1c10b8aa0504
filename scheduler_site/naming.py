"""What this machine is called: the name that its data knows it by, whatever becomes of the host's."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

_FILE = "node"


def kept(data: Path, environment: Mapping[str, str] = os.environ) -> str:
    """Return the name under which the service was last started on this data, "" where none counts.

    Beside a PostgreSQL server none does: a copy of the directory on a second machine would be the same node there.
    """
    if environment.get("TIDEGATE_DATABASE_URL", "").startswith("postgres"):
        return ""
    try:
        return (data / _FILE).read_text().strip()
    except (OSError, ValueError):
        return ""


def settled(data: Path, environment: Mapping[str, str], host: str | None = None) -> tuple[str, str]:
    """Return this machine's name, and what to say where the host has come to be called otherwise, else ""."""
    host = socket.gethostname() if host is None else host
    told, known = environment.get("TIDEGATE_NODE", "").strip(), kept(data, environment)
    if told or known in {"", host}:
        return told or host, ""
    return known, (
        f"This machine is called {host} now; its jobs and declarations are kept under {known}, which it goes on to be"
        f" here. TIDEGATE_NODE={host} would make it a new node."
    )


def keep(data: Path, name: str) -> None:
    """Write the name down for the next start."""
    if kept(data, {}) != name:
        (data / _FILE).write_text(f"{name}\n")
