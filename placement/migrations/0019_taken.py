"""What kind of job it is: a run, or a person's hold on a device; and when a held device was last seen in use."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("placement", "0018_reserves")]

    operations = [
        migrations.AddField(
            model_name="job", name="kind", field=models.CharField(db_default="run", default="run", max_length=8)
        ),
        migrations.AddField(model_name="job", name="taken_used_at", field=models.DateTimeField(blank=True, null=True)),
    ]
