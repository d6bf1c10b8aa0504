from __future__ import annotations

from django.conf import settings
from django.db import models


class JobArray(models.Model):
    """One submission that made ``size`` jobs; ``limit`` of them run at once (null: any).

    They are alike but for their index, or, where ``sweep`` is there, each has values of its own: it is
    {axes: {name: [values]}, command, argv, name, params, same} as submitted, before the values were filled in.
    """

    name = models.CharField(max_length=200)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    size = models.PositiveIntegerField()
    limit = models.PositiveIntegerField(null=True, blank=True)
    sweep = models.JSONField(null=True, blank=True)
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["size"], name="arrays_by_size")]  # reader: conditions.in_sight

    def __str__(self) -> str:
        return f"array {self.pk} {self.name}"
