"""Whoever holds a device for a person holds a promise: the mark that exact groups have stands on those rows, too."""

from __future__ import annotations

from typing import Any

from django.db import migrations


def mark(apps: Any, schema_editor: Any) -> None:
    """Mark the holds of people that live: their charges, and their leases."""
    jobs, leases = (apps.get_model("placement", name) for name in ("Job", "Lease"))
    for job in jobs.objects.filter(kind="hold", state__in=("admitted", "running")):
        job.charges = {pool: {**charge, "promise": True} for pool, charge in job.charges.items()}
        job.save(update_fields=["charges"])
        leases.objects.filter(job=job.pk, released_at=None).update(promise=True)


class Migration(migrations.Migration):
    dependencies = [("placement", "0024_leaving")]

    operations = [migrations.RunPython(mark, migrations.RunPython.noop, elidable=True)]
