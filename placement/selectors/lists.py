"""Lists that grow for ever, read by key: jobs, audit entries; and people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser

from placement.models import AuditEntry, Job, Role
from placement.selectors import rows, wording
from placement.selectors.access import role_of
from placement.selectors.rows import FinishedRow

PAGE = 50
STATE_WORDS = {"queued": "waiting", "admitted": "starting", "running": "running"}


@dataclass(frozen=True, slots=True)
class JobLine:
    """One job of the list; ``word`` is its outcome, or its state while it has none."""

    line: FinishedRow
    basis: str
    chip: str
    submitted: datetime


@dataclass(frozen=True, slots=True)
class JobList:
    """One page of jobs, newest first; ``after`` is the key to go on from, None at the end."""

    lines: tuple[JobLine, ...]
    after: int | None


@dataclass(frozen=True, slots=True)
class PersonLine:
    """One user as admins see them."""

    id: int
    name: str
    role: str
    account: str
    active: bool
    last_login: datetime | None


def jobs(user: AbstractBaseUser, *, mine: bool, before: int | None, text: str = "", outcome: str = "") -> JobList:
    """Return the jobs below this key, those of the user alone when ``mine``."""
    found = Job.objects.select_related("user").defer("environment", "members", "decision").order_by("-id")
    if mine:
        found = found.filter(user_id=user.pk)
    if before is not None:
        found = found.filter(pk__lt=before)
    if text:
        found = found.filter(name__icontains=text[:100])
    if outcome:
        found = found.filter(outcome=outcome) if outcome in wording.OUTCOMES else found.filter(state=outcome)
    page = list(found[: PAGE + 1])
    return JobList(tuple(_line(job) for job in page[:PAGE]), page[PAGE - 1].pk if len(page) > PAGE else None)


def _line(job: Job) -> JobLine:
    line = rows.finished(job)
    if not job.outcome:
        state = STATE_WORDS[job.state]
        line = FinishedRow(
            job.pk, job.name, line.owner, state, "wait" if state == "waiting" else "run",
            job.headline, None, "",
        )  # fmt: skip
    basis = job.basis or str(wording.mapping(job.estimate).get("basis") or "")
    return JobLine(line, wording.rung(basis), wording.rung_class(basis) if basis else "", job.submitted_at)


def audit(before: int | None) -> tuple[list[AuditEntry], int | None]:
    """Return audit entries below this key, newest first, and the key to go on from."""
    found = AuditEntry.objects.order_by("-id")
    page = list((found.filter(pk__lt=before) if before is not None else found)[: PAGE + 1])
    return page[:PAGE], page[PAGE - 1].pk if len(page) > PAGE else None


def people() -> tuple[PersonLine, ...]:
    """Return all users with role and account, by name."""
    users = get_user_model().objects.select_related("member").order_by("username")
    return tuple(_person(user) for user in users)


def person(user_id: int) -> Any | None:
    """Return a user."""
    return get_user_model().objects.filter(pk=user_id).first()


def _person(user: Any) -> PersonLine:
    member = getattr(user, "member", None)
    role = role_of(user) if user.is_active else Role(member.role if member else Role.VIEWER)
    return PersonLine(
        user.pk,
        user.get_username(),
        role.value if role else "",
        member.account if member else "",
        user.is_active,
        user.last_login,
    )
