from __future__ import annotations

from django.db import models

from placement.models.job import Job
from placement.models.packed import PackedJSON


class DecisionRecord(models.Model):
    """A verdict worth remembering: it differs from the one before in verdict, codes, device or a figure."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="history")
    at = models.DateTimeField()
    verdict = models.CharField(max_length=8)
    code = models.CharField(max_length=24, blank=True)
    headline = models.CharField(max_length=500)
    body = PackedJSON(default=dict)

    class Meta:
        indexes = [models.Index(fields=["job", "-at"], name="history_of_job")]  # reader: job page
