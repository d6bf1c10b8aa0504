from __future__ import annotations

import hashlib
from typing import Any

from django.db import migrations, models


def _subject(workload: str, script: str, params: str) -> str:
    """As calibration.domain.keys.subject is when this is written: a migration stands still."""
    text = "\0".join((workload, script, "" if script else params))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def count(apps: Any, editor: Any) -> None:
    """Count the rows that are there, a key at a time."""
    sediment, known = apps.get_model("calibration", "Sediment"), apps.get_model("calibration", "Known")
    found: dict[tuple[str, str], Any] = {}
    seen = sediment.objects.order_by("id").values_list(
        "workload", "script", "params_digest", "completed", "outcome", "at", "id"
    )
    for workload, script, digest, completed, outcome, at, pk in seen.iterator():
        first = found.setdefault((workload, script, digest), [0, 0, at, pk])
        first[0] += 1
        first[1] += not completed and outcome != "cancelled"
        first[2] = max(first[2], at)
    rows = []
    for (workload, script, digest), (runs, failed, last, pk) in found.items():
        params = sediment.objects.values_list("params", flat=True).get(pk=pk)
        rows.append(
            known(
                subject=_subject(workload, script, params),
                workload=workload,
                script=script,
                params=params,
                params_digest=digest,
                runs=runs,
                failed=failed,
                last_at=last,
            )
        )
    known.objects.bulk_create(rows, batch_size=500)


class Migration(migrations.Migration):
    """What was learned of, one row per key, and pins of one script alone."""

    dependencies = [("calibration", "0003_by_kernel")]

    operations = [
        migrations.CreateModel(
            name="Known",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("subject", models.CharField(max_length=32)),
                ("workload", models.CharField(max_length=200)),
                ("script", models.CharField(blank=True, max_length=500)),
                ("params", models.TextField(blank=True)),
                ("params_digest", models.CharField(max_length=32)),
                ("runs", models.PositiveIntegerField(default=0)),
                ("failed", models.PositiveIntegerField(default=0)),
                ("last_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["subject", "-last_at"], name="known_by_subject")],
                "constraints": [
                    models.UniqueConstraint(fields=("subject", "params_digest"), name="one_row_per_key_known")
                ],
            },
        ),
        migrations.AddField(
            model_name="pin",
            name="subject",
            field=models.CharField(blank=True, db_default="", default="", max_length=32),
        ),
        migrations.RemoveConstraint(model_name="pin", name="one_pin_per_kind"),
        migrations.AddConstraint(
            model_name="pin",
            constraint=models.UniqueConstraint(fields=("workload", "subject", "kind"), name="one_pin_per_kind"),
        ),
        migrations.RunPython(count, migrations.RunPython.noop, elidable=True),
    ]
