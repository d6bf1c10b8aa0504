from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

CASCADE = django.db.models.deletion.CASCADE


def _id() -> tuple[str, models.Field]:
    return "id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("placement", "0010_sweep"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="Notice",
            fields=[
                _id(),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False, on_delete=CASCADE, related_name="notices", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("job", models.ForeignKey(null=True, on_delete=CASCADE, related_name="+", to="placement.job")),
                ("array", models.ForeignKey(null=True, on_delete=CASCADE, related_name="+", to="placement.jobarray")),
                ("kind", models.CharField(max_length=10)),
                ("title", models.CharField(max_length=240)),
                ("sentence", models.CharField(blank=True, max_length=500)),
                ("at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["user", "-id"], name="notices_by_user"),
                    models.Index(fields=["at"], name="notices_by_time"),
                ]
            },
        ),
        migrations.CreateModel(
            name="NoticeSettings",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("kinds", models.JSONField(default=list)),
                ("waited_min", models.PositiveIntegerField(default=10)),
                ("seen", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Hook",
            fields=[
                _id(),
                (
                    "user",
                    models.ForeignKey(on_delete=CASCADE, related_name="hooks", to=settings.AUTH_USER_MODEL),
                ),
                ("name", models.CharField(max_length=60)),
                ("shown", models.CharField(max_length=200)),
                ("sealed", models.BinaryField()),
                ("kinds", models.JSONField(default=list)),
                ("on", models.BooleanField(default=True)),
                ("made_at", models.DateTimeField(auto_now_add=True)),
                ("last_at", models.DateTimeField(null=True)),
                ("last_ok", models.BooleanField(null=True)),
                ("last_sentence", models.CharField(blank=True, max_length=300)),
            ],
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                _id(),
                ("hook", models.ForeignKey(on_delete=CASCADE, related_name="deliveries", to="placement.hook")),
                ("kind", models.CharField(max_length=10)),
                ("title", models.CharField(max_length=240)),
                ("sentence", models.CharField(blank=True, max_length=500)),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("due_at", models.DateTimeField(db_index=True)),
            ],
        ),
    ]
