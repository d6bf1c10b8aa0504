"""Devices as the allocator sees them, and whether several of them could ever be granted to a running job."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from placement.domain.admission import checks
from placement.domain.admission.demands import at_most
from placement.domain.admission.inside import Never, lasting, over_quota, without
from placement.domain.admission.places import Board, Place
from placement.domain.leasing.allocator import Granted, Impossible, place
from placement.domain.leasing.slots import Slot
from placement.domain.world.asks import Ask
from placement.domain.world.conditions import Quota
from placement.domain.world.devices import Backend, Kind
from placement.domain.world.requests import Exclusive, Gpu, Request
from placement.domain.world.snapshot import Charge, Running, Snapshot


def slots(board: Board, node: str, devices: Collection[str]) -> tuple[Slot, ...]:
    """Return these devices of a node as the allocator sees them."""
    places = board.places(Request(Gpu.ONE, node=node, among=frozenset(devices)))
    return tuple(_slot(board, one, _shut(board, one)) for one in places)


def _slot(board: Board, at: Place, shut: str) -> Slot:
    device, here = at.device, board.on_place(at)
    assert device is not None
    ledger = board.ledger(device.pool, device.measurable)
    return Slot(
        device=(at.node.name, device.uuid),
        id=device.index,
        kind=Kind(device.kind.lower()),
        backends=tuple(Backend(word.lower()) for word in device.backends),
        declared=device.pool.declared,
        leased=ledger.leased,
        leases=len(here),
        alone=any(r.exclusive is Exclusive.DEVICE for r in here),
        measured=ledger.measured(0) if device.measurable else None,
        measured_most=at_most(ledger, 0) if device.measurable else None,
        exclusive_only=device.exclusive_only,
        holders=tuple(f"#{job}" for job, _ in ledger.leases),
        users=tuple(f"#{job}" for job, _ in ledger.growing),
        shut=shut,
    )


def _shut(board: Board, at: Place) -> str:
    """Return why nothing new starts on a device, "" where it may."""
    device = at.device
    assert device is not None
    asked = [*checks.standing(board, at), checks.reading(board, device.pool, device)]
    against = next((check.sentence for check in asked if not check.ok), "")
    if not against and any(r.cold for r in board.on_place(at)):
        against = "a first run is settling there"
    if not against and board.alone_on(at.node.name):
        against = f"somebody has {at.node.name} alone"
    return against.rstrip(".")


def least(ask: Ask) -> int:
    """Return the fewest bytes that an ask takes, over all of its devices."""
    return ask.group_bytes + ask.per_device_bytes * ask.min_devices


def never(
    snapshot: Snapshot,
    ask: Ask,
    devices: Collection[str],
    job: Running,
    quota: Quota | None = None,
    others: Mapping[str, int] = MappingProxyType({}),
) -> Never | None:
    """Return why an ask can never be granted to a running job: on idle devices, or beside what it holds itself.

    ``others`` as in ``inside.never``.
    """
    empty = Board(replace(snapshot, running=()))
    answer = place(ask, _idle(slots(empty, job.node, devices)))
    if isinstance(answer, Impossible):
        lines = tuple(f"{most.name} can give at most {most.bytes:,} bytes" for most in answer.devices)
        return Never("impossible", f"Can never be granted. {answer.sentence}", lines)
    mine = (without(r, others) for r in snapshot.running if r.job == job.job and not r.unheld)
    own = [_lasting(r) for r in mine if r is not None]
    refused = over_quota(own, quota, job.job, least(ask))
    if refused is not None:
        return refused
    beside = Board(replace(snapshot, running=tuple(own)))
    told = place(ask, _idle(slots(beside, job.node, devices)))
    if isinstance(told, Granted):
        return None
    return Never("waits_for_itself", f"#{job.job} would wait for itself. {told.sentence}", (told.sentence,))


def _idle(found: tuple[Slot, ...]) -> tuple[Slot, ...]:
    """Return the devices as they are with nobody else there: what they can give at most, less what is leased."""
    return tuple(
        replace(slot, shut="", measured=None if slot.measured_most is None else slot.measured_most - slot.leased)
        for slot in found
    )


def _lasting(running: Running) -> Running:
    """Return a job with what it will not give back before it lets go."""
    kept = {
        pool: Charge(n := lasting(running, pool), n, charge.used, n, promise=True)
        for pool, charge in running.charges.items()
    }
    return replace(running, charges=kept, cold=False)
