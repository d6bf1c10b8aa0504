"""Devices that an admin declares by hand, and further backends of any device."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("placement", "0022_workload_placement")]

    operations = [
        migrations.AddField(
            model_name="device",
            name="more_backends",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
        migrations.AddField(
            model_name="device", name="by_hand", field=models.BooleanField(db_default=False, default=False)
        ),
        migrations.AddField(
            model_name="device", name="any_gpu", field=models.BooleanField(db_default=False, default=False)
        ),
        migrations.AddField(
            model_name="device", name="driver_number", field=models.IntegerField(blank=True, null=True)
        ),
    ]
