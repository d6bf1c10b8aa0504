"""While memory of an ended job comes back, free is the lower of the readings."""

from __future__ import annotations

from calibration.domain.samples import RAM, PoolSample, PoolState, Reading
from placement.domain.knobs import MIB, Knobs
from placement.services.draining import Drains

KNOBS = Knobs()


def reading(at: float, free: int | None) -> Reading:
    pool = PoolSample(RAM, "ram", "RAM", PoolState.OK, total=9000 * MIB, free=None if free is None else free * MIB)
    return Reading("n", "b", at, at, {RAM: pool}, {})


def decided(drains: Drains, at: float, free: int | None) -> int | None:
    amount = drains.free(reading(at, free), KNOBS)[RAM]
    return None if amount is None else amount // MIB


def test_nothing_is_held_back_while_nothing_drains() -> None:
    drains = Drains()
    assert [decided(drains, at, free) for at, free in enumerate((1000, 5000, 2000))] == [1000, 5000, 2000]


def test_a_rising_level_counts_as_it_was_until_it_stands() -> None:
    drains = Drains()
    decided(drains, 0, 1000)
    drains.begin([RAM], until=5)
    assert decided(drains, 1, 3000) == 1000
    assert drains.pools() == {RAM}
    assert decided(drains, 1.1, 5000) == 3000
    assert decided(drains, 1.3, 5063) == 5063
    assert not drains.active()


def test_the_wait_has_an_end() -> None:
    drains = Drains()
    decided(drains, 0, 1000)
    drains.begin([RAM], until=2)
    assert decided(drains, 1, 2000) == 1000
    assert decided(drains, 2, 3000) == 3000


def test_a_falling_level_is_believed_at_once() -> None:
    drains = Drains()
    decided(drains, 0, 5000)
    drains.begin([RAM], until=5)
    assert decided(drains, 1, 1000) == 1000


def test_unknown_stays_unknown_and_does_not_end_the_wait() -> None:
    drains = Drains()
    decided(drains, 0, 1000)
    drains.begin([RAM], until=5)
    assert decided(drains, 1, None) is None
    assert drains.active()
