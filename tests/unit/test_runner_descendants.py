from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import pytest

from placement.runner import descendants
from placement.runner.descendants import children_of, describe, walk
from placement.runner.identity import Stat


def a_stat(pid: int, ppid: int, ticks: int, state: str = "S") -> Stat:
    return Stat(pid=pid, name="x", state=state, ppid=ppid, pgid=pid, sid=pid, start_ticks=ticks)


Table = tuple[Callable[[int], Iterable[int]], Callable[[int], Stat | None]]


def a_table(*stats: Stat) -> Table:
    by_pid = {stat.pid: stat for stat in stats}
    return (lambda pid: [s.pid for s in stats if s.ppid == pid]), by_pid.get


@pytest.mark.parametrize(
    "stats, members",
    [
        pytest.param([a_stat(10, 1, 5), a_stat(11, 10, 6), a_stat(12, 11, 7)], [11, 12], id="child and grandchild"),
        pytest.param([a_stat(32760, 1, 500), a_stat(310, 32760, 510)], [310], id="pids wrap, order says nothing"),
        pytest.param([a_stat(4000, 1, 900), a_stat(4010, 4000, 150)], [], id="older than its parent: a stranger"),
        pytest.param([a_stat(10, 1, 5), a_stat(11, 10, 6, "Z"), a_stat(12, 11, 7)], [12], id="a zombie between"),
        pytest.param([a_stat(10, 11, 5), a_stat(11, 10, 5)], [11], id="a circle ends"),
        pytest.param([a_stat(10, 1, 5)], [], id="alone"),
    ],
)
def test_the_walk_follows_links_that_can_be_true(stats: list[Stat], members: list[int]) -> None:
    children, stat_of = a_table(*stats)
    assert [stat.pid for stat in walk(stats[0].pid, children, stat_of)] == members


def test_a_child_that_vanishes_during_the_walk_is_left_out() -> None:
    assert walk(10, lambda pid: [11, 12], lambda pid: a_stat(10, 1, 5) if pid == 10 else None) == []


def test_twenty_thousand_processes_are_walked() -> None:
    stats = [a_stat(pid, pid // 2, pid) for pid in range(1, 20_001)]
    by_pid = {stat.pid: stat for stat in stats}
    found = walk(1, lambda pid: [p for p in (2 * pid, 2 * pid + 1) if p in by_pid], by_pid.get)
    assert len(found) == 19_999


@pytest.mark.parametrize("listed", [True, False], ids=["the kernel's list", "a search through /proc"])
def test_our_own_child_is_found(listed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    read = descendants.read_bytes
    if not listed:
        monkeypatch.setattr(
            descendants,
            "read_bytes",
            lambda path, limit=65536: None if "children" in path else read(path, limit),
        )
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    try:
        assert pid in children_of(os.getpid())
        member = next(m for m in describe(walk(os.getpid())) if m.pid == pid)
        assert member.rss_bytes is not None
        assert member.rss_bytes > 0
    finally:
        os.close(reading)
        os.close(writing)
        os.waitpid(pid, 0)
    assert pid not in children_of(os.getpid())
