"""What is read once for many: exact to the last commit, never older than a second, and wrong for nobody."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from itertools import count

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from placement.models import Job, Role
from placement.selectors import kept, rows, wire
from placement.selectors.kept import Kept
from placement.selectors.waiting_rows import Lines
from tests.integration import databases
from tests.integration.rows import a_decision, a_job, a_machine, a_user


@pytest.fixture
def file(tmp_path):
    """Return a database file with one table, as another process might use it."""
    path = tmp_path / "what? 100%#.sqlite3"
    with closing(sqlite3.connect(path)) as base:
        base.executescript("PRAGMA journal_mode=WAL; CREATE TABLE x (n)")
    return path


def test_a_commit_of_anybody_changes_the_mark(file) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        before = kept._data_version(str(file))
        assert before == kept._data_version(str(file)) != None  # noqa: E711  # three values in one comparison
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO x VALUES (1)")
        assert kept._data_version(str(file)) == before, "not committed yet"
        writer.execute("COMMIT")
        assert kept._data_version(str(file)) != before


def test_a_database_that_cannot_be_read_has_no_mark(tmp_path) -> None:
    assert kept._data_version(str(tmp_path / "none.sqlite3")) is None


@pytest.mark.django_db
def test_inside_a_transaction_nothing_is_kept() -> None:
    assert kept.standing() is None
    numbers: Kept[int] = Kept()
    n = count()
    assert [numbers.get("all", lambda: next(n)) for _ in range(3)] == [0, 1, 2]


def test_a_value_is_built_anew_after_a_commit_or_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now, mark, n = [100.0], ["a"], count()
    monkeypatch.setattr(kept, "standing", lambda: mark[0])
    monkeypatch.setattr(kept, "monotonic", lambda: now[0])
    numbers: Kept[int] = Kept()

    def get(**how: float) -> int:
        return numbers.get("all", lambda: next(n), **how)

    assert (get(), get()) == (0, 0)
    mark[0] = "b"
    assert get(anyhow=0.4) == 0  # a poll takes what is young enough
    assert (get(), get()) == (1, 1)
    now[0] += 1.0
    assert get() == 2  # ages move without a commit
    now[0] -= 5.0
    assert get() == 3  # a clock that was set back proves nothing


def test_an_error_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "standing", lambda: "a")
    numbers: Kept[int] = Kept()
    with pytest.raises(ZeroDivisionError):
        numbers.get("all", lambda: 1 // 0)
    assert numbers.get("all", lambda: 1) == 1


@pytest.mark.django_db(transaction=True)
def test_the_mark_of_postgres_moves_with_each_commit(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with databases.on(postgres_url, monkeypatch):
        before = kept.standing()
        assert before is not None
        a_user("ada")
        after = kept.standing()
        assert after != before
        assert kept.standing() == after
        with transaction.atomic():
            assert kept.standing() is None


@pytest.mark.django_db
@pytest.mark.parametrize("make", [rows.waiting, wire._queued])
def test_an_unchanged_line_costs_one_query_for_all(make) -> None:
    ada = a_user("ada")
    jobs = [a_job(ada, name=f"run {n}") for n in range(5)]
    lines = Lines(make)
    queue = Job.objects.order_by("id")
    with CaptureQueriesContext(
        connection,
    ) as asked:
        first = lines.of(queue)
    assert len(asked) == 2, "a line read a column that is not watched"
    with CaptureQueriesContext(connection) as asked:
        assert lines.of(queue) == first
    assert len(asked) == 1
    Job.objects.filter(pk=jobs[3].pk).update(headline="Waits for something else.")
    again = lines.of(queue)
    assert [a is b for a, b in zip(first, again, strict=True)] == [True, True, True, False, True]
    assert "Waits for something else." in str(again[3])


@pytest.mark.django_db
def test_a_job_that_was_not_decided_on_is_read_each_time() -> None:
    job = a_job(a_user("ada"), decided_at=None, decision={})
    lines = Lines(rows.waiting)
    assert not lines.of(Job.objects.all())[0].shortfall
    Job.objects.filter(pk=job.pk).update(decision=a_decision())
    assert lines.of(Job.objects.all())[0].shortfall


@pytest.mark.django_db
def test_a_row_that_changes_while_it_is_read_and_changes_back_is_shown_as_it_is() -> None:
    job = a_job(a_user("ada"), priority=1)

    lines = Lines(rows.waiting)
    real = lines._made

    def changed_between(wanted: list[int]):
        Job.objects.filter(pk=job.pk).update(priority=9)
        return real(wanted)

    lines._made = changed_between  # type: ignore[method-assign]
    assert lines.of(Job.objects.all())[0].priority == 9
    lines._made = real  # type: ignore[method-assign]
    Job.objects.filter(pk=job.pk).update(priority=1)
    assert lines.of(Job.objects.all())[0].priority == 1


@pytest.mark.django_db
def test_the_queue_is_packed_for_who_takes_it_so(client: Client) -> None:
    a_machine()
    ada = a_user("ada", Role.VIEWER)
    a_job(ada)
    client.force_login(ada)
    plain = client.get("/api/v1/queue")
    packed = client.get("/api/v1/queue", headers={"Accept-Encoding": "gzip, br"})
    assert packed["Content-Encoding"] == "gzip"
    assert plain["Vary"] == packed["Vary"] == "Accept-Encoding, Cookie"
    assert len(gzip.decompress(packed.content)) == pytest.approx(len(plain.content), abs=50)  # ages
