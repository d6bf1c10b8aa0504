"""Ends that are seen in one look are stored together: each on its own terms, none lost, none twice."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from calibration import clock
from calibration.domain.knobs import Knobs as InstrumentKnobs
from calibration.domain.windows import Window, observe
from calibration.models import OpenWindow, Sediment
from placement.domain.admission.decision import Code, Verdict
from placement.domain.admission.gate import decide
from placement.domain.knobs import Knobs
from placement.models import Job, Lease, Role
from placement.runner.record import ExitRecord
from placement.services import aftermath, cycle_row, ending
from placement.services.ending import Ending, Round, judged, store
from placement.services.learning import Open, Windows
from tests.builders import GIB, MIB, a_device, a_node, a_snapshot, a_waiting
from tests.integration.rows import a_job, a_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(settings: Any, tmp_path: Any) -> Any:
    settings.RUNS = tmp_path
    cycle_row.ensure()
    return a_user("ann", Role.ADMIN)


def running(user: Any, **more: Any) -> Job:
    charge = {"granted": MIB, "held": MIB, "at_start": MIB, "cap": None}
    fields = {"state": "running", "gpu": "none", "node": "n", "started_at": timezone.now(), "charges": {"ram": charge}}
    job = a_job(user, **{**fields, **more})
    Lease.objects.create(job=job, node="n", pool="ram", kind="ram", bytes=MIB)
    return job


def over(job: Job, code: int = 0) -> Ending:
    return judged(job, ExitRecord(job.pk, 1, "boot", code=code, started_at=1e9, ended_at=1e9 + 3, duration_s=3.0), "")


def a_round(*watched: Job) -> Round:
    windows = Windows()
    for job in watched:
        window = Window(0.0)
        for at in (1.0, 2.0, 3.0):
            window = observe(window, at, {"ram": 7 * MIB}, None)
        windows._open[job.pk] = Open(window)
    return Round(windows, 3.0, Knobs(), InstrumentKnobs.defaults(), {})


def live() -> int:
    return Lease.objects.filter(released_at=None).count()


def test_a_crowd_takes_a_few_transactions_and_few_statements_a_job(user: Any) -> None:
    jobs = [running(user, key_workload=f"w{n}") for n in range(70)]
    endings, now = [over(job) for job in jobs], a_round(*jobs)
    with CaptureQueriesContext(connection) as asked:
        assert [e.job for e in store(endings, now)] == jobs
    locks = [q for q in asked if q["sql"].startswith('UPDATE "placement_cycle"')]
    assert len(locks) == 3
    assert len(asked) <= 12 * len(jobs)
    assert Job.objects.filter(state="finished", outcome="completed").count() == 70
    assert (live(), Sediment.objects.count(), OpenWindow.objects.count()) == (0, 70, 0)


def test_the_same_ends_again_change_nothing(user: Any) -> None:
    jobs = [running(user), running(user)]
    endings = [over(job) for job in jobs]
    assert len(store(endings, a_round(*jobs))) == 2
    stood = Job.objects.order_by("pk").values().first()
    assert store(endings, a_round(*jobs)) == []
    assert Job.objects.order_by("pk").values().first() == stood
    assert Sediment.objects.count() == 2


def test_an_end_that_cannot_be_stored_keeps_nobody_elses_from_it_and_undoes_its_own(
    user: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, bad, last = (running(user) for _ in range(3))
    real = aftermath.of

    def fails(job: int) -> None:
        if job == bad.pk:
            raise RuntimeError("no idea what follows")
        real(job)

    monkeypatch.setattr(ending.aftermath, "of", fails)
    now = a_round(first, bad, last)
    assert [e.job for e in store([over(job, code=3) for job in (first, bad, last)], now)] == [first, last]
    bad.refresh_from_db()
    assert (bad.state, live(), Sediment.objects.count()) == ("running", 1, 2)
    monkeypatch.setattr(ending.aftermath, "of", real)
    assert [e.job for e in store([over(bad, code=3)], now)] == [bad]
    assert Sediment.objects.get(owner=f"job:{bad.pk}").peaks == {"ram": 7 * MIB}, "its window was still in memory"


@pytest.mark.parametrize("error", [IntegrityError, OperationalError])
def test_what_the_database_refuses_of_one_stops_the_others_only_where_nobody_could_be_stored(
    user: Any, monkeypatch: pytest.MonkeyPatch, error: type[DatabaseError]
) -> None:
    first, bad = running(user), running(user)

    def refuses(job: int) -> None:
        if job == bad.pk:
            raise error("refused")

    monkeypatch.setattr(ending.aftermath, "of", refuses)
    now = a_round(first, bad)
    with pytest.raises(error):
        store([over(job, code=3) for job in (first, bad)], now)
    first.refresh_from_db()
    assert first.state == ("finished" if error is IntegrityError else "running")
    monkeypatch.undo()
    store([over(job, code=3) for job in (first, bad) if job.state == "running"], now)
    assert {row.peaks["ram"] for row in Sediment.objects.all()} == {7 * MIB}
    assert (live(), Job.objects.filter(state="finished").count()) == (0, 2)


def test_in_one_crowd_of_failures_a_further_try_follows_each_and_the_rest_of_the_group_is_held(user: Any) -> None:
    again = {"times": 1, "on": ["failed"], "wait_s": 0.0, "longest_s": 0.0}
    jobs = [running(user, retry_policy=again) for _ in range(3)]
    waits = running(user, state="queued", charges={})
    assert len(store([over(job, code=9) for job in jobs], a_round())) == 3
    tries = Job.objects.filter(retry_of__in=jobs)
    assert tries.count() == 3
    waits.refresh_from_db()
    assert "failed" in waits.held_why
    assert not tries.filter(held_by="").exists()


def test_what_a_death_asks_for_fits_on_the_empty_card_on_which_it_happened() -> None:
    reserved = 300 * MIB
    round_ = Round(Windows(), 3.0, Knobs(), InstrumentKnobs.defaults(), {"GPU-0": 24 * GIB}, {"GPU-0": reserved})
    most = round_.gives("GPU-0")["vram"]
    card = a_device(24 * GIB, reserved=reserved)

    assert decide(a_snapshot(a_node(card), knobs=Knobs()), a_waiting(1, most)).verdict is Verdict.START
    assert decide(a_snapshot(a_node(card), knobs=Knobs()), a_waiting(1, most + 1)).code is Code.INFEASIBLE
    assert round_.gives("GPU-1") == {}


@pytest.mark.parametrize(("boot", "outcome"), [("another", "lost"), (clock.boot_id(), "cancelled")])
def test_what_a_shutdown_ended_is_lost_and_cancelled_by_nobody(user: Any, boot: str, outcome: str) -> None:
    record = ExitRecord(1, 1, boot, signal=15, stopped_by="signal", started_at=1e9, ended_at=1e9 + 3, duration_s=3.0)
    assert judged(running(user), record, "").row["outcome"] == outcome
