"""A job can put anything where its logs, receipts and records lie. That is its own loss, never the loop's."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from placement.domain.jobs import State
from placement.models import Job
from placement.runner.launch import LaunchResult
from placement.services import containing, ending, jobs, lifecycle, starting
from tests.integration.loop_here import Here, alive, control, here, leased, started
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    with here(settings, tmp_path) as made:
        yield made


def a_pipe(run_dir: Path) -> None:
    (run_dir / "stdout.log").unlink()
    os.mkfifo(run_dir / "stdout.log")


def a_folder(run_dir: Path) -> None:
    (run_dir / "stderr.log").unlink()
    (run_dir / "stderr.log").mkdir()


def a_link(run_dir: Path) -> None:
    (run_dir / "stdout.log").unlink()
    (run_dir / "stdout.log").symlink_to("/etc/passwd")


def receipt(text: str) -> Callable[[Path], None]:
    def put(run_dir: Path) -> None:
        (run_dir / "receipts" / "1.vram-cap.json").write_text(text)

    return put


def a_receipt_folder(run_dir: Path) -> None:
    (run_dir / "receipts" / "1.vram-cap.json").mkdir()


def held_open() -> int:
    """Return how many files this process has open, without those of /proc, of which the probe keeps more or fewer."""
    found = 0
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the one that listed them
            found += not os.readlink(f"/proc/self/fd/{number}").startswith("/proc/")
    return found


@pytest.mark.parametrize(
    "put",
    [
        a_pipe,
        a_folder,
        a_link,
        a_receipt_folder,
        pytest.param(receipt("[" * 4096), id="a deep receipt"),
        pytest.param(receipt(json.dumps({"cap": 10**40, "asked": -1, "held": True})), id="a receipt without measure"),
        pytest.param(receipt('{"cap": NaN, "x": "\\ud800\\u0000"}'), id="a receipt no database takes"),
    ],
)
def test_what_stands_in_place_of_a_log_or_receipt_keeps_nobody_from_ending(
    node: Here, put: Callable[[Path], None]
) -> None:
    job = node.run("read -t 30 x < <(sleep 30); exit 7")
    put(lifecycle.run_dir_of(job))
    open_before = held_open()
    os.killpg(job.child["pid"], 9)
    ended = node.end(job)
    assert (ended.outcome, leased(job)) in (("failed", 0), ("out_of_memory", 0)), "no figures, no proof of a cap"
    node.tick()
    assert held_open() <= open_before


def test_an_exit_record_with_figures_that_no_calendar_or_database_has_ends_its_job(node: Here) -> None:
    job = node.run("sleep 30")
    huge = {"code": 10**40, "signal": 9, "started_at": 1e30, "ended_at": float("nan"), "duration_s": 10**400}
    forged = {**huge, "max_rss_bytes": 1 << 80, "start_error": "\ud800\0", "leftovers": [{"pid": 1 << 99}]}
    (control(job) / "exit.json").write_text(json.dumps(forged))
    os.kill(job.runner["pid"], signal.SIGKILL)
    os.killpg(job.child["pid"], signal.SIGKILL)
    ended = node.end(job)
    assert (ended.exit_code, ended.duration_s, leased(job)) == (None, None, 0)


def test_an_end_that_a_job_writes_for_itself_ends_it_no_sooner(node: Here) -> None:
    job = node.run("sleep 30")
    success = json.dumps({"version": 1, "code": 0})
    (control(job) / "exit.json").write_text(success)
    node.tick()
    job.refresh_from_db()
    assert (job.state, leased(job)) == ("running", 1), "its runner lives"
    os.kill(job.runner["pid"], signal.SIGKILL)
    until(lambda: not alive(job.runner["pid"]), 10, "the end of its runner")
    node.tick()
    job.refresh_from_db()
    assert (job.state, leased(job), job.unsupervised) == ("running", 1, True), "its command lives"
    os.killpg(job.child["pid"], 9)
    assert node.end(job).outcome == "lost", "nobody saw its end, whatever it wrote"


def test_one_job_that_cannot_be_looked_after_holds_up_no_other(
    node: Here, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = node.run("sleep 30"), node.run("sleep 30")
    real = ending.evidence.log_tail

    def broken(run_dir: Path) -> str:
        if run_dir == lifecycle.run_dir_of(bad):
            raise ZeroDivisionError("what nobody thought of")
        return real(run_dir)

    monkeypatch.setattr(ending.evidence, "log_tail", broken)
    for job in (bad, good):
        os.killpg(job.child["pid"], 9)
        until(lambda job=job: (control(job) / "exit.json").exists(), 20, "its exit record")
    node.end(good)
    assert Job.objects.get(pk=bad.pk).state == "running"
    assert f"#{bad.pk} cannot be looked after" in caplog.text
    monkeypatch.setattr(ending.evidence, "log_tail", real)
    node.end(bad)


def test_one_job_that_cannot_be_looked_at_holds_up_no_other(
    node: Here, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = node.run("sleep 30"), node.run("sleep 30")
    real = containing.read_held

    def broken(run_dir: Path) -> Any:
        if run_dir == lifecycle.run_dir_of(bad):
            raise ZeroDivisionError("what nobody thought of")
        return real(run_dir)

    monkeypatch.setattr(containing.Groups, "of", lambda groups, job: broken(lifecycle.run_dir_of(job)))
    monkeypatch.setattr(containing.Groups, "claim", lambda groups, job: {})
    os.killpg(good.child["pid"], 9)
    assert node.end(good).outcome == "failed"
    assert f"#{bad.pk} cannot be looked at" in caplog.text


def test_figures_that_no_float_holds_stop_neither_the_loop_nor_the_end(node: Here) -> None:
    job = node.run("sleep 30")
    many = "9" * 400
    fields = f'"kind": "v1", "path": "", "memory": "", "limit": {many}, "used": {many}, "grace_s": {many}, "at": {many}'
    for name in ("cgroup.json", "vram-limit.json", "stop.json", "container-limit.json", "closing.json"):
        (control(job) / name).write_text(f"{{{fields}}}")
    node.new_worker()
    node.tick()
    jobs.cancel(node.user, job.pk)
    assert (node.end(job).outcome, leased(job)) == ("cancelled", 0)


def test_a_job_whose_run_directory_was_removed_goes_on_and_is_told_lost_at_its_end(node: Here) -> None:
    job = node.run("sleep 30")
    shutil.rmtree(lifecycle.run_dir_of(job))
    node.tick()
    job.refresh_from_db()
    assert (job.state, leased(job)) == ("running", 1)
    os.killpg(job.child["pid"], 9)
    ended = node.end(job)
    assert (ended.outcome, leased(job)) == ("lost", 0)
    assert "were removed while it ran" in ended.sentence


def test_a_job_whose_run_directory_was_removed_can_be_cancelled(node: Here) -> None:
    job = node.run("sleep 30")
    shutil.rmtree(lifecycle.run_dir_of(job))
    jobs.cancel(node.user, job.pk)
    assert (node.end(job).outcome, leased(job)) == ("cancelled", 0)
    assert not alive(job.child["pid"])


@pytest.mark.parametrize("what", ["the directory", "its records"])
def test_a_job_that_put_a_link_in_place_of_its_run_directory_runs_on_and_can_be_cancelled(
    node: Here, tmp_path: Path, what: str
) -> None:
    job = node.run("sleep 30")
    mine, others = lifecycle.run_dir_of(job), tmp_path / "file"
    if what == "its records":
        mine, others = mine / "control", tmp_path / "other"
        others.mkdir()
        (others / "exit.json").write_text(json.dumps({"version": 1, "code": 0}))
    else:
        others.write_text("no directory")
    mine.rename(tmp_path / "aside")
    mine.symlink_to(others)
    node.tick()
    job.refresh_from_db()
    assert (job.state, leased(job)) == ("running", 1)
    jobs.cancel(node.user, job.pk)
    assert (node.end(job).outcome, leased(job)) == ("cancelled", 0)
    assert not alive(job.child["pid"])


def test_a_runner_that_somebody_stopped_goes_on_and_hears_the_cancel(node: Here) -> None:
    job = node.run("sleep 30")
    os.kill(job.runner["pid"], signal.SIGSTOP)
    until(lambda: psutil.Process(job.runner["pid"]).status() == psutil.STATUS_STOPPED, 20, "the runner to stand still")
    jobs.cancel(node.user, job.pk)
    assert (node.end(job).outcome, leased(job)) == ("cancelled", 0)


def test_an_attempt_whose_directory_was_removed_right_after_its_launch_does_not_run_again(
    node: Here, tmp_path: Path
) -> None:
    node.deliver = False
    notes, door = tmp_path / "notes", tmp_path / "door"
    line = f'echo $$ >> {notes}; rm -rf "$(dirname "$TIDEGATE_RECEIPTS")"; until test -e {door}; do sleep 0.1; done'
    job = node.submit(line)
    node.tick()
    started(job.pk)
    until(lambda: not lifecycle.run_dir_of(job).exists(), 20, "the run directory to go")

    assert "is started already" in started(job.pk)
    node.reach(job, State.RUNNING)
    assert leased(job) == 1, "it holds what it was granted while it lives"
    door.touch()
    ended = node.end(job)

    assert (ended.outcome, leased(job)) == ("lost", 0)
    assert "were removed while it ran" in ended.sentence
    assert len(notes.read_text().splitlines()) == 1


def test_an_attempt_of_which_no_launch_told_and_whose_directory_is_gone_does_not_run_again(
    node: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.deliver = False
    job = node.submit("sleep 1")
    node.tick()
    monkeypatch.setattr(starting, "launch", lambda run_dir: LaunchResult(ok=False, message="not within 10 s"))
    started(job.pk)
    shutil.rmtree(lifecycle.run_dir_of(job))

    said = started(job.pk)

    job.refresh_from_db()
    assert (job.state, job.outcome, leased(job)) == ("finished", "lost", 0)
    assert "was removed right after the start" in said
    assert job.sentence == said
