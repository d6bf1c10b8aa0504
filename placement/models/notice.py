from __future__ import annotations

from django.conf import settings
from django.db import models

from placement.models.array import JobArray
from placement.models.job import Job


class Notice(models.Model):
    """Something that happened to a person's job, or to their array as a whole. ``kind``: domain.notices.Kind."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="notices", db_index=False)
    job = models.ForeignKey(Job, models.CASCADE, null=True, related_name="+")
    array = models.ForeignKey(JobArray, models.CASCADE, null=True, related_name="+")
    kind = models.CharField(max_length=10)
    title = models.CharField(max_length=240)
    sentence = models.CharField(max_length=500, blank=True)
    at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["user", "-id"], name="notices_by_user"),  # reader: selectors.notices
            models.Index(fields=["at"], name="notices_by_time"),  # reader: services.retention
        ]


class NoticeSettings(models.Model):
    """What a person is told of in pages. ``seen``: the newest notice that they have looked at."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="+")
    kinds = models.JSONField(default=list)
    waited_min = models.PositiveIntegerField(default=10)  # minutes of waiting after which a start is told
    seen = models.BigIntegerField(default=0)


class Hook(models.Model):
    """Where a person's notices go besides pages. ``sealed`` is the address, which holds secrets; ``shown`` does not."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="hooks")
    name = models.CharField(max_length=60)
    shown = models.CharField(max_length=200)
    sealed = models.BinaryField()
    kinds = models.JSONField(default=list)
    on = models.BooleanField(default=True)
    made_at = models.DateTimeField(auto_now_add=True)
    last_at = models.DateTimeField(null=True)  # of the newest result
    last_ok = models.BooleanField(null=True)
    last_sentence = models.CharField(max_length=300, blank=True)


class Delivery(models.Model):
    """A message that is to go to a hook; gone when it was taken, or was tried often enough."""

    hook = models.ForeignKey(Hook, models.CASCADE, related_name="deliveries")
    kind = models.CharField(max_length=10)
    title = models.CharField(max_length=240)
    sentence = models.CharField(max_length=500, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(db_index=True)
