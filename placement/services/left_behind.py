"""What is left in a node's pools of jobs whose processes are gone, look by look."""

from __future__ import annotations

from collections.abc import Mapping

from calibration import clock
from calibration.domain.left_behind import Left, Pool, after
from calibration.domain.samples import Attribution, PoolState, Reading
from calibration.models import PoolNow
from placement.selectors.wording import listing

Figures = tuple[int | None, Mapping[str, int | None]]
"""Bytes that no process explains, and those of each job."""


class Leavings:
    """Kept between looks; what was told before a restart of the same boot is taken up again."""

    def __init__(self, node: str) -> None:
        rows = PoolNow.objects.filter(node=node, epoch=clock.epoch()).exclude(left=[])
        self._before = {row.pool: _stored(row) for row in rows}
        self._pools: dict[str, Pool] = {}
        self._last: dict[str, Figures] = {}

    def look(self, reading: Reading, found: Attribution) -> None:
        """Take in one look; a pool that was not read is as it was."""
        for name, pool in reading.pools.items():
            now = found.unexplained.get(name)
            if pool.state is not PoolState.OK or now is None:
                continue
            jobs = {owner: pools.get(name) for owner, pools in found.owners.items() if owner.startswith("job:")}
            if name not in self._last:
                left = self._before.pop(name, ())
                self._pools[name] = Pool(max(0, now - sum(one.bytes for one in left)), left)
            else:
                was, had = self._last[name]
                owners = ((owner, amount, jobs.get(owner, 0)) for owner, amount in had.items())
                self._pools[name] = after(self._pools[name], (was, now), owners, reading.wall)
            self._last[name] = now, jobs

    def told(self) -> dict[str, tuple[Left, ...]]:
        """Return what there is to say of each pool."""
        return {name: pool.told for name, pool in self._pools.items()}


def _stored(row: PoolNow) -> tuple[Left, ...]:
    return tuple(Left(str(one[0]), int(one[1]), float(one[2])) for one in listing(row.left) if len(one) == 3)
