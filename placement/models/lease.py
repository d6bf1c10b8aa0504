from __future__ import annotations

from django.db import models

from placement.models.inside import InsideRequest
from placement.models.job import Job


class Lease(models.Model):
    """Capacity of one pool held by a job until its members are gone. ``bytes`` follows the held charge.

    A ``promise`` stays what it is, whatever is used: a person's hold, what was reserved exactly, and what was asked for
    from inside a job, which has a ``request`` and stays until that ends. The job's charge bears the same mark.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="leases")
    attempt = models.PositiveIntegerField(default=1)
    node = models.CharField(max_length=100)
    request = models.ForeignKey(InsideRequest, models.CASCADE, null=True, related_name="leases", db_index=False)
    pool = models.CharField(max_length=100)
    kind = models.CharField(max_length=8)
    bytes = models.BigIntegerField()
    promise = models.BooleanField(default=False)
    granted_at = models.DateTimeField(auto_now_add=True)
    released_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["job", "attempt", "pool"], name="one_lease_of_a_start", condition=models.Q(request=None)
            ),
            models.UniqueConstraint(
                fields=["request", "pool"], name="one_lease_per_request", condition=models.Q(request__isnull=False)
            ),
        ]
        indexes = [
            models.Index(fields=["node", "pool"], name="live_leases", condition=models.Q(released_at=None)),
            models.Index(
                fields=["job"],
                name="live_leases_inside",
                condition=models.Q(released_at=None, request__isnull=False),
            ),  # reader: placement.inside
        ]
