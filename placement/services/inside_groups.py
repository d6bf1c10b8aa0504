"""Requests of running jobs for several devices: what the cycle gives each, after the starts of its queue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from calibration.domain.resources import gib
from placement import inside
from placement.domain import inside_groups as rules
from placement.domain.allocator import Granted
from placement.domain.inside import Never, read
from placement.domain.plan import Plan
from placement.domain.requests import Exclusive
from placement.domain.snapshot import Charge, Running
from placement.models import InsideRequest, RequestState
from placement.services import scopes
from placement.services.scopes import Others


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one request: its members (device, bytes), or why it can never be, or why it waits."""

    request: int
    node: str
    members: tuple[tuple[str, int], ...] = ()
    never: Never | None = None
    code: str = ""
    sentences: tuple[str, ...] = ()


def look(made: Plan, others: Others) -> Iterator[Outcome]:
    """Yield what comes of each request for several devices, the oldest first; each grant counts for the next."""
    snapshot, board = made.board.snapshot, made.board
    jobs = {r.job: r for r in snapshot.running if not r.more}
    rows = InsideRequest.objects.filter(state=RequestState.WAITING).select_related("job__user__member", "session")
    for row in rows.order_by("id"):
        job, ask = jobs.get(row.job_id), read(row.ask)
        if job is None or ask.max_devices == 1:
            continue
        quota = inside.quota_of(row.job.user, snapshot.knobs)
        refusal = rules.never(snapshot, ask, row.devices, job, quota, others.of(row.job_id, scopes.of(row.session)))
        if refusal is not None:
            yield Outcome(row.pk, job.node, never=refusal)
            continue
        held = sum(size for _, size in board.holdings.of_user(job.user).vram)
        if quota is not None and quota.vram is not None and held + rules.least(ask) > quota.vram:
            words = f"{job.user}'s jobs hold {gib(held)} of the {gib(quota.vram)} of device memory that they may."
            yield Outcome(row.pk, job.node, code="quota", sentences=(words,))
            continue
        told = rules.place(ask, rules.slots(board, job.node, row.devices, made.bar))
        if isinstance(told, Granted):
            members = tuple((member.device[1], member.bytes) for member in told.members)
            for uuid, size in members:
                board.admit(_more(job, uuid, size, ask.exclusive))
            yield Outcome(row.pk, job.node, members)
        else:
            yield Outcome(row.pk, job.node, code="booked", sentences=(told.sentence,))


def _more(job: Running, device: str, size: int, exclusive: bool) -> Running:
    return Running(
        job=job.job,
        name=job.name,
        user=job.user,
        node=job.node,
        charges={device: Charge(size, size, 0, size, settled=True, promise=True)},
        devices=(device,),
        exclusive=Exclusive.DEVICE if exclusive else Exclusive.NO,
        elapsed=job.elapsed,
        limit=job.limit,
        learned=job.learned,
        seen=job.seen,
        more=True,
    )
