from django.db import migrations, models


class Migration(migrations.Migration):
    """Columns that may be empty, added without a look at the rows, and a table with a row per pool."""

    dependencies = [("calibration", "0004_known")]

    operations = [
        migrations.AddField(model_name="point", name="booked", field=models.BigIntegerField(null=True)),
        migrations.AddField(model_name="point", name="kept", field=models.BigIntegerField(null=True)),
        migrations.CreateModel(
            name="PoolProcesses",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("node", models.CharField(max_length=100)),
                ("pool", models.CharField(max_length=100)),
                ("rows", models.JSONField(default=list)),
                ("more", models.JSONField(default=list)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=["node", "pool"], name="one_list_of_processes_per_pool")
                ],
            },
        ),
    ]
