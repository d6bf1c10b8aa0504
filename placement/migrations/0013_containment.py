"""How a node keeps its jobs in their main memory, as its worker found by trying."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("placement", "0012_watch_policy")]

    operations = [
        migrations.AddField(
            model_name="node",
            name="containment",
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
    ]
