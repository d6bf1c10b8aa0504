"""May this job start at all yet? Asked only of jobs that wait for other jobs, a time, an array's turn or a quota."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from calibration.domain.estimate import Estimate, PoolEstimate
from calibration.domain.resources import gib
from placement.domain.admission.decision import Check, Code, Figures, Grant
from placement.domain.world import text
from placement.domain.world.conditions import Conditions, Quota, Tie, never_met
from placement.domain.world.requests import Request
from placement.domain.world.snapshot import Running, Waiting

_MEMORY = {"vram": "device memory", "ram": "RAM"}


@dataclass(slots=True)
class Held:
    """What one person's jobs hold: (job, bytes) per kind of memory."""

    jobs: list[int] = field(default_factory=list)
    vram: list[tuple[int, int]] = field(default_factory=list)
    ram: list[tuple[int, int]] = field(default_factory=list)


class Holdings:
    """Who holds what, summed when it is first asked; starts of the same cycle are added."""

    def __init__(self, running: Sequence[Running]) -> None:
        self._waiting_to_be_counted = list(running)
        self._users: defaultdict[str, Held] = defaultdict(Held)
        self._arrays: defaultdict[int, list[int]] = defaultdict(list)

    def add(self, started: Running) -> None:
        """Count one more job."""
        self._waiting_to_be_counted.append(started)

    def of_user(self, user: str) -> Held:
        """Return what this person's jobs hold."""
        self._count()
        return self._users[user]

    def of_array(self, array: int) -> Sequence[int]:
        """Return the members of an array that are admitted or run."""
        self._count()
        return self._arrays[array]

    def _count(self) -> None:
        for r in self._waiting_to_be_counted:
            held = self._users[r.user]
            if not r.more:
                held.jobs.append(r.job)
            for pool, charge in r.charges.items():
                (held.vram if pool in r.devices else held.ram).append((r.job, charge.held))
            if r.array and not r.more:
                self._arrays[r.array].append(r.job)
        self._waiting_to_be_counted.clear()


def asked(waiting: Waiting, holdings: Holdings, wall: float) -> tuple[Check, ...]:
    """Return the answers about the job's own conditions, () where it has none."""
    if waiting.conditions is None:
        return ()
    return tuple(_questions(waiting, waiting.conditions, holdings, wall))


def beyond(waiting: Waiting, holdings: Holdings, grant: Grant) -> Check | None:
    """Return the refusal of a first run whose grant is more than its owner's quota leaves, None where it fits.

    What a first run takes is known only once it has a place, so this is asked after all else said yes.
    """
    quota = waiting.conditions.quota if waiting.conditions else None
    if quota is None:
        return None
    found = _memories(quota, holdings.of_user(waiting.user), waiting, grant)
    return next((check for check in found if not check.ok), None)


def least_of(kind: str, request: Request, pool: PoolEstimate) -> int | None:
    """Return what a job takes of one kind of memory at least, on all of its devices; None where nothing is known."""
    need = pool.need if pool.need is not None else pool.at_least
    if kind != "vram" or need is None:
        return need
    return sum(request.shares(request.min_devices)) if request.exact else need * request.min_devices


def never_under(quota: Quota | None, request: Request, estimate: Estimate) -> Check | None:
    """Return the refusal of a job that alone needs more than its owner may ever hold, None where it fits."""
    if quota is None:
        return None
    for kind in _MEMORY:
        limit, pool = getattr(quota, kind), estimate.pools.get(kind)
        need = None if pool is None else least_of(kind, request, pool)
        if limit is not None and need is not None and need > limit:
            return _beyond(quota, kind, need, limit)
    return None


def _questions(waiting: Waiting, by: Conditions, holdings: Holdings, wall: float) -> Iterator[Check]:
    if by.after:
        yield _depends(waiting.job, by.after)
    if by.not_before is not None:
        yield _not_before(by.not_before, wall)
    if by.array and by.array_limit is not None:
        yield _array_limit(by.array, by.array_limit, holdings.of_array(by.array))
    if by.quota is not None:
        yield from _quota(by.quota, holdings.of_user(waiting.user), waiting)


def _depends(job: int, ties: tuple[Tie, ...]) -> Check:
    open_ = [tie for tie in ties if not tie.met]
    if not open_:
        return Check(Code.DEPENDS, True, "All that it waits for has ended as asked.")
    figures: Figures = {"waits_for": text.jobs(t.on for t in open_), "count": len(open_)}
    if broken := never_met(job, ties):
        return Check(Code.DEPENDS, False, broken, figures)
    parts = []
    for to in dict.fromkeys(tie.to for tie in open_):
        parts.append(f"for {text.names([f'#{t.on} ({_state(t)})' for t in open_ if t.to == to])} to {to}")
    return Check(Code.DEPENDS, False, f"Waits {'; '.join(parts)}.", figures)


def _state(tie: Tie) -> str:
    return {"queued": "waiting", "admitted": "starting"}.get(tie.state.value, tie.state.value)


def _not_before(at: float, wall: float) -> Check:
    moment = datetime.fromtimestamp(at, UTC)
    shown = moment.strftime("%Y-%m-%d %H:%M:%S UTC")
    left = max(0.0, at - wall)
    figures: Figures = {"not_before": moment.isoformat(), "in_s": left}
    if wall >= at:
        return Check(Code.NOT_BEFORE, True, f"The time before which it was not to start has come: {shown}.", figures)
    return Check(Code.NOT_BEFORE, False, f"Not before {shown}, in {text.seconds(left)}.", figures)


def _array_limit(array: int, limit: int, running: Sequence[int]) -> Check:
    figures: Figures = {"running": len(running), "limit": limit}
    who = f": {text.jobs(running)}" if running else ""
    words = f"Array {array} runs {len(running)} of at most {limit} at once{who}."
    return Check(Code.ARRAY_LIMIT, len(running) < limit, words, figures)


def _quota(quota: Quota, held: Held, waiting: Waiting) -> Iterator[Check]:
    if quota.jobs is not None:
        count = len(held.jobs)
        who = f": {text.jobs(held.jobs)}" if held.jobs else ""
        words = (
            f"{quota.user} runs {count} of {quota.jobs} {'job' if quota.jobs == 1 else 'jobs'} allowed at once{who}."
        )
        yield Check(Code.QUOTA, count < quota.jobs, words, {"running": count, "limit": quota.jobs})
    yield from _memories(quota, held, waiting, None)


def _memories(quota: Quota, held: Held, waiting: Waiting, grant: Grant | None) -> Iterator[Check]:
    for kind in _MEMORY:
        limit = getattr(quota, kind)
        pool = waiting.estimate.pools.get(kind)
        if limit is not None and pool is not None:
            known = pool.need is not None
            need = _taken(kind, grant) if grant is not None else least_of(kind, waiting.request, pool)
            yield _memory(quota, kind, limit, getattr(held, kind), need, known)


def _taken(kind: str, grant: Grant) -> int:
    return sum(size for pool, size in grant.charges.items() if (pool in grant.devices) == (kind == "vram"))


def _memory(
    quota: Quota, kind: str, limit: int, holders: list[tuple[int, int]], need: int | None, known: bool
) -> Check:
    """Return the answer about one kind of memory; ``need`` None: a first run, which takes what is left somewhere."""
    if need is not None and need > limit and known:
        return _beyond(quota, kind, need, limit)
    held = sum(size for _, size in holders)
    room = limit - held
    who = f" by {text.jobs(job for job, size in holders if size)}" if held else ""
    words = f"{gib(held, limit)} of {quota.user}'s {gib(limit, held)} of {_MEMORY[kind]} are held{who}"
    if need is None:
        ok, short = room > 0, max(0, 1 - room)
        words += "; a first run takes what is left of one device." if kind == "vram" else "; this is a first run."
    else:
        ok, short = need <= room, max(0, need - room)
        words += f"; this {'needs' if known else 'would take'} {gib(need, max(0, room))}"
        words += "." if known or ok else " as a first run. Declare what it needs to be charged that."
    figures: Figures = {"need": need, "held": held, "limit": limit, "room": room}
    return Check(Code.QUOTA, ok, words, figures, "", short)


def _beyond(quota: Quota, kind: str, need: int, limit: int) -> Check:
    words = (
        f"Can never start under {quota.user}'s quota of {gib(limit, need)} of {_MEMORY[kind]}: "
        f"it needs {gib(need, limit)}. An admin can raise the quota on the page People."
    )
    return Check(Code.QUOTA, False, words, {"need": need, "limit": limit}, "", need - limit)
