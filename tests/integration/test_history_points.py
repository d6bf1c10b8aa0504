"""Points of a pool's history: one a second, the largest of each coarser step, gaps where nothing was read."""

from __future__ import annotations

from dataclasses import replace

from calibration.domain.attribution import attribute
from calibration.domain.samples import RAM, Attribution, PoolSample, PoolState, ProcessSample, Reading
from placement.domain.knobs import Knobs
from placement.models import Job
from placement.services.history import History, Inhabitants, ledger

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


def test_a_step_keeps_what_was_booked_in_the_second_of_its_largest_use() -> None:
    history = History()
    history.points(reading(1000.1, 10), NOBODY, {RAM: (7, 2)})
    history.points(reading(1000.5, 30), NOBODY, {RAM: (8, 3)})
    history.points(reading(1000.9, 20), NOBODY, {RAM: (9, 4)})
    found = {p.step: (p.booked, p.kept) for p in history.points(reading(1010, 5), NOBODY)}
    assert found == {1: (8, 3), 10: (8, 3)}


def test_what_is_booked_is_the_sum_of_charges_and_unknown_pools_keep_nothing_known() -> None:
    knobs = Knobs()
    jobs = [Job(charges={RAM: {"held": 5, "margin": 1}}), Job(charges={RAM: {"held": 6, "margin": 90}, "gone": {}})]
    assert ledger(jobs, reading(1, 5), knobs) == {RAM: (11, 90)}
    blind = Reading("n", "b", 1, 1, {RAM: PoolSample(RAM, "ram", "RAM", PoolState.UNREADABLE)}, {})
    assert ledger(jobs, blind, knobs) == {RAM: (11, None)}


def test_a_list_of_processes_is_written_when_it_reads_differently_and_not_each_second() -> None:
    inhabitants = Inhabitants()

    def changed(at: float, ram: int) -> list[int]:
        looked = replace(reading(at, ram), processes={5: ProcessSample(5, 0, 1, ram=ram)})
        lists = inhabitants.changed(looked, attribute(looked, []))
        inhabitants.wrote(lists)
        return [p.amount for listed, _ in lists.values() for p in listed]

    assert changed(1, 2 << 20) == [2 << 20]
    assert changed(4, (2 << 20) + 1000) == []
    assert changed(5, 4 << 20) == []  # too soon to look again
    assert changed(7, 4 << 20) == [4 << 20]
