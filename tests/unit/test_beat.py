from __future__ import annotations

from collections.abc import Callable

import pytest
from celery import Celery

from scheduler_site.beat import MonotonicScheduler


class Clocks:
    """A monotonic and a wall clock that tests move apart."""

    def __init__(self) -> None:
        self.monotonic = 1000.0
        self.wall = 1_800_000_000.0


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr("scheduler_site.beat.time.monotonic", lambda: clocks.monotonic)
    monkeypatch.setattr("time.time", lambda: clocks.wall)
    return clocks


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(MonotonicScheduler, "apply_async", lambda self, entry, **options: names.append(entry.name))
    return names


@pytest.fixture
def scheduler(clocks: Clocks) -> MonotonicScheduler:
    app = Celery("test", set_as_current=False)
    app.conf.beat_schedule = {
        "tick": {"task": "t.tick", "schedule": 1.0},
        "prune": {"task": "t.prune", "schedule": 600.0},
    }
    scheduler = MonotonicScheduler(app=app)
    # Making the real one would wait for a broker.
    scheduler.producer = object()
    return scheduler


def run(scheduler: MonotonicScheduler, clocks: Clocks, seconds: float, each: Callable[[], None]) -> None:
    """Call tick() as the beat service does: when the returned wait is over."""
    end = clocks.monotonic + seconds
    while clocks.monotonic < end:
        wait = scheduler.tick()
        each()
        clocks.monotonic += wait
        clocks.wall += wait


def test_first_call_sends_every_entry(scheduler: MonotonicScheduler, sent: list[str]) -> None:
    wait = scheduler.tick()

    assert sorted(sent) == ["prune", "tick"]
    assert wait == pytest.approx(1.0)


def test_keeps_its_pace_when_each_round_takes_time(
    scheduler: MonotonicScheduler, clocks: Clocks, sent: list[str]
) -> None:
    def thirty_milliseconds_pass() -> None:
        clocks.monotonic += 0.03

    run(scheduler, clocks, 60, thirty_milliseconds_pass)

    assert sent.count("tick") in (59, 60)


@pytest.mark.parametrize("step", [-3600.0, -10.0, 3600.0])
def test_wall_clock_steps_change_nothing(
    step: float, scheduler: MonotonicScheduler, clocks: Clocks, sent: list[str]
) -> None:
    run(scheduler, clocks, 5, lambda: None)
    before = sent.count("tick")

    clocks.wall += step
    run(scheduler, clocks, 10, lambda: None)

    assert sent.count("tick") - before == 10


def test_missed_periods_are_not_replayed(scheduler: MonotonicScheduler, clocks: Clocks, sent: list[str]) -> None:
    scheduler.tick()
    clocks.monotonic += 30

    wait = scheduler.tick()

    assert sent.count("tick") == 2
    assert wait == pytest.approx(1.0)


def test_a_broker_that_is_away_does_not_end_the_schedule(
    scheduler: MonotonicScheduler, clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(self: MonotonicScheduler, entry: object, **options: object) -> None:
        raise ConnectionError("no broker")

    monkeypatch.setattr(MonotonicScheduler, "apply_async", away)

    assert scheduler.tick() == pytest.approx(1.0)
