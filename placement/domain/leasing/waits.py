"""Who waits for whom: requests that can never be granted as things stand, and what is ended so that they can.

Everything here is over what is declared and leased: memory that is merely measured comes back without anybody's help. A
job lets go of what it holds when all that it waits for has been granted, a step inside it when its own request has.
A request is stuck if it could not be granted even after everybody who can go on has let go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from placement.domain.leasing.allocator import Granted, place, possible
from placement.domain.leasing.leases import Part
from placement.domain.leasing.slots import Slot, supports
from placement.domain.world.asks import Ask, counts, shares
from placement.domain.world.devices import DeviceKey

Step = tuple[int, str]
"""A job and who inside it will let go: a step, else a process, else "", the job itself and what it leaves behind."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a job holds under one lease, since when (seconds); ``session`` is the step or process that will let go."""

    job: int
    parts: tuple[Part, ...]
    session: str = ""
    since: float = 0.0

    @property
    def step(self) -> Step:
        """Return who will let go of it."""
        return self.job, self.session


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request that waits. ``order``: the smaller came earlier. ``restartable``: its step can be run again.

    ``process``: in which the step runs. As long as the request waits neither of them lets go, nor does the job.
    """

    id: int
    job: int
    ask: Ask
    order: float
    session: str = ""
    restartable: bool = False
    process: str = ""

    @property
    def step(self) -> Step:
        """Return who asked."""
        return self.job, self.session

    @property
    def scopes(self) -> tuple[Step, ...]:
        """Return all who let go of nothing while this waits."""
        return tuple((self.job, name) for name in dict.fromkeys((self.session, self.process, "")))


@dataclass(frozen=True, slots=True)
class Scene:
    """All devices, and what is held and wanted on them at one moment."""

    slots: tuple[Slot, ...]
    held: tuple[Held, ...]
    wanted: tuple[Wanted, ...]
    served_by: dict[Ask, frozenset[DeviceKey]] = field(
        default_factory=dict, compare=False, repr=False
    )  # worked out once, for all

    def could_serve(self, ask: Ask) -> frozenset[DeviceKey]:
        """Return the devices of all sets that could serve an ask, were they idle."""
        if ask not in self.served_by:
            self.served_by[ask] = could_serve(ask, self.slots)
        return self.served_by[ask]

    def fits(self, ask: Ask, slots: Iterable[Slot]) -> bool:
        """Return whether an ask would be granted on these devices as they are; those that never could are not asked."""
        useful = self.could_serve(ask)
        return isinstance(place(ask, [slot for slot in slots if slot.device in useful]), Granted)

    def without(self, steps: Iterable[Step] = (), requests: Iterable[int] = ()) -> Scene:
        """Return the scene after these steps lost what they hold (they ask again), and these requests were refused."""
        gone, refused = {step for step in steps if step[1]}, set(requests)
        held = tuple(h for h in self.held if h.step not in gone)
        return replace(self, held=held, wanted=tuple(w for w in self.wanted if w.id not in refused))


def scene(slots: Iterable[Slot], held: Iterable[Held], wanted: Iterable[Wanted]) -> Scene:
    """Return the scene, its requests in the order in which they came, without those that no idle device could serve.

    What the slots say of leases does not count: only what is held by jobs is in anybody's way for ever.
    """
    idle = tuple(replace(s, leased=0, leases=0, alone=False, measured=None, measured_most=None, shut="") for s in slots)
    ordered = sorted(wanted, key=lambda w: (w.order, w.id))
    return Scene(idle, tuple(held), tuple(w for w in ordered if possible(w.ask, idle)))


def stuck(here: Scene) -> tuple[Wanted, ...]:
    """Return the requests that nobody's going on would serve."""
    left = here.wanted
    while True:
        waiting = {step for w in left for step in w.scopes}
        slots = loaded(here.slots, (h for h in here.held if h.step in waiting))
        fits = {ask: here.fits(ask, slots) for ask in dict.fromkeys(w.ask for w in left)}
        still = tuple(w for w in left if not fits[w.ask])
        if len(still) == len(left):
            return still
        left = still


def in_its_own_way(here: Scene, request: Wanted) -> tuple[Part, ...]:
    """Return what keeps a request from ever being granted, if that is what its own job holds; () if it is not.

    What its other steps and processes hold does not count: they end by themselves.
    """
    mine = [h for h in here.held if h.step in request.scopes]
    if not mine or here.fits(request.ask, loaded(here.slots, mine)):
        return ()
    useful = here.could_serve(request.ask)
    return tuple(part for h in mine for part in h.parts if part.device in useful)


def could_serve(ask: Ask, slots: Sequence[Slot]) -> frozenset[DeviceKey]:
    """Return the devices of all sets that could serve an ask, were they idle."""
    found: set[DeviceKey] = set()
    nodes = {slot.device[0] for slot in slots}
    for node in nodes:
        there = [slot for slot in slots if slot.device[0] == node and supports(ask, slot)]
        for count in counts(ask):
            if not possible(replace(ask, min_devices=count, max_devices=count), there):
                continue
            # Shares differ by a byte at most, so whoever takes the least one can stand in for another.
            least = shares(ask, count)[-1] if ask.even else ask.per_device_bytes
            if not ask.even and count == 1:
                least += ask.group_bytes
            found.update(slot.device for slot in there if slot.declared >= least)
    return frozenset(found)


def waits_for(here: Scene, request: Wanted, others: Sequence[Wanted]) -> tuple[Wanted, ...]:
    """Return those of ``others`` who must go on before something is let go of that is in the request's way."""
    useful = here.could_serve(request.ask)
    alone = {s.device for s in here.slots if request.ask.exclusive or s.exclusive_only}
    holders = {
        h.step
        for h in here.held
        if any(p.device in useful and (p.bytes or p.alone or p.device in alone) for p in h.parts)
    }
    return tuple(w for w in others if not holders.isdisjoint(w.scopes))


def loaded(slots: Sequence[Slot], held: Iterable[Held]) -> tuple[Slot, ...]:
    """Return the slots with what is held on them."""
    there: dict[DeviceKey, list[Part]] = {}
    for one in held:
        for part in one.parts:
            there.setdefault(part.device, []).append(part)
    return tuple(_with(slot, there[slot.device]) if slot.device in there else slot for slot in slots)


def _with(slot: Slot, parts: Sequence[Part]) -> Slot:
    leased = sum(part.bytes for part in parts)
    alone = slot.exclusive_only or any(part.alone for part in parts)
    return replace(slot, leased=slot.leased + leased, leases=slot.leases + len(parts), alone=slot.alone or alone)
