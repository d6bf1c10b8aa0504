"""What is left in a node's pools of jobs whose processes are gone, look by look."""

from __future__ import annotations

from collections.abc import Mapping

from calibration import clock
from calibration.domain.left_behind import Left, Pool, after
from calibration.domain.samples import RAM, Attribution, PoolState, ProcessSample, Reading
from calibration.models import PoolNow
from placement.selectors.wording import listing, mapping, whole

Figures = tuple[int, Mapping[str, int | None]]
"""Bytes that no living process explains, and those of each job."""


class Leavings:
    """Kept between looks; after a restart within the same boot it goes on from the last look that was stored."""

    def __init__(self, node: str) -> None:
        self._pools: dict[str, Pool] = {}
        self._last: dict[str, Figures] = {}
        for row in PoolNow.objects.filter(node=node, epoch=clock.epoch()).exclude(unexplained=None):
            left, jobs = _stored(row), {owner: whole(size) for owner, size in mapping(row.owners).items()}
            self._pools[row.pool] = Pool(max(0, row.unexplained - sum(one.bytes for one in left)), left)
            self._last[row.pool] = row.unexplained, {owner: jobs[owner] for owner in jobs if owner.startswith("job:")}
        self._told: dict[str, tuple[Left, ...]] = {}

    def look(self, reading: Reading, found: Attribution) -> None:
        """Take in one look; a pool that was not read is as it was."""
        for name, pool in reading.pools.items():
            unexplained = found.unexplained.get(name)
            if pool.state is not PoolState.OK or unexplained is None:
                continue
            now = unexplained + _of_the_ended(reading, found, name)
            jobs = {owner: pools.get(name) for owner, pools in found.owners.items() if owner.startswith("job:")}
            if name not in self._last:
                self._pools[name] = Pool(now)
            else:
                was, had = self._last[name]
                owners = ((owner, amount, jobs.get(owner, 0)) for owner, amount in had.items())
                self._pools[name] = after(self._pools[name], (was, now), owners, reading.wall)
            self._last[name] = now, jobs
            self._told[name] = self._pools[name].within(unexplained)

    def told(self) -> dict[str, tuple[Left, ...]]:
        """Return what there is to say of each pool."""
        return self._told


def _of_the_ended(reading: Reading, found: Attribution, pool: str) -> int:
    """Return the bytes under processes that the driver lists though they have ended: it may drop them looks later."""
    listed = found.amounts.get(pool, {}) if pool != RAM else {}
    ended = (pid for pid in listed if pid not in found.rules and _over(reading.processes.get(pid)))
    return sum(listed[pid] or 0 for pid in ended)


def _over(process: ProcessSample | None) -> bool:
    return process is None or process.state in "ZXx"


def _stored(row: PoolNow) -> tuple[Left, ...]:
    return tuple(Left(str(one[0]), int(one[1]), float(one[2])) for one in listing(row.left) if len(one) == 3)
