from __future__ import annotations

from django.conf import settings
from django.db import models

from placement.domain.world.conditions import After
from placement.models.job import Job


def ways() -> list[tuple[str, str]]:
    return [(a.value, a.value) for a in After]


class Dependency(models.Model):
    """``job`` waits until ``on`` has ended as asked. ``named`` is the job that the submission named.

    They differ where the named job was run again by itself: what counts is its last try.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="dependencies")
    on = models.ForeignKey(Job, models.CASCADE, related_name="dependents")
    named = models.BigIntegerField()
    when = models.CharField(max_length=8, choices=ways)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "on", "when"], name="one_tie_between_two_jobs")]

    def __str__(self) -> str:
        return f"#{self.job_id} after #{self.on_id} {self.when}"


class GroupHold(models.Model):
    """A stop on the equal jobs of one person after several of them failed fast; ``jobs`` are those that did.

    After its release the count begins anew: ends before ``released_at`` count no more.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key_workload = models.CharField(max_length=200)
    key_fingerprint = models.CharField(max_length=80, blank=True)
    key_params = models.TextField(blank=True)
    why = models.CharField(max_length=200)
    jobs = models.JSONField(default=list)
    held_at = models.DateTimeField()
    released_at = models.DateTimeField(null=True)
    released_by = models.CharField(max_length=150, blank=True)

    class Meta:
        indexes = [models.Index(fields=["user", "key_workload", "-held_at"], name="group_holds_of_user")]

    def __str__(self) -> str:
        return f"{self.key_workload} of {self.user_id}: {self.why}"
