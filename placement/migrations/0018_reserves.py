"""Whether a job asks for more devices while it runs, and so sees all of its node's."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("placement", "0017_inside")]

    operations = [
        migrations.AddField(
            model_name=name, name="reserves", field=models.BooleanField(default=False, db_default=False)
        )
        for name in ("job", "workload")
    ]
