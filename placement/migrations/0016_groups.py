from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("placement", "0015_hardware")]

    operations = [
        migrations.AddField("job", "more_devices", models.TextField(blank=True, db_default="", default="")),
        migrations.AddField("job", "devices_wanted", models.JSONField(blank=True, null=True)),
    ]
