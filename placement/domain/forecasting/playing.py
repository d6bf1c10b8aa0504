"""The queue played forward once on plain numbers: runs end as drawn, and whoever waits starts by the gate's rule.

The rule is the plan's own, as far as a cheap play can follow it: queue order; the tightest place that fits, a first
run the emptiest; the first job that fits nowhere gets a place and a time, and younger ones pass where that is not
delayed. What is left out: margins and shares of first runs that change with the company.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from placement.domain.forecasting.companions import Spot, companions
from placement.domain.forecasting.play_state import NEVER, PlayState
from placement.domain.forecasting.promises import set_aside
from placement.domain.forecasting.stage import SETTLES, Back, Event, Need, Start
from placement.domain.world.durations import Sure

_TRIED = 4  # of equal jobs so many are asked whether they end before the plan
_NAMED = 4  # jobs that are named as those whose end is waited for


class Play(PlayState):
    """One play. ``lasts`` are seconds by turn, ``left`` by job that runs; None runs on without an end."""

    def run(self) -> list[Start | None]:
        """Return each turn's start, None where none comes."""
        dirty = set(range(len(self.free)))
        self._serve(dirty)
        events, later = self.events, self.later
        while events or later:
            at = events[0][0] if events else NEVER
            if later and later[0][0] < at:
                at = later[0][0]
            self.now = at
            dirty = set()
            while events and events[0][0] <= at:
                self._end(heappop(events), dirty)
            while later and later[0][0] <= at:
                self._line_up(heappop(later)[1], dirty)
            self._serve(dirty)
        return self.starts

    def _end(self, event: Event, dirty: set[int]) -> None:
        _, job, leaves, lead, node, back, sure, closes, closes_node, others = event
        self.rooms.clear()
        for pool, free, booked in back:
            self.free[pool] += free
            self.booked[pool] += booked
        self.shut_node[node] -= closes_node
        self.shut[lead] -= closes
        dirty.add(lead)
        self.sure[lead], self.worst = min(self.sure[lead], sure), min(self.worst, sure)
        for pool in others:
            self._leave(pool, event, dirty)
        if leaves < 0:
            return
        self.there[lead] -= 1
        self.on_node[node] -= 1
        self.due.came(job, back)
        self.ended[lead] = (*self.ended[lead][1 - _NAMED :], job)
        if node in self.ram_short or closes_node or not self.on_node[node]:
            self.ram_short.discard(node)
            dirty.update(pool for pool, n in enumerate(self.stage.node_of) if n == node)
        for cap, amount in self.gives.pop(job, ()):
            self.caps[cap] += amount
            dirty.update(range(len(self.free)))
        for number in self.ends.pop(job, ()):
            turn = self.turns[number]
            self.unmet[number] -= 1
            self.stands[number] = min(sure, self.stands.get(number, (sure, job))[0]), job
            if self.unmet[number]:
                continue
            if turn.earliest > self.now:
                heappush(self.later, (turn.earliest, number))
            else:
                self._line_up(number, dirty)

    def _leave(self, pool: int, event: Event, dirty: set[int]) -> None:
        """Open a device of a group beside its lead."""
        self.shut[pool] -= event[7]
        dirty.add(pool)
        if event[2] > 0:
            self.there[pool] -= 1
            self.sure[pool] = min(self.sure[pool], event[6])
            self.ended[pool] = (*self.ended[pool][1 - _NAMED :], event[1])

    def _line_up(self, number: int, dirty: set[int]) -> None:
        """Let a job that may start from now on take its place in the queue; an older one takes the plan over."""
        kind = self.turns[number].kind
        self.lined[number] = self.now
        heappush(self.waiting[kind], number)
        dirty.update(self.stage.kinds[kind])
        if self.bar is not None and number < self.bar.turn:
            self.bar = None

    def _serve(self, dirty: set[int]) -> None:
        """Start whoever fits at the places where something changed, and keep the plan of the first that does not."""
        while True:
            found = self._lead(dirty) if self.bar is None else None
            if found is None:
                found = self._next(dirty)
            if found is None:
                return
            self._start(*found)
            if self.bar is not None and self.bar.turn == found[0]:
                node = self.bar.spot.node
                dirty.update(p for p, n in enumerate(self.stage.node_of) if n == node)
                self.bar = self._given = None

    def _lead(self, dirty: set[int]) -> tuple[int, Spot] | None:
        """Return the first job in order if it fits, and where; else set a place aside for the first that can wait."""
        heads = [queue[0] for queue in self.waiting if queue]
        heapify(heads)  # mostly the first will do
        while heads:
            kind = self.turns[head := heappop(heads)].kind
            if self.caps and self._capped(kind):
                continue
            spots, best, least = self.stage.kinds[kind], None, 0
            for pool in dirty:
                spot = spots.get(pool)
                if spot is None or self.shut[pool]:
                    continue
                room = min(self.free[pool], self.booked[pool])
                key = -room if spot.cold else room - spot.need
                if spot.need <= room and (best is None or key < least) and self._open(spot):
                    best, least = spot, key
            if best is not None:
                return head, best
            if self._plan(head):
                break
        return None

    def _next(self, dirty: set[int]) -> tuple[int, Spot] | None:
        """Return the first job in order that fits at one of the places, and where."""
        waiting, bar, by_need = self.waiting, self.bar, self.stage.by_need
        kept = -1 if bar is None else bar.spot.lead
        aside_at = -1 if bar is None else bar.spot.node
        capped = bool(self.caps)
        best: Spot | None = None
        first, least = len(self.turns), 0
        for pool in dirty:
            if self.shut[pool]:
                continue
            free, booked = self.free[pool], self.booked[pool]
            room = free if free < booked else booked
            for need, kind, spot in by_need[pool] if pool != kept else self._beside(pool, room):
                if need > room:
                    break
                queue = waiting[kind]
                if not queue or queue[0] > first or (capped and self._capped(kind)) or not self._open(spot):
                    continue
                number = queue[0]
                if spot.node == aside_at and not self._passes(number, spot):
                    found = self._equal_that_passes(queue, kind, spot)
                    if found is None or found >= first:
                        continue
                    number = found
                key = -room if spot.cold else room - need
                if number < first or (number == first and key < least):
                    best, first, least = spot, number, key
        return None if best is None else (first, best)

    def _beside(self, pool: int, room: int) -> Sequence[Need]:
        """Return the demands of a pool at which a plan is kept that may start there; all, where one may end before."""
        bar, by_need = self.bar, self.stage.by_need[pool]
        if bar is None or self.soonest <= bar.at - self.now:
            return by_need
        return bar.beside(by_need, room, self.turns[bar.turn].kind, self.now)

    def _equal_that_passes(self, queue: list[int], kind: int, spot: Spot) -> int | None:
        """Return the first of some equal jobs that ends before the plan; a few of them are asked."""
        if self.bar is None or self.shortest[kind] > self.bar.at - self.now:
            return None
        return next((n for n in sorted(queue[: 2 * _TRIED])[1:_TRIED] if self._passes(n, spot)), None)

    def _capped(self, kind: int) -> bool:
        """Return whether an array's limit or somebody's quota keeps this kind back."""
        return any(self.caps[cap] < amount for cap, amount in self.stage.takes[kind])

    def _open(self, spot: Spot) -> bool:
        lead, node, ram = spot.lead, spot.node, spot.ram
        if self.shut_node[node] or (spot.alone and self.there[lead]) or (spot.whole and self.on_node[node]):
            return False
        if ram >= 0 and (spot.ram_need > self.free[ram] or spot.ram_need > self.booked[ram]):
            self.ram_short.add(node)
            return False
        if not spot.count:
            return True
        any_will_do = not spot.alone and not self.stage.only and len(spot.others) == self.stage.devices[node]
        return self._so_many(spot) and (any_will_do or self._others(spot) is not None)

    def _so_many(self, spot: Spot) -> bool:
        """Return whether enough devices of the node have room at all, whatever else keeps a group off them."""
        node, found = spot.node, self.rooms.get(spot.node)
        if found is None:
            open_ = [p for p in self.stage.device_of if self.stage.node_of[p] == node and not self.shut[p]]
            found = self.rooms[node] = sorted((min(self.free[p], self.booked[p]) for p in open_), reverse=True)
        return len(found) > spot.count and found[spot.count] >= spot.need

    def _others(self, spot: Spot) -> tuple[int, ...] | None:
        return companions(spot, self.free, self.booked, self.shut, self.there, self.stage.only)

    def _passes(self, number: int, spot: Spot) -> bool:
        aside = self.bar
        return aside is None or number == aside.turn or aside.passes(self.turns[number].promised, spot, self.now)

    def _start(self, number: int, spot: Spot) -> None:
        turn, lasts, now, lead, node = self.turns[number], self.lasts[number], self.now, spot.lead, spot.node
        queue = self.waiting[turn.kind]
        self.rooms.clear()
        if queue[0] == number:
            heappop(queue)
        else:
            queue.remove(number)
            heapify(queue)
        others = self._others(spot) or () if spot.count else ()
        closes = spot.alone or spot.cold
        own = [(lead, self._takes(spot, lead) if spot.cold else spot.need)]
        if others:
            own += [(pool, self._takes(spot, pool)) for pool in others]
        parts = own if spot.ram < 0 else [*own, (spot.ram, spot.ram_need)]
        if self.bar is not None and (turn.promised is None or now + turn.promised > self.bar.at):
            self.bar.leave(parts)
        for pool, amount in parts:
            self.free[pool] -= amount
            self.booked[pool] -= amount
        back: Back = tuple((pool, amount, amount) for pool, amount in parts)
        if takes := self.stage.takes[turn.kind]:
            self.gives[turn.job] = takes
            for cap, amount in takes:
                self.caps[cap] -= amount
        self.there[lead] += 1
        self.shut[lead] += closes
        for pool in others:
            self.there[pool] += 1
            self.shut[pool] += closes
        self.on_node[node] += 1
        self.shut_node[node] += spot.whole
        if spot.cold and lasts > SETTLES and not spot.alone:
            part = tuple((pool, need - spot.need, need - spot.need) for pool, need in own)
            heappush(self.events, (now + SETTLES, 0, -1, lead, node, part, Sure.GUESS, True, False, others))
            back, closes = (*((pool, spot.need, spot.need) for pool, _ in own), *back[len(own) :]), False
        at_once = self.lined.get(number) == now  # then nobody's end made room for it
        waited = () if at_once else self.ended[lead]
        said = Sure.LIMIT if at_once else self.sure[lead] if waited else self.worst
        if number in self.stands:
            stood, job = self.stands[number]
            said, waited = min(said, stood), (*(w for w in waited if w != job), job)[-_NAMED:]
        sure = min(said, turn.length.sure())
        heappush(self.events, (now + lasts, turn.job, 1, lead, node, back, sure, closes, spot.whole, others))
        self.due.expect(now + (lasts if turn.promised is None else turn.promised), turn.job, back)
        self.starts[number] = Start(now, spot, said, waited, others)

    def _takes(self, spot: Spot, pool: int) -> int:
        """Return the bytes that it is given of a device: a first run all there is."""
        return max(spot.need, min(self.free[pool], self.booked[pool])) if spot.cold else spot.need

    def _plan(self, number: int) -> bool:
        """Set a place and a second aside for the head of the queue; False where none can be told."""
        turn, given = self.turns[number], self._given
        kept = given[1:] if given is not None and given[0] == turn.job else None
        spots = self.stage.kinds[turn.kind].values()
        self.bar = set_aside(self.due, number, spots, kept, self.free, self.booked, self.now)
        return self.bar is not None
