"""Long JSON lies packed in its row on SQLite: it reads as it was, and so does what an older version stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.models.sql import InsertQuery
from django.utils import timezone

from placement.models import DecisionRecord, Job
from tests.integration.rows import a_job, a_user

pytestmark = pytest.mark.django_db
CHECK = {"code": "no_room", "ok": False, "sentence": "Needs 8.0 GiB: 2.0 GiB is left – too little.", "figures": {}}
LONG = {"verdict": "wait", "candidates": [{"device": f"GPU-{n}", "checks": [CHECK] * 15} for n in range(8)]}


def stored(job: Job) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT decision FROM placement_job WHERE id = %s", [job.pk])
        return str(cursor.fetchone()[0])


def read(job: Job) -> list[Any]:
    return [Job.objects.get(pk=job.pk).decision, Job.objects.values_list("decision", flat=True).get(pk=job.pk)]


@pytest.mark.parametrize("way", ["create", "update", "bulk_update", "save"])
def test_a_long_value_reads_as_it_was_written_whichever_way(way: str) -> None:
    job = a_job(a_user("ann"), decision=LONG if way == "create" else {})
    job.decision = LONG
    if way == "update":
        Job.objects.filter(pk=job.pk).update(decision=LONG)
    elif way == "bulk_update":
        Job.objects.bulk_update([job], ["decision"])
    elif way == "save":
        job.save()
    assert read(job) == [LONG, LONG]
    if connection.vendor == "sqlite":
        assert len(stored(job)) < len(json.dumps(LONG)) / 8
        assert isinstance(json.loads(stored(job)), str), "still JSON, as the column demands"


def test_a_short_value_can_be_read_by_anybody() -> None:
    job = a_job(a_user("ann"), decision={"verdict": "start"})
    assert read(job) == [{"verdict": "start"}] * 2
    assert json.loads(stored(job)) == {"verdict": "start"}


def test_what_was_stored_unpacked_is_read_and_packed_when_it_is_written_again() -> None:
    job = a_job(a_user("ann"))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE placement_job SET decision = %s WHERE id = %s", [json.dumps(LONG), job.pk])
    assert read(job) == [LONG, LONG]
    before = len(stored(job))
    again = Job.objects.get(pk=job.pk)
    again.save()
    assert read(job) == [LONG, LONG]
    if connection.vendor == "sqlite":
        assert len(stored(job)) < before / 8


def test_histories_are_packed_too() -> None:
    job = a_job(a_user("ann"))
    DecisionRecord.objects.bulk_create([DecisionRecord(job=job, at=job.submitted_at, verdict="wait", body=LONG)])
    assert DecisionRecord.objects.get().body == LONG


def test_postgresql_is_sent_many_values_side_by_side_not_in_an_array() -> None:
    postgres = DatabaseWrapper({**connection.settings_dict, "OPTIONS": {}, "ENGINE": "django.db.backends.postgresql"})
    rows = [DecisionRecord(job_id=n, body=LONG, verdict="wait", at=timezone.now()) for n in range(3)]
    query = InsertQuery(DecisionRecord)
    query.insert_values([f for f in DecisionRecord._meta.concrete_fields if not f.primary_key], rows)
    [(statement, values)] = query.get_compiler(connection=postgres).as_sql()
    assert "UNNEST" not in statement
    assert not any(isinstance(value, list) for value in values)
