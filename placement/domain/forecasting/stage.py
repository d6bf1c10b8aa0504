"""The machine as plain numbers, so that a queue can be played forward on it many times."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from placement.domain.admission import checks
from placement.domain.admission.decision import Code
from placement.domain.admission.demands import Demand, Part
from placement.domain.admission.places import Board, Place, in_force
from placement.domain.forecasting.caps import Caps, Taken
from placement.domain.forecasting.companions import Spot, grouped, leads, shape
from placement.domain.planning.future import frees
from placement.domain.world.durations import Length, Sure, expected, overdue
from placement.domain.world.requests import Exclusive, Gpu
from placement.domain.world.reservations import Ledger
from placement.domain.world.snapshot import Charge, Device, Pool, Running, Waiting

SETTLES = 180.0  # seconds after which an unknown run is taken to show how much it needs
Back = tuple[tuple[int, int, int], ...]  # (pool, measured bytes, booked bytes)
Event = tuple[float, int, int, int, int, Back, Sure, bool, bool, tuple[int, ...]]
"""When, whose, whether it leaves (1, else -1), lead, node, what comes back, how sure, what it opens: device, node; and
the pools of a group beside its lead."""
MOST_KINDS = 48  # of more different demands, groups that are much alike are played as one
ENDLESS_ROOM = 1 << 62  # of a pool that nobody can measure: its declaration decides alone


Need = tuple[int, int, Spot]  # bytes, the number of the demand, where


@dataclass(frozen=True, slots=True)
class Holding:
    """One running job: what each of its pools gets back at its end, as (pool, measured, booked) in bytes."""

    job: int
    node: int
    lead: int
    back: Back
    length: Length
    elapsed: float
    promised: float  # seconds from now to the end that the plan counts with; negative where it is overdue
    closes: bool  # nobody may join its device
    closes_node: bool
    settles: tuple[Back, float] | None  # what its devices get back by then, and when
    others: tuple[int, ...] = ()  # pools of a group beside its lead


@dataclass(frozen=True, slots=True)
class Turn:
    """One waiting job in its turn. ``kind`` numbers its demand, ``promised`` is what the gate takes it to last."""

    job: int
    kind: int
    length: Length
    promised: float | None
    earliest: float = 0.0  # seconds from now before which it may not start
    after: tuple[int, ...] = ()  # jobs that have to end first


@dataclass(frozen=True, slots=True)
class Start:
    """One start in a play, seconds from now. ``waited``: jobs that ended there just before."""

    at: float
    spot: Spot
    sure: Sure
    waited: tuple[int, ...]
    others: tuple[int, ...] = ()


class Stage:
    """Pools as numbers, who holds what of them, and where each demand could go."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.device_of: dict[int, Device] = {}
        self.devices: list[int] = []  # by node: how many have memory of their own
        self.only: set[int] = set()  # pools of devices that are for one job at a time
        self.free: list[int] = []
        self.booked: list[int] = []
        self.node_of: list[int] = []
        self.holdings: list[Holding] = []
        self.kinds: list[dict[int, Spot]] = []
        self.by_need: list[list[Need]] = []  # by pool, least need first
        self.opens: dict[int, float] = {}  # pools behind a hold that ends by itself, in seconds from now
        self.shut: dict[int, str] = {}  # why nothing starts at a demand's places
        self._numbers: dict[tuple[str, str], int] = {}
        self._kinds: dict[tuple[Demand, Taken], int] = {}
        self._alike: dict[tuple[tuple[object, ...], Taken], int] = {}
        self.caps = Caps(r for node in board.nodes for r in board.on_node(node))
        self.takes: list[Taken] = []  # by kind
        self._state: dict[tuple[str, int, str], tuple[str, float]] = {}
        self._nodes = {name: number for number, name in enumerate(board.nodes)}
        for node in board.nodes.values():
            pools = [(d.pool, d.measurable) for d in node.devices if d.pool.pool != node.ram.pool]
            for pool, measurable in [(node.ram, True), *pools]:
                self._add(board.ledger(pool, measurable))
            for device in node.devices:
                if device.pool.pool != node.ram.pool:
                    number_of = self._numbers[node.name, device.pool.pool]
                    self.device_of[number_of] = device
                    if device.exclusive_only:
                        self.only.add(number_of)
            self.devices.append(len(pools))
            for running in board.on_node(node.name):
                self.holdings.append(self._holding(running))

    def _add(self, ledger: Ledger) -> None:
        room = ledger.measured(0) if ledger.measurable else ENDLESS_ROOM
        self._numbers[ledger.pool.node, ledger.pool.pool] = len(self.free)
        self.free.append(-1 if room is None else room)
        self.booked.append(ledger.booked)
        self.by_need.append([])
        self.node_of.append(self._nodes[ledger.pool.node])

    def _holding(self, running: Running) -> Holding:
        board, node = self.board, self.board.nodes[running.node]
        back = []
        for pool, charge in running.charges.items():
            number = self._numbers.get((running.node, pool))
            if number is None:
                continue
            own = node.ram if pool == node.ram.pool else next(d.pool for d in node.devices if d.pool.pool == pool)
            measured = frees(board.ledger(own))[running.job] + charge.growth
            back.append((number, measured, charge.held))
        ram = self._numbers[running.node, node.ram.pool]
        mine = [self._numbers[running.node, uuid] for uuid in running.devices if (running.node, uuid) in self._numbers]
        lead = mine[0] if mine else ram
        whole, _ = expected(running.limit, running.learned, board.knobs)
        settles = None
        only = any(d.uuid in running.devices and d.exclusive_only for d in node.devices)
        alone = running.exclusive is Exclusive.DEVICE or only  # then nobody joins it, settled or not
        if running.cold and not alone and running.device in running.charges:
            gives = tuple(
                (self._numbers[running.node, uuid], amount, amount)
                for uuid in running.devices
                if uuid in running.charges and (running.node, uuid) in self._numbers
                for amount in [_unneeded(running.charges[uuid])]
            )
            ran = running.elapsed  # one that has not settled by then takes a share longer, and then another
            until = SETTLES if ran < SETTLES else overdue(ran, SETTLES, board.knobs.overdue_share)
            settles = gives, until - ran
        return Holding(
            job=running.job,
            node=self._nodes[running.node],
            lead=lead,
            back=tuple(back),
            length=Length(running.limit, running.learned, running.seen),
            elapsed=running.elapsed,
            promised=whole - running.elapsed,
            closes=running.cold or alone,
            closes_node=running.exclusive is Exclusive.MACHINE,
            settles=settles,
            others=tuple(mine[1:]),
        )

    def number(self, pool: Pool) -> int:
        """Return the number of a pool."""
        return self._numbers[pool.node, pool.pool]

    def kind(self, demand: Demand, takes: Taken = ()) -> int:
        """Return the number of a demand under its caps; its places are found when it is first asked for."""
        key = demand, takes
        found = self._kinds.get(key)
        if found is None and demand.request.gpu is Gpu.GROUP:
            found = self._much_alike(demand, takes)
        if found is None:
            found = self._kinds[key] = len(self.kinds)
            self.kinds.append({})
            self.takes.append(takes)
            self._find(demand)
            self._alike.setdefault((shape(demand), takes), found)
        return found

    def _much_alike(self, demand: Demand, takes: Taken) -> int | None:
        """Return the number of a group much like this one, where there are more different ones than are played."""
        if len(self.kinds) < MOST_KINDS:
            return None
        found = self._alike.get((shape(demand), takes))
        if found is None or self.shut.get(found):
            return None
        self._kinds[demand, takes] = found
        return found

    def _find(self, demand: Demand) -> None:
        number = len(self.kinds) - 1
        why = ""
        group = demand.request.gpu is Gpu.GROUP
        places = leads(self.board, demand.request) if group else self.board.places(demand.request)
        found = []
        for place in places:
            said, from_s = self._standing(place)
            if said:
                why = why or said
                continue
            parts = self.board.parts(demand, place)
            needs = [p.least if p.cold or p.need is None else p.need for p in parts]
            if any(p.at_most is not None and n > p.at_most for p, n in zip(parts, needs, strict=True)):
                continue
            found.append(self._spot(demand, place, parts, needs))
            if from_s:
                self.opens[found[-1].lead] = from_s
        for spot in grouped(found, demand.request.min_devices) if group else found:
            self.kinds[number][spot.lead] = spot
            insort(self.by_need[spot.lead], (spot.need, number, spot))
        if not self.kinds[number]:
            self.shut[number] = why or "Nothing that could serve it is declared."

    def _spot(self, demand: Demand, place: Place, parts: Sequence[Part], needs: Sequence[int]) -> Spot:
        pools = [self._numbers[p.pool.node, p.pool.pool] for p in parts]
        kept = [p.ledger.back.kept for p in parts]
        wanted = [n + max(0, p.margin - k) for n, p, k in zip(needs, parts, kept, strict=True)]
        only = any(device.exclusive_only for device in place.devices)
        return Spot(
            place=place,
            node=self._nodes[place.node.name],
            lead=pools[0],
            need=wanted[0],
            ram=pools[1] if len(pools) > 1 else -1,
            ram_need=wanted[1] if len(pools) > 1 else 0,
            alone=demand.request.exclusive is Exclusive.DEVICE or only,
            whole=demand.request.exclusive is Exclusive.MACHINE,
            cold=parts[0].all,
        )

    def _standing(self, place: Place) -> tuple[str, float]:
        """Return what shuts a place that no job's end opens ("" for nothing), and when a hold there ends by itself."""
        key = place.order
        if key not in self._state:
            self._state[key] = self._ask(place)
        return self._state[key]

    def _ask(self, place: Place) -> tuple[str, float]:
        wall = self.board.snapshot.wall
        found = [*checks.standing(self.board, place), checks.reading(self.board, place.node.ram, None)]
        found += [checks.reading(self.board, device.pool, device) for device in place.devices]
        holds = [place.node.hold, *(device.hold for device in place.devices)]
        until = [h.until for h in holds if h is not None and in_force(h, wall)]
        from_s = max((u - wall for u in until if u is not None), default=0.0)
        for check in found:
            if not check.ok and (check.code is not Code.HELD or None in until):
                return check.sentence, 0.0
        return "", from_s


def _unneeded(charge: Charge) -> int:
    """Return what a first run is taken to give back when it settles: never of what it was promised while it ran."""
    own = max(0, (charge.used or 0) - charge.promised)
    return max(0, charge.held - charge.promised - 2 * own)


def first_events(stage: Stage, left: Mapping[int, float | None]) -> Iterator[tuple[Event, float | None]]:
    """Yield the ends of those that run, each with the second that was promised, and what opens or settles by itself."""
    for h in stage.holdings:
        end, back, closes, sure = left.get(h.job), h.back, h.closes, h.length.sure(h.elapsed)
        if end is None:
            continue
        if h.settles is not None and h.settles[1] < end:
            gives, at = h.settles
            less = {pool: amount for pool, amount, _ in gives}
            back = tuple((p, f - less.get(p, 0), b - less.get(p, 0)) for p, f, b in back)
            yield (at, 0, -1, h.lead, h.node, gives, Sure.GUESS, True, False, h.others), None
            closes = False
        yield (end, h.job, 1, h.lead, h.node, back, sure, closes, h.closes_node, h.others), h.promised
    for pool, second in stage.opens.items():
        yield (second, 0, -1, pool, stage.node_of[pool], (), Sure.LIMIT, True, False, ()), None


def turns(stage: Stage, queue: Iterable[tuple[Waiting, Demand]]) -> list[Turn]:
    """Return the waiting jobs as turns, in the order given."""
    kinds: dict[int, int] = {}  # by identity first, as equal demands are mostly the same object
    found = []
    for waiting, demand in queue:
        kind = kinds.get(id(demand)) if waiting.conditions is None else None
        turn = _turn(stage, waiting, demand, kind)
        if waiting.conditions is None:
            kinds[id(demand)] = turn.kind
        found.append(turn)
    return found


def _turn(stage: Stage, waiting: Waiting, demand: Demand, kind: int | None) -> Turn:
    by = waiting.conditions
    length = Length(waiting.limit, waiting.learned, waiting.seen)
    promised = waiting.limit if waiting.limit is not None else waiting.learned
    if by is None:
        return Turn(waiting.job, stage.kind(demand) if kind is None else kind, length, promised)
    return Turn(
        job=waiting.job,
        kind=stage.kind(demand, stage.caps.of(waiting)),
        length=length,
        promised=promised,
        earliest=0.0 if by.not_before is None else max(0.0, by.not_before - stage.board.snapshot.wall),
        after=tuple(tie.on for tie in by.after if not tie.met),
    )


__all__ = ["SETTLES", "Back", "Event", "Holding", "Need", "Spot", "Stage", "Start", "Turn", "first_events", "turns"]
