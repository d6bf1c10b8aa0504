"""The Celery application: one queue for a node's loop, one for its starts, no results."""

from __future__ import annotations

import gc
import os
import sys

from celery import Celery
from celery.signals import task_prerun, worker_before_create_process, worker_process_init, worker_ready
from django.conf import settings
from django.db import close_old_connections

from scheduler_site import deathsignal, queues

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_site.settings")

app = Celery("tidegate")
app.conf.update(
    **queues.connection(settings.CELERY_BROKER_URL), **queues.rules(settings.NODE), timezone=settings.TIME_ZONE
)
# Connections stay open from task to task: opening one each second costs as much as the look itself.
app.conf["CELERY_DB_REUSE_MAX"] = sys.maxsize // 4
app.autodiscover_tasks(["placement", "calibration"])
app.set_default()


@worker_ready.connect
def tell_ready(**_: object) -> None:
    """Leave a mark for the supervisor: this worker takes messages now."""
    mark = os.environ.get("TIDEGATE_READY_FILE")
    if mark:
        with open(mark, "w") as file:
            file.write(str(os.getpid()))


@worker_before_create_process.connect
def share_memory(**_: object) -> None:
    """What is loaded by now is never collected, so collecting must not copy its pages in the new process."""
    gc.collect()
    gc.freeze()


@task_prerun.connect
def check_connections(**_: object) -> None:
    """Let go of a database connection that broke or whose server was restarted."""
    close_old_connections()


@worker_process_init.connect
def die_with_the_worker(**_: object) -> None:
    """A pool process whose worker was killed must not linger and hold the queue's connection."""
    deathsignal.die_with_parent()
