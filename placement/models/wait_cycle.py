from __future__ import annotations

from django.db import models

from placement.models.job import Job


class WaitCycle(models.Model):
    """Running jobs that waited for each other, as it was when it was found, and what ended it.

    ``told`` is ``services.unlocking.told``: who held what, who wanted what, who was chosen.
    """

    at = models.DateTimeField(db_index=True)
    sentence = models.TextField()
    told = models.JSONField()
    jobs = models.ManyToManyField(Job, related_name="wait_cycles")

    def __str__(self) -> str:
        return self.sentence[:100]
