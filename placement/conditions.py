"""Read what waiting jobs wait for: one query per table and snapshot, none per job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Exists, OuterRef, Q, QuerySet

from placement.domain.jobs import Outcome, State
from placement.domain.knobs import MIB, Knobs
from placement.domain.submitting.arrays import LOOKED_AT, looked_at
from placement.domain.world.conditions import After, Conditions, Quota, Tie
from placement.models import Dependency, Job, JobArray


@dataclass
class Facts:
    """Ties by job, limits by array, quotas by user: what one snapshot knows of conditions."""

    ties: dict[int, tuple[Tie, ...]] = field(default_factory=dict)
    limits: dict[int, int | None] = field(default_factory=dict)
    knobs: Knobs = field(default_factory=Knobs)
    _quotas: dict[int, Quota | None] = field(default_factory=dict)

    def quota(self, job: Job) -> Quota | None:
        """Return the quota of a job's owner, asked once per owner."""
        if job.user_id not in self._quotas:
            self._quotas[job.user_id] = quota_of(job.user, self.knobs)
        return self._quotas[job.user_id]

    def none_for(self, user_id: int) -> bool:
        """Return whether a user's jobs are known to be tied to nothing and under no quota."""
        return not self.ties and self._quotas.get(user_id, False) is None

    def of(self, job: Job, *, unsaved: bool = False) -> Conditions | None:
        """Return what a queued job waits for, None where it is room alone; the ties of an unsaved one stand under 0."""
        quota, array = self.quota(job), job.array_id
        ties = self.ties.get(0 if unsaved else job.pk, ()) if self.ties else ()
        if quota is None and array is None and job.not_before is None and not ties:
            return None
        return Conditions(
            after=ties,
            not_before=None if job.not_before is None else job.not_before.timestamp(),
            array=array or 0,
            array_limit=self.limits.get(array) if array else None,
            quota=quota,
        )


def facts(jobs: Sequence[Job], knobs: Knobs) -> Facts:
    """Return the facts about these queued jobs."""
    arrays = {job.array_id for job in jobs if job.array_id}
    limits = dict(JobArray.objects.filter(pk__in=arrays).values_list("pk", "limit")) if arrays else {}
    return Facts(ties() if any(job.tied for job in jobs) else {}, limits, knobs)


def ties() -> dict[int, tuple[Tie, ...]]:
    """Return what queued jobs wait for that is not met yet, by job."""
    found: defaultdict[int, list[Tie]] = defaultdict(list)
    rows = Dependency.objects.filter(job__tied=True, job__state=State.QUEUED).order_by("job_id", "on_id")
    for job, on, when, state, outcome in rows.values_list("job_id", "on_id", "when", "on__state", "on__outcome"):
        tie = Tie(on, After(when), State(state), Outcome(outcome) if outcome else None)
        if not tie.met:
            found[job].append(tie)
    return {job: tuple(open_) for job, open_ in found.items()}


def quota_of(user: Any, knobs: Knobs) -> Quota | None:
    """Return what a user's jobs may hold together: their own figures over the knobs'; None where nothing is limited."""
    try:
        member = user.member
    except ObjectDoesNotExist:
        member = None
    own = (None, None, None) if member is None else (member.quota_jobs, member.quota_vram, member.quota_ram)
    usual = (knobs.quota_jobs, knobs.quota_vram_mib * MIB, knobs.quota_ram_mib * MIB)
    jobs, vram, ram = ((usual[i] if own[i] is None else own[i]) or None for i in range(3))
    return None if jobs is vram is ram is None else Quota(user.get_username(), jobs, vram, ram)


def crowded() -> QuerySet[JobArray]:
    """Return the arrays of which a cycle looks at some members only, whether any of them waits or not."""
    return JobArray.objects.filter(size__gt=LOOKED_AT)


def in_sight(*, whole: bool = False) -> QuerySet[Job]:
    """Return the queued jobs that a cycle looks at: all but the members of large arrays behind the first ones.

    ``whole``: it is known that there is no large array.
    """
    queued, hidden = Job.objects.filter(state=State.QUEUED), None if whole else _behind()
    return queued if hidden is None else queued.exclude(hidden)


def _behind() -> Q | None:
    waiting = Job.objects.filter(array=OuterRef("pk"), state=State.QUEUED)
    hidden: Q | None = None
    for array in crowded().filter(Exists(waiting)):
        members = Job.objects.filter(array=array, state=State.QUEUED).order_by("id").values_list("pk", flat=True)
        free, held = members.filter(held_by=""), members.exclude(held_by="")
        seen = [*free[: looked_at(array.limit)], *held[:LOOKED_AT]]
        behind = Q(array=array) & ~Q(pk__in=seen)
        hidden = behind if hidden is None else hidden | behind
    return hidden
