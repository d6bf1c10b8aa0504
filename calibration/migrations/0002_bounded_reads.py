"""What is read for one key is found by an index of its own, however many runs there were."""

from typing import Any

from django.db import migrations, models

from calibration.models import params_digest

_AT_ONCE = 2000  # rows


def fill(apps: Any, schema_editor: Any) -> None:
    """Name the parameters of the rows that are there."""
    rows = apps.get_model("calibration", "Sediment").objects.filter(params_digest="").order_by("pk")
    last = 0
    while batch := list(rows.filter(pk__gt=last).only("params")[:_AT_ONCE]):
        for row in batch:
            row.params_digest = params_digest(row.params)
        rows.model.objects.bulk_update(batch, ["params_digest"], batch_size=200)
        last = batch[-1].pk


class Migration(migrations.Migration):
    dependencies = [("calibration", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="sediment",
            name="params_digest",
            field=models.CharField(blank=True, default="", max_length=32),
            preserve_default=False,
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RemoveIndex(model_name="sediment", name="sediment_by_workload"),
        migrations.RemoveIndex(model_name="sediment", name="sediment_by_user"),
        migrations.AddIndex(
            model_name="sediment",
            index=models.Index(fields=["workload", "params_digest", "-at"], name="sediment_by_key"),
        ),
        migrations.AddIndex(
            model_name="sediment",
            index=models.Index(
                condition=models.Q(("completed", True), ("forgotten", False)),
                fields=["user", "-at"],
                name="sediment_completed_by_user",
            ),
        ),
    ]
