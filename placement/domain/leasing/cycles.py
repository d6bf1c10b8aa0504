"""Ending wait cycles: the step whose loss costs least is run again, else the youngest request is refused.

A cycle is kept as it was, for a page to draw: who held what, who wanted what, and what was done about it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from placement.domain.leasing.leases import Part
from placement.domain.leasing.waits import Scene, Step, Wanted, in_its_own_way, stuck, waits_for
from placement.domain.world.asks import Ask
from placement.domain.world.devices import DeviceKey

SPARED = 20  # of so many steps it is asked whether they are needed, one by one
SEARCHED = 8  # steps among which the cheapest set is searched through; of more they are taken one by one


@dataclass(frozen=True, slots=True)
class Link:
    """One request of a cycle: what its step and its job hold, which devices could serve it, whom it waits for."""

    request: int
    job: int
    session: str
    ask: Ask
    holds: tuple[Part, ...]
    devices: tuple[DeviceKey, ...]
    waits_for: tuple[int, ...]  # requests


@dataclass(frozen=True, slots=True)
class Victim:
    """A step that loses what it holds and is run again; ``bytes`` on devices that help, ``loss`` in byte seconds."""

    job: int
    session: str
    request: int
    bytes: int
    loss: float

    @property
    def step(self) -> Step:
        return self.job, self.session


@dataclass(frozen=True, slots=True)
class Cycle:
    """Requests that waited for each other; ``ring`` are those of one round, in its order. One link: for itself."""

    links: tuple[Link, ...]
    ring: tuple[int, ...]
    names: dict[DeviceKey, str]
    revoked: tuple[Victim, ...] = ()
    refused: tuple[int, ...] = ()

    @property
    def refusal(self) -> str:
        """Return the code of a request refused here."""
        return "waits_for_itself" if len(self.ring) < 2 else "cycle"


def resolve(here: Scene, now: float) -> tuple[Cycle, ...]:
    """Return the cycles, with what ends them: after that nothing is stuck, and nobody is ended who need not be."""
    found: list[Cycle] = []
    after = here
    while left := stuck(after):
        done = _of_itself(after, left) or _next(after, left, now)
        found.append(done)
        after = after.without([v.step for v in done.revoked], done.refused)
    return _needed(here, found)


def refused_at_once(here: Scene, request: Wanted) -> Cycle | None:
    """Return why a new request can never be granted beside what its own job holds; None if it can."""
    if not in_its_own_way(here, request):
        return None
    return _cycle(here, [request], refused=(request.id,))


def _of_itself(here: Scene, left: Sequence[Wanted]) -> Cycle | None:
    return next((found for w in left if (found := refused_at_once(here, w)) is not None), None)


def _next(here: Scene, left: Sequence[Wanted], now: float) -> Cycle:
    """Return one cycle that waits for nobody outside itself, with what ends it."""
    among = _knot({w.id: [v.id for v in waits_for(here, w, left)] for w in left})
    members = [w for w in left if w.id in among]
    victims = _cheapest(here, members, now)
    if victims:
        return _cycle(here, members, revoked=victims)
    return _cycle(here, members, refused=(members[-1].id,))


def _cheapest(here: Scene, members: Sequence[Wanted], now: float) -> tuple[Victim, ...]:
    """Return the steps to be run again; () where no set of them would let all members go on."""
    candidates = [v for w in members if w.restartable and w.session and (v := _victim(here, w, members, now)).bytes]
    if not _goes_on(here, members, candidates):
        return ()
    if len(candidates) <= SEARCHED:
        return next(chosen for chosen in _cheapest_first(candidates) if _goes_on(here, members, chosen))
    ordered = sorted(candidates, key=lambda v: v.loss)
    enough = bisect_left(range(len(ordered)), True, key=lambda n: _goes_on(here, members, ordered[: n + 1]))
    chosen = ordered[: enough + 1]
    for victim in chosen[-2 : -2 - SPARED : -1]:  # the last is needed; of the others the dearest is spared first
        fewer = [v for v in chosen if v is not victim]
        if _goes_on(here, members, fewer):
            chosen = fewer
    return tuple(chosen)


def _cheapest_first(candidates: Sequence[Victim]) -> Iterator[tuple[Victim, ...]]:
    """Yield all sets: the least loss, then the fewest, then those who came last."""
    place = {victim: number for number, victim in enumerate(candidates)}
    sets = [some for size in range(1, len(candidates) + 1) for some in combinations(candidates, size)]
    return iter(sorted(sets, key=lambda some: (sum(v.loss for v in some), len(some), [-place[v] for v in some[::-1]])))


def _victim(here: Scene, request: Wanted, members: Sequence[Wanted], now: float) -> Victim:
    """Return what it would cost to run a step again: only bytes where another of the cycle could use them."""
    useful = frozenset[DeviceKey]().union(*(here.could_serve(w.ask) for w in members if w is not request))
    size, loss = 0, 0.0
    for held in here.held:
        if held.step == request.step:
            helps = sum(part.bytes or part.alone for part in held.parts if part.device in useful)
            size += helps
            loss += helps * max(0.0, now - held.since)
    return Victim(request.job, request.session, request.id, size, loss)


def _goes_on(here: Scene, members: Sequence[Wanted], victims: Sequence[Victim]) -> bool:
    among = replace(here, wanted=tuple(members))  # a cycle waits for nobody outside itself
    return not stuck(among.without([v.step for v in victims]))


def _needed(here: Scene, found: list[Cycle]) -> tuple[Cycle, ...]:
    """Take back what a later step made needless: refusals first, then the dearest losses."""
    if len(found) < 2:
        return tuple(found)
    steps = {v.step: v.loss for cycle in found for v in cycle.revoked}
    refused = [number for cycle in found for number in cycle.refused]
    for number in refused[:SPARED]:
        if not stuck(here.without(steps, [n for n in refused if n != number])):
            refused.remove(number)
    for step in sorted(steps, key=lambda s: -steps[s])[:SPARED]:
        if not stuck(here.without([s for s in steps if s != step], refused)):
            del steps[step]
    kept = [
        replace(
            cycle,
            revoked=tuple(v for v in cycle.revoked if v.step in steps),
            refused=tuple(n for n in cycle.refused if n in refused),
        )
        for cycle in found
    ]
    return tuple(cycle for cycle in kept if cycle.revoked or cycle.refused)


def _cycle(
    here: Scene, members: Sequence[Wanted], revoked: tuple[Victim, ...] = (), refused: tuple[int, ...] = ()
) -> Cycle:
    names = {slot.device: slot.name for slot in here.slots}
    links = []
    for w in members:
        holds = tuple(p for h in here.held if h.step in w.scopes for p in h.parts)
        devices = tuple(s.device for s in here.slots if s.device in here.could_serve(w.ask))
        links.append(
            Link(w.id, w.job, w.session, w.ask, holds, devices, tuple(v.id for v in waits_for(here, w, members)))
        )
    last = revoked[0].request if revoked else refused[0] if refused else members[0].id
    return Cycle(tuple(links), _round({n.request: n.waits_for for n in links}, last), names, revoked, refused)


def _round(edges: dict[int, tuple[int, ...]], start: int) -> tuple[int, ...]:
    """Return a shortest way from a request back to itself, beginning there."""
    if start in edges[start] and len(edges) == 1:
        return (start,)
    ways: list[tuple[int, ...]] = [(start,)]
    seen = {start}
    for way in ways:
        for following in edges[way[-1]]:
            if following == start and len(way) > 1:
                return way
            if following not in seen:
                seen.add(following)
                ways.append((*way, following))
    return (start,)


def _knot(edges: dict[int, list[int]]) -> set[int]:
    """Return the requests of one cycle that waits for nobody outside itself: the one that the first leads to."""
    back: dict[int, list[int]] = {number: [] for number in edges}
    for number, following in edges.items():
        for other in following:
            back[other].append(number)
    start = next(iter(edges))
    while True:
        onward = _reached(edges, start)
        knot = (onward & _reached(back, start)) | {start}
        if onward <= knot:
            return knot
        start = min(onward - knot)


def _reached(edges: dict[int, list[int]], start: int) -> set[int]:
    found, todo = set[int](), [*edges[start]]
    while todo:
        if (following := todo.pop()) not in found:
            found.add(following)
            todo.extend(edges[following])
    return found
