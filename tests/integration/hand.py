"""A device declared by hand, a job that asks for it, and how the API and pages are asked."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

from django.test import Client

from placement.models import Device, Job, Node
from placement.services import admission, declaring
from tests.integration.rows import GIB, a_job

JSON = {"content_type": "application/json"}
TPU = {"kind": "tpu", "backends": ["xla"], "index": 0, "declared": 16 * GIB}


def tpu(ann: Any, node: Node, **said: Any) -> Device:
    return declaring.add(ann, node.pk, {**TPU, **said})


def send(client: Client, method: str, path: str, body: Any = None, status: int = 200) -> Any:
    data = {} if body is None else {"data": json.dumps(body), **JSON}
    answer = getattr(client, method)(f"/api/v1/{path}", **data)
    assert answer.status_code == status, answer.content
    return answer.json()


def words(answer: Any) -> str:
    return unescape(re.sub(r"<[^>]+>|\s+", " ", answer.content.decode()))


def asks(ann: Any, **more: Any) -> Job:
    wanted = {
        "min": 1,
        "max": 1,
        "prefer_max": False,
        "per_device": None,
        "group": None,
        "kind": "TPU",
        "backend": None,
    }
    wanted |= more.pop("wanted", {})
    job = a_job(ann, estimate={}, decision={}, devices_wanted=wanted, declared_ram=GIB, **more)
    admission.run()
    job.refresh_from_db()
    return job
