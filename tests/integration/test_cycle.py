"""The loop with real runners in this process: starts, ends, cancels, deaths, and messages that come twice or late."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.utils import timezone

from calibration import clock
from placement import loop, tasks
from placement.domain.errors import Refused
from placement.domain.jobs import State
from placement.models import Job, Lease, Node
from placement.runner.identity import Identity, identify, read_boot_id
from placement.runner.record import read_exit
from placement.services import dispatching, jobs, starting
from tests.integration.databases import together
from tests.integration.loop_here import GIB, MIB, Here, alive, control, here, leased
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    with here(settings, tmp_path) as made:
        yield made


def test_a_start_that_is_told_three_times_runs_once(node: Here, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    job = node.run(f"echo $$ >> {notes}; sleep 600")

    said = together(*[lambda: starting.start(job.pk, 1)] * 2)
    jobs.cancel(node.user, job.pk)
    node.end(job)
    said.append(starting.start(job.pk, 1))

    assert all("is not to be started" in sentence for sentence in said)
    assert len(notes.read_text().splitlines()) == 1
    assert Lease.objects.filter(job=job).count() == 1


def test_starts_that_race_before_the_row_says_running_run_once(node: Here, tmp_path: Path) -> None:
    node.deliver = False
    notes = tmp_path / "notes"
    job = node.submit(f"echo $$ >> {notes}; exit 0")
    node.tick()

    said = together(*[lambda: starting.start(job.pk, 1)] * 4)

    node.end(job)
    assert (job.outcome, len(notes.read_text().splitlines())) == ("completed", 1)
    assert sum("another runner has this attempt" in sentence for sentence in said) == 3


def test_a_message_that_comes_before_its_row_is_asked_for_again(node: Here) -> None:
    job_id = 41
    with pytest.raises(LookupError):
        starting.start(job_id, 1)
    assert tasks.start.max_retries > 0
    with pytest.raises(Exception) as caught:  # eager: asked for again at once, until there are no tries left
        tasks.start.apply(args=(job_id, 1), throw=True)
    assert "There is no job #41 yet" in str(caught.value)


def test_a_lost_message_is_sent_again_and_the_flag_tells_of_a_worker_that_takes_none(
    node: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.deliver, at = False, clock.now()
    job = node.submit("exit 0")
    node.tick()
    assert len(node.sent) == 1
    later = node.submit("exit 0")
    for second in range(1, 20):
        monkeypatch.setattr(clock, "now", lambda second=second: at + second)
        node.tick()
    assert len([sent for sent in node.sent if sent[1] == job.pk]) > 5  # again and again

    waits = node.submit("exit 0")
    node.tick()
    waits.refresh_from_db()
    assert waits.code == "node_no_work"
    assert "has taken no message for 1" in waits.headline  # since the first one that was not taken, not the last

    node.deliver = True
    monkeypatch.setattr(clock, "now", lambda: at + 21)
    for one in (job, later, waits):
        node.end(one)
        assert one.outcome == "completed"


def test_a_lost_message_of_a_cancelled_job_does_not_close_the_node(node: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    node.deliver, at = False, clock.now()
    job = node.submit("exit 0")
    node.tick()
    jobs.cancel(node.user, job.pk)
    node.tick()
    node.end(job)
    node.deliver = True

    monkeypatch.setattr(clock, "now", lambda: at + 400)
    assert node.end(node.submit("exit 0")).outcome == "completed"


@pytest.mark.parametrize("taken", [None, 0.0])
def test_a_worker_that_took_no_message_for_long_takes_no_new_jobs(node: Here, taken: float | None) -> None:
    """Its last message lies for 400 s although the node was heard of a moment ago."""
    node.deliver = False
    stuck = node.submit("exit 0")
    node.tick()
    Node.objects.update(start_sent_clock=clock.now() - 400, start_taken_clock=taken)
    job = node.submit("exit 0")

    node.tick()

    job.refresh_from_db()
    assert (job.state, job.code) == (State.QUEUED, "node_no_work")
    stuck.refresh_from_db()
    assert stuck.state == State.ADMITTED


def test_a_new_worker_adopts_what_runs(node: Here) -> None:
    job = node.run("sleep 600")
    granted = {pool: charge["granted"] for pool, charge in job.charges.items()}
    before = (job.runner, job.child, leased(job), job.started_at)

    node.new_worker()
    node.tick()
    node.tick()

    job.refresh_from_db()
    assert job.state == State.RUNNING
    assert (job.runner, job.child, leased(job), job.started_at) == before
    assert {pool: charge["granted"] for pool, charge in job.charges.items()} == granted
    assert node.sent == [("testnode", job.pk, 1)]


def test_a_job_that_ended_while_no_worker_was_there_has_its_true_code(node: Here, tmp_path: Path) -> None:
    door = tmp_path / "door"
    job = node.run(f"until [ -e {door} ]; do sleep 0.02; done; exit 3")

    door.touch()
    until((control(job) / "exit.json").exists, 10, "its exit record")
    node.new_worker()
    node.tick()

    job.refresh_from_db()
    assert (job.state, job.outcome, job.exit_code) == (State.FINISHED, "failed", 3)
    assert leased() == 0


def test_a_job_whose_runner_died_is_watched_and_ends_lost(node: Here) -> None:
    job = node.run("sleep 600")

    os.kill(job.runner["pid"], signal.SIGKILL)
    until(lambda: not alive(job.runner["pid"]), 5, "the runner's end")
    node.tick()
    job.refresh_from_db()
    assert (job.state, job.unsupervised, leased(job)) == (State.RUNNING, True, 1)
    os.kill(job.child["pid"], signal.SIGKILL)
    node.end(job)

    assert (job.outcome, leased()) == ("lost", 0)
    assert "its runner was killed" in job.sentence


def test_a_claimer_that_died_before_the_command_ran_gives_a_new_attempt(node: Here) -> None:
    node.deliver = False
    job = node.submit("exit 0")
    node.tick()
    job.refresh_from_db()
    starting.make_run_dir(job)
    dead = Identity(read_boot_id(), _pid_of_the_dead(), 1)
    from placement.runner.record import claim

    assert claim(str(control(job).parent), dead)
    node.deliver = True
    node.end(job)

    assert (job.attempt, job.outcome) == (2, "completed")
    assert list(Lease.objects.values_list("attempt", "job_id")) == [(2, job.pk)]


def _pid_of_the_dead() -> int:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def test_the_leader_has_exited_its_child_has_not(node: Here, settings: Any) -> None:
    settings.KNOB_OVERRIDES = {**settings.KNOB_OVERRIDES, "sweep_seconds": 3.0}
    job = node.run("trap '' TERM; sleep 600 & sleep 0.5; exit 3")

    def finishing() -> bool:
        node.tick()
        job.refresh_from_db()
        return bool(job.leader_exit)

    until(finishing, 10, "the leader's exit to be on record", 0.05)
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
    until(lambda: _tick_and_members(node, job) >= 2, 10, "both processes to be seen", 0.05)
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

    assert "is being cancelled" in starting.start(job.pk, 1)
    node.end(job)
    assert "is not to be started" in starting.start(job.pk, 1)

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
    starting.start(job.pk, 1)
    node.end(job)

    assert (job.outcome, leased()) == ("cancelled", 0)
    assert not notes.exists()
    node.tick()
    job.refresh_from_db()
    assert job.state == State.FINISHED  # never back


def test_a_second_cancel_and_one_that_comes_too_late_change_nothing(node: Here) -> None:
    job, ended = node.run("sleep 600"), node.run("sleep 0.3; exit 0")
    until((control(ended) / "exit.json").exists, 10, "its exit record")

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
    job = node.run("trap '' TERM; while :; do sleep 0.2; done")
    jobs.cancel(node.user, job.pk)

    node.end(job)

    assert (job.outcome, job.evidence["exit"]["killed"]) == ("cancelled", True)


def test_a_start_from_a_thread_with_blocked_signals_is_still_ended_by_term(node: Here) -> None:
    node.deliver = False
    job = node.submit("sleep 600")
    node.tick()
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def start() -> str:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
        return starting.start(job.pk, 1)

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


def test_a_hundred_starts_that_fail_leave_no_lease_and_the_whole_card_is_free(node: Here, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    plain.chmod(0o644)
    gone = tmp_path / "gone"
    gone.mkdir()
    kinds: list[dict[str, Any]] = [
        {"argv": ["/bin/echo", "x" * 131072]},
        {"argv": ["/bin/echo", "a\0b"]},
        {"argv": ["/bin/true"], "cwd": str(gone)},
        {"argv": [str(plain)]},
        {"argv": ["/bin/true"]},  # its log cannot be made
    ]
    gone.rmdir()
    common = {
        "user": node.user, "name": "fails", "cwd": "/tmp", "key_workload": "fails", "gpu": "one",
        "declared_ram": MIB, "declared_vram": GIB,
    }  # fmt: skip
    made = Job.objects.bulk_create([Job(**{**common, **kinds[n % 5]}) for n in range(100)])
    for job in made[4::5]:
        starting.make_run_dir(job)
        (control(job).parent / "stdout.log").symlink_to("/nowhere/at/all")

    def all_ended() -> bool:
        node.tick()
        return not Job.objects.exclude(state=State.FINISHED).exists()

    until(all_ended, 60, "every start to fail", 0.05)
    ended = list(Job.objects.order_by("pk"))
    assert {job.outcome for job in ended} == {"start_failed"}
    assert {len(job.sentence) > 20 for job in ended} == {True}
    assert len({job.sentence for job in ended[:5]}) == 5  # each says what it was
    assert leased() == 0

    healthy = node.submit("exit 0", gpu="one", exclusive="device", declared_vram=23 * GIB)
    node.tick()
    healthy.refresh_from_db()
    assert healthy.state == State.ADMITTED
    assert node.end(healthy).outcome == "completed"


@pytest.mark.parametrize("where", ["make_run_dir", "write_record"])
def test_a_full_disk_at_the_start_is_a_sentence_and_no_lease(
    node: Here, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(starting, where)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(starting, where, full)
    job = node.end(node.submit("exit 0"))
    assert (job.outcome, leased()) == ("start_failed", 0)
    assert "No space left on device" in job.sentence

    monkeypatch.setattr(starting, where, real)
    assert node.end(node.submit("exit 0")).outcome == "completed"


def test_a_node_with_little_disk_starts_nothing_and_what_runs_goes_on(
    node: Here, settings: Any, tmp_path: Path
) -> None:
    door = tmp_path / "door"
    job = node.run(f"until [ -e {door} ]; do sleep 0.02; done; exit 0")
    settings.KNOB_OVERRIDES = {**settings.KNOB_OVERRIDES, "disk_low_mib": 1 << 40}
    waits = node.submit("exit 0")
    node.tick()
    waits.refresh_from_db()
    assert (waits.state, waits.code) == (State.QUEUED, "disk_low")

    door.touch()
    assert node.end(job).outcome == "completed"


@pytest.mark.parametrize("step", [7200, -3600])
def test_a_step_of_the_wall_clock_loses_nothing_and_delays_nothing(
    node: Here, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, real_time, real_now = node.run("sleep 600"), time.time, timezone.now
    held = node.submit("exit 0")
    jobs.hold(node.user, held.pk)
    before = leased()

    monkeypatch.setattr(time, "time", lambda: real_time() + step)
    monkeypatch.setattr(timezone, "now", lambda: real_now() + timedelta(seconds=step))
    for _ in range(3):
        node.tick()
    job.refresh_from_db()
    held.refresh_from_db()
    assert (job.state, leased(), held.code) == (State.RUNNING, before, "job_held")

    new = node.submit("exit 0")
    node.tick()
    new.refresh_from_db()
    assert new.state == State.ADMITTED
    assert node.end(new).outcome == "completed"
    jobs.release(node.user, held.pk)
    assert node.end(held).outcome == "completed"


def test_after_a_long_sleep_the_node_looks_first_and_then_decides(node: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    job, waits, real = node.run("sleep 600"), node.submit("exit 0"), time.clock_gettime
    boottime = time.CLOCK_BOOTTIME

    monkeypatch.setattr(time, "clock_gettime", lambda which: real(which) + (28800 if which == boottime else 0))
    node.tick()

    job.refresh_from_db()
    waits.refresh_from_db()
    assert (job.state, job.unsupervised) == (State.RUNNING, False)
    assert waits.state == State.ADMITTED


def test_two_ticks_at_once_take_one_turn(node: Here) -> None:
    turns = together(*[lambda: loop.tick(node.send) for _ in range(6)])
    assert sum(turns) == 1  # the others come within half a second and are dropped


def test_a_submission_that_is_refused_leaves_no_row(node: Here) -> None:
    with pytest.raises(Refused):
        node.submit("exit 0", cwd="/proc/nowhere")
    assert not Job.objects.exists()


def test_the_loops_thread_lock_is_free_again_after_a_tick_that_failed(
    node: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Any) -> None:
        raise OSError("the probe fell over")

    with monkeypatch.context() as patch:
        patch.setattr("placement.services.node_tick.look", broken)
        with pytest.raises(OSError, match="fell over"):
            node.tick()
    done = threading.Event()
    together(lambda: (node.tick(), done.set()))
    assert done.is_set()
    assert identify(os.getpid(), read_boot_id()) is not None
    assert read_exit("/nowhere") is None
