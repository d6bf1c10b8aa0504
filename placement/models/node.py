from __future__ import annotations

from django.db import models

from placement.models.holds import Holdable


class Node(Holdable):
    """A machine with a worker. Times ending in ``_clock`` are calibration.clock seconds under ``epoch``."""

    name = models.CharField(max_length=100, unique=True)
    ram_declared = models.BigIntegerField(null=True, blank=True)  # bytes leases may take; null: all there is
    draining = models.BooleanField(default=False)
    boot_id = models.CharField(max_length=40, blank=True)
    epoch = models.CharField(max_length=40, blank=True)
    tick_clock = models.FloatField(null=True)
    start_sent_clock = models.FloatField(null=True)
    start_taken_clock = models.FloatField(null=True)
    ram_pressure = models.BooleanField(default=False)
    ram_high = models.FloatField(null=True, blank=True)  # share, null: the knob's
    ram_low = models.FloatField(null=True, blank=True)
    disk_free = models.BigIntegerField(null=True)
    processes_free = models.IntegerField(null=True)
    broker_away_since = models.DateTimeField(null=True)
    watchdog_note = models.CharField(max_length=300, blank=True)
    watch_policy = models.CharField(max_length=8, blank=True, default="", db_default="")  # "": the knob's
    capacity_note = models.CharField(max_length=200, blank=True)
    containment = models.JSONField(default=dict, blank=True, db_default={})  # services.containing.told
    containers = models.JSONField(default=dict, blank=True, db_default={})  # services.engines.told
    tick_ms = models.FloatField(null=True)
    notes = models.JSONField(default=list)

    def __str__(self) -> str:
        return self.name


class Device(Holdable):
    """A runtime device that an admin declared on a node; leases and readings are keyed by ``uuid``."""

    uuid = models.CharField(max_length=100, unique=True)
    node = models.ForeignKey(Node, models.CASCADE, related_name="devices")
    name = models.CharField(max_length=40)
    index = models.IntegerField(default=0)
    kind = models.CharField(max_length=8, default="GPU")
    backend = models.CharField(max_length=16, default="CUDA")
    model = models.CharField(max_length=100, blank=True)
    declared = models.BigIntegerField()  # bytes that leases may take
    exclusive_only = models.BooleanField(default=False)
    draining = models.BooleanField(default=False)
    measurable = models.BooleanField(default=True)
    simulated = models.BooleanField(default=False)
    retired = models.BooleanField(default=False)
    parent = models.CharField(max_length=100, blank=True, default="", db_default="")  # what a MIG instance is part of
    heading = models.BooleanField(default=False, db_default=False)  # its instances are the devices
    shares = models.BooleanField(default=False, db_default=False)  # read as one pool with the node's RAM
    one_pool = models.BooleanField(default=False, db_default=False)  # the same as an admin's word
    more_backends = models.JSONField(default=list, blank=True, db_default=[])  # besides ``backend``, an admin's word
    by_hand = models.BooleanField(default=False, db_default=False)  # no probe found it: an admin declared it
    any_gpu = models.BooleanField(default=False, db_default=False)  # unread, and yet open to whoever asks for any GPU
    driver_number = models.IntegerField(null=True, blank=True)  # its driver's number for it; null: ``index``

    @property
    def backends(self) -> list[str]:
        """Return the words of all interfaces that it offers, its first one first."""
        return list(dict.fromkeys([self.backend, *(str(word) for word in self.more_backends or ())]))

    @backends.setter
    def backends(self, words: list[str]) -> None:
        self.backend, self.more_backends = words[0], words[1:]

    def __str__(self) -> str:
        return f"{self.name} on {self.node_id}"
