from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.runner.limits import CUT_NOTICE, NOTICE, LogLimit, TimeLimit


class Log:
    """A log as a job writes it: appended to through one descriptor, trimmed through another."""

    def __init__(self, path: Path, limit: int, punch: Callable[[int, int, int], None] | None = None) -> None:
        self.path = path
        self._append = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.writer = os.open(path, os.O_WRONLY)
        self.limit = LogLimit(self.writer, limit) if punch is None else LogLimit(self.writer, limit, punch)

    def write(self, data: bytes) -> None:
        os.write(self._append, data)

    def close(self) -> None:
        os.close(self._append)
        os.close(self.writer)


def refuse(*_: int) -> None:
    raise OSError(95, "Operation not supported")


def test_time_is_counted_from_the_start() -> None:
    limit = TimeLimit(10.0, began=100.0)
    assert [limit.left(now) for now in (100.0, 109.5, 110.0, 500.0)] == [10.0, 0.5, 0.0, 0.0]
    assert TimeLimit(None, began=100.0).left(1e9) is None


def test_a_short_log_is_left_alone(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", 1 << 20)
    log.write(b"x" * (1 << 20))
    log.limit.look()
    log.close()
    assert log.path.read_bytes() == b"x" * (1 << 20)
    assert log.limit.trimmed_bytes == 0


@settings(max_examples=15, deadline=None)
@given(steps=st.lists(st.integers(1, 900_000), min_size=1, max_size=12))
def test_head_and_tail_stay_and_the_disk_is_spared(steps: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    limit = 256 << 10
    log = Log(tmp_path_factory.mktemp("logs") / "log", limit)
    whole = b""
    for number, step in enumerate(steps):
        data = bytes([65 + number]) * step
        whole += data
        log.write(data)
        log.limit.look()
    log.close()
    kept = log.path.read_bytes()
    assert len(kept) == len(whole)
    assert kept[: limit // 4] == whole[: limit // 4]
    assert kept[-limit // 4 :] == whole[-limit // 4 :]
    assert kept.count(NOTICE) == (1 if log.limit.trimmed_bytes else 0)
    assert os.stat(log.path).st_blocks * 512 <= limit + 16384
    assert (log.limit.trimmed_bytes > 0) == (len(whole) > limit)


def test_without_holes_the_log_is_cut_after_its_head_and_goes_on(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", 64 << 10, refuse)
    log.write(b"h" * 16384 + b"x" * 200_000)
    log.limit.look()
    log.write(b"after")
    log.limit.look()
    log.close()
    assert log.path.read_bytes() == b"h" * 16384 + CUT_NOTICE + b"after"
    assert log.limit.trimmed_bytes == 200_000


def test_a_log_emptied_by_the_job_starts_anew(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", 64 << 10)
    log.write(b"a" * 300_000)
    log.limit.look()
    os.truncate(log.path, 0)
    log.limit.look()
    log.write(b"b" * 300_000)
    log.limit.look()
    log.close()
    kept = log.path.read_bytes()
    assert kept.startswith(b"b" * 16384)
    assert kept.count(NOTICE) == 1


def test_a_log_that_cannot_be_trimmed_raises_nothing(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", 64 << 10)
    log.write(b"a" * 300_000)
    os.close(log.writer)
    log.limit.look()
    assert log.limit.size() is None
    log.writer = os.open(log.path, os.O_RDONLY)
    log.close()
