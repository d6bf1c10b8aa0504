"""Points of a pool's history: one a second, the largest of each coarser step, gaps where nothing was read."""

from __future__ import annotations

from calibration.domain.samples import RAM, Attribution, PoolSample, PoolState, Reading
from placement.services.history import History

NOBODY = Attribution({"job:1": {RAM: 5}, "job:2": {RAM: None}, "job:3": {RAM: 0}}, {}, {}, {}, {}, {})


def reading(wall: float, used: int | None) -> Reading:
    state = PoolState.OK if used is not None else PoolState.UNREADABLE
    return Reading("n", "b", wall, wall, {RAM: PoolSample(RAM, "ram", "RAM", state, total=100, used=used)}, {})


def points(history: History, wall: float, used: int | None) -> list[tuple[int, int, int | None]]:
    return sorted((p.step, p.at, p.used) for p in history.points(reading(wall, used), NOBODY))


def test_a_step_is_written_once_it_is_over_with_its_largest_use() -> None:
    history = History()
    assert points(history, 1000.1, 10) == []
    assert points(history, 1000.9, 30) == []
    assert points(history, 1001.2, 20) == [(1, 1000, 30)]
    assert points(history, 1010.0, 5) == [(1, 1001, 20), (10, 1000, 30)]
    assert points(history, 1200.0, 5) == [(1, 1010, 5), (10, 1010, 5), (300, 900, 30)]


def test_what_could_not_be_read_leaves_a_gap() -> None:
    history = History()
    points(history, 1000, 10)
    assert points(history, 1001, None) == [(1, 1000, 10)]
    assert points(history, 1002, None) == []


def test_a_point_names_owners_that_hold_something_known() -> None:
    history = History()
    history.points(reading(1000, 10), NOBODY)
    (point,) = history.points(reading(1001, 10), NOBODY)
    assert point.owners == {"job:1": 5}
