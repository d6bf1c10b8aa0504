"""Why an ask is not served: what stands against each device, and the sentences that people read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from calibration.domain.resources import gib
from placement.domain.leasing.matching import Entry, by_room, match
from placement.domain.leasing.slots import Ledger, Most, Obstacle, Rule, Slot, refused_by, supports
from placement.domain.world.asks import Ask, counts, shares
from placement.domain.world.text import NAMED, less, names


def unevenly(ask: Ask) -> Ask:
    """Return the same ask with its bytes divided by room."""
    return replace(ask, even=False)


def at_most(ask: Ask, slots: Sequence[Slot]) -> tuple[Most, ...]:
    """Return each device with the room it has when it is idle."""
    many = _many(slots)
    return tuple(Most(slot.device, _name(slot, many), slot.most, supports(ask, slot)) for slot in slots)


def obstacles(ask: Ask, slots: Sequence[Slot]) -> tuple[Obstacle, ...]:
    """Return what stands against each device that could take a share, for the number of devices that comes nearest."""
    return _nearest(ask, slots).against


def unavailable(ask: Ask, slots: Sequence[Slot]) -> str:
    """Return what is needed, how many devices have it now, and who is in the way."""
    near = _nearest(ask, slots)
    what = _devices(ask, near.count)
    if near.count == 1:
        start = f"Needs {_need(near.need, ask)} on {what}"
    elif ask.even:
        has = f"{near.ready or 'none'} {'have' if near.ready > 1 else 'has'}"
        start = f"Needs {_need(near.need, ask)} on each of {what}, and {has} it now"
    else:
        together = ask.group_bytes + near.count * ask.per_device_bytes
        start = f"Needs {_need(together, ask)} on {what} together, by their room"
    return f"{start}: {_several([told(o) for o in near.against])}."


def told(o: Obstacle) -> str:
    """Return what stands against one device, with its figures and whoever is in the way."""
    who = names(o.holders)
    if o.rule is Rule.SHUT:
        return f"{o.name} takes nothing new ({o.why})"
    if o.rule is Rule.HELD_ALONE:
        return f"{o.name} is held by {who or 'somebody'} alone"
    if o.rule is Rule.NOT_EMPTY:
        why = o.why or "is wanted alone"
        return f"{o.name} {why}, and {who or 'somebody'} {'are' if len(o.holders) > 1 else 'is'} there"
    _, left = less(o.need, o.bound.room)
    by = "" if not o.bound.by else f", {gib(o.bound.by)} less than"
    if o.rule is Rule.BOOKED:
        beside = f" beside {who}" if who else ""
        other = "; no probe reads it" if o.bound.by is None else by and f"{by} is measured free"
        return f"{o.name} has {left} left of what is declared{beside}{other}"
    return f"{o.name} has {left} of measured room{f' beside {who}' if who else ''}{by and f'{by} is booked free'}"


def impossible(ask: Ask, slots: Sequence[Slot], uneven: bool) -> str:
    """Return what was asked and what each device could give at most; ``uneven``: it would fit if divided by room."""
    many = _many(slots)
    serving = [slot for slot in slots if supports(ask, slot)]
    if not serving:
        there = _amounts(slots, many, None) if slots else "none at all"
        return f"Asked for {_asked(ask, None)}{_where(ask)}, and no declared device is that; there is {there}."
    least = min(shares(ask, count)[0] for count in counts(ask))
    there = _amounts(serving, many, least)
    together = "; a group stays on one node" if many and ask.max_devices > 1 else ""
    uneven_fits = "; divided by room (even=False) it would fit" if uneven else ""
    asked = _asked(ask, max(slot.most for slot in serving))
    return f"Asked for {asked}{_where(ask)}; at most there is {there}{together}{uneven_fits}."


@dataclass(frozen=True, slots=True)
class _Near:
    """A number of devices of one node that could serve the ask: the largest share, who has it, who does not."""

    count: int
    need: int
    ready: int
    against: tuple[Obstacle, ...]


def _nearest(ask: Ask, slots: Sequence[Slot]) -> _Near:
    """Return the number of devices that lacks fewest; of equals the first that is tried."""
    many = _many(slots)
    best: _Near | None = None
    for count in counts(ask):
        for node in dict.fromkeys(slot.device[0] for slot in slots):
            needs = _needs(ask, [slot for slot in slots if slot.device[0] == node and supports(ask, slot)], count)
            if not needs:
                continue
            against = tuple(o for slot, need in needs if (o := _obstacle(ask, slot, need, many)) is not None)
            near = _Near(count, max(need for _, need in needs), len(needs) - len(against), against)
            if best is None or near.count - near.ready < best.count - best.ready:
                best = near
    assert best is not None, "only an ask that idle devices could serve is explained"
    return best


def _needs(ask: Ask, slots: Sequence[Slot], count: int) -> list[tuple[Slot, int]]:
    """Return what each device that could take part would give, nothing where the idle node cannot serve so many.

    An uneven ask is told of the roomiest devices alone, with the shares they would give when idle.
    """
    entries: list[Entry] = sorted((slot.most, slot.id, slot.device[1], slot) for slot in slots)
    if match(entries, ask, count) is None:
        return []
    if not ask.even:
        return [(entry[3], share) for entry, share in by_room(entries[-count:], ask, count) or ()]
    largest, smallest = (shares(ask, count)[i] for i in (0, -1))
    return [(s, largest if s.most >= largest else smallest) for s in slots if s.most >= smallest]


def _obstacle(ask: Ask, slot: Slot, need: int, many: bool) -> Obstacle | None:
    rule, who = refused_by(ask, slot), slot.holders
    bound = slot.bound
    if rule is None:
        if need <= bound.room:
            return None
        rule = Rule.BOOKED if bound.ledger is Ledger.BOOKED else Rule.MEASURED
        who = slot.holders if rule is Rule.BOOKED else slot.users
    why = "takes one job at a time" if rule is Rule.NOT_EMPTY and not ask.exclusive else slot.shut
    return Obstacle(slot.device, _name(slot, many), rule, need, bound, who, why)


def _devices(ask: Ask, count: int) -> str:
    """Return ``a CUDA GPU``, ``2 CUDA GPUs``, ``the CUDA GPU 3``."""
    kind = f"{ask.backend.upper()} {ask.kind.upper()}"
    if ask.device_id is not None:
        return f"the {kind} {ask.device_id}"
    return f"{'an' if kind[0] in 'OX' else 'a'} {kind}" if count == 1 else f"{count} {kind}s"


def _need(need: int, ask: Ask) -> str:
    return (gib(need) if need else "no memory") + (", alone," if ask.exclusive else "")


def _asked(ask: Ask, against: int | None) -> str:
    """Return the whole ask, with the share that each number of devices would have to give."""
    tried = list(counts(ask))
    if len(tried) == 1:
        devices = _devices(ask, tried[0])
    else:
        devices = f"{ask.min_devices} to {_devices(ask, ask.max_devices)}"
    total = ask.group_bytes + (ask.per_device_bytes * tried[0] if len(tried) == 1 else 0)
    parts = [gib(total, against if ask.max_devices == 1 else None)] if total else []
    if ask.per_device_bytes and len(tried) > 1:
        parts.append(f"{gib(ask.per_device_bytes)} each")
    what = f"{' and '.join(parts) or 'no memory'} on {devices}{', alone' if ask.exclusive else ''}"
    if ask.max_devices == 1:
        return what
    if not ask.even:
        return f"{what}, divided by room"
    each = [f"{gib(shares(ask, n)[0])} on each of {n}" for n in tried]
    return f"{what}, which is {each[0]}" + (f", or {each[-1]}" if len(each) > 1 else "")


def _where(ask: Ask) -> str:
    label = f" labelled {ask.label}" if ask.label is not None else ""
    return label + (f" of node {ask.node}" if ask.node is not None else "")


def _amounts(slots: Sequence[Slot], many: bool, against: int | None) -> str:
    """Return ``3.7 GiB on gpu0 and 22 GiB on each of 8 devices``: devices with the same most together."""
    groups: dict[int, list[str]] = {}
    for slot in slots:
        groups.setdefault(slot.most, []).append(_name(slot, many))
    told = []
    for most, called in sorted(groups.items()):
        devices = names(called) if len(called) <= NAMED else f"{len(called)} devices"
        told.append(f"{gib(most, against)} on {'each of ' if len(called) > 1 else ''}{devices}")
    return _several(told, "and", 8)


def _several(parts: Sequence[str], joint: str = ";", most: int = NAMED) -> str:
    """Return the first parts, and how many more there are."""
    shown = list(parts[:most])
    if len(parts) > most:
        shown.append(f"{len(parts) - most} more devices" if len(parts) - most > 1 else "1 more device")
    if joint == ";":
        return "; ".join(shown)
    return f" {joint} ".join((", ".join(shown[:-1]), shown[-1])) if len(shown) > 1 else "".join(shown)


def _many(slots: Sequence[Slot]) -> bool:
    """Return whether the devices are on more than one node, so that their names need it."""
    return len({slot.device[0] for slot in slots}) > 1


def _name(slot: Slot, many: bool) -> str:
    return f"{slot.name} of {slot.device[0]}" if many else slot.name
