"""What running jobs ask for besides what they started with: sessions, requests, and the leases that come of them."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

import placement.models.inside

_JOB = {"on_delete": django.db.models.deletion.CASCADE, "to": "placement.job"}
_ID = ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"))


class Migration(migrations.Migration):
    dependencies = [("placement", "0016_groups")]

    operations = [
        migrations.CreateModel(
            name="InsideSession",
            fields=[
                _ID,
                ("job", models.ForeignKey(related_name="sessions", **_JOB)),
                ("attempt", models.PositiveIntegerField()),
                ("key", models.CharField(max_length=80)),
                ("process", models.JSONField(default=dict)),
                ("step", models.CharField(blank=True, max_length=200)),
                ("iteration", models.PositiveIntegerField(default=0)),
                ("execution", models.PositiveIntegerField(default=1)),
                ("restartable", models.BooleanField(default=False)),
                ("opened_at", models.DateTimeField(auto_now_add=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("why_ended", models.CharField(blank=True, max_length=200)),
                ("revoked", models.JSONField(default=dict)),
            ],
            options={
                "indexes": [models.Index(condition=Q(ended_at=None), fields=["job"], name="sessions_open")],
                "constraints": [models.UniqueConstraint(fields=["job", "attempt", "key"], name="one_session_per_key")],
            },
        ),
        migrations.CreateModel(
            name="InsideRequest",
            fields=[
                _ID,
                ("job", models.ForeignKey(related_name="requests", **_JOB)),
                ("attempt", models.PositiveIntegerField()),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="requests",
                        to="placement.insidesession",
                    ),
                ),
                ("execution", models.PositiveIntegerField(default=1)),
                ("key", models.CharField(max_length=128)),
                ("index", models.PositiveIntegerField(default=0)),
                ("ask", models.JSONField()),
                ("devices", models.JSONField()),
                ("order", models.BigIntegerField()),
                (
                    "state",
                    models.CharField(choices=placement.models.inside.request_states, default="waiting", max_length=10),
                ),
                ("said", models.CharField(blank=True, max_length=1000)),
                ("code", models.CharField(blank=True, max_length=24)),
                ("reasons", models.JSONField(blank=True, default=dict)),
                ("members", models.JSONField(blank=True, default=list)),
                ("asked_at", models.DateTimeField(auto_now_add=True)),
                ("granted_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("artifact", models.CharField(blank=True, max_length=200)),
                ("outlives", models.DateTimeField(null=True)),
                ("revoke_at", models.DateTimeField(null=True)),
                ("revoked_by", models.CharField(blank=True, max_length=150)),
            ],
            options={
                "indexes": [
                    models.Index(condition=Q(state="waiting"), fields=["id"], name="requests_waiting"),
                    models.Index(condition=Q(state="granted"), fields=["job"], name="requests_held"),
                ],
                "constraints": [models.UniqueConstraint(fields=["job", "attempt", "key"], name="one_request_per_key")],
            },
        ),
        migrations.AddField(
            model_name="lease",
            name="request",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="leases",
                to="placement.insiderequest",
            ),
        ),
        migrations.RemoveConstraint(model_name="lease", name="one_lease_per_attempt_and_pool"),
        migrations.AddConstraint(
            model_name="lease",
            constraint=models.UniqueConstraint(
                condition=Q(request=None), fields=["job", "attempt", "pool"], name="one_lease_of_a_start"
            ),
        ),
        migrations.AddConstraint(
            model_name="lease",
            constraint=models.UniqueConstraint(
                condition=Q(request__isnull=False), fields=["request", "pool"], name="one_lease_per_request"
            ),
        ),
        migrations.AddIndex(
            model_name="lease",
            index=models.Index(
                condition=Q(released_at=None, request__isnull=False), fields=["job"], name="live_leases_inside"
            ),
        ),
    ]
