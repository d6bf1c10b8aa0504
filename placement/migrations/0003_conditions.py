"""What a job may wait for besides room: other jobs, a time, its array's turn, a quota; further tries; group holds."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import placement.models.conditions


class Migration(migrations.Migration):
    dependencies = [
        ("placement", "0002_growth"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="JobArray",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=200)),
                ("size", models.PositiveIntegerField()),
                ("limit", models.PositiveIntegerField(blank=True, null=True)),
                ("made_at", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={"indexes": [models.Index(fields=["size"], name="arrays_by_size")]},
        ),
        migrations.CreateModel(
            name="Dependency",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("named", models.BigIntegerField()),
                ("when", models.CharField(choices=placement.models.conditions.ways, max_length=8)),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="dependencies", to="placement.job"
                    ),
                ),
                (
                    "on",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="dependents", to="placement.job"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("job", "on", "when"), name="one_tie_between_two_jobs")],
            },
        ),
        migrations.CreateModel(
            name="GroupHold",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key_workload", models.CharField(max_length=200)),
                ("key_fingerprint", models.CharField(blank=True, max_length=80)),
                ("key_params", models.TextField(blank=True)),
                ("why", models.CharField(max_length=200)),
                ("jobs", models.JSONField(default=list)),
                ("held_at", models.DateTimeField()),
                ("released_at", models.DateTimeField(null=True)),
                ("released_by", models.CharField(blank=True, max_length=150)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["user", "key_workload", "-held_at"], name="group_holds_of_user")],
            },
        ),
        migrations.AddField(model_name="job", name="retry_policy", field=models.JSONField(blank=True, default=dict)),
        migrations.AddField(model_name="job", name="retry_number", field=models.PositiveIntegerField(default=0)),
        migrations.AddField(model_name="job", name="not_before", field=models.DateTimeField(blank=True, null=True)),
        migrations.AddField(
            model_name="job",
            name="array",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="jobs",
                to="placement.jobarray",
            ),
        ),
        migrations.AddField(
            model_name="job", name="array_index", field=models.PositiveIntegerField(blank=True, null=True)
        ),
        migrations.AddField(
            model_name="member", name="quota_jobs", field=models.PositiveIntegerField(blank=True, null=True)
        ),
        migrations.AddField(
            model_name="member", name="quota_vram", field=models.BigIntegerField(blank=True, null=True)
        ),
        migrations.AddField(model_name="member", name="quota_ram", field=models.BigIntegerField(blank=True, null=True)),
        migrations.AddField(
            model_name="workload", name="retry_policy", field=models.JSONField(blank=True, default=dict)
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("array__isnull", False)), fields=["array", "state", "id"], name="jobs_by_array"
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("state", "finished")),
                fields=["user", "key_workload", "-ended_at"],
                name="jobs_by_group",
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.UniqueConstraint(
                condition=models.Q(("retry_number__gt", 0)),
                fields=("retry_of",),
                name="one_automatic_retry_per_job",
            ),
        ),
    ]
