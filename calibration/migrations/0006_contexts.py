from django.db import migrations, models


class Migration(migrations.Migration):
    """A table of its own, with a handful of rows per card model and person."""

    dependencies = [("calibration", "0005_ledger_and_processes")]

    operations = [
        migrations.CreateModel(
            name="ContextSeen",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("model", models.CharField(max_length=100)),
                ("user", models.CharField(max_length=150)),
                ("owner", models.CharField(max_length=60, unique=True)),
                ("bytes", models.BigIntegerField()),
                ("at", models.DateTimeField()),
            ],
            options={"indexes": [models.Index(fields=["model", "user", "-at"], name="contexts_by_model")]},
        ),
    ]
