"""Starts with real runners: messages that come twice, late or never, and starts that fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from calibration import clock
from placement import tasks
from placement.domain.jobs import State
from placement.models import Job, Lease, Node
from placement.runner.identity import Identity, read_boot_id
from placement.runner.launch import LaunchResult, launch
from placement.runner.record import claim
from placement.services import dispatching, jobs, starting
from tests.integration.databases import together
from tests.integration.loop_here import GIB, MIB, Here, control, here, leased, started
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    with here(settings, tmp_path) as made:
        yield made


def test_a_start_that_is_told_three_times_runs_once(node: Here, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    job = node.run(f"echo $$ >> {notes}; sleep 600")

    said = together(*[lambda: started(job.pk)] * 2)
    jobs.cancel(node.user, job.pk)
    node.end(job)
    said.append(started(job.pk))

    assert all("is not to be started" in sentence for sentence in said)
    assert len(notes.read_text().splitlines()) == 1
    assert Lease.objects.filter(job=job).count() == 1


def test_no_start_waits_for_what_a_driver_says_of_another(node: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    node.deliver = False
    both = [node.submit("exit 0", declared_ram=32 * MIB) for _ in range(2)]
    node.tick()
    order: list[str] = []

    def launching(run_dir: Path) -> LaunchResult:
        order.append("launch")
        return launch(run_dir)

    def asking(job: Job) -> None:
        order.append("driver")
        raise TimeoutError("the driver hangs")

    monkeypatch.setattr(starting.containing, "launched", asking)
    said, missing = starting.start_all([(job.pk, 1) for job in both], launching)
    assert order == ["launch", "launch", "driver", "driver"]
    assert ([pk for pk, _ in said], missing) == ([job.pk for job in both], [])
    for job in both:
        node.end(job)
        assert job.outcome == "completed"


def test_starts_that_race_before_the_row_says_running_run_once(node: Here, tmp_path: Path) -> None:
    node.deliver = False
    notes = tmp_path / "notes"
    job = node.submit(f"echo $$ >> {notes}; exit 0")
    node.tick()

    said = together(*[lambda: started(job.pk)] * 4)

    node.end(job)
    assert (job.outcome, len(notes.read_text().splitlines())) == ("completed", 1)
    assert sum("another runner has this attempt" in sentence for sentence in said) == 3


def test_a_message_that_comes_before_its_row_is_asked_for_again(node: Here) -> None:
    job_id = 41
    assert starting.start_all([(job_id, 1)]) == ([], [(job_id, 1)])
    assert tasks.start.max_retries > 0
    with pytest.raises(Exception) as caught:  # eager: asked for again at once, until there are no tries left
        tasks.start.apply(args=(job_id, 1), throw=True)
    assert "There is no job #41 yet" in str(caught.value)


def test_starts_of_one_node_come_in_one_message(node: Here) -> None:
    wanted = [node.submit("sleep 600", declared_ram=MIB) for _ in range(dispatching.AT_ONCE + 1)]
    node.tick()
    assert node.messages == 2, "the last one is for whoever is free first"
    assert [job for _, job, _ in node.sent] == [job.pk for job in wanted]
    assert set(Job.objects.values_list("dispatched_clock", flat=True)) != {None}
    for job in wanted:
        node.reach(job, State.RUNNING)
    assert len(node.sent) == len(wanted)


def test_a_message_names_several_attempts_and_an_old_one_names_one(node: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    node.deliver = False
    first, second, third = (node.submit("sleep 600", declared_ram=MIB) for _ in range(3))
    node.tick()
    real = starting.make_run_dir

    def broken(job: Job) -> Path:
        if job.pk == first.pk:
            raise RuntimeError("a fault of ours")
        return real(job)

    monkeypatch.setattr(starting, "make_run_dir", broken)
    monkeypatch.setattr(tasks, "_nursery", lambda: SimpleNamespace(launch=launch))
    tasks.start.apply(args=([[first.pk, 1], [second.pk, 1]],), throw=True)
    tasks.start.apply(args=(third.pk, 1), throw=True)  # as it was sent before an update
    for job in (second, third):
        node.reach(job, State.RUNNING)
    assert not (control(first) / "claim").exists()


def test_of_a_message_only_what_has_no_row_yet_is_asked_for_again(node: Here) -> None:
    node.deliver = False
    job = node.submit("sleep 600", declared_ram=MIB)
    node.tick()
    said, missing = starting.start_all([(job.pk + 1, 1), (job.pk, 1)])
    assert (missing, [number for number, _ in said]) == ([(job.pk + 1, 1)], [job.pk])


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


def test_a_claimer_that_died_before_the_command_ran_gives_a_new_attempt(node: Here) -> None:
    node.deliver = False
    job = node.submit("exit 0")
    node.tick()
    job.refresh_from_db()
    starting.make_run_dir(job)
    dead = Identity(read_boot_id(), _pid_of_the_dead(), 1)
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


@pytest.mark.parametrize("count", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_many_starts_that_fail_leave_no_lease_and_the_whole_card_is_free(
    node: Here, settings: Any, tmp_path: Path, count: int
) -> None:
    settings.KNOB_OVERRIDES = {**settings.KNOB_OVERRIDES, "fast_failures": 0}
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
    made = Job.objects.bulk_create([Job(**{**common, **kinds[n % 5]}) for n in range(count)])
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
    settings.KNOB_OVERRIDES = {**settings.KNOB_OVERRIDES, "disk_low_mib": 1 << 30}
    waits = node.submit("exit 0")
    node.tick()
    waits.refresh_from_db()
    assert (waits.state, waits.code) == (State.QUEUED, "disk_low")

    door.touch()
    assert node.end(job).outcome == "completed"
