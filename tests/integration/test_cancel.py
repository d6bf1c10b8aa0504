"""Ends with real runners: cancels that race, commands that resist, and what a command leaves behind."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from placement import loop
from placement.domain.jobs import State
from placement.models import Job
from placement.services import dispatching, jobs, starting
from tests.integration.databases import together
from tests.integration.loop_here import Here, alive, control, here, leased, started
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    with here(settings, tmp_path) as made:
        yield made


def test_the_leader_has_exited_its_child_has_not(node: Here, settings: Any) -> None:
    settings.KNOB_OVERRIDES = {**settings.KNOB_OVERRIDES, "sweep_seconds": 3.0}
    job = node.run("trap '' TERM; sleep 600 & sleep 0.5; exit 3")

    def finishing() -> bool:
        node.tick()
        job.refresh_from_db()
        return bool(job.leader_exit)

    until(finishing, 20, "the leader's exit to be on record", 0.05)
    assert (job.state, job.leader_exit["code"], job.leader_exit["left_count"]) == (State.RUNNING, 3, 1)
    assert leased(job) == 1
    node.end(job)

    assert (job.outcome, job.exit_code, leased()) == ("failed", 3, 0)
    assert len(job.leftovers) == 1
    assert not alive(job.leftovers[0]["pid"])


def test_a_child_that_left_the_group_is_listed_and_swept(node: Here) -> None:
    job = node.end(node.submit("(setsid sleep 301 >/dev/null 2>&1 &); sleep 0.3; exit 0"))

    assert job.outcome == "completed"
    assert [left["comm"] if "comm" in left else left["name"] for left in job.leftovers] == ["sleep"]
    assert not alive(job.leftovers[0]["pid"])


def test_cancel_reaches_a_child_in_a_session_of_its_own(node: Here) -> None:
    job = node.run("setsid sleep 302 & wait")
    until(lambda: _tick_and_members(node, job) >= 2, 20, "both processes to be seen", 0.05)
    pids = [member["pid"] for member in job.members if member["pid"] != job.runner["pid"]]

    jobs.cancel(node.user, job.pk)
    node.end(job)

    assert job.outcome == "cancelled"
    assert [psutil.Process(pid).cmdline() for pid in pids if alive(pid)] == []


def _tick_and_members(node: Here, job: Job) -> int:
    node.tick()
    job.refresh_from_db()
    return len(job.members)


def test_cancel_before_the_start_is_told_leaves_nothing_to_run(node: Here, tmp_path: Path) -> None:
    node.deliver, notes = False, tmp_path / "notes"
    job = node.submit(f"echo ran >> {notes}")
    node.tick()
    assert jobs.cancel(node.user, job.pk).endswith("is being stopped.")

    assert "is being cancelled" in started(job.pk)
    node.end(job)
    assert "is not to be started" in started(job.pk)

    assert (job.outcome, job.started_at, leased()) == ("cancelled", None, 0)
    assert not notes.exists()


def test_cancel_between_the_check_and_the_launch_leaves_nothing_to_run(
    node: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, launch, node.deliver = tmp_path / "notes", starting.launch, False
    job = node.submit(f"echo ran >> {notes}; sleep 600")
    node.tick()

    def late(run_dir: Path) -> Any:
        jobs.cancel(node.user, job.pk)
        dispatching.pass_on_stops("testnode")
        return launch(run_dir)

    monkeypatch.setattr(starting, "launch", late)
    started(job.pk)
    node.end(job)

    assert (job.outcome, leased()) == ("cancelled", 0)
    assert not notes.exists()
    node.tick()
    job.refresh_from_db()
    assert job.state == State.FINISHED  # never back


def test_a_second_cancel_and_one_that_comes_too_late_change_nothing(node: Here) -> None:
    job, ended = node.run("sleep 600"), node.run("sleep 0.3; exit 0")
    until((control(ended) / "exit.json").exists, 20, "its exit record")

    assert jobs.cancel(node.user, ended.pk) == f"#{ended.pk} is being stopped."  # nobody has seen the end yet
    assert jobs.cancel(node.user, job.pk) == f"#{job.pk} is being stopped."
    assert jobs.cancel(node.user, job.pk) == f"#{job.pk} is already being stopped."
    node.end(ended)
    node.end(job)

    assert (ended.outcome, ended.exit_code) == ("completed", 0)
    assert job.outcome == "cancelled"
    assert jobs.cancel(node.user, ended.pk) == f"#{ended.pk} had already ended: completed."
    ended.refresh_from_db()
    assert ended.outcome == "completed"


def test_a_command_that_ignores_term_is_killed_after_the_grace(node: Here) -> None:
    job = node.run("trap '' TERM; while ((SECONDS < 90)); do sleep 0.2; done")
    jobs.cancel(node.user, job.pk)

    node.end(job)

    assert (job.outcome, job.evidence["exit"]["killed"]) == ("cancelled", True)


def test_the_lease_lasts_while_a_member_lives_and_what_comes_back_is_left_to_a_later_look(
    node: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = node.run("trap '' TERM; (setsid sleep 303 &); while ((SECONDS < 90)); do sleep 0.2; done")
    until(lambda: _tick_and_members(node, job) >= 2, 20, "both processes to be seen", 0.05)
    pids = [member["pid"] for member in job.members if member["pid"] != job.runner["pid"]]
    drains, looks = loop.agent().drains, list[bool]()
    begun: list[tuple[set[str], float]] = []
    monkeypatch.setattr(drains, "begin", lambda pools, until: begun.append((set(pools), until)))
    jobs.cancel(node.user, job.pk)

    def over() -> bool:
        node.tick()
        still = any(alive(pid) for pid in pids)
        assert leased(job) == 1 or not still, "its memory was given away before it was gone"
        looks.append(still)
        job.refresh_from_db()
        return job.state == State.FINISHED

    until(over, 20, "its end", 0.05)
    assert any(looks), "nobody was seen alive after the cancel"
    assert leased(job) == 0
    ((pools, ends),) = begun
    assert pools == {"ram"}
    assert 4.9 < ends - loop.agent().began < 6


def test_a_start_from_a_thread_with_blocked_signals_is_still_ended_by_term(node: Here) -> None:
    node.deliver = False
    job = node.submit("sleep 600")
    node.tick()
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def start() -> str:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
        return started(job.pk)

    try:
        together(start)
    finally:
        signal.signal(signal.SIGINT, before)
    node.reach(job, State.RUNNING)
    jobs.cancel(node.user, job.pk)
    node.end(job)

    assert (job.outcome, job.evidence["exit"]["killed"]) == ("cancelled", False)


def test_a_kill_from_outside_is_no_cancel(node: Here) -> None:
    job = node.end(node.submit("kill -9 $$"))
    assert (job.outcome, job.exit_signal) == ("failed", 9)
    assert "nobody here sent it" in job.sentence
