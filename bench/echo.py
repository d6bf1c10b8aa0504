"""Two tasks that do nothing: the way of a submission through the broker, without the product.

Started by bench.floor as two workers of its own: ``--app bench.echo`` with ECHO_BROKER and ECHO_OUT set;
with ECHO_BEAT its beat sends one a second (bench.idle).
"""

from __future__ import annotations

import os
import time

from celery import Celery

from scheduler_site import queues

app = Celery("echo")
app.conf.update(
    **queues.connection(os.environ["ECHO_BROKER"]),
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    worker_enable_remote_control=False,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    beat_schedule={"second": {"task": "second", "schedule": 1.0, "args": (0.0,)}} if "ECHO_BEAT" in os.environ else {},
    task_routes={"first": {"queue": "echo.first"}, "second": {"queue": "echo.second"}},
)


@app.task(name="first")
def first(sent: float) -> None:
    """Pass it on, as a wake passes on a start."""
    second.delay(sent)


@app.task(name="second")
def second(sent: float) -> None:
    """Write down how long both hops took, in seconds."""
    with open(os.environ["ECHO_OUT"], "a") as out:
        out.write(f"{time.time() - sent}\n")
