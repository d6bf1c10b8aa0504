"""In a play: what comes back when by the promises that a plan counts with, and the place that is set aside on them."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from placement.domain.stage import Back, Need, Spot


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
    ) -> tuple[float, int, int] | None:
        """Return the second from which the place has room, and what its pools have left over then.

        None for never, or not ``before`` a second at which another place has.
        """
        empty = spot.alone or spot.whole
        lead, ram = spot.lead, spot.ram
        at, over = self._from(lead, spot.need, free[lead], booked[lead], now, empty)
        if at >= before:
            return None
        ram_over = 0
        if over >= 0 and ram >= 0:
            later, ram_over = self._from(ram, spot.ram_need, free[ram], booked[ram], at, False)
            if later > at:
                at, over = self._from(lead, spot.need, free[lead], booked[lead], later, empty)
        return (at, over, ram_over) if over >= 0 and ram_over >= 0 else None

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

    def passes(self, promised: float | None, spot: Spot, now: float) -> bool:
        """Return whether a job that is taken to last so long may start there without delaying the plan."""
        mine, wait = self.spot, self.at - now
        same = mine.lead == spot.lead
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
            return spot.need <= self.over
        return spot.lead != mine.ram or spot.need <= self.ram_over

    def beside(self, by_need: list[Need], room: int, kind: int, now: float) -> list[Need]:
        """Return what fits into the pool of the plan and delays it in no case: what it leaves over, and its own."""
        most = min(room, self.over if now < self.at else -1)
        there = by_need[: bisect_right(by_need, most, key=lambda one: one[0])]
        return there if self.spot.need <= most else [*there, (self.spot.need, kind, self.spot)]

    def leave(self, spot: Spot, need: int) -> None:
        """Take off what a job that outlasts the plan's second leaves less there."""
        for pool, amount in ((spot.lead, need), (spot.ram, spot.ram_need)):
            if pool == self.spot.lead:
                self.over -= amount
            elif pool == self.spot.ram and pool >= 0:
                self.ram_over -= amount
