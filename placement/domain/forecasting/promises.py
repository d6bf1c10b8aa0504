"""In a play: what comes back when by the promises that a plan counts with, and the place that is set aside on them."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from placement.domain.forecasting.companions import Spot
from placement.domain.forecasting.stage import Back, Need


class Promises:
    """By pool, soonest first: who is to end when, and what is given back then. An overdue promise has passed."""

    def __init__(self, pools: int) -> None:
        self._due: list[list[tuple[float, int, int, int]]] = [[] for _ in range(pools)]

    def expect(self, second: float, job: int, back: Back) -> None:
        """Note a job that holds these bytes until it ends."""
        for pool, free, booked in back:
            insort(self._due[pool], (second, job, free, booked))

    def came(self, job: int, back: Back) -> None:
        """Strike out a job that has ended."""
        for pool, _, _ in back:
            due = self._due[pool]
            for index, one in enumerate(due):
                if one[1] == job:
                    del due[index]
                    break

    def room_at(
        self, spot: Spot, free: Sequence[int], booked: Sequence[int], now: float, before: float = inf
    ) -> tuple[float, int, int, dict[int, int]] | None:
        """Return the second from which the place has room, and what its pools have left over: lead, RAM, a group's.

        None for never, or not ``before`` a second at which another place has.
        """
        empty = spot.alone or spot.whole
        lead, ram = spot.lead, spot.ram
        at, over = self._from(lead, spot.need, free[lead], booked[lead], now, empty)
        if at >= before:
            return None
        others: dict[int, int] = {}
        if spot.count and over >= 0:
            rest = [pool for pool in spot.others if pool != lead]
            found = sorted((*self._from(p, spot.need, free[p], booked[p], at, empty), p) for p in rest)
            chosen = [one for one in found if one[1] >= 0][: spot.count]
            if len(chosen) < spot.count:
                return None
            at, others = chosen[-1][0], {pool: left for _, left, pool in chosen}
        ram_over = 0
        if over >= 0 and ram >= 0:
            later, ram_over = self._from(ram, spot.ram_need, free[ram], booked[ram], at, False)
            if later > at:
                at, over = self._from(lead, spot.need, free[lead], booked[lead], later, empty)
        if others:
            _, over = self._from(lead, spot.need, free[lead], booked[lead], at, empty)
            others = {p: self._from(p, spot.need, free[p], booked[p], at, empty)[1] for p in others}
        return (at, over, ram_over, others) if over >= 0 and ram_over >= 0 else None

    def left_at(
        self, spot: Spot, free: Sequence[int], booked: Sequence[int], at: float
    ) -> tuple[float, int, int, dict[int, int]]:
        """Return the same of a second that was kept though there is no room by then: what is left over is below 0."""

        def over(pool: int, need: int) -> int:
            back = [(more_free, more_booked) for second, _, more_free, more_booked in self._due[pool] if second <= at]
            return min(free[pool] + sum(n for n, _ in back), booked[pool] + sum(n for _, n in back)) - need

        others = {pool: over(pool, spot.need) for pool in spot.others[: spot.count]}
        return at, over(spot.lead, spot.need), over(spot.ram, spot.ram_need) if spot.ram >= 0 else 0, others

    def _from(self, pool: int, need: int, free: int, booked: int, at: float, empty: bool) -> tuple[float, int]:
        """Return the first second from ``at`` on with this much room, and what is left over then (negative: never)."""
        over = (free if free < booked else booked) - need
        for second, _, more_free, more_booked in self._due[pool]:
            if second > at:
                if over >= 0 and not empty:
                    break
                at = second
            free, booked = free + more_free, booked + more_booked
            over = (free if free < booked else booked) - need
        return at, over


@dataclass(slots=True)
class Aside:
    """The place and second that are kept for one turn, and the bytes that its plan leaves over there."""

    turn: int
    spot: Spot
    at: float
    over: int
    ram_over: int
    others: dict[int, int] = field(default_factory=dict)  # by pool, for a group beside its lead

    def passes(self, promised: float | None, spot: Spot, now: float) -> bool:
        """Return whether a job that is taken to last so long may start there without delaying the plan."""
        mine, wait = self.spot, self.at - now
        over = self.over
        same = mine.lead == spot.lead
        if self.others or spot.others:  # any device that both may take
            theirs = (spot.lead, *spot.others)
            left_over = [left for pool, left in ((mine.lead, over), *self.others.items()) if pool in theirs]
            same, over = bool(left_over), min(left_over, default=over)
        if wait <= 0.0 and same:
            return False
        if promised is not None and promised <= wait:
            return True
        if mine.whole or spot.whole or (same and (mine.alone or spot.alone or spot.cold)):
            return False
        # A pool that both use: their RAM, or for a plan without a device the pool that it leads with.
        left = self.ram_over if spot.ram == mine.ram else self.over
        if spot.ram >= 0 and spot.ram in (mine.ram, mine.lead) and spot.ram_need > left:
            return False
        if same:
            return spot.need <= over
        return spot.lead != mine.ram or spot.need <= self.ram_over

    def beside(self, by_need: list[Need], room: int, kind: int, now: float) -> list[Need]:
        """Return what fits into the pool of the plan and delays it in no case: what it leaves over, and its own."""
        most = min(room, self.over if now < self.at else -1)
        there = by_need[: bisect_right(by_need, most, key=lambda one: one[0])]
        return there if self.spot.need <= most else [*there, (self.spot.need, kind, self.spot)]

    def leave(self, parts: Sequence[tuple[int, int]]) -> None:
        """Take off what a job that outlasts the plan's second leaves less there; it takes (pool, bytes)."""
        for pool, amount in parts:
            if pool == self.spot.lead:
                self.over -= amount
            elif pool in self.others:
                self.others[pool] -= amount
            elif pool == self.spot.ram and pool >= 0:
                self.ram_over -= amount


def set_aside(
    due: Promises,
    turn: int,
    spots: Iterable[Spot],
    kept: tuple[int, float] | None,
    free: Sequence[int],
    booked: Sequence[int],
    now: float,
) -> Aside | None:
    """Return the place that is free first for a turn, None where none can be told; ``kept`` is (lead, second)."""
    best: Aside | None = None
    for spot in spots:
        if kept is not None and spot.lead != kept[0]:
            continue
        before = inf if best is None or kept is not None else best.at
        made = due.room_at(spot, free, booked, now, before)
        if kept is not None and (made is None or made[0] > kept[1]):
            made = due.left_at(spot, free, booked, kept[1])
        if made is not None and (best is None or made[0] < best.at):
            best = Aside(turn, spot, *made)
    return best
