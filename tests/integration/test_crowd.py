"""Many submissions, many starts, many ends at once: they share cycles, messages and looks."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from select import poll
from typing import Any

import pytest

from calibration import clock
from placement import loop, tasks, watcher
from placement.domain.jobs import State
from placement.domain.pace import Pace
from placement.runner.identity import identify
from placement.runner.record import claim
from placement.services import dispatching, starting
from tests.integration.loop_here import Here, here
from tests.integration.rows import a_job
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    with here(settings, tmp_path) as made:
        yield made


def admitted(node: Here, count: int, **more: Any) -> list[Any]:
    fields = {"state": State.ADMITTED, "node": "testnode", "gpu": "none", "admitted_clock": clock.now(), **more}
    return [a_job(node.user, **fields) for _ in range(count)]


def told() -> list[list[int]]:
    return [[job for job, _ in starts] for name, starts in dispatching.due("testnode") if name == "testnode"]


def test_a_wake_in_a_crowd_is_put_off_and_one_later_does_for_all(node: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    node.tick()
    pace = Pace(share=0.5, credit=0.0, longest=0.2)
    monkeypatch.setattr(loop, "cycles", pace)
    jobs = [node.submit("true"), node.submit("true")]
    pace.spent(10.0, time.monotonic())
    left = loop.wake(node.send)
    assert 0 < left <= 0.2
    assert [job.state for job in jobs] == [State.QUEUED] * 2
    assert node.sent == []
    assert until(lambda: loop.wake(node.send) == 0.0, 20, "its turn")
    assert len(node.sent) == 2


def test_the_watcher_runs_the_cycle_that_was_put_off(node: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [0.05, 0.02, 0.0]
    monkeypatch.setattr(loop, "wake", lambda send: answers.pop(0))
    monkeypatch.setattr(watcher, "_send", node.send)
    monkeypatch.setattr(watcher, "_wake_at", None)
    tasks.wake()
    planned = watcher._wake_at
    assert planned is not None
    watcher.wake_later(60.0)
    assert watcher._wake_at == planned
    waits: list[float] = []  # milliseconds

    class Poll:
        def __init__(self) -> None:
            self.real = poll()
            self.register = self.real.register

        def poll(self, most: float) -> list[tuple[int, int]]:
            waits.append(most)
            return self.real.poll(most)

    monkeypatch.setattr(watcher.select, "poll", Poll)
    watcher._wait([])
    while time.monotonic() < planned:  # it may be nudged before
        watcher._wait([])
    assert max(waits) <= 50
    watcher._wake()
    assert watcher._wake_at is not None
    watcher._wake()
    assert (watcher._wake_at, answers) == (None, [])


def test_a_start_worker_that_is_behind_is_told_no_more(node: Here, settings: Any) -> None:
    settings.KNOB_OVERRIDES = {**settings.KNOB_OVERRIDES, "redispatch_seconds": 60.0}  # none is due again, however slow
    jobs = admitted(node, dispatching.UNDER_WAY + 30)
    messages = told()
    assert [job for one in messages for job in one] == [job.pk for job in jobs[: dispatching.UNDER_WAY]]
    for name, starts in dispatching.due("testnode"):
        dispatching.sent(name, starts)
    assert told() == []
    me = identify(os.getpid())
    assert me is not None
    for job in jobs[:3]:
        claim(str(starting.make_run_dir(job)), me)
    assert told() == [[job.pk for job in jobs[dispatching.UNDER_WAY :][:3]]]
