from __future__ import annotations

from django.conf import settings
from django.db import models

from placement.domain.submitting import usual_placement


class Workload(models.Model):
    """What can be run by name: a command with {parameters}, its files, hints and limits.

    ``placement`` is what a run asks of devices besides (see domain/submitting/usual_placement.py), None: nothing.
    ``parameters`` is a list of {"name", "default", "matters", "help"}; ``files`` are the sources that make the
    fingerprint. ``hint_*`` is the author's preset in bytes.
    """

    name = models.CharField(max_length=100, unique=True)
    summary = models.CharField(max_length=200, blank=True)
    command = models.TextField()
    setup = models.TextField(blank=True)
    cwd = models.CharField(max_length=1000, blank=True)
    parameters = models.JSONField(default=list, blank=True)
    files = models.JSONField(default=list, blank=True)
    environment = models.BinaryField(default=bytes, blank=True)  # encrypted JSON
    gpu = models.CharField(max_length=8, default="none")
    exclusive = models.CharField(max_length=8, default="no")
    placement = models.JSONField(null=True, blank=True)
    workers = models.PositiveIntegerField(default=1)
    time_limit_s = models.FloatField(null=True, blank=True)
    hint_ram = models.BigIntegerField(null=True, blank=True)
    hint_vram = models.BigIntegerField(null=True, blank=True)
    retry_policy = models.JSONField(default=dict, blank=True)  # as in Job
    shape_varies = models.BooleanField(default=False)
    image = models.CharField(max_length=300, blank=True, default="", db_default="")  # as in Job
    engine = models.CharField(max_length=8, blank=True, default="", db_default="")
    watch_policy = models.CharField(max_length=8, blank=True, default="", db_default="")  # "": its node's
    reserves = models.BooleanField(default=False, db_default=False)  # as in Job
    revoked_ends = models.BooleanField(default=False, db_default=False)  # a job that keeps what was revoked
    demo = models.BooleanField(default=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name

    @property
    def takes(self) -> str:
        """Return what its runs ask for of devices in words."""
        return usual_placement.told(self.gpu, self.placement or {})


class IrrelevantArgument(models.Model):
    """An argument text that somebody marked as "does not matter to memory" for one script."""

    script = models.CharField(max_length=500)
    argument = models.CharField(max_length=500)
    who = models.CharField(max_length=150)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["script", "argument"], name="one_mark_per_argument")]
