"""People, for admins: roles, Unix accounts, quotas, ways in."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.http import HttpRequest
from django.urls import reverse
from ninja import Query

from placement.api.nouns import Noun
from placement.api.shapes.admin import (
    PeopleAsked,
    PersonBody,
    PersonChange,
    PersonLink,
    PersonList,
    PersonSaid,
    QuotaBody,
)
from placement.api.shapes.kinds import Id
from placement.domain.errors import NotFound, Refused
from placement.domain.submitting.submission import bad_characters
from placement.models import Member, Role
from placement.selectors import people
from placement.services import members
from placement.views import wake

noun = Noun("People")


@noun.read("/people", PersonList, Role.ADMIN)
def listed(request: HttpRequest, asked: Query[PeopleAsked]) -> dict[str, Any]:
    """Return everybody with role, account, quota, and what each has in the queue."""
    return {"people": _told(people.people(asked.q.replace("\0", "").strip()))}


@noun.change("/people", PersonLink, Role.ADMIN, status=201, sample={"name": "ada", "role": "submitter"})
def add(request: HttpRequest, asked: PersonBody) -> dict[str, Any]:
    """Add somebody; the answer has their first login."""
    if wrong := bad_characters(asked.name):
        raise Refused(wrong, {"name": wrong})
    user, token = members.add_user(request.user, asked.name, asked.role)
    return _linked(request, user, token)


@noun.change("/people/{int:user_id}", PersonSaid, Role.ADMIN, method="PATCH", sample={"role": "operator"})
def edit(request: HttpRequest, user_id: Id, asked: PersonChange) -> dict[str, Any]:
    """Change somebody's role or account, keep them out or let them in again; all of it or nothing."""
    user = _found(user_id)
    with transaction.atomic():  # a refused account leaves the role as it was
        if asked.role is not None:
            members.set_role(request.user, user, asked.role)
        if asked.account is not None:
            members.set_account(request.user, user, asked.account, root=asked.root)
        if asked.active is not None:
            members.set_active(request.user, user, asked.active)
    return _done(user_id, f"{user.get_username()} is saved.")


@noun.change("/people/{int:user_id}/quota", PersonSaid, Role.ADMIN, method="PUT", sample={"jobs": 4, "vram": "48 GiB"})
def quota(request: HttpRequest, user_id: Id, asked: QuotaBody) -> dict[str, Any]:
    """Say what somebody's jobs may hold at once."""
    user = _found(user_id)
    try:
        members.set_quota(request.user, user, jobs=asked.jobs, vram=asked.vram, ram=asked.ram)
    except Refused as error:
        fields = {name.removeprefix("quota_"): text for name, text in error.fields.items()}
        raise Refused(error.sentence, fields) from error
    return _done(user_id, f"The quota of {user.get_username()} is saved.")


@noun.change("/people/{int:user_id}/link", PersonLink, Role.ADMIN)
def link(request: HttpRequest, user_id: Id) -> dict[str, Any]:
    """Make a new one-time login for somebody."""
    user = _found(user_id)
    return _linked(request, user, members.make_link(user))


def _linked(request: HttpRequest, user: Any, token: str) -> dict[str, Any]:
    return {"person": _one(user.pk), "link": request.build_absolute_uri(reverse("login-link", args=[token]))}


def _found(user_id: int) -> Any:
    user = people.person(user_id) if user_id < 2**63 else None
    if user is None:
        raise NotFound(f"There is no person {user_id}.")
    return user


def _done(user_id: int, said: str) -> dict[str, Any]:
    wake.soon()
    return {"message": said, "person": _one(user_id)}


def _one(user_id: int) -> dict[str, Any]:
    user = people.person(user_id)
    return next(one for one in _told(people.people(user.get_username())) if one["id"] == user_id)


def _told(lines: tuple[people.PersonLine, ...]) -> list[dict[str, Any]]:
    quotas = {m.user_id: m for m in Member.objects.filter(user_id__in=[line.id for line in lines])}
    return [
        {
            "id": line.id,
            "name": line.name,
            "role": line.role,
            "account": line.account or None,
            "active": line.active,
            "last_login": line.last_login,
            **{name: getattr(quotas.get(line.id), name, None) for name in ("quota_jobs", "quota_vram", "quota_ram")},
            "runs": line.runs,
            "waits": line.waits,
            "tokens": line.tokens,
        }
        for line in lines
    ]
