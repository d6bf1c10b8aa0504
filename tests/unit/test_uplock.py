from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from scheduler_site.uplock import Holder, UpLock

ADA = Holder(pid=4711, address="http://127.0.0.1:8470", since="2030-01-01 12:00:00")


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[Callable[..., UpLock]]:
    made: list[UpLock] = []

    def make(*role: str) -> UpLock:
        made.append(UpLock(tmp_path, *role))
        return made[-1]

    yield make
    for one in made:
        one.release()


def test_the_second_learns_who_was_first(lock: Callable[..., UpLock]) -> None:
    first, second = lock(), lock()
    assert first.take()
    first.describe(ADA)

    assert not second.take()
    assert second.holder() == ADA
    assert "process 4711 at http://127.0.0.1:8470, since 2030-01-01 12:00:00" in ADA.sentence()


def test_a_holder_that_has_not_said_who_it_is_is_a_holder(lock: Callable[..., UpLock]) -> None:
    assert lock().take()

    found = lock().holder()

    assert found is not None
    assert found.pid == 0


def test_a_file_left_by_a_dead_holder_says_nothing(lock: Callable[..., UpLock]) -> None:
    gone = lock()
    assert gone.take()
    gone.describe(ADA)
    gone.release()

    assert lock().holder() is None
    assert lock().take()


def test_a_lock_file_that_somebody_removed_lets_no_second_service_in(
    lock: Callable[..., UpLock], tmp_path: Path
) -> None:
    assert lock().take()
    (tmp_path / "up.lock").unlink()
    (tmp_path / "up.json").write_text(json.dumps({**asdict(ADA), "children": {}}))

    for _ in range(2):  # the second try meets the file that the first one made
        second = lock()
        assert not second.take()
        assert second.holder() == ADA


def test_roles_do_not_stand_in_each_others_way(lock: Callable[..., UpLock]) -> None:
    assert lock("web").take()
    assert lock("worker").take()
