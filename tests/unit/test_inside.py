"""Which processes a page lists of a pool: ours first, bounded, the rest summed by owner."""

from __future__ import annotations

from calibration.domain.attribution import attribute
from calibration.domain.inside import MOST, Inside, More, inside
from calibration.domain.samples import RAM, Claim, Identity, PoolSample, PoolState, ProcessSample, Reading

MIB = 1 << 20


def reading(sizes: dict[int, int | None], state: PoolState = PoolState.OK) -> Reading:
    processes = {pid: ProcessSample(pid, 0, pid, user="ada", name=f"p{pid}", ram=size) for pid, size in sizes.items()}
    return Reading("n", "b", 1.0, 1.0, {RAM: PoolSample(RAM, "ram", "RAM", state, total=1, used=1)}, processes)


def look(sizes: dict[int, int | None], ours: dict[int, str], state: PoolState = PoolState.OK):
    taken = reading(sizes, state)
    roots = [Claim(owner, roots=(Identity("b", pid, pid),)) for pid, owner in ours.items()]
    return inside(taken, attribute(taken, roots))


def test_ours_come_first_and_say_by_which_rule():
    looked = look({1: 900 * MIB, 2: 3 * MIB + 7}, {2: "job:7"})
    listed, more = looked[RAM]
    assert listed == (
        Inside(2, "job:7", "root", "ada", "p2", 3 * MIB),
        Inside(1, "", "", "ada", "p1", 900 * MIB),
    )
    assert more == ()


def test_a_crowd_is_bounded_and_its_rest_summed_by_owner():
    sizes = {pid: pid * MIB for pid in range(1, MOST + 11)}
    listed, more = look(sizes, {3: "job:7"})[RAM]
    assert len(listed) == MOST
    assert listed[0].pid == 3
    assert more == (More("", 10, sum(n * MIB for n in (1, 2, *range(4, 12)))),)


def test_small_ones_are_summed_the_unknown_are_listed_and_those_of_nothing_left_out():
    looked = look({1: 1000, 2: None, 3: 0}, {1: "job:1"})
    assert looked[RAM] == ((Inside(2, "", "", "ada", "p2", None),), (More("job:1", 1, 0),))


def test_a_pool_that_was_not_read_says_nothing():
    assert look({1: MIB}, {}, PoolState.UNREADABLE) == {}


def test_an_unknown_one_that_is_not_listed_is_counted_and_makes_the_rest_unknown():
    sizes: dict[int, int | None] = dict.fromkeys(range(1, MOST + 4))
    listed, more = look(sizes, {})[RAM]
    assert len(listed) == MOST
    assert more == (More("", 3, None),)
