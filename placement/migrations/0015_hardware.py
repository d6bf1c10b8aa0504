"""Devices that are parts of others, and devices that share the machine's memory."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("placement", "0014_containers")]

    operations = [
        migrations.AddField(
            model_name="device",
            name="parent",
            field=models.CharField(blank=True, db_default="", default="", max_length=100),
        ),
        migrations.AddField(
            model_name="device", name="heading", field=models.BooleanField(db_default=False, default=False)
        ),
        migrations.AddField(
            model_name="device", name="shares", field=models.BooleanField(db_default=False, default=False)
        ),
        migrations.AddField(
            model_name="device", name="one_pool", field=models.BooleanField(db_default=False, default=False)
        ),
    ]
