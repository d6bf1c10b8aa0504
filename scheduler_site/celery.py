"""The Celery application: one queue for a node's loop, one for its starts, no results."""

from __future__ import annotations

import os

from celery import Celery
from celery.signals import worker_process_init, worker_ready
from django.conf import settings
from kombu import Queue
from kombu.transport import TRANSPORT_ALIASES

from scheduler_site import deathsignal

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_site.settings")
TRANSPORT_ALIASES["safefs"] = "scheduler_site.broker:Transport"

NODE_QUEUE = f"node.{settings.NODE}"
START_QUEUE = f"start.{settings.NODE}"

app = Celery("tidegate")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(
    task_queues=[Queue(NODE_QUEUE, routing_key=NODE_QUEUE), Queue(START_QUEUE, routing_key=START_QUEUE)],
    task_default_queue=NODE_QUEUE,
    task_default_routing_key=NODE_QUEUE,
    task_routes={
        "placement.tasks.start": {"queue": START_QUEUE, "routing_key": START_QUEUE},
        "*": {"queue": NODE_QUEUE, "routing_key": NODE_QUEUE},
    },
    # The database is the queue; a message only says "look now", so nothing is kept about its result.
    task_ignore_result=True,
    result_backend=None,
    task_acks_late=False,
    worker_prefetch_multiplier=1,
    worker_send_task_events=False,
    # Nobody asks workers anything over the broker, and the reply queues would cost polling.
    worker_enable_remote_control=False,
    worker_hijack_root_logger=False,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    broker_connection_retry_on_startup=True,
    # One quick second try covers a connection that a restarted broker closed; more would delay a page.
    task_publish_retry_policy={
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0.05,
        "interval_max": 0.05,
    },
    timezone=settings.TIME_ZONE,
    beat_schedule={
        # A tick that comes late is worthless: the next one is already on its way.
        "tick": {"task": "placement.tasks.tick", "schedule": 1.0, "options": {"expires": 2}},
        "prune": {"task": "placement.tasks.prune", "schedule": 600.0, "options": {"expires": 600}},
    },
)
app.autodiscover_tasks(["placement", "calibration"])
app.set_default()


@worker_ready.connect
def tell_ready(**_: object) -> None:
    """Leave a mark for the supervisor: this worker takes messages now."""
    mark = os.environ.get("TIDEGATE_READY_FILE")
    if mark:
        with open(mark, "w") as file:
            file.write(str(os.getpid()))


@worker_process_init.connect
def die_with_the_worker(**_: object) -> None:
    """A pool process whose worker was killed must not linger and hold the queue's connection."""
    deathsignal.die_with_parent()
