"""Names and rules of the messages, in plain Python: the schedule's process does without Django."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kombu import Queue
from kombu.transport import TRANSPORT_ALIASES

FILES = "safefs"
TRANSPORT_ALIASES[FILES] = "scheduler_site.broker:Transport"


def folder_of(url: str) -> Path | None:
    """Return the file broker's folder, None for another broker; raise ValueError if it is not absolute."""
    parts = urlsplit(url)
    if parts.scheme != FILES:
        return None
    if parts.netloc or not parts.path.startswith("/"):
        raise ValueError(f"{url!r} must be safefs:///absolute/directory or a redis URL")
    return Path(parts.path)


def connection(url: str) -> dict[str, Any]:
    """Return the settings that reach the broker at this URL."""
    folder = folder_of(url)
    if folder is None:
        return {"broker_url": url, "broker_transport_options": {"socket_connect_timeout": 2}}
    return {
        "broker_url": f"{FILES}://",
        # A start waits for two polls: at 40 ms they cost 0.3 % of a core more than at 100 ms.
        "broker_transport_options": {"folder": str(folder), "polling_interval": 0.04},
    }


def rules(node: str) -> dict[str, Any]:
    """Return the settings that all processes of this node share."""
    loop, starts = f"node.{node}", f"start.{node}"
    return {
        "task_queues": [Queue(loop, routing_key=loop), Queue(starts, routing_key=starts)],
        "task_default_queue": loop,
        "task_default_routing_key": loop,
        "task_routes": {
            "placement.tasks.start": {"queue": starts, "routing_key": starts},
            # It takes seconds, which the loop does not have; of the two that start jobs one goes on meanwhile.
            "placement.tasks.prune": {"queue": starts, "routing_key": starts},
            "*": {"queue": loop, "routing_key": loop},
        },
        # The database is the queue; a message only says "look now", so nothing is kept about its result.
        "task_ignore_result": True,
        "result_backend": None,
        "task_acks_late": False,
        "worker_prefetch_multiplier": 1,
        "worker_send_task_events": False,
        # Nobody asks workers anything over the broker, and the reply queues would cost polling.
        "worker_enable_remote_control": False,
        "worker_hijack_root_logger": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "broker_connection_retry_on_startup": True,
        # One quick second try covers a connection that a restarted broker closed; more would delay a page.
        "task_publish_retry_policy": {
            "max_retries": 1,
            "interval_start": 0,
            "interval_step": 0.05,
            "interval_max": 0.05,
        },
        "beat_schedule": {
            # A tick that comes late is worthless: the next one is already on its way.
            "tick": {"task": "placement.tasks.tick", "schedule": 1.0, "options": {"expires": 2}},
            "prune": {"task": "placement.tasks.prune", "schedule": 600.0, "options": {"expires": 600}},
        },
    }
