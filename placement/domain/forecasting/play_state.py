"""What stands at one second of a play: who holds what of each pool, who waits for what, and what comes next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappush

from placement.domain.forecasting.promises import Aside, Promises
from placement.domain.forecasting.stage import Event, Stage, Start, Turn, first_events
from placement.domain.world.durations import Sure

NEVER = float("inf")


class PlayState:
    """The pools, the queue and the events of one play, as ``stage`` and ``turns`` begin it."""

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
        self.shortest = [NEVER] * len(stage.kinds)  # the least that any job of a demand is taken to last
        self.soonest = min((t.promised for t in turns if t.promised is not None), default=NEVER)
        self.ends: dict[int, list[int]] = {}  # turns that wait for the end of a job
        self.stands: dict[int, tuple[Sure, int]] = {}  # by turn: on whose end it stood, and how sure that was
        self.lined: dict[int, float] = {}  # by turn that had to wait for its time: since when it may start
        self.worst = Sure.LIMIT  # of all ends so far
        self.unmet: dict[int, int] = {}  # by turn: how many ends it still waits for
        self.caps = list(stage.caps.left)
        self.gives = {h.job: stage.caps.held(h.job) for h in stage.holdings if self.caps}
        self.later: list[tuple[float, int]] = []
        self.ram_short: set[int] = set()
        self.rooms: dict[int, list[int]] = {}  # by node: what its open devices have, most first, while nothing moves
        self.bar: Aside | None = None
        self._given = bar
        self._enter(left)

    def _enter(self, left: Mapping[int, float | None]) -> None:
        for h in self.stage.holdings:
            for pool in (h.lead, *h.others):
                self.there[pool] += 1
                self.shut[pool] += h.closes
            self.on_node[h.node] += 1
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
