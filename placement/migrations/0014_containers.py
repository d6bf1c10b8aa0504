"""Jobs and workloads that run in a container, and what each node says of its engines.

The columns of jobs may be null: then adding them touches no row, however many there are.
"""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("placement", "0013_containment")]

    operations = [
        migrations.AddField(
            model_name="job", name="image", field=models.CharField(blank=True, max_length=300, null=True)
        ),
        migrations.AddField(
            model_name="job", name="engine", field=models.CharField(blank=True, max_length=8, null=True)
        ),
        migrations.AddField(
            model_name="workload",
            name="image",
            field=models.CharField(blank=True, db_default="", default="", max_length=300),
        ),
        migrations.AddField(
            model_name="workload",
            name="engine",
            field=models.CharField(blank=True, db_default="", default="", max_length=8),
        ),
        migrations.AddField(
            model_name="node",
            name="containers",
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
    ]
