"""What a workload says of the devices of its runs."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("placement", "0021_wait_cycle")]

    operations = [
        migrations.AddField(model_name="workload", name="placement", field=models.JSONField(blank=True, null=True)),
    ]
