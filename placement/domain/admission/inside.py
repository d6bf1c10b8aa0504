"""What a running job asks for besides what it started with: as the gate sees it, and what can never be.

A request counts like a job in the queue, under a number below zero; whatever it gets is its job's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from calibration.domain.resources import gib
from placement.domain.admission import checks
from placement.domain.admission.decision import Check
from placement.domain.admission.demands import Demand, at_most, waiting_demand
from placement.domain.admission.gate import about_ever
from placement.domain.admission.many_devices import all_places
from placement.domain.admission.places import Board, Place
from placement.domain.submitting.taken import exactly
from placement.domain.world import text
from placement.domain.world.asks import Ask
from placement.domain.world.conditions import Conditions, Quota
from placement.domain.world.devices import Backend, Kind
from placement.domain.world.requests import Exclusive, Gpu, Request
from placement.domain.world.snapshot import Device, Running, Waiting


def number(request: int) -> int:
    """Return the number under which a request stands in the queue."""
    return -request


def read(told: Mapping[str, Any]) -> Ask:
    """Return the ask that a row or a call holds. Raise ValueError or TypeError with a sentence."""
    return Ask(
        kind=_named(Kind, "kind", told.get("kind", "gpu")),
        backend=_named(Backend, "backend", told.get("backend", "cuda")),
        group_bytes=told.get("group_bytes", 0),
        per_device_bytes=told.get("per_device_bytes", 0),
        min_devices=told.get("min_devices", 1),
        max_devices=told.get("max_devices", 1),
        exclusive=told.get("exclusive", False),
        device_id=told.get("device_id"),
        prefer_max=told.get("prefer_max", False),
        even=told.get("even", True),
    )


def _named(kind: Any, name: str, word: object) -> Any:
    try:
        return kind(word)
    except ValueError:
        raise ValueError(f"{name} is one of {', '.join(kind)}, not {str(word)[:40]!r}.") from None


def could_serve(ask: Ask, devices: Iterable[Device]) -> list[Device]:
    """Return those of a node's devices that are of the kind, offer the backend, and have the number asked for."""
    return [
        d
        for d in devices
        if d.kind.lower() == ask.kind.value
        and ask.backend.value in (word.lower() for word in d.backends)
        and ask.device_id in (None, d.index)
    ]


def waiting_of(
    request: int,
    ask: Ask,
    devices: Iterable[str],
    job: Running,
    quota: Quota | None = None,
    *,
    order: int,
    waited: float = 0.0,
) -> Waiting:
    """Return a request as the gate sees it: a promise, on the node of its job, of the job's priority."""
    wanted = _request(ask, devices, job)
    need = wanted.largest_share(ask.min_devices) if wanted.exact else ask.group_bytes + ask.per_device_bytes
    return Waiting(
        job=number(request),
        name=job.name,
        user=job.user,
        arrival=order,
        request=wanted,
        estimate=exactly(need, 0),
        priority=job.priority,
        waited=waited,
        limit=None if job.limit is None else max(0.0, job.limit - job.elapsed),
        learned=job.learned - job.elapsed if job.learned is not None and job.learned > job.elapsed else None,
        conditions=None if quota is None else Conditions(quota=quota),
        inside=job.job,
    )


def _request(ask: Ask, devices: Iterable[str], job: Running) -> Request:
    """Return what is asked of the gate: of one device an estimate that is a promise, of several exact bytes."""
    alone = Exclusive.DEVICE if ask.exclusive else Exclusive.NO
    if ask.max_devices == 1:
        return Request(Gpu.ONE, alone, job.node, among=frozenset(devices), inside=job.job)
    return Request(
        Gpu.GROUP,
        alone,
        job.node,
        min_devices=ask.min_devices,
        max_devices=ask.max_devices,
        prefer_max=ask.prefer_max,
        per_device_memory=ask.per_device_bytes or None,
        group_memory=ask.group_bytes or None,
        even=ask.even or not ask.group_bytes,
        among=frozenset(devices),
        inside=job.job,
    )


@dataclass(frozen=True, slots=True)
class Never:
    """Why a request can never be granted. ``lines`` is the arithmetic, one device a line."""

    code: str  # "impossible" or "waits_for_itself"
    sentence: str
    lines: tuple[str, ...]


def never(board: Board, waiting: Waiting, others: Mapping[str, int] = MappingProxyType({})) -> Never | None:
    """Return why a request can never be granted, on the empty node or beside what its own job holds; else None.

    ``others`` is what further steps and processes of the job hold, by pool: they go on, and will let go of it.
    """
    snapshot, demand = board.snapshot, waiting_demand(waiting)
    places = all_places(board, demand)
    asked = [checks.ever(board, demand, place) for place in places]
    if not any(check.ok for check in asked):
        return None if _away(board, waiting) else _impossible(board, demand, asked)
    quota = waiting.conditions.quota if waiting.conditions else None
    mine = (r for r in snapshot.running if r.job == waiting.inside and r.node == waiting.request.node and not r.unheld)
    own = [kept for r in mine if (kept := without(r, others)) is not None]
    refused = over_quota(own, quota, waiting.inside, waiting.estimate.pools["vram"].need or 0)
    if refused is not None:
        return refused
    lines = [
        check.sentence if not check.ok else _itself(board, place, waiting, own)
        for place, check in zip(places, asked, strict=True)
    ]
    if not all(lines):
        return None
    first = next(line for line, check in zip(lines, asked, strict=True) if check.ok)
    return Never("waits_for_itself", f"#{waiting.inside} would wait for itself. {first}", tuple(lines))


def nowhere(board: Board, waiting: Waiting) -> Never | None:
    """Return why no place could ever serve a request, however empty the node is; None where one could."""
    demand = waiting_demand(waiting)
    asked = [checks.ever(board, demand, place) for place in all_places(board, demand)]
    if any(check.ok for check in asked) or _away(board, waiting):
        return None
    return _impossible(board, demand, asked)


def _away(board: Board, waiting: Waiting) -> bool:
    """Return whether the node of a request is not heard of: that passes, and then it has places again."""
    node = board.nodes.get(waiting.request.node or "")
    return node is not None and node.state == "gone"


def _impossible(board: Board, demand: Demand, asked: Sequence[Check]) -> Never:
    whole = about_ever(board, demand, asked)
    sentence = whole.sentence.replace("Can never start where it asks to run.", "Can never be granted.", 1)
    sentence = sentence.replace("Can never start:", "Can never be granted:", 1)
    return Never("impossible", sentence, tuple(check.sentence for check in asked))


def over_quota(own: Iterable[Running], quota: Quota | None, job: int, need: int) -> Never | None:
    """Return why a request can never be granted under the quota of its job's owner, beside what it holds itself."""
    if quota is None or quota.vram is None:
        return None
    mine = sum(lasting(r, device) for r in own for device in r.devices)
    if mine + need <= quota.vram:
        return None
    asked, allowed = text.less(need, quota.vram)
    holds = f", of which #{job} itself holds {gib(mine)}" if mine else ""
    words = f"Asks {asked}; {quota.user} may hold {allowed} of device memory{holds}."
    return Never("quota", f"Can never be granted. {words} An admin can raise the quota on the page People.", (words,))


def _itself(board: Board, place: Place, waiting: Waiting, own: list[Running]) -> str:
    """Return why the place cannot serve for as long as the job has what it has there; "" where it can."""
    device = place.device
    if device is None:
        return ""
    need = waiting.estimate.pools["vram"].need or 0
    there = [r for r in own if device.uuid in r.devices]
    mine = sum(lasting(r, device.pool.pool) for r in own)
    alone = waiting.request.exclusive is Exclusive.DEVICE or device.exclusive_only
    if there and (alone or any(r.exclusive is Exclusive.DEVICE for r in there)):
        whose = "asks for" if alone else "holds"
        return f"#{waiting.inside} {whose} {place.label} alone, and is on it already."
    most = at_most(board.ledger(device.pool, device.measurable), 0)
    if not mine or most is None or need <= most - mine:
        return ""
    asked, given = text.less(need, most - mine)
    holds, gives = text.less(mine, most)
    return f"Asks {asked}; {place.label} can give {gives}, less {holds} that #{waiting.inside} itself holds is {given}."


def without(running: Running, others: Mapping[str, int]) -> Running | None:
    """Return a job less what others in it hold by pool; None for a place of which they hold all."""
    if not others.keys() & running.charges.keys():
        return running
    left = {}
    for pool, charge in running.charges.items():
        less = others.get(pool, 0)
        left[pool] = replace(
            charge,
            granted=max(0, charge.granted - less),
            held=max(0, charge.held - less),
            promised=max(0, charge.promised - less),
        )
    gone = running.more and not any(charge.granted for charge in left.values())
    return None if gone else replace(running, charges=left)


def lasting(running: Running, pool: str) -> int:
    """Return the bytes that a job will not give back before it lets go: promises, and what it uses of its estimate."""
    charge = running.charges.get(pool)
    if charge is None:
        return 0
    if charge.promise or charge.settled:
        return charge.granted  # what it uses above that may be what it has just let go of
    rest = min(charge.granted, charge.used or 0) - charge.promised
    return charge.promised + max(0, rest)
