"""What runs of a workload ask for while they run: a job is held where others wait for that already."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("placement", "0019_taken")]

    operations = [
        migrations.CreateModel(
            name="AskedLater",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("subject", models.CharField(max_length=32, unique=True)),
                ("asks", models.JSONField(default=list)),
                ("changed_at", models.DateTimeField(auto_now=True, db_index=True)),
            ],
        ),
    ]
