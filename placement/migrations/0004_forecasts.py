from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("placement", "0003_conditions")]

    operations = [
        migrations.CreateModel(
            name="Forecast",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="forecast",
                        serialize=False,
                        to="placement.job",
                    ),
                ),
                ("made_at", models.DateTimeField()),
                ("node", models.CharField(blank=True, max_length=100)),
                ("device", models.CharField(blank=True, max_length=100)),
                ("expected_at", models.DateTimeField(null=True)),
                ("late_at", models.DateTimeField(null=True)),
                ("sure", models.CharField(max_length=8)),
                ("waits_for", models.JSONField(default=list)),
                ("why_none", models.CharField(blank=True, max_length=500)),
                ("keeps", models.BooleanField(default=False)),
            ],
        ),
        migrations.CreateModel(
            name="ForecastRecord",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="forecasts", to="placement.job"
                    ),
                ),
                ("number", models.PositiveSmallIntegerField()),
                ("at", models.DateTimeField()),
                ("sure", models.CharField(max_length=8)),
                ("in_s", models.FloatField(null=True)),
                ("late_s", models.FloatField(null=True)),
                ("play_s", models.FloatField(null=True)),
                ("play_late_s", models.FloatField(null=True)),
                ("waited_s", models.FloatField(null=True)),
                ("void", models.BooleanField(default=False)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["-at"], name="forecasts_by_time"),
                    models.Index(condition=Q(waited_s=None, void=False), fields=["job"], name="forecasts_open"),
                ],
                "constraints": [models.UniqueConstraint(fields=["job", "number"], name="one_forecast_of_a_number")],
            },
        ),
    ]
