"""Tell people what became of their jobs: rows for pages, messages for hooks, written with the change itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from placement.domain import notices
from placement.domain.errors import NotFound, Refused
from placement.domain.jobs import Outcome, State
from placement.domain.notices import Kind
from placement.domain.submitting import taken
from placement.domain.submitting.arrays import with_index
from placement.models import Delivery, Hook, Job, JobArray, Notice, NoticeSettings
from placement.services import secrets

HOOKS = 10  # of one person


@dataclass(frozen=True, slots=True)
class News:
    """One thing to tell one person."""

    user: int
    kind: Kind
    title: str
    sentence: str = ""
    job: int | None = None
    array: int | None = None


def tell(news: Sequence[News]) -> int:
    """Store what somebody wants to hear, and what goes to their hooks; return how many rows that were.

    Two reads and at most two writes, however many things there are; none where there are none. The caller's
    transaction is that of the change.
    """
    if not news:
        return 0
    users = {one.user for one in news}
    wants = dict(NoticeSettings.objects.filter(user__in=users).values_list("user", "kinds"))
    hooks: dict[int, list[Hook]] = {}
    for hook in Hook.objects.filter(user__in=users, on=True).only("user", "kinds"):
        hooks.setdefault(hook.user_id, []).append(hook)
    now = timezone.now()
    rows = [
        Notice(
            user_id=one.user, job_id=one.job, array_id=one.array, kind=one.kind,
            title=one.title[:240], sentence=one.sentence[:500], at=now,
        )
        for one in news
        if one.kind in wants.get(one.user, notices.DEFAULT)
    ]  # fmt: skip
    sent = [
        Delivery(hook=hook, kind=one.kind, title=one.title[:240], sentence=one.sentence[:500], due_at=now)
        for one in news
        for hook in hooks.get(one.user, ())
        if one.kind in hook.kinds
    ]
    if rows:
        Notice.objects.bulk_create(rows)
    if sent:
        Delivery.objects.bulk_create(sent)
    return len(rows) + len(sent)


def ended(ids: Collection[int]) -> None:
    """Tell of jobs that have just ended. Of an array its first failure is told, and its end as a whole."""
    if not ids:
        return
    columns = ("outcome", "sentence", "stop_by", "kind", "name", "array_id", "array_index", "user_id", "user__username")
    found = list(Job.objects.filter(pk__in=ids).select_related("user").only(*columns).order_by("pk"))
    again = dict(
        Job.objects.filter(retry_of__in=ids, retry_number__gt=0).values_list("retry_of", "pk")
        if any(job.outcome != Outcome.COMPLETED for job in found)
        else ()
    )
    news: list[News] = []
    for job in found:
        hold = job.kind == taken.Kind.HOLD
        kind = notices.kind_of_end(job.outcome, job.stop_by, job.user.get_username(), again=job.pk in again, hold=hold)
        if kind is None or (job.array_id is not None and kind is not Kind.FAILED):
            continue
        if job.array_id is not None and not _first_failure(job, news):
            continue
        follows = f" #{again[job.pk]} follows." if job.pk in again else ""
        news.append(
            News(job.user_id, kind, _title(job, _END[kind]), job.sentence[:450] + follows, job.pk, job.array_id)
        )
    news += _arrays(found)
    tell(news)


def started(jobs: Sequence[Job]) -> None:
    """Tell of jobs that have just begun to run after a long wait."""
    waited = {
        job.pk: (job.started_at - job.submitted_at).total_seconds() / 60
        for job in jobs
        if job.started_at is not None and job.array_id is None and job.started_at > job.submitted_at
    }
    if not waited or max(waited.values()) < 1:
        return
    by_id = {job.pk: job for job in jobs if job.pk in waited}
    users = {job.user_id for job in by_id.values()}
    patience = dict(NoticeSettings.objects.filter(user__in=users).values_list("user", "waited_min"))
    tell(
        [
            News(job.user_id, Kind.STARTED, _title(job, "has started"), f"It waited {round(waited[pk])} min.", pk)
            for pk, job in by_id.items()
            if waited[pk] >= patience.get(job.user_id, 10)
        ]
    )


def held(job: Job, who: str, why: str, count: int = 0) -> None:
    """Tell the owner that somebody else holds a waiting job of theirs, or ``count`` that wait and are like it."""
    if job.user.get_username() == who:
        return
    title = f"{count} waiting jobs like #{job.pk} are held" if count else _title(job, "is held")
    tell([News(job.user_id, Kind.HELD, title, f"By {who}{f': {why}' if why else ''}.", job.pk)])


def choose(user: Any, kinds: Collection[str], waited_min: int) -> None:
    """Set what a person is told of in pages."""
    if not 0 <= waited_min <= 100_000:
        raise Refused("The wait after which a start is told must be from 0 to 100,000 minutes.")
    wanted = {"kinds": sorted(notices.chosen(kinds)), "waited_min": waited_min}
    NoticeSettings.objects.update_or_create(user=user, defaults=wanted)


def saw(user: Any, newest: int) -> None:
    """Note up to which notice a person has looked."""
    newest = min(newest, Notice.objects.filter(user=user).order_by("-pk").values_list("pk", flat=True).first() or 0)
    row, _ = NoticeSettings.objects.get_or_create(user=user, defaults={"kinds": list(notices.DEFAULT)})
    if newest > row.seen:
        NoticeSettings.objects.filter(user=user, seen__lt=newest).update(seen=newest)


def add_hook(user: Any, address: str, name: str, kinds: Collection[str], service: str) -> Hook:
    """Store where a person's notices go; the address is sealed and never shown again."""
    if Hook.objects.filter(user=user).count() >= HOOKS:
        raise Refused(f"There are {HOOKS} places already; remove one first.")
    return Hook.objects.create(
        user=user,
        name=(name.strip() or service)[:60],
        shown=notices.shown(address)[:200],
        sealed=secrets.seal({"address": address}),
        kinds=sorted(notices.chosen(kinds)),
    )


def change_hook(user: Any, ident: int, kinds: Collection[str], *, on: bool) -> None:
    """Set what a hook is told of, and whether."""
    if not Hook.objects.filter(user=user, pk=ident).update(kinds=sorted(notices.chosen(kinds)), on=on):
        raise NotFound("There is no such place of yours.")
    if not on:
        Delivery.objects.filter(hook=ident).delete()


def remove_hook(user: Any, ident: int) -> None:
    """Forget a hook and what was to go there."""
    if not Hook.objects.filter(user=user, pk=ident).delete()[0]:
        raise NotFound("There is no such place of yours.")


def test_hook(user: Any, ident: int) -> None:
    """Send a message that says that it is a test, as any other is sent."""
    hook = Hook.objects.filter(user=user, pk=ident).first()
    if hook is None:
        raise NotFound("There is no such place of yours.")
    Delivery.objects.filter(hook=hook, kind=Kind.TEST).delete()
    Delivery.objects.create(
        hook=hook, kind=Kind.TEST, title="A test from Tidegate",
        sentence=f"{user.get_username()} asked for it. Notices of jobs look like this.",
        due_at=timezone.now() - timedelta(days=1), tries=notices.TRIES - 1,  # before others, and once
    )  # fmt: skip


_END = {
    Kind.FINISHED: "has completed",
    Kind.FAILED: "has failed",
    Kind.RETRIED: "has failed and is run again",
    Kind.STOPPED: "was stopped",
    Kind.HOLD_ENDS: "has ended",
}


def _title(job: Job, what: str) -> str:
    name = job.name if job.array_index is None else with_index(job.name, job.array_index)
    return f"#{job.pk} {name[:150]} {what}"


def _first_failure(job: Job, news: Sequence[News]) -> bool:
    """Return whether no failure of this job's array has been told yet."""
    if any(one.array == job.array_id for one in news):
        return False
    return not Notice.objects.filter(array=job.array_id, kind=Kind.FAILED).exists()


def _arrays(jobs: Sequence[Job]) -> list[News]:
    """Return what to tell of arrays of which the last member has ended."""
    ids = {job.array_id for job in jobs if job.array_id is not None}
    over = [i for i in ids if not Job.objects.filter(array=i).exclude(state=State.FINISHED).exists()]
    news = []
    for array in JobArray.objects.filter(pk__in=over):
        counts = Counter(Job.objects.filter(array=array).values_list("outcome", flat=True))
        bad = sum(count for outcome, count in counts.items() if outcome not in (Outcome.COMPLETED, Outcome.CANCELLED))
        said = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in counts.most_common())
        kind = Kind.FAILED if bad else Kind.FINISHED
        news.append(News(array.user_id, kind, f"{array.name[:150]} has ended", f"{said}.", None, array.pk))
    return news
