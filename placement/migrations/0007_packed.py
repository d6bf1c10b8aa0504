from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from placement.models.packed import PackedJSON


class Migration(migrations.Migration):
    """The columns stay what they are: both ways of storing a value are JSON, and either is read."""

    dependencies: ClassVar = [("placement", "0006_tied")]

    operations: ClassVar = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField("job", "decision", PackedJSON(blank=True, default=dict)),
                migrations.AlterField("job", "estimate", PackedJSON(blank=True, default=dict)),
                migrations.AlterField("decisionrecord", "body", PackedJSON(default=dict)),
            ]
        ),
    ]
