from django.db import migrations, models


class Migration(migrations.Migration):
    """A column that may be empty: it is added without a look at the rows."""

    dependencies = [("calibration", "0002_bounded_reads")]

    operations = [
        migrations.AddField(model_name="sediment", name="by_kernel", field=models.BooleanField(null=True)),
    ]
