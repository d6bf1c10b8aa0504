"""Rows to look at: a node with two devices, people of every role, jobs in every state."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.utils import timezone

from calibration import clock
from calibration.models import PoolNow
from placement.models import Device, Forecast, ForecastRecord, Job, Member, Node, Role

GIB = 1 << 30
UUIDS = ("GPU-aaaa", "GPU-bbbb")


def a_user(name: str, role: Role = Role.SUBMITTER, **more: Any) -> Any:
    """Return a stored user with this role, without a password unless one is given (hashing one takes long)."""
    user = get_user_model().objects.create_user(name, **more)
    Member.objects.create(user=user, role=role.value)
    return user


def a_pool(node: str, pool: str, name: str, total: int, used: int, **more: Any) -> PoolNow:
    """Return a fresh good reading of a pool."""
    fresh = {
        "kind": "ram" if pool == "ram" else "vram",
        "state": "ok",
        "total": total,
        "used": used,
        "free": total - used,
        "external": 0,
        "unexplained": 0,
        "read_at": clock.now(),
        "epoch": clock.epoch(),
    }
    row, _ = PoolNow.objects.update_or_create(node=node, pool=pool, defaults={"name": name, **fresh, **more})
    return row


def a_machine(name: str = "atlas") -> Node:
    """Return a node with RAM of 64 GiB and two devices of 24 GiB, read a moment ago."""
    node = Node.objects.create(name=name, epoch=clock.epoch(), tick_clock=clock.now())
    a_pool(name, "ram", "RAM", 64 * GIB, 8 * GIB)
    for index, uuid in enumerate(UUIDS):
        Device.objects.create(
            uuid=uuid, node=node, name=f"gpu{index}", index=index, model="RTX 4090", declared=24 * GIB
        )
        a_pool(name, uuid, f"gpu{index}", 24 * GIB, GIB, model="RTX 4090")
    return node


def a_job(user: Any, **more: Any) -> Job:
    """Return a stored job that waits, unless said otherwise."""
    fields: dict[str, Any] = {
        "name": "train-vit",
        "command": "python train.py --secret-plan",
        "cwd": "/tmp",
        "gpu": "one",
        "key_workload": "train",
        "headline": "Needs 8.2 GiB; most room is 6.1 GiB on gpu1, after 2.0 GiB kept for #38 to grow.",
        "code": "no_room",
        "estimate": an_estimate(),
        "decision": a_decision(),
        "decided_at": timezone.now(),
        **more,
    }
    return Job.objects.create(user=user, **fields)


def a_running(user: Any, **more: Any) -> Job:
    """Return a job that runs on gpu1 and uses 11 of 13 GiB there."""
    now = timezone.now()
    fields = {
        "state": "running",
        "node": "atlas",
        "device": UUIDS[1],
        "basis": "measured",
        "admitted_at": now - timedelta(minutes=12),
        "started_at": now - timedelta(minutes=12),
        "charges": {
            UUIDS[1]: {"granted": 13 * GIB, "held": 13 * GIB, "at_start": 13 * GIB, "cap": 18 * GIB,
                       "margin": 64 << 20, "settled": True, "note": "may still grow to 13.0 GiB"},
            "ram": {"granted": 4 * GIB, "held": 4 * GIB, "at_start": 4 * GIB, "cap": 6 * GIB, "margin": 64 << 20},
        },
        "used": {UUIDS[1]: 11 * GIB, "ram": None},
        **more,
    }  # fmt: skip
    return a_job(user, **fields)


def a_finished(user: Any, outcome: str = "completed", **more: Any) -> Job:
    """Return a job that is over."""
    fields = {
        "state": "finished",
        "outcome": outcome,
        "sentence": "Completed with code 0.",
        "ended_at": timezone.now(),
        "duration_s": 72.5,
        **more,
    }
    return a_running(user, **fields)


def a_forecast(job: Job, in_s: float = 600.0, late_s: float | None = 1200.0, **more: Any) -> Forecast:
    """Return what a waiting job is told now: about ten minutes, when #38 has ended, unless said otherwise."""
    now = timezone.now()
    fields: dict[str, Any] = {
        "expected_at": now + timedelta(seconds=in_s),
        "late_at": None if late_s is None else now + timedelta(seconds=late_s),
        "sure": "learned",
        "waits_for": [38],
        "keeps": True,
        **more,
    }
    return Forecast.objects.create(job=job, made_at=now, **fields)


def a_record(job: Job, play: float, waited: float | None, late: float, **more: Any) -> ForecastRecord:
    """Return a forecast of an hour ago, told as it was played, and how long the job really waited."""
    fields: dict[str, Any] = {"number": 0, "sure": "learned", "at": timezone.now() - timedelta(hours=1), **more}
    return ForecastRecord.objects.create(
        job=job, in_s=play, play_s=play, late_s=late, play_late_s=late, waited_s=waited, **fields
    )


def an_estimate(need: int = int(8.2 * GIB)) -> dict[str, Any]:
    """Return an estimate as rows keep it: a device figure on the rung measured, RAM a cold start."""
    rungs = [
        {"basis": "measured", "bytes": need, "margin": 64 << 20, "why": "8 workers seen 14 times", "counted": True},
        {"basis": "declared", "bytes": 4 * GIB, "margin": 0, "why": "said by ada", "counted": False},
        {"basis": "cold_start", "bytes": None, "margin": 0, "why": "", "counted": False},
    ]
    cold = [{"basis": "cold_start", "bytes": None, "margin": 0, "why": "nothing is known", "counted": True}]
    return {
        "basis": "cold_start",
        "notes": [],
        "pools": {
            "vram": {"need": need, "basis": "measured", "margin": 64 << 20, "notes": [], "rungs": rungs},
            "ram": {"need": None, "basis": "cold_start", "margin": 0, "notes": [], "rungs": cold},
        },
    }


def a_decision() -> dict[str, Any]:
    """Return a decision as rows keep it: gpu1 lacks 2.1 GiB, gpu0 has less."""
    total, used, growth, kept = 24 * GIB, 15 * GIB, 2 * GIB, GIB
    room, need = total - used - growth - kept, int(8.2 * GIB)
    figures = {
        "need": need, "total": total, "used": used, "withheld": 0, "free": total - used, "kept": kept,
        "growth": growth, "room": room, "external": None, "growth_38": growth,
    }  # fmt: skip
    short = {
        "code": "no_room", "ok": False, "pool": UUIDS[1], "shortfall": need - room, "figures": figures,
        "sentence": "Needs 8.2 GiB; room on gpu1 is 6.0 GiB, after 2.0 GiB kept for #38 to grow.",
    }  # fmt: skip
    fine = {
        "code": "held", "ok": True, "pool": "", "shortfall": 0, "figures": {}, "sentence": "Nobody holds atlas.",
    }  # fmt: skip
    place = {"node": "atlas", "device": UUIDS[1], "label": "gpu1", "checks": [fine, short],
             "room": {UUIDS[1]: room}, "need": {UUIDS[1]: need}}  # fmt: skip
    other = {**place, "device": UUIDS[0], "label": "gpu0", "checks": [{**short, "sentence": "gpu0 has less."}]}
    return {
        "verdict": "wait",
        "code": "no_room",
        "headline": "Needs 8.2 GiB; most room is 6.1 GiB on gpu1.",
        "whole": [{**fine, "code": "job_held", "sentence": "Nobody holds this job."}],
        "candidates": [place, other],
        "planned": {"node": "atlas", "device": UUIDS[1], "at": 1000.0, "in_s": 600.0, "sure": "learned",
                    "waits_for": [38], "why_none": "", "keeps": True},
        "grant": None,
    }  # fmt: skip
