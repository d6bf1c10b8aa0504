from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.template.loader import render_to_string
from django.utils import timezone

from calibration.models import Sediment, params_digest
from placement.models import Job, JobProgress
from placement.selectors import progress as shown
from placement.services import progress
from tests.integration.rows import a_finished, a_running, a_user
from tests.integration.work import counted

BAR = "\r {0:2d}%|████      | {0}0/1000 [01:23<01:41,  5.40it/s]"
pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> progress.Reader:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    return progress.Reader()


@pytest.fixture
def ada():
    return a_user("ada")


def fresh(job: Job) -> Job:
    return Job.objects.select_related("progress").get(pk=job.pk)


def test_a_bar_on_stderr_is_the_jobs_progress(reader, ada, tmp_path: Path) -> None:
    job = a_running(ada, run_dir=str(tmp_path))
    assert shown.of(fresh(job)) is None
    (tmp_path / "stderr.log").write_text(BAR.format(45))
    reader.look([job])
    now = shown.of(fresh(job))
    assert (now.percent, now.source, now.words) == (45, "log", "45 % · read from its log")
    assert 0 <= (now.ends_about - timezone.now()).total_seconds() + 60 <= 165
    assert shown.as_json(fresh(job))["share"] == 0.45


def test_nothing_is_written_for_a_small_move_and_nothing_read_when_nothing_came(reader, ada, tmp_path: Path) -> None:
    log = tmp_path / "stderr.log"
    job = a_running(ada, run_dir=str(tmp_path))
    log.write_text(BAR.format(45))
    assert reader.look([job]) == 1
    with counted() as work:
        log.write_text(" 45%|████      | 451/1000 [01:24<01:40,  5.40it/s]")
        assert reader.look([job]) == 0
        assert reader.look([job]) == 0
    assert work.queries == 0
    log.write_text(BAR.format(46))
    assert reader.look([job]) == 1


def test_a_line_meant_for_us_outranks_what_other_streams_say(reader, ada, tmp_path: Path) -> None:
    (tmp_path / "stdout.log").write_text("TIDEGATE progress=0.3\n")
    (tmp_path / "stderr.log").write_text(BAR.format(80))
    job = a_running(ada, run_dir=str(tmp_path))
    reader.look([job])
    assert shown.of(fresh(job)).percent == 30


def test_without_a_word_its_usual_length_tells(reader, ada, tmp_path: Path) -> None:
    for number, seconds in enumerate((600, 1200, 90_000)):
        Sediment.objects.create(
            owner=f"job:9{number}", workload="train", params="", params_digest=params_digest(""), user="ada", workers=1,
            completed=True, outcome="completed", duration=seconds, peaks={}, at=timezone.now(),
        )  # fmt: skip
    job = a_running(ada, run_dir=str(tmp_path), started_at=timezone.now() - timedelta(seconds=300))
    reader.look([job])
    now = shown.of(fresh(job))
    assert (now.percent, now.source) == (25, "usual")
    assert shown.as_json(fresh(job))["read_at"] is None
    Job.objects.filter(pk=job.pk).update(started_at=timezone.now() - timedelta(days=2))
    late = shown.of(fresh(job))
    assert (late.percent, late.ends_about) == (99, None)


def test_files_that_are_none_are_left_alone(reader, ada, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text(BAR.format(45))
    jobs = []
    for kind in ("fifo", "link", "directory", "binary", "gone"):
        run = tmp_path / kind
        run.mkdir()
        jobs.append(a_running(ada, run_dir=str(run)))
        (run / "stdout.log").write_bytes(b"")
    os.mkfifo(tmp_path / "fifo" / "stderr.log")
    (tmp_path / "link" / "stderr.log").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "directory" / "stderr.log").mkdir()
    (tmp_path / "binary" / "stderr.log").write_bytes(bytes(range(256)) * 50)
    (tmp_path / "gone" / "stdout.log").unlink()
    assert reader.look(jobs) == len(jobs)
    assert [shown.of(fresh(job)) for job in jobs] == [None] * len(jobs)


def test_ends_and_restarts_leave_no_rows_behind(reader, ada, tmp_path: Path) -> None:
    first, second = a_running(ada, run_dir=str(tmp_path)), a_running(ada, run_dir=str(tmp_path))
    JobProgress.objects.create(job=a_finished(ada), share=0.4)
    JobProgress.objects.create(job=second, share=0.4)
    reader.look([first, second])
    assert set(JobProgress.objects.values_list("job", flat=True)) == {first.pk, second.pk}
    reader.look([second])
    assert set(JobProgress.objects.values_list("job", flat=True)) == {second.pk}


def test_the_bar_says_what_it_is_without_colour() -> None:
    html = render_to_string(
        "placement/_progress.html", {"progress": shown.Progress(17, "usual", timezone.now()), "id": 7}
    )
    assert 'role="progressbar"' in html
    assert 'aria-valuetext="17 % · by its usual length"' in html
    assert 'aria-valuenow="17"' in html
    assert "url(#hatch)" in html
    assert "ends about" in html
    assert render_to_string("placement/_progress.html", {"progress": None}).strip() == ""
