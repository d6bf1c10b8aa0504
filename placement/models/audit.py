from __future__ import annotations

from django.db import models


class AuditEntry(models.Model):
    """Who changed what and when: declarations, holds, roles, knobs, marks on sediment, other people's jobs."""

    at = models.DateTimeField(auto_now_add=True)
    who = models.CharField(max_length=150)
    action = models.CharField(max_length=60)
    subject = models.CharField(max_length=200)
    detail = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["-at"], name="audit_by_time"),  # reader: services.retention
            models.Index(fields=["action", "-at"], name="audit_by_action"),  # reader: services.causes
            models.Index(fields=["subject", "-id"], name="audit_by_subject"),  # reader: services.nodes
        ]


class KnobOverride(models.Model):
    """A knob that an admin set; the table of knobs in the domain names unit, default and help."""

    name = models.CharField(max_length=60, unique=True)
    value = models.JSONField()
    who = models.CharField(max_length=150)
    at = models.DateTimeField(auto_now=True)
