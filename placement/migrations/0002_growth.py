"""Indexes for pages that stay quick with a million jobs, and a mark on those whose history was let go."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("placement", "0001_initial")]

    operations = [
        migrations.RemoveIndex(model_name="job", name="jobs_by_end"),
        migrations.AddField(model_name="job", name="pruned_at", field=models.DateTimeField(blank=True, null=True)),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("state", "finished")), fields=["-ended_at", "-id"], name="jobs_ended"
            ),
        ),
        migrations.AddIndex(model_name="job", index=models.Index(fields=["outcome", "-id"], name="jobs_by_outcome")),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["user", "outcome", "-id"], name="jobs_by_user_and_outcome"),
        ),
        migrations.AddIndex(model_name="job", index=models.Index(fields=["-id", "name"], name="jobs_by_name")),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("pruned_at", None), ("state", "finished")),
                fields=["ended_at"],
                name="jobs_to_prune",
            ),
        ),
        migrations.AddIndex(
            model_name="auditentry", index=models.Index(fields=["action", "-at"], name="audit_by_action")
        ),
        migrations.AddIndex(
            model_name="auditentry", index=models.Index(fields=["subject", "-id"], name="audit_by_subject")
        ),
    ]
