"""Wait cycles as they were, with the jobs that were in them."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("placement", "0020_asked_later")]

    operations = [
        migrations.CreateModel(
            name="WaitCycle",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(db_index=True)),
                ("sentence", models.TextField()),
                ("told", models.JSONField()),
                ("jobs", models.ManyToManyField(related_name="wait_cycles", to="placement.job")),
            ],
        ),
    ]
