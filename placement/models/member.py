from __future__ import annotations

import enum

from django.conf import settings
from django.db import models

CAP = "_tidegate_cap"
"""Name of the attribute of a user in hand that says which role they act with at most."""


class Role(enum.StrEnum):
    VIEWER = "viewer"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    ADMIN = "admin"


def roles() -> list[tuple[str, str]]:
    return [(r.value, r.value) for r in Role]


class Member(models.Model):
    """A user's role, and the Unix account that their jobs run as ("" where none is mapped)."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="member")
    role = models.CharField(max_length=10, choices=roles, default=Role.SUBMITTER.value)
    account = models.CharField(max_length=64, blank=True)
    quota_jobs = models.PositiveIntegerField(null=True, blank=True)  # running at once; null: the knob's, 0: no limit
    quota_vram = models.BigIntegerField(null=True, blank=True)  # bytes held at once; the same
    quota_ram = models.BigIntegerField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.user} ({self.role})"


class LoginLink(models.Model):
    """A one-time login, stored as a hash; used or past ``expires_at`` it opens nothing."""

    digest = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)


class LoginAttempt(models.Model):
    """A failed login; many from one place or for one name make the next ones wait."""

    who = models.CharField(max_length=200, db_index=True)
    at = models.DateTimeField(auto_now_add=True)
