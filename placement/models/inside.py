from __future__ import annotations

import enum

from django.db import models
from django.db.models import Q

from placement.models.job import Job


class RequestState(enum.StrEnum):
    WAITING = "waiting"
    GRANTED = "granted"
    REFUSED = "refused"  # it could never be granted; ``said`` has the arithmetic
    WITHDRAWN = "withdrawn"  # whoever asked does not want it any more, or is gone
    RELEASED = "released"
    REVOKED = "revoked"  # taken back


OPEN = (RequestState.WAITING, RequestState.GRANTED)


def request_states() -> list[tuple[str, str]]:
    return [(s.value, s.value) for s in RequestState]


class InsideSession(models.Model):
    """Who holds what was reserved inside a job: one of its processes, or a step of its program (then ``step`` says so).

    The process is told as it sees itself: pid, start time in clock ticks, boot, pid namespace; null and "" where it did
    not say. A process that is gone ends its sessions, which the node's tick looks for.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="sessions")
    attempt = models.PositiveIntegerField()
    key = models.CharField(max_length=80)
    process = models.JSONField(default=dict)  # {pid, started, boot, namespace}
    step = models.CharField(max_length=200, blank=True)
    iteration = models.PositiveIntegerField(default=0)
    execution = models.PositiveIntegerField(default=1)
    restartable = models.BooleanField(default=False)
    opened_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)
    why_ended = models.CharField(max_length=200, blank=True)
    revoked = models.JSONField(default=dict)  # {execution, said, at (unix second), must_free} of the newest revocation

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "attempt", "key"], name="one_session_per_key"),
        ]
        indexes = [
            models.Index(fields=["job"], name="sessions_open", condition=Q(ended_at=None)),  # reader: services.holders
        ]


class InsideRequest(models.Model):
    """What a running job asked for besides what it started with: a row that waits until the cycle grants it.

    ``ask`` is as ``domain.inside.read`` takes it; ``order`` its place in the queue: as a job's number, of the next job
    that was submitted after it. ``reasons`` is the newest decision about it. Its leases name it.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="requests")
    attempt = models.PositiveIntegerField()
    session = models.ForeignKey(InsideSession, models.CASCADE, related_name="requests")
    execution = models.PositiveIntegerField(default=1)
    key = models.CharField(max_length=128)
    index = models.PositiveIntegerField(default=0)  # the number of the call within its step
    ask = models.JSONField()
    devices = models.JSONField()  # the UUIDs of those that could serve it
    order = models.BigIntegerField()
    state = models.CharField(max_length=10, choices=request_states, default=RequestState.WAITING.value)
    said = models.CharField(max_length=1000, blank=True)  # why it waits, was refused or ended
    code = models.CharField(max_length=24, blank=True)
    reasons = models.JSONField(default=dict, blank=True)
    members = models.JSONField(default=list, blank=True)  # [{device, bytes}] once granted, in the order of the grant
    asked_at = models.DateTimeField(auto_now_add=True)
    granted_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    artifact = models.CharField(max_length=200, blank=True)  # what outlives whoever asked, until ``outlives``
    outlives = models.DateTimeField(null=True)
    revoke_at = models.DateTimeField(null=True)  # by when the holder has to be out, once it is taken back
    revoked_by = models.CharField(max_length=150, blank=True)
    leaving = models.BooleanField(default=False, db_default=False)  # taken back, and not yet seen to be gone

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "attempt", "key"], name="one_request_per_key"),
        ]
        indexes = [
            models.Index(fields=["id"], name="requests_waiting", condition=Q(state="waiting")),  # reader: the cycle
            models.Index(fields=["job"], name="requests_held", condition=Q(state="granted")),  # reader: the tick
            models.Index(fields=["job"], name="requests_leaving", condition=Q(leaving=True)),  # reader: leaving
        ]

    def __str__(self) -> str:
        return f"request {self.pk} of #{self.job_id}"
