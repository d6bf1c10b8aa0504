from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    """What an array that is a sweep was made from; null, so that adding the column touches no row."""

    dependencies: ClassVar = [("placement", "0009_progress")]

    operations: ClassVar = [
        migrations.AddField("jobarray", "sweep", models.JSONField(blank=True, null=True)),
    ]
