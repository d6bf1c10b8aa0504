"""The queue played forward once on plain numbers: runs end as drawn, and whoever waits starts by the gate's rule.

The rule is the plan's own, as far as a cheap play can follow it: queue order; the tightest place that fits, a first
run the emptiest; the first job that fits nowhere gets a place and a time, and younger ones pass where that is not
delayed. What is left out: margins and shares of first runs that change with the company.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from placement.domain.durations import Sure
from placement.domain.promises import Aside, Promises
from placement.domain.stage import SETTLES, Back, Event, Need, Spot, Stage, Start, Turn, first_events

_TRIED = 4  # of equal jobs so many are asked whether they end before the plan
_NAMED = 4  # jobs that are named as those whose end is waited for
_NEVER = float("inf")


class Play:
    """One play. ``lasts`` are seconds by turn, ``left`` by job that runs; None runs on without an end."""

    def __init__(
        self,
        stage: Stage,
        turns: Sequence[Turn],
        lasts: Sequence[float],
        left: Mapping[int, float | None],
        bar: tuple[int, int, float] | None = None,
    ) -> None:
        self.stage, self.turns, self.lasts = stage, turns, lasts
        self.free, self.booked = list(stage.free), list(stage.booked)
        count, nodes = len(self.free), len(stage.board.nodes)
        self.there = [0] * count
        self.on_node = [0] * nodes
        self.shut = [0] * count  # how many keep others off a pool's device
        self.shut_node = [0] * nodes
        self.sure = [Sure.LIMIT] * count
        self.ended: list[tuple[int, ...]] = [()] * count
        self.starts: list[Start | None] = [None] * len(turns)
        self.now = 0.0
        self.due = Promises(count)
        self.events: list[Event] = []
        self.waiting: list[list[int]] = [[] for _ in stage.kinds]
        self.shortest = [_NEVER] * len(stage.kinds)  # the least that any job of a demand is taken to last
        self.soonest = min((t.promised for t in turns if t.promised is not None), default=_NEVER)
        self.ends: dict[int, list[int]] = {}  # turns that wait for the end of a job
        self.stands: dict[int, tuple[Sure, int]] = {}  # by turn: on whose end it stood, and how sure that was
        self.lined: dict[int, float] = {}  # by turn that had to wait for its time: since when it may start
        self.worst = Sure.LIMIT  # of all ends so far
        self.unmet: dict[int, int] = {}  # by turn: how many ends it still waits for
        self.caps = list(stage.caps.left)
        self.gives = {h.job: stage.caps.held(h.job) for h in stage.holdings if self.caps}
        self.later: list[tuple[float, int]] = []
        self.ram_short: set[int] = set()
        self.bar: Aside | None = None
        self._given = bar
        self._enter(left)

    def _enter(self, left: Mapping[int, float | None]) -> None:
        for h in self.stage.holdings:
            self.there[h.lead] += 1
            self.on_node[h.node] += 1
            self.shut[h.lead] += h.closes
            self.shut_node[h.node] += h.closes_node
        for event, promised in first_events(self.stage, left):
            self.events.append(event)
            if promised is not None:
                self.due.expect(promised, event[1], event[5])
        for pool in self.stage.opens:
            self.shut[pool] += 1
        heapify(self.events)
        for number, turn in enumerate(self.turns):
            if turn.promised is not None and turn.promised < self.shortest[turn.kind]:
                self.shortest[turn.kind] = turn.promised
            if turn.after:  # one that neither runs nor waits here has an end that nobody can tell
                self.unmet[number] = len(turn.after)
                for job in turn.after:
                    self.ends.setdefault(job, []).append(number)
            elif turn.earliest > 0.0:
                heappush(self.later, (turn.earliest, number))
            else:
                self.waiting[turn.kind].append(number)  # in order, so it is a heap

    def run(self) -> list[Start | None]:
        """Return each turn's start, None where none comes."""
        dirty = set(range(len(self.free)))
        self._serve(dirty)
        events, later = self.events, self.later
        while events or later:
            at = events[0][0] if events else _NEVER
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
        _, job, leaves, lead, node, back, sure, closes, closes_node = event
        for pool, free, booked in back:
            self.free[pool] += free
            self.booked[pool] += booked
        self.shut[lead] -= closes
        self.shut_node[node] -= closes_node
        dirty.add(lead)
        self.sure[lead], self.worst = min(self.sure[lead], sure), min(self.worst, sure)
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
        return True

    def _passes(self, number: int, spot: Spot) -> bool:
        aside = self.bar
        return aside is None or number == aside.turn or aside.passes(self.turns[number].promised, spot, self.now)

    def _start(self, number: int, spot: Spot) -> None:
        turn, lasts, now, lead, node = self.turns[number], self.lasts[number], self.now, spot.lead, spot.node
        queue = self.waiting[turn.kind]
        if queue[0] == number:
            heappop(queue)
        else:
            queue.remove(number)
            heapify(queue)
        room = min(self.free[lead], self.booked[lead])
        need = max(spot.need, room) if spot.cold else spot.need
        closes = spot.alone or spot.cold
        if self.bar is not None and (turn.promised is None or now + turn.promised > self.bar.at):
            self.bar.leave(spot, need)
        parts = [(lead, need)] if spot.ram < 0 else [(lead, need), (spot.ram, spot.ram_need)]
        for pool, amount in parts:
            self.free[pool] -= amount
            self.booked[pool] -= amount
        back: Back = tuple((pool, amount, amount) for pool, amount in parts)
        if takes := self.stage.takes[turn.kind]:
            self.gives[turn.job] = takes
            for cap, amount in takes:
                self.caps[cap] -= amount
        self.there[lead] += 1
        self.on_node[node] += 1
        self.shut[lead] += closes
        self.shut_node[node] += spot.whole
        if spot.cold and lasts > SETTLES and not spot.alone:
            part = ((lead, need - spot.need, need - spot.need),)
            heappush(self.events, (now + SETTLES, 0, -1, lead, node, part, Sure.GUESS, True, False))
            back, closes = ((lead, spot.need, spot.need), *back[1:]), False
        at_once = self.lined.get(number) == now  # then nobody's end made room for it
        waited = () if at_once else self.ended[lead]
        said = Sure.LIMIT if at_once else self.sure[lead] if waited else self.worst
        if number in self.stands:
            stood, job = self.stands[number]
            said, waited = min(said, stood), (*(w for w in waited if w != job), job)[-_NAMED:]
        sure = min(said, turn.length.sure())
        heappush(self.events, (now + lasts, turn.job, 1, lead, node, back, sure, closes, spot.whole))
        self.due.expect(now + (lasts if turn.promised is None else turn.promised), turn.job, back)
        self.starts[number] = Start(now, spot, said, waited)

    def _plan(self, number: int) -> bool:
        """Set a place and a second aside for the head of the queue; False where none can be told."""
        turn, given = self.turns[number], self._given
        best: Aside | None = None
        for spot in self.stage.kinds[turn.kind].values():
            mine = given is not None and given[0] == turn.job
            if given is not None and mine and spot.lead != given[1]:
                continue
            before = _NEVER if best is None or mine else best.at
            made = self.due.room_at(spot, self.free, self.booked, self.now, before)
            if given is not None and mine:
                made = (given[2], 0, 0) if made is None else (min(made[0], given[2]), *made[1:])
            if made is not None and (best is None or made[0] < best.at):
                best = Aside(number, spot, *made)
        self.bar = best
        return best is not None
