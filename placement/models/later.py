from __future__ import annotations

from django.db import models


class AskedLater(models.Model):
    """What runs of one workload, or of one typed script, asked for while they ran: ``known_asks.to_json`` of it.

    ``subject`` is as ``calibration.domain.keys.subject`` names what people look at as one.
    """

    subject = models.CharField(max_length=32, unique=True)
    asks = models.JSONField(default=list)
    changed_at = models.DateTimeField(auto_now=True, db_index=True)

    def __str__(self) -> str:
        return f"{len(self.asks)} asks of {self.subject}"
