"""A hold's end is a kind of notice of its own: whoever is told of stops, as which it was told so far, is told of it."""

from __future__ import annotations

from typing import Any

from django.db import migrations


def tell(apps: Any, schema_editor: Any) -> None:
    """Add the kind where the one that it was part of is chosen."""
    for name in ("NoticeSettings", "Hook"):
        for row in apps.get_model("placement", name).objects.only("kinds"):
            if isinstance(row.kinds, list) and "stopped" in row.kinds and "hold_ends" not in row.kinds:
                row.kinds = sorted([*row.kinds, "hold_ends"])
                row.save(update_fields=["kinds"])


class Migration(migrations.Migration):
    dependencies = [("placement", "0025_promises")]

    operations = [migrations.RunPython(tell, migrations.RunPython.noop, elidable=True)]
