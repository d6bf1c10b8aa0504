"""What was learned of, counted per key as windows close, and counted afresh where rows were there before."""

from __future__ import annotations

import importlib
from dataclasses import replace
from datetime import timedelta

import pytest
from django.apps import apps
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from calibration import rows
from calibration import services as instrument
from calibration.domain import keys
from calibration.models import Known, Pin, Sediment
from placement.domain.errors import NotYours, Refused
from placement.models import AuditEntry, Role
from placement.services import taught
from tests.integration.databases import on, together
from tests.integration.learned import GIB, NAMED, a_run
from tests.integration.rows import a_user

pytestmark = pytest.mark.django_db


def told() -> list[tuple[str, str, int, int]]:
    return list(Known.objects.order_by("params").values_list("workload", "params", "runs", "failed"))


def test_each_key_counts_its_runs_and_failures() -> None:
    ada = a_user("ada")
    a_run(ada, ago=3)
    a_run(ada, ago=1, completed=False, outcome="out_of_memory")
    a_run(ada, ago=2, completed=False, outcome="cancelled")
    a_run(ada, replace(NAMED, params="{}"))
    assert told() == [("train", '{"lr": "1e-3"}', 3, 1), ("train", "{}", 1, 0)]
    newest = Known.objects.get(params='{"lr": "1e-3"}')
    assert newest.subject == keys.named("train")
    assert timedelta(minutes=59) < timezone.now() - newest.last_at < timedelta(minutes=61)
    counted = told()
    Known.objects.all().delete()
    importlib.import_module("calibration.migrations.0004_known").count(apps, None)
    assert told() == counted
    assert set(Known.objects.values_list("subject", flat=True)) == {keys.named("train")}


def test_a_pin_of_one_script_leaves_the_others_of_its_program_alone(capsys: pytest.CaptureFixture[str]) -> None:
    a_user("ada")
    one, other = (replace(NAMED, workload="ada: python", script=f"/tmp/{name}.py") for name in "ab")
    instrument.pin("ada: python", "ram", 3 * GIB, "ada")
    instrument.pin("ada: python", "ram", 5 * GIB, "ada", keys.subject(one.workload, one.script, one.params))
    assert rows.pinned(one) == {"ram": 5 * GIB}
    assert rows.pinned(other) == {"ram": 3 * GIB}
    call_command("pin")
    said = capsys.readouterr().out
    assert "ada: python: ram 3,221,225,472 bytes" in said
    assert "ada: python, of one script alone: ram 5,368,709,120 bytes" in said
    instrument.pin("ada: python", "ram", None, "ada", keys.subject(one.workload, one.script, one.params))
    assert rows.pinned(one) == {"ram": 3 * GIB}


def test_what_is_old_is_forgotten_in_steps_and_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taught, "FORGOTTEN_AT_ONCE", 2)
    ada, bob = a_user("ada", Role.OPERATOR), a_user("bob")
    for hours in range(1, 6):
        a_run(ada, ago=hours)
    a_run(ada, replace(NAMED, params="{}"), ago=9)
    before = timezone.now() - timedelta(hours=1.5)
    with pytest.raises(NotYours):
        taught.forget_before(bob, "train", NAMED.params, before)
    with pytest.raises(Refused, match="still to come"):
        taught.forget_before(ada, "train", NAMED.params, timezone.now() + timedelta(hours=1))
    version = rows.version()
    assert taught.forget_before(ada, "train", NAMED.params, before).startswith("4 runs are forgotten")
    assert rows.version() > version
    kept = Sediment.objects.filter(forgotten=False)
    assert sorted(kept.values_list("params", flat=True)) == sorted([NAMED.params, "{}"])
    assert Sediment.objects.filter(forgotten=True, marked_by="ada").count() == 4
    assert AuditEntry.objects.get(action="forget_runs").detail["runs"] == 4


def test_only_operators_pin_and_only_what_is_known() -> None:
    ada, bob = a_user("ada", Role.OPERATOR), a_user("bob")
    with pytest.raises(NotYours):
        taught.pin(bob, "train", "ram", "2 GiB")
    with pytest.raises(Refused, match="Nothing has been learned"):
        taught.pin(ada, "train", "ram", "2 GiB")
    a_run(ada)
    assert taught.pin(ada, "train", "ram", "2 GiB") == "train: RAM is pinned at 2.0 GiB."
    assert Pin.objects.get().who == "ada"


@pytest.mark.django_db(transaction=True)
def test_keys_are_counted_listed_and_forgotten_on_postgresql(
    client: Client, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on(postgres_url, monkeypatch):
        ada = a_user("ada", Role.OPERATOR)
        keep = [a_run(ada, ago=hours)[1].owner for hours in (1, 2, 30)]
        assert told() == [("train", NAMED.params, 3, 0)]
        client.force_login(ada)
        here = f"/workloads/{keys.named('train')}"
        for path in ("/workloads", "/workloads?order=failed&which=typed&q=x", here, f"{here}/figures/need"):
            assert client.get(path).status_code == 200, path
        client.post(f"{here}/forget", {"days": "1"})
        assert list(Sediment.objects.filter(forgotten=True).values_list("owner", flat=True)) == keep[2:]
        found = together(*[lambda n=n: a_run(ada, ago=n) and 1 for n in range(4)])
        assert found == [1] * 4
        assert told() == [("train", NAMED.params, 7, 0)]
