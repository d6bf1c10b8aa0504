"""The application of the schedule's process: it only sends, so it loads neither Django nor any task."""

from __future__ import annotations

import os
import socket

from celery import Celery

from scheduler_site import queues

app = Celery("tidegate")
app.conf.update(
    **queues.connection(os.environ["TIDEGATE_BROKER_URL"]),
    **queues.rules(os.environ.get("TIDEGATE_NODE", "").strip() or socket.gethostname()),
)
