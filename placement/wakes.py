"""Messages to nodes: look now, start this. By name, so that the web process loads nothing of the loop."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from celery import current_app
from kombu.exceptions import OperationalError

from placement.models import Node

log = logging.getLogger(__name__)


def wake_all() -> bool:
    """Ask every node to look now; False when the broker is away (the next tick sees it all the same)."""
    return all(_send("placement.tasks.wake", f"node.{name}", (), expires=5) for name in _nodes())


def send_start(node: str, starts: Sequence[tuple[int, int]]) -> bool:
    """Tell a node's start worker to launch these attempts (job, attempt); False when the broker is away."""
    return _send("placement.tasks.start", f"start.{node}", (list(starts),), expires=30)


def _nodes() -> list[str]:
    return list(Node.objects.values_list("name", flat=True))


def _send(task: str, queue: str, arguments: tuple[Any, ...], expires: float) -> bool:
    try:
        current_app.send_task(task, arguments, queue=queue, routing_key=queue, expires=expires, retry=False)
    except (OperationalError, OSError) as error:
        log.warning("the broker is away, %s was not sent: %s", task, error, extra={"action": "broker_away"})
        return False
    return True
