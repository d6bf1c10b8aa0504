"""What gunicorn calls: its worker must not outlive the server that accepts for it."""

from __future__ import annotations

from typing import Any

from scheduler_site import deathsignal


def post_fork(server: Any, worker: Any) -> None:
    """In the new worker: end at once when the server is killed, instead of when the last request is answered."""
    deathsignal.die_with_parent(server.pid)
