from __future__ import annotations

import enum

from django.conf import settings
from django.db import models


class Scope(enum.StrEnum):
    """What a token may do of what its person may: look, act as a submitter, or everything."""

    READ = "read"
    SUBMIT = "submit"
    FULL = "full"


def scopes() -> list[tuple[str, str]]:
    return [(s.value, s.value) for s in Scope]


class Token(models.Model):
    """What a program shows instead of a login. Only the SHA-256 of the text is kept; ``start`` and ``end`` tell it.

    A token acts as its user. One that acts for a job alone would name the job in a column of its own: the door reads
    who acts from the row, never from the text.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    start = models.CharField(max_length=16)
    end = models.CharField(max_length=4)
    scope = models.CharField(max_length=16, choices=scopes)
    made_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)  # null: never
    used_at = models.DateTimeField(null=True, blank=True)  # to the minute
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.CharField(max_length=150, blank=True)

    def __str__(self) -> str:
        return f"{self.start}…{self.end} of {self.user_id}"
