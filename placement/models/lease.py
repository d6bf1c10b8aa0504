from __future__ import annotations

from django.db import models

from placement.models.job import Job


class Lease(models.Model):
    """Capacity of one pool held by a job until its members are gone. ``bytes`` follows the held charge.

    A ``promise`` stays what it is.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="leases")
    attempt = models.PositiveIntegerField(default=1)
    node = models.CharField(max_length=100)
    pool = models.CharField(max_length=100)
    kind = models.CharField(max_length=8)
    bytes = models.BigIntegerField()
    promise = models.BooleanField(default=False)
    granted_at = models.DateTimeField(auto_now_add=True)
    released_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "attempt", "pool"], name="one_lease_per_attempt_and_pool"),
        ]
        indexes = [
            models.Index(fields=["node", "pool"], name="live_leases", condition=models.Q(released_at=None)),
        ]
