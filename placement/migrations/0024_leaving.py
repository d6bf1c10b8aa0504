"""Whether memory of a lease that was taken back is known to be gone, and workloads whose jobs end where it is not."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("placement", "0023_by_hand")]

    operations = [
        migrations.AddField(
            model_name="insiderequest", name="leaving", field=models.BooleanField(default=False, db_default=False)
        ),
        migrations.AddField(
            model_name="workload", name="revoked_ends", field=models.BooleanField(default=False, db_default=False)
        ),
        migrations.AddIndex(
            model_name="insiderequest",
            index=models.Index(condition=models.Q(("leaving", True)), fields=["job"], name="requests_leaving"),
        ),
    ]
