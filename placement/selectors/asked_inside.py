"""What a job asked for while it ran and what it holds of that, for its page and the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, Value, When

from calibration.domain.resources import gib
from placement.domain.admission.inside import read
from placement.domain.jobs import State
from placement.domain.leasing.cycles_text import asked
from placement.inside import granted
from placement.models import InsideRequest, Job, RequestState
from placement.selectors.wording import listing, mapping, whole

SHOWN = 50
WORDS = {
    RequestState.WAITING: ("waits", "wait"),
    RequestState.GRANTED: ("holds it", "run"),
    RequestState.REFUSED: ("refused", "stop"),
    RequestState.WITHDRAWN: ("withdrawn", "quiet"),
    RequestState.RELEASED: ("let go", "quiet"),
    RequestState.REVOKED: ("taken back", "stop"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One request. ``since`` is when it came into its state; ``ring`` says who held and wanted what in a wait cycle."""

    id: int
    asks: str
    who: str
    state: str
    word: str
    tone: str
    asked: datetime
    since: datetime
    got: str
    said: str
    more: tuple[str, ...]
    ring: tuple[str, ...]
    artifact: str
    outlives: datetime | None
    leaves: datetime | None
    or_else: str  # what becomes of the job where it has not left by then
    still: str  # what is still measured of one that was taken back, "" for nothing
    can_revoke: bool


def lines(job: Job, names: Mapping[str, str], *, may_revoke: bool = False) -> tuple[Line, ...]:
    """Return a job's requests, those that wait or are held first, then the newest."""
    if job.state == State.QUEUED:
        return ()
    first = Case(When(state=RequestState.WAITING, then=Value(0)), When(state=RequestState.GRANTED, then=1), default=2)
    rows = InsideRequest.objects.filter(job=job).select_related("session").order_by(first, "-id")[:SHOWN]
    return tuple(_line(row, names, may_revoke, job) for row in rows)


def _line(row: InsideRequest, names: Mapping[str, str], may_revoke: bool, job: Job) -> Line:
    state = RequestState(row.state)
    word, tone = WORDS[state]
    held = state is RequestState.GRANTED
    session, reasons = row.session, mapping(row.reasons)
    pid = whole(mapping(session.process).get("pid"))
    who = session.step or (f"pid {pid}" if pid else "a process")
    told = [str(one) for one in listing(reasons.get("sentences") or reasons.get("lines"))]
    return Line(
        id=row.pk,
        asks=asked(read(row.ask), [names.get(d, d) for d in row.devices]),
        who=who if (held and session.ended_at is None) or not held else f"{who}, which has ended",
        state=row.state,
        word="being taken back" if held and row.revoke_at else word,
        tone="stop" if held and row.revoke_at else tone,
        asked=row.asked_at,
        since=row.ended_at or row.granted_at or row.asked_at,
        got=", ".join(f"{gib(m['bytes'])} on {names.get(m['uuid'], m['uuid'])}" for m in row.members),
        said=row.said,
        more=tuple(one for one in told if one not in row.said),
        ring=ring(mapping(reasons.get("cycle"))),
        artifact=row.artifact,
        outlives=row.outlives if held else None,
        leaves=row.revoke_at if held else None,
        or_else=", else the job is ended" if held and job.workload and job.workload.revoked_ends else "",
        still=_still(row, names, job) if state is RequestState.REVOKED and row.leaving else "",
        can_revoke=may_revoke and held and row.revoke_at is None,
    )


def _still(row: InsideRequest, names: Mapping[str, str], job: Job) -> str:
    """Return what the job uses above what it still holds where something was taken back, and what becomes of that."""
    found, unknown = [], False
    for member in row.members:
        uuid, charge = member["uuid"], mapping(mapping(job.charges).get(member["uuid"]))
        used = mapping(job.used).get(uuid, 0)
        unknown |= used is None
        over = (whole(used) or 0) - (granted(charge) if charge else 0)
        if over > 0:
            found.append(f"{gib(min(over, member['bytes']))} on {names.get(uuid, uuid)}")
    if not found:
        return "What is still in use of it is not told by the driver." if unknown else ""
    ends = ", and the job is ended for it: its workload says so" if job.workload and job.workload.revoked_ends else ""
    return f"Still measured: {', '.join(found)}. That counts as taken until it is gone{ends}."


def ring(cycle: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a wait cycle as it was, one job a line, in the order in which each waited for the next."""
    links = {link["request"]: link for link in listing(cycle.get("links"))}
    order = [links[one] for one in listing(cycle.get("ring")) if one in links] or list(links.values())
    found = []
    for link in order:
        holds = ", ".join(f"{gib(h['bytes'])} on {h['device']}{' alone' if h['alone'] else ''}" for h in link["holds"])
        wants = f"{gib(link['wants'])} on {' or '.join(link['on']) or 'no device'}"
        found.append(f"#{link['job']} held {holds or 'nothing'} and waited for {wants}")
    return tuple(found)


def as_json(job: Job, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the same for the API."""
    return [
        {
            "id": line.id,
            "state": line.state,
            "asks": line.asks,
            "who": line.who,
            "asked_at": line.asked,
            "since": line.since,
            "got": line.got,
            "said": line.said,
            "reasons": list(line.more),
            "cycle": list(line.ring),
            "artifact": line.artifact or None,
            "outlives_until": line.outlives,
            "revoked_until": line.leaves,
            "still_measured": line.still,
        }
        for line in lines(job, names)
    ]
