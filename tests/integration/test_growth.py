"""No page, submission or tick has more to do because more has happened: counted, not timed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models import F
from django.test import Client

from bench import history
from calibration import pruning, rows
from calibration import services as instrument
from placement import admin
from placement.domain.submitting.submission import Submission
from placement.models import Cycle, Device, Job
from placement.selectors import lists
from placement.services import drafting, retention
from tests.integration.databases import on
from tests.integration.loop_here import Here, here
from tests.integration.rows import a_decision, an_estimate
from tests.integration.work import Work, counted

pytestmark = pytest.mark.django_db(transaction=True)
GIB = 1 << 30
FIRST = 3000
SHORT = history.Past(jobs=1020, runs=1020, days=0.1, keys=4, node="testnode", pools=("ram",), audit=60)
LONG = replace(SHORT, jobs=4000, runs=4000, days=30, audit=600)
MOST = 700  # rows that one statement reads at most: ten minutes of readings


def asked(number: int) -> Submission:
    return Submission(name="train", command=f"python3 /tmp/train.py {FIRST + number}", cwd="/tmp", gpu="one",
                      declared_ram=32 << 20, declared_vram=20 * GIB)  # fmt: skip


@contextmanager
def after(past: history.Past, settings: Any, folder: Path) -> Iterator[dict[str, Callable[[], Any]]]:
    """Yield what people and the loop do at a node with such a past, with one job that runs and three that wait."""
    folder.mkdir()
    # Numbers begin at 1 whatever ran before: behind a gap there would be little to look through after a short past.
    call_command("flush", interactive=False, verbosity=0)
    with here(settings, folder) as node:
        draft = drafting.draft(node.user, asked(0))
        device = Device.objects.get()
        history.write(replace(past, pools=("ram", device.uuid)), draft, str(FIRST), [node.user.pk],
                      a_decision(), an_estimate())  # fmt: skip
        node.run("sleep 600", gpu="one", declared_vram=20 * GIB)
        for number in range(3):
            node.submit(asked(number).command, gpu="one", declared_vram=20 * GIB)
        node.tick()
        yield _calls(node, past.jobs // 2)
    call_command("flush", interactive=False, verbosity=0)


def _calls(node: Here, middle: int) -> dict[str, Callable[[], Any]]:
    node.user.is_staff = node.user.is_superuser = True  # Django's admin lists the same tables
    node.user.save()
    client = Client()
    client.force_login(node.user)
    body = {"command": asked(0).command, "cwd": "/tmp", "gpu": "one", "declared_vram": 20 * GIB}
    paths = [
        "/", "/jobs/", f"/jobs/?before={middle}", f"/jobs/?after={middle}", "/jobs/?outcome=failed",
        "/jobs/?whose=mine&outcome=failed", "/jobs/?whose=mine", "/jobs/?outcome=queued", "/jobs/?q=no-such-name",
        f"/jobs/{middle}", "/audit", "/devices", "/submit", "/api/v1/queue", f"/api/v1/jobs/{middle}",
        "/devices/testnode/ram/series?span=10m", "/devices/testnode/ram", "/attribution", "/admin/placement/job/",
    ]  # fmt: skip

    def page(path: str) -> Callable[[], Any]:
        def ask() -> None:
            Cycle.objects.update(wanted=F("wanted") + 1)  # a commit: no page answers with what it kept
            assert client.get(path).status_code == 200

        return ask

    def submit() -> None:
        answer = client.post("/api/v1/jobs", json.dumps(body), "application/json")
        assert answer.status_code == 201

    def estimate() -> None:
        asked = {**body, "command": "python3 /tmp/train.py 1"}  # arguments that were never run
        assert client.post("/api/v1/estimate", json.dumps(asked), "application/json").status_code == 200

    def tick() -> None:
        rows._kept.clear()
        instrument.raise_version()
        node.tick()

    def prune() -> None:
        while retention.prune(30):
            pass

    return {**{path.replace(str(middle), "N"): page(path) for path in paths},
            "submit": submit, "estimate": estimate, "tick": tick, "prune": prune}  # fmt: skip


@pytest.fixture(autouse=True)
def smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the bounds small, so that a short past reaches them, too."""
    monkeypatch.setattr(rows, "NEWEST", 50)
    monkeypatch.setattr(pruning, "NEWEST", 50)
    monkeypatch.setattr(pruning, "_seen", 0)
    monkeypatch.setattr(lists, "SEARCHED", 300)
    monkeypatch.setattr(admin.Bounded, "MOST", 300)


def works(past: history.Past, settings: Any, folder: Path) -> dict[str, Work]:
    """Return the work of each call; what is done once in a process is done before."""
    found = {}
    with after(past, settings, folder) as calls:
        for name, call in calls.items():
            call()
            # By the clock, not by the past: a reading that comes of age between two calls is one more to let go of, a
            # tick now and then also saves a window or looks for devices.
            times = 3 if name in ("prune", "tick") else 1
            found[name] = min((_work(call) for _ in range(times)), key=lambda work: work.queries)
    return found


def _work(call: Callable[[], Any]) -> Work:
    with counted() as work:
        call()
    return work


def test_on_sqlite_nothing_takes_more_steps_after_a_long_past(settings: Any, tmp_path: Path) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("the default database is not SQLite")
    short, long = works(SHORT, settings, tmp_path / "short"), works(LONG, settings, tmp_path / "long")
    asked = {n: (short[n].queries, long[n].queries) for n in short if long[n].queries > short[n].queries + 3}
    assert not asked, "more is asked where there is more"
    more = {n: (short[n].steps, long[n].steps) for n in short if long[n].steps > 1.05 * short[n].steps + 1000}
    assert not more, "statements read a table whole, see EXPLAIN QUERY PLAN of each"


def test_on_postgresql_no_statement_reads_a_growing_table(
    postgres_url: str, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on(postgres_url, monkeypatch):
        found = works(LONG, settings, tmp_path / "long")
    much = {name: {s: n for s, n in work.rows.items() if n > MOST} for name, work in found.items()}
    assert not {name: statements for name, statements in much.items() if statements}
    assert any(work.rows for work in found.values())


@pytest.mark.parametrize(
    "model, index, call", [(Job, "jobs_by_end", "/"), (Job, "jobs_by_outcome", "/jobs/?outcome=failed")]
)
def test_a_missing_index_is_noticed(model: Any, index: str, call: str, settings: Any, tmp_path: Path) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("the default database is not SQLite")
    there = next(i for i in model._meta.indexes if i.name == index)
    with after(SHORT, settings, tmp_path / "short") as calls:
        calls[call]()
        with counted() as before:
            calls[call]()
        with connection.schema_editor() as editor:
            editor.remove_index(model, there)
        try:
            with counted() as without:
                calls[call]()
        finally:
            with connection.schema_editor() as editor:
                editor.add_index(model, there)
    assert without.steps > 1.05 * before.steps + 1000
