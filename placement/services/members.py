"""People: their roles, their ways in, and the Unix accounts that their jobs run as."""

from __future__ import annotations

import hashlib
import pwd
import secrets
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from calibration.domain.resources import MOST
from placement.domain import login_wait
from placement.domain.containing.accounts import Person
from placement.domain.errors import NotYours, Refused
from placement.models import LoginAttempt, LoginLink, Member, Role
from placement.models.member import CAP
from placement.services import audit
from placement.services.cycle_row import changing

_RANK = {role: rank for rank, role in enumerate(Role)}
_NEEDS = {"submit": Role.SUBMITTER, "operate": Role.OPERATOR, "administer": Role.ADMIN}
_WHO_LENGTH = 200
_MOST_JOBS = 1_000_000


def role_of(user: Any) -> Role:
    """Return the role: a superuser is an admin, somebody without one a viewer; no more than a cap on it allows."""
    capped: Role | None = getattr(user, CAP, None)
    own = _own_role(user)
    return own if capped is None else min(own, capped, key=_RANK.__getitem__)


def cap(user: Any, most: Role | None) -> None:
    """Let this object of a user do no more than a role allows, whatever theirs is: for what acts in their name."""
    setattr(user, CAP, most)


def _own_role(user: Any) -> Role:
    if not user.is_active:
        return Role.VIEWER
    if user.is_superuser:
        return Role.ADMIN
    try:
        return Role(user.member.role)
    except (ObjectDoesNotExist, AttributeError):  # no row, or an anonymous visitor
        return Role.VIEWER


def may(user: Any, action: str) -> bool:
    """Return whether the role allows "submit", "operate" or "administer"; each includes those before it."""
    return _RANK[role_of(user)] >= _RANK[_NEEDS[action]]


def need(user: Any, action: str) -> None:
    """Raise NotYours unless the role allows the action."""
    if not may(user, action):
        raise NotYours(f"This needs the role {_NEEDS[action].value}; {audit.name_of(user)} is {role_of(user).value}.")


def person(user: Any) -> Person:
    """Return the user as the rules of accounts see them."""
    try:
        mapped = user.member.account
    except ObjectDoesNotExist:
        mapped = ""
    return Person(user.get_username(), _own_role(user) is Role.ADMIN, mapped)


def make_link(user: Any, *, lifetime_s: float = 86_400, address: str = "") -> str:
    """Return a one-time login: the token alone, or the whole link where the service's address is given."""
    token = secrets.token_urlsafe(32)
    LoginLink.objects.create(
        digest=_digest(token), user=user, expires_at=timezone.now() + timedelta(seconds=lifetime_s)
    )
    return f"{address.rstrip('/')}/login/link/{token}" if address else token


def redeem_link(token: str) -> Any | None:
    """Return whose login this is and use it up; None where it is unknown, used, too old, or closed."""
    now = timezone.now()
    fresh = LoginLink.objects.filter(digest=_digest(token), used_at=None, expires_at__gt=now, user__is_active=True)
    # Of two visitors at once only one changes the row.
    if fresh.update(used_at=now) != 1:
        return None
    return LoginLink.objects.select_related("user").get(digest=_digest(token)).user


def failed_login(who: list[str]) -> None:
    """Note a failure under each of these keys (a name, an address), and forget those of yesterday."""
    now = timezone.now()
    LoginAttempt.objects.filter(at__lt=now - timedelta(seconds=login_wait.REMEMBERED)).delete()
    LoginAttempt.objects.bulk_create([LoginAttempt(who=key[:_WHO_LENGTH]) for key in who])


def wait_before_login(who: list[str]) -> float:
    """Return the seconds until a login may be tried, the longest of all keys; 0 means now."""
    now = timezone.now()
    times: dict[str, list[float]] = {}
    rows = LoginAttempt.objects.filter(
        who__in=[key[:_WHO_LENGTH] for key in who],
        at__gt=now - timedelta(seconds=login_wait.REMEMBERED),
    )
    for key, at in rows.values_list("who", "at"):
        times.setdefault(key, []).append(at.timestamp())
    return max((login_wait.seconds_to_wait(failures, now.timestamp()) for failures in times.values()), default=0.0)


def add_user(admin: Any, name: str, role: str) -> tuple[Any, str]:
    """Return a new user without a password, and the token of their first login."""
    need(admin, "administer")
    chosen = _role(role)
    users = get_user_model()
    user = users(username=users.normalize_username(name) if isinstance(name, str) else "")
    user.set_unusable_password()
    same = users.objects.filter(username__iexact=user.username).first()
    if same is not None:
        said = f"There is a user {same.get_username()} already."
        raise Refused(said, {"name": said})
    try:
        user.full_clean(exclude=["password"])
    except ValidationError as error:
        said = " ".join(error.messages)
        raise Refused(said, {"name": said}) from error
    try:
        with transaction.atomic():
            user.save()
            Member.objects.create(user=user, role=chosen.value)
            audit.record(admin, "add_user", f"user {user.get_username()}", role=chosen.value)
    except IntegrityError as error:
        said = f"There is a user {user.get_username()} already."
        raise Refused(said, {"name": said}) from error
    return user, make_link(user)


def set_role(admin: Any, user: Any, role: str) -> None:
    """Give a user another role. Refused where nobody would be left to administer."""
    need(admin, "administer")
    chosen = _role(role)
    with changing():
        before = role_of(user)
        if before is Role.ADMIN and chosen is not Role.ADMIN and not _other_admins(user):
            said = f"{user.get_username()} is the only admin; make another one first."
            raise Refused(said, {"role": said})
        Member.objects.update_or_create(user=user, defaults={"role": chosen.value})
        if chosen is not Role.ADMIN and (user.is_superuser or user.is_staff):
            user.is_superuser = user.is_staff = False
            user.save(update_fields=["is_superuser", "is_staff"])
        audit.record(admin, "set_role", f"user {user.get_username()}", before=before.value, after=chosen.value)


def set_active(admin: Any, user: Any, active: bool) -> None:
    """Let somebody in or keep them out; their jobs go on. Refused where nobody would be left to administer."""
    need(admin, "administer")
    with changing():
        if not active and role_of(user) is Role.ADMIN and not _other_admins(user):
            said = f"{user.get_username()} is the only admin; make another one first."
            raise Refused(said, {"active": said})
        user.is_active = active
        user.save(update_fields=["is_active"])
        audit.record(admin, "let_in" if active else "keep_out", f"user {user.get_username()}")


def set_account(admin: Any, user: Any, account: str, *, root: bool = False) -> None:
    """Map a user to a Unix account of this machine, "" to none; root only where the admin says so."""
    need(admin, "administer")
    account = account.strip()
    if account:
        try:
            uid = pwd.getpwnam(account).pw_uid
        except (KeyError, ValueError):
            said = f"This machine has no Unix account {account!r}."
            raise Refused(said, {"account": said}) from None
        if uid == 0 and not root:
            said = f"{account} is root: jobs of {user.get_username()} could change everything. Confirm it."
            raise Refused(said, {"account": said})
    with changing():
        member, _ = Member.objects.get_or_create(user=user, defaults={"role": role_of(user).value})
        before, member.account = member.account, account
        member.save(update_fields=["account"])
        audit.record(admin, "set_account", f"user {user.get_username()}", before=before, after=account)


def set_quota(admin: Any, user: Any, *, jobs: int | None, vram: int | None, ram: int | None) -> None:
    """Limit what a user's jobs may hold at once (bytes); None: as the knobs say for everybody, 0: no limit."""
    need(admin, "administer")
    asked = {"quota_jobs": jobs, "quota_vram": vram, "quota_ram": ram}
    for name, value in asked.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST):
            said = f"A quota is a whole number from 0 (no limit) up, or empty for everybody's; not {value!r}."
            raise Refused(said, {name: said})
    if jobs is not None and jobs > _MOST_JOBS:
        said = f"{_MOST_JOBS:,} jobs at once are the most that a quota can say; 0 means no limit."
        raise Refused(said, {"quota_jobs": said})
    with changing():
        member, _ = Member.objects.get_or_create(user=user, defaults={"role": role_of(user).value})
        before = {name: getattr(member, name) for name in asked}
        if before == asked:
            return
        Member.objects.filter(pk=member.pk).update(**asked)
        user.member = Member.objects.get(pk=member.pk)
        audit.record(admin, "set_quota", f"user {user.get_username()}", before=before, after=asked)


def first_admin() -> tuple[Any, bool]:
    """Return an admin, made where there is none, and whether any admin ever logged in."""
    users = get_user_model()
    admins = users.objects.filter(_is_admin()).order_by("pk")
    if not admins:
        with transaction.atomic():
            # A user of that name who is no admin (any more) keeps what they are.
            taken = set(users.objects.filter(username__startswith="admin").values_list("username", flat=True))
            name = next(n for n in ("admin", *(f"admin{i}" for i in range(2, 10_000))) if n not in taken)
            user = users(username=name, is_superuser=True, is_staff=True)
            user.set_unusable_password()
            user.save()
            Member.objects.create(user=user, role=Role.ADMIN.value)
            audit.record(None, "add_user", f"user {name}", role=Role.ADMIN.value)
        return user, False
    return admins[0], any(admin.last_login is not None for admin in admins)


def _other_admins(user: Any) -> bool:
    return get_user_model().objects.filter(_is_admin()).exclude(pk=user.pk).exists()


def _is_admin() -> Q:
    return Q(is_active=True) & (Q(is_superuser=True) | Q(member__role=Role.ADMIN.value))


def _role(text: object) -> Role:
    if not isinstance(text, str) or text not in set(Role):
        said = f"{text!r} is not a role; choose one of {', '.join(Role)}."
        raise Refused(said, {"role": said})
    return Role(text)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
