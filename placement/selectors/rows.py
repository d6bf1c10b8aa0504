"""One line per job, for the queue and for lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from calibration.domain.resources import gib, total
from calibration.domain.samples import RAM
from placement.domain.jobs import State
from placement.domain.submitting.arrays import with_index
from placement.domain.submitting.taken import Kind
from placement.domain.world.requests import Exclusive
from placement.inside import UNHELD
from placement.models import Job
from placement.selectors import expected, progress, tanks, verdict, wording
from placement.selectors.expected import Expected
from placement.selectors.progress import Progress
from placement.selectors.wording import listing, mapping, whole


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """A queued job. ``filled`` is the percent of its need that the best place has room for."""

    id: int
    name: str
    owner: str
    workers: int
    chip: str
    rung: str
    reason: str
    code: str
    since: datetime
    shortfall: str
    filled: float | None
    tone: str
    expected: Expected | None
    held: str
    priority: int
    array: int | None = None


@dataclass(frozen=True, slots=True)
class ArrayRow:
    """The next of an array's waiting members, and how many ``others`` of the same priority wait behind it."""

    row: WaitingRow
    array: int
    others: int

    @property
    def owner(self) -> str:
        """Return whose array it is."""
        return self.row.owner

    @property
    def since(self) -> datetime:
        """Return since when it waits."""
        return self.row.since


@dataclass(frozen=True, slots=True)
class RunningRow:
    """An admitted or running job. ``used`` and ``ram`` read "11.0 of 13.1 GiB"."""

    id: int
    name: str
    owner: str
    workers: int
    chip: str
    rung: str
    where: str
    tone: str
    used: str
    exact: str = field(repr=False)
    each: str  # of a group: what it uses of each device
    cap: str
    ram: str
    filled: float | None
    state: str
    since: datetime | None
    limit: str
    words: tuple[str, ...]
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class FinishedRow:
    """A finished job with how it ended."""

    id: int
    name: str
    owner: str
    word: str
    tone: str
    sentence: str
    ended: datetime | None
    took: str


ENDED = ("name", "array_index", "user__username", "outcome", "sentence", "ended_at", "duration_s")
"""The columns that the line of a finished job is made of."""


def label(job: Job) -> str:
    """Return the name by which a job is shown: a member of an array says which one it is."""
    if job.array_index is None:
        return job.name
    named = with_index(job.name, job.array_index)
    return named if named != job.name else f"{job.name} [{job.array_index}]"


def waiting(job: Job) -> WaitingRow:
    """Return the line of a queued job."""
    seen = verdict.brief(job.decision)
    basis = str(mapping(job.estimate).get("basis") or "")
    return WaitingRow(
        id=job.pk,
        name=label(job),
        owner=job.user.get_username(),
        workers=job.workers,
        chip=wording.rung_class(basis) if basis else "",
        rung=wording.rung(basis),
        reason=job.headline or "Waits for the next decision.",
        code=job.code,
        since=job.submitted_at,
        shortfall=seen.shortfall,
        filled=seen.filled,
        tone=tanks.tone(job.pk),
        expected=expected.of(job),
        held=wording.held(job.held_by, job.held_until, job.held_why) if job.held_by else "",
        priority=job.priority,
        array=job.array_id,
    )


def _alone(job: Job) -> bool:
    """Return whether somebody has taken the device or the machine alone: that is no amount of memory."""
    return job.kind == Kind.HOLD and job.exclusive != Exclusive.NO


def _used(job: Job, used: int | None, granted: int | None, *, unread: bool) -> str:
    if _alone(job):
        return f"the {job.exclusive} alone"
    if unread:
        return f"{gib(granted)} booked"
    return gib(wording.steady(used)) if granted is None else wording.of(wording.steady(used), granted)


def running(job: Job, devices: Mapping[str, str]) -> RunningRow:
    """Return the line of an admitted or running job; ``devices`` maps UUID to name."""
    own = [uuid for uuid in job.devices if uuid in mapping(job.charges)]
    pools = own or [RAM]
    uses = [whole(mapping(job.used).get(pool)) for pool in pools]
    used, granted = total(uses), total(_charged(job, pool, "granted") for pool in pools)
    aside = mapping(mapping(job.charges).get(RAM)) if own else {}
    ram = whole(mapping(job.used).get(RAM))
    share = min(100.0, round(used / granted * 100)) if used is not None and granted else None
    inside = _inside(job, devices)
    unread = any(mapping(mapping(job.charges).get(pool)).get("unread") for pool in pools)
    return RunningRow(
        id=job.pk,
        name=label(job),
        owner=job.user.get_username(),
        workers=job.workers,
        chip=wording.rung_class(job.basis) if job.basis else "",
        rung=wording.rung(job.basis),
        where=" + ".join([*(devices.get(d, d) for d in job.devices or [f"RAM of {job.node}"]), *inside]),
        tone=tanks.tone(job.pk),
        used=_used(job, used, granted, unread=unread),
        exact=f"{used:,} bytes" if used is not None else "not measured",
        each=_each([(devices.get(pool, pool), use) for pool, use in zip(pools, uses, strict=True)], inside),
        cap="" if _alone(job) else "not measured" if unread else _caps([_charged(job, pool, "cap") for pool in pools]),
        ram=f"RAM {wording.of(wording.steady(ram), whole(aside.get('granted')))}" if aside else "",
        filled=share,
        state=job.state,
        since=job.started_at or job.admitted_at,
        limit=f"limit {wording.span(job.time_limit_s)}" if job.time_limit_s else "",
        words=words(job),
        progress=progress.of(job),
    )


def _charged(job: Job, pool: str, what: str) -> int | None:
    return whole(mapping(mapping(job.charges).get(pool)).get(what))


def _inside(job: Job, devices: Mapping[str, str]) -> dict[str, str]:
    """Return what a job uses of each device that it took from inside itself, by its name: "2.0 of 6.0 GiB"."""
    found = {}
    for pool, charge in mapping(job.charges).items():
        if pool in (RAM, *job.devices) or mapping(charge).get(UNHELD):
            continue
        used, granted = whole(mapping(job.used).get(pool)), whole(mapping(charge).get("granted"))
        much = f"{gib(granted)} booked" if used is None else wording.of(wording.steady(used), granted)
        found[devices.get(pool, pool)] = much
    return dict(sorted(found.items()))


def _each(uses: Sequence[tuple[str, int | None]], inside: Mapping[str, str]) -> str:
    """Return "gpu0 2.0 GiB · gpu1 3.0 GiB" of a group, and the same of what was taken from ``inside``; else ""."""
    own = [f"{name} {'not measured' if used is None else gib(wording.steady(used))}" for name, used in uses]
    words = [*(own if len(own) > 1 else []), *(f"{name} {much}" for name, much in inside.items())]
    told = " · ".join(word.replace(" ", "\N{NO-BREAK SPACE}") for word in words)
    return f"{told}, asked for as it ran" if inside else told


def _caps(caps: Sequence[int | None]) -> str:
    """Return "cap 18.0 GiB", of a group "caps 2.2 to 2.3 GiB each" or, where they read the same, "cap 2.3 GiB each"."""
    known = [cap for cap in caps if cap is not None]
    if not known:
        return "no cap"
    low, high, each = gib(min(known)), gib(max(known)), " each" if len(caps) > 1 else ""
    return f"cap {high}{each}" if low == high else f"caps {low} to {high}{each}"


def words(job: Job) -> tuple[str, ...]:
    """Return what stands beside the state of an unfinished job, as words."""
    found: list[str] = []
    if job.state == State.FINISHED:
        return ()
    if job.stop_requested_at is not None:
        found.append("stopping" + (f", asked by {job.stop_by}" if job.stop_by else ""))
    if job.leader_exit:
        left = len(listing(job.members))
        found.append(f"finishing, {left} {'process' if left == 1 else 'processes'} left")
    if job.unsupervised:
        found.append("unsupervised: its runner is gone, it is still watched")
    if job.attempt > 1:
        found.append(f"start {job.attempt}")
    return (*found, *(str(flag) for flag in listing(job.flags)))


def finished(job: Job) -> FinishedRow:
    """Return the line of a finished job."""
    return FinishedRow(
        id=job.pk,
        name=label(job),
        owner=job.user.get_username(),
        word=wording.OUTCOMES.get(job.outcome, job.outcome),
        tone=wording.outcome_tone(job.outcome),
        sentence=job.sentence,
        ended=job.ended_at,
        took=wording.span(job.duration_s),
    )
