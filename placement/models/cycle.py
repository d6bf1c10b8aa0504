from __future__ import annotations

from django.db import models

from placement.models.holds import Holdable


class Cycle(Holdable):
    """The one row that whoever changes queue, leases, holds or declarations locks first.

    ``wanted`` is raised by every such change; a cycle sets ``done`` to what it saw. The hold is the queue's.
    """

    wanted = models.BigIntegerField(default=1)
    done = models.BigIntegerField(default=0)
    began_clock = models.FloatField(null=True)
    epoch = models.CharField(max_length=40, blank=True)
    owner = models.CharField(max_length=100, blank=True)
    cost_ms = models.FloatField(null=True)
