"""The watchdog between two looks: who is near a cap is looked at more often, and what that costs is bounded."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from calibration import clock
from calibration.domain.samples import RAM, Identity, PoolSample, PoolState
from calibration.models import PoolNow
from placement import watcher
from placement.domain.knobs import Knobs
from placement.models import Job, Workload
from placement.runner.identity import identify, read_boot_id
from placement.services.node_tick import Agent
from placement.services.watching import Watchdog
from tests.builders import GIB
from tests.integration.rows import a_machine, a_running, a_user

pytestmark = pytest.mark.django_db
KNOBS = Knobs()


class Machine:
    """A node of 64 GiB on which one job has a cap of 12 GiB; what it and the machine use now is the test's."""

    def __init__(self, **fields: Any) -> None:
        a_machine()
        PoolNow.objects.filter(pool=RAM).update(read_at=clock.now(), epoch=clock.epoch(), total=64 * GIB, free=50 * GIB)
        charge = {"granted": 8 * GIB, "held": 8 * GIB, "at_start": 8 * GIB, "cap": 12 * GIB}
        self.used: int | None = 11 * GIB
        self.free = 50 * GIB
        self.asked: list[int] = []
        self.job = a_running(
            a_user("ann"), gpu="none", device="", charges={RAM: charge}, used={RAM: self.used}, **fields
        )
        self.watchdog = Watchdog(self.needs, self.ram)

    def needs(self, pids: Collection[int]) -> int | None:
        self.asked = list(pids)
        return self.used

    def ram(self) -> PoolSample:
        return PoolSample(RAM, "ram", "RAM", PoolState.OK, 64 * GIB, self.free, 64 * GIB - self.free)

    def look(self, knobs: Knobs = KNOBS) -> None:
        me = identify(os.getpid(), read_boot_id())
        assert me is not None
        self.job.used = {RAM: self.used}
        mine = frozenset({Identity(me.boot_id, me.pid, me.start_ticks)})
        self.watchdog.look("atlas", [self.job], {f"job:{self.job.pk}": mine}, knobs)

    def stopped(self) -> dict[str, Any]:
        self.job.refresh_from_db()
        return self.job.evidence.get("watchdog", {}) if self.job.stop_reason == "watchdog" else {}


@pytest.fixture(autouse=True)
def _runs(settings: Any, tmp_path: Any) -> None:
    settings.RUNS = tmp_path


def test_a_job_that_stays_above_its_cap_is_stopped_after_three_looks_a_quarter_of_a_second_apart() -> None:
    at = Machine(workload=Workload.objects.create(name="w", command="true", watch_policy="cap"))
    at.look()
    assert at.watchdog.every() == 0.25
    with CaptureQueriesContext(connection) as asked:
        for used in (12.2, 12.8):
            at.used = int(used * GIB)
            at.watchdog.glance()
    assert len(asked) == 0  # nothing is asked of the database before somebody is to be stopped
    assert at.asked == [os.getpid()]
    assert not at.stopped()
    at.used = int(13.1 * GIB)
    at.watchdog.glance()
    found = at.stopped()
    assert found["sentence"] == (
        "Killed by the watchdog: used 13.1 GiB of 12.0 GiB, its cap in the RAM of atlas; "
        "12.2, 12.8, 13.1 GiB in its last looks; its policy is to stop at the cap."
    )
    assert found["samples"] == [int(12.2 * GIB), int(12.8 * GIB), int(13.1 * GIB)]
    assert (found["policy"], found["cap"]) == ("cap", 12 * GIB)
    assert at.watchdog.every() is None  # it ends already


def test_by_the_usual_policy_one_glance_is_enough_where_free_ram_is_under_the_mark() -> None:
    at = Machine()
    at.look()
    assert at.watchdog.every() is None  # plenty is free
    PoolNow.objects.filter(pool=RAM).update(free=4 * GIB)
    at.look()
    assert at.watchdog.every() == 0.25
    at.used, at.free = 14 * GIB, 2 * GIB
    at.watchdog.glance()
    assert not at.stopped()
    at.free = GIB
    at.watchdog.glance()
    assert at.stopped()["free"] == GIB


def test_a_figure_that_no_exact_reading_stands_behind_stops_nobody_at_its_cap() -> None:
    at = Machine(workload=Workload.objects.create(name="w", command="true", watch_policy="cap"))
    for _ in range(4):
        at.look()
        at.used = None
        at.watchdog.glance()
        at.used = 13 * GIB
    assert not at.stopped()


def test_when_nothing_runs_there_is_nobody_to_look_at() -> None:
    at = Machine(workload=Workload.objects.create(name="w", command="true", watch_policy="cap"))
    at.look()
    Job.objects.all().delete()
    at.watchdog.look("atlas", [], {}, KNOBS)
    assert at.watchdog.every() is None


def test_the_watcher_glances_while_somebody_is_near_a_cap_and_not_beside_a_tick(
    monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Any
) -> None:
    settings.DATA, settings.SIMULATE, settings.SIMULATED_DIR = tmp_path, "1x24GiB", tmp_path / "simulated"
    agent = Agent("atlas")
    monkeypatch.setattr(watcher.loop, "agent", lambda: agent)
    monkeypatch.setattr(watcher, "_last_tick", time.monotonic())
    seen: list[float] = []
    monkeypatch.setattr(agent.watchdog, "glance", lambda: seen.append(time.monotonic()))
    monkeypatch.setattr(agent.watchdog, "every", lambda: 0.1)
    for _ in range(3):
        assert watcher._round([]) == []
    assert len(seen) == 3
    assert 0.1 <= seen[-1] - seen[0] < 2.0  # two waits of a tenth of a second and not of a whole one each
    with agent.turn() as mine:
        assert mine
        watcher._round([])
    monkeypatch.setattr(agent.watchdog, "every", lambda: None)
    watcher._nudge()
    watcher._round([])
    assert len(seen) == 3
