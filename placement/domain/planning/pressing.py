"""The gate's question whether what a job will ask for while it runs could be served beside what others wait for.

Asked only of jobs of which such requests are known, and only while a running job waits for one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from placement.domain.admission.decision import Check, Code
from placement.domain.admission.demands import Part
from placement.domain.admission.gate import Aside
from placement.domain.admission.inside_groups import slots
from placement.domain.admission.places import Board, Place
from placement.domain.leasing.later import Pressure, pressures
from placement.domain.leasing.slots import Slot
from placement.domain.planning.bars import rank
from placement.domain.world.known_asks import Pending
from placement.domain.world.requests import Exclusive
from placement.domain.world.snapshot import Waiting

Needs = Sequence[tuple[str, int, int]]  # pool, bytes, margin


class Pressing:
    """The requests of running jobs that wait, as long as they do, against the board as it stands."""

    def __init__(self, board: Board) -> None:
        self.board = board
        there = {r.job for r in board.snapshot.running if not r.more}
        self._asked = tuple(_labelled(one) for one in board.snapshot.asked if one.job in there)
        self._slots: dict[str, tuple[Slot, ...]] = {}
        self._answers: dict[Hashable, Pressure | None] = {}
        self._version = board.version

    def served(self, waiting: Waiting) -> None:
        """Take a request that was granted off those that wait."""
        if waiting.inside:
            self._asked = tuple(one for one in self._asked if one.id != -waiting.job)

    def concerns(self, waiting: Waiting) -> bool:
        """Return whether there is anything to ask about the job."""
        return bool(waiting.later and self._asked) and not waiting.inside

    def holds(self, waiting: Waiting, place: Place, needs: Needs) -> Pressure | None:
        """Return why a job would better not start at a place where it has room, None where nothing is in its way."""
        first = rank(waiting, self.board.knobs.ageing_hours)
        before = tuple(one for one in self._asked if self._rank(one) < first)
        if not before or not waiting.later:
            return None
        if self._version != self.board.version:
            self._slots, self._answers, self._version = {}, {}, self.board.version
        needs = tuple(needs)
        alone = waiting.request.exclusive
        # Equal jobs share what is known of them: the same tuple, which the snapshot keeps for as long as this lives.
        key = id(waiting.later), tuple(one.id for one in before), place.order, needs, alone
        if key not in self._answers:
            there = self._started(place.node.name, {pool: size for pool, size, _ in needs}, alone)
            found = pressures(waiting.later, before, there, self.board.snapshot.wall, place.node.name)
            self._answers[key] = max(found, key=lambda one: one.until, default=None)
        return self._answers[key]

    def longest(self, waiting: Waiting, at: Sequence[tuple[Place, Needs]]) -> float:
        """Return for how many seconds at most a job is held that is at all of these places: the first one ends it."""
        found = [held.until for place, needs in at if (held := self.holds(waiting, place, needs)) is not None]
        return max(0.0, min(found, default=0.0) - self.board.snapshot.wall)

    def asking(self, waiting: Waiting, then: Aside | None) -> Aside | None:
        """Return the gate's question; where nothing is in the way ``then`` is asked."""
        if not self.concerns(waiting):
            return then

        def ask(place: Place, parts: tuple[Part, ...]) -> Check | None:
            held = self.holds(waiting, place, [(part.pool.pool, part.need or 0, part.margin) for part in parts])
            if held is None:
                return None if then is None else then(place, parts)
            wall = self.board.snapshot.wall
            figures: dict[str, int | float | str | None] = {
                "need": held.need,
                "room": max(0, held.room),
                "devices": ", ".join(held.devices),
                "waits": ", ".join(f"#{job}" for job in held.jobs),
                "in": max(0.0, held.until - wall),
            }
            return Check(Code.PLACEMENT_PRESSURE, False, held.sentence(wall), figures)

        return ask

    def _rank(self, one: Pending) -> tuple[int, int, bool, int]:
        """Return a request's place in the queue, as ``bars.rank`` does."""
        waited = max(0.0, self.board.snapshot.wall - one.since)
        raised = int(waited / (self.board.knobs.ageing_hours * 3600))
        return -(one.priority + raised), one.order, False, one.id

    def _started(self, node: str, needs: dict[str, int], alone: Exclusive) -> tuple[Slot, ...]:
        """Return the devices of a node as they would be with the job started."""
        pools = {device.uuid: device.pool.pool for device in self.board.nodes[node].devices}
        if node not in self._slots:
            self._slots[node] = slots(self.board, node, pools)
        found = []
        for slot in self._slots[node]:
            uuid = slot.device[1]
            labels = frozenset(one.ask.label for one in self._asked if one.ask.label and uuid in one.devices)
            slot = replace(slot, labels=labels)
            if (size := needs.get(pools[uuid])) is not None:
                slot = replace(
                    slot,
                    leased=slot.leased + size,
                    leases=slot.leases + 1,
                    measured=None if slot.measured is None else slot.measured - size,
                    alone=slot.alone or alone is not Exclusive.NO or slot.exclusive_only,
                )
            found.append(slot)
        return tuple(found)


def _labelled(one: Pending) -> Pending:
    """Return a request that can go on its own devices alone."""
    return replace(one, ask=replace(one.ask, label=f"request {one.id}"))
