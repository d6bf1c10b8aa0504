"""Running jobs that wait for each other: found in each cycle, and ended by taking back what costs least to do again."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from django.utils import timezone

from placement import inside
from placement.domain.admission.inside import lasting, read
from placement.domain.admission.inside_groups import slots
from placement.domain.admission.places import Board
from placement.domain.leasing import cycles, cycles_text, waits
from placement.domain.leasing.leases import Part
from placement.domain.leasing.slots import Slot
from placement.domain.leasing.waits import Held, Wanted
from placement.domain.world.requests import Exclusive
from placement.models import InsideRequest, InsideSession, RequestState, WaitCycle
from placement.services import audit, holding

log = logging.getLogger(__name__)


def resolve(board: Board) -> list[int]:
    """End what would wait for ever; return the requests that were refused or have to be made again."""
    rows = list(InsideRequest.objects.filter(state=RequestState.WAITING).select_related("session").order_by("id"))
    jobs = {r.job: r for r in board.snapshot.running if not r.more}
    rows = [row for row in rows if row.job_id in jobs]
    if not rows:
        return []
    wanted = [_wanted(row, jobs[row.job_id].node) for row in rows]
    here = waits.scene(_slots(board, rows), [*_started(board), *_since(), *_kept(board)], wanted)
    done: list[int] = []
    for found in cycles.resolve(here, timezone.now().timestamp()):
        told = _told(found)
        log.warning("%s", told["sentence"], extra={"action": "wait_cycle"})
        _keep(found, told)
        for victim in found.revoked:
            done += _take_back(victim.job, victim.session, told, board.knobs.revoke_seconds)
        done += _refuse(found, told)
    return done


def _label(row: InsideRequest) -> str:
    return f"request {row.pk}"


def _wanted(row: InsideRequest, node: str) -> Wanted:
    session = row.session
    ask = replace(read(row.ask), node=node, label=_label(row))
    process = holding.process_key(session.process)
    return Wanted(row.pk, row.job_id, ask, row.order, _step(session), session.restartable, process)


def _step(session: InsideSession) -> str:
    """Return who will let go: a step, in words that people read, or the key of a process.

    Two processes of one job, as the ranks of a launcher, are not in each other's way while one of them goes on.
    """
    return session.key if session.key.startswith("process:") else f"{session.step or 'a step'} {session.key[:6]}"


def _slots(board: Board, rows: Sequence[InsideRequest]) -> list[Slot]:
    """Return all devices, each with the labels of the requests that it could serve."""
    found = []
    for node in board.nodes.values():
        every = slots(board, node.name, [d.uuid for d in node.devices])
        for slot in every:
            labels = frozenset(_label(row) for row in rows if slot.device[1] in row.devices)
            found.append(replace(slot, labels=labels))
    return found


def _started(board: Board) -> Iterable[Held]:
    """Yield what jobs hold since their start: what they will not give back before their end."""
    for r in board.snapshot.running:
        if r.more or not r.devices:
            continue
        parts = []
        for device in r.devices:
            charge = r.charges.get(device)
            size = lasting(r, device) - (charge.promised if charge else 0)
            parts.append(Part((r.node, device), size, r.exclusive is Exclusive.DEVICE))
        yield Held(r.job, tuple(parts))


def _since() -> Iterable[Held]:
    """Yield what was granted while jobs ran; an artifact's time ends by itself, once its job has."""
    rows = inside.leases()
    sessions = InsideSession.objects.in_bulk([lease.request.session_id for lease in rows if lease.request])
    for lease in rows:
        request = lease.request
        if request is None or request.granted_at is None or request.revoke_at is not None:
            continue
        session = sessions[request.session_id]
        if session.ended_at is not None:
            continue
        part = Part((lease.node, lease.pool), lease.bytes, bool(request.ask.get("exclusive")))
        yield Held(lease.job_id, (part,), _step(session), request.granted_at.timestamp())


def _kept(board: Board) -> Iterable[Held]:
    """Yield what jobs still use of what was taken back from them, past their time to leave: it goes when they do."""
    unheld = [r for r in board.snapshot.running if r.unheld]
    if not unheld:
        return
    late = InsideRequest.objects.filter(leaving=True, state=RequestState.REVOKED, revoke_at__lte=timezone.now())
    left = set(late.values_list("job", "leases__pool"))
    for r in unheld:
        parts = tuple(Part((r.node, p), c.used or 0) for p, c in r.charges.items() if (r.job, p) in left)
        if parts:
            yield Held(r.job, parts)


def _take_back(job: int, step: str, told: dict[str, Any], seconds: float) -> list[int]:
    """Have a step lose what it holds: what it waits for comes back as revoked, and it is run again."""
    now, said = timezone.now(), told["sentence"]
    row = next((s for s in InsideSession.objects.filter(job=job, ended_at=None) if _step(s) == step), None)
    if row is None:
        return []
    own = InsideRequest.objects.filter(session=row)
    held = own.filter(state=RequestState.GRANTED)
    free: dict[str, int] = {}
    for member in (m for members in held.values_list("members", flat=True) for m in members):
        free[member["uuid"]] = free.get(member["uuid"], 0) + member["bytes"]
    until = now + timedelta(seconds=seconds)
    row.revoked = {
        "execution": row.execution,
        "said": said,
        "at": until.timestamp(),
        "must_free": [{"uuid": uuid, "bytes": size} for uuid, size in free.items()],
    }
    row.save(update_fields=["revoked"])
    held.update(revoke_at=until, revoked_by="tidegate", said=said[:1000], leaving=True)
    asked = list(own.filter(state=RequestState.WAITING).values_list("pk", flat=True))
    own.filter(pk__in=asked).update(
        state=RequestState.REVOKED, code="cycle", said=said[:1000], reasons={"cycle": told}, ended_at=now
    )
    return asked


def _refuse(found: cycles.Cycle, told: dict[str, Any]) -> list[int]:
    lines = [told["sentence"]]
    refused = InsideRequest.objects.filter(pk__in=found.refused, state=RequestState.WAITING)
    refused.update(
        state=RequestState.REFUSED,
        code=found.refusal,
        said=told["sentence"][:1000],
        reasons={"lines": lines, "cycle": told},
        ended_at=timezone.now(),
    )
    return list(found.refused)


def _keep(found: cycles.Cycle, told: dict[str, Any]) -> None:
    """Keep a cycle as it was, for the pages of all jobs in it, and a line of it in the audit."""
    numbers = sorted({link.job for link in found.links})
    row = WaitCycle.objects.create(at=timezone.now(), sentence=told["sentence"], told=told)
    row.jobs.set(numbers)
    audit.record(
        None,
        "end wait cycle",
        ", ".join(f"#{number}" for number in numbers)[:200],
        again=[f"“{victim.session}” of #{victim.job}" for victim in found.revoked],
        refused=list(found.refused),
        why=told["sentence"][:1000],
    )


def _said(step: str) -> str:
    """Return who asked, as people know them."""
    head, _, rest = step.partition(":")
    return step if head != "process" else f"pid {pid}" if (pid := rest.partition(":")[0]) else "a process"


def _told(found: cycles.Cycle) -> dict[str, Any]:
    """Return a cycle as a page draws it: who held what, who wanted what, what was done."""
    names = found.names
    return {
        "sentence": cycles_text.told(found),
        "ring": list(found.ring),
        "links": [
            {
                "request": link.request,
                "job": link.job,
                "step": _said(link.session),
                "asks": cycles_text.asked(link.ask, [names[device] for device in link.devices]),
                "wants": link.ask.group_bytes + link.ask.per_device_bytes * link.ask.min_devices,
                "on": [names[device] for device in link.devices],
                "holds": [{"device": names[p.device], "bytes": p.bytes, "alone": p.alone} for p in link.holds],
                "waits_for": list(link.waits_for),
            }
            for link in found.links
        ],
        "revoked": [asdict(victim) for victim in found.revoked],
        "refused": list(found.refused),
    }
