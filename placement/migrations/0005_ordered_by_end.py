"""The state as first column: SQLite takes any index on it before a partial one that is only in the right order."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("placement", "0004_forecasts")]

    operations = [
        migrations.RemoveIndex(model_name="job", name="jobs_ended"),
        migrations.RemoveIndex(model_name="job", name="jobs_to_prune"),
        migrations.AddIndex(
            model_name="job", index=models.Index(fields=["state", "-ended_at", "-id"], name="jobs_by_end")
        ),
        migrations.AddIndex(
            model_name="job", index=models.Index(fields=["state", "pruned_at", "ended_at"], name="jobs_not_pruned")
        ),
    ]
