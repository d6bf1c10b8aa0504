"""In a play: how many of an array, and how much of a person's quota, may still start at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from placement.domain.admission.prerequisites import least_of
from placement.domain.world.conditions import Quota
from placement.domain.world.snapshot import Running, Waiting

Taken = tuple[tuple[int, int], ...]  # (number of a cap, how much of it is taken)


class Caps:
    """What is left of each limit that some waiting job is under, by number; those who run have taken theirs."""

    def __init__(self, running: Iterable[Running]) -> None:
        self.left: list[int] = []
        self._running = list(running)
        self._numbers: dict[tuple[Hashable, ...], int] = {}
        self._held: dict[int, list[tuple[int, int]]] = {}

    def of(self, waiting: Waiting) -> Taken:
        """Return what a start of this job takes of which caps."""
        by = waiting.conditions
        if by is None:
            return ()
        found = []
        if by.array and by.array_limit is not None:
            found.append((self._number(("array", by.array), by.array_limit), 1))
        if by.quota is not None:
            found += self._of_quota(waiting, by.quota)
        return tuple(found)

    def held(self, job: int) -> Taken:
        """Return what a running job gives back at its end."""
        return tuple(self._held.get(job, ()))

    def _of_quota(self, waiting: Waiting, quota: Quota) -> Iterable[tuple[int, int]]:
        if quota.jobs is not None:
            yield self._number(("jobs", quota.user), quota.jobs), 1
        for kind, limit in (("vram", quota.vram), ("ram", quota.ram)):
            pool = waiting.estimate.pools.get(kind)
            if limit is not None and pool is not None:
                need = least_of(kind, waiting.request, pool)
                need = 1 if need is None or (pool.need is None and not need) else need
                yield self._number((kind, quota.user), limit), need

    def _number(self, name: tuple[Hashable, ...], limit: int) -> int:
        if name not in self._numbers:
            number = self._numbers[name] = len(self.left)
            self.left.append(limit)
            for running in self._running:
                taken = _takes(running, name)
                if taken:
                    self.left[number] -= taken
                    self._held.setdefault(running.job, []).append((number, taken))
        return self._numbers[name]


def _takes(running: Running, name: tuple[Hashable, ...]) -> int:
    what, whose = name
    if what == "array":
        return int(running.array == whose)
    if running.user != whose:
        return 0
    if what == "jobs":
        return 1
    return sum(c.held for pool, c in running.charges.items() if (pool in running.devices) == (what == "vram"))
