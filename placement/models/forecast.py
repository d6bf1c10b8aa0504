from __future__ import annotations

from django.db import models
from django.db.models import Q

from placement.models.job import Job


class Forecast(models.Model):
    """What people are told now of when a waiting job starts. ``expected_at`` None: ``why_none`` says why not.

    Half of such jobs start by ``expected_at``, nine of ten by ``late_at``; both are wall time, for pages.
    """

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="forecast")
    made_at = models.DateTimeField()
    node = models.CharField(max_length=100, blank=True)
    device = models.CharField(max_length=100, blank=True)
    expected_at = models.DateTimeField(null=True)
    late_at = models.DateTimeField(null=True)
    sure = models.CharField(max_length=8)
    waits_for = models.JSONField(default=list)
    why_none = models.CharField(max_length=500, blank=True)
    keeps = models.BooleanField(default=False)  # the plan that nothing younger may delay


class ForecastRecord(models.Model):
    """A forecast as it was given, and what became of it; ``number`` 0 is the one given first, few follow.

    Seconds from ``at``: ``in_s`` and ``late_s`` as told (None: it could not be told), ``play_s`` and ``play_late_s``
    before they were corrected by the record, ``waited_s`` what it really took to the start (None: not started yet).
    ``void``: something that no forecast knows, such as a hold, came between.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="forecasts")
    number = models.PositiveSmallIntegerField()
    at = models.DateTimeField()
    sure = models.CharField(max_length=8)
    in_s = models.FloatField(null=True)
    late_s = models.FloatField(null=True)
    play_s = models.FloatField(null=True)
    play_late_s = models.FloatField(null=True)
    waited_s = models.FloatField(null=True)
    void = models.BooleanField(default=False)

    class Meta:
        indexes = [
            models.Index(fields=["-at"], name="forecasts_by_time"),  # reader: selectors.forecasts, services.retention
            models.Index(
                fields=["job"], name="forecasts_open", condition=Q(waited_s=None, void=False)
            ),  # reader: services.forecasting
        ]
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="one_forecast_of_a_number")]
