"""What runs of a workload asked for while they ran, and whether a job is held for what it will ask for.

A job is held only if something that it is known to ask for could not be served beside the requests that wait already,
and one of them waits for the same devices: started, it would wait, too, with what it holds in others' way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from calibration.domain.resources import gib
from placement.domain.leasing.allocator import Granted, place, possible
from placement.domain.leasing.slots import Slot, accepts
from placement.domain.leasing.waits import could_serve
from placement.domain.world.asks import Ask
from placement.domain.world.devices import DeviceKey
from placement.domain.world.known_asks import Known, Pending
from placement.domain.world.text import names, seconds

STUCK_S = 600.0  # a request that waits longer holds nobody any more


@dataclass(frozen=True, slots=True)
class Pressure:
    """Why a job is held: what it will ask for, the requests in its way, on which devices, and until when at most.

    ``need`` is the bytes on each device, ``room`` the most that one of the devices has left now.
    """

    ask: Ask
    requests: tuple[int, ...]
    jobs: tuple[int, ...]
    devices: tuple[str, ...]
    need: int
    room: int
    until: float

    def sentence(self, now: float) -> str:
        """Return what it will ask for, who waits there, and when it is let through all the same."""
        who = names([f"#{job}" for job in self.jobs]) or "others"
        waits = "waits" if len(self.jobs) == 1 else "wait"
        return (
            f"Runs like this one ask for {gib(self.need, self.room)} on {names(self.devices)} later; "
            f"{gib(max(0, self.room), self.need)} are left there, and {who} {waits} for it already. "
            f"That holds this one for {seconds(max(0.0, self.until - now))} more at most."
        )


def pressures(
    known: Iterable[Known],
    waiting: Sequence[Pending],
    slots: Iterable[Slot],
    now: float,
    node: str | None = None,
    stuck_s: float = STUCK_S,
) -> tuple[Pressure, ...]:
    """Return why a job is held on ``node`` (None: on any); () where it is not.

    ``slots`` are the devices as they would be with the job started. Of the requests those that fit now are served
    first; the others take nothing that is there. One that waits longer than ``stuck_s`` seconds holds nobody.
    """
    there = tuple(slot for slot in slots if node is None or slot.device[0] == node)
    fresh = [one for one in waiting if now - one.since < stuck_s]
    if not fresh:
        return ()
    left = _served(there, fresh)
    found = []
    for one in known:
        ask = replace(one.ask, node=node)
        if isinstance(place(ask, left), Granted) or not possible(ask, there):
            continue
        pressure = _pressure(ask, fresh, there, left, stuck_s)
        if pressure is not None:
            found.append(pressure)
    return tuple(found)


def _served(slots: Sequence[Slot], waiting: Sequence[Pending]) -> tuple[Slot, ...]:
    """Return the devices once each of the requests that fits has been served, in their order."""
    left = {slot.device: slot for slot in slots}
    for one in waiting:
        answer = place(one.ask, left.values())
        if not isinstance(answer, Granted):
            continue
        for member in answer.members:
            slot = left[member.device]
            left[member.device] = replace(
                slot,
                leased=slot.leased + member.bytes,
                leases=slot.leases + 1,
                alone=slot.alone or one.ask.exclusive or slot.exclusive_only,
                measured=None if slot.measured is None else slot.measured - member.bytes,
            )
    return tuple(left.values())


def _pressure(
    ask: Ask, waiting: Sequence[Pending], slots: Sequence[Slot], left: Sequence[Slot], stuck_s: float
) -> Pressure | None:
    """Return who waits for the same devices; None where nobody does: then it is not their matter."""
    need = _least(ask)
    wanted = {d for d in could_serve(ask, slots) if not _ready(ask, left, d, need)}
    rivals = [one for one in waiting if wanted & could_serve(one.ask, slots)]
    if not rivals:
        return None
    shared = wanted & frozenset[DeviceKey]().union(*(could_serve(one.ask, slots) for one in rivals))
    there = [slot for slot in left if slot.device in shared]
    return Pressure(
        ask=ask,
        requests=tuple(one.id for one in rivals),
        jobs=tuple(dict.fromkeys(one.job for one in rivals if one.job is not None)),
        devices=tuple(slot.name for slot in there),
        need=need,
        room=max(slot.room for slot in there),
        until=max(one.since for one in rivals) + stuck_s,
    )


def _ready(ask: Ask, slots: Sequence[Slot], device: DeviceKey, need: int) -> bool:
    return any(slot.device == device and accepts(ask, slot, need) for slot in slots)


def _least(ask: Ask) -> int:
    """Return the bytes on each device where the ask has most devices: the least that one could be asked for."""
    return -(-ask.group_bytes // ask.max_devices) + ask.per_device_bytes
