from __future__ import annotations

from django.db import models

from placement.models.job import Job


class JobProgress(models.Model):
    """How far a running job is. ``share`` None: its log does not say, ``usual_s`` None: nothing like it has run."""

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="progress")
    share = models.FloatField(null=True)  # 0 to 1, as its log said at ``read_at``
    left_s = models.FloatField(null=True)  # seconds left then
    read_at = models.DateTimeField(null=True)
    usual_s = models.FloatField(null=True)  # the middle one of the runs like it
