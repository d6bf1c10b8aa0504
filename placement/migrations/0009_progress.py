from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("placement", "0008_token")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="JobProgress",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="progress",
                        serialize=False,
                        to="placement.job",
                    ),
                ),
                ("share", models.FloatField(null=True)),
                ("left_s", models.FloatField(null=True)),
                ("read_at", models.DateTimeField(null=True)),
                ("usual_s", models.FloatField(null=True)),
            ],
        ),
    ]
