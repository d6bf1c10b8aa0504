"""What was learned, made up: runs of one key, kept the way the loop keeps them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from calibration import services as instrument
from calibration.domain.sediment import Key, Row
from placement.models import Job
from placement.services import learning
from tests.integration.rows import a_finished

GIB = 1 << 30
NAMED = Key("train", "", '{"lr": "1e-3"}', "workload: train")


def a_run(
    user: Any, key: Key = NAMED, ram: float = 2, vram: float | None = None, ago: float = 0, **more: Any
) -> tuple[Job, Any]:
    """Return a finished job and its row: peaks in GiB, ended so many hours ago; ``more`` goes to the row."""
    at: datetime = timezone.now() - timedelta(hours=ago)
    job_fields = {name: more.pop(name) for name in ("declared_ram", "declared_vram", "command") if name in more}
    row = Row(
        key=key,
        completed=more.pop("completed", True),
        peaks={"ram": int(ram * GIB), **({} if vram is None else {"vram": int(vram * GIB)})},
        at=at.timestamp(),
        duration=more.pop("duration", 72.0),
        charge={"ram": 4 * GIB, "vram": 8 * GIB},
        **more,
    )
    keys = {"key_workload": key.workload, "key_params": key.params, "key_script": key.script,
            "key_fingerprint": key.fingerprint, "workers": key.workers}  # fmt: skip
    outcome = row.outcome if row.outcome != "completed" or row.completed else "failed"
    gpu = "none" if vram is None else "one"
    job = a_finished(user, outcome, ended_at=at, workload=None, gpu=gpu, **keys, **job_fields)
    return job, instrument.keep(row, learning.owner(job), user.get_username(), at, [])
