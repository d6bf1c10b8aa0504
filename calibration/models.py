"""What the instrument keeps: the newest figures of every pool, their history, and sediment."""

from __future__ import annotations

import hashlib
from typing import Any

from django.db import models


def params_digest(params: str) -> str:
    """Return a short name of a key's parameters; they themselves can be longer than an index takes."""
    return hashlib.blake2b(params.encode(), digest_size=16).hexdigest()


class PoolNow(models.Model):
    """The newest look at one pool, written by its node's tick each second and read by the cycle.

    ``owners`` maps owner ("job:7") to bytes or null (unknown); ``read_at`` is calibration.clock time of the last good
    reading with the ``epoch`` that makes it comparable. ``left`` are [owner, bytes, unix second]: memory that nobody's
    process explains any more, whose it was, and until when. ``files`` are bytes of files that live in main memory.
    """

    node = models.CharField(max_length=100)
    pool = models.CharField(max_length=100)
    kind = models.CharField(max_length=8)
    name = models.CharField(max_length=40)
    model = models.CharField(max_length=100, blank=True)
    backend = models.CharField(max_length=16, blank=True)
    index = models.IntegerField(null=True)
    simulated = models.BooleanField(default=False)
    state = models.CharField(max_length=16)
    message = models.CharField(max_length=300, blank=True)
    total = models.BigIntegerField(null=True)
    free = models.BigIntegerField(null=True)
    used = models.BigIntegerField(null=True)
    reserved = models.BigIntegerField(null=True)
    busy = models.FloatField(null=True)
    external = models.BigIntegerField(null=True)
    external_who = models.JSONField(default=list)
    unexplained = models.BigIntegerField(null=True)
    owners = models.JSONField(default=dict)
    draining = models.BooleanField(default=False)  # memory of an owner that ended is still coming back
    read_at = models.FloatField(null=True)
    epoch = models.CharField(max_length=40, blank=True)
    lost_since = models.DateTimeField(null=True)
    left = models.JSONField(default=list, db_default=[])
    files = models.BigIntegerField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["node", "pool"], name="one_row_per_pool")]

    def __str__(self) -> str:
        return f"{self.name} on {self.node}"


class PoolProcesses(models.Model):
    """The processes inside one pool, written by its node's tick when they changed.

    ``rows`` are [pid, owner, rule, user, name, bytes or null], ``more`` [owner, count, bytes] of what is not listed;
    calibration.domain.inside says which and in what order.
    """

    node = models.CharField(max_length=100)
    pool = models.CharField(max_length=100)
    rows = models.JSONField(default=list)
    more = models.JSONField(default=list)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["node", "pool"], name="one_list_of_processes_per_pool")]

    def __str__(self) -> str:
        return f"processes in {self.pool} on {self.node}"


class Point(models.Model):
    """One point of a pool's history at a step of 1, 10 or 300 seconds (2 h, 2 d, 30 d are kept).

    A step shows the second in which most was used, whole: ``booked`` (the sum of leases) and ``kept`` (what nobody is
    given) are as they stood then, None where that is not known.
    """

    node = models.CharField(max_length=100)
    pool = models.CharField(max_length=100)
    step = models.PositiveSmallIntegerField()
    at = models.BigIntegerField()  # unix seconds, start of the step
    total = models.BigIntegerField(null=True)
    used = models.BigIntegerField(null=True)
    free = models.BigIntegerField(null=True)
    owners = models.JSONField(default=dict)
    booked = models.BigIntegerField(null=True)
    kept = models.BigIntegerField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["node", "pool", "step", "at"], name="one_point_per_step")]
        indexes = [models.Index(fields=["step", "at"], name="points_to_prune")]  # reader: services.prune


class OpenWindow(models.Model):
    """The window of an owner that still runs; ``body`` is the pure Window as JSON."""

    owner = models.CharField(max_length=60, unique=True)
    key = models.JSONField()
    body = models.JSONField(default=dict)
    settled = models.JSONField(default=dict)  # kind of pool to peak bytes, once it settled with proof
    opened_at = models.DateTimeField(auto_now_add=True)


class Sediment(models.Model):
    """One closed window, never changed but for an operator's marks (who and when beside them)."""

    owner = models.CharField(max_length=60, db_index=True)
    workload = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=80, blank=True)
    params = models.TextField(blank=True)
    params_digest = models.CharField(max_length=32, blank=True)
    script = models.CharField(max_length=500, blank=True)
    user = models.CharField(max_length=150, blank=True)
    workers = models.PositiveIntegerField(default=1)
    completed = models.BooleanField()
    outcome = models.CharField(max_length=16)
    peaks = models.JSONField(default=dict)
    device_peaks = models.JSONField(default=list)  # bytes, largest device first
    seconds_to_peak = models.JSONField(default=dict)
    duration = models.FloatField(default=0)
    samples = models.JSONField(default=dict)
    longest_gap = models.FloatField(default=0)
    charge = models.JSONField(default=dict)
    cap = models.JSONField(default=dict)
    next_charge = models.JSONField(default=dict)
    lower_bound_note = models.CharField(max_length=300, blank=True)
    preallocated = models.BooleanField(default=False)
    by_kernel = models.BooleanField(null=True)  # None: no, as in all rows of before; a column is added at once
    at = models.DateTimeField()
    atypical = models.BooleanField(default=False)
    forgotten = models.BooleanField(default=False)
    marked_by = models.CharField(max_length=150, blank=True)
    marked_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["workload", "params_digest", "-at"], name="sediment_by_key"),  # reader: rows_for
            models.Index(fields=["script", "-at"], name="sediment_by_script"),  # reader: rows_for (similar)
            models.Index(
                fields=["user", "-at"],
                name="sediment_completed_by_user",
                condition=models.Q(completed=True, forgotten=False),
            ),  # reader: rows.durations
        ]

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store the row with the digest of its parameters."""
        self.params_digest = params_digest(self.params)
        super().save(*args, **kwargs)


class Known(models.Model):
    """One row per key without its fingerprint: how many windows closed under it and when last, pruned ones too.

    ``subject`` is calibration.domain.keys.subject: what a page is about, with one row per parameters.
    """

    subject = models.CharField(max_length=32)
    workload = models.CharField(max_length=200)
    script = models.CharField(max_length=500, blank=True)
    params = models.TextField(blank=True)
    params_digest = models.CharField(max_length=32)
    runs = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)  # neither completed nor cancelled
    last_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["subject", "params_digest"], name="one_row_per_key_known")]
        indexes = [models.Index(fields=["subject", "-last_at"], name="known_by_subject")]  # reader: the page of one

    def __str__(self) -> str:
        return f"{self.workload} {self.script}"


class Pin(models.Model):
    """A number that an operator set for a kind of pool, instead of what was learned.

    It stands for all of a workload, or with a ``subject`` (see Known) for that one alone.
    """

    workload = models.CharField(max_length=200)
    subject = models.CharField(max_length=32, blank=True, default="", db_default="")
    kind = models.CharField(max_length=8)
    bytes = models.BigIntegerField()
    who = models.CharField(max_length=150)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workload", "subject", "kind"], name="one_pin_per_kind")]


class ContextSeen(models.Model):
    """What one run's process held on its device besides what its framework reserved: its context, in bytes."""

    model = models.CharField(max_length=100)
    user = models.CharField(max_length=150)
    owner = models.CharField(max_length=60, unique=True)
    bytes = models.BigIntegerField()
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["model", "user", "-at"], name="contexts_by_model")]  # reader: contexts.of

    def __str__(self) -> str:
        return f"{self.bytes} on {self.model}"


class StoreVersion(models.Model):
    """One row that counts changes of sediment and pins, so that estimates can be cached per key and version."""

    version = models.BigIntegerField(default=0)
