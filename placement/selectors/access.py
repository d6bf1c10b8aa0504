"""Who may see and touch what. Everybody who is logged in sees owners, names, figures and reasons."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from placement.models import Job, Member, Role
from placement.models.member import CAP

RANK = {role: rank for rank, role in enumerate(Role)}


def role_of(user: AbstractBaseUser | AnonymousUser) -> Role | None:
    """Return the role: a superuser is an admin, a user without a row may only look. None: logged out.

    Where something acts in their name it is no more than that may do.
    """
    if not user.is_authenticated or not user.is_active:
        return None
    capped: Role | None = getattr(user, CAP, None)
    own = _own(user)
    return own if capped is None else min(own, capped, key=RANK.__getitem__)


def _own(user: AbstractBaseUser | AnonymousUser) -> Role:
    if getattr(user, "is_superuser", False):
        return Role.ADMIN
    known = getattr(user, "_tidegate_role", None)
    if known is None:
        if "member" in (read := user._state.fields_cache):  # it was read along with the user
            row = read["member"] and read["member"].role
        else:
            row = Member.objects.filter(user_id=user.pk).values_list("role", flat=True).first()
        known = Role(row) if row in set(Role) else Role.VIEWER
        user._tidegate_role = known  # one query a request; the user object lives no longer
    return known


def at_least(user: AbstractBaseUser | AnonymousUser, role: Role) -> bool:
    """Return whether the user has this role or a stronger one."""
    own = role_of(user)
    return own is not None and RANK[own] >= RANK[role]


def sees_private(user: AbstractBaseUser, job: Job) -> bool:
    """Return whether command, environment names and log are shown: to the owner and to operators."""
    return job.user_id == user.pk or at_least(user, Role.OPERATOR)


def may_touch(user: AbstractBaseUser, job: Job) -> bool:
    """Return whether the user may cancel, hold or repeat this job."""
    own = job.user_id == user.pk and at_least(user, Role.SUBMITTER)
    return own or at_least(user, Role.OPERATOR)


def picks(user: AbstractBaseUser | AnonymousUser) -> str:
    """Return whose jobs the user may act on: "all", "own", "" nobody's."""
    return "all" if at_least(user, Role.OPERATOR) else "own" if at_least(user, Role.SUBMITTER) else ""
