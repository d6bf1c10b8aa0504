"""What the cycle does with what running jobs ask for: grant it, say why it waits, or that it can never be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.utils import timezone

from calibration.domain.samples import RAM
from placement import inside, snapshots
from placement.domain.admission import inside as rules
from placement.domain.admission import inside_groups as groups
from placement.domain.admission.decision import Decision
from placement.domain.admission.inside import Never
from placement.domain.admission.places import Board
from placement.domain.forecasting.told import judged
from placement.domain.planning.plan import Plan
from placement.domain.world.asks import Ask
from placement.domain.world.snapshot import Running, Waiting
from placement.models import Device, InsideRequest, Lease, RequestState
from placement.services import scopes, unlocking
from placement.services.scopes import Others

_SHOWN = 6  # reasons of one request that are kept


def never(row: InsideRequest, wanted: Ask, scope: tuple[str, str]) -> Never | None:
    """Return why a request that is not stored yet can never be granted, None where it can.

    ``scope`` is who asks, as ``scopes`` has it: only what it holds itself is told at once to be in its way for ever.
    """
    snapshot = snapshots.take(without_queue=True)
    job = next((r for r in snapshot.running if r.job == row.job_id and not r.more), None)
    if job is None:
        return None
    quota = inside.quota_of(row.job.user, snapshot.knobs)
    others = Others([row.job_id]).of(row.job_id, scope)
    waiting = rules.waiting_of(1, wanted, row.devices, job, quota, order=1)
    if not row.devices:  # none is of the kind, the backend, the number: the allocator says so of those that are there
        there = [d.uuid for node in snapshot.nodes if node.name == job.node for d in node.devices]
        return groups.never(snapshot, wanted, there, job, quota, others)
    return _never(Board(snapshot), waiting, wanted, row.devices, job, others)


def _never(
    board: Board, waiting: Waiting, wanted: Ask, devices: Sequence[str], job: Running, others: Mapping[str, int]
) -> Never | None:
    if wanted.max_devices == 1:
        return rules.never(board, waiting, others)
    quota = waiting.conditions.quota if waiting.conditions else None
    # The allocator has MIG instances, and devices whose memory is RAM, together; the gate, which grants, has not.
    return groups.never(board.snapshot, wanted, devices, job, quota, others) or rules.nowhere(board, waiting)


def refuse(row: InsideRequest, refusal: Never) -> None:
    """Put a refusal on a row; saving it is the caller's."""
    row.state, row.code, row.said = RequestState.REFUSED, refusal.code, refusal.sentence[:1000]
    row.reasons, row.ended_at = {"lines": list(refusal.lines)[:_SHOWN]}, timezone.now()


def granted(decisions: Iterable[Decision]) -> None:
    """Give each request that the plan serves its leases."""
    for decision in decisions:
        grant = decision.grant
        if grant is None or grant.device is None:
            raise AssertionError(f"request {-decision.job} was to be granted without a device")
        amounts = {pool: n for pool, n in grant.charges.items() if pool != RAM or len(grant.charges) == 1}
        several = len(grant.devices) > 1  # one alone may be charged as main memory
        members = list(amounts.items()) if several else [(grant.device, sum(amounts.values()))]
        _give(-decision.job, members, grant.node, list(amounts.items()))


def _give(request: int, members: Sequence[tuple[str, int]], node: str, pools: Sequence[tuple[str, int]]) -> bool:
    row = InsideRequest.objects.filter(pk=request, state=RequestState.WAITING).first()
    if row is None:
        return False
    devices = {d.uuid: d for d in Device.objects.filter(node__name=node, uuid__in=[uuid for uuid, _ in members])}
    if any(uuid not in devices for uuid, _ in members):  # its declaration was taken away a moment ago
        return False
    row.members = [_member(devices[uuid], node, size, row.ask) for uuid, size in members]
    row.state, row.granted_at, row.said, row.code = RequestState.GRANTED, timezone.now(), "", ""
    row.save(update_fields=["members", "state", "granted_at", "said", "code"])
    Lease.objects.bulk_create(
        Lease(
            job_id=row.job_id,
            attempt=row.attempt,
            request=row,
            node=node,
            pool=pool,
            kind="ram" if pool == RAM else "vram",
            bytes=size,
            promise=True,
        )
        for pool, size in pools
    )
    return True


def _member(device: Device, node: str, size: int, ask: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "uuid": device.uuid,
        "device_id": device.index,
        "node": node,
        "kind": device.kind.lower(),
        "backend": str(ask.get("backend") or device.backend).lower(),  # the one that was asked for, of several
        "bytes": size,
    }


def settle(made: Plan) -> None:
    """After the starts: end what would wait for ever, and say why the others wait."""
    rows = {row.pk: row for row in InsideRequest.objects.filter(state=RequestState.WAITING).select_related("session")}
    if not rows:
        return
    jobs = {r.job: r for r in made.board.snapshot.running if not r.more}
    others = Others({row.job_id for row in rows.values()})
    unlocking.resolve(made.board)
    for waiting in made.waits():
        row = rows.get(-waiting.job)
        if not waiting.inside or row is None:
            continue
        held = others.of(waiting.inside, scopes.of(row.session))
        job = jobs[waiting.inside]
        refusal = _never(made.board, waiting, rules.read(row.ask), row.devices, job, held)
        if refusal is not None:
            _refused(row.pk, refusal)
            continue
        decision = judged(made, waiting.job)
        _waits(row.pk, decision.code.value if decision.code else "", _sentences(decision))


def _sentences(decision: Decision) -> list[str]:
    """Return why a request waits, the leading reason first, then the other places' first objections."""
    whole = [check.sentence for check in decision.whole if not check.ok]
    places = [one.objections[0].sentence for one in decision.candidates if one.objections]
    return list(dict.fromkeys([decision.headline, *whole, *places]))[:_SHOWN]


def _refused(request: int, refusal: Never) -> None:
    row = InsideRequest.objects.filter(pk=request, state=RequestState.WAITING).first()
    if row is not None:
        refuse(row, refusal)
        row.save(update_fields=["state", "code", "said", "reasons", "ended_at"])


def _waits(request: int, code: str, sentences: Sequence[str]) -> None:
    """Write down why a request waits, where that reads differently than before."""
    said = sentences[0] if sentences else ""
    same = InsideRequest.objects.filter(pk=request, said=said[:1000], code=code, reasons={"sentences": list(sentences)})
    if not same.exists():
        rows = InsideRequest.objects.filter(pk=request, state=RequestState.WAITING)
        rows.update(said=said[:1000], code=code, reasons={"sentences": list(sentences)})
