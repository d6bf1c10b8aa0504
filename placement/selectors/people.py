"""People as admins see them: role, account, quota, and what each has in the queue."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Count, Q
from django.utils import timezone

from calibration.domain.resources import MIB, gib
from placement.domain.jobs import State
from placement.models import Job, Role, Token
from placement.selectors.access import role_of
from placement.snapshots import knobs_now


@dataclass(frozen=True, slots=True)
class PersonLine:
    """One user as admins see them."""

    id: int
    name: str
    role: str
    account: str
    active: bool
    last_login: datetime | None
    quota_jobs: str
    quota_vram: str
    quota_ram: str
    runs: int
    waits: int
    tokens: int


def people(text: str = "") -> tuple[PersonLine, ...]:
    """Return the users with this in their names, by name."""
    users = get_user_model().objects.select_related("member").order_by("username")
    if text:
        users = users.filter(username__icontains=text)
    live = Token.objects.filter(revoked_at=None).filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()))
    tokens = dict(live.values_list("user_id").annotate(Count("pk")))
    jobs: Counter[tuple[int, str]] = Counter()
    present = Job.objects.exclude(state=State.FINISHED).values_list("user_id", "state").annotate(Count("pk"))
    for user_id, state, count in present:
        jobs[user_id, "waits" if state == State.QUEUED else "runs"] += count
    return tuple(
        replace(
            _person(user),
            runs=jobs[user.pk, "runs"],
            waits=jobs[user.pk, "waits"],
            tokens=tokens.get(user.pk, 0),
        )
        for user in users
    )


def usual_quota() -> dict[str, str]:
    """Return what everybody may hold at once who has no quota of their own, as words."""
    knobs, _ = knobs_now()
    amounts = {"vram": knobs.quota_vram_mib, "ram": knobs.quota_ram_mib}
    shown = {name: gib(mib * MIB) if mib else "any" for name, mib in amounts.items()}
    return {"jobs": str(knobs.quota_jobs or "any"), **shown}


def person(user_id: int) -> Any | None:
    """Return a user."""
    return get_user_model().objects.filter(pk=user_id).first()


def _person(user: Any) -> PersonLine:
    member = getattr(user, "member", None)
    role = role_of(user) if user.is_active else Role(member.role if member else Role.VIEWER)
    return PersonLine(
        id=user.pk,
        name=user.get_username(),
        role=role.value if role else "",
        account=member.account if member else "",
        active=user.is_active,
        last_login=user.last_login,
        quota_jobs=_quota(member, "quota_jobs"),
        quota_vram=_quota(member, "quota_vram"),
        quota_ram=_quota(member, "quota_ram"),
        runs=0,
        waits=0,
        tokens=0,
    )


def _quota(member: Any, name: str) -> str:
    """Return a quota as its field takes it back, "" for everybody's."""
    value = getattr(member, name) if member else None
    return "" if value is None else str(value) if name == "quota_jobs" or not value else gib(value)
