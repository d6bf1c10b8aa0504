"""A mark on jobs that wait for others, so that a queue without any costs a cycle one look at an empty index."""

from django.db import migrations, models


def mark(apps, editor):
    apps.get_model("placement", "Job").objects.filter(dependencies__isnull=False).update(tied=True)


class Migration(migrations.Migration):
    dependencies = [("placement", "0005_ordered_by_end")]

    operations = [
        migrations.AddField(model_name="job", name="tied", field=models.BooleanField(default=False)),
        migrations.RunPython(mark, migrations.RunPython.noop, elidable=True),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(condition=models.Q(("tied", True)), fields=["state", "id"], name="jobs_tied"),
        ),
    ]
