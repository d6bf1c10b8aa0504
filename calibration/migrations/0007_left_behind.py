"""What outlived its process, and the files that live in main memory, beside a pool's newest figures."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("calibration", "0006_contexts")]

    operations = [
        migrations.AddField(model_name="poolnow", name="left", field=models.JSONField(db_default=[], default=list)),
        migrations.AddField(model_name="poolnow", name="files", field=models.BigIntegerField(null=True)),
    ]
