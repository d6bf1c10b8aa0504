from __future__ import annotations

from django.db import models


class Holdable(models.Model):
    """What a person may stop: who, since, until (null: until released) and why."""

    held_by = models.CharField(max_length=150, blank=True)
    held_at = models.DateTimeField(null=True, blank=True)
    held_until = models.DateTimeField(null=True, blank=True)
    held_why = models.CharField(max_length=200, blank=True)

    class Meta:
        abstract = True
