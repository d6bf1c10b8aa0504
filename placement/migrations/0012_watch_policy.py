"""What the watchdog may do, per node and per workload; "" leaves it to the knob and to the node."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("placement", "0011_notices")]

    operations = [
        migrations.AddField(
            model_name=name,
            name="watch_policy",
            field=models.CharField(blank=True, db_default="", default="", max_length=8),
        )
        for name in ("node", "workload")
    ]
